//! What an encoding keeps of resources that are charged over time and checked on candidates.

use super::Anchor;
use batsat::Lit;
use std::collections::{BTreeMap, HashMap};
use twill_graph::OpId;
use twill_graph::proof::{Item as Name, Pool as Room};

/// The resources that are charged over time and checked on candidates.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    pub(crate) units: Vec<Pool>,
    pub(crate) registers: Pool,
    pub(crate) levels: BTreeMap<(usize, u32), Lit>,
    pub(crate) shared: Pool,
    pub(crate) rings: Vec<RingLoad>,
    pub(crate) tensor: Pool,
}

impl Storage {
    /// Passes on what is known of registers, with the engine that knows it.
    pub(crate) fn hand_on_levels(&mut self, to: &mut Storage) {
        std::mem::swap(&mut self.levels, &mut to.levels);
    }
}

/// A point in time relative to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnchoredTime {
    pub(crate) anchor: Anchor,
    pub(crate) offset: i64,
}

/// A condition on the assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    /// The two run on different groups.
    Apart(OpId, OpId),
}

/// Something that takes room from its start to the latest of its ends.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// Its kind.
    pub(crate) name: Name,
    /// The operation whose group holds it.
    pub(crate) owner: OpId,
    /// More than nothing.
    pub(crate) weight: u64,
    pub(crate) start: AnchoredTime,
    pub(crate) ends: Vec<(AnchoredTime, When)>,
    /// The condition under which it exists.
    pub(crate) when: When,
    /// It recurs every `I` cycles (the steady state); otherwise it is one copy of a straight line.
    pub(crate) repeats: bool,
}

/// Items that share a capacity.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) room: Room,
    pub(crate) items: Vec<Item>,
    pub(crate) capacity: u64,
    pub(crate) alive: HashMap<(usize, i64, usize), Lit>,
    /// Copies of one item that the sums of an event speak of (unbounded form).
    pub(crate) depth: HashMap<usize, i64>,
    pub(crate) sums: HashMap<Sum, Vec<(Lit, u64)>>,
    /// Largest capacity that sums are compared with.
    pub(crate) most: u64,
}

/// A sum over what is alive when an item starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sum {
    /// The item.
    pub(crate) event: usize,
    /// True if it is over the items of one group.
    pub(crate) together: bool,
    /// Copies of one item that it speaks of (unbounded form).
    pub(crate) depth: i64,
    /// Largest capacity that it may be compared with.
    pub(crate) most: u64,
}

/// A streaming load whose ring takes shared memory.
#[derive(Debug)]
pub(crate) struct RingLoad {
    pub(crate) load: OpId,
    pub(crate) bytes: u64,
    /// `deeper[j]`: the ring has at least `j` slots.
    pub(crate) deeper: HashMap<i64, Lit>,
}

/// Limits that are enforced on candidates.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Caps {
    pub(crate) handoff_words: Option<Cap>,
    pub(crate) registers_per_thread: Option<Cap>,
}

/// At most `most`, if `active` holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cap {
    pub(crate) most: u64,
    pub(crate) active: Lit,
}
