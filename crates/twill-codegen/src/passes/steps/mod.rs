//! The steps of one loop: when each warp group issues, waits and signals, as a prologue, a loop and an epilogue.

mod build;
mod events;
#[cfg(test)]
pub(crate) mod fixtures;
mod order;
mod places;
pub mod program;
pub mod pseudocode;
pub(crate) mod reads;
#[cfg(test)]
pub(crate) mod replay;
mod storage;
#[cfg(test)]
mod tests;
