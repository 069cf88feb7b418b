//! One schedule to a generated candidate.

use super::candidate::{Attempt, Candidate, CandidateSpec, LoweredKernel, Scheduled};
use super::rings;
use super::rules::{self, Registers};
use super::schedules::{KernelSchedules, Preferred};
use super::score::whole;
use super::written::names;
use super::{CompileOptions, Which};
use crate::{Error, LoopProblem, Loops, Request, Session, Source};
use std::sync::Arc;
use twill_backend::Header;
use twill_check::Verified;
use twill_codegen::ScheduledLoop;
use twill_exact::Naive;
use twill_graph::{Cycles, Report, Schedule, SimulatedCycles, Status, WarpAssignment};
use twill_simulate::{KernelTime, Timing};
use web_time::Instant;

/// The warp program after each pass whose name is `pass`, or after all (`all`), with the name in a comment above it: of the schedule
/// that is found first, by the generator's first options.
///
/// # Errors
/// Where the request is no kernel or has no schedule, or a pass refuses it.
pub fn print_after(
    request: &Request,
    requested: &CompileOptions,
    pass: &str,
    session: &mut Session<'_>,
) -> Result<String, Error> {
    let source = crate::input::generated_source(request)?;
    let request = with_assignment(request, requested, &source);
    let problems = crate::problems_of_source(&request, &source)?;
    let found = super::schedules::find(&request, naive(requested), &problems, session, Instant::now())?;
    let schedules: Option<Vec<&Verified<Schedule>>> = found.loops.iter().map(|r| r.outcome.schedule()).collect();
    let Some(schedules) = schedules else { return Ok(String::new()) };
    let loops = loops(&source, &problems.loops, &schedules);
    let mut error = None;
    for options in rules::options(requested, &source, &schedules, false) {
        let mut text = String::new();
        let mut after = |of: &twill_codegen::pipeline::Pass, program: &twill_codegen::WarpProgram| {
            if pass == "all" || pass == of.name {
                text.push_str(&format!("// after {}: {}\n{program}\n", of.name, of.summary));
            }
        };
        match twill_codegen::pipeline::lower_observed(&source.kernel, &loops, &options, &mut after) {
            Ok(_) => return Ok(text),
            Err(found) => error = Some(found),
        }
    }
    match error {
        Some(error) => Err(Error::Emit { input: request.input.name.clone(), error: Box::new(error) }),
        None => Ok(String::new()),
    }
}

/// Generates the kernel of a schedule, and proves its barriers.
pub(super) fn lower(
    request: &Request,
    requested: &CompileOptions,
    source: &Source,
    problems: &Loops<LoopProblem>,
    found: KernelSchedules,
) -> Result<Attempt, Error> {
    let schedules: Option<Vec<&Verified<Schedule>>> = found.loops.iter().map(|r| r.outcome.schedule()).collect();
    let Some(schedules) = schedules else { return Ok(Attempt::Nothing(found.status)) };
    let loops = loops(source, &problems.loops, &schedules);
    let granted = Registers::of(&schedules).granted;
    let mma_batches = found.preferred == Some(Preferred::MmaBatches);
    let options = rules::options(requested, source, &schedules, mma_batches);
    let emitted = |error| Error::Emit { input: request.input.name.clone(), error: Box::new(error) };
    let may_deepen = requested.ring_depth.is_none() && requested.schedule == Which::Optimal;
    let (program, simulated) = rings::emit(source, &loops, &options, may_deepen).map_err(emitted)?;
    let spec = CandidateSpec {
        machine: source.machine.clone(),
        language: requested.language(),
        header: header(request, requested, source, &found),
        operations: problems.loops.iter().map(names).collect(),
        schedule: found.json.clone(),
        granted,
        preferred: found.preferred.is_some(),
    };
    let lowered = LoweredKernel::new(&spec, program, simulated).map_err(emitted)?;
    let scheduled = Some(Arc::new(Scheduled { options: requested.clone(), problems: problems.clone(), found }));
    Ok(Attempt::Made(Box::new(Candidate { scheduled, ..Candidate::new(spec, lowered) })))
}

/// The request with its assignment of operations to groups.
pub(crate) fn with_assignment(request: &Request, options: &CompileOptions, source: &Source) -> Request {
    let mut request = request.clone();
    let requested = request.limits.warp_assignment.filter(|_| naive(options).is_none());
    request.limits.warp_assignment = Some(requested.unwrap_or(rules::assignments(source)[0]));
    request
}

/// The request for schedules that choose nothing: each sub-tile has a group.
pub(crate) fn by_sub_tile(request: &Request) -> Request {
    let mut request = request.clone();
    request.limits.warp_assignment = Some(WarpAssignment::BySubTile);
    request
}

/// Loops with their schedules, as the generator wants them.
pub(crate) fn loops<'a>(
    source: &'a Source,
    problems: &'a [LoopProblem],
    schedules: &[&'a Verified<Schedule>],
) -> Vec<ScheduledLoop<'a>> {
    let each = source.lowered.iter().zip(problems).zip(schedules);
    each.map(|((lowered, p), schedule)| ScheduledLoop { lowered, problem: &p.problem, schedule }).collect()
}

/// The naive schedule that is asked for, if one is.
pub(super) fn naive(options: &CompileOptions) -> Option<Naive> {
    match options.schedule {
        Which::Optimal | Which::InOrder | Which::Multistage => None,
        Which::SwpOnly => Some(Naive::PipeliningOnly),
        Which::NoSwp => Some(Naive::NoPipelining),
    }
}

fn header(request: &Request, requested: &CompileOptions, source: &Source, found: &KernelSchedules) -> Header {
    let status = |report: &Report<Verified<Schedule>>| {
        match report.outcome.status() {
            Status::Feasible if found.naive == Some(Naive::PipeliningOnly) => {
                "software pipelining without choice of warps, to compare with"
            }
            Status::Feasible if requested.schedule == Which::NoSwp => "no software pipelining, to compare with",
            Status::Feasible if found.naive.is_some() => "no software pipelining: nothing else was found that fits",
            Status::Optimal => return format!("optimal in the model of {}: proved", source.machine.name()),
            Status::Feasible => "feasible: optimality not proved",
            Status::Infeasible | Status::Unknown => "not settled",
        }
        .to_owned()
    };
    Header {
        input: request.input.name.clone(),
        machine: source.machine.name().to_owned(),
        architecture: source.machine.architecture().to_owned(),
        command: requested.command.clone(),
        statuses: found.loops.iter().map(status).collect(),
    }
}

/// By loop, what an iteration takes by simulation of the warp programs that these schedules become by the generator's default
/// options; empty where no such programs are generated or simulated.
pub(crate) fn of_schedules(
    source: &Source,
    problems: &[LoopProblem],
    schedules: &[&Verified<Schedule>],
) -> Vec<SimulatedCycles> {
    let loops = loops(source, problems, schedules);
    let options = rules::options(&CompileOptions::default(), source, schedules, false);
    let Ok((program, Some(simulated))) = rings::emit(source, &loops, &options, true) else {
        return Vec::new();
    };
    let Some(timing) = Timing::of(&source.machine) else { return Vec::new() };
    let Ok(copies_and_mmas) = KernelTime::of(&program, &timing.without_threads()) else { return Vec::new() };
    let each = simulated.iterations.iter().zip(&copies_and_mmas.iterations);
    each.map(|(cycles, without)| SimulatedCycles {
        cycles: Cycles(i64::from(*cycles)),
        copies_and_mmas: Cycles(i64::from(whole(*without))),
        sass: None,
    })
    .collect()
}
