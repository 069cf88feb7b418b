//! Phase 1: the throughput-optimal modulo schedule, without warps: the least interval, and at it the
//! least length.

use crate::bounds;
use crate::encoding::{Candidate, Encoding, Reply};
use crate::limits::Meter;
use crate::progress::Progress;
use crate::query::{self, Solution, Verdict};
use crate::repetition;
use crate::search::{self, SearchOptions};
use std::ops::RangeInclusive;
use twill_graph::{
    Cycles, Families, LowerBound, LowerBoundKind, ModuloSchedule, Outcome, Phase, Pipeline, Problem, RejectionReason,
    Report,
};
use web_time::Instant;

/// Bounds on the shortest schedule at one interval.
#[derive(Clone, Debug)]
pub(crate) struct Shortest {
    pub(crate) candidate: Candidate,
    /// No shorter one exists.
    pub(crate) proved: bool,
}

/// The least interval that dependences and units allow, and its shortest schedule.
pub(crate) enum Modulo {
    Found {
        interval: i64,
        shortest: Shortest,
    },
    /// Stopped; no interval below the bound exists. `best`: an interval above it that has a schedule.
    Stopped {
        bound: i64,
        best: Option<(i64, Candidate)>,
    },
    /// Nothing up to the limit.
    Exhausted,
}

/// Work for the length where it is only reported: a few tenths of a second.
pub(crate) const LENGTH_WORK: u64 = 300_000;

/// Operations from which on it is looked whether a graph repeats a body, and up to which: a look takes their number cubed, and
/// no clock.
const LARGE: RangeInclusive<usize> = 64..=512;

/// Work for the schedule of that body: about a second, and a quarter of what there is.
const BODY_WORK: u64 = 1_000_000;
const BODY_PART: u64 = 4;

/// Searches upwards from the bound: one by one, or with widening steps and then halving the gap
/// where feasibility is monotone, at once where a schedule is known (`start`). `length_work`: effort allowed for the length.
pub(crate) fn schedule(
    problem: &Problem,
    limit: i64,
    start: Option<&Pipeline>,
    length_work: u64,
    meter: &Meter,
) -> Modulo {
    let monotone = bounds::tables_start_at_issue(problem);
    let (mut excluded, mut step) = (bounds::lower_bound(problem, Families::THROUGHPUT).interval.0, 1);
    let mut interval = excluded;
    // Where feasibility is not monotone, nothing follows from one interval for those below.
    let known = start.filter(|start| if monotone { start.interval.0 <= limit } else { start.interval.0 == excluded });
    let mut best = known.and_then(|start| Some((start.interval.0, Box::new(query::pipelined(problem, start, meter)?))));
    let mut refused = 0;
    if let Some((found, _)) = &best {
        interval = excluded + (found - excluded) / 2;
    }
    while best.as_ref().map_or(interval <= limit, |(found, _)| excluded < *found) {
        if query::spend_on_refused(refused, meter) {
            return stopped(excluded, best);
        }
        match query::ask(problem, interval, Families::THROUGHPUT, meter) {
            Verdict::Found(found) => best = Some((interval, found)),
            Verdict::Excluded { .. } => (excluded, refused) = (interval + 1, refused + 1),
            Verdict::Stopped => return stopped(excluded, best),
        }
        interval = match &best {
            Some((found, _)) => excluded + (found - excluded) / 2,
            None if monotone && interval < limit => interval.saturating_add(step).min(limit),
            None => interval + 1,
        };
        step = if monotone { step.saturating_mul(2) } else { 1 };
    }
    let Some((interval, found)) = best else { return Modulo::Exhausted };
    let floor = bounds::least_length(problem, interval);
    let shortest = meter.within(length_work, || shorten(found.encoding, found.candidate, floor));
    Modulo::Found { interval, shortest }
}

fn stopped(bound: i64, best: Option<(i64, Box<Solution<'_>>)>) -> Modulo {
    Modulo::Stopped { bound, best: best.map(|(interval, found)| (interval, found.candidate)) }
}

/// A schedule to start from: what was given, or that of the body which a large graph repeats, whichever is better.
pub(crate) fn start(problem: &Problem, options: &SearchOptions, meter: &Meter) -> Option<Pipeline> {
    let given = options.pipeline.clone();
    let bound = bounds::lower_bound(problem, Families::THROUGHPUT).interval;
    let is_wanted = LARGE.contains(&problem.graph().operations().len()) && !meter.pause();
    if !is_wanted || given.as_ref().is_some_and(|given| given.interval <= bound) {
        return given;
    }
    given.into_iter().chain(repeated(problem, meter)).min_by_key(|start| (start.interval, start.length))
}

fn repeated(problem: &Problem, meter: &Meter) -> Option<Pipeline> {
    let repetition = repetition::find(problem.graph())?;
    let body = Problem::new(repetition.body().clone(), problem.resources().clone(), *problem.options()).ok()?;
    let limit = bounds::largest_interval(&body).max(1);
    let work = BODY_WORK.min(meter.left() / BODY_PART);
    let Modulo::Found { interval, shortest } = schedule(&body, limit, None, LENGTH_WORK, &meter.part(work)) else {
        return None;
    };
    let (interval, placements) = repetition.unrolled(&pipeline_of(interval, shortest.candidate).times_alone());
    // A schedule begins at 0.
    let first = placements.iter().map(|placed| placed.cycle).min()?;
    Pipeline::of(problem.graph(), interval, placements.iter().map(|placed| placed.cycle - first).collect())
}

fn pipeline_of(interval: i64, candidate: Candidate) -> Pipeline {
    let cycles = candidate.times.into_iter().map(Cycles).collect();
    Pipeline { interval: Cycles(interval), length: Cycles(candidate.length), cycles }
}

/// Finds the least initiation interval that dependences and units allow, with its proof, and the shortest pipeline at it:
/// software pipelining alone. Warps, registers, memories and the model variant play no part.
pub fn pipeline(problem: &Problem, options: &SearchOptions, progress: &mut dyn FnMut(Progress)) -> Report<Pipeline> {
    let meter = Meter::start(&options.budget);
    let largest = bounds::largest_interval(problem).max(1);
    let limit = search::limit(problem, options);
    let started = Instant::now();
    let work = options.objective_work.unwrap_or(u64::MAX);
    let found = schedule(problem, limit, start(problem, options, &meter).as_ref(), work, &meter);
    let mut lower_bound = bounds::lower_bound(problem, Families::THROUGHPUT);
    let mut raise = |interval: i64| {
        if interval > lower_bound.interval.0 {
            let kind = LowerBoundKind::Search { from: lower_bound.interval };
            lower_bound = LowerBound { interval: Cycles(interval), kind };
        }
    };
    let mut modulo = None;
    let outcome = match found {
        Modulo::Found { interval, shortest } => {
            raise(interval);
            let (initiation_interval, length) = (Cycles(interval), Cycles(shortest.candidate.length));
            progress(Progress::Modulo { interval: initiation_interval, length });
            let length_proved = shortest.proved;
            modulo = Some(ModuloSchedule { initiation_interval, length, length_proved });
            Outcome::Optimal { schedule: pipeline_of(interval, shortest.candidate) }
        }
        Modulo::Stopped { bound, best } => {
            raise(bound);
            match best {
                Some((interval, candidate)) => Outcome::Feasible { schedule: pipeline_of(interval, candidate) },
                None => Outcome::Unknown { stopped_by: meter.stopped().unwrap_or("limit of 2^32 stages").to_owned() },
            }
        }
        Modulo::Exhausted => {
            raise(limit + 1);
            Outcome::Infeasible { reason: RejectionReason::Exhausted { largest: Cycles(limit), all: limit >= largest } }
        }
    };
    let phases = vec![Phase { name: "modulo schedule".into(), seconds: started.elapsed().as_secs_f64() }];
    Report {
        outcome,
        lower_bound,
        modulo,
        rejections: Vec::new(),
        objectives: Vec::new(),
        wider_bound: None,
        simulated: None,
        phases,
    }
}

/// The least length at one interval.
pub(crate) fn shortest_at(problem: &Problem, interval: i64, meter: &Meter) -> Option<Shortest> {
    match query::ask(problem, interval, Families::THROUGHPUT, meter) {
        Verdict::Found(found) => {
            let floor = bounds::least_length(problem, interval);
            Some(shorten(found.encoding, found.candidate, floor))
        }
        Verdict::Excluded { .. } | Verdict::Stopped => None,
    }
}

fn shorten(mut encoding: Encoding, mut candidate: Candidate, floor: i64) -> Shortest {
    while candidate.length > floor {
        let shorter = encoding.length_at_most(candidate.length - 1);
        match encoding.solve(&[shorter]) {
            Reply::Found(better) => candidate = better,
            Reply::None => break,
            Reply::Stopped => return Shortest { candidate, proved: false },
        }
    }
    Shortest { candidate, proved: true }
}
