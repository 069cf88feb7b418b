//! The vocabulary of Twill: loop graphs, machine resources, scheduling problems, schedules and
//! what is known of them, and their text formats.
//!
//! Nothing here knows of Triton, of a solver or of a particular GPU. The mathematics that gives
//! these types their meaning is stated in `docs/model.md`.
//!
//! ```
//! use twill_graph::{builtin, Cycles};
//! let toy = builtin::find("toy-attention").unwrap();
//! assert_eq!(toy.graph.operations().len(), 3);
//! let gemm = &toy.graph.operations()[0];
//! assert_eq!(gemm.occupancy, Cycles(1));
//! ```

pub mod builtin;
mod dataflow;
mod explanation;
mod family;
pub mod format;
mod graph;
mod ids;
mod memory;
mod modulo;
mod multi_loop;
mod names;
mod narrow;
mod numbers;
mod options;
mod outcome;
mod pipeline;
mod problem;
pub mod proof;
mod quantities;
mod random;
mod resources;
mod schedule;
mod splitmix;
mod traffic;
mod unroll;

pub use dataflow::{
    Dataflow, DataflowDependence, DataflowError, DataflowObjective, DataflowOperation, DataflowProblem,
    DataflowResource, ResourceUse, StartSteps,
};
pub use explanation::{
    Breach, Change, Conflict, Demand, ExplainedRejection, Explanation, KnownBy, Member, Quantity, WhatIf, Witness,
};
pub use family::{Families, Family};
pub use graph::{Dependence, Execution, GraphError, LoopGraph, Operation, Reservation, Reserved, Source, Storage};
pub use ids::{DependenceId, GroupId, OpId, UnitId};
pub use memory::MemoryBudget;
pub use modulo::{IssueTimes, ModuloDependence, ModuloError, ModuloOperation, ModuloProblem, ModuloResource};
pub use multi_loop::{
    CommonGroups, KernelError, KernelObjective, KernelRejection, LoopOperation, MultiLoopProblem, MultiLoopReport, Tie,
    TieReason, corresponding,
};
pub use names::{LONGEST_NAME, NameFault, is_shown, shortened, showable};
pub use narrow::{Integer, narrow, saturate};
pub use numbers::{grouped, grouped_real};
pub use options::{ConcurrencyWindow, Liveness, ModelOptions, StageWindow, WarpAssignment};
pub use outcome::{
    LowerBound, LowerBoundKind, ModuloSchedule, ObjectiveLevel, ObjectiveValue, Outcome, Phase, Rejection,
    RejectionReason, Report, SimulatedCycles, Status,
};
pub use pipeline::Pipeline;
pub use problem::{Group, GroupRole, Problem, ProblemError};
pub use quantities::{Bytes, Columns, Cycles, Words};
pub use random::{Random, RandomError};
pub use resources::{ComputePool, FixedGroup, RegisterFile, Resources, ResourcesError, Unit};
pub use schedule::{Channel, ChannelStorage, Placement, Ring, Schedule, WarpGroup};
pub use splitmix::SplitMix64;
pub use traffic::{IterationTraffic, Traffic};
