//! The steps of one loop: when each warp group issues, waits and signals, as a prologue, a loop and an epilogue.

mod build;
mod events;
#[cfg(test)]
pub(crate) mod fixtures;
mod order;
mod places;
pub mod program;
pub mod pseudocode;
#[cfg(test)]
pub(crate) mod replay;
pub(crate) mod scheduled_graph;
pub(crate) mod shared_barriers;
mod shorter;
mod storage;
#[cfg(test)]
mod tests;
