//! The tile operations that have a cost on a machine.

use std::fmt;
use twill_graph::{Bytes, Words};

/// A tile operation, as far as its cost depends on it.
///
/// Every operation uses the whole SM, and sizes are those of one operation (of one sub-tile, if the loop is cut into
/// sub-tiles). Arithmetic on row statistics is an [`Elementwise`](TileWork::Elementwise) over
/// [`row_statistic_words`](crate::Machine::row_statistic_words) elements: every copy is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TileWork {
    /// `rows × columns` results, each a sum over `depth` products, on the tensor core.
    ///
    /// The shape is rounded up to whole instructions.
    Mma {
        /// Rows of the result (M).
        rows: u64,
        /// Columns of the result (N).
        columns: u64,
        /// Length of the sums (K).
        depth: u64,
        /// Type of both operands.
        element: Element,
    },
    /// One instruction for every element.
    ///
    /// A function that takes several is a chain of these: see [`Cost::then`](crate::Cost::then).
    Elementwise {
        /// The kind of instruction.
        class: ElementwiseClass,
        /// Elements of the tile.
        elements: u64,
        /// Bits of an element of the result; more than 32 take several instructions.
        element_bits: u32,
    },
    /// Every row of the tile becomes one value.
    Reduce {
        /// How elements are combined.
        kind: Reduction,
        /// Rows.
        rows: u64,
        /// Elements of a row.
        columns: u64,
    },
    /// Global to shared memory.
    Load {
        /// Amount.
        bytes: Bytes,
        /// How.
        mechanism: Mechanism,
    },
    /// Registers or shared memory to global memory.
    Store {
        /// Amount.
        bytes: Bytes,
        /// How.
        mechanism: Mechanism,
    },
    /// Combined with what stands in global memory, atomically.
    AtomicReduce {
        /// Amount.
        bytes: Bytes,
        /// How.
        mechanism: Mechanism,
    },
    /// Registers to shared memory.
    ToShared {
        /// Amount.
        bytes: Bytes,
    },
    /// Shared memory to registers.
    FromShared {
        /// Amount.
        bytes: Bytes,
    },
    /// Tensor memory to registers.
    TensorLoad {
        /// 32-bit words; two 16-bit elements share one.
        words: Words,
    },
    /// Registers to tensor memory.
    TensorStore {
        /// 32-bit words; two 16-bit elements share one.
        words: Words,
    },
}

impl TileWork {
    /// Returns whether it is global-memory traffic, whose latency is not known statically.
    pub fn has_variable_latency(&self) -> bool {
        matches!(self, TileWork::Load { .. } | TileWork::Store { .. } | TileWork::AtomicReduce { .. })
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            TileWork::Mma { .. } => "MMA",
            TileWork::Elementwise { .. } => "elementwise operation",
            TileWork::Reduce { .. } => "reduction",
            TileWork::Load { .. } => "load",
            TileWork::Store { .. } => "store",
            TileWork::AtomicReduce { .. } => "atomic reduction",
            TileWork::ToShared { .. } => "store to shared memory",
            TileWork::FromShared { .. } => "load from shared memory",
            TileWork::TensorLoad { .. } => "load from tensor memory",
            TileWork::TensorStore { .. } => "store to tensor memory",
        }
    }
}

/// The unit family that executes an elementwise instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementwiseClass {
    /// Floating-point add, subtract, multiply, multiply-add.
    Fma,
    /// Integer and logical arithmetic, comparison, selection, minimum and maximum.
    Alu,
    /// exp2, log2, reciprocal, square roots, sine, cosine, tanh.
    SpecialFunction,
    /// Change of element type.
    Convert,
}

/// How the elements of a row are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Maximum, minimum, and everything else that is not floating-point arithmetic.
    Maximum,
    /// Sum, product, and everything else that is.
    Sum,
}

/// The unit that moves data to and from global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// The tensor memory accelerator, by descriptor. On a machine without one: as [`Pointer`](Mechanism::Pointer),
    /// which is what Triton makes of descriptors there.
    Tma,
    /// Threads, by pointer.
    Pointer,
}

/// Type of a tensor-core operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Element {
    /// IEEE half precision.
    F16,
    /// bfloat16.
    Bf16,
    /// Single precision rounded to 10 bits of mantissa.
    Tf32,
    /// Either 8-bit floating-point type.
    F8,
    /// 8-bit integer.
    I8,
}

impl Element {
    /// All of them.
    pub const ALL: [Element; 5] = [Element::F16, Element::Bf16, Element::Tf32, Element::F8, Element::I8];

    /// Its name in machine files.
    pub fn key(self) -> &'static str {
        match self {
            Element::F16 => "f16",
            Element::Bf16 => "bf16",
            Element::Tf32 => "tf32",
            Element::F8 => "f8",
            Element::I8 => "i8",
        }
    }

    /// Bits that an operand takes in memory.
    pub fn bits(self) -> u32 {
        match self {
            Element::F16 | Element::Bf16 => 16,
            Element::Tf32 => 32,
            Element::F8 | Element::I8 => 8,
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.key())
    }
}
