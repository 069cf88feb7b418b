//! The cycles for which instructions keep units busy.

use crate::Timing;
use twill_machine::Machine;

/// How long instructions keep a scheduler's units busy, in cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Columns that the tensor core does in a cycle, of 64 rows and 32 bytes of depth.
    pub columns: f64,
    /// MMAs that may be under way; a warp stands at the next.
    pub queue: usize,
    /// Bytes of shared memory that one multiprocessor moves in a cycle.
    pub shared_bytes: f64,
    /// Cycles of an issue slot.
    pub issue: f64,
    /// From the first instruction of an MMA until an idle tensor core begins.
    pub start: f64,
    /// From the end of an MMA until the warp that waits for it goes on.
    pub seen: f64,
    /// Cycles of the multiply-add unit.
    pub fma: f64,
    /// Cycles of the unit that compares, selects, counts.
    pub alu: f64,
    /// Cycles of the same unit, for a conversion.
    pub convert: f64,
    /// Cycles of the special-function unit.
    pub special: f64,
    /// From an instruction of the special-function unit to its result.
    pub special_latency: f64,
    /// From an exchange between threads to its result.
    pub exchange_latency: f64,
    /// From an access to shared memory to its result.
    pub memory_latency: f64,
    /// Cycles of a wait for a phase that is complete.
    pub wait: f64,
    /// From the last arrival at a named barrier until those that wait go on.
    pub named_barrier: f64,
    /// How much longer, in part, the special-function unit takes while the tensor core runs.
    pub special_overlap: f64,
    /// The same of the unit that compares.
    pub alu_overlap: f64,
    /// The same of issue slots.
    pub issue_overlap: f64,
    /// How much longer, in part, MMAs take while another warp computes.
    pub mma_overlap: f64,
    /// Issue slots besides its own that an MMA takes whose left operand is in registers.
    pub register_operand: f64,
    /// After its last instruction of an MMA that it has not committed, how long a warp keeps the tensor core to itself.
    pub hold: f64,
    /// Bytes of values without a register that one multiprocessor moves in a cycle.
    pub local_bytes: f64,
    /// From a load of such a value to its result.
    pub local_latency: f64,
    /// Most that a wait for a phase takes longer, as others' arrivals and memory have it.
    pub jitter: f64,
}

impl Rates {
    /// Those of a machine whose warp groups start MMAs that leave their results in registers (Hopper); of others nothing
    /// is known. The tensor core's and shared memory's are the machine's, all else is an H200's.
    pub fn of(machine: &Machine) -> Option<Rates> {
        let timing = Timing::of(machine)?;
        let hopper = Rates::hopper();
        let columns = hopper.columns * timing.mma_flop / Timing::hopper().mma_flop;
        let shared_bytes = hopper.shared_bytes * timing.shared_bytes / Timing::hopper().shared_bytes;
        Some(Rates { columns, shared_bytes, ..hopper })
    }

    /// An H200: chosen so that the eight schedules of 15 kernels come out, and their order above all
    /// (`bench/results/order.md`); microbenchmarks give most of these numbers, but for one unit at a time.
    pub fn hopper() -> Rates {
        Rates {
            columns: 2.0,
            queue: 7,
            shared_bytes: 110.5,
            issue: 1.675,
            start: 12.93,
            seen: 37.03,
            fma: 1.745,
            alu: 1.44,
            convert: 1.653,
            special: 4.654,
            special_latency: 22.62,
            exchange_latency: 16.16,
            memory_latency: 37.37,
            wait: 34.85,
            named_barrier: 8.0,
            special_overlap: 0.5035,
            alu_overlap: 0.2915,
            issue_overlap: 0.1293,
            mma_overlap: 0.1495,
            register_operand: 1.419,
            hold: 64.83,
            local_bytes: 33.0,
            local_latency: 390.0,
            jitter: 33.55,
        }
    }
}
