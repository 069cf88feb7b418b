//! Registers, shared and tensor memory of a schedule that is still being built: what operations in
//! place are known to hold, folded (docs/model.md), is a lower bound of what the whole will hold.

use std::collections::BTreeMap;
use twill_graph::saturate;
use twill_graph::{Cycles, Dependence, GroupId, GroupRole, OpId, Problem, Storage};

/// The demands of a problem under one assignment.
pub(super) struct Room<'p> {
    problem: &'p Problem,
    groups: &'p [GroupId],
    interval: i64,
    /// For every operation the values it reads, and those who read its own.
    inputs: Vec<Vec<&'p Dependence>>,
    readers: Vec<Vec<&'p Dependence>>,
    /// The pools on which an operation's issue cycle has an influence, and what they hold.
    near: Vec<Vec<Pool>>,
    owners: BTreeMap<Pool, Vec<OpId>>,
}

/// Something held in `[start, start + life)`, again in every interval.
struct Held {
    owner: OpId,
    /// Whose issue ends it.
    last: OpId,
    weight: u64,
    start: i64,
    life: i64,
}

/// One memory, or the registers of one group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pool {
    Registers(GroupId),
    Shared,
    Tensor,
}

/// Issue cycles so far.
pub(super) type Times = [Option<i64>];

impl<'p> Room<'p> {
    pub(super) fn new(problem: &'p Problem, groups: &'p [GroupId], interval: i64) -> Room<'p> {
        let count = problem.graph().operations().len();
        let (mut inputs, mut readers) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for d in problem.graph().dependences().iter().filter(|d| d.carries_value) {
            inputs[d.to.index()].push(d);
            readers[d.from.index()].push(d);
        }
        let mut room = Room { problem, groups, interval, inputs, readers, near: Vec::new(), owners: BTreeMap::new() };
        for op in problem.graph().op_ids() {
            for pool in room.pools_of(op) {
                room.owners.entry(pool).or_default().push(op);
            }
        }
        room.near = problem.graph().op_ids().map(|op| room.pools_near(op)).collect();
        room
    }

    /// Where an operation, its result or its operands take room.
    fn pools_of(&self, op: OpId) -> Vec<Pool> {
        let graph = self.problem.graph();
        let (group, elsewhere) = (self.groups[op.index()], |v: OpId| self.groups[v.index()] != self.groups[op.index()]);
        let mut pools = match graph.operation(op).storage {
            Storage::Registers(_) if self.readers[op.index()].iter().any(|d| elsewhere(d.to)) => {
                vec![Pool::Registers(group), Pool::Shared]
            }
            Storage::Registers(_) => vec![Pool::Registers(group)],
            Storage::Shared(_) => vec![Pool::Shared],
            Storage::Tensor(_) => vec![Pool::Tensor],
            Storage::None => Vec::new(),
        };
        if self.inputs[op.index()].iter().any(|d| elsewhere(d.from)) {
            pools.push(Pool::Registers(group));
        }
        pools.sort_unstable();
        pools.dedup();
        pools
    }

    fn pools_near(&self, op: OpId) -> Vec<Pool> {
        let near = self.inputs[op.index()].iter().map(|d| d.from).chain([op]);
        let mut pools: Vec<Pool> = near.flat_map(|v| self.pools_of(v)).collect();
        pools.sort_unstable();
        pools.dedup();
        pools
    }

    /// An operation to move so that there is room again, other than `keep`; `Ok` when there is room
    /// for all that `keep` has to do with, `Err(None)` when nothing can be moved.
    pub(super) fn check(&self, times: &Times, keep: OpId, worth: &[u64]) -> Result<(), Option<OpId>> {
        for &pool in &self.near[keep.index()] {
            let held = self.held(times, pool);
            let (peak, at) = self.peak(&held);
            if peak > self.capacity(pool) {
                return Err(self.culprit(&held, at, keep, worth));
            }
        }
        Ok(())
    }

    /// Returns whether everything fits, the register file as a whole too.
    pub(super) fn fits(&self, times: &Times) -> bool {
        let resources = self.problem.resources();
        let mut file = 0_u64;
        for group in self.problem.group_ids().filter(|g| self.groups.contains(g)) {
            let (peak, _) = self.peak(&self.held(times, Pool::Registers(group)));
            if peak > self.capacity(Pool::Registers(group)) {
                return false;
            }
            if self.problem.groups()[group.index()].role == GroupRole::Compute {
                let Some(registers) = resources.registers_for(peak) else { return false };
                file += resources.compute_group_cost(registers);
            }
        }
        let memory = |pool| self.peak(&self.held(times, pool)).0 <= self.capacity(pool);
        file <= resources.compute_register_budget() && memory(Pool::Shared) && memory(Pool::Tensor)
    }

    fn capacity(&self, pool: Pool) -> u64 {
        let resources = self.problem.resources();
        let reserved = self.problem.graph().reserved();
        match pool {
            Pool::Registers(group) => match self.problem.fixed_group(self.problem.groups()[group.index()].role) {
                Some(fixed) => resources.tile_words(fixed.warps, fixed.registers_per_thread),
                None => self.share(),
            },
            Pool::Shared => resources.shared_memory.0.saturating_sub(reserved.shared.0),
            Pool::Tensor => resources.tensor_memory.0.saturating_sub(reserved.tensor.0),
        }
    }

    /// Words of a compute group: what a thread can address, or an equal share of the file.
    fn share(&self) -> u64 {
        let resources = self.problem.resources();
        let file = resources.registers;
        let compute = |g: &GroupId| self.problem.groups()[g.index()].role == GroupRole::Compute;
        let used = self.problem.group_ids().filter(|g| compute(g) && self.groups.contains(g)).count() as u64;
        let each = resources.compute_register_budget() / used.max(1) / resources.compute_group_cost(1).max(1);
        let granule = u64::from(file.granularity);
        let granted = saturate::<u32>(each / granule * granule);
        resources.tile_words(resources.compute_groups.warps, granted)
    }

    fn held(&self, times: &Times, pool: Pool) -> Vec<Held> {
        let graph = self.problem.graph();
        let mut held = Vec::new();
        for &owner in self.owners.get(&pool).into_iter().flatten() {
            let Some(start) = times[owner.index()] else { continue };
            let (op, group) = (graph.operation(owner), self.groups[owner.index()]);
            let mut hold = |weight: u64, start: i64, end: Option<(i64, OpId)>| {
                if let Some((end, last)) = end.filter(|(end, _)| weight > 0 && *end > start) {
                    held.push(Held { owner, last, weight, start, life: end - start });
                }
            };
            match (op.storage, pool) {
                (Storage::Registers(words), Pool::Registers(g)) if g == group => {
                    hold(words.0, start, self.end(times, owner, |d| Some(d.hold)));
                }
                (Storage::Registers(words), Pool::Shared) => {
                    let apart = |d: &Dependence| {
                        let elsewhere = self.groups[d.to.index()] != group;
                        elsewhere.then(|| graph.operation(d.to).completion())
                    };
                    hold(4 * words.0, start, self.end(times, owner, apart));
                }
                (Storage::Shared(bytes), Pool::Shared) if !op.streaming => {
                    hold(bytes.0, start, self.end(times, owner, |d| Some(d.hold)));
                }
                (Storage::Tensor(columns), Pool::Tensor) => {
                    hold(columns.0, start, self.end(times, owner, |d| Some(d.hold)));
                }
                _ => {}
            }
            if pool == Pool::Registers(group) && self.problem.options().consumer_registers && !op.variable_latency {
                for d in self.inputs[owner.index()].iter().filter(|d| self.groups[d.from.index()] != group) {
                    let words = graph.operation(d.from).register_words().0;
                    hold(words, start, Some((start + op.span().0, owner)));
                }
            }
        }
        if pool == Pool::Shared {
            self.rings(times, &mut held);
        }
        held
    }

    /// Rings, as something that is there always.
    fn rings(&self, times: &Times, held: &mut Vec<Held>) {
        let graph = self.problem.graph();
        for &load in self.owners.get(&Pool::Shared).into_iter().flatten() {
            let Storage::Shared(bytes) = graph.operation(load).storage else { continue };
            if !graph.operation(load).streaming || bytes.0 == 0 {
                continue;
            }
            let readers = || self.readers[load.index()].iter().filter(|d| times[d.to.index()].is_some());
            let at = |d: &Dependence| times[d.to.index()].unwrap_or(0) + i64::from(d.distance) * self.interval;
            let last = readers().map(|d| (at(d) + graph.operation(d.to).completion().0, d.to)).max();
            let first = readers().map(|d| at(d)).min();
            let transfer = graph.operation(load).transfer_latency.0;
            let life = last.zip(first).map_or(transfer, |((end, _), first)| transfer + end - first);
            let slots = Cycles(life).div_ceil(Cycles(self.interval)).max(1);
            let last = last.map_or(load, |(_, op)| op);
            held.push(Held { owner: last, last, weight: bytes.0, start: 0, life: slots * self.interval });
        }
    }

    /// The last moment at which placed readers hold a value.
    fn end(&self, times: &Times, op: OpId, hold: impl Fn(&Dependence) -> Option<Cycles>) -> Option<(i64, OpId)> {
        let ends = self.readers[op.index()].iter().filter_map(|d| {
            let at = times[d.to.index()]? + i64::from(d.distance) * self.interval;
            Some((at + hold(d)?.0, d.to))
        });
        ends.max()
    }

    /// The most that is held in any slot, and a slot where it is.
    fn peak(&self, held: &[Held]) -> (u64, i64) {
        let mut always = 0_u64;
        let mut changes: Vec<(i64, bool, u64)> = Vec::with_capacity(3 * held.len());
        for h in held {
            let (whole, rest) = (h.life.div_euclid(self.interval), h.life.rem_euclid(self.interval));
            always += h.weight.saturating_mul(whole.unsigned_abs());
            if rest > 0 {
                let (start, end) = (h.start.rem_euclid(self.interval), h.start.rem_euclid(self.interval) + rest);
                changes.push((start, true, h.weight));
                if end <= self.interval {
                    changes.push((end, false, h.weight));
                } else {
                    changes.push((0, true, h.weight));
                    changes.push((end - self.interval, false, h.weight));
                }
            }
        }
        changes.sort_unstable();
        let (mut now, mut peak) = (always, (always, 0));
        for (slot, starts, weight) in changes {
            now = if starts { now + weight } else { now - weight };
            if now > peak.0 {
                peak = (now, slot);
            }
        }
        peak
    }

    /// The cheapest item held in a slot that moving one operation can shorten.
    fn culprit(&self, held: &[Held], slot: i64, keep: OpId, worth: &[u64]) -> Option<OpId> {
        let alive =
            held.iter().filter(|h| h.life >= self.interval || (slot - h.start).rem_euclid(self.interval) < h.life);
        let movable = alive.flat_map(|h| [h.owner, h.last].map(|op| (op, h.weight))).filter(|(op, _)| *op != keep);
        movable.min_by_key(|&(op, weight)| (worth[op.index()], std::cmp::Reverse(weight), op)).map(|(op, _)| op)
    }
}
