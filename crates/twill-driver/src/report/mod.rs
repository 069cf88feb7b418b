//! What is shown of a kernel's schedules, searched for here, or found before and replayed: a page (docs/report.md), and what
//! pictures are drawn of.

mod file;
mod folder;

pub use file::{page_of_file, schedules_of_file};
pub use folder::{code, compiled, trace};

use crate::explain::{explained, left};
use crate::{Answer, Error, LoopProblem, Loops, Request, Session, answer_or_relaxed, problems};
use twill_check::{MeasuredSteps, Verified};
use twill_exact::ExplainOptions;
use twill_graph::{DataflowProblem, Problem, Report, Schedule, Status};
use twill_machine::Machine;
use twill_report::page::{Chip, LoopReport, Page};
use web_time::Instant;

/// What pictures are drawn of, all of it replayed.
#[derive(Clone, Debug)]
pub enum Schedules {
    /// Loops of a kernel.
    Loops {
        /// Each with what was found for it.
        loops: Vec<(Problem, Report<Verified<Schedule>>)>,
        /// What is known of all of them, where they share their warp groups.
        together: Option<Status>,
    },
    /// A graph without warps.
    Dataflow {
        /// The graph, its interval and its limits.
        problem: Box<DataflowProblem>,
        /// Its schedule.
        found: Verified<MeasuredSteps>,
    },
}

/// Schedules the loops of a request.
///
/// # Errors
/// When the request cannot be stated as a scheduling problem, or the checker does not accept a schedule.
pub fn schedules(request: &Request, session: &mut Session<'_>) -> Result<Schedules, Error> {
    let (problems, answer) = search(request, session)?;
    let (reports, together) = match answer {
        Answer::Each(reports) => (reports, None),
        Answer::Together(_, report) => (report.loops, Some(report.outcome.status())),
    };
    let loops = problems.loops.into_iter().map(|one| one.problem).zip(reports).collect();
    Ok(Schedules::Loops { loops, together })
}

fn search(request: &Request, session: &mut Session<'_>) -> Result<(Loops<LoopProblem>, Answer), Error> {
    let reading = Instant::now();
    let problems = problems(request)?;
    answer_or_relaxed(request, problems, session, reading.elapsed().as_secs_f64())
}

/// Schedules the loops of a request and describes what was found; explains each, as long as the budget of `explain` lasts for
/// all of them. A loop that shares its warp groups with others is explained by itself.
///
/// # Errors
/// When the request cannot be stated as a scheduling problem, or the checker does not accept a schedule or what an explanation rests on.
pub fn page(request: &Request, explain: Option<&ExplainOptions>, session: &mut Session<'_>) -> Result<Page, Error> {
    let (problems, answer) = search(request, session)?;
    let requested = request.lowering.machine.as_ref();
    let reports = match answer {
        Answer::Each(reports) => reports,
        Answer::Together(kernel, report) => {
            let loops = described(request, &problems.loops, &report.loops, explain, session)?;
            return Ok(with_chip(Page::of_kernel(&kernel, &report, loops), requested));
        }
    };
    let loops = described(request, &problems.loops, &reports, explain, session)?;
    let name = match (&problems.siblings, problems.loops.first()) {
        (Some(siblings), _) => siblings.kernel.as_str(),
        (None, Some(one)) => one.problem.graph().name(),
        (None, None) => request.input.name.as_str(),
    };
    let each = problems.loops.iter().zip(&reports).zip(loops).map(|((one, report), own)| (&one.problem, report, own));
    Ok(with_chip(Page::of_loops(name, each.collect()), requested))
}

/// A page with the chip of the machine that was asked for, else of the built-in one that the page names.
fn with_chip(mut page: Page, requested: Option<&Machine>) -> Page {
    let builtin = || Machine::builtin(page.machine.as_deref()?).ok();
    page.chip = requested.cloned().or_else(builtin).map(|machine| {
        let chip = machine.chip();
        Chip { clock_mhz: chip.clock_mhz, multiprocessors: chip.streaming_multiprocessors }
    });
    page
}

fn described(
    request: &Request,
    problems: &[LoopProblem],
    reports: &[Report<Verified<Schedule>>],
    explain: Option<&ExplainOptions>,
    session: &mut Session<'_>,
) -> Result<Vec<LoopReport>, Error> {
    let begun = explain.map_or_else(Instant::now, |options| options.budget.clock.now());
    let mut loops = Vec::new();
    for (index, (one, report)) in problems.iter().zip(reports).enumerate() {
        let explanation = match explain {
            Some(options) => Some(explained(request, index, one, report, &left(options, begun), session)?),
            None => None,
        };
        loops.push(LoopReport::new(&one.problem, report, one.normalisation, explanation.as_ref()));
    }
    Ok(loops)
}
