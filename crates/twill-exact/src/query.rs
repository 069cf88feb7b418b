//! One interval: is there a schedule, for any number of stages?

use crate::bounds;
use crate::encoding::{Candidate, Encoding, Question, Reply};
use crate::limits::Meter;
use crate::modulo;
use twill_graph::{Cycles, Liveness, Problem, RejectionReason, StageWindow};

/// The answer for one interval.
pub(crate) enum Verdict<'p> {
    Found(Box<Found<'p>>),
    /// Proved that there is none with at most `stages` stages, nor with more.
    Excluded {
        stages: u32,
        reason: RejectionReason,
    },
    Stopped,
}

/// A schedule with as few stages as possible.
pub(crate) struct Found<'p> {
    pub(crate) encoding: Encoding<'p>,
    pub(crate) candidate: Candidate,
    /// Fewer stages are proved impossible.
    pub(crate) fewest_stages: bool,
}

/// Asks for a schedule at `interval`, with warps (`joint`) or without.
pub(crate) fn ask<'p>(problem: &'p Problem, interval: i64, joint: bool, meter: &Meter) -> Verdict<'p> {
    if let Some((op, resource)) = bounds::self_conflict(problem, interval).filter(|_| joint) {
        let operation = problem.graph().operation(op).name.clone();
        return Verdict::Excluded { stages: u32::MAX, reason: RejectionReason::SelfConflict { operation, resource } };
    }
    let plan = match stages_to_try(problem, interval, joint, meter) {
        Some(plan) => plan,
        None => return Verdict::Stopped,
    };
    let exact_stages = joint && problem.options().liveness == Liveness::Paper;
    let mut conflicts = 0;
    let question = |stages| Question { interval, stages, joint, exact_stages };
    for &stages in &plan {
        let Some(mut encoding) = Encoding::new(problem, question(stages), meter) else { continue };
        let reply = encoding.solve(&[]);
        conflicts += encoding.engine.conflicts();
        match reply {
            Reply::Stopped => return Verdict::Stopped,
            Reply::None => continue,
            Reply::Found(candidate) => {
                let least = plan.iter().copied().take_while(|s| *s < stages).max().map_or(1, |s| s + 1);
                let found = Found { encoding, candidate, fewest_stages: true };
                return Verdict::Found(Box::new(fewest_stages(problem, question, least, found, meter)));
            }
        }
    }
    let stages = plan.last().copied().unwrap_or(1);
    let reason = if joint { RejectionReason::Search { conflicts } } else { RejectionReason::Throughput { conflicts } };
    Verdict::Excluded { stages, reason }
}

/// Lowers the stages of a schedule that was found with room for more.
fn fewest_stages<'p>(
    problem: &'p Problem,
    question: impl Fn(u32) -> Question,
    least: u32,
    mut found: Found<'p>,
    meter: &Meter,
) -> Found<'p> {
    let interval = found.encoding.question.interval;
    let stages_of = |c: &Candidate| u32::try_from(Cycles(c.length).div_ceil(Cycles(interval))).unwrap_or(u32::MAX);
    for stages in least..found.encoding.question.stages {
        if stages >= stages_of(&found.candidate) {
            // What remains is to forget the stages that nobody uses.
            let most = found.encoding.length_at_most(interval * i64::from(stages_of(&found.candidate)));
            found.encoding.engine.clause([most]);
            break;
        }
        let Some(mut encoding) = Encoding::new(problem, question(stages), meter) else { continue };
        match encoding.solve(&[]) {
            Reply::Found(candidate) => return Found { encoding, candidate, ..found },
            Reply::None => {}
            Reply::Stopped => {
                let most = found.encoding.length_at_most(interval * i64::from(stages_of(&found.candidate)));
                found.encoding.engine.clause([most]);
                return Found { fewest_stages: false, ..found };
            }
        }
    }
    found
}

/// Numbers of stages to try, ascending; the last suffices. `None` when stopped.
fn stages_to_try(problem: &Problem, interval: i64, joint: bool, meter: &Meter) -> Option<Vec<u32>> {
    let options = problem.options();
    if joint && options.stage_window == StageWindow::Paper {
        let shortest = match modulo::shortest_at(problem, interval, meter) {
            Some(shortest) => shortest,
            None if meter.stopped().is_some() => return None,
            None => return Some(Vec::new()),
        };
        let stages = Cycles(shortest.candidate.length).div_ceil(Cycles(interval));
        return Some(vec![u32::try_from(stages).unwrap_or(u32::MAX).max(1)]);
    }
    let enough = bounds::sufficient_stages(problem, interval);
    if joint && options.liveness == Liveness::Paper {
        return Some((1..=enough).collect());
    }
    // Schedules usually have very few stages; the last question is for the proof.
    let few = 3.min(enough);
    Some((1..=few).chain((enough > few).then_some(enough)).collect())
}
