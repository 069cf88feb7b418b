//! Which schedules are tried: with MMA batches, with padded latencies, with less memory, and others than the best.

use super::candidate::{Attempt, Candidate};
use super::lower::{by_sub_tile, lower, naive, with_assignment};
use super::schedules::{KernelSchedules, find, in_batches, with_padded_latencies};
use super::thresholds::THRESHOLDS;
use super::{Assembler, CompileOptions, Which, rules};
use crate::{Error, LoopProblem, Loops, Request, Session, Source, TopOptions};
use crate::{problems_of_source, schedule_file, top};
use twill_exact::{Budget, Naive, SearchOptions};
use twill_graph::{Bytes, Problem, Status, WarpAssignment};
use web_time::Instant;

/// An attempt with another schedule than the best.
pub(super) struct Other {
    pub(super) attempt: Result<Attempt, Error>,
    /// In what the schedule differs from the best, in words.
    pub(super) differences: Vec<String>,
}

/// Which schedule an attempt takes.
#[derive(PartialEq, Eq)]
enum Plan {
    /// What the options say; warp assignments that may be tried besides.
    Requested(Vec<WarpAssignment>),
    /// The same with this many bytes of shared memory.
    Room(u64),
    /// The one that takes least memory.
    Least,
}

/// Schedules a kernel within the request's limits, and generates it; where the best schedule takes too much memory, or none
/// is found in time, with less of it, and at last with the schedule that takes least. With an assembler, half of the time is left
/// for what machine code asks for.
pub(super) fn first(
    request: &Request,
    options: &CompileOptions,
    source: &Source,
    assembler: Option<&Assembler>,
    session: &mut Session<'_>,
) -> Result<Attempt, Error> {
    let requested = match assembler {
        Some(_) => make(request, options, source, &mut session.with_half()),
        None => make(request, options, source, session),
    };
    if options.schedule != Which::Optimal || session.is_stopped() {
        return requested;
    }
    let mut room = source.machine.resources().shared_memory.0;
    let mut excess = match &requested {
        Ok(Attempt::Nothing(Status::Unknown)) => 0,
        Err(error) => match error.excess() {
            Some(excess) => excess,
            None => return requested,
        },
        Ok(_) => return requested,
    };
    let request = &with_assignment(request, options, source);
    // It takes no search, and is there a few seconds after the time is over, too.
    let work = if options.in_order { Some(crate::answer::GRACE_WORK) } else { session.search.budget.work };
    let until = session.search.budget.until.max(session.search.budget.clock.now().checked_add(THRESHOLDS.least_time));
    let until = until.filter(|_| session.search.budget.until.is_some());
    let budget = Budget { work, until, time: None, ..session.search.budget.clone() };
    let grace = SearchOptions { budget, ..session.search.clone() };
    let least = match within(&by_sub_tile(request), options, source, &mut session.with(grace), &Plan::Least) {
        // What stands in the way of any schedule is told rather than the time.
        Err(error) if requested.is_ok() && error.excess().is_none() => return Err(error),
        least => least.ok().filter(|least| matches!(least, Attempt::Made(_))),
    };
    for _ in 0..THRESHOLDS.smaller {
        if excess == 0 || room <= excess || session.is_over() {
            break;
        }
        room -= excess;
        session.observer.note(&format!(
            "the schedule takes {} bytes of shared memory too many; the next may take {}",
            twill_graph::grouped(excess),
            twill_graph::grouped(room)
        ));
        let work = session.search.budget.work.map_or(THRESHOLDS.later_work, |work| work.min(THRESHOLDS.later_work));
        let budget = Budget { work: Some(work), ..session.search.budget.clone() };
        let later = SearchOptions { budget, ..session.search.clone() };
        match within(request, options, source, &mut session.with(later), &Plan::Room(room)) {
            Ok(Attempt::Made(candidate)) => return Ok(Attempt::Made(candidate)),
            Ok(Attempt::Nothing(_)) => break,
            Err(error) => excess = error.excess().unwrap_or(0),
        }
    }
    let Some(least) = least else { return requested };
    let why = requested.as_ref().err().map_or("no schedule was found in time".to_owned(), ToString::to_string);
    session.observer.note(&format!("{why}\nthe schedule that takes least does: one iteration after another"));
    Ok(least)
}

/// Schedules a kernel within the request's limits, and generates it.
fn make(
    request: &Request,
    options: &CompileOptions,
    source: &Source,
    session: &mut Session<'_>,
) -> Result<Attempt, Error> {
    let requested = request.limits.warp_assignment;
    let assignments = requested.map_or_else(|| rules::assignments(source).to_vec(), |assignment| vec![assignment]);
    let request = with_assignment(request, options, source);
    within(&request, options, source, session, &Plan::Requested(assignments))
}

/// The same with the schedule that was found first, whatever stands between its MMAs.
pub(super) fn plain(
    request: &Request,
    options: &CompileOptions,
    source: &Source,
    session: &mut Session<'_>,
) -> Result<Attempt, Error> {
    let request = with_assignment(request, options, source);
    within(&request, options, source, session, &Plan::Requested(Vec::new()))
}

/// The same of schedules that differ from the best.
pub(super) fn others(
    request: &Request,
    options: &CompileOptions,
    source: &Source,
    requested: TopOptions,
    session: &mut Session<'_>,
) -> Result<Vec<Other>, Error> {
    let request = with_assignment(request, options, source);
    let problems = problems_of_source(&request, source)?;
    let input = &request.input.name;
    let [one] = problems.loops.as_slice() else {
        return Err(Error::TopOfLoops { input: input.clone(), count: problems.loops.len() });
    };
    let top = top(input, one, requested, session, 0.0)?;
    let each = top.each.into_iter().skip(1).map(|mut other| {
        other.report.phases.clear();
        let json = crate::json([schedule_file(one, &other.report)]);
        let found = KernelSchedules {
            status: other.report.outcome.status(),
            loops: vec![other.report],
            json,
            naive: None,
            preferred: None,
        };
        let attempt = lower(&request, options, source, &problems, found);
        Other { attempt, differences: other.differences }
    });
    Ok(each.collect())
}

fn within(
    request: &Request,
    requested: &CompileOptions,
    source: &Source,
    session: &mut Session<'_>,
    plan: &Plan,
) -> Result<Attempt, Error> {
    let (started, begun) = (Instant::now(), session.search.budget.clock.now());
    let mut first = problems_of_source(request, source)?;
    if let Plan::Room(bytes) = plan {
        less_room(&request.input.name, &mut first, *bytes)?;
    }
    let naive = naive(requested).or((*plan == Plan::Least).then_some(Naive::NoPipelining));
    let found = find(request, naive, &first, session, started)?;
    if let (None, Plan::Requested(assignments), true) =
        (naive, plan, requested.mma_batches && !rules::in_tensor_memory(source))
        && !assignments.is_empty()
        && let Some(best) = fastest_in_batches(request, requested, source, &first, &found, session, begun)?
    {
        return Ok(Attempt::Made(Box::new(best)));
    }
    if let (None, Plan::Requested(assignments)) = (naive, plan) {
        let mut together = with_padded_latencies(request, source, assignments, &first, &found, session, begun)?;
        if first.loops.len() > 1 && !together.is_empty() {
            together.push((first.clone(), found.clone()));
            let mut all = by_simulation(request, requested, source, together, session).into_iter();
            if let Some(best) = all.next() {
                return Ok(Attempt::Made(Box::new(Candidate { others: all.collect(), ..best })));
            }
        } else if let Some((problems, together)) = together.pop() {
            match lower(request, requested, source, &problems, together) {
                // What is not written for its assignment of groups may be for the schedule that was found first.
                Err(error @ Error::Emit { .. }) if error.excess().is_none() => {
                    let made = lower(request, requested, source, &first, found)?;
                    session.observer.note(&format!("{error}\nthe schedule that was found first is generated instead"));
                    return Ok(made);
                }
                made => return made,
            }
        }
    }
    lower(request, requested, source, &first, found)
}

/// The one that takes the fewest cycles by simulation, of schedules whose sub-tiles start their MMAs in batches.
fn fastest_in_batches(
    request: &Request,
    requested: &CompileOptions,
    source: &Source,
    problems: &Loops<LoopProblem>,
    found: &KernelSchedules,
    session: &mut Session<'_>,
    begun: Instant,
) -> Result<Option<Candidate>, Error> {
    let mut best: Option<(u32, Candidate)> = None;
    for (problems, other) in in_batches(request, problems, found, session, begun)? {
        let candidate = match lower(request, requested, source, &problems, other) {
            Ok(Attempt::Made(candidate)) => candidate,
            Ok(Attempt::Nothing(_)) => continue,
            // What cannot be written in batches is written as it was found first.
            Err(error) => {
                session
                    .observer
                    .note(&format!("{error}\nanother schedule is generated, whose MMAs do not start in this order"));
                continue;
            }
        };
        let simulated =
            candidate.lowered.simulated.as_ref().and_then(|simulated| simulated.iterations.first().copied());
        let cycles = simulated.unwrap_or(u32::MAX);
        if best.as_ref().is_none_or(|(least, _)| cycles < *least) {
            best = Some((cycles, *candidate));
        }
    }
    Ok(best.map(|(_, candidate)| candidate))
}

/// Those of which code can be written, each once: first what computes least between MMAs, unless another is simulated
/// clearly faster, then the others, the fewest cycles by simulation first.
fn by_simulation(
    request: &Request,
    requested: &CompileOptions,
    source: &Source,
    found: Vec<(Loops<LoopProblem>, KernelSchedules)>,
    session: &mut Session<'_>,
) -> Vec<Candidate> {
    let mut all: Vec<(u64, Option<i64>, Candidate)> = Vec::new();
    for (problems, found) in found {
        let between = found.between(&problems);
        match lower(request, requested, source, &problems, found) {
            Ok(Attempt::Made(candidate))
                if all.iter().all(|(.., other)| other.lowered.source != candidate.lowered.source) =>
            {
                all.push((candidate.simulated_cycles(), between, *candidate));
            }
            Ok(_) => {}
            Err(error) => session.observer.note(&format!("{error}\nanother schedule of the same intervals is tried")),
        }
    }
    all.sort_by_key(|(cycles, between, _)| (*cycles, *between));
    let together = (0..all.len()).min_by_key(|k| all[*k].1);
    let together = together.filter(|k| all[*k].0 as f64 <= all[0].0 as f64 * (1.0 + THRESHOLDS.clearly));
    let mut all: Vec<Candidate> = all.into_iter().map(|(.., one)| Candidate { by_simulation: true, ..one }).collect();
    if let Some(together) = together {
        let first = all.remove(together);
        all.insert(0, Candidate { by_simulation: false, ..first });
    }
    all
}

/// Takes shared memory from all loops.
fn less_room(input: &str, problems: &mut Loops<LoopProblem>, bytes: u64) -> Result<(), Error> {
    for one in &mut problems.loops {
        let mut resources = one.problem.resources().clone();
        resources.shared_memory = Bytes(bytes);
        one.problem = Problem::new(one.problem.graph().clone(), resources, *one.problem.options())
            .map_err(|error| Error::Problem { input: input.to_owned(), error: Box::new(error) })?;
        one.rolled = None;
    }
    Ok(())
}
