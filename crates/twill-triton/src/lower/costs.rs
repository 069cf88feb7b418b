//! The cost of an operation of a tile loop on a machine.

use twill_graph::Bytes;
use twill_machine::{Cost, CostError, ElementwiseClass, Mechanism, Memory, Reduction, TileWork};

use super::LoopLowering;
use super::amounts::plane;
use crate::error::Error;
use crate::tile::{Combine, Element, Operand, Recipe, Role, TileOpKind, TileOperation, Transfer, ValueId};

impl LoopLowering<'_> {
    /// The cost of an operation.
    pub(super) fn cost(&self, op: &TileOperation) -> Result<Cost, Error> {
        self.price(op).map_err(|error| Error::Cost { place: op.place.clone(), error: Box::new(error) })
    }

    fn price(&self, op: &TileOperation) -> Result<Cost, CostError> {
        let cost = match op.kind {
            TileOpKind::Dot { element } => return self.dot(op, element),
            TileOpKind::Load(transfer) => {
                let bytes = op.result.map_or(Bytes(0), |result| self.bytes(self.tile_loop.tile(result)));
                return self.machine.cost(&TileWork::Load { bytes, mechanism: mechanism(transfer) });
            }
            TileOpKind::Store(transfer) => {
                let mut cost =
                    self.machine.cost(&TileWork::Store { bytes: self.data(op), mechanism: mechanism(transfer) })?;
                cost.traffic.shared = cost.traffic.shared + self.staged_for(op, transfer);
                return Ok(cost);
            }
            TileOpKind::AtomicReduce(transfer) => {
                let mut cost = self
                    .machine
                    .cost(&TileWork::AtomicReduce { bytes: self.data(op), mechanism: mechanism(transfer) })?;
                cost.traffic.shared = cost.traffic.shared + self.staged_for(op, transfer);
                return Ok(cost);
            }
            TileOpKind::Reduce { axis, combine } => self.reduce(op, axis, combine)?,
            TileOpKind::Convert => self.convert(op)?,
            TileOpKind::Elementwise { recipe, .. } => self.arithmetic(op, recipe)?,
            TileOpKind::Opaque { .. } => self.opaque(op)?,
        };
        self.with_fetch(cost, self.fetched(op))
    }

    fn dot(&self, op: &TileOperation, element: Option<twill_machine::Element>) -> Result<Cost, CostError> {
        let shape = op.result.map(|result| self.tile_loop.tile(result).shape.as_slice()).unwrap_or_default();
        let (rows, columns) = plane(shape);
        let depth = op.operand(Role::Left).and_then(|left| left.shape.last().copied()).unwrap_or(1);
        let Some(element) = element else {
            let elements = rows.saturating_mul(columns).saturating_mul(depth);
            let class = ElementwiseClass::Fma;
            let element_bits = op.operand(Role::Left).map_or(32, |left| left.element.bits());
            let cost = self.machine.cost(&TileWork::Elementwise { class, elements, element_bits })?;
            let read = op.operands.iter().filter(|operand| matches!(operand.role, Role::Left | Role::Right));
            let bytes = read.map(|operand| self.machine.bytes(operand.elements(), operand.element.bits())).sum();
            return self.with_fetch(cost, bytes);
        };
        let mut cost = self.machine.cost(&TileWork::Mma { rows, columns, depth, element })?;
        let core = self.machine.tensor_core();
        let left_is_shared = self.left_is_shared(op);
        // Read where they are, or fetched by threads: those at least once; how often more depends on how warps share the
        // tile out.
        let (mut left, mut right, mut fetched) = (Bytes(0), Bytes(0), Bytes(0));
        for operand in &op.operands {
            let bytes = self.machine.bytes(operand.elements(), operand.element.bits());
            match operand.role {
                Role::Left if left_is_shared && core.left_operand.contains(&Memory::Shared) => left = bytes,
                Role::Right if core.right_operand.contains(&Memory::Shared) => right = bytes,
                Role::Left if left_is_shared => fetched = fetched + bytes,
                Role::Right => fetched = fetched + bytes,
                _ => {}
            }
        }
        cost.traffic.shared = self.machine.operand_reads((rows, left), (columns, right));
        self.with_fetch(cost, fetched)
    }

    fn reduce(&self, op: &TileOperation, axis: usize, combine: Combine) -> Result<Cost, CostError> {
        let operand = op.operands.first();
        let columns = operand.and_then(|o| o.shape.get(axis).copied()).unwrap_or(1);
        let rows = operand.map_or(1, |o| o.elements() / columns.max(1));
        let is_integer = operand.is_some_and(|o| o.element.is_integer());
        let kind = match combine {
            Combine::Sum | Combine::Product if !is_integer => Reduction::Sum,
            _ => Reduction::Maximum,
        };
        self.machine.cost(&TileWork::Reduce { kind, rows, columns })
    }

    fn convert(&self, op: &TileOperation) -> Result<Cost, CostError> {
        let (elements, bits) = self.result(op);
        let class = ElementwiseClass::Convert;
        self.machine.cost(&TileWork::Elementwise { class, elements, element_bits: bits })
    }

    /// All instructions of an element together, on different units side by side.
    fn arithmetic(&self, op: &TileOperation, recipe: Recipe) -> Result<Cost, CostError> {
        let (elements, bits) = self.result(op);
        // A comparison works on its operands, a selection on its result.
        let widest = op.operands.iter().map(|operand| operand.element).map(Element::bits).max().unwrap_or(bits);
        let element_bits = bits.max(widest);
        let Recipe { fma, alu, special } = recipe;
        let parts =
            [(ElementwiseClass::Fma, fma), (ElementwiseClass::Alu, alu), (ElementwiseClass::SpecialFunction, special)];
        let mut total: Option<Cost> = None;
        for (class, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
            let elements = elements.saturating_mul(u64::from(count));
            let cost = self.machine.cost(&TileWork::Elementwise { class, elements, element_bits })?;
            total = Some(match total {
                Some(total) => total.alongside(&cost),
                None => cost,
            });
        }
        match total {
            Some(cost) => Ok(cost),
            None => {
                self.machine.cost(&TileWork::Elementwise { class: ElementwiseClass::Alu, elements: 0, element_bits })
            }
        }
    }

    /// Of what is not known: so many instructions for each element of the largest tile that it reads or makes.
    fn opaque(&self, op: &TileOperation) -> Result<Cost, CostError> {
        const INSTRUCTIONS: u64 = 4;
        let (made, bits) = self.result(op);
        let read = op.operands.iter().map(|operand| (operand.elements(), operand.element.bits()));
        let (elements, element_bits) = read.chain([(made, bits)]).max().unwrap_or((0, 32));
        let elements = elements.saturating_mul(INSTRUCTIONS);
        self.machine.cost(&TileWork::Elementwise { class: ElementwiseClass::Alu, elements, element_bits })
    }

    /// Elements that an operation computes, copies included, and their bits.
    fn result(&self, op: &TileOperation) -> (u64, u32) {
        op.result
            .map(|result| self.tile_loop.tile(result))
            .map_or((0, 32), |tile| (self.computed_elements(tile), tile.element.bits()))
    }

    /// Bytes that an operation without result moves.
    fn data(&self, op: &TileOperation) -> Bytes {
        let inputs = op.operands.iter().filter(|operand| operand.role == Role::Input);
        let bits = inputs.map(|operand| operand.elements() * u64::from(operand.element.bits()));
        Bytes(bits.sum::<u64>().div_ceil(8))
    }

    /// Bytes that threads store for the TMA to take: what an operation without result reads from registers.
    fn staged_for(&self, op: &TileOperation, transfer: Transfer) -> Bytes {
        if self.machine.mechanism(mechanism(transfer)) == Mechanism::Pointer {
            return Bytes(0);
        }
        let inputs = op.operands.iter().filter(|operand| operand.role == Role::Input);
        let computed = inputs.flat_map(|operand| &operand.tiles).filter(|value| !self.is_shared(**value));
        computed.map(|value| self.bytes(self.tile_loop.tile(*value))).sum()
    }

    /// Bytes that arithmetic reads from shared memory: loaded tiles, and computed ones that are turned round there.
    fn fetched(&self, op: &TileOperation) -> Bytes {
        let in_shared = |operand: &Operand, value: ValueId| {
            let is_computed = self.tile_loop.producer(value).is_some();
            is_computed && (self.is_shared(value) || self.goes_through_shared(op, operand))
        };
        let inputs = op.operands.iter().filter(|operand| operand.role == Role::Input);
        let tiles = inputs.flat_map(|operand| operand.tiles.iter().filter(|value| in_shared(operand, **value)));
        Bytes(tiles.map(|value| self.bytes(self.tile_loop.tile(*value)).0).sum())
    }

    pub(super) fn with_fetch(&self, cost: Cost, bytes: Bytes) -> Result<Cost, CostError> {
        if bytes == Bytes(0) {
            return Ok(cost);
        }
        Ok(cost.alongside(&self.machine.cost(&TileWork::FromShared { bytes })?))
    }
}

fn mechanism(transfer: Transfer) -> Mechanism {
    match transfer {
        Transfer::Tma => Mechanism::Tma,
        Transfer::Pointer => Mechanism::Pointer,
    }
}
