//! How much of a memory is live in each cycle (docs/model.md, "Live values, folded", "Consumer registers", "Hand-off
//! buffers", "Rings").
//!
//! In the steady state it is what the model counts. Before it, what iterations before the first would have made for
//! those that are run is live from cycle 0: the loop's initial values. Towards the end, results live as long as if the
//! loop went on.

use super::Run;
use std::collections::BTreeMap;
use twill_graph::{Dependence, GroupId, OpId, Storage};

/// Of initial values, no more iterations than this are counted.
const MOST_BEFORE: i64 = 1024;

/// What a value may live in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Registers of a group, in words of whole tiles.
    Registers(GroupId),
    /// Shared memory in bytes, with rings and with what is reserved.
    Shared,
    /// Tensor memory in columns, with what is reserved.
    Tensor,
}

/// `(cycle, amount)`: from this cycle on so much is live; the first is at cycle 0, and all are before `end`.
pub(crate) fn steps(run: &Run<'_>, place: Place, end: i64) -> Vec<(i64, u64)> {
    let mut changes: BTreeMap<i64, i128> = BTreeMap::new();
    let mut live = |from: i64, to: i64, amount: u64| {
        let (from, to) = (from.clamp(0, end), to.clamp(0, end));
        if amount > 0 && from < to {
            *changes.entry(from).or_default() += i128::from(amount);
            *changes.entry(to).or_default() -= i128::from(amount);
        }
    };
    live(0, end, always(run, place));
    for op in run.problem.graph().op_ids() {
        values(run, place, op, &mut live);
        consumer_registers(run, place, op, &mut live);
    }
    changes.entry(0).or_default();
    let mut amount = 0_i128;
    let mut steps: Vec<(i64, u64)> = Vec::new();
    for (cycle, change) in changes {
        amount += change;
        if cycle < end && (change != 0 || cycle == 0) {
            steps.push((cycle, u64::try_from(amount).unwrap_or(u64::MAX)));
        }
    }
    steps
}

/// What is taken all the time.
fn always(run: &Run<'_>, place: Place) -> u64 {
    let reserved = run.problem.graph().reserved();
    let rings = || run.schedule.rings.iter().map(|ring| (ring.bytes * u64::from(ring.depth)).0);
    match place {
        Place::Registers(_) => 0,
        Place::Shared => rings().fold(reserved.shared.0, u64::saturating_add),
        Place::Tensor => reserved.tensor.0,
    }
}

/// The result of an operation in its own place, or in the buffer in which it is handed to other groups.
fn values(run: &Run<'_>, place: Place, op: OpId, live: &mut impl FnMut(i64, i64, u64)) {
    let graph = run.problem.graph();
    let operation = graph.operation(op);
    let home = run.group(op);
    let handed_over = matches!((operation.storage, place), (Storage::Registers(_), Place::Shared));
    let amount = match (operation.storage, place) {
        (Storage::Registers(words), Place::Registers(group)) if group == home => words.0,
        (Storage::Registers(words), Place::Shared) => words.0.saturating_mul(4),
        (Storage::Shared(bytes), Place::Shared) if !operation.streaming => bytes.0,
        (Storage::Tensor(columns), Place::Tensor) => columns.0,
        _ => return,
    };
    let read_until = |d: &Dependence| {
        let read = run.schedule.placement(d.to).cycle + run.schedule.interval * d.distance;
        (read + if handed_over { graph.operation(d.to).completion() } else { d.hold }).0
    };
    let counts = |d: &&Dependence| !handed_over || run.group(d.to) != home;
    let reads: Vec<(i64, i64)> =
        graph.uses(op).filter(counts).map(|d| (i64::from(d.distance), read_until(d))).collect();
    let farthest = reads.iter().map(|read| read.0).max().unwrap_or(0).min(MOST_BEFORE);
    for k in -farthest..i64::from(run.iterations) {
        let shift = run.schedule.interval.0 * k;
        let end = reads.iter().filter(|(distance, _)| k + distance >= 0).map(|read| read.1).max();
        if let Some(end) = end {
            let start = if k < 0 { 0 } else { run.schedule.placement(op).cycle.0 + shift };
            live(start, end + shift, amount);
        }
    }
}

/// Copies of other groups' register values for an operation that reads them.
fn consumer_registers(run: &Run<'_>, place: Place, op: OpId, live: &mut impl FnMut(i64, i64, u64)) {
    let graph = run.problem.graph();
    let Place::Registers(group) = place else { return };
    if group != run.group(op) || graph.operation(op).variable_latency || !run.problem.options().consumer_registers {
        return;
    }
    let span = graph.operation(op).span().0;
    let foreign = graph.dependences().iter().filter(|d| d.to == op && d.carries_value && run.group(d.from) != group);
    for words in foreign.map(|d| graph.operation(d.from).register_words().0) {
        for iteration in 0..run.iterations {
            let start = run.event(op, iteration).start;
            live(start, start + span, words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{blackwell_forward, hopper_forward, toy_attention};
    use crate::liveness;

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
            let mut places = vec![
                (
                    Place::Shared,
                    liveness::peak(&problem, &schedule, liveness::Place::Shared) + rings + reserved.shared.0,
                ),
                (Place::Tensor, liveness::peak(&problem, &schedule, liveness::Place::Tensor) + reserved.tensor.0),
            ];
            places.extend(schedule.groups.iter().map(|group| {
                let words = liveness::peak(&problem, &schedule, liveness::Place::Registers(group.id));
                (Place::Registers(group.id), words)
            }));
            for (place, peak) in places {
                let steps = steps(&run, place, run.end());
                assert_eq!(steps[0].0, 0);
                assert_eq!(most(&steps, 6 * schedule.interval.0, schedule.interval.0), peak, "{place:?}");
                assert!(steps.iter().all(|step| step.1 <= peak), "{place:?}: {steps:?}");
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
        assert_eq!(steps(&run, Place::Registers(GroupId::new(1)), run.end())[0], (0, words));
    }
}
