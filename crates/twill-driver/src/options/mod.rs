//! Everything that can be asked for, but for the input and the format of the output.
//!
//! [`Options`] holds it once. The command's arguments are these structs (feature `clap`), the Python package fills them by
//! keywords ([`Options::from_keywords`]), and keys of the cache serialise them. Defaults are those of the command.

mod choice;
mod code;
mod gaus;
mod keywords;
mod model;
mod numbers;
mod processor;
mod search;
mod source;

pub use choice::Choice;
pub use code::{CompileOptions, EXPERIMENTAL, Language, TileOrderOption, TraceDetail, TraceOptions, Which};
pub use gaus::{Cap, GausEngine, GausGpu, GausOptions, GausStart, Objective, Weights};
pub use keywords::{OptionError, Task, given, keywords};
pub use model::{LimitOptions, ModelBase, ModelVariant};
pub use numbers::{seconds, whole};
pub use search::{DEFAULT_SECONDS, SearchLimits, explain_options};
pub use source::{LoweringOptions, SiblingOptions};

use crate::{Input, Limits, Request};
use serde::Serialize;
use twill_machine::{Machine, MachineError};

/// All options, in groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Options {
    /// Machine, and how a kernel becomes loop graphs.
    pub lowering: LoweringOptions,
    /// Limits of a schedule.
    pub limits: LimitOptions,
    /// The model variant.
    pub model: ModelVariant,
    /// How the loops of a kernel are scheduled together.
    pub loops: SiblingOptions,
    /// How long to search, and whether to keep what is found.
    pub search: SearchLimits,
    /// Code generation.
    pub code: CompileOptions,
}

impl Options {
    /// What is asked about an input, for a machine that is read already or the one that is named.
    ///
    /// # Errors
    /// When the machine that is named does not read.
    pub fn request(&self, input: Input, machine: Option<Machine>) -> Result<Request, MachineError> {
        let mut lowering = match machine {
            Some(_) => LoweringOptions { machine: None, ..self.lowering.clone() }.lowering()?,
            None => self.lowering.lowering()?,
        };
        lowering.machine = machine.or(lowering.machine);
        Ok(Request { input, lowering, limits: self.limits(), siblings: self.loops.clone() })
    }

    /// What a schedule may use, and the model variant.
    pub fn limits(&self) -> Limits {
        let LimitOptions { compute_groups, registers_per_thread, unroll, normalise } = self.limits;
        Limits {
            compute_groups,
            registers_per_thread,
            unroll,
            normalise,
            compute_warps: None,
            register_multiple: 1,
            model: self.model.options(),
            warp_assignment: self.model.warp_assignment(),
        }
    }
}
