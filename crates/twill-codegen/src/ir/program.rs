//! Warp programs of a whole kernel: what each warp group does, from its first instruction to its
//! last, as plain data that the printers and the protocol checker read alike.

use super::formula::Formula;
use super::{BarrierId, BufferId, DescriptorId, TileOrder, TileScheduler, VariableId};
use crate::ir::Node;
use crate::ir::Trace;
use twill_graph::{GroupId, Source};
use twill_triton::kernel::ENDLESS;
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
    pub tile_scheduler: TileScheduler,
    /// What two CTAs do together, where they form a cluster.
    pub cluster: Option<Cluster>,
    /// What is recorded of its time.
    pub trace: Option<Trace>,
    /// It waits for the grids before its own (PTX, `griddepcontrol.wait`) before it does anything else, so that it may be launched
    /// while these still run.
    pub dependent_launch: bool,
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
    /// It must not be 0: the kernel divides by it where its source would not have.
    pub not_zero: bool,
    /// It must be from 2⁻³² to 2³²: the kernel takes the maximum of numbers before it multiplies them by it.
    pub positive: bool,
    /// It points to memory that the kernel does not write.
    pub read_only: bool,
}

impl Parameter {
    /// One of which nothing is promised or known.
    #[must_use]
    pub const fn new(name: String, kind: Type) -> Self {
        Self { name, kind, divisible_by_16: false, at_least: None, not_zero: false, positive: false, read_only: false }
    }
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

impl Descriptor {
    /// Bytes from the first of the matrix's rows before to the one that the pointer points to.
    pub fn bytes_before(&self) -> u64 {
        let stride = |matrix: &Matrix| match matrix.stride {
            Amount::Constant(stride) => matrix.rows_before.saturating_mul(stride),
            Amount::Parameter(_) => 0,
        };
        let bytes = u64::from(self.element.scalar_bits().unwrap_or(0) / 8);
        self.matrix.as_ref().map_or(0, stride).saturating_mul(bytes)
    }
}

/// Matrices behind a pointer, their rows contiguous. Blocks are parts of one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Elements from a matrix to the next, for each dimension along which there are several.
    pub batches: Vec<Amount>,
    /// Rows and columns of each.
    pub extents: [Amount; 2],
    /// Elements from a row to the next.
    pub stride: Amount,
    /// Rows before the one that the pointer points to: a row's coordinate counts from the first of these. None where the
    /// stride is a parameter.
    pub rows_before: u64,
    /// Numbers that must not be negative, or else the kernel reads elsewhere: of scalar parameters and of the grid's
    /// extents, `programs_x` to `programs_z`.
    pub natural: Vec<Formula>,
}

impl Matrix {
    /// Extents of all dimensions, those of one matrix last; how many matrices there are, nobody says.
    pub fn all_extents(&self) -> Vec<Amount> {
        let several = self.batches.iter().map(|_| Amount::Constant(ENDLESS));
        several.chain(self.extents.iter().cloned()).collect()
    }

    /// Elements from one to the next along all dimensions, the contiguous one last.
    pub fn all_strides(&self) -> Vec<Amount> {
        self.batches.iter().chain([&self.stride, &Amount::Constant(1)]).cloned().collect()
    }
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

impl WarpProgram {
    /// A program without parameters, storage or groups, one CTA for each program of the grid.
    pub fn empty(name: String) -> WarpProgram {
        WarpProgram {
            name,
            parameters: Vec::new(),
            descriptors: Vec::new(),
            buffers: Vec::new(),
            barriers: Vec::new(),
            named_barriers: Vec::new(),
            loops: Vec::new(),
            groups: Vec::new(),
            tile_scheduler: TileScheduler {
                persistent: false,
                wave_sync: false,
                ctas_per_sm: 1,
                cta_coarsening: [1; 3],
                order: TileOrder::Linear,
            },
            cluster: None,
            trace: None,
            dependent_launch: false,
        }
    }

    /// Whether one group executes one operation after the other ([`in_order`](crate::in_order)).
    pub fn is_in_order(&self) -> bool {
        self.loops.is_empty() && self.groups.len() == 1
    }
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
        /// Bits of an element of its operands, which its depth depends on.
        bits: u32,
    },
    /// As an MMA whose result has N columns reads its left operand.
    LeftOperand {
        /// Columns of the result.
        columns: u64,
    },
    /// A thread has this many neighbours along the last dimension.
    Neighbours {
        /// How many.
        elements: u64,
    },
    /// Neighbours along a dimension point to neighbours in memory.
    Pointers {
        /// The dimension.
        dimension: usize,
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
