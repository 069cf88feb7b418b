//! Whether a configuration fits, before it is compiled.
//!
//! Solving takes too long to ask it of a thousand configurations. So this looks at the schedule that takes least, one iteration
//! after another with as few slots as are asked for: [`compile`](crate::compile::compile) falls back to it, so that what fits
//! here is generated there. Where it does not fit, only a proof says that nothing does: a bound of the exact scheduler that needs
//! no search, or storage that every schedule takes.

mod bound;
mod data;
mod needs;
mod verdict;

pub use data::{Fit, Holder, LoopBound, Misfit, Need, Resource, Verdict};

use crate::compile::rules::{self, Registers};
use crate::compile::{CompileOptions, Which, candidate};
use crate::{Error, Loops, Posed, Request, Session, Silent, Source, problems, siblings};
use twill_check::Verified;
use twill_emit::kernel::Options;
use twill_emit::kernel::program::KernelProgram;
use twill_exact::{Budget, Naive, SearchOptions};
use twill_graph::{ProblemError, Schedule};
use twill_triton::Lowered;

/// Work for a schedule that is not searched for.
const WORK: u64 = 1_000_000;

/// Whether the kernel of a request fits, what it needs of each resource, and the most that it can achieve.
///
/// # Errors
/// When the request cannot be posed, or no code can be generated for its kernel whatever the schedule.
pub fn fit(request: &Request, options: &CompileOptions) -> Result<Fit, Error> {
    let Some(source) = crate::source(request)? else {
        return Err(Error::NoSource { input: request.input.name.clone() });
    };
    let mut fit = Fit {
        input: request.input.name.clone(),
        kernel: source.kernel.name().to_owned(),
        machine: source.machine.name().to_owned(),
        verdict: Verdict::Unknown,
        needs: Vec::new(),
        loops: Vec::new(),
        misfit: None,
    };
    let asked = match problems(&candidate::with_assignment(request, options, &source)) {
        Ok(asked) => asked,
        Err(Error::Problem { error, .. }) if matches!(*error, ProblemError::Reserved { .. }) => {
            verdict::reserved(&mut fit, &error);
            return Ok(fit);
        }
        Err(error) => return Err(error),
    };
    let lowered = candidate::lowered(&source)?;
    fit.loops = bound::of(request, &source, &asked.loops, &lowered);
    let request = &candidate::by_sub_tile(request);
    let posed = problems(request)?;
    let resources = source.machine.resources();
    let schedules = schedules(request, options, &posed)?;
    if let Some(schedules) = &schedules {
        let schedules: Vec<&Verified<Schedule>> = schedules.iter().collect();
        let program = program(request, options, &source, &lowered, &posed, &schedules)?;
        fit.needs = needs::memories(&program, &resources);
        fit.needs.extend(needs::warps(&posed.loops, &schedules, &resources, source.machine.chip().threads_per_block));
        verdict::of_program(&mut fit, &program, options, &resources);
    }
    if fit.verdict != Verdict::Fits {
        verdict::without_schedule(&mut fit, &asked.loops, &resources);
    }
    Ok(fit)
}

/// The JSON Schema of [`Fit`].
pub fn fit_schema() -> serde_json::Value {
    schemars::schema_for!(Fit).to_value()
}

/// The schedules that take least; `None` where they break a constraint.
fn schedules(
    request: &Request,
    options: &CompileOptions,
    posed: &Loops<Posed>,
) -> Result<Option<Vec<Verified<Schedule>>>, Error> {
    let input = &request.input.name;
    let how = if options.schedule == Which::SwpOnly { Naive::PipeliningOnly } else { Naive::NoPipelining };
    let budget = Budget { work: Some(WORK), ..Budget::default() };
    let mut nobody = Silent;
    let mut session = Session::new(SearchOptions { budget, ..SearchOptions::default() }, &mut nobody);
    let found: Vec<_> = match siblings::pose(request, posed)? {
        Some(kernel) => siblings::naive(input, &kernel, how, &mut session)?.loops,
        None => {
            let one = |one: &Posed| crate::solve::naive(input, one, how, &mut session);
            posed.loops.iter().map(one).collect::<Result<_, _>>()?
        }
    };
    Ok(found.into_iter().map(|report| report.outcome.schedule().cloned()).collect())
}

/// The kernel with as few slots as the options allow: where the memories do not suffice, as if they did.
fn program(
    request: &Request,
    asked: &CompileOptions,
    source: &Source,
    lowered: &[Lowered],
    posed: &Loops<Posed>,
    schedules: &[&Verified<Schedule>],
) -> Result<KernelProgram, Error> {
    let loops = candidate::loops(lowered, posed, schedules);
    let all = rules::options(asked, source, lowered, Registers::of(schedules));
    let emitted = |error| Error::Emit { input: request.input.name.clone(), error: Box::new(error) };
    let Some(least) = all.last() else {
        return Err(emitted(twill_emit::Error::SharedMemory { needed: 0, available: 0 }));
    };
    match twill_emit::kernel::lower(&source.kernel, &loops, least) {
        Err(twill_emit::Error::SharedMemory { .. } | twill_emit::Error::TensorMemory { .. }) => {
            let tensor_columns = least.tensor_columns.map(|_| u64::MAX);
            let unlimited = Options { shared_bytes: u64::MAX, tensor_columns, ..least.clone() };
            twill_emit::kernel::lower(&source.kernel, &loops, &unlimited).map_err(emitted)
        }
        other => other.map_err(emitted),
    }
}
