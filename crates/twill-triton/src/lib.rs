//! From a Triton kernel, as MLIR text, to the loop graph that the rest of Twill schedules.
//!
//! | stage | from | to |
//! |---|---|---|
//! | [`mlir`] | text of Triton's intermediate representation (TTIR) | operations and values that remember their place in the Python source |
//! | [`kernel`] | a module | the kernel's innermost loops, as tile operations ([`tile::TileLoop`]) |
//! | [`retile_loop`] | a kernel | the same with tiles of another size along its loop |
//! | [`contract`](fn@contract) | multiply and add | one multiply-add |
//! | [`sub_tile`](fn@sub_tile) | a tile loop | the same loop cut along its rows |
//! | [`coarsening`](fn@coarsening) | a tile loop | the same loop for several programs that share a CTA |
//! | [`lower`](fn@lower) | a tile loop and a machine | a [`twill_graph::LoopGraph`] |
//!
//! ```
//! use twill_machine::Machine;
//! use twill_triton::{Options, lower, read};
//!
//! let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/gemm_tma.ttir");
//! let kernel = read(&std::fs::read_to_string(file)?, "gemm_tma.ttir")?;
//! let gemm = &kernel.loops()[0];
//! assert_eq!(gemm.rows(), Some(128));
//!
//! let graph = lower(gemm, &Machine::load("h100")?, &Options::default())?;
//! let names: Vec<&str> = graph.operations().iter().map(|op| op.name.as_str()).collect();
//! assert_eq!(names, ["a.0", "a.1", "b", "acc.0", "acc.1"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod axis_info;
mod contract;
mod cta_coarsening;
mod error;
mod grid;
pub mod kernel;
mod lower;
pub mod mlir;
mod multi_loop;
mod operations;
mod polynomial;
pub mod retile_loop;
mod sub_tile;
pub mod supported;
pub mod tile;

pub use axis_info::{Access, AxisInfo, AxisInfos};
pub use contract::contract;
pub use cta_coarsening::{CtaCoarsening, coarsening};
pub use error::{Error, OperationLocation};
pub use kernel::Kernel;
pub use lower::{Lowered, Options, Stands, lower, lower_parts};
pub use sub_tile::sub_tile;

/// Reads the only kernel of a text of TTIR; `file` is named in errors.
///
/// # Errors
/// When the text is not TTIR, has no kernel or several, or a loop of it is not supported.
pub fn read(text: &str, file: &str) -> Result<Kernel, Error> {
    Kernel::new(mlir::parse(text, file)?, None)
}

/// Reads the kernel of this name from a text of TTIR; `file` is named in errors.
///
/// # Errors
/// As [`read`], and when there is no such kernel.
pub fn read_kernel(text: &str, file: &str, name: &str) -> Result<Kernel, Error> {
    Kernel::new(mlir::parse(text, file)?, Some(name))
}
