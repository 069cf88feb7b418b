//! Constraint families: the rows of the table in docs/model.md.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A family of constraints, by its name in docs/model.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Results are there when they are read.
    Dependence,
    /// Units are not held more often than they have instances.
    Resource,
    /// Shared memory moves no more bytes in an interval than it can.
    Bandwidth,
    /// Every operation runs on a group that may run it.
    Assignment,
    /// Passing a register value to another group takes time, and carried ones stay.
    Handoff,
    /// A wait does not stall what its group is doing.
    Concurrency,
    /// A group executes one synchronous operation at a time.
    Exclusive,
    /// Live values fit the registers of their group, and all groups the register file.
    Registers,
    /// Rings, live values and handoff buffers fit shared memory.
    SharedMemory,
    /// Live values fit tensor memory.
    TensorMemory,
}

impl Family {
    /// All families, in the order of docs/model.md.
    pub const ALL: [Family; 10] = [
        Family::Dependence,
        Family::Resource,
        Family::Bandwidth,
        Family::Assignment,
        Family::Handoff,
        Family::Concurrency,
        Family::Exclusive,
        Family::Registers,
        Family::SharedMemory,
        Family::TensorMemory,
    ];
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Family::Dependence => "dependence",
            Family::Resource => "resource",
            Family::Bandwidth => "bandwidth",
            Family::Assignment => "assignment",
            Family::Handoff => "handoff",
            Family::Concurrency => "concurrency",
            Family::Exclusive => "exclusive",
            Family::Registers => "registers",
            Family::SharedMemory => "shared_memory",
            Family::TensorMemory => "tensor_memory",
        })
    }
}

/// A set of families.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Families(u16);

impl Families {
    /// No constraints at all.
    pub const NONE: Families = Families(0);
    /// The whole problem.
    pub const ALL: Families = Families((1 << Family::ALL.len()) - 1);
    /// Phase 1: what constrains a schedule without warps.
    pub const THROUGHPUT: Families =
        Families(1 << Family::Dependence as u16 | 1 << Family::Resource as u16 | 1 << Family::Bandwidth as u16);

    /// Returns whether a family is in the set.
    pub fn has(self, family: Family) -> bool {
        self.0 & 1 << family as u16 != 0
    }

    /// The set with a family.
    #[must_use]
    pub fn with(self, family: Family) -> Families {
        Families(self.0 | 1 << family as u16)
    }

    /// The set without a family.
    #[must_use]
    pub fn without(self, family: Family) -> Families {
        Families(self.0 & !(1 << family as u16))
    }

    /// Returns whether every family of this set is in the other.
    pub fn within(self, other: Families) -> bool {
        self.0 & !other.0 == 0
    }

    /// The members, in the order of docs/model.md.
    pub fn iter(self) -> impl Iterator<Item = Family> {
        Family::ALL.into_iter().filter(move |&f| self.has(f))
    }
}

impl FromIterator<Family> for Families {
    fn from_iter<T: IntoIterator<Item = Family>>(families: T) -> Families {
        families.into_iter().fold(Families::NONE, Families::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_was_put_in() {
        let set = Families::THROUGHPUT.with(Family::Registers).without(Family::Resource);
        assert_eq!(set.iter().collect::<Vec<_>>(), [Family::Dependence, Family::Bandwidth, Family::Registers]);
        assert!(set.within(Families::ALL) && !set.within(Families::THROUGHPUT));
        assert_eq!(Family::ALL.into_iter().collect::<Families>(), Families::ALL);
        assert_eq!(Families::ALL.iter().count(), Family::ALL.len());
    }
}
