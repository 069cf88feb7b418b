//! The resource usage of a schedule, exactly, in integers.

use crate::Precedence;
use twill_graph::saturate;
use twill_graph::{Dataflow, DataflowObjective, DataflowProblem};

/// The quantities that objectives are made of. They do not depend on whether the schedule is legal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Latest finish.
    pub latency: u64,
    /// Greatest usage in one step (one slot of the interval), by resource.
    pub peaks: Vec<u64>,
    /// Greatest storage in one step (one slot of the interval).
    pub storage: u128,
    /// `Σ communication · (s_to + δ·II − s_from)` over the dependences that count.
    pub communication: i128,
}

/// Steps `start .. start + steps`, all of which take `amount`.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u64,
    steps: u64,
    amount: u64,
}

/// The greatest sum of amounts in one step; where there is an interval, steps are added up modulo it.
fn peak(spans: impl Iterator<Item = Span>, interval: Option<u64>) -> u128 {
    let mut always = 0_u128;
    let mut events: Vec<(u64, i128)> = Vec::new();
    for span in spans.filter(|span| span.steps > 0) {
        let amount = i128::from(span.amount);
        let (mut start, mut steps) = (span.start, span.steps);
        if let Some(ii) = interval.filter(|&ii| ii > 0) {
            always += u128::from(steps / ii) * u128::from(span.amount);
            (start, steps) = (start % ii, steps % ii);
            if steps > ii - start {
                // The part beyond the last slot goes on in the first.
                events.extend([(0, amount), (steps - (ii - start), -amount)]);
                steps = ii - start;
            }
        }
        events.extend([(start, amount), (start.saturating_add(steps), -amount)]);
    }
    let (mut now, mut most) = (0_i128, 0_i128);
    let mut add = |change: i128| {
        now += change;
        most = most.max(now);
    };
    let last = events.iter().map(|event| event.0).max().unwrap_or(0);
    if last <= 4 * events.len() as u64 {
        // Steps are few: what changes in each is added up without sorting.
        let mut changes = vec![0_i128; last as usize + 1];
        events.iter().for_each(|&(step, change)| changes[step as usize] += change);
        changes.into_iter().for_each(&mut add);
    } else {
        // Ends before starts: spans that touch do not add up.
        events.sort_unstable();
        events.into_iter().for_each(|(_, change)| add(change));
    }
    always + most.unsigned_abs()
}

/// By operation, the step at which its value has been read for the last time; its own start when nobody reads it.
pub(crate) fn last_reads(precedence: &Precedence, graph: &Dataflow, interval: Option<u64>, steps: &[u64]) -> Vec<u64> {
    let read = |v: usize| {
        let reads = precedence.successors(v).iter().map(|s| {
            let distance = u64::from(graph.dependences()[s.dependence()].distance);
            steps[s.op()].saturating_add(distance.saturating_mul(interval.unwrap_or(0)))
        });
        reads.max().map_or(steps[v], |last| last.max(steps[v]))
    };
    (0..steps.len()).map(read).collect()
}

impl Measure {
    /// Measures `steps`, which has one entry for each operation.
    pub fn new(graph: &Dataflow, interval: Option<u64>, steps: &[u64]) -> Measure {
        Self::with(graph, &Precedence::new(graph, interval), interval, steps)
    }

    /// The same, where the precedence of the graph at the interval is at hand.
    pub fn with(graph: &Dataflow, precedence: &Precedence, interval: Option<u64>, steps: &[u64]) -> Measure {
        let operations = || graph.operations().iter().zip(steps);
        let peaks = (0..graph.resources().len()).map(|resource| {
            let uses = operations().flat_map(|(op, &start)| op.uses.iter().map(move |used| (start, used)));
            let spans = uses.filter(|(_, used)| used.resource.index() == resource).map(|(start, used)| Span {
                start: start.saturating_add(u64::from(used.offset)),
                steps: u64::from(used.steps),
                amount: used.amount,
            });
            saturate::<u64>(peak(spans, interval))
        });
        let last = last_reads(precedence, graph, interval, steps);
        let values =
            operations().zip(last).map(|((op, &start), last)| Span { start, steps: last - start, amount: op.storage });
        let counted = graph.dependences().iter().filter(|d| d.distance == 0 || interval.is_some());
        let communication = counted.map(|d| {
            let apart = i128::from(d.distance) * i128::from(interval.unwrap_or(0));
            let span = i128::from(steps[d.to.index()]) + apart - i128::from(steps[d.from.index()]);
            i128::from(d.communication).saturating_mul(span)
        });
        Measure {
            latency: operations().map(|(op, &s)| s.saturating_add(u64::from(op.latency))).max().unwrap_or(0),
            peaks: peaks.collect(),
            storage: peak(values, interval),
            communication: communication.fold(0, i128::saturating_add),
        }
    }

    /// The value of an objective; less is better.
    pub fn objective(&self, objective: DataflowObjective) -> i128 {
        match objective {
            DataflowObjective::Resources { peak, communication } => {
                let peaks: i128 = self.peaks.iter().copied().map(i128::from).sum();
                let paid = i128::from(communication).saturating_mul(self.communication);
                i128::from(peak).saturating_mul(peaks).saturating_add(paid)
            }
            DataflowObjective::Storage => saturate::<i128>(self.storage),
            DataflowObjective::Latency => i128::from(self.latency),
        }
    }
}

/// Measures `steps` if they keep the dependences, the latency bound and the limits of `problem`.
pub fn legal_measure(problem: &DataflowProblem, precedence: &Precedence, steps: &[u64]) -> Option<Measure> {
    if steps.len() != problem.graph.operations().len() {
        return None;
    }
    let measure = Measure::with(&problem.graph, precedence, problem.interval, steps);
    keeps(problem, precedence, steps, &measure).then_some(measure)
}

/// Returns whether `steps` keep the dependences, the latency bound and the limits of `problem`. For answers that others
/// rely on, the checker is independent of this crate.
pub fn is_legal(problem: &DataflowProblem, precedence: &Precedence, steps: &[u64]) -> bool {
    legal_measure(problem, precedence, steps).is_some()
}

/// The same of a schedule that has been measured.
pub(crate) fn keeps(problem: &DataflowProblem, precedence: &Precedence, steps: &[u64], measure: &Measure) -> bool {
    let waits = |v: usize| {
        let start = |op: usize| i128::from(steps[op]);
        precedence.predecessors(v).iter().all(|p| start(v) >= start(p.op()) + i128::from(p.lag))
    };
    problem.latency_bound.is_none_or(|bound| measure.latency <= bound)
        && (0..steps.len()).all(waits)
        && problem
            .graph
            .resources()
            .iter()
            .zip(&measure.peaks)
            .all(|(r, &peak)| r.limit.is_none_or(|limit| peak <= limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{after, chain, operation, resources, uses};
    use twill_graph::{DataflowDependence, DataflowOperation};

    #[test]
    fn a_chain_uses_one_and_stores_until_the_reader_starts() {
        let measure = Measure::new(&chain(3), None, &[0, 1, 4]);
        let expected = Measure { latency: 5, peaks: vec![1], storage: 1, communication: 4 };
        assert_eq!(measure, expected);
        assert_eq!(measure.objective(DataflowObjective::Resources { peak: 10, communication: 2 }), 18);
    }

    #[test]
    fn usage_and_storage_wrap_around_the_interval() {
        // v0 holds its unit for 5 steps of an interval of 3: two laps on two slots. Its value lives for 4 + 3 steps.
        let operations = vec![
            DataflowOperation { uses: vec![uses(0, 5)], storage: 10, ..operation(0) },
            DataflowOperation { uses: vec![uses(0, 1)], ..operation(1) },
        ];
        let across = DataflowDependence { distance: 1, ..after(0, 1, 1) };
        let graph = Dataflow::new("g", operations, vec![across], resources(1)).unwrap();
        let measure = Measure::new(&graph, Some(3), &[2, 6]);
        // Slots of v0: 2, 0, 1, 2, 0; v1 in slot 0. The value: 2..9, seven steps.
        assert_eq!(measure, Measure { latency: 7, peaks: vec![3], storage: 30, communication: 7 });
    }

    #[test]
    fn legality_knows_dependences_bounds_and_limits() {
        let mut tight = resources(1);
        tight[0].limit = Some(1);
        let operations: Vec<_> = (0..3).map(|v| DataflowOperation { uses: vec![uses(0, 2)], ..operation(v) }).collect();
        let graph = Dataflow::new("g", operations, vec![after(0, 1, 1)], tight).unwrap();
        let problem =
            DataflowProblem { graph, latency_bound: Some(5), interval: None, objective: DataflowObjective::Latency };
        let legal = |steps: &[u64]| is_legal(&problem, &Precedence::new(&problem.graph, None), steps);
        assert!(legal(&[0, 2, 4]));
        assert!(!legal(&[0, 1, 3]), "two at once");
        assert!(!legal(&[2, 0, 4]), "the reader first");
        assert!(!legal(&[0, 2, 5]), "too late");
    }
}
