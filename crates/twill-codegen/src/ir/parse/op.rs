//! Operations and what they name: variables, barriers, slots.

use super::{NameKind, Read, Reader};
use crate::ir::*;
use twill_graph::{LoopOperation, OpId};

impl Reader<'_> {
    pub(super) fn read_variable(&mut self) -> Read<VariableId> {
        self.expect("%")?;
        Ok(VariableId(self.name(NameKind::Variable)?))
    }

    pub(super) fn variables(&mut self, keyword: &str) -> Read<Vec<VariableId>> {
        self.expect_word(keyword)?;
        self.list(Self::read_variable)
    }

    /// A barrier and the cursor at its slot.
    pub(super) fn at(&mut self) -> Read<(BarrierId, CursorId)> {
        let barrier = BarrierId(self.name(NameKind::Barrier)?);
        self.expect("[")?;
        let cursor = CursorId(self.name(NameKind::Cursor)?);
        self.expect("]")?;
        Ok((barrier, cursor))
    }

    pub(super) fn iteration(&mut self) -> Read<IterationNumber> {
        let index = self.number()?;
        self.expect(",")?;
        let from = self.word()?;
        let n = self.number()?;
        let iteration = match from {
            "first" => Iteration::Absolute(n),
            "current" => Iteration::Current(n),
            "end" => Iteration::End(n),
            other => return Err(self.unknown("iteration", other)),
        };
        Ok(IterationNumber { index, iteration })
    }

    pub(super) fn value(&mut self) -> Read<SlotValue> {
        self.expect("<")?;
        let id = match self.word()? {
            "result" => MemoryValue::Result(LoopOperation { index: self.number()?, op: OpId::new(self.number()?) }),
            "invariant" => MemoryValue::Invariant(self.number()?),
            "staged" => MemoryValue::Staged(self.number()?),
            "exported" => MemoryValue::Exported(self.number()?),
            other => return Err(self.unknown("value in memory", other)),
        };
        self.expect(",")?;
        let at = self.iteration()?;
        self.expect(">")?;
        Ok(SlotValue { id, at })
    }

    pub(super) fn slot(&mut self) -> Read<Slot> {
        let buffer = BufferId(self.name(NameKind::Buffer)?);
        let mut slot = Slot {
            buffer,
            at: None,
            slice: None,
            transposed: false,
            value: SlotValue::outside(MemoryValue::Staged(0)),
        };
        if self.accept("[") {
            slot.at = Some(CursorId(self.name(NameKind::Cursor)?));
            self.expect("]")?;
        }
        if self.accept_word("slice") {
            self.expect("(")?;
            let dimension = self.number()?;
            self.expect(",")?;
            let start = self.number()?;
            self.expect(",")?;
            slot.slice = Some((dimension, start, self.number()?));
            self.expect(")")?;
        }
        slot.transposed = self.accept_word("transposed");
        slot.value = self.value()?;
        Ok(slot)
    }

    pub(super) fn operand(&mut self) -> Read<Operand> {
        self.blank();
        if self.rest().starts_with('%') {
            Ok(Operand::Registers(self.read_variable()?))
        } else {
            Ok(Operand::Shared(self.slot()?))
        }
    }

    pub(super) fn optional(&mut self, keyword: &str) -> Read<Option<Expression>> {
        if self.accept_word(keyword) { Ok(Some(self.expression()?)) } else { Ok(None) }
    }

    pub(super) fn op(&mut self) -> Read<Op> {
        Ok(match self.word()? {
            "let" => {
                let to = self.read_variable()?;
                self.expect("=")?;
                Op::Let { to, value: self.expression()? }
            }
            "copy" => {
                let to = self.read_variable()?;
                self.expect("=")?;
                Op::Copy { to, from: self.read_variable()? }
            }
            "wgmma" => {
                let to = self.read_variable()?;
                self.expect("=")?;
                let left = self.operand()?;
                self.expect(",")?;
                let right = self.operand()?;
                let accumulator = if self.accept_word("accumulator") { Some(self.read_variable()?) } else { None };
                Op::Wgmma { to, left, right, accumulator }
            }
            "tcgen05_mma" => {
                let to = self.slot()?;
                self.expect("=")?;
                let left = self.slot()?;
                self.expect(",")?;
                let right = self.slot()?;
                self.expect(",")?;
                let addend = self.addend()?;
                self.expect_word("signals")?;
                Op::Tcgen05Mma(Box::new(Tcgen05Mma { left, right, to, addend, signals: self.list(Self::at)? }))
            }
            "tcgen05_commit" => Op::Tcgen05Commit(self.list(Self::at)?),
            "wgmma_init" => Op::WgmmaInit(self.read_variable()?),
            "wgmma_wait" => Op::WgmmaWait {
                pending: self.number()?,
                completed: self.variables("completed")?,
                in_flight: self.variables("in_flight")?,
            },
            "tma_load" => {
                let descriptor = DescriptorId(self.name(NameKind::Descriptor)?);
                let coordinates = self.list(Self::expression)?;
                self.expect_word("to")?;
                let to = self.slot()?;
                self.expect_word("full")?;
                Op::TmaLoad { descriptor, coordinates, to, full: BarrierId(self.name(NameKind::Barrier)?) }
            }
            "cp_async" => {
                let (pointers, mask) = (self.expression()?, self.optional("mask")?);
                self.expect_word("elements")?;
                let elements = self.number()?;
                let whole = match self.accept_word("whole") {
                    true => {
                        self.expect_word("if")?;
                        let condition = self.expression()?;
                        let descriptor = DescriptorId(self.name(NameKind::Descriptor)?);
                        let coordinates = self.list(Self::expression)?;
                        Some(Box::new(WholeCopy { condition, descriptor, coordinates }))
                    }
                    false => None,
                };
                self.expect_word("to")?;
                let to = self.slot()?;
                let full = match self.accept_word("full") {
                    true => Some(BarrierId(self.name(NameKind::Barrier)?)),
                    false => None,
                };
                Op::CpAsync { pointers, mask, elements, whole, to, full }
            }
            "cp_async_commit" => Op::CpAsyncCommit,
            "cp_async_wait" => Op::CpAsyncWait(self.number()?),
            "local_store" => {
                let value = self.expression()?;
                self.expect_word("to")?;
                Op::LocalStore { value, to: self.slot()? }
            }
            "fence_proxy_async" => Op::FenceProxyAsync,
            "group_sync" => Op::GroupSync,
            "tma_store" => {
                let descriptor = DescriptorId(self.name(NameKind::Descriptor)?);
                let coordinates = self.list(Self::expression)?;
                self.expect_word("from")?;
                let from = self.slot()?;
                let reduce = self.accept_word("reduce");
                if reduce {
                    self.expect_word("add")?;
                }
                Op::TmaStore { descriptor, coordinates, from, reduce: reduce.then_some(AtomicOp::Add) }
            }
            "tma_store_wait" => Op::TmaStoreWait(self.number()?),
            name @ ("global_store" | "atomic_add") => {
                let value = self.expression()?;
                self.expect_word("to")?;
                let (pointers, mask) = (self.expression()?, self.optional("mask")?);
                match name {
                    "atomic_add" => Op::AtomicAdd { pointers, value, mask },
                    _ => Op::GlobalStore { pointers, value, mask },
                }
            }
            "mbarrier_wait" => {
                let (barrier, at) = self.at()?;
                Op::MbarrierWait { barrier, at, previous: self.accept_word("previous") }
            }
            "mbarrier_arrive" => {
                let (barrier, at) = self.at()?;
                Op::MbarrierArrive { barrier, at }
            }
            "advance_cursor" => Op::AdvanceCursor(CursorId(self.name(NameKind::Cursor)?)),
            "copy_cursor" => {
                let to = CursorId(self.name(NameKind::Cursor)?);
                self.expect("=")?;
                Op::CopyCursor { to, from: CursorId(self.name(NameKind::Cursor)?) }
            }
            "named_barrier_sync" => Op::NamedBarrierSync(NamedBarrierId(self.name(NameKind::Named)?)),
            "named_barrier_arrive" => Op::NamedBarrierArrive(NamedBarrierId(self.name(NameKind::Named)?)),
            "opaque" => {
                let operation = Box::new(self.opaque()?);
                let operands = self.operands()?;
                Op::Opaque { operation, operands, results: self.variables("to")? }
            }
            "timestamp" => Op::Timestamp(self.list(|reader| {
                let operation = reader.string()?;
                let moment = match reader.word()? {
                    "issue" => Moment::Issue,
                    "end" => Moment::End,
                    "completed" => Moment::Completed,
                    other => return Err(reader.unknown("moment", other)),
                };
                reader.expect("(")?;
                let at = reader.iteration()?;
                reader.expect(")")?;
                Ok(Stamp { operation, moment, at })
            })?),
            other => return Err(self.unknown("operation", other)),
        })
    }

    pub(super) fn addend(&mut self) -> Read<Addend> {
        Ok(match self.word()? {
            "zero" => Addend::Zero,
            "value" => Addend::Value(self.value()?),
            "before" => Addend::Before,
            "before_unless_first" => {
                self.expect("(")?;
                let number = self.iteration()?;
                self.expect(")")?;
                Addend::BeforeUnlessFirst(number)
            }
            other => return Err(self.unknown("addend", other)),
        })
    }
}
