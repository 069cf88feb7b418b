//! The loop graph: the tile operations of one innermost loop and their dependences.

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

/// Times are added and multiplied in 64 bits; this bound on every single number keeps sums exact.
const LARGEST_CYCLES: i64 = 1 << 40;
const LARGEST_AMOUNT: u64 = 1 << 40;
const LARGEST_DISTANCE: u32 = 1 << 20;
const LARGEST_TABLE: usize = 1 << 24;
const LARGEST_SUM: u64 = 1 << 58;

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

    fn check_operations(&self) -> Result<(), GraphError> {
        if self.operations.is_empty() {
            return Err(GraphError::Empty);
        }
        for (what, count) in [("operations", self.operations.len()), ("dependences", self.dependences.len())] {
            if count > LARGEST_TABLE {
                return Err(GraphError::TooLarge { what, count, limit: LARGEST_TABLE });
            }
        }
        names::check([("the loop", self.name.as_str())])?;
        let mut names = HashSet::new();
        for op in &self.operations {
            names::check(op.names())?;
            if !names.insert(op.name.as_str()) {
                return Err(GraphError::DuplicateName { name: op.name.clone() });
            }
            op.check()?;
        }
        Ok(())
    }

    fn check_dependences(&self) -> Result<(), GraphError> {
        let mut seen = HashSet::new();
        for d in &self.dependences {
            let (from, to) = (self.operation(d.from), self.operation(d.to));
            let wrong = |why: String| GraphError::Dependence {
                from: from.name.clone(),
                to: to.name.clone(),
                distance: d.distance,
                why,
            };
            if d.distance > LARGEST_DISTANCE {
                return Err(wrong(format!("a distance of more than {LARGEST_DISTANCE} iterations is not supported")));
            }
            for (what, cycles) in [("delay", d.delay), ("hold", d.hold)] {
                if cycles.0 < 0 || cycles.0 > LARGEST_CYCLES {
                    return Err(wrong(format!("{what} is {cycles}; it must be from 0 to {LARGEST_CYCLES}")));
                }
            }
            if d.carries_value && from.storage == Storage::None {
                return Err(wrong(format!(
                    "it carries a value, but `{}` has no result; give it a storage or make it an order",
                    from.name
                )));
            }
            if d.tied && !d.carries_value {
                return Err(wrong("it is tied but carries no value".into()));
            }
            if d.carries_value && to.streaming {
                return Err(GraphError::NotStreaming {
                    operation: to.name.clone(),
                    why: format!("it reads the result of `{}`", from.name),
                });
            }
            if !seen.insert((d.from, d.to, d.distance)) {
                return Err(wrong("it is given twice; merge the two".into()));
            }
        }
        Ok(())
    }

    /// The largest initiation interval at which every sum of delays and intervals along dependences fits 64 bits with room to
    /// spare: 2^58 cycles by the sum of all distances.
    pub fn largest_interval(&self) -> i64 {
        saturate::<i64>(LARGEST_SUM / (self.distances() + 1)).max(1)
    }

    /// There are at most 2^24 of at most 2^20.
    fn distances(&self) -> u64 {
        self.dependences.iter().map(|d| u64::from(d.distance)).sum()
    }

    /// No interval above the sum of all cycles says anything new, and at it every path must fit.
    fn check_sums(&self) -> Result<(), GraphError> {
        let operation = |op: &Operation| {
            let cycles = [op.occupancy, op.latency, op.handoff, op.transfer_latency, Cycles(1)];
            cycles.iter().map(|c| 2 * i128::from(c.0)).sum::<i128>() + i128::from(op.traffic.shared.0)
        };
        let operations = self.operations.iter().map(operation).sum::<i128>();
        let dependence = |d: &Dependence| {
            i128::from(d.delay.0) + i128::from(d.hold.0) + i128::from(self.operation(d.from).handoff.0)
        };
        let (cycles, most) =
            (operations + self.dependences.iter().map(dependence).sum::<i128>(), self.largest_interval());
        if cycles <= i128::from(most) {
            return Ok(());
        }
        Err(GraphError::TooLong { cycles: saturate::<u64>(cycles), distances: self.distances(), most })
    }

    /// A cycle of dependences whose distances are all zero, if there is one.
    fn zero_distance_cycle(&self) -> Option<Vec<String>> {
        let mut successors: HashMap<OpId, Vec<OpId>> = HashMap::new();
        for d in self.dependences.iter().filter(|d| d.distance == 0) {
            successors.entry(d.from).or_default().push(d.to);
        }
        // Depth-first search with an explicit stack: graphs come from files and may be deep.
        #[derive(Clone, Copy, PartialEq)]
        enum Colour {
            New,
            Open,
            Done,
        }
        let mut colour = vec![Colour::New; self.operations.len()];
        for root in self.op_ids() {
            let mut path: Vec<(OpId, usize)> = vec![(root, 0)];
            if colour[root.index()] != Colour::New {
                continue;
            }
            colour[root.index()] = Colour::Open;
            while let Some((at, next)) = path.last_mut() {
                let at = *at;
                let Some(&to) = successors.get(&at).and_then(|s| s.get(*next)) else {
                    colour[at.index()] = Colour::Done;
                    path.pop();
                    continue;
                };
                *next += 1;
                match colour[to.index()] {
                    Colour::New => {
                        colour[to.index()] = Colour::Open;
                        path.push((to, 0));
                    }
                    Colour::Open => {
                        let start = path.iter().position(|(op, _)| *op == to).unwrap_or(0);
                        let mut cycle: Vec<String> =
                            path[start..].iter().map(|(op, _)| self.operation(*op).name.clone()).collect();
                        cycle.push(self.operation(to).name.clone());
                        return Some(cycle);
                    }
                    Colour::Done => {}
                }
            }
        }
        None
    }
}

impl Operation {
    /// All names that it has or uses, and what they are of.
    fn names(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let own = [(names::OPERATION, self.name.as_str()), ("the kind of an operation", self.kind.as_str())];
        let file = self.source.iter().map(|source| ("the source file of an operation", source.file.as_str()));
        own.into_iter().chain(file).chain(self.reservations.iter().map(|r| ("a unit", r.unit.as_str())))
    }

    fn check(&self) -> Result<(), GraphError> {
        let number =
            |field, value, expected| Err(GraphError::Number { operation: self.name.clone(), field, value, expected });
        for (field, cycles) in [
            ("cycles", self.occupancy),
            ("latency", self.latency),
            ("handoff", self.handoff),
            ("transfer_latency", self.transfer_latency),
        ] {
            if cycles.0 < 0 || cycles.0 > LARGEST_CYCLES {
                return number(field, cycles.0, "from 0 to 2^40");
            }
        }
        let result = match self.storage {
            Storage::None => 0,
            Storage::Registers(Words(amount)) | Storage::Shared(Bytes(amount)) | Storage::Tensor(Columns(amount)) => {
                amount
            }
        };
        let Traffic { shared, global, flop } = self.traffic;
        for (field, amount) in
            [("result", result), ("traffic.shared", shared.0), ("traffic.global", global.0), ("traffic.flop", flop)]
        {
            if amount > LARGEST_AMOUNT {
                return number(field, saturate::<i64>(amount), "at most 2^40");
            }
        }
        if self.issue_width != 1 && self.issue_width != 4 {
            return number("issue_width", i64::from(self.issue_width), "1 (one warp) or 4 (a warp group)");
        }
        for r in &self.reservations {
            if r.start.0 < 0 || r.start.0 > LARGEST_CYCLES {
                return number("start of a reservation", r.start.0, "from 0 to 2^40");
            }
            if r.cycles.0 < 1 || r.cycles.0 > LARGEST_CYCLES {
                return number("cycles of a reservation", r.cycles.0, "from 1 to 2^40");
            }
            if r.start + r.cycles > self.occupancy {
                return Err(GraphError::ReservationOutside {
                    operation: self.name.clone(),
                    unit: r.unit.clone(),
                    end: r.start + r.cycles,
                    cycles: self.occupancy,
                });
            }
        }
        if self.streaming {
            let why = if !self.variable_latency {
                "its latency is not variable"
            } else if !matches!(self.storage, Storage::Shared(_) | Storage::None) {
                "its result does not go to shared memory"
            } else {
                return Ok(());
            };
            return Err(GraphError::NotStreaming { operation: self.name.clone(), why: why.into() });
        }
        Ok(())
    }
}
