//! The folder that a kernel is run from: its metadata, and the Python that is written next to it.
//!
//! | file | what |
//! |---|---|
//! | `metadata` | `kernel.json`: how the kernel is called |
//! | `trace` | of `kernel.json`, what a traced kernel records |
//! | `assembly` | of `kernel.json`, what the assembler made of it |
//! | `example` | constants and tests of the kernels of `examples/` |
//! | `launch.py` | checks arguments, and launches the kernel |
//! | `machine_code.py` | reports on machine code |
//! | `gluon/`, `cuda/` | of each language, a launch's plan and the assembler check |
//! | `tests/` | parts of `test_kernel.py` |

mod assembly;
mod example;
mod metadata;
mod trace;

pub use assembly::{AssembledGroup, AssembledLoop, Assembly, Finding, HAZARD, Linted, MANY_SPILLED};
pub use metadata::{CodeLine, LoopTraffic, Signature, Simulated};
use twill_codegen::Checked;

/// The launcher that is written next to every kernel.
pub const LAUNCHER: &str = include_str!("launch.py");

/// How reports on machine code are made, written next to every kernel.
pub const MACHINE_CODE: &str = include_str!("machine_code.py");

/// What the launcher does at each launch of a kernel in Gluon, written next to it.
pub const GLUON_PLAN: &str = include_str!("gluon/plan.py");

/// The assembler check of a kernel in Gluon, written next to it.
pub const GLUON_ASSEMBLER: &str = include_str!("gluon/assemble.py");

/// Which ptxas assembles a kernel in Gluon, written next to it.
pub const GLUON_PTXAS: &str = include_str!("gluon/ptxas.py");

/// What the launcher does at each launch of a kernel in CUDA, written next to it.
pub const CUDA_PLAN: &str = include_str!("cuda/plan.py");

/// The compiler of a kernel in CUDA and its check, written next to it.
pub const CUDA_ASSEMBLER: &str = include_str!("cuda/assemble.py");

/// A test of the kernel, `test_kernel.py`: that it compiles, and for the kernels of `examples/` that its results are right.
pub fn test(kernel: &Checked) -> String {
    example::test(kernel)
}
