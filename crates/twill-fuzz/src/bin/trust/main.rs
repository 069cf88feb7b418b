//! Runs what `docs/reports/trust.md` reports, and writes that page: `cargo xtask trust`.
//!
//! Every part keeps its figures in a file of `docs/reports/trust/` ([`section`]), and the page is made of all files there. Counts
//! add up from run to run: a part that has done what is asked does nothing, one that was stopped goes on where it was.

mod campaign;
mod executions;
mod fuzzing;
mod here;
mod instances;
mod mutants;
mod schedules;
mod scripts;
mod section;
mod solver;

use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;

/// Fuzzes, compares with brute force and Z3, and writes docs/reports/trust.md.
#[derive(Parser)]
#[command(name = "cargo xtask trust")]
struct Arguments {
    /// CPU minutes for every fuzz target, those of earlier runs counted.
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// Random small problems on which the exact engine is compared with brute force, those of earlier runs counted.
    #[arg(long, default_value_t = 100_000)]
    instances: u64,
    /// Schedules that break the model, which the checker has to reject, those of earlier runs counted.
    #[arg(long, default_value_t = 1_000_000)]
    schedules: u64,
    /// Random problems on which it is compared with Z3, those of earlier runs counted.
    #[arg(long, default_value_t = 300)]
    z3: u64,
    /// Programs of random kernels that are executed on numbers, those of earlier runs counted.
    #[arg(long, default_value_t = 1000)]
    programs: u64,
    /// Only these parts.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Only these fuzz targets, and these groups of defects: certificate, dataflow, protocol, replay, constraints.
    #[arg(long, value_delimiter = ',')]
    targets: Vec<String>,
    /// Forgets the counts of earlier runs of the parts that run.
    #[arg(long)]
    fresh: bool,
    /// Tries defects with the programs that an earlier run has built: where there is no compiler.
    #[arg(long, hide = true)]
    built: bool,
    /// The top of the checkout.
    #[arg(long, hide = true, default_value = ".")]
    root: PathBuf,
    /// A Python with what tests/cross_check needs.
    #[arg(long, hide = true)]
    python: Option<PathBuf>,
}

/// A part of the command.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Every target of `fuzz/`.
    Fuzzing,
    /// The exact engine and brute force.
    Instances,
    /// The checker on broken schedules.
    Schedules,
    /// The exact engine and Z3.
    Z3,
    /// Kernels executed on numbers.
    Executions,
    /// Limits of time, work and memory.
    Budgets,
    /// SIGKILL at any moment.
    Kills,
    /// Names and inputs that mean harm.
    Hostile,
    /// ThreadSanitizer; it needs a nightly toolchain.
    Interleavings,
    /// Licences, unsafe code, Miri.
    Supply,
    /// Defects in the checker and the constraints, one at a time.
    Mutants,
    /// Nothing but the page, from the figures there are.
    Page,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let run = |part: Part| arguments.only.is_empty() || arguments.only.contains(&part);
    let mut failures = Vec::new();
    let mut part = |part: Part, work: &dyn Fn() -> Result<(), String>| {
        if run(part) {
            failures.extend(work().err());
        }
    };
    part(Part::Schedules, &|| schedules::run(&arguments));
    part(Part::Instances, &|| instances::run(&arguments));
    part(Part::Z3, &|| solver::run(&arguments));
    part(Part::Executions, &|| executions::run(&arguments));
    part(Part::Budgets, &|| scripts::run(&arguments, "budgets.py", "budgets", &[]));
    part(Part::Kills, &|| scripts::run(&arguments, "kills.py", "kills", &["--count", "200"]));
    part(Part::Hostile, &|| scripts::run(&arguments, "names.py", "hostile", &[]));
    part(Part::Interleavings, &|| scripts::run(&arguments, "interleavings.py", "interleavings", &[]));
    part(Part::Supply, &|| scripts::run(&arguments, "supply.py", "supply", &[]));
    part(Part::Mutants, &|| mutants::run(&arguments));
    part(Part::Fuzzing, &|| fuzzing::run(&arguments));
    // All results are written.
    failures.extend(section::write_page(&arguments.root).err());
    for failure in &failures {
        eprintln!("trust: {failure}");
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
