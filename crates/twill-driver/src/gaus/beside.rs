//! What goes on beside the search: the bound, by terms and then stronger, and baselines.

use super::board::Board;
use super::search::Limits;
use crate::options::GausOptions;
use std::time::Instant;
use twill_check::{verify_multipliers, verify_wavefront};
use twill_gaus::{Baseline, Control, LowerBound, lower_bound_within, multipliers, wavefront};
use twill_graph::DataflowProblem;

/// Part of the time until which baselines are worked on: early enough for the search to go on from them.
const BASELINES_PART: f64 = 0.4;
/// Part of the time until which the bound is strengthened.
const BOUND_PART: f64 = 0.95;

/// What goes on beside the search: the bound, with the schedule that is behind it, and other baselines.
pub(super) fn accompany(
    board: &Board<'_>,
    baselines: &[Baseline],
    arguments: &GausOptions,
    problem: &DataflowProblem,
    limits: &Limits,
) {
    let control = |part| Control { enough: Some(&board.enough), memory: arguments.memory(), ..limits.control(part) };
    let (spans, mut solved) = (baselines.contains(&Baseline::LeastSpans), false);
    let mut by_terms = None;
    if board.bound().is_none()
        && let Ok(bound) = lower_bound_within(problem, control(0.6))
    {
        if let Some(steps) = bound.schedule.as_ref().filter(|_| spans) {
            board.offer(Baseline::LeastSpans.name(), steps);
            solved = true;
        }
        board.prove(LowerBound::known(bound.value));
        by_terms = Some(bound);
    }
    for baseline in baselines.iter().filter(|baseline| !solved || **baseline != Baseline::LeastSpans) {
        if let Ok(found) = baseline.schedule_within(problem, control(BASELINES_PART)) {
            board.offer(baseline.name(), &found.steps);
        }
    }
    let stronger = by_terms.and_then(|bound| strengthened(problem, &bound, control(BOUND_PART)));
    stronger.into_iter().for_each(|value| board.raise(value));
}

/// A better bound than the one by terms, by a wavefront or by multipliers, which the checker has added up.
pub(super) fn strengthened(problem: &DataflowProblem, by_terms: &LowerBound, control: Control<'_>) -> Option<i128> {
    let started = Instant::now();
    let front = wavefront(problem, Control { time: control.time.map(|time| time / 3), ..control });
    let front = front.and_then(|front| verify_wavefront(problem, &front).ok());
    let control = Control { time: control.time.map(|time| time.saturating_sub(started.elapsed())), ..control };
    let found = multipliers(problem, by_terms, control).filter(|found| found.least > by_terms.value);
    let found = found.and_then(|found| verify_multipliers(problem, &found).ok());
    front.max(found).filter(|value| *value > by_terms.value)
}
