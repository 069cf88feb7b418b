//! Arguments of `twill compile`.

use super::{SearchArguments, TopArguments};
use crate::error::Error;
use clap::Args;
use std::path::PathBuf;
use twill_driver::SiblingOptions;
use twill_driver::options::CompileOptions;

/// Generate the kernel of a schedule.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Exit codes: 0 written, 1 error, 2 no schedule (proved), 3 none found in time",
    after_long_help = "Exit codes: 0 a kernel was written, 1 error, 2 there is no schedule (proved), 3 no schedule was found in time, or the search was stopped. The folder is written whole or not at all.",
    mut_arg("input", |input| input.help("TTIR of a kernel (.ttir), or - for standard input")),
    mut_arg("top", |top| top.conflicts_with_all(["trace", "candidates"]))
)]
pub(crate) struct CompileArguments {
    #[command(flatten)]
    pub(crate) search: SearchArguments,
    #[command(flatten)]
    pub(crate) siblings: SiblingOptions,
    /// Folder for kernel, launcher, schedule, and test.
    #[arg(help_heading = "Output", long, short, value_name = "DIR")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) top: TopArguments,
    #[command(flatten)]
    pub(crate) code: CompileOptions,
    /// Python to assemble with [default: python3].
    ///
    /// It needs Triton 3.6 to 3.9, or NVRTC for CUDA. Without either, the default does not assemble.
    #[arg(help_heading = "Assembling", long, value_name = "PATH", conflicts_with = "no_assemble")]
    pub(crate) python: Option<PathBuf>,
    /// Print the warp program after a pass of code generation, or after all.
    #[arg(help_heading = "Code generation", long, value_name = "PASS|all")]
    print_after: Option<String>,
    /// Write the warp program of the kernel beside it (warp_program.txt).
    ///
    /// It is the last one, of the kernel that is written: what the passes of code generation made, and what its text says.
    #[arg(help_heading = "Code generation", long)]
    pub(crate) warp_program: bool,
}

impl CompileArguments {
    /// The pass after which to print the warp program, if any.
    ///
    /// # Errors
    /// There is no such pass.
    pub(crate) fn print_after(&self) -> Result<Option<&str>, Error> {
        let names = || twill_codegen::pipeline::PASSES.iter().map(|pass| pass.name);
        match self.print_after.as_deref() {
            Some(pass) if pass != "all" && !names().any(|name| name == pass) => {
                let known: Vec<&str> = names().collect();
                Err(Error::Arguments(format!(
                    "--print-after: there is no pass `{pass}`; it is all, or one of {}",
                    known.join(", ")
                )))
            }
            given => Ok(given),
        }
    }
}
