//! What becomes of the results of loops whose MMAs leave theirs in tensor memory: which group works on them after
//! the loop, and how it gets at those that are in tensor memory or in another group's registers.

use crate::builder::group::GroupBuilder;
use crate::builder::kernel::KernelBuilder;
use crate::builder::planned::ResultBarriers;
use crate::builder::reader::{Reader, slice_of};
use crate::builder::source::Producer;
use crate::error::Error;
use crate::ir::Region;
use crate::ir::{Arrival, Form, Slot};
use crate::ir::{BarrierId, BufferId, CursorId, SlotValue};
use crate::ir::{Expression, ExpressionKind};
use crate::ir::{FewTrips, Node, Note, Op};
use crate::passes::steps::program::{BufferKind, Iteration};
use std::collections::BTreeMap;
use twill_graph::{GroupId, GroupRole};
use twill_triton::mlir::{OperationId, Type, ValueId};

impl KernelBuilder<'_> {
    /// Barriers for results in tensor memory, and a group that works on them where no loop has one that computes.
    pub fn plan_results(&mut self) {
        if !self.has_tensor_memory() {
            return;
        }
        let groups: Vec<GroupId> = self.loops.iter().flat_map(|l| &l.schedule.groups).map(|g| g.id).collect();
        if groups.iter().all(|g| self.role(*g) != GroupRole::Compute) {
            self.epilogue = groups.iter().max().map(|g| GroupId::new(g.index() + 1));
        }
        let several = self.loops.len() > 1;
        for index in 0..self.loops.len() {
            let parts = self.loops[index].parts;
            let is_read = (0..parts.results.len()).any(|k| {
                let producers = self.loops[index].producers.get(&parts.yielded[k]).into_iter().flatten();
                !self.module.uses(parts.results[k]).is_empty()
                    && producers.into_iter().any(|p| self.is_tcgen05_mma(index, p.op))
            });
            if is_read {
                let name = if several { format!("epilogue_{index}") } else { "results".to_owned() };
                let done = self.barrier(format!("{name}_done"), 1, vec![Arrival::Unit]);
                let persistent = self.repeats();
                let drained = persistent.then(|| self.barrier(format!("{name}_drained"), 1, Vec::new()));
                self.result_barriers.insert(index, ResultBarriers { done, drained, readers: Vec::new() });
            }
        }
        // Where nobody waits for the last MMAs, who starts them does.
        let is_known = self.loops.len().checked_sub(1).is_some_and(|last| self.result_barriers.contains_key(&last));
        if !is_known && groups.iter().any(|g| self.is_issuer(*g)) {
            self.end_of_mmas = Some(self.barrier("mmas_done".to_owned(), 1, vec![Arrival::Unit]));
        }
    }

    /// The groups that compute, and the one that is there for results alone.
    pub fn compute_groups(&self) -> Vec<GroupId> {
        let groups = self.loops.iter().flat_map(|l| &l.schedule.groups).filter(|g| g.role == GroupRole::Compute);
        let mut groups: Vec<GroupId> = groups.map(|g| g.id).chain(self.epilogue).collect();
        groups.sort();
        groups.dedup();
        groups
    }

    /// The group that stores part of a tensor after the loops: the one that holds most of what it is made of.
    pub fn owner_by_results(&self, store: OperationId, sub_tile: u32) -> GroupId {
        let mut words: BTreeMap<GroupId, u64> = BTreeMap::new();
        for (index, k) in self.results_behind(store) {
            let facts = &self.loops[index];
            let producers = facts.producers.get(&facts.parts.yielded[k]).map(Vec::as_slice).unwrap_or_default();
            let own = |p: &&Producer| {
                producers.len() == 1 || facts.tile_operation(p.op).is_some_and(|o| o.sub_tile.unwrap_or(0) == sub_tile)
            };
            for producer in producers.iter().filter(own) {
                if self.is_tcgen05_mma(index, producer.op) {
                    for (_, load) in self.loads_from_tensor(index, producer.op) {
                        *words.entry(facts.group(load)).or_default() += 1;
                    }
                } else if !facts.is_load(producer.op) {
                    *words.entry(facts.group(producer.op)).or_default() += producer.region.elements();
                }
            }
        }
        let compute = self.compute_groups();
        let most = words.iter().filter(|(g, _)| compute.contains(g)).max_by_key(|(g, w)| (**w, std::cmp::Reverse(**g)));
        let number =
            self.module.block(self.block).operations.iter().filter(|id| {
                crate::passes::epilogue::stores::is_store(&self.module.operation(**id).name) && **id < store
            });
        let turn = (number.count() + sub_tile as usize) % compute.len().max(1);
        most.map(|(g, _)| *g).or_else(|| compute.get(turn).copied()).unwrap_or_else(|| GroupId::new(0))
    }

    /// The results of loops that a store after them is made of.
    fn results_behind(&self, store: OperationId) -> Vec<(usize, usize)> {
        let mut next: Vec<ValueId> = self.module.operation(store).operands.clone();
        let mut seen = vec![false; self.module.value_count()];
        let mut results = Vec::new();
        while let Some(value) = next.pop() {
            if std::mem::replace(&mut seen[value.index()], true) {
                continue;
            }
            if let Some(result) = self.loop_result(value) {
                results.push(result);
            } else if let Some(id) = self.module.defining_operation(value) {
                next.extend(&self.module.operation(id).operands);
            }
        }
        results
    }

    /// A part of a store cut along its columns where registers would not hold it whole.
    pub fn column_parts(&self, store: OperationId, region: &Region) -> Vec<Region> {
        let [rows, columns] = region.extents.as_slice() else { return vec![region.clone()] };
        let in_tensor = |&(index, k): &(usize, usize)| {
            let facts = &self.loops[index];
            let producers = facts.producers.get(&facts.parts.yielded[k]).map(Vec::as_slice).unwrap_or_default();
            producers.iter().all(|p| p.region.extents.len() < 2 || self.is_tcgen05_mma(index, p.op))
        };
        let results = self.results_behind(store);
        let tiles = results.iter().filter(|(index, k)| self.shape(self.loops[*index].parts.results[*k]).len() > 1);
        let tiles = tiles.count() as u64;
        let width = (self.smem_fallback.part_elements / (rows * tiles).max(1)).max(8);
        if *columns <= width || columns % width != 0 || !results.iter().all(in_tensor) {
            return vec![region.clone()];
        }
        let part = |k: u64| {
            let mut part = region.clone();
            part.starts[1] += k * width;
            part.extents[1] = width;
            part
        };
        (0..columns / width).map(part).collect()
    }
}

impl GroupBuilder {
    /// Adds code to a section, after what is there; after the loops, where code goes now.
    pub fn place(&mut self, section: usize, node: Node) {
        let Some(node) = self.place_around(node) else { return };
        if self.late && section + 1 == self.sections.len() {
            self.out.push(node);
        } else {
            self.sections[section].push(node);
        }
    }
}

impl Reader<'_, '_> {
    /// A loop's result that is in tensor memory or in another group's registers; `None` if this group holds it.
    pub fn result_elsewhere(
        &mut self,
        index: usize,
        k: usize,
        region: &Region,
        program: Option<u32>,
    ) -> Result<Option<Expression>, Error> {
        let facts = &self.lowering.loops[index];
        if facts.sums.values().any(|sum| sum.carried == k) {
            return Ok(None);
        }
        let producers = facts.producers.get(&facts.parts.yielded[k]).map(Vec::as_slice).unwrap_or_default();
        let fits = |p: &&Producer| p.region.holds(region) && (p.program.is_none() || p.program == program);
        let Some(producer) = producers.iter().find(fits).cloned() else { return Ok(None) };
        if self.lowering.is_tcgen05_mma(index, producer.op) {
            return self.tensor_result(index, k, &producer, region).map(Some);
        }
        if facts.is_load(producer.op) || facts.group(producer.op) == self.group.id || producer.region != *region {
            return Ok(None);
        }
        self.import(index, producer.op, region).map(Some)
    }

    /// A result in tensor memory, when the last MMA is done.
    fn tensor_result(
        &mut self,
        index: usize,
        k: usize,
        producer: &Producer,
        region: &Region,
    ) -> Result<Expression, Error> {
        let key = (index, producer.op, region.clone());
        if let Some(variable) = self.group.results.get(&key) {
            return Ok(self.group.read(*variable));
        }
        self.wait_for_results(index)?;
        let facts = &self.lowering.loops[index];
        let parts = facts.parts;
        let buffer = facts.buffer(producer.op);
        let at = buffer.and_then(|b| self.lowering.storage.buffers.get(&(index, b))).copied();
        let (Some(buffer), Some(at)) = (buffer, at) else {
            return Err(self.lowering.defect(parts.operation, "the place of a result in tensor memory"));
        };
        let planned = facts.program.buffer(buffer);
        let put_there = planned.writer == self.group.id && planned.values.first().is_some_and(|v| v.op != producer.op);
        let slice = slice_of(&producer.region, region).filter(|s| s.is_none_or(|(d, _, _)| d == 1));
        let Some(slice) = slice.filter(|_| self.lowering.program.buffers[at.index()].slots == 1) else {
            return Err(self.lowering.unsupported(
                parts.operation,
                "a part of a result in tensor memory that is not a range of its columns",
                "store the result as it is",
            ));
        };
        let value = SlotValue::result(index, producer.op, Iteration::End(-1));
        let slot = Slot { buffer: at, at: None, slice, transposed: false, value };
        let name = facts.problem.graph().operation(producer.op).name.clone();
        let element = self.lowering.element(parts.results[k]);
        let to = self.group.variable(&format!("{name}_result"), &region.extents, element.clone(), Form::Any);
        self.group.define(to, index + 1);
        self.group.results.insert(key, to);
        let load = Expression { kind: ExpressionKind::FromTensor(slot), shape: region.extents.clone(), element };
        let note = Note { text: "from tensor memory".into(), ..Note::default() };
        let load = Node::Op(Op::Let { to, value: load }, note);
        if put_there {
            // Before the first iteration it holds the first value, which this group put there.
            self.group.place(index + 1, load);
        } else {
            self.trip_count(index)?;
            let value = self.value(parts.initial[k], region, producer.program, None)?;
            self.group.place(index + 1, Node::Op(Op::Let { to, value }, Note::default()));
            let fewer = FewTrips::Each(Vec::new());
            self.group.place(index + 1, Node::TripSwitch { index, at_least: 1, then: vec![load], fewer });
        }
        Ok(self.group.read(to))
    }

    /// A buffer of this shape that is free after the loops: the group writes it in the last one and only MMAs read
    /// it, or it holds a tile of before the loops that only MMAs read.
    pub fn free_buffer(&mut self, shape: &[u64], element: &Type) -> Result<Option<BufferId>, Error> {
        let Some(last) = self.lowering.loops.len().checked_sub(1) else { return Ok(None) };
        if !self.lowering.result_barriers.contains_key(&last) {
            return Ok(None);
        }
        let facts = &self.lowering.loops[last];
        let fits = |id: &crate::passes::steps::program::BufferId| {
            let planned = facts.program.buffer(*id);
            let buffer =
                self.lowering.storage.buffers.get(&(last, *id)).map(|at| &self.lowering.program.buffers[at.index()]);
            let is_same = buffer.is_some_and(|b| b.shape == shape && b.element == *element && !b.plain);
            matches!(planned.kind, BufferKind::Shared(_))
                && is_same
                && planned.writer == self.group.id
                && planned.released_by.iter().all(|g| self.lowering.is_issuer(*g))
        };
        let found = (0..facts.program.buffers.len()).map(crate::passes::steps::program::BufferId).find(fits);
        let written = found.and_then(|id| self.lowering.storage.buffers.get(&(last, id))).copied();
        let taken = &self.lowering.reused_tiles;
        let invariant = self.lowering.invariant_tiles.iter().map(|p| (p.buffer, &p.readers)).find(|(at, readers)| {
            let buffer = &self.lowering.program.buffers[at.index()];
            let own = taken.get(at).is_none_or(|group| *group == self.group.id);
            buffer.shape == shape
                && buffer.element == *element
                && own
                && readers.iter().all(|g| self.lowering.is_issuer(*g))
        });
        // The next tile may be on its way there.
        let invariant = invariant.map(|(at, _)| at).filter(|_| !self.lowering.repeats());
        let found = written.or(invariant);
        self.lowering.reused_tiles.extend(invariant.filter(|_| written.is_none()).map(|at| (at, self.group.id)));
        if found.is_some() {
            self.wait_for_results(last)?;
            self.group.stages_in_place = true;
        }
        Ok(found)
    }

    pub fn wait_for_results(&mut self, index: usize) -> Result<(), Error> {
        if self.group.done.contains_key(&index) {
            return Ok(());
        }
        let own = self.group.id;
        let Some(results) = self.lowering.result_barriers.get_mut(&index) else {
            let id = self.lowering.loops[index].parts.operation;
            return Err(self.lowering.defect(id, "when results in tensor memory are there"));
        };
        if !results.readers.contains(&own) {
            results.readers.push(own);
        }
        let done = results.done;
        let name = self.lowering.program.barriers[done.index()].name.clone();
        let cursor = self.group.cursor(&name, 1);
        self.group.cursors[cursor.index()].phase = true;
        self.group.done.insert(index, cursor);
        let wait = Op::MbarrierWait { barrier: done, at: cursor, previous: false };
        self.group.place(index + 1, Node::Op(wait, Note { text: "the last MMA is done".into(), ..Note::default() }));
        Ok(())
    }

    /// Before a group writes over results of the tile before: waits until everybody has read them.
    pub fn drained(&mut self, index: usize) -> Vec<Node> {
        drained(self.lowering, self.group, index)
    }
}

fn drained(lowering: &KernelBuilder<'_>, group: &mut GroupBuilder, index: usize) -> Vec<Node> {
    let drained = lowering.result_barriers.get(&index).and_then(|r| r.drained);
    let Some(barrier) = drained.filter(|_| !group.drained.contains(&index)) else { return Vec::new() };
    group.drained.push(index);
    let at = group.cursor(&lowering.program.barriers[barrier.index()].name, 1);
    group.cursors[at.index()].phase = true;
    let wait = Op::MbarrierWait { barrier, at, previous: true };
    [wait, Op::AdvanceCursor(at)].map(|op| Node::Op(op, Note::default())).into()
}

impl KernelBuilder<'_> {
    /// After a loop: what the group that starts MMAs has signalled when all are done.
    pub fn end_of_mmas(&self, group: &mut GroupBuilder, index: usize) {
        let mut signals: Vec<(BarrierId, CursorId)> = Vec::new();
        // Phases must not run ahead of those who wait for them.
        let drained = drained(self, group, index);
        group.sections[index + 1].extend(drained);
        if let Some(results) = self.result_barriers.get(&index) {
            let name = &self.program.barriers[results.done.index()].name;
            signals.push((results.done, group.cursor(name, 1)));
        }
        let mut advances = Vec::new();
        if index + 1 == self.loops.len() {
            for (tile, cursor) in group.invariant_tiles.clone() {
                if self.repeats() {
                    signals.push((self.invariant_tiles[tile].empty, cursor));
                }
                advances.push(cursor);
            }
        }
        let section = &mut group.sections[index + 1];
        if !signals.is_empty() {
            section.push(Node::Op(
                Op::Tcgen05Commit(signals),
                Note { text: "when all MMAs are done".into(), ..Note::default() },
            ));
        }
        section.extend(advances.into_iter().map(|c| Node::Op(Op::AdvanceCursor(c), Note::default())));
    }

    /// After its last read of results: a group says that they may be written over.
    pub fn end_of_results(&self, group: &mut GroupBuilder, nodes: &mut Vec<Node>) {
        let mut done: Vec<(usize, CursorId)> = group.done.iter().map(|(index, at)| (*index, *at)).collect();
        done.sort();
        let barriers: Vec<BarrierId> = self.result_barriers.values().map(|r| r.done).collect();
        let waits = |n: &Node| matches!(n, Node::Op(Op::MbarrierWait { barrier, .. }, _) if barriers.contains(barrier));
        let last = nodes.iter().rposition(|n| reads_tensor(n) || waits(n)).map_or(0, |k| k + 1);
        let mut ops = Vec::new();
        for (index, at) in done {
            let drained = self.result_barriers.get(&index).and_then(|r| r.drained);
            ops.extend(drained.map(|barrier| Op::MbarrierArrive { barrier, at }));
            ops.push(Op::AdvanceCursor(at));
        }
        nodes.splice(last..last, ops.into_iter().map(|a| Node::Op(a, Note::default())));
    }
}

fn reads_tensor(node: &Node) -> bool {
    match node {
        Node::Op(Op::Let { value, .. }, _) => {
            let mut found = false;
            value.walk(&mut |e| found |= matches!(e.kind, ExpressionKind::FromTensor(_)));
            found
        }
        Node::TripSwitch { then, .. } => then.iter().any(reads_tensor),
        _ => false,
    }
}
