//! `interpret [--check] FOLDER…`: executes kernels as their TTIR says (`bench/random_programs`, `bench/differential/interpreted.py`).
//!
//! A folder holds `kernel.ttir` and `program.json`, and for `--check` perhaps `warp_program.txt`, which `twill compile
//! --warp-program` writes. Each call's changed elements are written to `expected-CALL.bin`: for every
//! pointer, in the order of `program.json`, their number (`u32`), their places (`u32` each) and their values (`f64` each), all
//! little-endian. A folder that cannot be executed is named on standard output with the reason, and the others go on.

mod launcher;
mod program;

use clap::Parser;
use program::Program;
use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use twill_codegen::Checked;
use twill_codegen::in_order::{RunsAhead, lower};
use twill_codegen::ir::ReadError;
use twill_graph::WarpAssignment;
use twill_interpret::warps::{self, Choice, Habit};
use twill_interpret::{
    Arithmetic, Compiled, Contested, Data, Fault, Launch, Memory, Place, Question, Tolerance, Way, difference,
    sequential, tolerance,
};
use twill_machine::Machine;
use twill_triton::kernel::find;
use twill_triton::mlir::Module;

/// Executes random programs as their TTIR says.
#[derive(Parser)]
struct Arguments {
    /// Execute their warp programs too, in order, with loads ahead, and of a schedule, under several habits of who goes on next;
    /// each result that is another one is named, and the exit code is 1
    #[arg(long)]
    check: bool,
    /// Folders of programs
    #[arg(required = true)]
    folders: Vec<PathBuf>,
}

fn number(data: &Data, k: usize) -> f64 {
    match data {
        Data::Floats(x) => x[k],
        Data::Integers(n) => n[k] as f64,
        Data::Pointers(_) => f64::NAN,
    }
}

/// The changed elements, as the file has them.
fn changes(before: &Memory, after: &Memory) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (old, new) in before.arrays.iter().zip(&after.arrays) {
        let changed: Vec<usize> = (0..old.data.len())
            .filter(|k| number(&old.data, *k).to_bits() != number(&new.data, *k).to_bits())
            .collect();
        bytes.extend((changed.len() as u32).to_le_bytes());
        bytes.extend(changed.iter().flat_map(|k| (*k as u32).to_le_bytes()));
        bytes.extend(changed.iter().flat_map(|k| number(&new.data, *k).to_le_bytes()));
    }
    bytes
}

/// The kernel's warp programs by name, or why there is none; instead of one of a schedule, that which is given.
fn programs(
    module: &Module,
    text: &str,
    machine: &Machine,
    given: Option<&str>,
) -> Vec<(&'static str, Result<Checked, String>)> {
    let in_order = |ahead: Option<RunsAhead>| {
        let function = find(module, None).map_err(|error| error.to_string())?;
        let module = twill_triton::kernel::expanded(module.clone(), function);
        let program = lower(&module, function, None, ahead).map_err(|error| error.to_string())?;
        twill_codegen::check(program).map_err(|error| error.to_string())
    };
    let scheduled = || {
        let lowering = twill_triton::Options::default();
        let question = Question { machine, lowering, assignment: WarpAssignment::BySubTile, work: 60_000 };
        let compiled = Compiled::new(text, &question).map_err(|error| error.to_string())?;
        let program = compiled.program(Way::default()).map_err(|error| error.to_string())?;
        twill_codegen::check(program).map_err(|error| error.to_string())
    };
    let ahead = RunsAhead { ring_bytes: 192 << 10, stages: Some(3) };
    let read = |text: &str| {
        let program = text.parse().map_err(|error: ReadError| format!("warp_program.txt, {error}"))?;
        twill_codegen::check(program).map_err(|error| error.to_string())
    };
    let last = match given {
        Some(text) => ("compiled", read(text)),
        None => ("scheduled", scheduled()),
    };
    vec![("in order", in_order(None)), ("ahead", in_order(Some(ahead))), last]
}

/// What a call of the TTIR leaves in memory, with numbers rounded or not.
struct Expected {
    rounded: Memory,
    unrounded: Memory,
}

/// Takes for right what is found at places of which nobody says the last value.
fn settle(found: &mut Memory, expected: &Memory, contested: &BTreeSet<Place>) {
    for &(array, place) in contested {
        match (&mut found.arrays[array].data, &expected.arrays[array].data) {
            (Data::Floats(found), Data::Floats(expected)) => found[place] = expected[place],
            (Data::Integers(found), Data::Integers(expected)) => found[place] = expected[place],
            _ => {}
        }
    }
}

/// What came of the warp programs of calls.
#[derive(Default)]
struct Checks {
    /// Executions that ended, each of a call in one order.
    executions: usize,
    /// Warp programs of calls that have an operation which is not known.
    unknown: usize,
    /// Calls that a warp program's launcher refuses.
    refused: usize,
    /// Executions with another result, or a fault.
    findings: usize,
}

impl Checks {
    /// Executes a warp program in several orders, and says what is not as it should be. Where sums are added in another order,
    /// nothing is rounded.
    fn add(
        &mut self,
        name: &str,
        program: &Checked,
        launch: &Launch,
        before: &Memory,
        Expected { rounded, unrounded }: &Expected,
    ) {
        if let Some(why) = launcher::refusal(program, launch) {
            println!("{name}: the launcher refuses it: {why}");
            self.refused += 1;
            return;
        }
        let tolerance = tolerance(program);
        let (expected, arithmetic) = match tolerance {
            Tolerance::Exact => (rounded, Arithmetic::Rounded),
            Tolerance::Relative(_) => (unrounded, Arithmetic::Double),
        };
        let launch = Launch { arithmetic, ..launch.clone() };
        for habit in Habit::ALL {
            let mut found = before.clone();
            let wrong = match warps::run(program, &launch, 1, &mut found, &mut Choice::new(habit, 7)) {
                Ok(_) => {
                    // What two programs store may be the same number only where it is rounded.
                    for contested in [rounded, unrounded].into_iter().filter_map(|memory| memory.contested.as_ref()) {
                        settle(&mut found, expected, &contested.places);
                    }
                    difference(expected, &found, tolerance).map(|one| one.to_string())
                }
                Err(fault @ Fault::Unknown { .. }) => {
                    println!("{name}: not executed: {fault}");
                    self.unknown += 1;
                    return;
                }
                Err(fault) => Some(fault.to_string()),
            };
            self.executions += 1;
            if let Some(wrong) = wrong {
                println!("{name}, {habit:?}: {wrong}");
                self.findings += 1;
            }
        }
    }
}

/// Executes a program, and with a machine checks its warp programs.
fn run(folder: &Path, machine: Option<&Machine>, checks: &mut Checks) -> Result<(), Box<dyn Error>> {
    let program: Program = serde_json::from_str(&std::fs::read_to_string(folder.join("program.json"))?)?;
    let text = std::fs::read_to_string(folder.join("kernel.ttir"))?;
    let module = twill_triton::mlir::parse(&text, "kernel.ttir")?;
    let function = find(&module, None)?;
    let given = std::fs::read_to_string(folder.join("warp_program.txt")).ok();
    let programs = machine.map(|machine| programs(&module, &text, machine, given.as_deref())).unwrap_or_default();
    for (name, why) in programs.iter().filter_map(|(name, program)| Some((name, program.as_ref().err()?))) {
        println!("{}: no program {name}: {why}", folder.display());
    }
    let memory = program.memory()?;
    for (k, call) in program.calls.iter().enumerate() {
        let arguments = program.arguments(call);
        let launch = Launch { arguments, grid: call.grid, arithmetic: Arithmetic::Rounded };
        let executed = |arithmetic: Arithmetic| {
            let contested = machine.is_some().then(Contested::default);
            let mut after = Memory { contested, ..memory.clone() };
            sequential::run_function(&module, function, &Launch { arithmetic, ..launch.clone() }, &mut after)?;
            Ok::<Memory, Fault>(after)
        };
        let rounded = executed(Arithmetic::Rounded)?;
        let bytes = changes(&memory, &rounded);
        if machine.is_some() {
            let unrounded = executed(Arithmetic::Double)?;
            let expected = Expected { rounded, unrounded };
            for (name, program) in programs.iter().filter_map(|(name, program)| Some((name, program.as_ref().ok()?))) {
                let name = format!("{}: {name}", folder.display());
                checks.add(&name, program, &launch, &memory, &expected);
            }
        }
        std::fs::write(folder.join(format!("expected-{k}.bin")), bytes)?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let machine = match arguments.check.then(|| Machine::load("h100")).transpose() {
        Ok(machine) => machine,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut checks = Checks::default();
    for folder in &arguments.folders {
        if let Err(error) = run(folder, machine.as_ref(), &mut checks) {
            println!("{}: {error}", folder.display());
        }
    }
    if arguments.check {
        let Checks { executions, unknown, refused, findings } = checks;
        eprintln!(
            "{executions} executions, {findings} findings; {unknown} warp programs of calls have unknown operations, {refused} are refused"
        );
    }
    if checks.findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
