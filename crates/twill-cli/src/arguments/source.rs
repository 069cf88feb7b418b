//! The input, and how it becomes loop graphs.

use clap::Args;
use std::path::PathBuf;
use twill_driver::options::LoweringOptions;

/// The input, and how it becomes loop graphs.
#[derive(Clone, Debug, Args)]
pub(crate) struct SourceArguments {
    /// TTIR, loop graph (.json), name of a built-in graph, FILE.py::KERNEL, or - (standard input).
    ///
    /// FILE.py::KERNEL is a Triton function in Python source; TWILL_PYTHON names an interpreter with Triton and twill_gpu [default: python3].
    pub(crate) input: String,
    #[command(flatten)]
    pub(crate) python: PythonArguments,
    #[command(flatten)]
    pub(crate) lowering: LoweringOptions,
}

/// What Python source is compiled for.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Python source")]
pub(crate) struct PythonArguments {
    /// With FILE.py::KERNEL: what a parameter is given; once for each.
    ///
    /// A tensor (fp16[128,128]), a type as Triton writes it (*fp16:16, i32, tensordesc<fp16[128, 64]>), or a number. Parameters that are tl.constexpr have values. What is left out is that of @twill_gpu.example, of the first configuration of an autotuner, or the default.
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    pub(crate) args: Vec<String>,
    /// With FILE.py::KERNEL: program that launches it, on this machine's GPU.
    ///
    /// It is run as by twill collect, and the specialisation that took most time is taken.
    #[arg(long, value_name = "SCRIPT", conflicts_with = "args")]
    pub(crate) call: Option<PathBuf>,
}
