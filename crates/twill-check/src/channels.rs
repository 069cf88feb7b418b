//! Channels: one for every value and every other group that reads it, with the storage of the
//! value and exactly as many copies as are alive at once.
//!
//! Live items: for a streaming load the slots of its ring; for a register value its handoff
//! buffer, from the producer's issue until the last consumer on any other group is over; for a
//! value in shared or tensor memory its life. In a formula: `max(1, ⌈(end − start) / I⌉)`. All
//! channels of one value have the same depth, for they share its copies.

use crate::Violation;
use crate::lives::{Life, handoff_buffer};
use crate::placed::{Placed, amount};
use crate::rejected::Violations;
use crate::rings;
use crate::unroll::most_at_once;
use std::collections::{BTreeMap, BTreeSet};
use twill_graph::{Bytes, Channel, ChannelStorage, GroupId, OpId, Storage};

pub(crate) fn check(placed: &Placed, violations: &mut Violations) {
    let mut required: BTreeMap<OpId, BTreeSet<GroupId>> = BTreeMap::new();
    for d in placed.graph().dependences().iter().filter(|d| d.carries_value) {
        if placed.group(d.from) != placed.group(d.to) {
            required.entry(d.from).or_default().insert(placed.group(d.to));
        }
    }
    let mut listed: BTreeMap<(OpId, GroupId), &Channel> = BTreeMap::new();
    for channel in &placed.schedule.channels {
        let Channel { value, from, to, .. } = *channel;
        let used = required.get(&value).is_some_and(|groups| from == placed.group(value) && groups.contains(&to));
        if !used || listed.insert((value, to), channel).is_some() {
            let known = placed.graph().operations().get(value.index());
            let value = known.map_or_else(|| format!("#{}", value.index()), |o| o.name.clone());
            violations.push(Violation::UnusedChannel { value, from, to });
        }
    }
    for (value, groups) in required {
        let Some((storage, depth)) = copies(placed, value) else { continue };
        for to in groups {
            let name = || placed.name(value);
            let Some(channel) = listed.get(&(value, to)) else {
                violations.push(Violation::MissingChannel { value: name(), from: placed.group(value), to });
                continue;
            };
            if channel.storage != storage {
                let given = channel.storage;
                violations.push(Violation::ChannelKind { value: name(), to, required: storage, given });
            }
            if i128::from(channel.depth) != depth {
                let (required, given) = (amount(depth), channel.depth);
                violations.push(Violation::ChannelDepth { value: name(), to, required, given });
            }
        }
    }
}

/// Where copies of `value` are kept for other groups, and how many.
fn copies(placed: &Placed, value: OpId) -> Option<(ChannelStorage, i128)> {
    let operation = placed.graph().operation(value);
    let alive = |life: Life| most_at_once(value, life.start, life.end(placed.interval), placed.interval).max(1);
    Some(match operation.storage {
        Storage::None => return None,
        Storage::Registers(words) => {
            let bytes = Bytes(words.0.saturating_mul(4));
            (ChannelStorage::Handoff(bytes), handoff_buffer(placed, value).map_or(1, alive))
        }
        Storage::Shared(bytes) if operation.streaming => (ChannelStorage::Shared(bytes), rings::slots(placed, value)),
        Storage::Shared(bytes) => (ChannelStorage::Shared(bytes), alive(Life::of_result(placed, value, bytes.0))),
        Storage::Tensor(columns) => (ChannelStorage::Tensor(columns), alive(Life::of_result(placed, value, columns.0))),
    })
}
