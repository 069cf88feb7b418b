//! Holders of a unit or memory, with amounts and times: the place of a violation.

use std::fmt;
use twill_graph::{Cycles, grouped};

/// A time in the replayed loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Cycle within the initiation interval.
    pub slot: Cycles,
    /// First such cycle, counted from the start of iteration 0; absent when this many copies overlap
    /// that only the steady state was replayed.
    pub cycle: Option<Cycles>,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cycle {
            Some(cycle) => write!(f, "cycle {cycle} (slot {})", self.slot),
            None => write!(f, "slot {}", self.slot),
        }
    }
}

/// The amount that an operation holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Held {
    /// A functional unit.
    Unit,
    /// The storage of its result.
    Result,
    /// Registers on another group, for a consumer there.
    Operand,
    /// A handoff buffer in shared memory.
    Handoff,
    /// Its warps.
    Warps,
}

/// One operation's part in a sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The operation.
    pub operation: String,
    /// The amount that it holds.
    pub held: Held,
    /// How many copies of it, of different iterations.
    pub copies: u64,
    /// All of them together.
    pub amount: u64,
}

/// The parts of a sum, the largest first; small ones may be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holders(pub Vec<Holder>);

impl fmt::Display for Holders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no values");
        }
        for (i, holder) in self.0.iter().enumerate() {
            let what = match holder.held {
                Held::Unit | Held::Result | Held::Warps => "",
                Held::Operand => " as operand",
                Held::Handoff => " for handoff",
            };
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}`{}`{what} {}", holder.operation, grouped(holder.amount))?;
            if holder.copies > 1 {
                write!(f, " in {} copies", grouped(holder.copies))?;
            }
        }
        Ok(())
    }
}
