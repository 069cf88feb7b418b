//! The numbers that the tuner decides by, and where each comes from.

use std::time::Duration;
use twill_graph::Cycles;

/// The numbers that the tuner decides by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Thresholds {
    /// Work for the search of a second or later attempt, in units. A choice: what is not found in these 20 s is not worth the wait.
    pub(crate) later_work: u64,
    /// Work for each search for a schedule with padded latencies or MMA batches, in units. A choice: with four times as much the
    /// kernels of the examples are the same, and that of FP8 attention takes 67 s to compile instead of 20.
    pub(crate) padded_work: u64,
    /// Values that a group spills from which on the kernel is scheduled again with far fewer registers; how many of them are for one
    /// register, as each value is spilled in each copy of its loop; and the most registers that a thread has less. Source: flex
    /// attention with 64 columns, of which an iteration takes twice to three times as long with spills.
    pub(crate) far_short: u32,
    pub(crate) spilled_for_one: u32,
    pub(crate) most_fewer: u32,
    /// Kernels that are assembled for want of registers, at most. A choice: each takes 2 to 15 s.
    pub(crate) assembled: u32,
    /// Time for the schedule that takes least memory, where the time is over, and for each kernel that is assembled then. A choice:
    /// of several loops together a schedule takes a few seconds.
    pub(crate) least_time: Duration,
    /// Time that assembling may take beyond the time for all searches, of a processor. A choice: two of
    /// 432 kernels (docs/coverage.md) took longer, of which stock Triton does not compile one within five minutes.
    pub(crate) last_time: Duration,
    /// Searches with less shared memory if the best schedule takes too much of it. A choice.
    pub(crate) smaller: u32,
    /// Added latency of the tensor core, in the order in which it is tried: fractions of the 512 cycles of an MMA. Source:
    /// `bench/results/variants.md`, attention forward on an H200.
    pub(crate) later: [Cycles; 4],
    /// What is tried besides if there are several loops. Source: as `later`, attention backward.
    pub(crate) latest: Cycles,
    /// How much longer, in part, warp programs must be simulated to be slower for sure. Source:
    /// `bench/results/calibration.md`: of causal attention on an H200 at length 4096, the schedule that is simulated 3 %
    /// faster than the one that computes least between MMAs is 1 % slower, and the one that computes least with other costs is
    /// simulated 20 % slower and is 6 % slower.
    pub(crate) clearly: f64,
    /// How much faster, in part, another kernel must be than the first. Source: `bench/results/order.md`: simulations of
    /// two kernels are apart by more when one of them is faster; without this, attention backward lost 3 % on an H200.
    pub(crate) margin: f64,
    /// Times its interval that the machine code of a schedule takes before others are looked at unasked. Source:
    /// `bench/results/order.md`, on an H200: attention with head dimension 64 takes twice its interval, and the fastest
    /// of four schedules is 12 % faster in the backward pass and 15 % in the forward pass; where the first takes up to 1.6 times
    /// its interval, none is more than 2 % faster.
    pub(crate) far: f64,
    /// Times its interval that the machine code of a kernel in Gluon takes before one in CUDA C++ is looked at, where no language was
    /// asked for; and how much less, in part, that must take. Source: `bench/results/gpu.md`, ten kernels of attention on an H200:
    /// up to 1.14 times the interval both are as fast; beyond it, estimates that are apart by more than this name the faster one.
    pub(crate) far_in_gluon: f64,
    pub(crate) ahead: f64,
    /// Schedules that are looked at then, and where a simulation of the warp programs chose among several. Source:
    /// `bench/results/calibration.md`: on an H200 it chose one for the causal attention of Triton's tutorial that is 7 %
    /// slower than another.
    pub(crate) unrequested: u32,
    /// Maximum slots of a ring that the simulation is asked about. A choice: shared memory ends before.
    pub(crate) deepest_ring: u32,
    /// Slots of rings that threads copy to, where there is room. Source: H100, 2026-11-28: a grouped product of 128 × 128 × 64
    /// tiles takes 0.562 ms with three slots, 0.539 with four, 0.533 with five, 0.535 with six; one of experts with gathered
    /// rows 0.639, 0.624, 0.620, 0.624.
    pub(crate) copied_ring: u32,
    /// What a deeper ring must gain, as part of the cycles of an iteration. Source: `bench/results/order.md`, GEMM on an
    /// H200.
    pub(crate) ring_gain: f64,
    /// Columns of the epilogue's sub-tiles, where it has some. A choice: a row of 64 elements of 16 bits is what TMA swizzles.
    pub(crate) epilogue_subtile: u64,
    /// CTAs that may share a multiprocessor. A choice: more were not tried.
    pub(crate) residents: u32,
    /// Part of the registers that the machine code of a CTA with a multiprocessor of its own uses that may suffice for groups that
    /// compute, and for those that load: ptxas uses more where it may. A choice near the least that did, of 50 kernels
    /// (`bench/results/residency.md`).
    pub(crate) needed: (f64, f64),
    /// Kernels that are assembled for CTAs that share a multiprocessor, at most. A choice: each takes 2 to 15 s.
    pub(crate) shared: u32,
    /// Width of the GROUP_M swizzle along the first axis, in matrix products, in programs. Source: Triton's tutorials, and GEMM on an
    /// H200 (docs/codegen.md).
    pub(crate) group_m: u32,
    /// Width along the second axis where tiles are of different length, in programs: what they load fits the L2 cache. Source: causal
    /// attention on an H200 (docs/codegen.md).
    pub(crate) lpt_width: u32,
    /// Orders of a sub-tile's MMAs that are tried as batches; with more than these none is. A choice: 4! of them.
    pub(crate) batch_orders: usize,
}

/// Those that are in use.
pub(crate) const THRESHOLDS: Thresholds = Thresholds {
    later_work: 20_000_000,
    padded_work: 1_000_000,
    far_short: 32,
    spilled_for_one: 3,
    most_fewer: 40,
    assembled: 6,
    residents: 4,
    epilogue_subtile: 64,
    needed: (0.85, 0.45),
    shared: 2,
    least_time: Duration::from_secs(5),
    last_time: Duration::from_secs(12),
    smaller: 3,
    later: [Cycles(64), Cycles(128), Cycles(192), Cycles(256)],
    latest: Cycles(320),
    clearly: 0.05,
    margin: 0.02,
    far: 1.6,
    far_in_gluon: 1.25,
    ahead: 0.05,
    unrequested: 4,
    deepest_ring: 8,
    copied_ring: 5,
    ring_gain: 0.01,
    group_m: 16,
    lpt_width: 2,
    batch_orders: 24,
};
