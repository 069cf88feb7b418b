//! Several different schedules of one loop, all of them replayed.

use crate::solve::verified;
use crate::{Error, LoopProblem, Session, solve};
use std::convert::Infallible;
use twill_check::Verified;
use twill_exact::{AlternativeOptions, Budget, Difference, End};
use twill_graph::{Cycles, Problem, Report, Schedule};

/// How many different schedules are wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopOptions {
    /// Schedules in all.
    pub most: usize,
    /// How much longer than the least an interval may be, as part of it: 0.05 is 5 %.
    pub within: f64,
}

/// Different schedules of one loop, the best first.
#[derive(Clone, Debug)]
pub struct Top {
    /// At least one report: without a schedule, what is known instead.
    pub each: Vec<TopSchedule>,
    /// Proved: whatever else has an interval up to this, and at most `stages` stages, does the same as one of these.
    pub complete_through: Option<Cycles>,
    /// Stages that were allowed.
    pub stages: u32,
    /// Why there are no more.
    pub end: End,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct TopSchedule {
    /// The schedule, and what is known of it.
    pub report: Report<Verified<Schedule>>,
    /// In what it differs from the first, in words, the most important first.
    pub differences: Vec<String>,
}

/// The best schedule of a loop and others that differ from it and from each other; `reading` as for [`solve`]. The session's
/// time is for all together, its work for the best and for the others each.
///
/// # Errors
/// [`Error::Defect`] when the checker does not accept what was found.
pub fn top(
    input: &str,
    one: &LoopProblem,
    options: TopOptions,
    session: &mut Session<'_>,
    reading: f64,
) -> Result<Top, Error> {
    let begun = session.search.budget.clock.now();
    let best = solve(input, one, session, reading)?;
    let Session { search, observer, .. } = session;
    let budget = Budget {
        time: search.budget.time.map(|limit| limit.saturating_sub(search.budget.clock.since(begun))),
        ..search.budget.clone()
    };
    let TopOptions { most, within } = options;
    let options = AlternativeOptions { most, within, budget, ..AlternativeOptions::default() };
    let claim: Result<Report, Infallible> = best.clone().try_map(|schedule| Ok(schedule.into_inner()));
    let Ok(claim) = claim;
    let found = twill_exact::alternatives(&one.problem, &claim, &options, &mut |p| observer.progress(&p));
    let mut each = vec![TopSchedule { report: best, differences: Vec::new() }];
    for report in found.reports.into_iter().skip(1) {
        let pair = claim.outcome.schedule().zip(report.outcome.schedule());
        let differences = pair.map(|(first, other)| twill_exact::differences(&one.problem, first, other));
        let differences = differences.iter().flatten().map(|d| described(&one.problem, *d)).collect();
        each.push(TopSchedule { report: verified(input, one, report)?, differences });
    }
    Ok(Top { each, complete_through: found.complete_through, stages: found.stages, end: found.end })
}

/// A difference in words.
fn described(problem: &Problem, difference: Difference) -> String {
    let name = |op| problem.graph().operation(op).name.as_str();
    match difference {
        Difference::Group { operation, group } => format!("{} on group {}", name(operation), group.index()),
        Difference::Stage { operation, stage } => format!("{} in stage {stage}", name(operation)),
        Difference::Order { earlier, later, distance } => {
            let iteration = match distance {
                0 => String::new(),
                1 => " of the next iteration".to_owned(),
                -1 => " of the iteration before".to_owned(),
                2.. => format!(" of {distance} iterations later"),
                _ => format!(" of {} iterations before", -distance),
            };
            format!("{} before {}{iteration}", name(earlier), name(later))
        }
    }
}
