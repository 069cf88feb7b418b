//! C*: the smallest interval, then at it the least latency, then the least storage.

use crate::control::{Clock, Control};
use crate::engine::{Part, search};
use crate::feasible::Effort;
use crate::latency::{Short, Shrink};
use crate::model::GausError;
use crate::options::{Options, StartFrom};
use crate::{Measure, Mobility, Precedence, Progress};
use twill_graph::{Dataflow, DataflowObjective, DataflowProblem, StartSteps};

/// The result for the smallest interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cyclic {
    /// No schedule has a smaller interval: [`least_interval`](crate::least_interval).
    pub least_interval: u64,
    /// The schedule, with its interval; `None` where none was found in time.
    pub schedule: Option<StartSteps>,
    /// Its use of resources.
    pub measure: Option<Measure>,
    /// No schedule at that interval has a smaller latency: the longest path.
    pub least_latency: Option<u64>,
    /// Gradients taken.
    pub gradients: u64,
}

/// Searches for the smallest interval of a loop, then the least latency, then, with rounds left in `options`, the least
/// storage. `latency_bound` bounds the latency of one iteration, if given.
///
/// # Errors
/// When the latency bound is below the longest path at every interval, or schedules are too long for the engine.
pub fn smallest_interval(
    graph: &Dataflow,
    latency_bound: Option<u64>,
    options: &Options,
    control: Control<'_>,
    report: &mut dyn FnMut(Progress),
) -> Result<Cyclic, GausError> {
    let clock = Clock::start(control);
    let least_interval = crate::bounds::bounded(graph, &clock.share(0.2)).least();
    let mut answer = Cyclic { least_interval, schedule: None, measure: None, least_latency: None, gradients: 0 };
    // At this interval iterations have nothing to do with each other: what is impossible there is so at any.
    let apart = apart(graph).max(least_interval);
    Mobility::within(graph, &Precedence::new(graph, Some(apart)), latency_bound, Some(apart))?;
    let mut attempts = 0;
    let mut attempt = |interval: u64, effort: Effort, share: f64| -> Result<Option<Short>, GausError> {
        let problem = at_interval(graph, latency_bound, interval);
        let precedence = Precedence::new(graph, problem.interval);
        let clock = clock.share(share);
        attempts += 1;
        let seed = options.seed.wrapping_add(attempts * 1000);
        let mut shrink = Shrink::new(&problem, &precedence, options, clock, seed);
        let found = match shrink.first(effort) {
            // A longer interval may loosen recurrences enough for the bound; one that is too long for the engine is no way.
            Err(GausError::Mobility(_)) => Ok(None),
            Err(GausError::TooLong { .. }) if interval > least_interval => Ok(None),
            found => found,
        };
        answer.gradients += shrink.gradients;
        found
    };
    // First any interval, in growing strides, with little effort; then smaller ones with more.
    let (mut low, mut high, mut stride) = (least_interval, least_interval, 1);
    let mut best = loop {
        if let Some(found) = attempt(high, Effort::Orders, 0.3)? {
            break found;
        }
        if clock.is_over() || high >= apart {
            return Ok(answer);
        }
        high = high.saturating_add(stride).min(apart);
        stride *= 2;
    };
    while low < high && !clock.is_over() {
        let middle = low + (high - low) / 2;
        match attempt(middle, Effort::All, 0.2)? {
            Some(found) => (high, best) = (middle, found),
            None => low = middle + 1,
        }
    }
    // A search that failed far below, or once, need not fail just below.
    let mut failed = 0;
    while high > least_interval && failed < options.patience && !clock.is_over() {
        match attempt(high - 1, Effort::All, 0.2)? {
            Some(found) => (high, best, failed) = (high - 1, found, 0),
            None => failed += 1,
        }
    }
    let problem = at_interval(graph, latency_bound, high);
    let precedence = Precedence::new(graph, problem.interval);
    let mut shrink = Shrink::new(&problem, &precedence, options, clock.share(0.5), options.seed);
    let mut gradients = answer.gradients;
    let short = shrink.shrink(best, Effort::All, &mut |short| {
        let objective = i128::from(short.latency);
        report(Progress { elapsed: clock.elapsed(), round: 0, gradients, objective, part: Part::Ejection });
    })?;
    gradients += shrink.gradients;
    answer.least_latency = Some(Mobility::within(graph, &precedence, None, problem.interval)?.latency);
    let mut steps: Vec<u64> = short.steps.into_iter().map(|s| s as u64).collect();
    if options.rounds > 0 && graph.operations().iter().any(|op| op.storage > 0) {
        let stored = DataflowProblem {
            objective: DataflowObjective::Storage,
            latency_bound: Some(short.latency),
            ..problem.clone()
        };
        let options = Options { start: StartFrom::Given(steps.clone()), ..options.clone() };
        let found = search(&stored, &options, &clock, report)?;
        gradients += found.gradients;
        steps = found.schedule.map_or(steps, |schedule| schedule.steps);
    }
    answer.gradients = gradients;
    answer.measure = Some(Measure::with(graph, &precedence, problem.interval, &steps));
    answer.schedule = Some(StartSteps { interval: problem.interval, steps });
    Ok(answer)
}

/// A schedule at the bound on the interval, by orders of operations alone: milliseconds for hundreds of operations; `None` where
/// none leads to one.
///
/// # Errors
/// [`GausError`] when the graph is one that GauS does not take.
pub fn at_least_interval(graph: &Dataflow, control: Control<'_>) -> Result<Option<StartSteps>, GausError> {
    let clock = Clock::start(control);
    let problem = at_interval(graph, None, crate::bounds::bounded(graph, &clock.share(0.2)).least());
    let precedence = Precedence::new(graph, problem.interval);
    let options = Options { descent: None, patience: 0, ..Options::default() };
    let mut shrink = Shrink::new(&problem, &precedence, &options, clock, options.seed);
    let Some(first) = shrink.first(Effort::Orders)? else { return Ok(None) };
    // What is short is found by the first two orders, or takes long.
    let options = Options { tries: 2, ..options };
    let mut shrink = Shrink::new(&problem, &precedence, &options, clock, options.seed);
    let short = shrink.shrink(first, Effort::Orders, &mut |_| ())?;
    let steps = short.steps.into_iter().map(|step| step as u64).collect();
    Ok(Some(StartSteps { interval: problem.interval, steps }))
}

/// All delays, latencies and uses one after the other.
fn apart(graph: &Dataflow) -> u64 {
    let delays = graph.dependences().iter().map(|d| d.delay.unsigned_abs());
    let held = graph.operations().iter().map(|op| {
        let uses = op.uses.iter().map(|used| u64::from(used.offset) + u64::from(used.steps));
        u64::from(op.latency) + uses.max().unwrap_or(0)
    });
    delays.chain(held).fold(1, u64::saturating_add)
}

fn at_interval(graph: &Dataflow, latency_bound: Option<u64>, interval: u64) -> DataflowProblem {
    let graph = graph.clone();
    DataflowProblem { graph, latency_bound, interval: Some(interval), objective: DataflowObjective::Latency }
}
