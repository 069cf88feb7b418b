//! The errors.

use cudarc::driver::DriverError;
use std::path::PathBuf;
use thiserror::Error;

/// Why the kernel cannot be run.
#[derive(Debug, Error)]
pub enum Error {
    /// The command line.
    #[error("usage: twill-gemm FOLDER CUBIN M N K, or twill-gemm --describe FOLDER M N K")]
    Usage,
    /// A size of the command line.
    #[error("{name} must be a whole number from 1 to 1048576, not {text}")]
    Size {
        /// Which.
        name: &'static str,
        /// The given value.
        text: String,
    },
    /// TMA copies rows that begin at multiples of 16 bytes, and the kernel is compiled for such a K.
    #[error("{name} must be a multiple of {divisor}, not {value}")]
    Uneven {
        /// Which size.
        name: &'static str,
        /// The required divisor.
        divisor: u64,
        /// The given value.
        value: u64,
    },
    /// A file that cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that is no kernel.json.
    #[error("{path}: {source}", path = path.display())]
    Json {
        /// Which.
        path: PathBuf,
        /// Where, and what was expected.
        source: serde_json::Error,
    },
    /// A kernel of another back end, or of another version.
    #[error("{path} is no twill-kernel of version 1 in CUDA: write the folder with twill compile --emit cuda", path = path.display())]
    NotCuda {
        /// The file.
        path: PathBuf,
    },
    /// Another kernel than the GEMM.
    #[error("this program runs gemm_tma, but {name} has {what}")]
    NotGemm {
        /// The kernel.
        name: String,
        /// The difference from the GEMM.
        what: String,
    },
    /// Elements or swizzles that there is no tensor map for.
    #[error("{argument}: no tensor map has {what}")]
    NoMap {
        /// The kernel's argument.
        argument: String,
        /// The missing part.
        what: String,
    },
    /// A grid that no launch can have.
    #[error("{tiles} tiles are more than a launch can have")]
    TooMany {
        /// Tiles of the result.
        tiles: u64,
    },
    /// A grid that is not made of whole clusters.
    #[error("{along_x} thread blocks along x are no whole clusters of {cluster}")]
    NoClusters {
        /// Thread blocks along the grid's first axis.
        along_x: u64,
        /// Thread blocks of a cluster.
        cluster: u64,
    },
    /// A machine without CUDA's driver.
    #[error("no GPU: CUDA's driver (libcuda.so.1) is not there")]
    NoDriver,
    /// A call of the driver.
    #[error("{what}: {source}")]
    Driver {
        /// The action that failed.
        what: &'static str,
        /// How it failed.
        source: DriverError,
    },
    /// A GPU that the kernel was not made for.
    #[error(
        "the kernel was made for {architecture}, but the GPU is sm_{major}{minor}: compile it for a machine like that"
    )]
    OtherGpu {
        /// The kernel's.
        architecture: String,
        /// The GPU's.
        major: i32,
        /// The GPU's.
        minor: i32,
    },
}

impl Error {
    /// The purpose of a driver call.
    pub fn driver(what: &'static str) -> impl Fn(DriverError) -> Error {
        move |source| Error::Driver { what, source }
    }
}
