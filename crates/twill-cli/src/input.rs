//! From arguments to a request.

use crate::arguments::{
    AxisArgument, LimitArguments, LivenessArgument, LoweringArguments, Model, ModelArguments, SearchArguments,
    SiblingArguments, SourceArguments, StageWindowArgument, Switch, WarpAssignmentArgument, Window,
};
use crate::error::Error;
use crate::files;
use crate::kind::InputKind;
use std::path::Path;
use twill_driver::{Input, Limits, Lowering, Request, SiblingOptions};
use twill_graph::{ConcurrencyWindow, Liveness, ModelOptions, StageWindow, WarpAssignment, builtin};
use twill_machine::{Machine, MachineError};
use twill_triton::CtaCoarsening;
use twill_triton::tile::Axis;

impl SearchArguments {
    /// What is requested, each loop by itself or with its siblings as is usual.
    pub(crate) fn request(&self) -> Result<Request, Error> {
        Ok(self.request_about(self.source.read()?)?)
    }

    /// The same about another input than the one that is named.
    pub(crate) fn request_about(&self, input: Input) -> Result<Request, MachineError> {
        Ok(Request {
            input,
            lowering: self.source.lowering.lowering()?,
            limits: self.limits.limits(),
            siblings: SiblingOptions::default(),
        })
    }

    /// The same, with what was said of siblings.
    pub(crate) fn request_with(&self, siblings: &SiblingArguments) -> Result<Request, Error> {
        Ok(Request { siblings: siblings.options(), ..self.request()? })
    }
}

impl SiblingArguments {
    /// How loops are scheduled together.
    pub(crate) fn options(&self) -> SiblingOptions {
        SiblingOptions { trip_counts: self.trip_counts.clone(), apart: self.separate_loops }
    }
}

impl LimitArguments {
    /// What a schedule may use.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            compute_groups: self.compute_groups,
            registers_per_thread: self.registers_per_thread,
            unroll: self.unroll,
            normalise: self.normalise,
            model: model(&self.model),
            warp_assignment: match self.model.warp_assignment {
                Some(WarpAssignmentArgument::Free) => Some(WarpAssignment::Free),
                Some(WarpAssignmentArgument::BySubTile) => Some(WarpAssignment::BySubTile),
                // The paper's scheduler chooses.
                None => (self.model.model == Model::Paper).then_some(WarpAssignment::Free),
            },
        }
    }
}

impl SourceArguments {
    /// The kernel or loop graph that is named.
    pub(crate) fn read(&self) -> Result<Input, Error> {
        read(&self.input)
    }
}

/// The kernel or loop graph of this name: a file, standard input, or a built-in graph.
pub(crate) fn read(name: &str) -> Result<Input, Error> {
    let path = Path::new(name);
    if !files::exists(path) {
        if let Some(input) = Input::builtin(name) {
            return Ok(input);
        }
        if path.extension().is_none() && path.components().count() <= 1 {
            return Err(Error::UnknownInput { input: name.to_owned(), known: known() });
        }
        // It looks like a path: reading it says why it cannot be read.
    }
    let text = files::read(path)?;
    Ok(match InputKind::of(path, &text) {
        InputKind::LoopGraph => Input::graph(name, &text)?,
        _ => Input::kernel(name, text),
    })
}

impl LoweringArguments {
    /// How it becomes loop graphs.
    pub(crate) fn lowering(&self) -> Result<Lowering, MachineError> {
        let axis = match self.coarsening_axis {
            AxisArgument::X => Axis::X,
            AxisArgument::Y => Axis::Y,
            AxisArgument::Z => Axis::Z,
        };
        Ok(Lowering {
            machine: self.machine.as_deref().map(Machine::load).transpose()?,
            kernel: self.kernel.clone(),
            loop_index: self.loop_index,
            sub_tiles: self.sub_tiles,
            programs: self.cta_coarsening.map(|count| CtaCoarsening { count, axis }),
            retile_loop: self.retile_loop,
            contract: !self.no_contract,
        })
    }
}

/// Names of the built-in graphs.
pub(crate) fn known() -> String {
    builtin::names().collect::<Vec<_>>().join(", ")
}

fn model(arguments: &ModelArguments) -> ModelOptions {
    let mut options = match arguments.model {
        Model::Twill => ModelOptions::default(),
        Model::Paper => ModelOptions::paper(),
    };
    let set = |option: &mut bool, switch: Option<Switch>| {
        if let Some(switch) = switch {
            *option = switch == Switch::On;
        }
    };
    set(&mut options.exclusive_issue, arguments.exclusive_issue);
    set(&mut options.consumer_registers, arguments.consumer_registers);
    set(&mut options.cross_group_registers, arguments.cross_group_registers);
    if let Some(window) = arguments.concurrency_window {
        options.concurrency_window = match window {
            Window::Issue => ConcurrencyWindow::Issue,
            Window::Literal => ConcurrencyWindow::Literal,
        };
    }
    if let Some(liveness) = arguments.liveness {
        options.liveness = match liveness {
            LivenessArgument::Folded => Liveness::Folded,
            LivenessArgument::Paper => Liveness::Paper,
        };
    }
    if let Some(window) = arguments.stage_window {
        options.stage_window = match window {
            StageWindowArgument::Complete => StageWindow::Complete,
            StageWindowArgument::Paper => StageWindow::Paper,
        };
    }
    options
}
