//! Explanations of an initiation interval (docs/explain.md): for every excluded interval a minimal
//! set of constraint families that conflict, with what they require; and what would change it.

mod ask;
mod conflict;
mod demand;
mod what_if;

use crate::bounds;
use crate::limits::{Budget, Meter};
use crate::progress::Progress;
use crate::query::{self, Verdict};
use ask::{Asker, Relaxation};
use conflict::Depth;
use twill_graph::{
    Cycles, ExplainedRejection, Explanation, Families, LowerBoundKind, Outcome, Problem, Rejection, RejectionReason,
    Report, Schedule,
};

pub use what_if::what_if;

/// This many questions may take all the work that one is allowed.
const QUESTIONS: u64 = 40;

/// How much to find out.
#[derive(Clone, Debug)]
pub struct ExplainOptions {
    /// When to give up altogether.
    pub budget: Budget,
    /// Work units for each question about a conflict (about a million a second).
    pub question_work: u64,
    /// Work units for each changed problem.
    pub what_if_work: u64,
    /// True if to ask what would change the interval.
    pub what_ifs: bool,
    /// Largest interval that the search was allowed.
    pub largest_interval: Option<Cycles>,
}

impl Default for ExplainOptions {
    fn default() -> Self {
        ExplainOptions {
            budget: Budget::default(),
            question_work: 250_000,
            what_if_work: 1_000_000,
            what_ifs: true,
            largest_interval: None,
        }
    }
}

/// Explains what a search found about `problem`.
///
/// The result depends only on the arguments, unless a time budget or an interrupt ends it.
pub fn explain<S: AsRef<Schedule>>(
    problem: &Problem,
    report: &Report<S>,
    options: &ExplainOptions,
    progress: &mut dyn FnMut(Progress),
) -> Explanation {
    let all = options.question_work.saturating_mul(QUESTIONS);
    let budget = Budget { work: Some(options.budget.work.map_or(all, |w| w.min(all))), ..options.budget.clone() };
    let started = options.budget.clock.now();
    let asker = Asker { meter: Meter::start(&budget), work: options.question_work };
    let excluded = excluded(problem, report, options, &asker.meter);
    let smaller_too = bounds::is_monotone(problem);
    let mut rejections = Vec::new();
    let mut start: Option<Relaxation> = None;
    let bound = bounds::lower_bound(problem, Families::ALL);
    for rejection in excluded.into_iter().rev() {
        let interval = rejection.interval;
        progress(Progress::Explaining { interval });
        let bound = Some(&bound).filter(|b| b.interval > interval).cloned();
        let without_warps = report.modulo.is_some_and(|m| interval < m.initiation_interval);
        // Constraints that exclude a larger interval exclude this one.
        let known = start.take().filter(|_| smaller_too);
        let from = match (&bound, known) {
            (Some(bound), _) => Relaxation::of(bounds::families_of(problem, &bound.kind)),
            (None, Some(known)) => known,
            (None, None) if without_warps => Relaxation::of(Families::THROUGHPUT),
            (None, None) => Relaxation::of(Families::ALL),
        };
        let depth = if rejections.is_empty() { Depth::Whole } else { Depth::Members };
        let (conflict, found) = conflict::conflict(&asker, problem, interval.0, from, depth);
        start = Some(found);
        rejections.push(ExplainedRejection { rejection, bound, conflict, smaller_too });
    }
    rejections.reverse();
    let what_ifs = match options.what_ifs {
        true => what_if::all(problem, report, rejections.last(), options, started, progress),
        false => Vec::new(),
    };
    let infeasible = match &report.outcome {
        Outcome::Infeasible { reason } => Some(reason.clone()),
        Outcome::Optimal { .. } | Outcome::Feasible { .. } | Outcome::Unknown { .. } => None,
    };
    Explanation {
        status: report.outcome.status(),
        infeasible,
        interval: report.outcome.schedule().map(|s| s.as_ref().interval),
        lower_bound: report.lower_bound.clone(),
        rejections,
        what_ifs,
    }
}

/// The excluded intervals: those recorded, and the last one if it is not among them.
fn excluded<S>(problem: &Problem, report: &Report<S>, options: &ExplainOptions, meter: &Meter) -> Vec<Rejection> {
    let mut excluded = report.rejections.clone();
    let last = report.lower_bound.interval.0 - 1;
    match &report.outcome {
        // A conflict that needs no search holds at any interval.
        Outcome::Infeasible { reason } if !matches!(reason, RejectionReason::Exhausted { .. }) => {
            let all = || Cycles(bounds::largest_interval(problem).max(1));
            let interval = options.largest_interval.unwrap_or_else(all).min(Cycles(problem.graph().largest_interval()));
            excluded.push(Rejection { interval, stages: None, reason: reason.clone() });
        }
        // All that was allowed lies below a bound.
        Outcome::Infeasible { reason: RejectionReason::Exhausted { largest, .. } }
            if excluded.iter().all(|r| r.interval < *largest) && last >= largest.0 =>
        {
            let throughput = bounds::lower_bound(problem, Families::THROUGHPUT).interval > *largest;
            let warps = RejectionReason::Search { conflicts: 0 };
            let reason = if throughput { RejectionReason::Throughput { conflicts: 0 } } else { warps };
            excluded.push(Rejection { interval: *largest, stages: None, reason });
        }
        // Phase 1 does not record what it excludes.
        _ if matches!(report.lower_bound.kind, LowerBoundKind::Search { .. })
            && excluded.iter().all(|r| r.interval.0 < last) =>
        {
            meter.allow(None);
            if let Verdict::Excluded { stages, reason } = query::exists(problem, last, Families::THROUGHPUT, meter) {
                excluded.push(Rejection { interval: Cycles(last), stages, reason });
            }
        }
        _ => {}
    }
    excluded
}
