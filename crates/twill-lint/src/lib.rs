//! A checker of Hopper machine code (`sm_90a`) that shares nothing with what generates it.
//!
//! [`lint`] reads a listing of nvdisasm or cuobjdump, builds the flow of control with the calls in it, and checks on every path
//! what the PTX ISA asks for: that no register of a `wgmma` in flight is touched before its wait, that fences stand between
//! ordinary accesses and those of `wgmma` and the async proxy, and that barriers in shared memory can complete. A rule reports
//! what is certain; what the text does not say is counted ([`Coverage`]).

pub mod constants;
mod disassemble;
mod finding;
pub mod flow;
mod program;
mod report;
mod rules;
pub mod sass;

pub use disassemble::{ReadError, files, listing};
pub use finding::{Finding, Place, Rule};
pub use program::Program;
pub use report::{Coverage, FunctionReport, ReadOff, Report, lint};
pub use rules::{Facts, Use, UseKind};
