//! Whether a configuration fits, before it is compiled.
//!
//! Solving takes too long to ask it of a thousand configurations. So this looks at the schedule that takes least, one iteration
//! after another with as few slots as are asked for: [`compile`](crate::tune::compile) falls back to it, so that what fits
//! here is generated there. Where it does not fit, only a proof says that nothing does: a bound of the exact scheduler that needs
//! no search, or storage that every schedule takes.

mod bound;
mod data;
mod needs;
mod verdict;

pub use data::{Fit, Holder, LoopBound, Misfit, Need, Resource, Verdict};

use crate::input::generated_source;
use crate::tune::rules;
use crate::tune::{CompileOptions, Language, Which, lower};
use crate::{Error, LoopProblem, Loops, Request, Session, Silent, Source, relax};
use twill_check::{Constraint, Rejected, Verified};
use twill_codegen::Options;
use twill_codegen::ir::WarpProgram;
use twill_exact::{Budget, Naive, SearchOptions};
use twill_graph::{ModelOptions, ProblemError, Schedule, WarpAssignment};

/// Work for a schedule that is not searched for.
const WORK: u64 = 1_000_000;

/// Whether the kernel of a request fits, what it needs of each resource, and the most that it can achieve.
///
/// # Errors
/// When the request cannot be stated as a scheduling problem, or no code can be generated for its kernel whatever the schedule.
pub fn fit(request: &Request, options: &CompileOptions) -> Result<Fit, Error> {
    let source = generated_source(request)?;
    let own = within(request, options, &source)?;
    let is_short = own
        .misfit
        .as_ref()
        .is_some_and(|misfit| matches!(misfit.resource, Some(Resource::Registers | Resource::RegisterFile)));
    if !is_short || options.language() != Language::Gluon || options.schedule != Which::Optimal {
        return Ok(own);
    }
    // More warps hold more; what is spilled does not fit.
    let Some(relaxed) = relax::relaxed(request).into_iter().next().map(|(relaxed, _)| relaxed) else { return Ok(own) };
    let mut options = options.clone();
    options.shares.compute_warps = relaxed.limits.compute_warps;
    match within(&relaxed, &options, &source) {
        Ok(other) if other.fits() => Ok(other),
        // The schedule at hand does not fit, which proves nothing of others.
        Ok(other) if other.verdict == Verdict::Unknown => Ok(Fit { verdict: Verdict::Unknown, ..own }),
        _ => Ok(own),
    }
}

/// The same within the limits of the request alone.
fn within(request: &Request, options: &CompileOptions, source: &Source) -> Result<Fit, Error> {
    let mut fit = Fit {
        input: request.input.name.clone(),
        kernel: source.kernel.name().to_owned(),
        machine: source.machine.name().to_owned(),
        verdict: Verdict::Unknown,
        needs: Vec::new(),
        loops: Vec::new(),
        misfit: None,
    };
    let request = lower::with_assignment(request, options, source);
    let requested = match crate::problems_of_source(&request, source) {
        Ok(requested) => requested,
        Err(Error::Problem { error, .. }) if matches!(*error, ProblemError::Reserved { .. }) => {
            verdict::reserved(&mut fit, &error);
            return Ok(fit);
        }
        Err(error) => return Err(error),
    };
    fit.loops = bound::of(&request, source, &requested.loops, &source.lowered);
    let resources = source.machine.resources();
    if let Some((problems, reason)) =
        requested.loops.iter().find_map(|p| Some((p, twill_exact::impossible(&p.problem)?)))
    {
        verdict::impossible(&mut fit, problems, &reason);
        return Ok(fit);
    }
    let problems = by_sub_tile(&requested);
    match schedules(&request, options, &problems)? {
        Ok(schedules) => {
            let schedules: Vec<&Verified<Schedule>> = schedules.iter().collect();
            let program = program(&request, options, source, &problems, &schedules)?;
            fit.needs = needs::memories(&program, &resources);
            let threads = source.machine.chip().threads_per_block;
            fit.needs.extend(needs::warps(&problems.loops, &schedules, &resources, threads));
            verdict::of_program(&mut fit, &program, &resources);
            if fit.fits() && request.limits.compute_warps.is_some() && !rules::is_wide(&program) {
                fit.verdict = Verdict::Unknown;
            }
        }
        Err(broken) => verdict::broken(&mut fit, &requested.loops, broken.as_ref(), &resources),
    }
    Ok(fit)
}

/// The same problems where each sub-tile has a group.
fn by_sub_tile(requested: &Loops<LoopProblem>) -> Loops<LoopProblem> {
    let mut problems = requested.clone();
    for one in &mut problems.loops {
        let options = ModelOptions { warp_assignment: WarpAssignment::BySubTile, ..*one.problem.options() };
        one.problem = one.problem.with_options(options);
    }
    problems
}

/// The JSON Schema of [`Fit`].
pub fn fit_schema() -> serde_json::Value {
    schemars::schema_for!(Fit).to_value()
}

/// The schedules that take least, or what breaks them.
type Unpipelined = Result<Vec<Verified<Schedule>>, Option<Rejected>>;

fn schedules(request: &Request, options: &CompileOptions, problems: &Loops<LoopProblem>) -> Result<Unpipelined, Error> {
    if options.schedule == Which::SwpOnly {
        return pipelined(request, problems);
    }
    let least = |one: &LoopProblem| {
        let mut broken = None;
        for claim in twill_exact::unpipelined(&one.problem) {
            match twill_check::verify(&one.problem, claim) {
                Ok(verified) => return Ok(verified),
                Err(rejected) => {
                    // A longer interval does not mend what one iteration alone takes.
                    let hopeless = rejected.violations.iter().any(|v| is_storage(v.constraint()));
                    broken = Some(rejected);
                    if hopeless {
                        break;
                    }
                }
            }
        }
        Err(broken)
    };
    Ok(problems.loops.iter().map(least).collect())
}

fn is_storage(constraint: Constraint) -> bool {
    matches!(constraint, Constraint::Registers | Constraint::SharedMemory | Constraint::TensorMemory)
}

/// Order and stages of the modulo schedule, where that is what is asked for.
fn pipelined(request: &Request, problems: &Loops<LoopProblem>) -> Result<Unpipelined, Error> {
    let budget = Budget { work: Some(WORK), ..Budget::default() };
    let mut nobody = Silent;
    let mut session = Session::new(SearchOptions { budget, ..SearchOptions::default() }, &mut nobody);
    let one = |one: &LoopProblem| crate::solve::naive(&request.input.name, one, Naive::PipeliningOnly, &mut session);
    let found: Vec<_> = problems.loops.iter().map(one).collect::<Result<_, _>>()?;
    let schedules: Option<Vec<_>> = found.into_iter().map(|report| report.outcome.schedule().cloned()).collect();
    Ok(schedules.ok_or(None))
}

/// The kernel with as few slots as the options allow: where the memories do not suffice, as if they did.
fn program(
    request: &Request,
    requested: &CompileOptions,
    source: &Source,
    problems: &Loops<LoopProblem>,
    schedules: &[&Verified<Schedule>],
) -> Result<WarpProgram, Error> {
    let loops = lower::loops(source, &problems.loops, schedules);
    let all = rules::options(requested, source, schedules, false);
    let emitted = |error| Error::Emit { input: request.input.name.clone(), error: Box::new(error) };
    let Some(last) = all.last() else {
        return Err(emitted(twill_codegen::Error::SharedMemory { needed: 0, available: 0 }));
    };
    let made = |least: &Options| match twill_codegen::lower(&source.kernel, &loops, least) {
        Err(twill_codegen::Error::SharedMemory { .. } | twill_codegen::Error::TensorMemory { .. }) => {
            let tensor_columns = least.tensor_columns.map(|_| u64::MAX);
            let unlimited = Options { shared_bytes: u64::MAX, tensor_columns, ..least.clone() };
            twill_codegen::lower(&source.kernel, &loops, &unlimited)
        }
        other => other,
    };
    // With sub-tiles of the epilogue and without; not every result can be made by parts.
    let slots = |options: &Options| (options.persistent, options.ring_depth, options.handoff_depth);
    let (programs, errors): (Vec<_>, Vec<_>) =
        all.iter().filter(|options| slots(options) == slots(last)).map(made).partition(Result::is_ok);
    match programs.into_iter().flatten().min_by_key(WarpProgram::shared_bytes) {
        Some(program) => Ok(program),
        None => Err(emitted(
            errors
                .into_iter()
                .find_map(Result::err)
                .unwrap_or(twill_codegen::Error::SharedMemory { needed: 0, available: 0 }),
        )),
    }
}
