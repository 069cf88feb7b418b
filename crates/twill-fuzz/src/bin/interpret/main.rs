//! `interpret [--check] FOLDER…`: executes random programs (`bench/random_programs`) as their TTIR says.
//!
//! A folder holds `kernel.ttir` and `program.json`. Each call's changed elements are written to `expected-CALL.bin`: for every
//! pointer, in the order of `program.json`, their number (`u32`), their places (`u32` each) and their values (`f64` each), all
//! little-endian. A folder that cannot be executed is named on standard output with the reason, and the others go on.

use clap::Parser;
use serde::Deserialize;
use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use twill_codegen::Checked;
use twill_codegen::in_order::{RunsAhead, lower};
use twill_graph::WarpAssignment;
use twill_interpret::warps::{self, Choice, Habit};
use twill_interpret::{
    Argument, Arithmetic, Array, Compiled, Data, Fault, Launch, Memory, Question, Tile, Tolerance, Way, difference,
    sequential, tolerance,
};
use twill_machine::Machine;
use twill_triton::kernel::find;
use twill_triton::mlir::{FloatKind, Module, Type};

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

#[derive(Deserialize)]
struct Program {
    pointers: Vec<Pointer>,
    calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Pointer {
    name: String,
    element: String,
    count: usize,
    contents: String,
}

#[derive(Deserialize)]
struct Call {
    grid: [u32; 3],
    numbers: HashMap<String, i64>,
}

impl Pointer {
    fn element(&self) -> Result<Type, Box<dyn Error>> {
        Ok(match self.element.as_str() {
            "float16" => Type::Float(FloatKind::F16),
            "bfloat16" => Type::Float(FloatKind::BF16),
            "float32" => Type::Float(FloatKind::F32),
            "float64" => Type::Float(FloatKind::F64),
            "float8e4nv" => Type::Float(FloatKind::F8E4M3FN),
            "float8e5" => Type::Float(FloatKind::F8E5M2),
            other => {
                let bits = other.strip_prefix("int").and_then(|bits| bits.parse().ok());
                Type::Integer(bits.ok_or_else(|| format!("{}: {other} is no type of elements", self.name))?)
            }
        })
    }

    /// What is in memory before a call: the `k`th pointer's elements, each a function of its place alone, so that programs in
    /// other languages (`contents` in execute.py) begin with the same.
    fn data(&self, k: usize) -> Result<Data, Box<dyn Error>> {
        let hashes = (0..self.count as u64).map(|place| hash(place, k as u64));
        let is_float = self.element.contains("float");
        Ok(match self.contents.split_once(' ') {
            Some(("below", limit)) => {
                let limit: u64 = limit.parse()?;
                Data::Integers(hashes.map(|h| (h % limit) as i64).collect())
            }
            _ if self.contents == "zeros" && is_float => Data::Floats(vec![0.0; self.count]),
            _ if self.contents == "zeros" => Data::Integers(vec![0; self.count]),
            _ if is_float => Data::Floats(hashes.map(|h| ((h % 17) as f64 - 8.0) / 4.0).collect()),
            _ => Data::Integers(hashes.map(|h| (h % 9) as i64 - 4).collect()),
        })
    }
}

fn hash(place: u64, pointer: u64) -> u64 {
    let low = u64::from(u32::MAX);
    let mut h = (place * 0x9E37_79B1 + pointer * 0x85EB_CA6B) & low;
    h ^= h >> 15;
    h = (h * 0x2C1B_3C6D) & low;
    h ^ (h >> 12)
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

/// The kernel's warp programs by name, or why there is none.
fn programs(module: &Module, text: &str, machine: &Machine) -> Vec<(&'static str, Result<Checked, String>)> {
    let in_order = |ahead: Option<RunsAhead>| {
        let function = find(module, None).map_err(|error| error.to_string())?;
        let program = lower(module, function, None, ahead).map_err(|error| error.to_string())?;
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
    vec![("in order", in_order(None)), ("ahead", in_order(Some(ahead))), ("scheduled", scheduled())]
}

/// What came of the warp programs of calls.
#[derive(Default)]
struct Checks {
    /// Executions that ended, each of a call in one order.
    executions: usize,
    /// Warp programs of calls that have an operation which is not known.
    unknown: usize,
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
        [rounded, unrounded]: [&Memory; 2],
    ) {
        let tolerance = tolerance(program);
        let (expected, arithmetic) = match tolerance {
            Tolerance::Exact => (rounded, Arithmetic::Rounded),
            Tolerance::Relative(_) => (unrounded, Arithmetic::Double),
        };
        let launch = Launch { arithmetic, ..launch.clone() };
        for habit in Habit::ALL {
            let mut found = before.clone();
            let wrong = match warps::run(program, &launch, 1, &mut found, &mut Choice::new(habit, 7)) {
                Ok(_) => difference(expected, &found, tolerance).map(|one| one.to_string()),
                Err(Fault::Unknown { .. }) => {
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
    let programs = machine.map(|machine| programs(&module, &text, machine)).unwrap_or_default();
    for (name, why) in programs.iter().filter_map(|(name, program)| Some((name, program.as_ref().err()?))) {
        println!("{}: no program {name}: {why}", folder.display());
    }
    let mut memory = Memory::default();
    let mut pointers = HashMap::new();
    for (k, pointer) in program.pointers.iter().enumerate() {
        let array = Array { name: pointer.name.clone(), element: pointer.element()?, data: pointer.data(k)? };
        memory.arrays.push(array);
        pointers.insert(pointer.name.clone(), Argument::Scalar(Rc::new(Tile::pointer(k))));
    }
    for (k, call) in program.calls.iter().enumerate() {
        let mut arguments = pointers.clone();
        for (name, value) in &call.numbers {
            arguments.insert(name.clone(), Argument::Scalar(Rc::new(Tile::integer(*value))));
        }
        let launch = Launch { arguments, grid: call.grid, arithmetic: Arithmetic::Rounded };
        let mut after = memory.clone();
        sequential::run_function(&module, function, &launch, &mut after)?;
        if machine.is_some() {
            let launch = Launch { arithmetic: Arithmetic::Double, ..launch.clone() };
            let mut unrounded = memory.clone();
            sequential::run_function(&module, function, &launch, &mut unrounded)?;
            for (name, program) in programs.iter().filter_map(|(name, program)| Some((name, program.as_ref().ok()?))) {
                let name = format!("{}: {name}", folder.display());
                checks.add(&name, program, &launch, &memory, [&after, &unrounded]);
            }
        }
        std::fs::write(folder.join(format!("expected-{k}.bin")), changes(&memory, &after))?;
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
        let Checks { executions, unknown, findings } = checks;
        eprintln!(
            "{executions} executions, {findings} findings; {unknown} warp programs of calls have unknown operations"
        );
    }
    if checks.findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
