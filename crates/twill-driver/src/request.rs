//! What is looked at, how it is brought into shape, and within which limits it is scheduled.

use crate::Error;
use crate::options::SiblingOptions;
use twill_graph::format::{GraphFile, MachineReference};
use twill_graph::{LoopGraph, ModelOptions, WarpAssignment, builtin};
use twill_machine::Machine;
use twill_triton::CtaCoarsening;

/// The machine for kernels when none is asked for: one whose numbers are measured. An H100 has the same multiprocessor.
pub const DEFAULT_MACHINE: &str = "h200";

/// Everything that a schedule depends on, but for the effort of the search.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is looked at.
    pub input: Input,
    /// How it becomes loop graphs.
    pub lowering: LoweringParameters,
    /// What the schedule may use, and the model variant.
    pub limits: Limits,
    /// How the loops of a kernel are scheduled together.
    pub siblings: SiblingOptions,
}

/// A kernel or a loop graph.
#[derive(Clone, Debug)]
pub struct Input {
    /// What errors call it: a path, or the name of a built-in graph.
    pub name: String,
    /// What it is.
    pub content: Content,
}

/// What an input holds.
#[derive(Clone, Debug)]
pub enum Content {
    /// TTIR as Triton prints it.
    Kernel(String),
    /// A loop graph.
    Graph(Box<GraphInput>),
}

/// A loop graph and what its file says about it.
#[derive(Clone, Debug)]
pub struct GraphInput {
    /// The graph.
    pub graph: LoopGraph,
    /// The machine that its costs are for.
    pub machine: Option<MachineReference>,
    /// How its operations come to their warp groups, if the file says so.
    pub warp_assignment: Option<WarpAssignment>,
}

impl Input {
    /// TTIR as Triton prints it.
    pub fn kernel(name: impl Into<String>, text: impl Into<String>) -> Input {
        Input { name: name.into(), content: Content::Kernel(text.into()) }
    }

    /// A loop graph in its file format (`docs/formats.md`).
    ///
    /// # Errors
    /// When the text is not one.
    pub fn graph(name: impl Into<String>, text: &str) -> Result<Input, Error> {
        let name = name.into();
        let file = GraphFile::from_json(text, &name)?;
        let (graph, warp_assignment) = (file.graph()?, file.warp_assignment);
        Ok(Input {
            content: Content::Graph(Box::new(GraphInput { graph, machine: file.machine, warp_assignment })),
            name,
        })
    }

    /// A built-in loop graph; `None` if there is none of this name.
    pub fn builtin(name: &str) -> Option<Input> {
        let found = builtin::find(name)?;
        let graph = GraphInput { graph: found.graph, machine: found.machine, warp_assignment: None };
        Some(Input { name: name.to_owned(), content: Content::Graph(Box::new(graph)) })
    }
}

/// How an input becomes loop graphs.
#[derive(Clone, Debug)]
pub struct LoweringParameters {
    /// The machine [default: the graph's own, [`DEFAULT_MACHINE`] for kernels].
    pub machine: Option<Machine>,
    /// Kernel function, where the TTIR holds several.
    pub kernel: Option<String>,
    /// Which of the kernel's innermost loops, counted from 0 [default: all].
    pub loop_index: Option<usize>,
    /// Sub-tiles along the kernel's M dimension [default: one an instruction's rows].
    pub sub_tiles: Option<u32>,
    /// Programs of the grid that share a CTA, instead of sub-tiles.
    pub programs: Option<CtaCoarsening>,
    /// Elements of the loop's tiles along it, instead of the source's step ([`twill_triton::retile_loop`]).
    pub retile_loop: Option<u64>,
    /// Whether multiply and add are contracted, as ptxas does.
    pub contract: bool,
}

impl Default for LoweringParameters {
    fn default() -> LoweringParameters {
        LoweringParameters {
            machine: None,
            kernel: None,
            loop_index: None,
            sub_tiles: None,
            programs: None,
            retile_loop: None,
            contract: true,
        }
    }
}

/// What a schedule may use, and the model variant (`docs/model.md`).
#[derive(Clone, Debug)]
pub struct Limits {
    /// Most compute groups, instead of the machine's.
    pub compute_groups: Option<u32>,
    /// Most registers that a thread of a compute group may have, instead of the machine's.
    pub registers_per_thread: Option<u32>,
    /// Warps of each compute group, instead of the machine's.
    pub compute_warps: Option<u32>,
    /// Times its registers that a thread is taken to have, at least 1. What exceeds the register file is spilled.
    pub register_multiple: u32,
    /// Iterations that are scheduled as one, at least 1.
    pub unroll: u32,
    /// Costs are normalised to integers whose sum is at most this; 0 keeps true cycles.
    pub normalise: u32,
    /// The model variant.
    pub model: ModelOptions,
    /// How operations come to their groups [default: [`default_assignment`](crate::default_assignment) for kernels; for loop
    /// graphs what their file says, or free].
    pub warp_assignment: Option<WarpAssignment>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            compute_groups: None,
            registers_per_thread: None,
            compute_warps: None,
            register_multiple: 1,
            unroll: 1,
            normalise: 0,
            model: ModelOptions::default(),
            warp_assignment: None,
        }
    }
}
