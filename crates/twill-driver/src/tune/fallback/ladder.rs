//! The changes that are tried where registers do not suffice, in their order.

use super::Attempts;
use crate::relax::MORE_WARPS;
use crate::tune::rules;
use crate::tune::thresholds::THRESHOLDS;
use twill_graph::{WarpAssignment, grouped};

/// A change that may help.
pub(super) struct Rung {
    /// Whether it is left to try.
    pub(super) condition: fn(&Attempts<'_>) -> bool,
    /// Makes it; what does not help is taken back.
    pub(super) change: fn(&mut Attempts<'_>),
    /// Says what was changed.
    pub(super) note: fn(&Attempts<'_>) -> String,
    /// What is made again.
    pub(super) again: Again,
}

/// What a change makes anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// Code of the same schedule: that takes no search.
    Code,
    /// The schedule.
    Schedule,
    /// The schedule that was found first: what was preferred to it is not given up for a few bytes, and nothing else is tried.
    First,
}

/// The changes, of which the first whose condition holds is made.
pub(super) const LADDER: [Rung; 17] = [
    Rung {
        condition: |attempts| attempts.room().is_some(),
        change: |attempts| attempts.options.shared_bytes = attempts.room(),
        note: |attempts| {
            let room = attempts.options.shared_bytes.unwrap_or_default();
            format!("{} bytes of shared memory for buffers", grouped(room))
        },
        again: Again::Code,
    },
    Rung {
        condition: |attempts| attempts.may_subtile_epilogue(),
        change: |attempts| attempts.options.shares.epilogue_subtile = Some(THRESHOLDS.epilogue_subtile),
        note: |_| format!("{} columns of the results at a time after the loops", THRESHOLDS.epilogue_subtile),
        again: Again::Code,
    },
    Rung {
        condition: |attempts| attempts.may_fence_stores(),
        change: |attempts| attempts.options.shares.fenced_stores = true,
        note: |_| "all that threads store is fenced".into(),
        again: Again::Code,
    },
    Rung {
        condition: |attempts| attempts.wanted_by_loads().is_some(),
        change: |attempts| attempts.options.shares.loading_registers = attempts.wanted_by_loads(),
        note: |attempts| {
            let registers = attempts.options.shares.loading_registers.unwrap_or_default();
            format!("{registers} registers a thread for the group that loads")
        },
        again: Again::Code,
    },
    Rung {
        condition: |attempts| attempts.may_compute_addresses_anew(),
        change: |attempts| attempts.options.shares.fresh_addresses = true,
        note: |_| "addresses are computed anew for each tile".into(),
        again: Again::Code,
    },
    // Where one costs nothing, ptxas adds none where it does, and sees that values are there.
    Rung {
        condition: |attempts| {
            let is_left = !(attempts.options.shares.completed_carried || attempts.tried.completed_carried);
            is_left && attempts.may_wait_for_mmas()
        },
        change: |attempts| attempts.options.shares.completed_carried = true,
        note: |_| "iterations begin with a wait for MMAs".into(),
        again: Again::Code,
    },
    // Results that run on are copied at a loop's end, which reads them: ptxas has all MMAs run one by one.
    Rung {
        condition: |attempts| {
            let is_left = !(attempts.options.shares.completed_iterations || attempts.tried.completed_iterations);
            is_left && attempts.may_wait_for_mmas()
        },
        change: |attempts| attempts.options.shares.completed_iterations = true,
        note: |_| "iterations end with a wait for MMAs".into(),
        again: Again::Code,
    },
    Rung {
        condition: |attempts| attempts.far_fewer_registers().is_some(),
        change: |attempts| {
            attempts.limits.registers_per_thread = attempts.far_fewer_registers();
            attempts.has_tried_far_fewer = true;
        },
        note: |attempts| {
            let registers = attempts.limits.registers_per_thread.unwrap_or_default();
            format!("at most {registers} registers a thread in the schedule")
        },
        again: Again::Schedule,
    },
    // Threads that multiply by mma.sync hold a part of the operands at a time.
    Rung {
        condition: |attempts| attempts.may_multiply_by_threads(),
        change: |attempts| attempts.options.shares.mma_sync_of_32_bits = true,
        note: |_| "elements of 32 bits are multiplied by mma.sync".into(),
        again: Again::Code,
    },
    Rung {
        condition: |attempts| attempts.may_store_operands(),
        change: |attempts| {
            attempts.options.shares.operands_in_memory = true;
            attempts.options.operands_in_registers = attempts.options.operands_in_registers.or(Some(false));
        },
        note: |_| "operands that are the same in all iterations in shared memory".into(),
        again: Again::Code,
    },
    Rung {
        condition: |attempts| attempts.may_have_more_warps(),
        change: |attempts| attempts.options.shares.compute_warps = Some(MORE_WARPS),
        note: |_| format!("{MORE_WARPS} warps for the group that computes"),
        again: Again::Code,
    },
    Rung {
        condition: |attempts| attempts.best.spec.preferred,
        change: |_| (),
        note: |_| "the schedule that was found first".into(),
        again: Again::First,
    },
    // Each of fewer groups has more of the register file than it has more values.
    Rung {
        condition: |attempts| attempts.limits.compute_groups.is_none() && attempts.best.compute_groups() > 2,
        change: |attempts| attempts.limits.compute_groups = Some(attempts.best.compute_groups() - 1),
        note: |attempts| format!("{} compute groups", attempts.limits.compute_groups.unwrap_or_default()),
        again: Again::Schedule,
    },
    // All of its threads hold a part of what each of several groups holds whole.
    Rung {
        condition: |attempts| attempts.may_have_one_group(),
        change: |attempts| {
            (attempts.limits.compute_groups, attempts.limits.compute_warps) = (Some(1), Some(MORE_WARPS));
            attempts.options.shares.compute_warps = Some(MORE_WARPS);
        },
        note: |_| format!("one compute group of {MORE_WARPS} warps"),
        again: Again::Schedule,
    },
    Rung {
        condition: |attempts| {
            let Attempts { options, best, .. } = attempts;
            let is_persistent = best.lowered.program.tile_scheduler.persistent && !options.wave_sync;
            options.persistent.is_none() && is_persistent && best.is_short_of_registers()
        },
        change: |attempts| attempts.options.persistent = Some(false),
        note: |_| "one tile a CTA".into(),
        again: Again::Code,
    },
    Rung {
        condition: |attempts| attempts.limits.warp_assignment.is_none(),
        change: |attempts| attempts.limits.warp_assignment = Some(rules::assignments(attempts.source)[1]),
        note: |attempts| {
            match attempts.limits.warp_assignment {
                Some(WarpAssignment::BySubTile) => "each group works on sub-tiles of its own",
                _ => "any group may work on any sub-tile",
            }
            .into()
        },
        again: Again::Schedule,
    },
    Rung {
        condition: |attempts| attempts.fewer_registers().is_some(),
        change: |attempts| attempts.limits.registers_per_thread = attempts.fewer_registers(),
        note: |attempts| {
            let registers = attempts.limits.registers_per_thread.unwrap_or_default();
            format!("at most {registers} registers a thread in the schedule")
        },
        again: Again::Schedule,
    },
];
