//! Proofs that an interval has no schedule: what their literals mean, why each clause holds, and the
//! steps from the clauses to the contradiction. `docs/solvers.md` says what is trusted.
//!
//! A proof consists of clauses that hold for every schedule (each an instance of a constraint, or a
//! lemma of arithmetic) and of clauses that follow from those by unit propagation, the last of which
//! is empty. Times are `t = stage · I + slot`, `0 ≤ slot < I`, `stage ≥ 0`, and operation 0 stands in slot 0.

mod multipliers;
mod text;

pub use multipliers::{Multipliers, StepPrice, Wavefront};
pub use text::ProofTextError;

use crate::{Cycles, DependenceId, GroupId, OpId, UnitId};

/// A literal as in DIMACS files: the number of an atom from 1, negative for its negation.
pub type Literal = i32;

/// A variable of the difference system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// Slot 0.
    Origin,
    /// The slot of an operation.
    Slot(OpId),
    /// The stage of an operation.
    Stage(OpId),
}

/// Something that takes room from its start to the latest of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Item {
    /// The result of an operation.
    Value(OpId),
    /// A register value on the group of an operation that reads it from another.
    Operand(DependenceId),
    /// The handoff buffer of an operation's register result.
    Buffer(OpId),
    /// A reservation of an operation, by its position.
    Reservation(OpId, usize),
}

/// The storage that items take room in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pool {
    /// Instances of a functional unit.
    Unit(UnitId),
    /// Registers of a warp group.
    Registers,
    /// Shared memory.
    Shared,
    /// Tensor memory.
    Tensor,
}

/// The statement of an atom about a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Atom {
    /// `to − from ≥ least`.
    Bound {
        /// Subtracted.
        from: Point,
        /// From what.
        to: Point,
        /// Bound.
        least: i64,
    },
    /// An operation runs on a group.
    OnGroup {
        /// Operation.
        op: OpId,
        /// Group.
        group: GroupId,
    },
    /// Some operation runs on a group.
    Used {
        /// Group.
        group: GroupId,
    },
    /// Two operations run on one group.
    Same {
        /// One.
        a: OpId,
        /// The other.
        b: OpId,
    },
    /// `(stage(s₁) − stage(s₀)) · I + slot(l₁) − slot(l₀) ≥ least`.
    Later {
        /// `s₀`, `s₁`.
        stages: (OpId, OpId),
        /// `l₀`, `l₁`.
        slots: (OpId, OpId),
        /// Bound.
        least: i64,
    },
    /// An operation waits: for an asynchronous unit, or for a register value of another group.
    Waits {
        /// Operation.
        op: OpId,
    },
    /// At least this many copies of an item are alive in the slot in which another starts.
    Alive {
        /// The storage that both take room in.
        pool: Pool,
        /// The item.
        item: Item,
        /// Copies.
        copies: i64,
        /// The item that starts.
        event: Item,
    },
    /// The ring of a load has at least this many slots.
    Ring {
        /// Streaming load.
        load: OpId,
        /// Slots.
        slots: i64,
    },
    /// A compute group in use is given at least this many registers a thread.
    Registers {
        /// Group.
        group: GroupId,
        /// Registers a thread.
        least: u32,
    },
    /// All of these literals hold.
    All(Vec<Literal>),
}

/// Which limit on registers is exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegisterLimit {
    /// Those of a fixed group.
    Fixed(GroupId),
    /// The registers that a thread can address.
    Thread,
    /// Those of a compute group that is given fewer than this many a thread.
    Below(GroupId, u32),
}

/// Why a clause holds for every schedule at the interval (or for one that is as good).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The definition of the atom, one of the two directions.
    Definition {
        /// The atom, from 1.
        atom: Literal,
    },
    /// A bound that follows from the others of the clause (a positive cycle).
    Difference,
    /// The longest path of dependences from one operation to another, when at most this many stages lie between them.
    Dependence {
        /// Start of the path.
        from: OpId,
        /// End of the path.
        to: OpId,
        /// Stages.
        stages: i64,
    },
    /// Two reservations of a unit with one instance do not overlap, `wrap` intervals apart.
    Resource {
        /// Operation and position of its reservation.
        first: (OpId, usize),
        /// Operation and position of its reservation.
        second: (OpId, usize),
        /// Intervals.
        wrap: i64,
    },
    /// Two synchronous operations of a group do not overlap.
    Exclusive {
        /// One.
        first: OpId,
        /// The other.
        second: OpId,
        /// Intervals apart.
        wrap: i64,
    },
    /// An operation that waits does not stall another of its group.
    Concurrency {
        /// The one that waits.
        waiting: OpId,
        /// The other.
        other: OpId,
        /// Intervals apart.
        wrap: i64,
    },
    /// A register result is read on its own group, or the handoff's cycles later.
    Handoff {
        /// The dependence.
        dependence: DependenceId,
    },
    /// An operation runs on some group.
    SomeGroup {
        /// Operation.
        op: OpId,
    },
    /// An operation runs on one group only.
    OneGroup {
        /// Operation.
        op: OpId,
    },
    /// Compute groups are interchangeable: an operation opens one only after an earlier operation opened the one before.
    GroupOrder {
        /// Operation.
        op: OpId,
        /// Group.
        group: GroupId,
    },
    /// Compute groups are interchangeable: one is used only with the one before.
    UsedOrder {
        /// Group.
        group: GroupId,
    },
    /// Interchangeable sub-tiles start in order.
    SubTileOrder {
        /// First operation of a sub-tile.
        first: OpId,
        /// First operation of the next.
        second: OpId,
    },
    /// A group with this many registers has fewer as well.
    RegisterOrder {
        /// Group.
        group: GroupId,
        /// More registers a thread.
        higher: u32,
        /// Fewer.
        lower: u32,
    },
    /// The items alive when an item starts exceed a unit or a memory.
    Overfull {
        /// Unit or memory.
        pool: Pool,
        /// The item that starts.
        event: Item,
    },
    /// The items alive on a group when an item starts exceed its registers.
    OverfullRegisters {
        /// The item that starts.
        event: Item,
        /// Which registers.
        limit: RegisterLimit,
    },
    /// The rings of streaming loads exceed shared memory.
    OverfullRings,
    /// The registers of all groups exceed the register file.
    RegisterFile,
}

/// A step of the derivation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProofStep {
    /// The clause follows from those before by unit propagation.
    Learn,
    /// The clause is not needed any more.
    Delete,
}

/// A list of clauses, each with a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clauses<T> {
    literals: Vec<Literal>,
    ends: Vec<(usize, T)>,
}

impl<T> Default for Clauses<T> {
    fn default() -> Self {
        Clauses { literals: Vec::new(), ends: Vec::new() }
    }
}

impl<T> Clauses<T> {
    /// Appends a clause.
    pub fn push(&mut self, clause: impl IntoIterator<Item = Literal>, tag: T) {
        self.literals.extend(clause);
        self.ends.push((self.literals.len(), tag));
    }

    /// All clauses with their tags, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[Literal], &T)> {
        (0..self.ends.len()).map(|i| {
            let start = if i == 0 { 0 } else { self.ends[i - 1].0 };
            let (end, tag) = &self.ends[i];
            (&self.literals[start..*end], tag)
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// A proof that no schedule with the problem's warps exists at an interval, with any number of stages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Initiation interval in cycles.
    pub interval: i64,
    /// Meaning of the atoms; the first is number 1.
    pub atoms: Vec<Atom>,
    /// Clauses that hold, and why.
    pub clauses: Clauses<Reason>,
    /// From there to the empty clause.
    pub steps: Clauses<ProofStep>,
}

/// A bound on the interval that needs no search, by what proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundWitness {
    /// An iteration takes at least a cycle.
    Trivial,
    /// ResMII: the cycles for which a unit is held.
    Resource(UnitId),
    /// The bytes that shared memory moves.
    SharedBandwidth,
    /// RecMII: a cycle of dependences.
    Recurrence(Vec<DependenceId>),
    /// With exclusive issue, the synchronous work of all compute groups together, and the issues after waits.
    GroupWork,
    /// With exclusive issue, one long synchronous operation.
    Operation(OpId),
}

/// The evidence that no schedule exists below an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Every interval below this one is rejected.
    pub below: Cycles,
    /// There is no schedule: nothing is claimed at or above [`Certificate::below`], unless what is said in
    /// `docs/model.md` of the largest interval covers it.
    pub infeasible: bool,
    /// Intervals below this one need no search.
    pub bound: Cycles,
    /// The proof.
    pub witness: BoundWitness,
    /// Intervals at which an operation overlaps its own next iteration.
    pub conflicts: Vec<(Cycles, OpId)>,
    /// Intervals rejected by search.
    pub proofs: Vec<Proof>,
}
