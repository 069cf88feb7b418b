//! Why no code can be generated, where, and the way out.

use thiserror::Error;
use twill_graph::grouped;
use twill_triton::OperationLocation;

/// The way out where rows of one tile that different groups hold are read together.
pub(crate) const ONE_SUB_TILE: &str = "use one sub-tile (--sub-tiles 1)";

/// What stands in the way of generating code.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An operation that no back end can print.
    #[error("{place}: code generation does not know {what}; {way_out}")]
    Unsupported {
        /// Where.
        place: Box<OperationLocation>,
        /// What is not known.
        what: String,
        /// What to do.
        way_out: &'static str,
    },
    /// What one back end cannot print.
    #[error("the CUDA back end does not write {what}; generate the kernel without --emit cuda")]
    NotInCuda {
        /// What it would have to write.
        what: String,
    },
    /// Waves of CTAs that cannot be synchronised.
    #[error("waves of CTAs cannot be synchronised: {what}; leave out --wave-sync")]
    NoWaveSync {
        /// Why.
        what: String,
    },
    /// What Triton cannot compile.
    #[error("the Gluon back end does not write {what}; generate the kernel with --emit cuda")]
    NotInGluon {
        /// What it would have to write.
        what: String,
    },
    /// What the schedule says does not fit the kernel: a defect of Twill.
    #[error("{place}: the schedule does not say {what}; this is a defect of twill")]
    Defect {
        /// Where.
        place: Box<OperationLocation>,
        /// What is missing.
        what: String,
    },
    /// Buffers take more than there is.
    #[error(
        "the generated kernel needs {} bytes of shared memory and there are {}; use smaller tiles, fewer stages, rings of fewer slots, or CTAs of one tile each (--persistent off, without --wave-sync)",
        grouped(*.needed), grouped(*.available)
    )]
    SharedMemory {
        /// With all buffers.
        needed: u64,
        /// A block can have.
        available: u64,
    },
    /// Code that no compiler gets done with.
    #[error(
        "the loops have {} steps of code, for each number of iterations below that of the pipeline's stages too, and {} are the \
         most: iterations are short beside what loads take; use larger tiles",
        grouped(*.steps), grouped(*.most)
    )]
    TooLong {
        /// Steps of all groups.
        steps: u64,
        /// As many are generated.
        most: u64,
    },
    /// Buffers take more columns than there are.
    #[error(
        "the generated kernel needs {needed} columns of tensor memory and there are {available}: the schedule lets values \
         share columns at times that code without a clock cannot keep; let left operands stand in shared memory \
         (--machine b200-left-shared), or use smaller tiles"
    )]
    TensorMemory {
        /// With all buffers.
        needed: u64,
        /// A block can have.
        available: u64,
    },
    /// The warp programs fail their check: a defect of Twill.
    #[error("the generated warp programs are not safe; this is a defect of twill\n{counterexample}")]
    Protocol {
        /// A timeline.
        counterexample: String,
    },
    /// The warp programs are neither proved nor refuted.
    #[error("the generated warp programs are not proved safe: {why}; a lower --ring-depth makes smaller programs")]
    NotProved {
        /// What was too much.
        why: String,
    },
}

impl Error {
    /// Whether one sub-tile may do.
    pub fn asks_for_one_sub_tile(&self) -> bool {
        matches!(self, Error::Unsupported { way_out, .. } if *way_out == ONE_SUB_TILE)
    }

    /// The operation that it is about, if it is about one.
    pub fn place(&self) -> Option<&OperationLocation> {
        match self {
            Error::Unsupported { place, .. } | Error::Defect { place, .. } => Some(place),
            _ => None,
        }
    }
}
