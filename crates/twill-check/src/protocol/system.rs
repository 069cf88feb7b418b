//! The effects of warp groups on the storage and the barriers that they share, as plain data.
//!
//! A [`System`] is what the generated code says, not what its schedule meant: waits name the slot
//! and phase variables (*cursors*) that the code carries, so that a cursor advanced too early is
//! seen like a barrier that is missing. Only what other groups or asynchronous units can notice is
//! in it; arithmetic is not.

macro_rules! index_type {
    ($(#[$documentation:meta])* $name:ident) => {
        $(#[$documentation])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in its list.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index_type! {
    /// Names a [`Buffer`] of a [`System`].
    BufferId
}
index_type! {
    /// Names a [`BarrierArray`] of a [`System`].
    BarrierId
}
index_type! {
    /// Names a [`NamedBarrier`] of a [`System`].
    NamedBarrierId
}
index_type! {
    /// Names a [`Cursor`] of one [`Process`].
    CursorId
}
index_type! {
    /// Names a loop of the kernel; all processes run it equally often.
    LoopId
}

/// Warp groups, and the storage and barriers that they share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// Storage.
    pub buffers: Vec<Buffer>,
    /// `mbarrier` objects.
    pub barriers: Vec<BarrierArray>,
    /// `bar.sync` barriers.
    pub named_barriers: Vec<NamedBarrier>,
    /// Names of the kernel's loops; [`LoopId`] is the position.
    pub loops: Vec<String>,
    /// The warp groups.
    pub processes: Vec<Process>,
}

/// Slots of shared or tensor memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its name in the code.
    pub name: String,
    /// How many.
    pub slots: u32,
}

/// One `mbarrier` for every slot of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarrierArray {
    /// Its name in the code.
    pub name: String,
    /// How many.
    pub slots: u32,
    /// Arrivals that complete a phase.
    pub arrivals: u32,
}

/// A hardware barrier (`bar.sync`, `bar.arrive`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedBarrier {
    /// Its name in the code.
    pub name: String,
    /// Processes that must arrive before those that wait go on.
    pub participants: u32,
}

/// The slot and phase that a process carries for one use of a ring. It starts at slot 0, phase 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Its name in the code.
    pub name: String,
    /// Slots of the ring; after the last one comes the first, with the other phase.
    pub slots: u32,
}

/// The program of one warp group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its name in the code.
    pub name: String,
    /// Its cursors.
    pub cursors: Vec<Cursor>,
    /// Its operation.
    pub body: Vec<Node>,
}

/// A part of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// One thing.
    Do(Event),
    /// `for i in first..trips`.
    Loop {
        /// Whose trip count.
        trips: LoopId,
        /// The first iteration.
        first: u32,
        /// The body.
        body: Vec<Node>,
    },
    /// `if at_least <= trips <= at_most`.
    When {
        /// Whose trip count.
        trips: LoopId,
        /// At least this many.
        at_least: u32,
        /// At most this many, if there is a limit.
        at_most: Option<u32>,
        /// The body.
        body: Vec<Node>,
    },
    /// Once for every tile that the CTA works on; each may have other trip counts.
    Tiles(Vec<Node>),
}

/// An iteration, seen from where it is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Iteration {
    /// This one, from 0.
    Absolute(i64),
    /// The variable of the loop around it plus this.
    Current(i64),
    /// The trip count of a loop plus this.
    End(LoopId, i64),
}

/// Which value, of which iteration; and of which tile, which is that of the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// A number for the operation that makes it.
    pub value: u32,
    /// Its iteration.
    pub iteration: Iteration,
}

/// A value in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// The buffer.
    pub buffer: BufferId,
    /// The slot is the one that this cursor stands at; slot 0 without.
    pub at: Option<CursorId>,
    /// The value that is written, or that must be found.
    pub value: Tag,
}

/// One thing that a process does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Waits until the phase of the cursor's parity is complete (`mbarrier.try_wait.parity`). With
    /// `previous`, of the other parity, which on a fresh barrier returns at once.
    Wait {
        /// The barriers.
        barrier: BarrierId,
        /// The cursor with slot and phase.
        at: CursorId,
        /// The phase before the cursor's.
        previous: bool,
    },
    /// One arrival.
    Arrive {
        /// The barriers.
        barrier: BarrierId,
        /// The cursor with the slot.
        at: CursorId,
    },
    /// An asynchronous copy into shared memory, which arrives once when it is there. Copies finish in
    /// any order.
    Load {
        /// The slot that it writes, from now on until the value is there.
        writes: Access,
        /// The barriers.
        barrier: BarrierId,
        /// The cursor with the slot.
        at: CursorId,
        /// A unit of the async proxy writes (TMA), so what threads have read there must be fenced; else threads do (`cp.async`).
        by_unit: bool,
    },
    /// An asynchronous MMA. Those of one process finish in order.
    Mma {
        /// The slots that it reads until it has finished.
        reads: Vec<Access>,
        /// The slots that it writes until it has finished (tensor memory).
        writes: Vec<Access>,
        /// Barriers on which it arrives when it has finished (`tcgen05.commit`).
        signals: Vec<(BarrierId, CursorId)>,
    },
    /// Waits until at most this many MMAs of the process are under way (`wgmma.wait_group`).
    MmaWait(u32),
    /// The threads of the process write.
    Write(Access),
    /// The threads of the process read.
    Read(Access),
    /// Makes the writes of the process's threads to shared memory visible to asynchronous units, and orders their reads before
    /// what these write (`fence.proxy.async`).
    Fence,
    /// An asynchronous copy from shared to global memory. Those of one process finish reading in order.
    Store(Access),
    /// Waits until at most this many stores of the process still read (`cp.async.bulk.wait_group.read`).
    StoreWait(u32),
    /// Arrives at a named barrier and waits for the others (`bar.sync`).
    NamedBarrierSync(NamedBarrierId),
    /// Arrives at a named barrier and goes on (`bar.arrive`).
    NamedBarrierArrive(NamedBarrierId),
    /// The next slot.
    Advance(CursorId),
    /// Makes one cursor stand where another does.
    CopyCursor {
        /// The one that moves.
        to: CursorId,
        /// Where it moves to.
        from: CursorId,
    },
}
