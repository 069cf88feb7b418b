//! The faults, in the numbers of an [`UnrolledSystem`](super::unrolled::UnrolledSystem).

/// An asynchronous user of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// A load of this process writes it.
    Load(usize),
    /// An MMA of this process reads it.
    MmaReads(usize),
    /// An MMA of this process writes it.
    MmaWrites(usize),
    /// A store of this process reads it.
    Store(usize),
}

/// The fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nobody can go on.
    Deadlock { processes: Vec<usize> },
    /// A slot has another value than its reader wants; 0 is none.
    WrongValue { process: usize, slot: usize, wanted: u16, found: u16 },
    /// A slot is touched while an asynchronous unit uses it.
    InUse { process: usize, slot: usize, write: bool, by: Use },
    /// Two processes touch a slot with nothing to order them.
    Race { process: usize, write: bool, other: usize, other_writes: bool, slot: usize },
    /// An asynchronous unit reads what threads wrote without a fence.
    Unfenced { process: usize, slot: usize, writer: usize },
    /// An asynchronous unit writes what threads read without a fence.
    UnfencedRead { process: usize, slot: usize, reader: usize },
    /// A wait looks at the parity of a phase that is not the one before or after.
    PhaseSlip { process: usize, barrier: usize, target: u32, completed: u32 },
    /// A process arrives twice before a named barrier opens.
    TwiceAtNamed { process: usize, named: usize },
    /// The kernel ends while something still runs.
    Unfinished { by: Use },
}

/// The fault, without the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// Nobody can go on, and not all is done.
    Deadlock,
    /// A slot is read that holds another value than the one wanted: too early, too late, another iteration.
    WrongValue,
    /// A slot is touched while a load, MMA or store still uses it.
    InUse,
    /// Two warp groups touch a slot, one of them writing, with nothing to order them.
    Race,
    /// An asynchronous unit reads what threads wrote, or writes what they read, without a fence in between.
    Unfenced,
    /// A barrier is two phases away from the one that is waited for, so that its parity lies.
    PhaseSlip,
    /// A warp group arrives at a named barrier twice before it opens.
    TwiceAtNamed,
    /// The kernel ends while a load, MMA or store still uses shared memory.
    Unfinished,
}

impl Fault {
    pub(super) fn kind(&self) -> FaultKind {
        match self {
            Fault::Deadlock { .. } => FaultKind::Deadlock,
            Fault::WrongValue { .. } => FaultKind::WrongValue,
            Fault::InUse { .. } => FaultKind::InUse,
            Fault::Race { .. } => FaultKind::Race,
            Fault::Unfenced { .. } | Fault::UnfencedRead { .. } => FaultKind::Unfenced,
            Fault::PhaseSlip { .. } => FaultKind::PhaseSlip,
            Fault::TwiceAtNamed { .. } => FaultKind::TwiceAtNamed,
            Fault::Unfinished { .. } => FaultKind::Unfinished,
        }
    }
}
