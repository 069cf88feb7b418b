//! Limits of a schedule, and the model variant (docs/model.md).

use super::choice::Choice;
use super::{choice, numbers};
use serde::{Deserialize, Serialize};
use twill_graph::{ConcurrencyWindow, Liveness, ModelOptions, StageWindow, WarpAssignment};

/// Limits of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Limits"))]
pub struct LimitOptions {
    /// Maximum number of compute groups.
    ///
    /// The default is the machine's.
    #[serde(deserialize_with = "numbers::deserialize_optional::<1, 16, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole::<1, 16, u32>))]
    pub compute_groups: Option<u32>,
    /// Maximum registers of a compute group's thread [default: the machine's].
    #[serde(deserialize_with = "numbers::deserialize_optional::<1, { u32::MAX as u64 }, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole::<1, { u32::MAX as u64 }, u32>))]
    pub registers_per_thread: Option<u32>,
    /// Schedule N iterations as one; I is then for N iterations.
    #[serde(deserialize_with = "numbers::deserialize_whole::<1, 64, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = 1, value_parser = numbers::whole::<1, 64, u32>))]
    pub unroll: u32,
    /// Normalise costs to integers with a sum of at most U; 0 keeps cycles.
    ///
    /// The paper uses 300.
    #[serde(deserialize_with = "numbers::deserialize_whole::<0, 10_000, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "U", default_value_t = 0, value_parser = numbers::whole::<0, 10_000, u32>))]
    pub normalise: u32,
}

impl Default for LimitOptions {
    fn default() -> LimitOptions {
        LimitOptions { compute_groups: None, registers_per_thread: None, unroll: 1, normalise: 0 }
    }
}

/// The model variant: where it begins, and in what it differs from that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Model"))]
pub struct ModelVariant {
    /// Model variant: Twill's, or the paper's (arXiv 2512.18134).
    #[serde(with = "choice")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "MODEL", default_value = "twill", value_parser = choice::choices::<ModelBase>()))]
    pub model: ModelBase,
    /// Synchronous operations of one group do not overlap.
    #[serde(deserialize_with = "numbers::deserialize_optional_switch")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "on|off", value_parser = numbers::switch))]
    pub exclusive_issue: Option<bool>,
    /// A register value that another group reads takes registers there, too.
    #[serde(deserialize_with = "numbers::deserialize_optional_switch")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "on|off", value_parser = numbers::switch))]
    pub consumer_registers: Option<bool>,
    /// Another warp group may read register values.
    #[serde(deserialize_with = "numbers::deserialize_optional_switch")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "on|off", value_parser = numbers::switch))]
    pub cross_group_registers: Option<bool>,
    /// How long an operation keeps its group from waiting.
    #[serde(with = "choice::optional")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "WINDOW", value_parser = choice::choices::<ConcurrencyWindow>()))]
    pub concurrency_window: Option<ConcurrencyWindow>,
    /// How live values are counted.
    #[serde(with = "choice::optional")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOW", value_parser = choice::choices::<Liveness>()))]
    pub liveness: Option<Liveness>,
    /// Numbers of stages that the search tries at each interval.
    #[serde(with = "choice::optional")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHICH", value_parser = choice::choices::<StageWindow>()))]
    pub stage_window: Option<StageWindow>,
    /// How compute operations are assigned to warp groups.
    ///
    /// The default is by-sub-tile for kernels, and free with tensor memory, with --model paper, and for loop graphs.
    #[serde(with = "choice::optional")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOW", value_parser = choice::choices::<WarpAssignment>()))]
    pub warp_assignment: Option<WarpAssignment>,
}

impl Default for ModelVariant {
    fn default() -> ModelVariant {
        ModelVariant {
            model: ModelBase::Twill,
            exclusive_issue: None,
            consumer_registers: None,
            cross_group_registers: None,
            concurrency_window: None,
            liveness: None,
            stage_window: None,
            warp_assignment: None,
        }
    }
}

/// Where a model variant begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelBase {
    /// Twill's model.
    Twill,
    /// The paper's model (arXiv 2512.18134).
    Paper,
}

impl Choice for ModelBase {
    const ALL: &'static [(&'static str, ModelBase, &'static str)] = &[
        ("twill", ModelBase::Twill, "Twill's model"),
        ("paper", ModelBase::Paper, "The paper's model (arXiv 2512.18134)"),
    ];
}

impl ModelVariant {
    /// The model's options.
    pub fn options(&self) -> ModelOptions {
        let base = match self.model {
            ModelBase::Twill => ModelOptions::default(),
            ModelBase::Paper => ModelOptions::paper(),
        };
        ModelOptions {
            exclusive_issue: self.exclusive_issue.unwrap_or(base.exclusive_issue),
            consumer_registers: self.consumer_registers.unwrap_or(base.consumer_registers),
            cross_group_registers: self.cross_group_registers.unwrap_or(base.cross_group_registers),
            concurrency_window: self.concurrency_window.unwrap_or(base.concurrency_window),
            liveness: self.liveness.unwrap_or(base.liveness),
            stage_window: self.stage_window.unwrap_or(base.stage_window),
            ..base
        }
    }

    /// The assignment of operations to warp groups that is asked for, if any is. The paper's scheduler chooses.
    pub fn warp_assignment(&self) -> Option<WarpAssignment> {
        self.warp_assignment.or((self.model == ModelBase::Paper).then_some(WarpAssignment::Free))
    }
}
