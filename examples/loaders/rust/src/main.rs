//! Runs the GEMM of examples/gemm_tma.py from Rust: C = A · Bᵀ of random numbers, compared with sums in float64.
//!
//! ```text
//! twill-gemm FOLDER CUBIN M N K
//! twill-gemm --describe FOLDER M N K    what a launch takes, as JSON; needs no GPU
//! ```
//!
//! FOLDER is what `twill compile --emit cuda` wrote, CUBIN what `python FOLDER/assemble.py --cubin CUBIN` did. Exit status 0
//! if the result is right, 1 if it is not, or if something failed.

mod check;
mod error;
mod gpu;
mod kernel;
mod launch;

use error::Error;
use kernel::Kernel;
use launch::{Launch, Sizes};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("twill-gemm: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Does what the command line says; whether the kernel's result is right.
fn run(arguments: &[String]) -> Result<bool, Error> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--describe", folder, m, n, k] => {
            let kernel = Kernel::read(Path::new(folder))?;
            println!("{:#}", Launch::of(&kernel, Sizes::parse(m, n, k)?)?.describe(&kernel));
            Ok(true)
        }
        [folder, cubin, m, n, k] => {
            let kernel = Kernel::read(Path::new(folder))?;
            let sizes = Sizes::parse(m, n, k)?;
            let launch = Launch::of(&kernel, sizes)?;
            let path = Path::new(cubin);
            let code = std::fs::read(path).map_err(|source| Error::Read { path: path.into(), source })?;
            let (a, b) = check::inputs(sizes);
            let result = gpu::run(&kernel, &launch, code, &a, &b, sizes)?;
            let errors = check::compare(&a, &b, &result.c, sizes);
            println!(
                "{} {} x {} x {}: {}, largest error {:.3e}, {:.2} of what float16 allows, {:.1} TFLOP/s",
                kernel.name,
                sizes.m,
                sizes.n,
                sizes.k,
                if errors.right { "right" } else { "WRONG" },
                errors.largest,
                errors.part,
                sizes.operations() / result.seconds / 1e12
            );
            Ok(errors.right)
        }
        _ => Err(Error::Usage),
    }
}
