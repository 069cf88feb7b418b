//! What the text says of each use of a barrier.

use crate::constants::{Constants, Origin, Value};
use crate::program::Program;
use crate::sass::Instruction;
use std::collections::BTreeMap;

/// What an instruction does with a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Initialises it with a count.
    Init,
    /// Invalidates it.
    Invalidate,
    /// Arrives.
    Arrive,
    /// Arrives and expects bytes.
    Expect,
    /// Waits for a phase.
    Wait,
    /// Brings bytes: a bulk copy.
    Copy,
}

/// A use of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// What it does.
    pub kind: Kind,
    /// The barrier.
    pub barrier: Value,
    /// The first word of the initial state, the bytes, the parity in the topmost bit, or the tensor map.
    pub operand: Value,
    /// The second word of the initial state.
    pub second: Value,
}

/// Uses of barriers by the place of their instruction.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// All of them.
    pub uses: BTreeMap<usize, Use>,
}

impl Facts {
    /// The uses of a program.
    pub fn of(program: &Program) -> Facts {
        let code = &program.listing.code;
        if !code.iter().any(|instruction| kind(instruction).is_some()) {
            return Facts::default();
        }
        let constants = Constants::of(program);
        let mut facts = Facts::default();
        constants.visit(|known, at| {
            let instruction = &code[at];
            let Some(kind) = kind(instruction) else { return };
            let uniform = |operand: &str, after| constants.uniform(known, instruction, operand, after);
            let address = |operand: &str| constants.address(known, instruction, operand);
            let value = |operand: &str| constants.operand(known, instruction, operand);
            let operand = |index| instruction.operand(index);
            let (barrier, first, second) = match kind {
                Kind::Init => (address(operand(1)), uniform(operand(2), 0), uniform(operand(2), 1)),
                Kind::Invalidate => (address(operand(0)), Value::Unknown, Value::Unknown),
                // UTMALDG names tile, barrier and coordinates in registers that follow each other.
                Kind::Copy => (uniform(operand(0), 1), uniform(operand(1), 0), Value::Unknown),
                Kind::Arrive => (address(operand(1)), Value::Unknown, Value::Unknown),
                Kind::Expect | Kind::Wait => (address(operand(1)), value(operand(2)), Value::Unknown),
            };
            let new = Use { kind, barrier, operand: first, second };
            facts.uses.entry(at).and_modify(|known| *known = known.joined(new)).or_insert(new);
        });
        facts
    }

    /// Uses of a kind in a function.
    pub fn of_kind(&self, range: std::ops::Range<usize>, kind: Kind) -> impl Iterator<Item = (usize, &Use)> {
        self.uses.range(range).filter(move |(_, used)| used.kind == kind).map(|(at, used)| (*at, used))
    }
}

impl Use {
    fn joined(self, other: Use) -> Use {
        Use {
            kind: self.kind,
            barrier: self.barrier.joined(other.barrier),
            operand: self.operand.joined(other.operand),
            second: self.second.joined(other.second),
        }
    }

    /// Bytes from the beginning of shared memory to the barrier, or to the first of its ring.
    pub fn offset(&self) -> Option<u32> {
        match self.barrier {
            Value::Known(Origin::Shared, offset) | Value::Slot(offset) => Some(offset),
            _ => None,
        }
    }

    /// True if it is one barrier rather than any of a ring.
    pub fn is_one(&self) -> bool {
        matches!(self.barrier, Value::Known(Origin::Shared, _))
    }
}

fn kind(instruction: &Instruction) -> Option<Kind> {
    let has = |suffix: &str| instruction.has(suffix);
    match instruction.base() {
        "SYNCS" if has("EXCH") && has("64") => Some(Kind::Init),
        "SYNCS" if has("CCTL") => Some(Kind::Invalidate),
        "SYNCS" if has("PHASECHK") => Some(Kind::Wait),
        // `A1T0` arrives once and expects nothing; without a suffix the operand says the bytes.
        "SYNCS" if has("ARRIVE") && instruction.name.last().is_some_and(|last| last == "TRANS64") => Some(Kind::Expect),
        "SYNCS" if has("ARRIVE") => Some(Kind::Arrive),
        "UTMALDG" => Some(Kind::Copy),
        _ => None,
    }
}
