//! The numbers that a simulation needs.

use twill_graph::Execution;
use twill_machine::{Element, Machine, Memory};

/// How long things take on a multiprocessor with asynchronous MMAs of warp groups (`wgmma`), in cycles.
///
/// A pass is an instruction for each of the elements that a thread holds. Alone, a warp group gives each of the four
/// schedulers one warp, which issues such instructions at most every other cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// Floating-point operations, two a product, of the tensor core in a cycle, for operands of 16 bits; for others in
    /// proportion.
    pub mma_flop: f64,
    /// From the instruction that starts an MMA until an idle tensor core begins.
    pub mma_start: f64,
    /// From the tensor core's beginning until the group goes on after the MMA's last instruction.
    pub mma_issue: f64,
    /// For each instruction of an MMA, at least, until the group goes on.
    pub instruction_issue: f64,
    /// From the end of an MMA until the group that waits for it goes on.
    pub mma_seen: f64,
    /// How many times longer threads take while another group stands at an MMA that the tensor core does not take yet.
    pub blocked_issue: f64,
    /// How many times longer MMAs take while threads compute.
    pub threads_overlap: f64,
    /// A pass of `fma`, by instruction of a thread, for a group alone.
    pub fma: f64,
    /// The same of comparisons, selections, integers.
    pub alu: f64,
    /// The same of special functions.
    pub special: f64,
    /// The part of these in which the special-function unit is busy.
    pub special_unit: f64,
    /// The same of conversions.
    pub convert: f64,
    /// The part of other instructions that is not hidden by special functions of the same stretch of code.
    pub special_overlap: f64,
    /// Cycles of a scheduler for an instruction, where several groups have some to issue.
    pub issue: f64,
    /// Threads of a row exchange their parts of a sum or maximum.
    pub exchange: f64,
    /// An operation on scalars or rows: a chain of dependent instructions.
    pub small: f64,
    /// Bytes a cycle of shared memory.
    pub shared_bytes: f64,
    /// From a read of shared memory until it can be computed with.
    pub shared_read: f64,
    /// The cost of stores to shared memory that their bytes do not explain.
    pub shared_write: f64,
    /// From the last store until an asynchronous unit can read it, fence included.
    pub fence: f64,
    /// Threads of a group sync.
    pub group_sync: f64,
    /// Arrival at an `mbarrier`.
    pub arrive: f64,
    /// Wait for a phase that is complete.
    pub wait: f64,
    /// From an arrival until a group that waits for it goes on.
    pub handoff: f64,
    /// From the last arrival at a named barrier until those that wait go on.
    pub named_barrier: f64,
    /// From the start of a copy from global memory until its first byte is there.
    pub transfer: f64,
    /// Bytes a cycle that global memory gives to one multiprocessor.
    pub transfer_bytes: f64,
}

impl Timing {
    /// Those of a machine whose warp groups start MMAs that leave their results in registers (Hopper); of others
    /// nothing is known. Rates of the tensor core and of shared memory are the machine's, all else is an H200's.
    pub fn of(machine: &Machine) -> Option<Timing> {
        let core = machine.tensor_core();
        let is_hopper = core.execution == Execution::Asynchronous && core.accumulator == Memory::Registers;
        let hopper = Timing::hopper();
        let rate = machine.resources().shared_bytes_per_cycle.map_or(hopper.shared_bytes, |rate| rate.0 as f64);
        let mma_flop = core.flop_per_cycle(Element::F16).unwrap_or(hopper.mma_flop);
        is_hopper.then_some(Timing { mma_flop, shared_bytes: rate, ..hopper })
    }

    /// The same with threads that take no time: what is left are MMAs, copies and barriers.
    #[must_use]
    pub fn without_threads(self) -> Timing {
        let none = 0.0;
        Timing {
            fma: none,
            alu: none,
            special: none,
            special_unit: none,
            convert: none,
            exchange: none,
            small: none,
            issue: none,
            ..self
        }
    }

    /// An H200, by the microbenchmarks of `bench/results/fidelity.md`; what those leave open (`handoff`, `small`,
    /// `threads_overlap`, `issue` within bounds) is chosen so that the kernels there come out.
    pub fn hopper() -> Timing {
        Timing {
            mma_flop: 4096.0,
            mma_start: 55.0,
            mma_issue: 105.0,
            instruction_issue: 20.0,
            mma_seen: 56.0,
            blocked_issue: 1.75,
            threads_overlap: 1.06,
            fma: 2.1,
            alu: 2.1,
            special: 9.0,
            special_unit: 8.2,
            convert: 0.9,
            special_overlap: 0.55,
            issue: 1.4,
            exchange: 20.0,
            small: 12.0,
            shared_bytes: 128.0,
            shared_read: 30.0,
            shared_write: 20.0,
            fence: 60.0,
            group_sync: 25.0,
            arrive: 10.0,
            wait: 30.0,
            handoff: 100.0,
            named_barrier: 35.0,
            transfer: 600.0,
            transfer_bytes: 64.0,
        }
    }
}
