//! Warp programs of a whole kernel: what each warp group does, from its first instruction to its
//! last, as plain data that the printers and the protocol checker read alike.

use super::{BarrierId, BufferId, CursorId, DescriptorId, IterationNumber, VariableId};
use crate::ir::Node;
use crate::ir::Trace;
use crate::options::Options;
use crate::passes::steps::program::Iteration;
use twill_graph::{GroupId, LoopOperation, OpId, Source};
use twill_triton::mlir::Type;

/// The warp programs of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpProgram {
    /// The kernel's name.
    pub name: String,
    /// Its parameters in the order of the source.
    pub parameters: Vec<Parameter>,
    /// The tensor descriptors that the groups use.
    pub descriptors: Vec<Descriptor>,
    /// Storage in shared and tensor memory.
    pub buffers: Vec<Buffer>,
    /// `mbarrier` arrays.
    pub barriers: Vec<Barriers>,
    /// `bar.sync` barriers: name and participating groups.
    pub named_barriers: Vec<(String, u32)>,
    /// The loops, in the order of the text.
    pub loops: Vec<LoopMetadata>,
    /// The warp groups; compute groups first.
    pub groups: Vec<Group>,
    /// The tile scheduler: how programs of the grid are assigned to CTAs.
    pub tiling: Tiling,
    /// What two CTAs do together, where they form a cluster.
    pub cluster: Option<Cluster>,
    /// What is recorded of its time.
    pub trace: Option<Trace>,
}

/// The tile scheduler: how programs of the grid are assigned to CTAs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiling {
    /// A CTA works on one tile after another.
    pub persistent: bool,
    /// Waves of tiles are synchronised by a soft grid barrier.
    pub wave_sync: bool,
    /// Programs along each axis that share a CTA.
    pub cta_coarsening: [u32; 3],
    /// In which order tiles are worked on.
    pub order: TileOrder,
}

impl Tiling {
    /// As options say.
    pub(crate) fn of(options: &Options) -> Tiling {
        let mut cta_coarsening = [1; 3];
        if let Some((count, axis)) = options.programs
            && let Some(slot) = cta_coarsening.get_mut(axis as usize)
        {
            *slot = count;
        }
        let Options { persistent, wave_sync, order, .. } = *options;
        Tiling { persistent, wave_sync, cta_coarsening, order }
    }

    /// The width of a swizzle group, in programs of the second axis, where waves of tiles that get shorter are assigned in
    /// serpentine order: every other wave from the last CTA to the first, so that two waves are as long for all.
    pub fn serpentine(&self) -> Option<u32> {
        match self.order {
            TileOrder::Lpt { width, even_in_pairs: true } if self.persistent => Some(width),
            _ => None,
        }
    }
}

/// A cluster of two CTAs with neighbouring tiles: each copies one half of a tile that both read to both (TMA multicast).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The rings of what both read; there is at least one.
    pub rings: Vec<MulticastRing>,
}

/// A ring of loads that both CTAs of a cluster fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MulticastRing {
    /// Its slots.
    pub buffer: BufferId,
    /// What copies halves of its tiles, and nothing else.
    pub descriptor: DescriptorId,
    /// Complete when both halves are there.
    pub full: BarrierId,
    /// At which the groups of both CTAs arrive.
    pub empty: BarrierId,
}

/// In which order the programs of a grid are worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileOrder {
    /// As a grid is: the first axis fastest.
    Linear,
    /// The first axis from its end, so that tiles with long loops come first.
    Lpt {
        /// Programs of the second axis in a swizzle group, so that what they share stays in the L2 cache.
        width: u32,
        /// Loops get shorter with the first axis, so that two waves in serpentine order are as long for all CTAs.
        even_in_pairs: bool,
    },
    /// Groups of this many along the first axis, the first axis fastest, then the second.
    GroupM(u32),
}

/// A parameter of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its type in the TTIR.
    pub kind: Type,
    /// The caller promises a multiple of 16.
    pub divisible_by_16: bool,
    /// The least number above 0 that it may be: tiles of a longer step than the source's must not reach beyond its span.
    pub at_least: Option<i64>,
}

/// A tensor descriptor for blocks of one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Its name in the code.
    pub name: String,
    /// The parameter whose tensor it describes.
    pub parameter: String,
    /// Extents of a block.
    pub block: Vec<u64>,
    /// Type of an element.
    pub element: Type,
    /// The matrix that it describes, where the parameter is only a pointer.
    pub matrix: Option<Matrix>,
}

/// A matrix behind a pointer, its rows contiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Rows and columns.
    pub extents: [Amount; 2],
    /// Elements from a row to the next.
    pub stride: Amount,
    /// Scalar parameters that must not be negative, or else the kernel reads elsewhere.
    pub natural: Vec<String>,
}

/// A number that is known when the kernel is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A scalar parameter of the kernel, by name.
    Parameter(String),
    /// A constant.
    Constant(u64),
}

/// Where a buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// In shared memory.
    Shared,
    /// In tensor memory; a slot takes N columns of all lanes.
    Tensor {
        /// Columns of 32 bits.
        columns: u64,
    },
}

/// Slots for tiles of one shape in shared or tensor memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its name in the code.
    pub name: String,
    /// Extents of a tile.
    pub shape: Vec<u64>,
    /// Type of an element.
    pub element: Type,
    /// Number of tiles.
    pub slots: u32,
    /// As many as any schedule must have, because the options ask for them.
    pub least_slots: u32,
    /// Where it is.
    pub memory: Memory,
    /// It is only read and written by threads, so it needs no layout that the tensor core or TMA knows.
    pub plain: bool,
    /// Where the Python source makes what is in it.
    pub source: Option<Source>,
}

impl Buffer {
    /// Whether it is in tensor memory.
    pub fn is_tensor(&self) -> bool {
        matches!(self.memory, Memory::Tensor { .. })
    }

    /// Columns of tensor memory that all slots take.
    pub fn columns(&self) -> u64 {
        match self.memory {
            Memory::Shared => 0,
            Memory::Tensor { columns } => columns * u64::from(self.slots),
        }
    }

    /// Bytes of shared memory that all slots take.
    pub fn shared_bytes(&self) -> u64 {
        if self.is_tensor() { 0 } else { self.bytes() }
    }

    /// Bytes of all slots.
    pub fn bytes(&self) -> u64 {
        let bits = u64::from(self.element.scalar_bits().unwrap_or(32));
        self.shape.iter().product::<u64>() * bits / 8 * u64::from(self.slots)
    }
}

/// One `mbarrier` for every slot of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barriers {
    /// Its name in the code.
    pub name: String,
    /// How many.
    pub slots: u32,
    /// Who arrives to complete a phase.
    pub arrivals: Vec<Arrival>,
}

/// One arrival at an `mbarrier`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// By a unit: TMA, tensor core.
    Unit,
    /// By the threads of a group of N warps.
    Threads {
        /// Warps.
        warps: u32,
    },
    /// By each thread of a group of N warps, when its asynchronous copies are there.
    EachThread {
        /// Warps.
        warps: u32,
    },
}

/// A loop of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopMetadata {
    /// Its name.
    pub name: String,
    /// Its initiation interval in cycles.
    pub interval: i64,
    /// Number of stages.
    pub stages: u32,
    /// Rows, columns and depth of the source's first dot in it.
    pub dot: Option<[u64; 3]>,
    /// How often it runs, where that is the same for all programs and arguments.
    pub trip_count: Option<u64>,
    /// What the source's step was, if it goes in steps of another size ([`twill_triton::retile_loop`]).
    pub source_step: Option<u64>,
}

impl LoopMetadata {
    /// Whether it may run so often that there is a steady state; else ptxas may leave no loop.
    pub fn repeats(&self) -> bool {
        self.trip_count.is_none_or(|trips| trips > u64::from(self.stages))
    }
}

/// What one warp group does.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its number in the schedule.
    pub id: GroupId,
    /// Its name in the code.
    pub name: String,
    /// Warps.
    pub warps: u32,
    /// Registers a thread that the schedule grants.
    pub registers: u32,
    /// Tiles and scalars that it holds.
    pub variables: Vec<Variable>,
    /// Slots and phases that it carries.
    pub cursors: Vec<Cursor>,
    /// By loop, the scalar that holds its trip count.
    pub trips: Vec<Option<VariableId>>,
    /// Before the first tile.
    pub begin: Vec<Node>,
    /// For every tile that the CTA works on.
    pub body: Vec<Node>,
    /// After the last tile.
    pub end: Vec<Node>,
}

/// A value that a group holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its name in the code.
    pub name: String,
    /// Extents; none for a scalar.
    pub shape: Vec<u64>,
    /// Type of an element.
    pub element: Type,
    /// What its layout must be.
    pub form: Form,
}

/// How threads hold a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As it comes.
    Any,
    /// As an MMA leaves a result with N columns.
    Accumulator {
        /// Columns of the result.
        columns: u64,
    },
    /// As an MMA whose result has N columns reads its left operand.
    LeftOperand {
        /// Columns of the result.
        columns: u64,
    },
}

/// A slot and a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Its name in the code.
    pub name: String,
    /// Slots of the ring.
    pub slots: u32,
    /// Whether anything reads its phase.
    pub phase: bool,
}

/// A part of a tile in shared or tensor memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The buffer.
    pub buffer: BufferId,
    /// The slot; the only one if there is none.
    pub at: Option<CursorId>,
    /// Dimension, first index and extent of a part.
    pub slice: Option<(usize, u64, u64)>,
    /// Rows and columns change places.
    pub transposed: bool,
    /// The value in it.
    pub value: SlotValue,
}

/// A value in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryValue {
    /// The result of an operation of a loop.
    Result(LoopOperation),
    /// An invariant tile, or a part of one.
    Invariant(u32),
    /// What a store of the source writes, by the store's number in its module.
    Staged(u32),
    /// A loop's result that a group hands to another after the loop.
    Exported(u32),
}

/// A value of an iteration, in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotValue {
    /// Which value.
    pub id: MemoryValue,
    /// Of which iteration; the first where no loop makes it.
    pub at: IterationNumber,
}

impl SlotValue {
    /// The result of an operation of loop `index`.
    pub fn result(index: usize, op: OpId, iteration: Iteration) -> SlotValue {
        SlotValue { id: MemoryValue::Result(LoopOperation { index, op }), at: IterationNumber { index, iteration } }
    }

    /// A value that no loop makes.
    pub fn outside(id: MemoryValue) -> SlotValue {
        SlotValue { id, at: IterationNumber { index: 0, iteration: Iteration::Absolute(0) } }
    }
}

/// An operand of an MMA.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// In shared or tensor memory.
    Shared(Slot),
    /// In registers.
    Registers(VariableId),
}

/// An MMA whose result stays in tensor memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tcgen05Mma {
    /// Rows × depth.
    pub left: Slot,
    /// Depth × columns.
    pub right: Slot,
    /// The result.
    pub to: Slot,
    /// What it adds to.
    pub addend: Addend,
    /// Signalled when it and all MMAs before it are done.
    pub signals: Vec<(BarrierId, CursorId)>,
}

/// What an MMA in tensor memory adds to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addend {
    /// Nothing.
    Zero,
    /// What another operation put in the place of its result.
    Value(SlotValue),
    /// Its result of the iteration before.
    Before,
    /// Its result of the iteration before; nothing in the first.
    BeforeUnlessFirst(crate::ir::IterationNumber),
}
