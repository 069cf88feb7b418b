//! The live amount of a memory in each cycle (docs/model.md, "Live values, folded", "Consumer registers", "Handoff
//! buffers", "Rings").
//!
//! In the steady state it is what the model counts. Before it, what iterations before the first would have made for
//! those that are run is live from cycle 0: the loop's initial values. Towards the end, results live as long as if the
//! loop went on.

use super::Run;
use crate::liveness::{Kept, MemorySpace, kept};
use std::collections::BTreeMap;
use twill_graph::saturate;

/// The most iterations of initial values that are counted.
const MOST_BEFORE: i64 = 1024;

/// `(cycle, amount)`: from this cycle on this much is live, of shared and tensor memory with rings and with what is
/// reserved; the first is at cycle 0, and all are before `end`.
pub(crate) fn steps(run: &Run<'_>, space: MemorySpace, end: i64) -> Vec<(i64, u64)> {
    let mut changes: BTreeMap<i64, i128> = BTreeMap::new();
    let mut live = |from: i64, to: i64, amount: u64| {
        let (from, to) = (from.clamp(0, end), to.clamp(0, end));
        if amount > 0 && from < to {
            *changes.entry(from).or_default() += i128::from(amount);
            *changes.entry(to).or_default() -= i128::from(amount);
        }
    };
    live(0, end, always(run, space));
    for kept in kept(run.problem, run.schedule, space) {
        iterations(run, &kept, &mut live);
    }
    changes.entry(0).or_default();
    let mut amount = 0_i128;
    let mut steps: Vec<(i64, u64)> = Vec::new();
    for (cycle, change) in changes {
        amount += change;
        if cycle < end && (change != 0 || cycle == 0) {
            steps.push((cycle, saturate::<u64>(amount)));
        }
    }
    steps
}

/// The storage taken all the time: rings, and the reserved part.
fn always(run: &Run<'_>, space: MemorySpace) -> u64 {
    let reserved = run.problem.graph().reserved();
    let rings = || run.schedule.rings.iter().map(|ring| (ring.bytes * u64::from(ring.depth)).0);
    match space {
        MemorySpace::Registers(_) => 0,
        MemorySpace::Shared => rings().fold(reserved.shared.0, u64::saturating_add),
        MemorySpace::Tensor => reserved.tensor.0,
    }
}

/// The values of iterations, those before the first included.
fn iterations(run: &Run<'_>, kept: &Kept, live: &mut impl FnMut(i64, i64, u64)) {
    let farthest = kept.reads.iter().map(|read| i64::from(read.distance)).max().unwrap_or(0).min(MOST_BEFORE);
    for k in -farthest..i64::from(run.iterations) {
        let shift = run.schedule.interval.0 * k;
        let counts = kept.reads.iter().filter(|read| k + i64::from(read.distance) >= 0);
        if let Some(end) = counts.map(|read| read.until).max() {
            let start = if k < 0 { 0 } else { kept.start + shift };
            live(start, end + shift, kept.amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{blackwell_forward, hopper_forward, toy_attention};
    use crate::liveness;
    use twill_graph::{Dependence, GroupId, OpId};

    /// The most that is live in the interval which begins at `from`.
    fn most(steps: &[(i64, u64)], from: i64, interval: i64) -> u64 {
        let before = steps.iter().rev().find(|step| step.0 <= from);
        let within = steps.iter().filter(|step| from < step.0 && step.0 < from + interval);
        before.into_iter().chain(within).map(|step| step.1).max().unwrap()
    }

    #[test]
    fn the_steady_state_reaches_the_peak_of_the_model_and_nothing_passes_it() {
        for (problem, schedule) in [hopper_forward(), blackwell_forward(), toy_attention()] {
            let run = Run::new(&problem, &schedule, 12);
            let reserved = problem.graph().reserved();
            let rings: u64 = schedule.rings.iter().map(|ring| ring.bytes.0 * u64::from(ring.depth)).sum();
            let mut spaces = vec![
                (
                    MemorySpace::Shared,
                    liveness::peak(&problem, &schedule, MemorySpace::Shared) + rings + reserved.shared.0,
                ),
                (MemorySpace::Tensor, liveness::peak(&problem, &schedule, MemorySpace::Tensor) + reserved.tensor.0),
            ];
            spaces.extend(schedule.groups.iter().map(|group| {
                let words = liveness::peak(&problem, &schedule, MemorySpace::Registers(group.id));
                (MemorySpace::Registers(group.id), words)
            }));
            for (space, peak) in spaces {
                let steps = steps(&run, space, run.end());
                assert_eq!(steps[0].0, 0);
                assert_eq!(most(&steps, 6 * schedule.interval.0, schedule.interval.0), peak, "{space:?}");
                assert!(steps.iter().all(|step| step.1 <= peak), "{space:?}: {steps:?}");
            }
        }
    }

    #[test]
    fn initial_values_are_live_from_the_first_cycle() {
        let (problem, schedule) = hopper_forward();
        let run = Run::new(&problem, &schedule, 3);
        let carried =
            |d: &&Dependence| d.distance > 0 && run.group(d.from).index() == 1 && run.group(d.to).index() == 1;
        let mut values: Vec<OpId> = problem.graph().dependences().iter().filter(carried).map(|d| d.from).collect();
        values.sort();
        values.dedup();
        let words: u64 = values.iter().map(|op| problem.graph().operation(*op).register_words().0).sum();
        assert!(words > 8_000, "the accumulator is among them");
        assert_eq!(steps(&run, MemorySpace::Registers(GroupId::new(1)), run.end())[0], (0, words));
    }
}
