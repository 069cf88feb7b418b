//! The graph format: a loop graph that a person can write by hand.
//!
//! Everything that follows from something else may be left out; [`GraphFile::graph`] fills it in.

use super::{FormatError, VERSION, check_version, is_default, parse};
use crate::{
    Bytes, Columns, Cycles, Dependence, Execution, LoopGraph, OpId, Operation, Reservation, Reserved, Resources,
    Source, Storage, Traffic, WarpAssignment, Words,
};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::HashMap;
use std::fmt;

pub(super) const FORMAT: &str = "twill-graph";

/// A loop graph file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GraphFile {
    /// Always `twill-graph`.
    pub format: String,
    /// Always 1.
    pub version: u32,
    /// Name of the loop.
    pub name: String,
    /// A description for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The machine its costs are for, unless another is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineReference>,
    /// How its operations come to their warp groups, unless another assignment is asked for; the scheduler chooses when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warp_assignment: Option<WarpAssignment>,
    /// Storage kept during the whole loop.
    #[serde(default, skip_serializing_if = "ReservedEntry::is_nothing")]
    pub reserved: ReservedEntry,
    /// Tile operations.
    pub operations: Vec<OperationEntry>,
    /// Dependences.
    #[serde(default)]
    pub dependences: Vec<DependenceEntry>,
    /// Where the file was read from, for errors.
    #[serde(skip)]
    file: String,
}

/// A machine by name or in full.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum MachineReference {
    /// A machine file by name or path.
    Name(String),
    /// The resources themselves.
    Resources(Box<Resources>),
}

// By hand: a derived untagged enum answers every mistake with "no variant matched".
impl<'de> Deserialize<'de> for MachineReference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reference;
        impl<'de> Visitor<'de> for Reference {
            type Value = MachineReference;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a machine's name or its resources")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<MachineReference, E> {
                Ok(MachineReference::Name(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<MachineReference, A::Error> {
                let resources = Resources::deserialize(MapAccessDeserializer::new(map))?;
                Ok(MachineReference::Resources(Box::new(resources)))
            }
        }
        deserializer.deserialize_any(Reference)
    }
}

/// Storage kept during the whole loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReservedEntry {
    /// Bytes.
    pub shared_memory: Bytes,
    /// Columns.
    pub tensor_memory: Columns,
}

impl ReservedEntry {
    fn is_nothing(&self) -> bool {
        *self == ReservedEntry::default()
    }
}

/// A tile operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationEntry {
    /// Unique name.
    pub name: String,
    /// Its kind; its name when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Where it stands in the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Functional units that it holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<UnitEntry>,
    /// Cycles it takes; the end of its last reservation when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<Cycles>,
    /// Cycles until its result can be read; its `cycles` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Cycles>,
    /// Its execution: the issuing warps execute it (the default), or only issue it.
    #[serde(default = "synchronous", skip_serializing_if = "is_synchronous")]
    pub execution: Execution,
    /// Warps that issue it together; 4 when left out.
    #[serde(default = "four", skip_serializing_if = "is_four")]
    pub issue_width: u32,
    /// Where its result lives; nowhere when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultEntry>,
    /// Its latency is not known statically.
    #[serde(default, skip_serializing_if = "is_default")]
    pub variable_latency: bool,
    /// It has variable latency and reads no data: it can run ahead.
    #[serde(default, skip_serializing_if = "is_default")]
    pub streaming: bool,
    /// Cycles to hand its register result to another group.
    #[serde(default, skip_serializing_if = "is_default")]
    pub handoff: Cycles,
    /// Cycles from issue to arrival that a streaming load's ring hides; its latency when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer_latency: Option<Cycles>,
    /// The sub-tile it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_tile: Option<u32>,
    /// Its bytes and FLOP.
    #[serde(default, skip_serializing_if = "Traffic::is_nothing")]
    pub traffic: Traffic,
}

/// A reservation of one instance of a unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnitEntry {
    /// Name of the unit.
    pub unit: String,
    /// First cycle after issue.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start: Cycles,
    /// Cycles.
    pub cycles: Cycles,
}

/// Where a result lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum ResultEntry {
    /// 32-bit words of the whole tile, summed over threads.
    Registers(Words),
    /// Bytes.
    SharedMemory(Bytes),
    /// Columns.
    TensorMemory(Columns),
}

/// A dependence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DependenceEntry {
    /// Producer.
    pub from: String,
    /// Consumer.
    pub to: String,
    /// Cycles from issue to issue; the producer's latency when left out, 0 if it is streaming.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Cycles>,
    /// Iterations it spans.
    #[serde(default, skip_serializing_if = "is_default")]
    pub distance: u32,
    /// The consumer waits on an asynchronous unit; whether the producer is one when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocking: Option<bool>,
    /// The consumer reads the producer's result; whether it has one when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<bool>,
    /// The consumer continues in the same storage.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tied: bool,
    /// Cycles for which the consumer reads; its completion when left out and it is asynchronous
    /// and not tied, otherwise 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Cycles>,
}

fn synchronous() -> Execution {
    Execution::Synchronous
}
fn is_synchronous(e: &Execution) -> bool {
    *e == Execution::Synchronous
}
fn four() -> u32 {
    4
}
fn is_four(width: &u32) -> bool {
    *width == 4
}

impl GraphFile {
    /// Returns whether a text is such a file, or means to be one.
    pub fn is_named_in(text: &str) -> bool {
        super::named_format(text).is_some_and(|format| format == FORMAT)
    }

    /// Reads a graph file; `file` is named in errors.
    ///
    /// # Errors
    /// When the text is not JSON of this format and version.
    pub fn from_json(text: &str, file: &str) -> Result<GraphFile, FormatError> {
        let mut graph: GraphFile = parse(text, file)?;
        check_version(file, FORMAT, &graph.format, graph.version)?;
        graph.file = file.to_owned();
        Ok(graph)
    }

    /// Refuses another format or version; `file` is named in errors.
    pub(super) fn check_version(&self, file: &str) -> Result<(), FormatError> {
        check_version(file, FORMAT, &self.format, self.version)
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        // Serialising plain data to a string cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Describes a graph in full.
    pub fn from_graph(graph: &LoopGraph) -> GraphFile {
        let reserved = graph.reserved();
        GraphFile {
            format: FORMAT.into(),
            version: VERSION,
            name: graph.name().into(),
            description: String::new(),
            machine: None,
            warp_assignment: None,
            reserved: ReservedEntry { shared_memory: reserved.shared, tensor_memory: reserved.tensor },
            operations: graph.operations().iter().map(OperationEntry::from_operation).collect(),
            dependences: graph
                .dependences()
                .iter()
                .map(|d| DependenceEntry {
                    from: graph.operation(d.from).name.clone(),
                    to: graph.operation(d.to).name.clone(),
                    delay: Some(d.delay),
                    distance: d.distance,
                    blocking: Some(d.blocking),
                    value: Some(d.carries_value),
                    tied: d.tied,
                    hold: Some(d.hold),
                })
                .collect(),
            file: String::new(),
        }
    }

    /// The graph, with everything that was left out filled in.
    ///
    /// # Errors
    /// When a dependence names no operation or the graph is not well formed.
    pub fn graph(&self) -> Result<LoopGraph, FormatError> {
        let operations: Vec<Operation> = self.operations.iter().map(OperationEntry::operation).collect();
        let positions = self.operations.iter().enumerate().rev().map(|(at, op)| (op.name.as_str(), at)).collect();
        let dependence = |(index, entry)| self.dependence(index, entry, &operations, &positions);
        let dependences: Result<Vec<Dependence>, FormatError> =
            self.dependences.iter().enumerate().map(dependence).collect();
        let ReservedEntry { shared_memory: shared, tensor_memory: tensor } = self.reserved;
        LoopGraph::new(self.name.clone(), operations, dependences?, Reserved { shared, tensor })
            .map_err(|error| FormatError::Graph { file: self.file.clone(), error })
    }

    fn dependence(
        &self,
        index: usize,
        entry: &DependenceEntry,
        operations: &[Operation],
        positions: &HashMap<&str, usize>,
    ) -> Result<Dependence, FormatError> {
        let find = |name: &str| {
            positions.get(name).copied().map(OpId::new).ok_or_else(|| FormatError::UnknownOperation {
                file: self.file.clone(),
                place: format!("dependences[{index}]"),
                operation: name.to_owned(),
            })
        };
        let (from, to) = (find(&entry.from)?, find(&entry.to)?);
        let (producer, consumer) = (&operations[from.index()], &operations[to.index()]);
        let asynchronous = |op: &Operation| op.execution == Execution::Asynchronous;
        let delay = if producer.streaming { Cycles::ZERO } else { producer.latency };
        let hold = if asynchronous(consumer) && !entry.tied { consumer.completion() } else { Cycles::ZERO };
        Ok(Dependence {
            from,
            to,
            delay: entry.delay.unwrap_or(delay),
            distance: entry.distance,
            blocking: entry.blocking.unwrap_or(asynchronous(producer)),
            carries_value: entry.value.unwrap_or(producer.storage != Storage::None),
            tied: entry.tied,
            hold: entry.hold.unwrap_or(hold),
        })
    }
}

impl OperationEntry {
    fn operation(&self) -> Operation {
        let reservations: Vec<Reservation> =
            self.units.iter().map(|u| Reservation { unit: u.unit.clone(), start: u.start, cycles: u.cycles }).collect();
        let end = |r: &Reservation| Cycles(r.start.0.saturating_add(r.cycles.0));
        let occupancy = self.cycles.unwrap_or_else(|| reservations.iter().map(end).max().unwrap_or(Cycles::ZERO));
        let latency = self.latency.unwrap_or(occupancy);
        Operation {
            name: self.name.clone(),
            kind: self.kind.clone().unwrap_or_else(|| self.name.clone()),
            source: self.source.clone(),
            reservations,
            occupancy,
            latency,
            execution: self.execution,
            issue_width: self.issue_width,
            storage: match self.result {
                None => Storage::None,
                Some(ResultEntry::Registers(words)) => Storage::Registers(words),
                Some(ResultEntry::SharedMemory(bytes)) => Storage::Shared(bytes),
                Some(ResultEntry::TensorMemory(columns)) => Storage::Tensor(columns),
            },
            variable_latency: self.variable_latency,
            streaming: self.streaming,
            handoff: self.handoff,
            transfer_latency: self.transfer_latency.unwrap_or(latency),
            sub_tile: self.sub_tile,
            traffic: self.traffic,
        }
    }

    fn from_operation(op: &Operation) -> OperationEntry {
        OperationEntry {
            name: op.name.clone(),
            kind: Some(op.kind.clone()),
            source: op.source.clone(),
            units: op
                .reservations
                .iter()
                .map(|r| UnitEntry { unit: r.unit.clone(), start: r.start, cycles: r.cycles })
                .collect(),
            cycles: Some(op.occupancy),
            latency: Some(op.latency),
            execution: op.execution,
            issue_width: op.issue_width,
            result: match op.storage {
                Storage::None => None,
                Storage::Registers(words) => Some(ResultEntry::Registers(words)),
                Storage::Shared(bytes) => Some(ResultEntry::SharedMemory(bytes)),
                Storage::Tensor(columns) => Some(ResultEntry::TensorMemory(columns)),
            },
            variable_latency: op.variable_latency,
            streaming: op.streaming,
            handoff: op.handoff,
            transfer_latency: Some(op.transfer_latency),
            sub_tile: op.sub_tile,
            traffic: op.traffic,
        }
    }
}
