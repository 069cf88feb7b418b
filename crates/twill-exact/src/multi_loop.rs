//! Several loops: each loop of a kernel with its own schedule, all with one warp assignment and one
//! register budget (docs/model.md, "Sibling loops").
//!
//! Each loop is solved by itself first, which bounds its interval from below. Then all are asked
//! together, in one solver (`kernel/joint.rs`): at those bounds first, and where they conflict on
//! the way up a frontier of interval vectors that are not excluded (`kernel/frontier.rs`).

mod classes;
mod frontier;
mod joint;
mod objective;
mod search;

pub use search::schedule_multi_loop;
