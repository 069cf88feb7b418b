//! The replay of a dataflow schedule: start steps without warps, on resources and storage that are added up.
//!
//! Sums are swept over the steps at which something begins or ends, so the cost depends on the number of operations and
//! dependences, not on how many steps there are. With an interval `II` the steady state is swept, slot by slot: what is
//! there for `n` steps is there `⌊n / II⌋` times in every slot, and once more in the `n mod II` slots from its own.

use crate::holders::{Held, Holder, Holders, Moment};
use crate::rejected::{Rejected, Violations};
use crate::verified::Verified;
use crate::violation::Violation;
use std::collections::BTreeMap;
use twill_graph::saturate;
use twill_graph::{
    Cycles, Dataflow, DataflowDependence, DataflowObjective, DataflowOperation, DataflowProblem, StartSteps,
};

/// Most holders that a message names.
const NAMED_HOLDERS: usize = 16;

/// Start steps that hold, and what they cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredSteps {
    /// The schedule.
    pub steps: StartSteps,
    /// Latest finish, in steps.
    pub latency: i128,
    /// Most units of each resource that are in use in one step.
    pub peaks: Vec<i128>,
    /// `Σ communication · (s_to + δ·II − s_from)` over the dependences that count.
    pub communication: i128,
    /// Most storage that is live in one step.
    pub storage: i128,
    /// The objective of the problem.
    pub objective: i128,
}

/// Replays `steps` against `problem` and measures them.
///
/// ```
/// use twill_graph::format::{DataflowOptions, NamedText, read_dataflow};
/// use twill_graph::{DataflowObjective, DataflowProblem, StartSteps};
///
/// let text = "digraph g { a [label = mul]; b [label = add]; a -> b; }";
/// let graph = read_dataflow(NamedText { file: "g.dot", text }, &DataflowOptions::default()).unwrap();
/// let objective = DataflowObjective::Storage;
/// let problem = DataflowProblem { graph, latency_bound: Some(4), interval: None, objective };
/// let start = |steps: &[u64]| StartSteps { interval: None, steps: steps.to_vec() };
/// assert_eq!(twill_check::verify_dataflow(&problem, start(&[0, 2])).unwrap().latency, 3);
/// assert!(twill_check::verify_dataflow(&problem, start(&[0, 1])).is_err());
/// ```
///
/// # Errors
/// Every constraint that is broken, with the place (up to [`Rejected::LIMIT`]).
pub fn verify_dataflow(problem: &DataflowProblem, steps: StartSteps) -> Result<Verified<MeasuredSteps>, Rejected> {
    let mut violations = Violations::default();
    let (required, given) = (problem.graph.operations().len(), steps.steps.len());
    if steps.interval != problem.interval {
        violations.push(Violation::OtherInterval { required: problem.interval, given: steps.interval });
    } else if steps.interval == Some(0) {
        violations.push(Violation::Interval { interval: Cycles::ZERO });
    } else if required != given {
        violations.push(Violation::PlacementCount { required, given });
    } else if steps.steps.iter().copied().chain(steps.interval).any(|step| step > LARGEST_STEP) {
        violations.push(Violation::StepsTooLarge { limit: LARGEST_STEP });
    }
    if !violations.is_empty() {
        // There is nothing that could be replayed.
        return Err(violations.into());
    }
    let replay = Replay { graph: &problem.graph, starts: &steps.steps, interval: steps.interval };
    replay.check_dependences(&mut violations);
    replay.check_latency(problem.latency_bound, &mut violations);
    let peaks: Vec<i128> = (0..problem.graph.resources().len()).map(|r| replay.resource(r, &mut violations)).collect();
    if !violations.is_empty() {
        return Err(violations.into());
    }
    let (latency, communication, storage) = (replay.latency(), replay.communication(), replay.storage());
    let objective = match problem.objective {
        DataflowObjective::Resources { peak, communication: alpha } => {
            let peaks: i128 = peaks.iter().sum();
            let cost = i128::from(peak).checked_mul(peaks);
            let cost = cost.zip(i128::from(alpha).checked_mul(communication));
            match cost.and_then(|(peaks, communication)| peaks.checked_add(communication)) {
                Some(cost) => cost,
                None => {
                    violations.push(Violation::StepsTooLarge { limit: LARGEST_STEP });
                    return Err(violations.into());
                }
            }
        }
        DataflowObjective::Storage => storage,
        DataflowObjective::Latency => latency,
    };
    Ok(Verified::seal(MeasuredSteps { steps, latency, peaks, communication, storage, objective }))
}

/// Start steps and intervals beyond 2^44 are refused. With sums of at most 2^48 in a graph and distances below 2^32, all
/// sums here then stay below 2^126.
const LARGEST_STEP: u64 = 1 << 44;

struct Replay<'a> {
    graph: &'a Dataflow,
    starts: &'a [u64],
    interval: Option<u64>,
}

/// An amount that is there from `start` for `length` steps.
struct Span {
    start: i128,
    length: i128,
    amount: i128,
}

impl Replay<'_> {
    fn start(&self, op: usize) -> i128 {
        self.starts[op].into()
    }

    /// Dependences that count: without an interval there is one iteration.
    fn dependences(&self) -> impl Iterator<Item = &DataflowDependence> {
        self.graph.dependences().iter().filter(|d| self.interval.is_some() || d.distance == 0)
    }

    /// When the reader of a dependence starts, in steps of its producer's iteration.
    fn reader(&self, d: &DataflowDependence) -> i128 {
        self.start(d.to.index()) + i128::from(d.distance) * i128::from(self.interval.unwrap_or(0))
    }

    fn check_dependences(&self, violations: &mut Violations) {
        let name = |index: usize| self.graph.operations()[index].name.clone();
        for d in self.dependences() {
            let issued = self.start(d.from.index());
            let (required, given) = (issued + i128::from(d.delay), self.reader(d));
            if given < required {
                violations.push(Violation::Dependence {
                    from: name(d.from.index()),
                    to: name(d.to.index()),
                    distance: d.distance,
                    issued: cycles(issued),
                    required: cycles(required),
                    given: cycles(given),
                });
            }
        }
    }

    fn finish(&self, op: usize) -> i128 {
        self.start(op) + i128::from(self.graph.operations()[op].latency)
    }

    fn latency(&self) -> i128 {
        (0..self.starts.len()).map(|op| self.finish(op)).max().unwrap_or(0)
    }

    fn check_latency(&self, bound: Option<u64>, violations: &mut Violations) {
        let Some(bound) = bound else { return };
        for (index, op) in self.graph.operations().iter().enumerate() {
            let finish = self.finish(index);
            if finish > i128::from(bound) {
                violations.push(Violation::LatencyBound { operation: op.name.clone(), bound, finish: cycles(finish) });
            }
        }
    }

    /// Checks a resource; its peak.
    fn resource(&self, index: usize, violations: &mut Violations) -> i128 {
        let spans_of = |(op, &start): (&DataflowOperation, &u64)| -> Vec<Span> {
            let of_it = op.uses.iter().filter(|used| used.resource.index() == index);
            let span = |used: &twill_graph::ResourceUse| Span {
                start: i128::from(start) + i128::from(used.offset),
                length: used.steps.into(),
                amount: used.amount.into(),
            };
            of_it.map(span).collect()
        };
        let users = || self.graph.operations().iter().zip(self.starts);
        let (peak, step) = self.peak(users().flat_map(spans_of));
        let resource = &self.graph.resources()[index];
        let Some(limit) = resource.limit.filter(|&limit| peak > i128::from(limit)) else { return peak };
        let holder = |user: (&DataflowOperation, &u64)| {
            let spans = spans_of(user);
            let copies: i128 = spans.iter().map(|span| self.copies(span, step)).sum();
            let amount: i128 = spans.iter().map(|span| self.copies(span, step) * span.amount).sum();
            let (copies, amount) = (copies as u64, amount as u64);
            (copies > 0).then(|| Holder { operation: user.0.name.clone(), held: Held::Unit, copies, amount })
        };
        let mut holders: Vec<Holder> = users().filter_map(holder).collect();
        holders.sort_by(|a, b| b.amount.cmp(&a.amount).then_with(|| a.operation.cmp(&b.operation)));
        holders.truncate(NAMED_HOLDERS);
        let slot = cycles(step);
        violations.push(Violation::Resource {
            unit: resource.name.clone(),
            available: limit,
            required: saturate::<u64>(peak),
            at: Moment { slot, cycle: self.interval.is_none().then_some(slot) },
            holders: Holders(holders),
        });
        peak
    }

    fn communication(&self) -> i128 {
        let cost = |d: &DataflowDependence| i128::from(d.communication) * (self.reader(d) - self.start(d.from.index()));
        self.dependences().map(cost).sum()
    }

    fn storage(&self) -> i128 {
        let mut last: Vec<i128> = self.starts.iter().map(|&start| start.into()).collect();
        for d in self.dependences() {
            let read = self.reader(d);
            let last = &mut last[d.from.index()];
            *last = read.max(*last);
        }
        let span = |(op, last): (usize, &i128)| {
            let (start, amount) = (self.start(op), self.graph.operations()[op].storage.into());
            Span { start, length: last - start, amount }
        };
        self.peak(last.iter().enumerate().map(span)).0
    }

    /// How often a span is there at a step.
    fn copies(&self, span: &Span, step: i128) -> i128 {
        match self.interval {
            None => i128::from(span.start <= step && step < span.start + span.length),
            Some(interval) => {
                let interval = i128::from(interval);
                let since = (step - span.start).rem_euclid(interval);
                span.length / interval + i128::from(since < span.length % interval)
            }
        }
    }

    /// The most that is there in one step (with an interval: slot), and the first such step; (0, 0) of nothing.
    fn peak(&self, spans: impl Iterator<Item = Span>) -> (i128, i128) {
        // Amounts that come and go; what is there all the time.
        let (mut changes, mut constant) = (BTreeMap::<i128, i128>::new(), 0);
        for Span { start, length, amount } in spans {
            let (start, length) = match self.interval.map(i128::from) {
                None => (start, length),
                Some(interval) => {
                    constant += length / interval * amount;
                    (start % interval, length % interval)
                }
            };
            if length == 0 || amount == 0 {
                continue;
            }
            *changes.entry(start).or_default() += amount;
            match self.interval.map(i128::from).filter(|&interval| start + length > interval) {
                None => *changes.entry(start + length).or_default() -= amount,
                Some(interval) => {
                    *changes.entry(0).or_default() += amount;
                    *changes.entry(start + length - interval).or_default() -= amount;
                }
            }
        }
        let (mut now, mut most) = (constant, (constant, 0));
        for (step, change) in changes {
            now += change;
            if now > most.0 {
                most = (now, step);
            }
        }
        most
    }
}

/// Start steps are at most 2^44, and what is added to them at most 2^49 and 2^76.
fn cycles(step: i128) -> Cycles {
    Cycles(step.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
}
