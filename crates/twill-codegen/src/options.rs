//! How code is generated, and with how much shared memory.

use crate::ir::TileOrder;

/// How code is generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// A CTA works on one tile after another.
    pub persistent: bool,
    /// In which order tiles are worked on.
    pub order: TileOrder,
    /// Least number of slots of the rings of loads, as far as shared memory goes.
    pub ring_depth: u32,
    /// Loads that come and go together share barriers.
    pub shared_barriers: bool,
    /// Least number of slots of handoff buffers.
    pub handoff_depth: u32,
    /// MMAs that a group starts one after another start back to back, for schedules that are made for it: what the group
    /// computes for them comes before, and buffers are released after.
    pub mma_batches: bool,
    /// What threads read from rings for an MMA's result is read while the MMA runs. It takes registers.
    pub early_reads: bool,
    /// Left operands that are the same in all iterations are held in registers.
    pub operands_in_registers: bool,
    /// Groups alternate on the tensor core where the schedule orders their MMAs (ping-pong), unless they would deadlock.
    pub pingpong: bool,
    /// Groups that load in many stages do few iterations in pipelines of fewer, instead of in code for each trip count, unless they
    /// would deadlock.
    pub shorter_pipelines: bool,
    /// Two CTAs with neighbouring tiles form a cluster, and load by TMA multicast what both read.
    pub cluster: bool,
    /// Persistent CTAs begin their tiles together.
    pub wave_sync: bool,
    /// `wgmma` multiplies elements of 32 bits, in tf32.
    pub tf32: bool,
    /// The left operand of a `wgmma` of 8 bits may be in registers.
    pub left_of_8_bits: bool,
    /// Tiles that are no boxes of a matrix everywhere are loaded by TMA where they are whole.
    pub whole_tiles: bool,
    /// Results that are stored through pointers are exchanged between threads first, where that makes wider vectors.
    pub stores_in_rows: bool,
    /// Shared memory that a CTA can have, in bytes.
    pub shared_bytes: u64,
    /// Columns of tensor memory that a CTA can have, where MMAs leave their results there.
    pub tensor_columns: Option<u64>,
    /// Programs that share a CTA: how many, along which axis of the grid.
    pub programs: Option<(u32, u32)>,
    /// Warps and registers of groups, where they are not the usual ones.
    pub shares: GroupShares,
}

/// Warps and registers of groups, where they are not those of the schedule and of the target's rule, and what saves registers. The
/// same is computed with any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupShares {
    /// Warps of each group that computes: of eight, a thread holds half as much as of four.
    pub compute_warps: Option<u32>,
    /// What is computed before the loops and is a left operand in them is stored to shared memory once, and takes no registers.
    pub operands_in_memory: bool,
    /// Iterations begin with a wait for results of the one before that threads read.
    pub completed_carried: bool,
    /// Iterations end with a wait for all MMAs, so that none runs from one to the next.
    pub completed_iterations: bool,
    /// A group that loads through pointers computes addresses anew for each tile, and holds none of them in registers.
    pub fresh_addresses: bool,
    /// Registers a thread of the group that loads, as far as groups that compute can spare them.
    pub loading_registers: Option<u32>,
    /// CTAs that share the registers of a multiprocessor.
    pub ctas_per_sm: Option<u32>,
    /// Elements of 32 bits are multiplied by `mma.sync`, for which threads hold a part of the operands at a time.
    pub mma_sync_of_32_bits: bool,
    /// Columns of the epilogue's sub-tiles: what is computed of an MMA's result after the loops, and stored, goes by so many columns at
    /// a time. It takes fewer registers, and less shared memory.
    pub epilogue_subtile: Option<u64>,
    /// What threads store to shared memory is fenced where only threads read it, too, and before MMAs: for `twill lint`, which compares
    /// no addresses.
    pub fenced_stores: bool,
}

/// A level of the fallbacks by which code in tensor memory does with less shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SmemFallback {
    /// Slots of rings less than the schedule asks for: loads come later then.
    pub fewer_slots: u32,
    /// Elements that a group stores at once after the loops.
    pub part_elements: u64,
}

impl SmemFallback {
    /// From the most to the least shared memory; where results are in registers, one.
    pub fn all(options: &Options) -> Vec<SmemFallback> {
        // 128 registers a thread of four warps, or half of that.
        let mut all = vec![SmemFallback { fewer_slots: 0, part_elements: 128 * 128 }];
        if options.tensor_columns.is_some() {
            let half = SmemFallback { fewer_slots: 0, part_elements: 128 * 64 };
            let is_least = options.ring_depth == 1 && options.handoff_depth == 1;
            all.extend(
                (0..if is_least { MOST_SLOTS } else { 1 }).map(|fewer_slots| SmemFallback { fewer_slots, ..half }),
            );
        }
        all
    }
}

/// Slots of rings beyond which no fewer are tried.
const MOST_SLOTS: u32 = 4;
