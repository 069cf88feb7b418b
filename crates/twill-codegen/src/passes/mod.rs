//! The passes, one a file; [`pipeline`](crate::pipeline) has their order.

pub(crate) mod allot_registers;
pub(crate) mod assign_buffers;
pub(crate) mod complete_carried;
pub(crate) mod consumers;
pub(crate) mod epilogue;
pub(crate) mod epilogue_barriers;
pub(crate) mod fence_reads;
pub(crate) mod finish;
pub(crate) mod hoist_smem_loads;
pub(crate) mod issue_mmas_ahead;
pub(crate) mod legalize;
pub(crate) mod loops;
pub mod multicast;
pub mod partial_sums;
pub(crate) mod pingpong;
pub(crate) mod place_barriers;
pub(crate) mod producers;
mod segments;
pub mod steps;
pub mod structure_returns;
pub(crate) mod tile_scheduler;
mod timestamps;
