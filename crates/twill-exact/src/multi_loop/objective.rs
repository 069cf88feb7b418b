//! The objective for all loops together after `Σ weight · I`: the same levels as for one loop,
//! each as small as those before allow. Stages: the most of any loop; handoff words and channels:
//! summed; lengths: one loop after the other, those that weigh most first; registers a thread: the
//! most of any group in any loop.

use super::joint::{Candidates, Joint, JointReply};
use crate::bounds;
use crate::constraints::assignment;
use crate::constraints::channels;
use crate::encoding::Candidate;
use crate::encoding::storage::Cap;
use crate::limits::Meter;
use crate::objective::measure;
use batsat::Lit;
use twill_graph::saturate;
use twill_graph::{KernelObjective, MultiLoopProblem, ObjectiveLevel};

/// Stages of the loop that has most.
pub(super) fn stages(joint: &Joint, candidates: &[Candidate]) -> i64 {
    let each = joint.parts.iter().zip(candidates);
    each.map(|(part, candidate)| measure(part, candidate, ObjectiveLevel::Stages)).max().unwrap_or(1)
}

/// A level, and the loop it is about.
type Level = (ObjectiveLevel, Option<usize>);

/// Improves candidates level by level. `work`: effort allowed for each.
pub(super) fn improve(
    kernel: &MultiLoopProblem,
    joint: &mut Joint,
    mut best: Candidates,
    meter: &Meter,
    work: Option<u64>,
) -> (Candidates, Vec<KernelObjective>) {
    let mut heaviest: Vec<usize> = (0..kernel.loops().len()).collect();
    heaviest.sort_by_key(|&k| std::cmp::Reverse(kernel.weights()[k]));
    let all = [ObjectiveLevel::ComputeGroups, ObjectiveLevel::HandoffWords, ObjectiveLevel::Channels];
    let mut levels: Vec<Level> = all.into_iter().map(|level| (level, None)).collect();
    levels.extend(heaviest.into_iter().map(|k| (ObjectiveLevel::Length, Some(k))));
    levels.push((ObjectiveLevel::RegistersPerThread, None));
    let mut values = Vec::new();
    for level in levels {
        meter.allow(work);
        let floor = floor(kernel, joint, level);
        let proved = loop {
            let value = total(joint, &best, level);
            if value <= floor {
                break true;
            }
            let Some(assumption) = at_most(joint, level, value - step(joint, level)) else { break true };
            match joint.solve(&[assumption]) {
                JointReply::Found(candidates) => {
                    joint.engine().unlogged([assumption]);
                    best = candidates;
                }
                JointReply::None => break true,
                JointReply::Stopped => break false,
            }
        };
        let value = total(joint, &best, level);
        if let Some(kept) = at_most(joint, level, value) {
            joint.engine().unlogged([kept]);
        }
        values.push(KernelObjective { level: level.0, index: level.1, value, proved });
    }
    meter.allow(None);
    (best, values)
}

/// The value of a level.
pub(super) fn total(joint: &Joint, candidates: &[Candidate], (level, index): Level) -> i64 {
    let count = |n: usize| saturate::<i64>(n);
    let measured = |k: usize| measure(&joint.parts[k], &candidates[k], level);
    match (level, index) {
        (ObjectiveLevel::ComputeGroups, _) => {
            let groups = joint.parts[0].compute_groups();
            count(groups.iter().filter(|g| candidates.iter().any(|c| c.groups.contains(g))).count())
        }
        (ObjectiveLevel::HandoffWords, _) => saturate::<i64>(joint.handoff_total(candidates)),
        (ObjectiveLevel::Length, Some(k)) => measured(k),
        (ObjectiveLevel::Channels, _) => (0..candidates.len()).map(measured).sum(),
        (ObjectiveLevel::Stages | ObjectiveLevel::Length | ObjectiveLevel::RegistersPerThread, _) => {
            (0..candidates.len()).map(measured).max().unwrap_or(0)
        }
    }
}

/// No smaller value exists.
fn floor(kernel: &MultiLoopProblem, joint: &Joint, (level, index): Level) -> i64 {
    match (level, index) {
        (ObjectiveLevel::Length, Some(k)) => bounds::least_length(&kernel.loops()[k], joint.parts[k].question.interval),
        (ObjectiveLevel::RegistersPerThread, _) => {
            joint.parts[0].problem.resources().registers_for(0).map_or(0, i64::from)
        }
        _ => 0,
    }
}

/// How far values of a level are apart.
fn step(joint: &Joint, (level, _): Level) -> i64 {
    match level {
        ObjectiveLevel::RegistersPerThread => i64::from(joint.parts[0].problem.resources().registers.granularity),
        _ => 1,
    }
}

/// The literal for "at most `most`"; `None` when that says nothing.
fn at_most(joint: &mut Joint, (level, index): Level, most: i64) -> Option<Lit> {
    match (level, index) {
        // Every schedule uses the same.
        (ObjectiveLevel::ComputeGroups, _) if !assignment::is_free(joint.parts[0].problem) => None,
        (ObjectiveLevel::ComputeGroups, _) => {
            // Groups are opened in order, so it is enough to keep the next one closed.
            let groups = joint.parts[0].compute_groups();
            let next = usize::try_from(most).ok().and_then(|i| groups.get(i))?;
            Some(!joint.parts[0].used[next.index()])
        }
        (ObjectiveLevel::HandoffWords, _) => {
            let active = joint.engine().unnamed();
            joint.handoff_words = Some(Cap { most: u64::try_from(most).ok()?, active });
            Some(active)
        }
        (ObjectiveLevel::Channels, _) => {
            let counted: Vec<Lit> = joint.parts.iter().flat_map(|p| p.channels.iter().copied()).collect();
            let most = usize::try_from(most).ok()?;
            let more = channels::more_than(joint.part(0), &counted, most + 1);
            more.last().map(|&l| !l)
        }
        (ObjectiveLevel::Length, Some(k)) => Some(joint.part(k).length_at_most(most)),
        (ObjectiveLevel::RegistersPerThread, _) => {
            let active = joint.engine().unnamed();
            let cap = Cap { most: u64::try_from(most).ok()?, active };
            joint.parts.iter_mut().for_each(|part| part.caps.registers_per_thread = Some(cap));
            Some(active)
        }
        (ObjectiveLevel::Stages | ObjectiveLevel::Length, _) => None,
    }
}
