//! The loop graph: the tile operations of one innermost loop and their dependences.

mod check;
mod error;

use crate::saturate;
pub use error::GraphError;

use crate::names;
use crate::{Bytes, Columns, Cycles, DependenceId, OpId, Traffic, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// One innermost loop with a straight-line body of tile operations.
///
/// Construction checks everything that does not need a machine, so a `LoopGraph` in hand is
/// well formed: names are unique, dependences point at operations, amounts are not negative, no
/// operation depends on itself within one iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopGraph {
    name: String,
    operations: Vec<Operation>,
    dependences: Vec<Dependence>,
    reserved: Reserved,
}

/// A tile operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Unique within the graph.
    pub name: String,
    /// Its kind, for people: `dot`, `exp2`, `load`, …
    pub kind: String,
    /// Where it stands in the kernel's source.
    pub source: Option<Source>,
    /// When it holds which functional unit, relative to its issue.
    pub reservations: Vec<Reservation>,
    /// `cycles(v)`: rows of its reservation table; a synchronous operation keeps its warps busy so
    /// long. At least the end of every reservation.
    pub occupancy: Cycles,
    /// Cycles from issue until its result can be read.
    pub latency: Cycles,
    /// The executor.
    pub execution: Execution,
    /// Warps that issue it together: 1 or 4.
    pub issue_width: u32,
    /// The storage of its result while live.
    pub storage: Storage,
    /// Its latency is not known statically (global-memory traffic).
    pub variable_latency: bool,
    /// Variable latency without incoming data: it can run ahead by itself.
    pub streaming: bool,
    /// Cycles to pass its register result to another warp group through shared memory.
    pub handoff: Cycles,
    /// For a streaming operation: cycles from issue to arrival that its ring must hide.
    pub transfer_latency: Cycles,
    /// The sub-tile along M it belongs to; `None` when shared by all.
    pub sub_tile: Option<u32>,
    /// Its bytes and FLOP.
    pub traffic: Traffic,
}

impl Operation {
    /// Cycles after issue at which the operation is over: `max(cycles, latency)`.
    pub fn completion(&self) -> Cycles {
        self.occupancy.max(self.latency)
    }

    /// Rows it takes in the schedule: `max(1, cycles)`.
    pub fn span(&self) -> Cycles {
        self.occupancy.max(Cycles(1))
    }

    /// Returns whether the warps that issue it also execute it.
    pub fn is_synchronous(&self) -> bool {
        self.execution == Execution::Synchronous
    }

    /// Register words of its result; zero when the result lives elsewhere.
    pub fn register_words(&self) -> Words {
        match self.storage {
            Storage::Registers(words) => words,
            Storage::None | Storage::Shared(_) | Storage::Tensor(_) => Words(0),
        }
    }
}

/// One instance of a functional unit held for `cycles` cycles, `start` cycles after issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Name of the functional unit.
    pub unit: String,
    /// First cycle, relative to issue.
    pub start: Cycles,
    /// Number of cycles, at least 1.
    pub cycles: Cycles,
}

/// The execution of an operation: warps execute it, or only issue it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Execution {
    /// The issuing warps execute it and are busy for its cycles.
    Synchronous,
    /// The issuing warps only start it (tensor core, TMA).
    Asynchronous,
}

/// Where a result lives, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// No result is kept.
    None,
    /// Registers of the warp group that runs the operation.
    Registers(Words),
    /// Shared memory.
    Shared(Bytes),
    /// Tensor memory.
    Tensor(Columns),
}

/// `to` of iteration `i` issues no earlier than `delay` cycles after `from` of iteration
/// `i − distance` issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// Producer.
    pub from: OpId,
    /// Consumer.
    pub to: OpId,
    /// Cycles from issue to issue.
    pub delay: Cycles,
    /// Iterations it spans; 0 within one iteration.
    pub distance: u32,
    /// `to` must wait on an asynchronous unit before it can read the result.
    pub blocking: bool,
    /// `to` reads the result of `from` (otherwise it is an order only).
    pub carries_value: bool,
    /// `to` continues in the storage of `from`'s result (accumulator, in-place arithmetic).
    pub tied: bool,
    /// Cycles after `to`'s issue for which it still reads the result of `from`.
    pub hold: Cycles,
}

/// Storage that other parts of the kernel keep during the whole loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    /// Shared memory, for instance the query tile of attention.
    pub shared: Bytes,
    /// Tensor memory.
    pub tensor: Columns,
}

/// A place in a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Path as the compiler recorded it.
    pub file: String,
    /// 1-based line.
    pub line: u32,
    /// 1-based column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        self.column.map_or(Ok(()), |column| write!(f, ":{column}"))
    }
}

impl LoopGraph {
    /// Checks and builds a graph.
    pub fn new(
        name: impl Into<String>,
        operations: Vec<Operation>,
        dependences: Vec<Dependence>,
        reserved: Reserved,
    ) -> Result<LoopGraph, GraphError> {
        let graph = LoopGraph { name: name.into(), operations, dependences, reserved };
        graph.check_operations()?;
        graph.check_dependences()?;
        graph.check_sums()?;
        match graph.zero_distance_cycle() {
            Some(cycle) => Err(GraphError::ZeroDistanceCycle { cycle }),
            None => Ok(graph),
        }
    }

    /// Name of the loop.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All operations; [`OpId::index`] is the position.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// One operation.
    pub fn operation(&self, id: OpId) -> &Operation {
        &self.operations[id.index()]
    }

    /// The ids of all operations, in order.
    pub fn op_ids(&self) -> impl Iterator<Item = OpId> + use<> {
        (0..self.operations.len()).map(OpId::new)
    }

    /// The operation with this name.
    pub fn find(&self, name: &str) -> Option<OpId> {
        self.operations.iter().position(|op| op.name == name).map(OpId::new)
    }

    /// All dependences; [`DependenceId::index`] is the position.
    pub fn dependences(&self) -> &[Dependence] {
        &self.dependences
    }

    /// One dependence.
    pub fn dependence(&self, id: DependenceId) -> &Dependence {
        &self.dependences[id.index()]
    }

    /// Dependences through which the result of `producer` is read.
    pub fn uses(&self, producer: OpId) -> impl Iterator<Item = &Dependence> {
        self.dependences.iter().filter(move |d| d.from == producer && d.carries_value)
    }

    /// Storage kept during the whole loop by code around it.
    pub fn reserved(&self) -> Reserved {
        self.reserved
    }

    /// The same loop with other costs: `change` sees every operation and dependence once.
    ///
    /// # Errors
    /// As [`LoopGraph::new`], for what `change` made of it.
    pub fn map(
        &self,
        mut operation: impl FnMut(&mut Operation),
        mut dependence: impl FnMut(&mut Dependence),
    ) -> Result<LoopGraph, GraphError> {
        let mut copy = self.clone();
        copy.operations.iter_mut().for_each(&mut operation);
        copy.dependences.iter_mut().for_each(&mut dependence);
        LoopGraph::new(copy.name, copy.operations, copy.dependences, copy.reserved)
    }

    /// The largest initiation interval at which every sum of delays and intervals along dependences fits 64 bits with room to
    /// spare: 2^58 cycles by the sum of all distances.
    pub fn largest_interval(&self) -> i64 {
        saturate::<i64>(check::LARGEST_SUM / (self.distances() + 1)).max(1)
    }
}
