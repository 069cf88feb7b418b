//! Writes to global memory, in loops and after them, and which group makes which part of them.

use crate::builder::kernel::KernelBuilder;
use crate::builder::reader::{LoopScope, Reader};
use crate::builder::views::is_view;
use crate::error::Error;
use crate::in_order::opaque;
use crate::ir::Region;
use crate::ir::{AtomicOp, Elementwise};
use crate::ir::{Buffer, Memory, Slot};
use crate::ir::{Expression, ExpressionKind};
use crate::ir::{Form, Op};
use crate::ir::{MemoryValue, SlotValue};
use twill_graph::{GroupId, GroupRole, narrow};
use twill_triton::kernel::{along_axis, axis_of, view_dimensions};
use twill_triton::mlir::{Attribute, Operation, OperationId, ValueId};
use twill_triton::tile::TileOpKind;

/// Bits of a vector, at least, for which a tile is worth going through shared memory before it is stored.
const LEAST_VECTOR_BITS: u64 = 64;

/// Whether an operation writes to global memory.
pub(crate) fn is_store(name: &str) -> bool {
    matches!(name, "tt.store" | "tt.descriptor_store" | "tt.descriptor_reduce" | "tt.atomic_rmw")
}

impl Reader<'_, '_> {
    /// Coordinates of a block, moved to the part that is wanted.
    pub fn coordinates(
        &mut self,
        values: &[ValueId],
        region: &Region,
        program: Option<u32>,
        at: LoopScope,
    ) -> Result<Vec<Expression>, Error> {
        let mut coordinates = Vec::new();
        // Dimensions of one, which a tile may lack, come first.
        let lacking = values.len().saturating_sub(region.starts.len());
        for (d, value) in values.iter().enumerate() {
            let start = self.scalar(*value, program, at)?;
            let ahead = d.checked_sub(lacking).map_or(0, |d| region.starts[d]);
            coordinates.push(Expression::scalar(Elementwise::AddI, start, Expression::integer(i128::from(ahead))));
        }
        Ok(coordinates)
    }

    /// Code of a store of part of a tile.
    pub fn store(
        &mut self,
        id: OperationId,
        region: &Region,
        program: Option<u32>,
        at: LoopScope,
    ) -> Result<(), Error> {
        let module = self.lowering.module;
        let operation = module.operation(id);
        let operands = operation.operands.as_slice();
        if program.is_some() && matches!(operation.name.as_str(), "tt.descriptor_reduce" | "tt.atomic_rmw") {
            // The last CTA's programs beyond the grid repeat its last one: stores may be repeated, sums may not.
            return Err(self.lowering.unsupported(
                id,
                "atomics of programs that share a CTA",
                "let every program have a CTA of its own (without --cta-coarsening)",
            ));
        }
        if at.is_none()
            && let Some(tile) = self.lowering.kernel.stored_matrix(id)
        {
            let coordinates = self.tile_origin(id, &tile, region, program, at)?;
            let value = self.value(operands[1], region, program, at)?;
            let descriptor = self.lowering.matrix_descriptor(&tile, &region.extents);
            let from = self.stage(id, value)?;
            self.group.act(Op::TmaStore { descriptor, coordinates, from, reduce: None });
            return Ok(());
        }
        match operation.name.as_str() {
            "tt.descriptor_store" | "tt.descriptor_reduce" => {
                let coordinates = self.coordinates(&operands[2..], region, program, at)?;
                let value = self.value(operands[1], region, program, at)?;
                if operation.name == "tt.descriptor_reduce" && !kind_of(operation).ends_with("add") {
                    return Err(self.lowering.unsupported(id, "atomics other than add", "use atomic_add"));
                }
                let reduce = (operation.name == "tt.descriptor_reduce").then_some(AtomicOp::Add);
                let descriptor = self.lowering.descriptor(operands[0], &region.extents, id)?;
                let from = match value.kind {
                    ExpressionKind::FromShared(slot) => slot,
                    _ => self.stage(id, value)?,
                };
                self.group.act(Op::TmaStore { descriptor, coordinates, from, reduce });
            }
            "tt.store" | "tt.atomic_rmw" => {
                let pointers = self.value(operands[0], region, program, at)?;
                let value = self.value(operands[1], region, program, at)?;
                let mask = operands.get(2).map(|m| self.value(*m, region, program, at)).transpose()?;
                if operation.name == "tt.store" {
                    let value = if at.is_none() { self.in_rows(operation, value) } else { value };
                    self.group.act(Op::GlobalStore { pointers, value, mask });
                } else if value.shape.is_empty() && self.is_flag(id) {
                    // Others may wait for it, and then read what has been stored.
                    let way_out = "say sem=\"relaxed\", or use a kernel in order";
                    return Err(self.lowering.unsupported(id, "atomics of one number that order stores", way_out));
                } else if kind_of(operation).ends_with("add") {
                    self.group.act(Op::AtomicAdd { pointers, value, mask });
                } else {
                    // What memory held before is given a name, and nobody reads it.
                    let element = self.lowering.element(operands[1]);
                    let before = self.group.variable("before_unused", &value.shape, element, Form::Any);
                    let section = at.map_or_else(|| self.group.last(), |(index, _)| index + 1);
                    self.group.define(before, section);
                    let operands = [Some(pointers), Some(value), mask].into_iter().flatten().collect();
                    let operation = Box::new(opaque(operation));
                    self.group.act(Op::Opaque { operation, operands, results: vec![before] });
                }
            }
            name => return Err(self.lowering.unsupported(id, format!("`{name}`"), "use tl.store")),
        }
        Ok(())
    }

    /// A tile that is stored, where its rows are contiguous so that a thread has whole vectors of them: threads hold pairs of an MMA's
    /// result, and a warp that stores those writes half a sector of each row at a time.
    fn in_rows(&mut self, store: &Operation, value: Expression) -> Expression {
        let (pointers, mask) = (store.operands[0], store.operands.get(2).copied());
        let access = self.lowering.axis_infos.access(pointers, mask);
        let [_, columns] = value.shape[..] else { return value };
        let bits = value.element.scalar_bits().unwrap_or(32);
        let elements = access.elements.min(columns);
        let is_wider = bits <= 16 && elements * u64::from(bits) >= LEAST_VECTOR_BITS;
        if !self.lowering.options.stores_in_rows || access.dimension != 1 || !is_wider {
            return value;
        }
        let group = &mut *self.group;
        // It is rounded first: half the bytes go through shared memory.
        let value = match value.kind {
            ExpressionKind::Variable(_) => value,
            _ => {
                let rounded = group.variable("rounded", &value.shape, value.element.clone(), Form::Any);
                group.act(Op::Let { to: rounded, value });
                group.read(rounded)
            }
        };
        let in_rows = group.variable("in_rows", &value.shape, value.element.clone(), Form::Neighbours { elements });
        group.act(Op::Let { to: in_rows, value });
        group.read(in_rows)
    }

    /// Whether an atomic operation orders stores that this group does not do, or that TMA does: they may come later.
    fn is_flag(&self, id: OperationId) -> bool {
        let lowering = &self.lowering;
        let module = lowering.module;
        let is_relaxed = match module.operation(id).attributes.get("sem") {
            Some(Attribute::Enumeration(word) | Attribute::Other(word)) => word == "relaxed",
            Some(Attribute::Integer { value, .. }) => *value == 1,
            _ => false,
        };
        let comes_later = |one: OperationId| match module.operation(one).name.as_str() {
            "tt.descriptor_store" => true,
            "tt.store" => {
                module.operation(one).block != module.operation(id).block
                    || lowering.kernel.stored_matrix(one).is_some()
                    || lowering.parts(one).iter().any(|part| part.group != self.group.id)
            }
            _ => false,
        };
        !is_relaxed && module.walk(module.top()).any(comes_later)
    }

    /// The storage of a tile of before the loops that nobody but this group read, and that holds just what is to be stored:
    /// after the loops it is free, unless the next tile is already on its way there.
    fn free_invariant_tile(&self, value: &Expression) -> Option<crate::ir::BufferId> {
        if self.lowering.repeats() {
            return None;
        }
        let own = |p: &&crate::builder::planned::InvariantTile| {
            let buffer = &self.lowering.program.buffers[p.buffer.index()];
            p.readers == [self.group.id] && buffer.shape == value.shape && buffer.element == value.element
        };
        let free: Vec<_> = self.lowering.invariant_tiles.iter().filter(own).map(|p| p.buffer).collect();
        let fresh = free.iter().find(|b| !self.group.staged.contains(b));
        fresh.or(free.first()).copied()
    }

    /// Puts a tile where TMA can read it.
    fn stage(&mut self, id: OperationId, value: Expression) -> Result<Slot, Error> {
        let staged = SlotValue::outside(MemoryValue::Staged(narrow(id.index())));
        if let Some(buffer) = self.free_invariant_tile(&value) {
            let used = self.group.staged.contains(&buffer);
            if used {
                self.group.act(Op::TmaStoreWait(0));
            }
            // All warps are done with what the buffer held.
            self.group.act(Op::GroupSync);
            self.group.staged.push(buffer);
            let slot = Slot { buffer, at: None, slice: None, transposed: false, value: staged };
            self.group.act(Op::LocalStore { value, to: slot.clone() });
            self.group.act(Op::FenceProxyAsync);
            self.group.act(Op::GroupSync);
            return Ok(slot);
        }
        let name = format!("staging_{}", self.group.id.index());
        let fits = |b: &Buffer| b.shape == value.shape && b.element == value.element && b.name.starts_with(&name);
        let known = self.lowering.program.buffers.iter().position(fits);
        let free =
            if self.lowering.has_tensor_memory() { self.free_buffer(&value.shape, &value.element)? } else { None };
        let fresh = known.is_none() && free.is_none();
        let known = known.map(crate::ir::BufferId::at);
        let buffer = match free.or(known) {
            Some(buffer) => buffer,
            None => {
                let same_name = self.lowering.program.buffers.iter().filter(|b| b.name.starts_with(&name)).count();
                let name = if same_name == 0 { name } else { format!("{name}_{same_name}") };
                let (shape, element) = (value.shape.clone(), value.element.clone());
                let source = self.lowering.place(id).source;
                let (memory, slots) = (Memory::Shared, 1);
                self.lowering.buffer(Buffer {
                    name,
                    shape,
                    element,
                    slots,
                    least_slots: slots,
                    memory,
                    plain: false,
                    source,
                })
            }
        };
        if !fresh || self.lowering.repeats() {
            self.group.act(Op::TmaStoreWait(0));
            self.group.act(Op::GroupSync);
        }
        let slot = Slot { buffer, at: None, slice: None, transposed: false, value: staged };
        self.group.act(Op::LocalStore { value, to: slot.clone() });
        self.group.act(Op::FenceProxyAsync);
        self.group.act(Op::GroupSync);
        Ok(slot)
    }
}

fn kind_of(operation: &twill_triton::mlir::Operation) -> String {
    let names = ["kind", "atomic_rmw_op", "reduceKind"];
    let text = names.iter().find_map(|n| match operation.attributes.get(n) {
        Some(Attribute::Enumeration(name) | Attribute::Other(name) | Attribute::String(name)) => Some(name.clone()),
        _ => None,
    });
    text.unwrap_or_else(|| "add".to_owned())
}

/// A part of a store after the loops, and who makes it.
pub(crate) struct Part {
    pub region: Region,
    pub program: Option<u32>,
    pub group: GroupId,
}

impl KernelBuilder<'_> {
    /// Into which parts a store outside loops falls, and who makes them.
    pub fn parts(&self, id: OperationId) -> Vec<Part> {
        let parts = self.row_parts(id);
        let in_tensor_memory = self.has_tensor_memory();
        let cut = |part: Part| {
            let regions = if in_tensor_memory { self.column_parts(id, &part.region) } else { self.subtiles(id, &part) };
            regions.into_iter().map(move |region| Part { region, ..part })
        };
        parts.into_iter().flat_map(cut).collect()
    }

    /// Into which rows it falls.
    fn row_parts(&self, id: OperationId) -> Vec<Part> {
        let operands = &self.module.operation(id).operands;
        let data = if self.module.operation(id).name == "tt.store" { 0 } else { 1 };
        let value = operands.get(1).copied();
        let shape = value.map(|v| self.shape(v)).unwrap_or_default();
        let whole = Region::whole(&shape);
        let first = self.first_compute_group();
        let owner = |s: u32| {
            if self.has_tensor_memory() { self.owner_by_results(id, s) } else { self.owner(s).unwrap_or(first) }
        };
        if let Some((count, _)) = self.programs {
            let part = |p| Part { region: whole.clone(), program: Some(p), group: owner(p) };
            return (0..count).map(part).collect();
        }
        let count = self.loops.iter().map(|l| l.tiles.sub_tiles()).max().unwrap_or(1);
        let cut = value.and_then(|v| self.cut(v, 0)).or_else(|| operands.get(data).and_then(|v| self.cut(*v, 0)));
        match cut.filter(|d| count > 1 && shape.get(*d).is_some_and(|e| e % u64::from(count) == 0)) {
            Some(d) => {
                let mut extents = shape.clone();
                extents[d] /= u64::from(count);
                let part = |s| Part { region: Region::part(&shape, &extents, s), program: None, group: owner(s) };
                (0..count).map(part).collect()
            }
            None => vec![Part { region: whole, program: None, group: owner(0) }],
        }
    }

    pub fn first_compute_group(&self) -> GroupId {
        let groups = self.loops.iter().flat_map(|l| &l.schedule.groups);
        let compute = groups.filter(|g| g.role == GroupRole::Compute).map(|g| g.id).min();
        compute.unwrap_or_else(|| self.loops[0].schedule.groups[0].id)
    }

    /// The group that holds the sub-tile's results.
    pub(crate) fn owner(&self, sub_tile: u32) -> Option<GroupId> {
        for l in &self.loops {
            for yielded in l.parts.yielded {
                for producer in l.producers.get(yielded).into_iter().flatten() {
                    let tile = l.tile_operation(producer.op);
                    if tile
                        .is_some_and(|o| o.sub_tile.unwrap_or(0) == sub_tile && !matches!(o.kind, TileOpKind::Load(_)))
                    {
                        return Some(l.group(producer.op));
                    }
                }
            }
        }
        None
    }

    /// The dimension along which a value outside loops is cut.
    fn cut(&self, value: ValueId, depth: u32) -> Option<usize> {
        if depth > 64 {
            return None;
        }
        if let Some((index, k)) = self.loop_result(value) {
            let l = &self.loops[index];
            let producers = l.producers.get(&l.parts.yielded[k])?;
            let shape = self.shape(value);
            return shape.iter().zip(&producers.first()?.region.extents).position(|(whole, part)| whole != part);
        }
        let enclosing = self.enclosing_result(value).or_else(|| self.enclosing_carried(value));
        if let Some((at, k)) = enclosing {
            return self.cut(self.enclosing[at].yielded[k], depth + 1);
        }
        if let Some(d) = self.loops.iter().find_map(|l| crate::builder::invariant_tiles::cut_along(l, value)) {
            return Some(d);
        }
        let id = self.module.defining_operation(value)?;
        let operation = self.module.operation(id);
        let cut = |operand: &ValueId| Some((*operand, self.cut(*operand, depth + 1)?));
        let (operand, d) = operation.operands.iter().find_map(cut)?;
        let (from, to) = (self.shape(operand), self.shape(value));
        match operation.name.as_str() {
            name if is_view(name) || name == "tt.reshape" => {
                view_dimensions(self.module, id).iter().position(|source| *source == Some(d))
            }
            name if Elementwise::is_known(name) => Some(d),
            _ => along_axis(axis_of(self.module, id)?, from.len(), to.len(), d),
        }
    }
}
