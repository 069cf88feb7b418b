//! Estimates next to a proof: how long the generated kernel takes by simulation, and which space of schedules was
//! searched.

use crate::ink::{Ink, Page};
use crate::words;
use twill_graph::{Cycles, Problem, Report, Schedule, SimulatedCycles, WarpAssignment};

/// From this many tenths of the interval on, the report names the obstacle.
const FAR: i64 = 13;

/// Writes what an iteration takes by simulation, and a warning where that is far above the interval.
pub(crate) fn write<S: AsRef<Schedule>>(page: &mut Page, report: &Report<S>) {
    let Some((schedule, simulated)) = report.outcome.schedule().zip(report.simulated) else { return };
    let interval = schedule.as_ref().interval;
    let cycles = |cycles: Cycles| format!("{}, {} x I", words::count(cycles.0, "cycle"), ratio(cycles, interval));
    let sass = simulated.sass.map_or_else(|| "after twill compile".to_owned(), cycles);
    let text = format!("An iteration simulated: {}. SASS estimate: {sass}.", cycles(simulated.cycles));
    page.paragraph(0, &text, Ink::Plain);
    if let Some(warning) = warning(interval, simulated) {
        page.paragraph(0, &format!("Warning: {warning}"), Ink::Hue(1));
    }
}

/// The causes of a gap between a schedule's interval and its simulation.
pub(crate) fn warning(interval: Cycles, simulated: SimulatedCycles) -> Option<String> {
    let SimulatedCycles { cycles, copies_and_mmas, sass } = simulated;
    if sass.unwrap_or(cycles).0 * 10 <= interval.0 * FAR {
        return None;
    }
    if let Some(sass) = sass.filter(|sass| *sass > cycles) {
        let ratio = ratio(sass, interval);
        return Some(format!(
            "the SASS estimate is {ratio} times the interval: machine code does more than warp programs, such as spills \
             (twill compile names them)."
        ));
    }
    let alone = words::grouped(copies_and_mmas.0);
    let why = if copies_and_mmas.0 * 10 > interval.0 * FAR {
        format!("copies and MMAs alone take {alone}: loads arrive later than the MMAs that read them could start")
    } else {
        let rest = words::grouped(cycles.0 - copies_and_mmas.0);
        format!(
            "copies and MMAs alone take {alone}; the other {rest} are work of threads between MMAs and waits at barriers"
        )
    };
    Some(format!("an iteration is simulated at {} times its interval: {why}.", ratio(cycles, interval)))
}

/// Which space of schedules was searched, and what bounds the wider one.
pub(crate) fn space<S: AsRef<Schedule>>(problem: &Problem, report: &Report<S>) -> String {
    match problem.options().warp_assignment {
        WarpAssignment::Free => "Searched: any assignment of operations to warp groups.".to_owned(),
        WarpAssignment::BySubTile => {
            let searched = "Searched: each sub-tile on one warp group, as generated code has it.";
            let interval = report.outcome.schedule().map(|schedule| schedule.as_ref().interval);
            match report.wider_bound {
                None => searched.to_owned(),
                Some(bound) if interval == Some(bound) => {
                    format!("{searched} No other assignment has a smaller I (proved).")
                }
                Some(bound) => {
                    let bound = words::grouped(bound.0);
                    format!(
                        "{searched} For any assignment I >= {bound} is proved (--warp-assignment free searches it)."
                    )
                }
            }
        }
    }
}

/// A number of cycles as a multiple of the interval, with two decimals.
fn ratio(cycles: Cycles, interval: Cycles) -> String {
    format!("{:.2}", cycles.0 as f64 / interval.0.max(1) as f64)
}
