//! Whether kernels got worse: what is proved and needed of each, against a baseline in a file.
//!
//! A baseline is written on one commit and checked on another, perhaps on another machine. So nothing in it depends on time:
//! searches stop by work, and nothing is assembled.

mod baseline;
mod change;
mod measure;

pub use baseline::{Baseline, BaselineError};
pub use change::{Change, Quantity, changes};
pub use measure::{LoopPerformance, MachineStamp, Performance, PerformanceError, measure};

/// The JSON Schema of [`Baseline`].
pub fn baseline_schema() -> serde_json::Value {
    schemars::schema_for!(Baseline).to_value()
}
