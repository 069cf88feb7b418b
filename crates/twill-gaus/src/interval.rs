//! C*: the smallest interval, then at it the least latency, then the least storage.

use crate::control::{Clock, Control};
use crate::engine::search;
use crate::latency::Shrink;
use crate::model::GausError;
use crate::options::{Options, StartFrom};
use crate::{Found, Measure, Precedence, Progress};
use twill_graph::{Dataflow, DataflowObjective, DataflowProblem, StartSteps};

/// What was found of the smallest interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cyclic {
    /// No schedule has a smaller interval: the greater of what resources and what recurrences need (`MII`).
    pub least_interval: u64,
    /// The schedule, with its interval; `None` where none was found in time.
    pub schedule: Option<StartSteps>,
    /// What it uses.
    pub measure: Option<Measure>,
    /// No schedule at that interval has a smaller latency: the longest path.
    pub least_latency: Option<u64>,
    /// Gradients taken.
    pub gradients: u64,
}

/// What limits of resources need: `max_r ⌈Σ steps · amount / limit⌉` (`ResMII`); at least 1.
pub fn resource_interval(graph: &Dataflow) -> u64 {
    let mut held = vec![0_u128; graph.resources().len()];
    for used in graph.operations().iter().flat_map(|op| &op.uses) {
        held[used.resource.index()] += u128::from(used.steps) * u128::from(used.amount);
    }
    let needed = held.iter().zip(graph.resources()).filter_map(|(&held, resource)| {
        let limit = resource.limit.filter(|_| held > 0)?;
        u64::try_from(held.div_ceil(u128::from(limit.max(1)))).ok()
    });
    needed.max().unwrap_or(1).max(1)
}

/// What cycles of dependences need: the smallest interval, from `from` on, at which none waits for itself (`RecMII`).
/// `None` where a cycle has no interval, which [`Dataflow`] rules out.
pub fn recurrence_interval(graph: &Dataflow, from: u64) -> Option<u64> {
    let keeps = |interval: u64| Precedence::new(graph, Some(interval)).raise(&mut vec![0; graph.operations().len()]);
    let (mut low, mut high) = (from, from);
    while !keeps(high) {
        low = high + 1;
        high = high.checked_mul(2).filter(|&high| high < 1 << 50)?;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if keeps(middle) { high = middle } else { low = middle + 1 }
    }
    Some(low)
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
    let resource = resource_interval(graph);
    let least_interval = recurrence_interval(graph, resource).unwrap_or(resource);
    let mut answer = Cyclic { least_interval, schedule: None, measure: None, least_latency: None, gradients: 0 };
    let mut interval = least_interval;
    loop {
        let problem = DataflowProblem {
            graph: graph.clone(),
            latency_bound,
            interval: Some(interval),
            objective: DataflowObjective::Latency,
        };
        let precedence = Precedence::new(graph, problem.interval);
        let mut shrink = Shrink {
            problem: &problem,
            precedence: &precedence,
            options,
            clock: clock.share(0.5),
            seed: options.seed,
            gradients: 0,
        };
        let first = shrink.first();
        answer.gradients += shrink.gradients;
        let first = match first {
            // A longer interval may loosen recurrences enough for the bound.
            Err(GausError::Mobility(_)) if interval < least_interval.saturating_mul(2) => None,
            other => other?,
        };
        if let Some(first) = first {
            shrink.gradients = 0;
            let mut gradients = answer.gradients;
            let short = shrink.shrink(first, &mut |short| {
                let objective = i128::from(short.latency);
                report(Progress { elapsed: clock.elapsed(), round: 0, gradients, objective });
            })?;
            gradients += shrink.gradients;
            let least = crate::Mobility::within(graph, &precedence, None, problem.interval).map_err(GausError::from)?;
            answer.least_latency = Some(least.latency);
            let mut steps: Vec<u64> = short.steps.into_iter().map(|s| s as u64).collect();
            if options.rounds > 0 && graph.operations().iter().any(|op| op.storage > 0) {
                let stored = DataflowProblem {
                    objective: DataflowObjective::Storage,
                    latency_bound: Some(short.latency),
                    ..problem.clone()
                };
                let options = Options { start: StartFrom::Given(steps.clone()), ..options.clone() };
                let found: Found = search(&stored, &options, &clock, report)?;
                gradients += found.gradients;
                steps = found.schedule.map_or(steps, |schedule| schedule.steps);
            }
            answer.gradients = gradients;
            answer.measure = Some(Measure::with(graph, &precedence, problem.interval, &steps));
            answer.schedule = Some(StartSteps { interval: problem.interval, steps });
            return Ok(answer);
        }
        if clock.is_over() {
            return Ok(answer);
        }
        interval += 1;
    }
}
