//! The page on a kernel's schedules: searched for here, or found before and replayed (docs/report.md).

mod file;
mod folder;

pub use file::page_of_file;
pub use folder::{code, trace};

use crate::explain::{explained, left};
use crate::{Error, Posed, Request, Session, problems, siblings, solve};
use std::time::Instant;
use twill_check::Verified;
use twill_exact::ExplainOptions;
use twill_graph::{Report, Schedule};
use twill_report::page::{Loop, Page};

/// Schedules the loops of a request and describes what was found; explains each, as long as the budget of `explain` lasts for
/// all of them. A loop that shares its warp groups with others is explained by itself.
///
/// # Errors
/// When the request cannot be posed, or the checker does not accept a schedule or what an explanation rests on.
pub fn page(request: &Request, explain: Option<&ExplainOptions>, session: &mut Session<'_>) -> Result<Page, Error> {
    let reading = Instant::now();
    let input = &request.input.name;
    let posed = problems(request)?;
    let together = siblings::pose(request, &posed)?;
    let seconds = reading.elapsed().as_secs_f64();
    if let Some(kernel) = together {
        let report = siblings::solve(input, &kernel, session, seconds)?;
        let loops = described(request, &posed.loops, &report.loops, explain, session)?;
        return Ok(Page::of_kernel(&kernel, &report, loops));
    }
    let each = posed.loops.iter().map(|one| solve(input, one, session, seconds / posed.loops.len() as f64));
    let reports = each.collect::<Result<Vec<_>, Error>>()?;
    let loops = described(request, &posed.loops, &reports, explain, session)?;
    let name = match (&posed.siblings, posed.loops.first()) {
        (Some(siblings), _) => siblings.kernel.as_str(),
        (None, Some(one)) => one.problem.graph().name(),
        (None, None) => input.as_str(),
    };
    let each = posed.loops.iter().zip(&reports).zip(loops).map(|((one, report), own)| (&one.problem, report, own));
    Ok(Page::of_loops(name, each.collect()))
}

fn described(
    request: &Request,
    posed: &[Posed],
    reports: &[Report<Verified<Schedule>>],
    explain: Option<&ExplainOptions>,
    session: &mut Session<'_>,
) -> Result<Vec<Loop>, Error> {
    let begun = Instant::now();
    let mut loops = Vec::new();
    for (index, (one, report)) in posed.iter().zip(reports).enumerate() {
        let explanation = match explain {
            Some(options) => Some(explained(request, index, one, report, &left(options, begun), session)?),
            None => None,
        };
        loops.push(Loop::new(&one.problem, report, one.normalisation, explanation.as_ref()));
    }
    Ok(loops)
}
