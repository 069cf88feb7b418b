//! Warp programs side by side: every warp group has its own place in its code, and asynchronous units do their part at any
//! moment at which they may.
//!
//! | file | what |
//! |---|---|
//! | `code` | where a group is in its code |
//! | `evaluate` | expressions over what a group holds |
//! | `storage` | shared and tensor memory, as threads and as asynchronous units see it |
//! | `barriers` | `mbarrier` objects and named barriers |
//! | `units` | copies and MMAs in flight |
//! | `group` | what one step of a group does |
//! | `machine` | a CTA: which steps can be taken, until all groups are at their end |
//! | `choice` | which of them is taken |

mod barriers;
mod choice;
mod code;
mod evaluate;
mod group;
mod machine;
mod opaque;
mod storage;
mod units;

pub use choice::{Choice, Habit};
pub use machine::{Figures, run};
