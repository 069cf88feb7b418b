//! The flow of control, and data-flow analyses over it.

mod branch;
mod graph;
mod path;
mod solve;

pub use branch::{Flow, flow_of};
pub use graph::{Graph, Node};
pub use path::{Step, path};
pub use solve::{Analysis, solve, visit};
