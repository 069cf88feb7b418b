//! Taking pingpong on the tensor core (ping-pong): a group issues its MMAs of an interval without another group's in
//! between, in the order in which the schedule has them.
//!
//! The schedule orders the MMAs of an interval; where those of every group stand together, each group waits for its
//! turn at a named barrier before the first and passes the turn on after the last. The first group's first turn is
//! given by the last group when the kernel begins. All groups take as many pingpong: one for every window in
//! which one of their MMAs exists, `T` plus the stages that a turn spans.

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
    /// The pingpong of all loops; `None` where groups' MMAs are mixed, or loops disagree.
    pub fn pingpong(&self) -> Option<PingPong> {
        let mut order: Option<Vec<GroupId>> = None;
        let mut runs = Vec::new();
        for index in 0..self.loops.len() {
            let mut of_loop = self.runs(index)?;
            // The first loop says who begins; the pingpong of later ones must follow each other in the same order.
            if let Some(first) = order.as_ref().and_then(|o| o.first()) {
                let begins = of_loop.iter().position(|(g, _)| g == first)?;
                of_loop.rotate_left(begins);
            }
            let groups: Vec<GroupId> = of_loop.iter().map(|(g, _)| *g).collect();
            if order.as_ref().is_some_and(|o| *o != groups) {
                return None;
            }
            order = Some(groups);
            runs.push(of_loop);
        }
        order.filter(|o| o.len() > 1).map(|order| PingPong { order, runs })
    }

    fn runs(&self, index: usize) -> Option<Vec<(GroupId, Vec<OpId>)>> {
        let facts = &self.loops[index];
        let interval = facts.schedule.interval.0.max(1);
        let is_dot = |op: &OpId| facts.tile_operation(*op).is_some_and(|o| matches!(o.kind, TileOpKind::Dot { .. }));
        let mut dots: Vec<OpId> = facts.problem.graph().op_ids().filter(is_dot).collect();
        let cycle = |op: OpId| facts.schedule.placement(op).cycle.0;
        dots.sort_by_key(|op| cycle(*op).rem_euclid(interval));
        let mut runs: Vec<(GroupId, Vec<OpId>)> = Vec::new();
        for op in dots {
            match runs.last_mut() {
                Some((group, ops)) if *group == facts.group(op) => ops.push(op),
                _ => runs.push((facts.group(op), vec![op])),
            }
        }
        // A turn may begin in one interval and end in the next.
        if runs.len() > 1 && runs.first().map(|r| r.0) == runs.last().map(|r| r.0) {
            let (_, mut ops) = runs.pop()?;
            ops.append(&mut runs[0].1);
            runs[0].1 = ops;
        }
        let mut groups: Vec<GroupId> = runs.iter().map(|r| r.0).collect();
        groups.sort();
        groups.dedup();
        if groups.len() != runs.len() {
            return None;
        }
        // Each group's code must have the whole turn in one body, and all span as many stages.
        let mut spans = Vec::new();
        for (group, ops) in &runs {
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
        // Who issues first in the first iteration has the first turn.
        let first = runs
            .iter()
            .enumerate()
            .min_by_key(|(_, (_, ops))| ops.iter().map(|op| cycle(*op)).min())
            .map(|(k, _)| k)?;
        runs.rotate_left(first);
        Some(runs)
    }

    /// Adds the barriers of the pingpong.
    pub fn plan_pingpong(&mut self) {
        self.pingpong = if self.options.pingpong { self.pingpong() } else { None };
        let Some(pingpong) = &self.pingpong else { return };
        let name = |g: &GroupId| (format!("pingpong_{}", g.index()), 2);
        self.program.named_barriers = pingpong.order.iter().map(name).collect();
    }

    /// The named barriers of a group's turn and of the next one's, for an MMA: before it, and after it if it is the last.
    pub fn turn(&self, index: usize, group: GroupId, op: OpId) -> Option<PingPongSlot> {
        let pingpong = self.pingpong.as_ref()?;
        let place = pingpong.order.iter().position(|g| *g == group)?;
        let (_, ops) = pingpong.runs.get(index)?.iter().find(|(g, _)| *g == group)?;
        let position = ops.iter().position(|o| *o == op)?;
        let id = NamedBarrierId::at;
        Some(PingPongSlot { position, own: id(place), next: id((place + 1) % pingpong.order.len()) })
    }

    /// The barrier at which a group gives the first turn when the kernel begins.
    pub fn first_slot(&self, group: GroupId) -> Option<NamedBarrierId> {
        let pingpong = self.pingpong.as_ref()?;
        (pingpong.order.last() == Some(&group)).then_some(NamedBarrierId(0))
    }
}
