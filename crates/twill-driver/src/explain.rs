//! Why a schedule is no faster, for each loop of a request.

use crate::replay::replay;
use crate::{Error, LoopProblem, LoweringParameters, Request, Session, problems, solve};
use twill_check::Verified;
use twill_exact::ExplainOptions;
use twill_graph::{Change, Explanation, Report, Schedule, Status, WhatIf};
use web_time::Instant;

/// A loop, what is known of its schedule, and why it is no faster.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The question.
    pub of: LoopProblem,
    /// What is known of its schedule.
    pub status: Status,
    /// Why it is no faster.
    pub explanation: Explanation,
}

/// Schedules each loop of a request and explains it.
///
/// # Errors
/// When the request cannot be stated as a scheduling problem, or the checker does not accept a schedule or what the explanation rests on.
pub fn explanations(
    request: &Request,
    explain: &ExplainOptions,
    session: &mut Session<'_>,
) -> Result<Vec<Explained>, Error> {
    let input = &request.input.name;
    let mut all = Vec::new();
    for (index, of) in problems(request)?.loops.into_iter().enumerate() {
        let report = solve(input, &of, session, 0.0)?;
        let explanation = explained(request, index, &of, &report, explain, session)?;
        all.push(Explained { of, status: report.outcome.status(), explanation });
    }
    Ok(all)
}

/// Explains what was found for one loop of a request, which is number `index` of all that it asks for.
pub(crate) fn explained(
    request: &Request,
    index: usize,
    one: &LoopProblem,
    report: &Report<Verified<Schedule>>,
    explain: &ExplainOptions,
    session: &mut Session<'_>,
) -> Result<Explanation, Error> {
    let begun = explain.budget.clock.now();
    let mut explanation = twill_exact::explain(&one.problem, report, explain, &mut |p| session.observer.progress(&p));
    replay(&request.input.name, &one.problem, &mut explanation)?;
    if explain.what_ifs {
        explanation.what_ifs.extend(sub_tiles(request, index, one, report, &left(explain, begun)));
    }
    Ok(explanation)
}

/// What is left of the time since `begun`, by the clock of its budget.
pub(crate) fn left(options: &ExplainOptions, begun: Instant) -> ExplainOptions {
    let mut options = options.clone();
    options.budget.time = options.budget.time.map(|time| time.saturating_sub(options.budget.clock.since(begun)));
    options
}

/// The same kernel cut into the next fewer and the next more sub-tiles that its tiles allow.
fn sub_tiles(
    request: &Request,
    index: usize,
    one: &LoopProblem,
    report: &Report<Verified<Schedule>>,
    options: &ExplainOptions,
) -> Vec<WhatIf> {
    // Normalised costs of different graphs cannot be compared.
    let Some(now) = one.sub_tiles.filter(|_| request.limits.normalise == 0) else { return Vec::new() };
    let cut = |count: u32| {
        let lowering = LoweringParameters { sub_tiles: Some(count), ..request.lowering.clone() };
        let mut others = problems(&Request { lowering, ..request.clone() }).ok()?.loops;
        let other = (index < others.len()).then(|| others.swap_remove(index))?;
        (other.sub_tiles == Some(count)).then_some((count, other))
    };
    let fewer = (1..now).rev().find_map(cut);
    let more = (now + 1..=now.saturating_mul(2)).find_map(cut);
    let solve = |(sub_tiles, other): (u32, LoopProblem)| {
        twill_exact::what_if(report, Change::SubTiles { sub_tiles }, &other.problem, options)
    };
    fewer.into_iter().chain(more).map(solve).collect()
}
