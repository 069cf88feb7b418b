//! What differs between Hopper and Blackwell: rows of an MMA, where its result is, and the shares of the register file.

pub(crate) mod blackwell;
pub(crate) mod hopper;

/// A warp group's part in the register file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegisterDemand {
    /// Groups of four warps that compute.
    pub compute: u32,
    /// The group computes.
    pub computes: bool,
    /// Registers that addresses and elements of a tile take in a thread that copies through pointers; 0 where none does.
    pub copied: u32,
    /// Rings and buffers that the group that loads serves, each with a slot and a phase.
    pub rings: usize,
    /// Registers a thread that schedules grant to groups that compute.
    pub granted: u32,
    /// Registers a thread of the group that loads, where somebody knows better.
    pub loading: Option<u32>,
    /// CTAs that share the register file.
    pub ctas: u32,
}
