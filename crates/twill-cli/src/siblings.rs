//! Loops of one kernel that are scheduled together (docs/model.md, "Sibling loops").

use crate::Exit;
use crate::arguments::{Format, ScheduleArguments, SearchArguments, SiblingArguments};
use crate::error::Error;
use crate::input::{Loops, Posed, Siblings};
use crate::progress::Ticker;
use crate::{files, schedule};
use std::time::Instant;
use twill_check::Verified;
use twill_exact::SearchOptions;
use twill_graph::format::{KernelScheduleFile, ScheduleFile};
use twill_graph::{KernelProblem, KernelReport, Liveness, Phase, Schedule, StageWindow};

/// The loops as one problem; `None` where each is scheduled by itself.
pub(crate) fn pose(
    arguments: &SearchArguments,
    siblings: &SiblingArguments,
    posed: &Loops<Posed>,
) -> Result<Option<KernelProblem>, Error> {
    let input = || arguments.source.input.clone();
    let asked = siblings;
    let refused = |why| Err(Error::TripCounts { input: input(), why });
    let given = !asked.trip_counts.is_empty();
    let Some(siblings) = &posed.siblings else {
        return if given { refused("there is one loop") } else { Ok(None) };
    };
    if let Some(why) = apart(asked, posed) {
        return if given { refused(why) } else { Ok(None) };
    }
    let weights = if given { asked.trip_counts.clone() } else { weights(siblings) };
    let problems = posed.loops.iter().map(|p| p.problem.clone()).collect();
    KernelProblem::new(siblings.kernel.clone(), problems, weights, siblings.ties.clone())
        .map(Some)
        .map_err(|error| Error::Kernel { input: input(), error })
}

/// Why loops are scheduled each by itself.
fn apart(arguments: &SiblingArguments, posed: &Loops<Posed>) -> Option<&'static str> {
    let options = posed.loops.first().map(|p| p.problem.options());
    let paper = |o: &twill_graph::ModelOptions| o.liveness == Liveness::Paper || o.stage_window == StageWindow::Paper;
    if arguments.no_siblings {
        Some("--no-siblings schedules each by itself")
    } else if posed.loops.iter().any(|p| p.normalisation.is_some()) {
        Some("--normalise gives every loop cycles of its own, which cannot be added up")
    } else if options.is_some_and(paper) {
        Some("the paper's reading of the model is for one loop")
    } else {
        None
    }
}

/// Trip counts, if the kernel says all of them; otherwise all loops count alike.
fn weights(siblings: &Siblings) -> Vec<u64> {
    let known: Option<Vec<u64>> = siblings.trip_counts.iter().copied().collect();
    let in_range = |weights: &Vec<u64>| weights.iter().all(|w| (1..=KernelProblem::MOST_WEIGHT).contains(w));
    known.filter(in_range).unwrap_or_else(|| vec![1; siblings.trip_counts.len()])
}

/// Searches, and writes what was found.
pub(crate) fn run(
    arguments: &ScheduleArguments,
    kernel: &KernelProblem,
    options: &SearchOptions,
    reading: f64,
) -> Result<Exit, Error> {
    let report = solve(&arguments.search, kernel, options, reading)?;
    if let Some(folder) = &arguments.certificate {
        let loops = kernel.loops().iter().zip(&report.loops).map(|(p, r)| (p, r, ScheduleFile::new(p, r)));
        let together = KernelScheduleFile::new(kernel, &report).to_json() + "\n";
        schedule::certify(folder, &arguments.search, loops, Some(&together), options)?;
    }
    files::write(arguments.page.output.as_deref(), &render(arguments, kernel, &report))?;
    Ok(schedule::exit(report.outcome.status()))
}

/// Searches, and lets nothing out that does not survive its replay.
pub(crate) fn solve(
    arguments: &SearchArguments,
    kernel: &KernelProblem,
    options: &SearchOptions,
    reading: f64,
) -> Result<KernelReport<Verified<Schedule>>, Error> {
    let mut ticker = Ticker::new(arguments.quiet);
    let report = twill_exact::schedule_kernel(kernel, options, &mut |p| ticker.tell(&p));
    drop(ticker);
    let started = Instant::now();
    let mut report = verified(arguments, kernel, report)?;
    report.phases.insert(0, Phase { name: "reading".into(), seconds: reading });
    report.phases.push(Phase { name: "replay".into(), seconds: started.elapsed().as_secs_f64() });
    Ok(report)
}

/// Lets no schedules out that do not survive their replay.
pub(crate) fn verified(
    arguments: &SearchArguments,
    kernel: &KernelProblem,
    report: KernelReport,
) -> Result<KernelReport<Verified<Schedule>>, Error> {
    let defect = |error| Error::KernelDefect { input: arguments.source.input.clone(), error: Box::new(error) };
    let verified = match report.outcome.schedule() {
        Some(common) => {
            let schedules = report.loops.iter().filter_map(|r| r.outcome.schedule().cloned()).collect();
            twill_check::verify_kernel(kernel, &common.groups, schedules).map_err(defect)?
        }
        None => Vec::new(),
    };
    let mut verified = verified.into_iter();
    // A loop has a schedule where the kernel has one, and nowhere else.
    report.try_map(|(_, own)| {
        own.try_map(|_| verified.next().ok_or_else(|| defect(twill_check::RejectedKernel::default())))
    })
}

fn render(arguments: &ScheduleArguments, kernel: &KernelProblem, report: &KernelReport<Verified<Schedule>>) -> String {
    match arguments.format {
        Format::Json => KernelScheduleFile::new(kernel, report).to_json() + "\n",
        Format::Text => twill_report::kernel_text(kernel, report, schedule::text_options(&arguments.page)),
        Format::Pseudocode => {
            let each = kernel.loops().iter().zip(&report.loops);
            each.map(|(p, own)| schedule::pseudocode(arguments, p, own)).collect::<Vec<_>>().join("\n")
        }
    }
}
