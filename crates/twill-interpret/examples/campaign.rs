//! `cargo run --release -p twill-interpret --example campaign -- PROGRAMS [SEED [SEEDS [MUTANTS]]]`: executes random kernels and
//! prints the figures as JSON. Exit code 1 if something was found.

use std::process::ExitCode;
use twill_graph::saturate;
use twill_interpret::Machines;
use twill_interpret::campaign::{Plan, run};

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let number = |k: usize, otherwise: u64| numbers.get(k).copied().unwrap_or(otherwise);
    let plan = Plan {
        programs: number(0, 1000),
        seed: number(1, 0),
        seeds: number(2, 2),
        mutants: saturate::<usize>(number(3, 8)),
    };
    let machines = match Machines::load() {
        Ok(machines) => machines,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let report = run(plan, &machines, &mut |report| {
        if report.kernels.is_multiple_of(100) {
            eprintln!("{} programs, {} findings", report.programs, report.findings.len());
        }
    });
    match serde_json::to_string_pretty(&report) {
        Ok(text) => println!("{text}"),
        Err(error) => eprintln!("{error}"),
    }
    if report.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
