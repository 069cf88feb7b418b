//! The objective after the interval and the stages: compute groups, handoff words, channels,
//! length, registers a thread, each as small as those before allow.
//!
//! Every level descends from the best schedule so far: ask for one less, under an assumption, until
//! there is none; that last answer is the proof.

use crate::constraints::{assignment, channels, handoff, registers};
use crate::encoding::storage::Cap;
use crate::encoding::{Candidate, Encoding, Reply};
use crate::limits::Meter;
use batsat::Lit;
use twill_graph::saturate;
use twill_graph::{ObjectiveLevel, ObjectiveValue};

/// Levels after stages, in their order.
const LEVELS: [ObjectiveLevel; 5] = [
    ObjectiveLevel::ComputeGroups,
    ObjectiveLevel::HandoffWords,
    ObjectiveLevel::Channels,
    ObjectiveLevel::Length,
    ObjectiveLevel::RegistersPerThread,
];

/// Improves a candidate level by level. `least_length`: no shorter schedule exists.
/// `work`: effort allowed for each level.
pub(crate) fn improve(
    e: &mut Encoding,
    mut best: Candidate,
    least_length: i64,
    meter: &Meter,
    work: Option<u64>,
) -> (Candidate, Vec<ObjectiveValue>) {
    let mut values = Vec::new();
    for level in LEVELS {
        meter.allow(work);
        let floor = match level {
            ObjectiveLevel::Length => least_length,
            ObjectiveLevel::RegistersPerThread => e.problem.resources().registers_for(0).map_or(0, i64::from),
            _ => 0,
        };
        let proved = loop {
            let value = measure(e, &best, level);
            if value <= floor {
                break true;
            }
            let Some(assumption) = below(e, level, value) else { break true };
            match e.solve(&[assumption]) {
                Reply::Found(candidate) => {
                    e.engine.unlogged([assumption]);
                    best = candidate;
                }
                Reply::None => break true,
                Reply::Stopped => break false,
            }
        };
        let value = measure(e, &best, level);
        keep(e, level, value);
        values.push(ObjectiveValue { level, value, proved });
    }
    meter.allow(None);
    (best, values)
}

/// The value of a level.
pub(crate) fn measure(e: &Encoding, candidate: &Candidate, level: ObjectiveLevel) -> i64 {
    let count = |n: usize| saturate::<i64>(n);
    match level {
        ObjectiveLevel::Stages => {
            twill_graph::Cycles(candidate.length).div_ceil(twill_graph::Cycles(e.question.interval)).max(1)
        }
        ObjectiveLevel::ComputeGroups => {
            count(e.compute_groups().iter().filter(|g| candidate.groups.contains(g)).count())
        }
        ObjectiveLevel::HandoffWords => saturate::<i64>(handoff::total(e, candidate)),
        ObjectiveLevel::Channels => count(channels::pairs(e.problem, candidate).len()),
        ObjectiveLevel::Length => candidate.length,
        ObjectiveLevel::RegistersPerThread => {
            let needed = registers::needed(e, candidate);
            needed.iter().filter_map(|n| n.1).max().map_or(0, i64::from)
        }
    }
}

/// The literal for "less than `value`"; `None` when that is impossible.
fn below(e: &mut Encoding, level: ObjectiveLevel, value: i64) -> Option<Lit> {
    match level {
        ObjectiveLevel::Stages => None,
        // Every schedule uses the same.
        ObjectiveLevel::ComputeGroups if !assignment::is_free(e.problem) => None,
        ObjectiveLevel::ComputeGroups => {
            // Groups are opened in order, so it is enough to keep the last one closed.
            let groups = e.compute_groups();
            let last = usize::try_from(value - 1).ok().and_then(|i| groups.get(i))?;
            Some(!e.used[last.index()])
        }
        ObjectiveLevel::HandoffWords => {
            let active = e.engine.unnamed();
            e.caps.handoff_words = Some(Cap { most: u64::try_from(value - 1).ok()?, active });
            Some(active)
        }
        ObjectiveLevel::Channels => {
            let most = usize::try_from(value).ok()?;
            let counted = e.channels.clone();
            let more = channels::more_than(e, &counted, most);
            more.last().map(|&l| !l)
        }
        ObjectiveLevel::Length => Some(e.length_at_most(value - 1)),
        ObjectiveLevel::RegistersPerThread => {
            let granule = i64::from(e.problem.resources().registers.granularity);
            let active = e.engine.unnamed();
            e.caps.registers_per_thread = Some(Cap { most: u64::try_from(value - granule).ok()?, active });
            Some(active)
        }
    }
}

/// Holds a level at its value while the next ones are improved.
fn keep(e: &mut Encoding, level: ObjectiveLevel, value: i64) {
    let truth = e.engine.truth();
    let most = saturate::<u64>(value);
    match level {
        ObjectiveLevel::Stages => {}
        ObjectiveLevel::HandoffWords => e.caps.handoff_words = Some(Cap { most, active: truth }),
        ObjectiveLevel::RegistersPerThread => e.caps.registers_per_thread = Some(Cap { most, active: truth }),
        ObjectiveLevel::ComputeGroups | ObjectiveLevel::Channels | ObjectiveLevel::Length => {
            if let Some(literal) = below(e, level, value + 1) {
                e.engine.unlogged([literal]);
            }
        }
    }
}
