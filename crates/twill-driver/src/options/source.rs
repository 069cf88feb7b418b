//! Machine, and how a kernel becomes loop graphs.

use super::{choice, numbers};
use crate::LoweringParameters;
use serde::{Deserialize, Serialize};
use twill_machine::{Machine, MachineError};
use twill_triton::CtaCoarsening;
use twill_triton::tile::Axis;

/// Machine, and how a kernel becomes loop graphs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Kernel and machine"))]
pub struct LoweringOptions {
    /// Built-in machine, or machine file.
    ///
    /// The default is the graph's own machine, and h200 for TTIR, whose numbers are measured. Take it for an H100, too.
    #[serde(deserialize_with = "numbers::deserialize_text")]
    #[cfg_attr(feature = "clap", arg(long, short, value_name = "NAME"))]
    pub machine: Option<String>,
    /// Kernel function, if the TTIR has several.
    #[serde(deserialize_with = "numbers::deserialize_text")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub kernel: Option<String>,
    /// Innermost loop, counted from 0 [default: all].
    ///
    /// All loops are scheduled with common warp groups, unless --separate-loops is given.
    #[serde(rename = "loop", deserialize_with = "numbers::deserialize_optional::<0, { u64::MAX }, _, _>")]
    #[cfg_attr(feature = "clap", arg(long = "loop", value_name = "INDEX"))]
    pub loop_index: Option<usize>,
    /// Sub-tiles along M [default: by MMA instruction].
    ///
    /// By default each sub-tile has the rows of one instruction.
    #[serde(deserialize_with = "numbers::deserialize_optional::<1, { u32::MAX as u64 }, _, _>")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole::<1, { u32::MAX as u64 }, u32>))]
    pub sub_tiles: Option<u32>,
    /// CTA coarsening: consecutive programs of the grid that share a CTA.
    ///
    /// They share what they load alike, and each takes the place of a sub-tile. It is used only on request.
    #[serde(deserialize_with = "numbers::deserialize_optional::<1, 16, _, _>")]
    #[cfg_attr(feature = "clap", arg(help_heading = super::EXPERIMENTAL, long, value_name = "N", conflicts_with = "sub_tiles", value_parser = numbers::whole::<1, 16, u32>))]
    pub cta_coarsening: Option<u32>,
    /// Axis of the grid along which --cta-coarsening takes programs.
    #[serde(with = "choice")]
    #[cfg_attr(feature = "clap", arg(help_heading = super::EXPERIMENTAL, long, value_name = "AXIS", requires = "cta_coarsening", default_value = "x", value_parser = choice::choices::<Axis>()))]
    pub coarsening_axis: Axis,
    /// Loop re-tiling: elements of the loop's tiles along the loop.
    ///
    /// It replaces the step of the source: for example, 176 keys for attention that is written in steps of 128. The first
    /// iteration masks the elements of the remainder. The result of the loop must not depend on how the loop is cut. It is
    /// used only on request.
    #[serde(deserialize_with = "numbers::deserialize_optional::<1, { u64::MAX }, _, _>")]
    #[cfg_attr(feature = "clap", arg(help_heading = super::EXPERIMENTAL, long, value_name = "N", value_parser = numbers::whole::<1, { u64::MAX }, u64>))]
    pub retile_loop: Option<u64>,
    /// Do not contract multiply and add into FMA, as ptxas does.
    #[serde(deserialize_with = "numbers::deserialize_switch")]
    #[cfg_attr(feature = "clap", arg(long))]
    pub no_contract: bool,
}

impl Default for LoweringOptions {
    fn default() -> LoweringOptions {
        LoweringOptions {
            machine: None,
            kernel: None,
            loop_index: None,
            sub_tiles: None,
            cta_coarsening: None,
            coarsening_axis: Axis::X,
            retile_loop: None,
            no_contract: false,
        }
    }
}

impl LoweringOptions {
    /// The same with the machine's numbers.
    ///
    /// # Errors
    /// When the machine does not read.
    pub fn lowering(&self) -> Result<LoweringParameters, MachineError> {
        Ok(LoweringParameters {
            machine: self.machine.as_deref().map(Machine::load).transpose()?,
            kernel: self.kernel.clone(),
            loop_index: self.loop_index,
            sub_tiles: self.sub_tiles,
            programs: self.cta_coarsening.map(|count| CtaCoarsening { count, axis: self.coarsening_axis }),
            retile_loop: self.retile_loop,
            contract: !self.no_contract,
        })
    }
}

/// How the loops of a kernel are scheduled together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Several loops"))]
pub struct SiblingOptions {
    /// Trip count of each loop, as its weight [default: as the TTIR says, or equal].
    #[serde(deserialize_with = "numbers::deserialize_list")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "A,B", value_delimiter = ','))]
    pub trip_counts: Vec<u64>,
    /// Schedule each loop by itself, without common warp groups.
    #[serde(deserialize_with = "numbers::deserialize_switch")]
    #[cfg_attr(feature = "clap", arg(long))]
    pub separate_loops: bool,
}
