//! What a candidate is worth: cycles by simulation, the SASS estimate, and what the assembler reports.

use super::candidate::Candidate;
use twill_backend::package::{self, Assembly, LoopTraffic, Simulated};
use twill_codegen::ir::{LoopMetadata, WarpProgram};
use twill_machine::Machine;
use twill_simulate::sass::{Instruction, Rates, cycles_of_loop};
use twill_simulate::{KernelTime, Timing};
use twill_triton::Lowered;

/// What an assembled candidate costs, the smaller the better, in this order.
///
/// Less than a quarter of a kilobyte spilled is nothing next to a longer interval: on an H200, attention backward with 104 bytes
/// spilled and I = 2560 ran 9 % faster than with 52 and 2654.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cost {
    /// It takes more shared memory than there is, or its machine code is wrong.
    is_unusable: bool,
    /// MMAs that run one by one, and requests for registers that were refused.
    pub(super) serial: usize,
    /// Quarters of a kilobyte spilled.
    many_spilled: u64,
    /// Cycles an iteration, of all loops.
    interval: i64,
    /// Waits for MMAs that the assembler added.
    added_waits: usize,
    /// Bytes spilled.
    spilled: u64,
}

impl Cost {
    /// The same but for a few bytes.
    pub(super) fn roughly(self) -> Cost {
        Cost { spilled: 0, ..self }
    }
}

impl Candidate {
    /// Cycles of an iteration by simulation, of all loops that repeat; the most there is where it is not known.
    pub(super) fn simulated_cycles(&self) -> u64 {
        self.lowered
            .simulated
            .as_ref()
            .map_or(u64::MAX, |simulated| repeating(&self.lowered.program, &simulated.iterations))
    }

    /// Cycles of an iteration of its machine code, by loop; empty where they are not known.
    pub(super) fn sass_estimate(&self) -> Vec<u32> {
        let of = |assembly| sass_estimate(assembly, &self.lowered.program, &self.spec.machine);
        self.assembly.as_ref().map(of).unwrap_or_default()
    }

    /// What it costs.
    pub(super) fn cost(&self) -> Cost {
        let interval = self.lowered.program.loops.iter().map(|l| l.interval).sum();
        let assembly = self.assembly.as_ref();
        let spills = assembly.map_or(0, |a| a.spill_stores + a.spill_loads);
        let serial = assembly.map_or(0, |a| a.count("serialised") + a.count("registers_refused"));
        let added_waits = assembly.map_or(0, |a| a.count("added_wait"));
        let is_unusable = assembly.is_some_and(Assembly::is_unusable);
        Cost {
            is_unusable,
            serial,
            many_spilled: spills / package::MANY_SPILLED,
            interval,
            added_waits,
            spilled: spills,
        }
    }
}

/// Its time from its warp programs, where programs like this are simulated.
pub(super) fn simulated(program: &WarpProgram, lowered: &[Lowered], machine: &Machine) -> Option<Simulated> {
    let time = KernelTime::of(program, &Timing::of(machine)?).ok()?;
    let iterations = time.iterations.iter().copied().map(whole).collect();
    let traffic = lowered.iter().map(traffic).collect();
    Some(Simulated { iterations, tile: whole(time.tile), start: whole(time.start), sass: Vec::new(), traffic })
}

fn traffic(lowered: &Lowered) -> LoopTraffic {
    let all = lowered.graph.traffic();
    let common = lowered.common_bytes().0;
    LoopTraffic { shared: all.shared.0, global: all.global.0, common, flop: all.flop }
}

/// Cycles of an iteration of its machine code, by loop, but not less than its copies and MMAs take. Where ptxas left loops
/// only of those that repeat, the others have the cycles of their warp programs. Empty unless all are known.
pub(super) fn sass_estimate(assembly: &Assembly, program: &WarpProgram, machine: &Machine) -> Vec<u32> {
    let (Some(rates), Some(timing)) = (Rates::of(machine), Timing::of(machine)) else { return Vec::new() };
    let programs = KernelTime::of(program, &timing);
    let copies = KernelTime::of(program, &timing.without_threads());
    let (Ok(programs), Ok(copies)) = (programs, copies) else { return Vec::new() };
    let read = |code: &[String]| code.iter().map(|line| Instruction::read(line).ok()).collect::<Option<Vec<_>>>();
    // With the numbers of the loops that there is code of.
    let with = |coded: &[usize]| -> Option<Vec<u32>> {
        let one = |index| {
            let Some(at) = coded.iter().position(|own| *own == index) else {
                return Some(whole(programs.iterations[index]));
            };
            let groups: Option<Vec<Vec<Instruction>>> =
                assembly.code_of_loop(at, coded.len()).into_iter().map(read).collect();
            cycles_of_loop(&groups?, &rates).map(|cycles| whole(cycles.max(copies.iterations[index])))
        };
        (0..program.loops.len()).map(one).collect()
    };
    let all: Vec<usize> = (0..program.loops.len()).collect();
    let repeating: Vec<usize> = all.iter().copied().filter(|index| program.loops[*index].repeats()).collect();
    let found = with(&all).or_else(|| (!repeating.is_empty()).then(|| with(&repeating)).flatten());
    found.unwrap_or_default()
}

/// The sum over all loops that repeat; over all where none does.
pub(super) fn repeating(program: &WarpProgram, of_loops: &[u32]) -> u64 {
    let any = program.loops.iter().any(LoopMetadata::repeats);
    let counted = program.loops.iter().zip(of_loops).filter(|(one, _)| one.repeats() || !any);
    counted.map(|(_, each)| u64::from(*each)).sum()
}

pub(super) fn whole(cycles: f64) -> u32 {
    cycles.round() as u32
}
