//! A result in a group's registers that another group reads after the loop: through shared memory, with barriers.

use crate::builder::group::GroupBuilder;
use crate::builder::kernel::KernelBuilder;
use crate::builder::planned::Export;
use crate::builder::reader::Reader;
use crate::error::Error;
use crate::ir::*;
use twill_graph::{GroupId, OpId, narrow};

impl Reader<'_, '_> {
    /// A result in the registers of another group, through shared memory.
    pub(super) fn import(&mut self, index: usize, op: OpId, region: &Region) -> Result<Expression, Error> {
        let key = (index, op, region.clone());
        if let Some(variable) = self.group.results.get(&key) {
            return Ok(self.group.read(*variable));
        }
        let own = self.group.id;
        let known = self.lowering.exports.iter().position(|e| (e.index, e.op, e.to) == (index, op, own));
        let number = match known {
            Some(number) => number,
            None => self.lowering.export(index, op, own),
        };
        let export = self.lowering.exports[number].clone();
        let buffer = &self.lowering.program.buffers[export.buffer.index()];
        let (shape, element) = (region.extents.clone(), buffer.element.clone());
        let stem = buffer.name.trim_end_matches("_buffer").to_owned();
        let cursor = self.group.cursor(&format!("{stem}_at"), 1);
        self.group.cursors[cursor.index()].phase = true;
        let to = self.group.variable(&stem, &shape, element.clone(), Form::Any);
        self.group.define(to, index + 1);
        self.group.results.insert(key, to);
        let value = Expression { kind: ExpressionKind::FromShared(export.slot(number)), shape, element };
        let mut ops =
            vec![Op::MbarrierWait { barrier: export.full, at: cursor, previous: false }, Op::Let { to, value }];
        ops.extend(export.empty.map(|barrier| Op::MbarrierArrive { barrier, at: cursor }));
        ops.push(Op::AdvanceCursor(cursor));
        for op in ops {
            self.group.place(index + 1, Node::Op(op, Note::default()));
        }
        Ok(self.group.read(to))
    }
}

impl Export {
    pub(super) fn slot(&self, number: usize) -> Slot {
        let value = SlotValue::outside(MemoryValue::Exported(narrow(number)));
        Slot { buffer: self.buffer, at: None, slice: None, transposed: false, value }
    }
}

impl KernelBuilder<'_> {
    pub(super) fn export(&mut self, index: usize, op: OpId, to: GroupId) -> usize {
        let from = self.loops[index].group(op);
        let (mut shape, element) = self.tile_of(index, op);
        // A number has a place as a tile of one element.
        if shape.is_empty() {
            shape.push(1);
        }
        let name = self.loops[index].problem.graph().operation(op).name.replace('.', "_");
        let source = self.loops[index].problem.graph().operation(op).source.clone();
        let name = format!("{name}_for_{}", to.index());
        let (memory, slots) = (Memory::Shared, 1);
        let name_of_buffer = format!("{name}_buffer");
        let buffer =
            Buffer { name: name_of_buffer, shape, element, slots, least_slots: slots, memory, plain: true, source };
        let buffer = self.buffer(buffer);
        let full = self.barrier(format!("{name}_full"), 1, vec![Arrival::Threads { warps: self.warps(from) }]);
        let reader = Arrival::Threads { warps: self.warps(to) };
        let empty = self.repeats().then(|| self.barrier(format!("{name}_empty"), 1, vec![reader]));
        self.exports.push(Export { index, op, from, to, buffer, full, empty });
        self.exports.len() - 1
    }

    /// What a group does after its loops for others that read its results.
    pub fn add_exports(&self, group: &mut GroupBuilder) -> Result<(), Error> {
        let own = group.id;
        for (number, export) in self.exports.iter().enumerate().filter(|(_, e)| e.from == own) {
            let from: Option<VariableId> =
                group.tracks[export.index].get(&export.op).and_then(|t| t.variables.first()).copied();
            let Some(from) = from else {
                let id = self.loops[export.index].parts.operation;
                return Err(self.defect(id, "who holds a result"));
            };
            let buffer = &self.program.buffers[export.buffer.index()];
            let at = group.cursor(buffer.name.trim_end_matches("_buffer"), 1);
            let value = group.read(from);
            let mut ops: Vec<Op> = Vec::new();
            if let Some(barrier) = export.empty {
                group.cursors[at.index()].phase = true;
                ops.push(Op::MbarrierWait { barrier, at, previous: true });
            }
            ops.push(Op::LocalStore { value, to: export.slot(number) });
            ops.push(Op::MbarrierArrive { barrier: export.full, at });
            ops.push(Op::AdvanceCursor(at));
            let section = &mut group.sections[export.index + 1];
            let place = section.iter().position(|n| !matches!(n, Node::Op(..))).map_or(0, |k| k + 1);
            let nodes = ops.into_iter().map(|a| Node::Op(a, Note::default()));
            section.splice(place..place, nodes);
        }
        Ok(())
    }
}
