//! The units that expressions keep busy.

use crate::Timing;
use twill_codegen::ir::{Buffer, Elementwise, Expression, ExpressionKind, Slot};

/// The cost of a stretch of a group's code.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Work {
    /// Cycles of passes through the special-function unit.
    pub special: f64,
    /// The part of these in which the unit is busy.
    pub special_unit: f64,
    /// Cycles of other passes, for the group alone.
    pub other: f64,
    /// Cycles that nothing hides: chains of dependent instructions.
    pub chain: f64,
    /// Issue slots of a scheduler.
    pub issue: f64,
    /// Bytes from or to shared memory.
    pub shared_bytes: f64,
}

impl Work {
    /// One stretch of code after another.
    pub fn then(self, next: Work) -> Work {
        Work {
            special: self.special + next.special,
            special_unit: self.special_unit + next.special_unit,
            other: self.other + next.other,
            chain: self.chain + next.chain,
            issue: self.issue + next.issue,
            shared_bytes: self.shared_bytes + next.shared_bytes,
        }
    }

    /// Cycles of the group alone.
    pub fn cycles(&self, timing: &Timing) -> f64 {
        (self.special + self.other + self.chain).max(self.shared_bytes / timing.shared_bytes)
    }
}

/// The tiles of an expression, by holder, each counted once.
pub(crate) struct Costs<'a> {
    pub timing: &'a Timing,
    pub buffers: &'a [Buffer],
    /// Threads of the group.
    pub threads: f64,
}

impl Costs<'_> {
    /// The cost of an expression.
    pub fn of(&self, expression: &Expression) -> Work {
        match &expression.kind {
            ExpressionKind::Apply { operation, operands, .. } => {
                let inner = operands.iter().map(|o| self.of(o)).fold(Work::default(), Work::then);
                // A product that is added to is one instruction with the addition.
                let is_product =
                    |o: &Expression| matches!(o.kind, ExpressionKind::Apply { operation: Elementwise::MulF, .. });
                let fused =
                    matches!(operation, Elementwise::AddF | Elementwise::SubF) && operands.iter().any(is_product);
                if fused { inner } else { inner.then(self.apply(operation, expression)) }
            }
            ExpressionKind::Broadcast(x)
            | ExpressionKind::ExpandDims(_, x)
            | ExpressionKind::Transpose(_, x)
            | ExpressionKind::Columns(_, x) => self.of(x),
            ExpressionKind::Reduce { operand, axis, .. } => {
                let across =
                    Work { chain: if *axis == 0 { 4.0 } else { 1.0 } * self.timing.exchange, ..Work::default() };
                self.of(operand).then(self.pass(operand, self.timing.alu)).then(across)
            }
            ExpressionKind::PartialSums(operand) => self.of(operand).then(self.pass(operand, self.timing.fma)),
            ExpressionKind::Load { pointers, .. } => {
                let cycles = Work { chain: self.timing.transfer, ..Work::default() };
                self.of(pointers).then(self.pass(expression, self.timing.alu)).then(cycles)
            }
            ExpressionKind::FromShared(slot) => Work {
                shared_bytes: self.bytes(slot),
                chain: self.timing.shared_read,
                issue: self.bytes(slot) / self.threads / 16.0,
                ..Work::default()
            },
            _ => Work::default(),
        }
    }

    /// Bytes of a tile in shared memory.
    pub fn bytes(&self, slot: &Slot) -> f64 {
        let Some(buffer) = self.buffers.get(slot.buffer.index()) else { return 0.0 };
        let whole = buffer.bytes() as f64 / f64::from(buffer.slots.max(1));
        match slot.slice {
            Some((dimension, _, extent)) => {
                whole * extent as f64 / buffer.shape.get(dimension).map_or(1.0, |e| (*e).max(1) as f64)
            }
            None => whole,
        }
    }

    fn apply(&self, operation: &Elementwise, of: &Expression) -> Work {
        use Elementwise as E;
        let timing = self.timing;
        match operation {
            E::Exp2 | E::Log2 | E::Rsqrt | E::PreciseSqrt | E::Sqrt | E::Sin | E::Cos => self.special(of),
            E::Exp | E::Log | E::DivF => self.special(of).then(self.pass(of, timing.fma)),
            E::PreciseDivF | E::Erf | E::Libdevice(_) => self.special(of).then(self.pass(of, 8.0 * timing.fma)),
            E::TruncF | E::ExtF | E::FpToFp => self.pass(of, timing.convert),
            E::AddF | E::SubF | E::MulF | E::Fma | E::NegF => self.pass(of, timing.fma),
            _ => self.pass(of, timing.alu),
        }
    }

    fn special(&self, of: &Expression) -> Work {
        let count = self.instructions(of);
        if count <= 2.0 {
            return Work { chain: 3.0 * self.timing.small, issue: count, ..Work::default() };
        }
        Work {
            special: count * self.timing.special,
            special_unit: count * self.timing.special_unit,
            issue: count,
            ..Work::default()
        }
    }

    /// Instructions over all elements of a tile.
    fn pass(&self, over: &Expression, each: f64) -> Work {
        let count = self.instructions(over);
        if count == 0.0 {
            return Work::default();
        }
        if count <= 2.0 {
            return Work { chain: self.timing.small, issue: count, ..Work::default() };
        }
        Work { other: count * each, issue: count, ..Work::default() }
    }

    /// Instructions of a thread: rows are held by four threads each, scalars by all.
    fn instructions(&self, over: &Expression) -> f64 {
        let elements: f64 = over.shape.iter().map(|e| *e as f64).product();
        let held = over.shape.iter().filter(|e| **e > 1).count();
        match held {
            // Address arithmetic on scalars overlaps everything else.
            0 => 0.0,
            1 => (elements * 4.0 / self.threads).ceil(),
            _ => (elements / self.threads).ceil(),
        }
    }
}
