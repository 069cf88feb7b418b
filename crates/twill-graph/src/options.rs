//! Interpretations of the model that can be chosen: our default, and what the paper does
//! (docs/model.md; Twill, arXiv 2512.18134).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The model variant to schedule and check under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelOptions {
    /// Synchronous operations of one group do not overlap. The paper leaves this out.
    pub exclusive_issue: bool,
    /// How long an operation keeps its group from waiting.
    pub concurrency_window: ConcurrencyWindow,
    /// A register value read on another group takes registers there too. The paper leaves this out.
    pub consumer_registers: bool,
    /// How live values are counted.
    pub liveness: Liveness,
    /// Which numbers of stages are tried at each initiation interval.
    pub stage_window: StageWindow,
    /// True if a register value may be read on another warp group at all.
    pub cross_group_registers: bool,
    /// Which compute group runs what.
    pub warp_assignment: WarpAssignment,
}

impl Default for ModelOptions {
    fn default() -> Self {
        ModelOptions {
            exclusive_issue: true,
            concurrency_window: ConcurrencyWindow::Issue,
            consumer_registers: true,
            liveness: Liveness::Folded,
            stage_window: StageWindow::Complete,
            cross_group_registers: true,
            warp_assignment: WarpAssignment::Free,
        }
    }
}

impl ModelOptions {
    /// The paper's variant throughout.
    pub fn paper() -> Self {
        ModelOptions {
            exclusive_issue: false,
            concurrency_window: ConcurrencyWindow::Literal,
            consumer_registers: false,
            liveness: Liveness::Paper,
            stage_window: StageWindow::Paper,
            cross_group_registers: true,
            warp_assignment: WarpAssignment::Free,
        }
    }
}

/// `window(o)` of the concurrency constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConcurrencyWindow {
    /// The cycles of a synchronous operation, one cycle for an asynchronous one.
    Issue,
    /// The cycles of either (the paper).
    Literal,
}

/// How many copies of a value are counted live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Liveness {
    /// All that are live in the steady state, whichever iteration made them.
    Folded,
    /// Those of the straight-line program in which the steady state runs once (the paper); it
    /// misses values carried in from before its first copy.
    Paper,
}

/// Numbers of stages tried at each initiation interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageWindow {
    /// All, up to a bound that is proved sufficient (docs/model.md).
    Complete,
    /// Only as many as the throughput-optimal modulo schedule has (the paper).
    Paper,
}

/// How compute operations come to their groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WarpAssignment {
    /// The scheduler chooses.
    Free,
    /// Fixed, as compilers do: with `k` compute groups, sub-tile `s` runs on number `s mod k`, and what belongs to
    /// no sub-tile on the first.
    BySubTile,
}
