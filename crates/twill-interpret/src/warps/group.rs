//! One step of a group.

use super::evaluate::extents;
use super::machine::Machine;
use super::storage::Writer;
use super::units::{
    Completion, Copied, Held, Load, Mma, Product, Result as Outcome, Signal, Source, Store, Sum, Target,
};
use crate::fault::Fault;
use crate::memory::{Argument, Combination, Tensor};
use crate::value::{Data, Pointer};
use std::cell::RefCell;
use std::rc::Rc;
use twill_codegen::ir::{Addend, Amount, DescriptorId, Operand, Tcgen05Mma, VariableId};
use twill_codegen::ir::{BarrierId, CursorId};
use twill_codegen::ir::{NamedBarrierId, Op};

impl Machine<'_, '_> {
    /// Returns whether a group need not wait to do this.
    pub(super) fn is_ready(&self, g: usize, op: &Op) -> bool {
        let group = &self.groups[g];
        match op {
            Op::MbarrierWait { barrier, at, previous } => {
                let (array, slot) = self.signal(g, *barrier, *at);
                let barrier = self.barriers.get(array).and_then(|b| b.get(slot));
                barrier.is_some_and(|b| b.is_complete(group.cursors[at.index()].phase != *previous))
            }
            Op::WgmmaWait { pending, .. } => group.in_flight.mmas.len() <= *pending as usize,
            Op::TmaStoreWait(left) => group.in_flight.stores.len() <= *left as usize,
            Op::CpAsyncWait(pending) => {
                let done = group.in_flight.committed.saturating_sub(u64::from(*pending));
                let is_needed = |tells| matches!(tells, Completion::Committed(number) if number < done);
                !group.in_flight.loads.iter().any(|load| is_needed(load.tells))
            }
            Op::NamedBarrierSync(id) => match group.ticket {
                Some(ticket) => self.named.get(id.index()).is_some_and(|n| n.has_opened(ticket)),
                None => true,
            },
            _ => true,
        }
    }

    fn signal(&self, g: usize, barrier: BarrierId, at: CursorId) -> Signal {
        (barrier.index(), self.groups[g].cursors[at.index()].slot as usize)
    }

    fn signals(&self, g: usize, all: &[(BarrierId, CursorId)]) -> Vec<Signal> {
        all.iter().map(|(barrier, at)| self.signal(g, *barrier, *at)).collect()
    }

    pub(super) fn arrive(&mut self, (array, slot): Signal) -> Result<(), Fault> {
        let barrier = self.barriers.get_mut(array).and_then(|b| b.get_mut(slot));
        barrier.ok_or_else(|| Fault::Undefined { what: format!("barrier {slot} of array {array}") })?.arrive();
        Ok(())
    }

    pub(super) fn hold(&mut self, g: usize, id: VariableId, held: Option<Held>) {
        self.groups[g].variables[id.index()] = held;
    }

    /// Does it; true if the group is past it then.
    pub(super) fn perform(&mut self, g: usize, op: &Op) -> Result<bool, Fault> {
        match op {
            Op::Let { to, value } => {
                let tile = self.evaluate(g, value)?;
                self.hold(g, *to, Some(Held::Tile(tile)));
            }
            Op::Copy { to, from } => {
                let held = self.groups[g].variables[from.index()].clone();
                self.hold(g, *to, held);
            }
            Op::Wgmma { to, left, right, accumulator } => self.mma(g, *to, left, right, *accumulator)?,
            Op::Tcgen05Mma(mma) => self.tcgen05_mma(g, mma)?,
            Op::Tcgen05Commit(signals) => {
                let signals = self.signals(g, signals);
                self.groups[g].in_flight.mmas.push_back(Mma { product: None, signals });
            }
            Op::WgmmaWait { pending, completed, .. } => self.wgmma_wait(g, *pending, completed)?,
            Op::TmaLoad { descriptor, coordinates, to, full } => {
                let tile_origin = coordinates.iter().map(|c| self.integer(g, c)).collect::<Result<_, _>>()?;
                let (tensor, block) = self.tensor(*descriptor)?;
                self.load(g, Copied::Block { tensor, tile_origin, block }, to, Some(*full))?;
            }
            Op::CpAsync { whole: Some(whole), to, full, .. } if self.integer(g, &whole.condition)? != 0 => {
                let tile_origin = whole.coordinates.iter().map(|c| self.integer(g, c)).collect::<Result<_, _>>()?;
                let (tensor, block) = self.tensor(whole.descriptor)?;
                self.load(g, Copied::Block { tensor, tile_origin, block }, to, *full)?;
            }
            Op::CpAsync { pointers, mask, to, full, .. } => {
                let pointers = self.evaluate(g, pointers)?;
                let mask = mask.as_ref().map(|m| self.evaluate(g, m)).transpose()?;
                self.load(g, Copied::Pointers { pointers, mask }, to, *full)?;
            }
            Op::LocalStore { value, to } => {
                let tile = self.evaluate(g, value)?;
                let at = self.at(g, to);
                self.storage.write(&at, tile, Some(Writer::Group(g)))?;
            }
            Op::CpAsyncCommit => self.groups[g].in_flight.committed += 1,
            Op::FenceProxyAsync => self.storage.fence(g),
            Op::TmaStore { descriptor, coordinates, from, reduce } => {
                let tile_origin = coordinates.iter().map(|c| self.integer(g, c)).collect::<Result<_, _>>()?;
                let (tensor, _) = self.tensor(*descriptor)?;
                let how = if reduce.is_some() { Combination::Add } else { Combination::Overwrite };
                let from = self.at(g, from);
                self.groups[g].in_flight.stores.push_back(Store { from, tensor, tile_origin, how });
            }
            Op::GlobalStore { pointers, value, mask } | Op::AtomicAdd { pointers, value, mask } => {
                let adds = matches!(op, Op::AtomicAdd { .. });
                let how = if adds { Combination::Add } else { Combination::Overwrite };
                let (pointers, value) = (self.evaluate(g, pointers)?, self.evaluate(g, value)?);
                let mask = mask.as_ref().map(|m| self.evaluate(g, m)).transpose()?;
                self.memory.store(&pointers, &value, mask.as_deref(), how, self.launch.arithmetic)?;
            }
            Op::MbarrierArrive { barrier, at } => self.arrive(self.signal(g, *barrier, *at))?,
            Op::AdvanceCursor(cursor) => self.groups[g].cursors[cursor.index()].advance(),
            Op::CopyCursor { to, from } => {
                let from = self.groups[g].cursors[from.index()].clone();
                let to = &mut self.groups[g].cursors[to.index()];
                (to.slot, to.phase) = (from.slot, from.phase);
            }
            Op::NamedBarrierSync(id) | Op::NamedBarrierArrive(id) => {
                return self.arrive_at_named_barrier(g, *id, matches!(op, Op::NamedBarrierSync(_)));
            }
            Op::Opaque { operation, operands, results } => self.opaque(g, operation, operands, results)?,
            // Threads of a group are one, and waits have been waited for.
            Op::MbarrierWait { .. }
            | Op::TmaStoreWait(_)
            | Op::CpAsyncWait(_)
            | Op::WgmmaInit(_)
            | Op::GroupSync
            | Op::Timestamp(_) => {}
        }
        Ok(true)
    }

    /// Arrives at a named barrier; a group that waits there goes on when it has opened.
    fn arrive_at_named_barrier(&mut self, g: usize, id: NamedBarrierId, waits: bool) -> Result<bool, Fault> {
        if self.groups[g].ticket.take().is_some() {
            return Ok(true);
        }
        let named = self.named.get_mut(id.index());
        let ticket = named.ok_or_else(|| Fault::Undefined { what: format!("named barrier {}", id.0) })?.arrive();
        if waits {
            self.groups[g].ticket = Some(ticket);
        }
        Ok(!waits)
    }

    fn operand(&self, g: usize, operand: &Operand) -> Result<Source, Fault> {
        match operand {
            Operand::Shared(slot) => Ok(Source::Slot(self.at(g, slot))),
            Operand::Registers(id) => self.variable(g, *id).map(Source::Tile),
        }
    }

    fn mma(
        &mut self,
        g: usize,
        to: VariableId,
        left: &Operand,
        right: &Operand,
        accumulator: Option<VariableId>,
    ) -> Result<(), Fault> {
        let (left, right) = (self.operand(g, left)?, self.operand(g, right)?);
        let sum = match accumulator {
            None => Sum::Zero,
            Some(id) => {
                let held = self.groups[g].variables[id.index()].clone();
                let name =
                    || format!("{} in {}", self.groups[g].group.variables[id.index()].name, self.groups[g].group.name);
                Sum::Held(held.ok_or_else(|| Fault::Undefined { what: name() })?)
            }
        };
        let group = &mut self.groups[g];
        group.mmas += 1;
        let result = Rc::new(Outcome { number: group.mmas, tile: RefCell::new(None) });
        let element = group.group.variables[to.index()].element.clone();
        let product = Some(Product { left, right, sum, to: Target::Registers(result.clone()), element });
        group.in_flight.mmas.push_back(Mma { product, signals: Vec::new() });
        self.hold(g, to, Some(Held::InFlight(result)));
        Ok(())
    }

    fn tcgen05_mma(&mut self, g: usize, mma: &Tcgen05Mma) -> Result<(), Fault> {
        let sum = match &mma.addend {
            Addend::Zero => Sum::Zero,
            Addend::Value(_) | Addend::Before => Sum::Destination,
            Addend::BeforeUnlessFirst(number) if self.iteration(g, *number)? > 0 => Sum::Destination,
            Addend::BeforeUnlessFirst(_) => Sum::Zero,
        };
        let buffer = self.program.buffers.get(mma.to.buffer.index());
        let element = buffer.ok_or_else(|| Fault::Undefined { what: "a buffer".into() })?.element.clone();
        let (left, right) = (Source::Slot(self.at(g, &mma.left)), Source::Slot(self.at(g, &mma.right)));
        let product = Product { left, right, sum, to: Target::Memory(self.at(g, &mma.to)), element };
        let signals = self.signals(g, &mma.signals);
        self.groups[g].in_flight.mmas.push_back(Mma { product: Some(product), signals });
        Ok(())
    }

    /// After a wait for MMAs: their results are values.
    fn wgmma_wait(&mut self, g: usize, pending: u32, completed: &[VariableId]) -> Result<(), Fault> {
        let group = &mut self.groups[g];
        let done = group.mmas.saturating_sub(u64::from(pending));
        for id in completed {
            let Some(Held::InFlight(result)) = &group.variables[id.index()] else { continue };
            let tile = result.tile.borrow().clone().filter(|_| result.number <= done);
            let variable = || group.group.variables[id.index()].name.clone();
            let fault = || Fault::NotWaitedFor { group: group.group.name.clone(), variable: variable() };
            let tile = tile.ok_or_else(fault)?;
            group.variables[id.index()] = Some(Held::Tile(tile));
        }
        Ok(())
    }

    fn load(
        &mut self,
        g: usize,
        from: Copied,
        to: &twill_codegen::ir::Slot,
        full: Option<BarrierId>,
    ) -> Result<(), Fault> {
        let place = self.at(g, to);
        let buffer = self.program.buffers.get(place.buffer);
        let element = buffer.ok_or_else(|| Fault::Undefined { what: "a buffer".into() })?.element.clone();
        let in_flight = &mut self.groups[g].in_flight;
        let tells = match full {
            Some(full) => Completion::Barrier((full.index(), place.slot)),
            None => Completion::Committed(in_flight.committed),
        };
        in_flight.loads.push(Load { from, to: place, element, tells });
        Ok(())
    }

    /// The tensor of a descriptor, and the extents of a block.
    fn tensor(&self, id: DescriptorId) -> Result<(Tensor, Vec<usize>), Fault> {
        let descriptor = self.program.descriptors.get(id.index());
        let descriptor = descriptor.ok_or_else(|| Fault::Undefined { what: "a descriptor".into() })?;
        let block = extents(&descriptor.block);
        let unfit = || Fault::Shapes { what: format!("the descriptor {}", descriptor.name) };
        let Some(matrix) = &descriptor.matrix else {
            return match self.launch.argument(&descriptor.parameter)? {
                Argument::Tensor(tensor) => Ok((tensor.clone(), block)),
                Argument::Scalar(_) => Err(unfit()),
            };
        };
        let amount = |amount: &Amount| match amount {
            Amount::Constant(n) => i64::try_from(*n).map_err(|_| unfit()),
            Amount::Parameter(name) => self.launch.scalar(name)?.as_integer().ok_or_else(unfit),
        };
        let base = self.launch.scalar(&descriptor.parameter)?;
        let Data::Pointers(pointers) = &base.data else { return Err(unfit()) };
        let Pointer { array, offset } = *pointers.first().ok_or_else(unfit)?;
        let extents = matrix.all_extents().iter().map(amount).collect::<Result<Vec<i64>, Fault>>()?;
        let strides = matrix.all_strides().iter().map(amount).collect::<Result<Vec<i64>, Fault>>()?;
        let of_row = amount(&matrix.stride)?;
        let before = i64::try_from(matrix.rows_before).ok().and_then(|rows| rows.checked_mul(of_row));
        let first = offset - before.ok_or_else(unfit)?;
        Ok((Tensor { array, first, extents, strides }, block))
    }
}
