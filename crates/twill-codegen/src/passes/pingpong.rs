//! Ping-pong on the tensor core: a group issues its MMAs of an interval without another group's in between, in the order
//! in which the schedule has them.
//!
//! The schedule orders the MMAs of an interval; where those of every group stand together, they are the group's slot:
//! the group waits at its named barrier before the first of them and arrives at the next group's after the last. The
//! last group opens the first group's first slot when the kernel begins. All groups have as many slots: one for every
//! window in which one of their MMAs exists, `T` plus the stages that a slot spans.

use crate::builder::kernel::KernelBuilder;
use crate::builder::planned::{PingPong, PingPongSlot};
use crate::error::Error;
use crate::ir::NamedBarrierId;
use twill_graph::{GroupId, OpId};
use twill_triton::tile::TileOpKind;

/// The pass.
///
/// Before: the loops' steps are in order. After: where every group's MMAs of an interval stand together, groups have named barriers
/// at which they alternate; where not, or without the option, nothing has changed.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    builder.plan_pingpong();
    Ok(())
}

impl KernelBuilder<'_> {
    /// The ping-pong order of all loops; `None` where groups' MMAs are mixed, or loops disagree.
    pub fn pingpong(&self) -> Option<PingPong> {
        let mut order: Option<Vec<GroupId>> = None;
        let mut slots = Vec::new();
        for index in 0..self.loops.len() {
            let mut of_loop = self.slots(index)?;
            // The first loop says who begins; the slots of later ones must follow each other in the same order.
            if let Some(first) = order.as_ref().and_then(|o| o.first()) {
                let begins = of_loop.iter().position(|(g, _)| g == first)?;
                of_loop.rotate_left(begins);
            }
            let groups: Vec<GroupId> = of_loop.iter().map(|(g, _)| *g).collect();
            if order.as_ref().is_some_and(|o| *o != groups) {
                return None;
            }
            order = Some(groups);
            slots.push(of_loop);
        }
        order.filter(|o| o.len() > 1).map(|order| PingPong { order, slots })
    }

    fn slots(&self, index: usize) -> Option<Vec<(GroupId, Vec<OpId>)>> {
        let facts = &self.loops[index];
        let interval = facts.schedule.interval.0.max(1);
        let is_dot = |op: &OpId| facts.tile_operation(*op).is_some_and(|o| matches!(o.kind, TileOpKind::Dot { .. }));
        let mut dots: Vec<OpId> = facts.problem.graph().op_ids().filter(is_dot).collect();
        // The tensor core is not shared in turns by who waits for its MMAs at once.
        if !dots.iter().all(|op| facts.is_wgmma(self.module, *op)) {
            return None;
        }
        let cycle = |op: OpId| facts.schedule.placement(op).cycle.0;
        dots.sort_by_key(|op| cycle(*op).rem_euclid(interval));
        let mut slots: Vec<(GroupId, Vec<OpId>)> = Vec::new();
        for op in dots {
            match slots.last_mut() {
                Some((group, ops)) if *group == facts.group(op) => ops.push(op),
                _ => slots.push((facts.group(op), vec![op])),
            }
        }
        // A slot may begin in one interval and end in the next.
        if slots.len() > 1 && slots.first().map(|r| r.0) == slots.last().map(|r| r.0) {
            let (_, mut ops) = slots.pop()?;
            ops.append(&mut slots[0].1);
            slots[0].1 = ops;
        }
        let mut groups: Vec<GroupId> = slots.iter().map(|r| r.0).collect();
        groups.sort();
        groups.dedup();
        if groups.len() != slots.len() {
            return None;
        }
        // Each group's code must have the whole slot in one body, and all span as many stages.
        let mut spans = Vec::new();
        for (group, ops) in &slots {
            let warp = facts.program.warps.iter().find(|w| w.group == *group)?;
            let issued: Vec<(OpId, i64)> = warp
                .steady
                .iter()
                .filter_map(|s| match s {
                    crate::passes::steps::program::Step::Issue {
                        op,
                        iteration: crate::passes::steps::program::Iteration::Current(n),
                        ..
                    } => Some((*op, *n)),
                    _ => None,
                })
                .filter(|(op, _)| ops.contains(op))
                .collect();
            let in_order: Vec<OpId> = issued.iter().map(|(op, _)| *op).collect();
            if in_order != *ops {
                return None;
            }
            let (least, most) = (issued.iter().map(|i| i.1).min()?, issued.iter().map(|i| i.1).max()?);
            spans.push(most - least);
        }
        if spans.iter().any(|s| *s != spans[0]) {
            return None;
        }
        // Who issues first in the first iteration has the first slot.
        let first = slots
            .iter()
            .enumerate()
            .min_by_key(|(_, (_, ops))| ops.iter().map(|op| cycle(*op)).min())
            .map(|(k, _)| k)?;
        slots.rotate_left(first);
        Some(slots)
    }

    /// Adds the barriers of the ping-pong.
    pub fn plan_pingpong(&mut self) {
        self.pingpong = if self.options.pingpong { self.pingpong() } else { None };
        let Some(pingpong) = &self.pingpong else { return };
        let name = |g: &GroupId| (format!("pingpong_{}", g.index()), 2);
        self.program.named_barriers = pingpong.order.iter().map(name).collect();
    }

    /// The named barriers of a group's slot and of the next group's, for an MMA: before it, and after it if it is the last.
    pub fn ping_pong_slot(&self, index: usize, group: GroupId, op: OpId) -> Option<PingPongSlot> {
        let pingpong = self.pingpong.as_ref()?;
        let number = pingpong.order.iter().position(|g| *g == group)?;
        let (_, ops) = pingpong.slots.get(index)?.iter().find(|(g, _)| *g == group)?;
        let position = ops.iter().position(|o| *o == op)?;
        let id = NamedBarrierId::at;
        Some(PingPongSlot { position, own: id(number), next: id((number + 1) % pingpong.order.len()) })
    }

    /// The barrier at which a group opens the first slot when the kernel begins.
    pub fn first_slot(&self, group: GroupId) -> Option<NamedBarrierId> {
        let pingpong = self.pingpong.as_ref()?;
        (pingpong.order.last() == Some(&group)).then_some(NamedBarrierId(0))
    }
}
