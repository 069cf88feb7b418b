//! Kernels executed on numbers: random ones, mistakes in their programs, and the examples, by `twill-interpret`.

use crate::Arguments;
use crate::section::{Section, Table};
use std::process::Command;
use twill_interpret::Machines;
use twill_interpret::campaign::{Plan, Report, run as execute};

const NAME: &str = "executions";
const COUNT: &str = "count";
const RANDOM: &str = "random kernels";
const PROGRAMS: &str = "programs of these; the other kernels are refused";
const INTERLEAVINGS: &str = "interleavings, all with the numbers of the source";
const STEPS: &str = "steps of warp groups";
const EVENTS: &str = "ends of copies and MMAs";
const MISTAKEN: &str = "programs whose mistakes were tried";

/// Programs between two notes of how far it is.
const PART: u64 = 50;
/// Mistakes that are made in a program.
const MISTAKES: usize = 11;
/// Programs in which mistakes are made, where this many are executed.
const MISTAKEN_OF: u64 = 6;

/// Executes until there were this many programs.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let machines = Machines::load().map_err(|error| error.to_string())?;
    let mut section = Section::read(&arguments.root, NAME)?;
    if arguments.fresh {
        section.tables.clear();
    }
    loop {
        let (mut all, mut mistakes) = tables(&section);
        let done = all.number(PROGRAMS, COUNT) as u64;
        if done >= arguments.programs {
            break;
        }
        let mistaken = all.number(MISTAKEN, COUNT) as u64;
        let mutants = if mistaken < arguments.programs / MISTAKEN_OF { MISTAKES } else { 0 };
        let plan = Plan {
            seed: all.number(RANDOM, COUNT) as u64,
            programs: PART.min(arguments.programs - done),
            seeds: 2,
            mutants,
        };
        let report = execute(plan, &machines, &mut |_| {});
        if !report.findings.is_empty() {
            return Err(format!("executions: {}", report.findings.join("; ")));
        }
        add(&mut all, &report);
        if mutants > 0 {
            all.set(vec![MISTAKEN.into(), (mistaken + report.programs).into()]);
            for (kind, of) in &report.kinds {
                let before = |column: &str| mistakes.number(kind, column) as u64;
                let row: Vec<u64> = COLUMNS[1..]
                    .iter()
                    .zip([of.all, of.both, of.checker_alone, of.harmless, of.undecided, of.execution_alone])
                    .map(|(column, more)| before(column) + more)
                    .collect();
                mistakes.set(std::iter::once(kind.clone().into()).chain(row.into_iter().map(Into::into)).collect());
            }
        }
        section.tables = vec![all, mistakes];
        eprintln!("trust: {} programs executed", done + report.programs);
        section.clone().described().write(&arguments.root, NAME)?;
    }
    examples(arguments)
}

const COLUMNS: [&str; 7] = [
    "mistake",
    "programs",
    "rejected, and seen by executions",
    "rejected, and harmless in these executions",
    "accepted, and harmless",
    "no verdict",
    "accepted, and wrong",
];

fn tables(section: &Section) -> (Table, Table) {
    let mut tables = section.tables.iter().cloned();
    let all = tables.next().unwrap_or_else(|| Table::new(&["what", COUNT]));
    (all, tables.next().unwrap_or_else(|| Table::new(&COLUMNS)))
}

fn add(all: &mut Table, report: &Report) {
    for (row, more) in [
        (RANDOM, report.kernels),
        (PROGRAMS, report.programs),
        (INTERLEAVINGS, report.interleavings),
        (STEPS, report.steps),
        (EVENTS, report.events),
    ] {
        all.set(vec![row.into(), (all.number(row, COUNT) as u64 + more).into()]);
    }
}

/// The examples, with every habit and many seeds: a test that is left out of the usual ones.
fn examples(arguments: &Arguments) -> Result<(), String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let test = ["test", "--release", "--locked", "--package", "twill-interpret", "--test", "examples"];
    let status = Command::new(cargo)
        .args(test)
        .args(["--", "--ignored", "--exact", "all_examples_many_times"])
        .current_dir(&arguments.root)
        .status()
        .map_err(|e| format!("cargo test: {e}"))?;
    if status.success() { Ok(()) } else { Err("an example is not executed as its source says".into()) }
}

impl Section {
    fn described(self) -> Section {
        Section {
            title: "Executions".into(),
            order: 15,
            command: "cargo xtask trust --only executions".into(),
            text: vec![TEXT.into()],
            ..self
        }
    }
}

const TEXT: &str = "[Executed on numbers](../architecture.md#executing-programs-on-numbers): what the generators get of a kernel, warp group by warp group, against the kernel's TTIR, bit for bit where the order of operations is the same. Random kernels with loads, \
     MMAs, reductions, carried values and stores, for Hopper and Blackwell, and all examples with 0 to 8 trips under four scheduling policies, with six seeds each. Some of the programs get a mistake, one at a time: \
     a program that the protocol checker accepts has to compute what its source says.";
