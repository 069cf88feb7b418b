//! Machine descriptions: what one streaming multiprocessor offers, and what a tile operation costs on it.
//!
//! A machine is a TOML file in which every number says where it comes from ([`Provenance`]). Those of `machines/` are
//! built in; a user's own is given by its path and may extend another. The format is described in `docs/machines.md`.
//!
//! A machine answers two questions: its [`resources`](Machine::resources), for the schedulers, and the
//! [`cost`](Machine::cost) of a [`TileWork`], for the lowering of kernels to loop graphs. No schedule is known here.
//!
//! ```
//! use twill_graph::{Cycles, Words};
//! use twill_machine::{Element, Machine, TileWork};
//!
//! let h100 = Machine::load("h100")?;
//! let gemm = TileWork::Mma { rows: 64, columns: 128, depth: 128, element: Element::F16 };
//! let cost = h100.cost(&gemm)?;
//! assert_eq!((cost.reservations[0].unit.as_str(), cost.occupancy), ("tensor", Cycles(512)));
//!
//! let scores = h100.register_words(64 * 128, 32);
//! assert_eq!((scores, h100.handoff(scores)), (Words(8192), Cycles(576)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builtin;
mod changed;
mod cost;
mod difference;
mod document;
mod error;
mod extends;
mod machine;
mod nearest;
mod operation;
mod provenance;
mod read;
mod read_rules;
mod reader;
mod rule;
mod show;
#[cfg(test)]
mod tests;
mod write;

pub use changed::Changes;
pub use cost::{Cost, CostError};
pub use difference::{Difference, differences};
pub use error::{FileLine, MachineError};
pub use machine::{Chip, Machine, Memory, Power, Sharing, Synchronization, TensorCore};
pub use operation::{Element, ElementwiseClass, Mechanism, Reduction, TileWork};
pub use provenance::{Provenance, Row};

/// Names of the machines that come with Twill.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    builtin::names()
}

/// The text of a built-in machine's file.
pub fn builtin_text(name: &str) -> Option<&'static str> {
    builtin::find(name).map(|(_, text)| text)
}

/// Reads the text of a machine file and reports all that is wrong with it, in order of file and line.
///
/// `file` is named in errors, and relative paths in `extends` start from its folder.
///
/// # Errors
/// At least one [`MachineError`].
pub fn check(text: &str, file: &str) -> Result<Machine, Vec<MachineError>> {
    read::machine(text, &extends::Origin::file(file))
}
