//! Loads whose slots are guarded by the barriers of another: one full and one empty barrier for all that an iteration loads
//! at once, as CUTLASS has them for a stage (`PipelineTmaAsync`).
//!
//! Each ring of its own costs a group that reads it a wait and an arrival in every iteration, and the group that loads the
//! same again, with cursors besides: some 15 instructions on either side. Operands of one MMA come and go together, and
//! vectors, such as scales, may come early and go late: their slots are small. Others keep barriers of their own: values come
//! as early as one by one they can.

use crate::passes::steps::scheduled_graph::ScheduledGraph;
use std::collections::{BTreeMap, BTreeSet};
use twill_graph::{GroupId, OpId, Storage};

/// Bytes of a slot, at most, whose longer life costs no memory that matters.
const SMALL: u64 = 2048;

/// Which loads share barriers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SharedBarriers {
    /// From a load to the one whose barriers guard it.
    leaders: BTreeMap<OpId, OpId>,
}

/// A load that may share.
struct Load {
    op: OpId,
    group: GroupId,
    readers: BTreeSet<OpId>,
    /// Groups that read it.
    groups: BTreeSet<GroupId>,
    time: i64,
    /// When the last reader is over.
    over: i64,
    /// When the first begins.
    first: i64,
    bytes: u64,
}

/// A load whose barriers guard others, and from when to when slots of all of them are in use.
struct Leading<'l> {
    load: &'l Load,
    time: i64,
    over: i64,
}

impl<'l> Leading<'l> {
    /// The same with another load; `None` where that has to have barriers of its own.
    fn joined(&self, load: &Load, scheduled: &ScheduledGraph<'_>, ring_depth: u32) -> Option<Leading<'l>> {
        let leader = self.load;
        let (time, over) = (load.time.min(self.time), load.over.max(self.over));
        let depth = scheduled.copies(over - time);
        let own = |load: &Load| scheduled.copies(load.over - load.time).max(ring_depth);
        let is_small = load.bytes <= SMALL;
        let fits = depth <= own(leader) && (is_small || depth <= own(load));
        let is_together = is_small || !load.readers.is_disjoint(&leader.readers);
        // Groups that wait for each other's operands run in step: a GEMM of two groups is 3 to 10 % slower (H100).
        let is_read_there = match is_small {
            true => load.groups.is_subset(&leader.groups),
            false => load.groups == leader.groups,
        };
        let joins = leader.group == load.group && is_read_there && fits && is_together;
        joins.then_some(Leading { load: leader, time, over })
    }
}

impl SharedBarriers {
    /// Those of a schedule whose rings have at least `ring_depth` slots.
    pub(crate) fn of(scheduled: &ScheduledGraph<'_>, ring_depth: u32) -> SharedBarriers {
        let loads: Vec<Load> = scheduled.graph.op_ids().filter_map(|op| Load::of(scheduled, op)).collect();
        let mut shared = SharedBarriers::default();
        // Those that more groups read first, then the larger ones: others join them.
        let mut order: Vec<&Load> = loads.iter().collect();
        order.sort_by_key(|load| (std::cmp::Reverse((load.groups.len(), load.bytes)), load.op));
        let mut leading: Vec<Leading<'_>> = Vec::new();
        for load in order {
            let joined = |k: usize| Some((k, leading[k].joined(load, scheduled, ring_depth)?));
            let nearest = (0..leading.len()).filter_map(joined).min_by_key(|(k, _)| {
                let leader = leading[*k].load;
                (load.readers.is_disjoint(&leader.readers), (load.first - leader.first).abs(), leader.op)
            });
            match nearest {
                Some((k, stage)) => {
                    shared.leaders.insert(load.op, stage.load.op);
                    leading[k] = stage;
                }
                None => leading.push(Leading { load, time: load.time, over: load.over }),
            }
        }
        shared
    }

    /// The load whose barriers guard a load: itself, unless it shares.
    pub(crate) fn leader(&self, op: OpId) -> OpId {
        self.leaders.get(&op).copied().unwrap_or(op)
    }

    /// Itself, and those that its barriers guard besides.
    pub(crate) fn guarded(&self, op: OpId) -> impl Iterator<Item = OpId> + '_ {
        let others = self.leaders.iter().filter(move |(_, leader)| **leader == op).map(|(other, _)| *other);
        std::iter::once(op).chain(others)
    }
}

impl Load {
    fn of(scheduled: &ScheduledGraph<'_>, op: OpId) -> Option<Load> {
        let operation = scheduled.operation(op);
        let Storage::Shared(bytes) = operation.storage else { return None };
        // A load of an address that is loaded, or in an order with others, has its own time.
        let is_bound = |d: &&twill_graph::Dependence| d.to == op || (d.from == op && !d.carries_value);
        if !operation.streaming || scheduled.graph.dependences().iter().any(|d| is_bound(&d)) {
            return None;
        }
        let uses: Vec<_> = scheduled.uses(op).collect();
        let is_plain = |d: &&twill_graph::Dependence| d.distance == 0 && scheduled.crosses(d);
        if uses.is_empty() || !uses.iter().all(is_plain) {
            return None;
        }
        let over = uses.iter().map(|d| scheduled.consumer_time(d) + scheduled.operation(d.to).completion().0).max()?;
        Some(Load {
            op,
            group: scheduled.group(op),
            readers: uses.iter().map(|d| d.to).collect(),
            groups: uses.iter().map(|d| scheduled.group(d.to)).collect(),
            time: scheduled.time(op),
            over,
            first: uses.iter().map(|d| scheduled.consumer_time(d)).min()?,
            bytes: bytes.0,
        })
    }
}
