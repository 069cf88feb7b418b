//! How long a kernel takes, by simulation.

use twill_emit::gluon::{Assembly, LoopTraffic, Simulated};
use twill_emit::kernel::program::KernelProgram;
use twill_machine::Machine;
use twill_simulate::assembled::{Instruction, Rates, cycles_of_loop};
use twill_simulate::{KernelTime, Timing};
use twill_triton::Lowered;

/// Its time from its warp programs, where programs like this are simulated.
pub(super) fn simulated(program: &KernelProgram, lowered: &[Lowered], machine: &Machine) -> Option<Simulated> {
    let time = KernelTime::of(program, &Timing::of(machine)?).ok()?;
    let iterations = time.iterations.iter().copied().map(whole).collect();
    let traffic = lowered.iter().map(traffic).collect();
    Some(Simulated { iterations, tile: whole(time.tile), start: whole(time.start), assembled: Vec::new(), traffic })
}

fn traffic(lowered: &Lowered) -> LoopTraffic {
    let all = lowered.graph.traffic();
    let common = lowered.common_bytes().0;
    LoopTraffic { shared: all.shared.0, global: all.global.0, common, flop: all.flop }
}

/// Cycles of an iteration of its machine code, by loop, but not less than its copies and multiplies take; empty unless all
/// are known.
pub(super) fn as_assembled(assembly: &Assembly, program: &KernelProgram, machine: &Machine) -> Vec<u32> {
    let (Some(rates), Some(timing)) = (Rates::of(machine), Timing::of(machine)) else { return Vec::new() };
    let Ok(copies) = KernelTime::of(program, &timing.without_threads()) else { return Vec::new() };
    let loops = copies.iterations.len();
    let read = |code: &[String]| code.iter().map(|line| Instruction::read(line).ok()).collect::<Option<Vec<_>>>();
    let one = |index| {
        let groups: Option<Vec<Vec<Instruction>>> = assembly.code_of_loop(index, loops).into_iter().map(read).collect();
        cycles_of_loop(&groups?, &rates).map(|cycles| whole(cycles.max(copies.iterations[index])))
    };
    (0..loops).map(one).collect::<Option<Vec<u32>>>().unwrap_or_default()
}

fn whole(cycles: f64) -> u32 {
    cycles.round() as u32
}
