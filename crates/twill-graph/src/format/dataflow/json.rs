//! The dataflow format: a graph of operations that a person can write by hand.

use super::super::{FormatError, VERSION, check_version, is_default, parse};
use crate::names::legible;
use crate::{
    Dataflow, DataflowDependence, DataflowError, DataflowOperation, DataflowResource, OpId, ResourceUse, UnitId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

const FORMAT: &str = "twill-dataflow";

/// A dataflow graph file.
///
/// ```
/// let text = r#"{
///   "format": "twill-dataflow", "version": 1, "name": "mac", "resources": [{ "name": "multiplier", "limit": 1 }],
///   "operations": [{ "name": "product", "latency": 3, "uses": [{ "resource": "multiplier" }] }, { "name": "sum" }],
///   "dependences": [{ "from": "product", "to": "sum" }, { "from": "sum", "to": "sum", "distance": 1 }]
/// }"#;
/// let graph = twill_graph::format::DataflowFile::from_json(text, "mac.json").unwrap().graph().unwrap();
/// assert_eq!(graph.dependences()[0].delay, 3);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataflowFile {
    /// Always `twill-dataflow`.
    pub format: String,
    /// Always 1.
    pub version: u32,
    /// Name of the graph.
    pub name: String,
    /// Kinds of functional units.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<DataflowResourceEntry>,
    /// Operations.
    pub operations: Vec<DataflowOperationEntry>,
    /// Dependences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependences: Vec<DataflowDependenceEntry>,
    /// Where the file was read from, for errors.
    #[serde(skip)]
    file: String,
}

/// A kind of functional unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataflowResourceEntry {
    /// Unique name.
    pub name: String,
    /// Most that may be in use in one step; as many as needed when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataflowOperationEntry {
    /// Unique name.
    pub name: String,
    /// Steps until it is finished; 1 when left out.
    #[serde(default = "one::<u32>", skip_serializing_if = "is_one")]
    pub latency: u32,
    /// Its use of resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<DataflowUseEntry>,
    /// The storage of its result while it is live; 1 when left out.
    #[serde(default = "one::<u64>", skip_serializing_if = "is_one")]
    pub storage: u64,
}

/// An operation's use of a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataflowUseEntry {
    /// Name of the resource.
    pub resource: String,
    /// First step after its start; 0 when left out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub offset: u32,
    /// Steps; 1 when left out.
    #[serde(default = "one::<u32>", skip_serializing_if = "is_one")]
    pub steps: u32,
    /// Units; 1 when left out.
    #[serde(default = "one::<u64>", skip_serializing_if = "is_one")]
    pub amount: u64,
}

/// A dependence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataflowDependenceEntry {
    /// Name of the operation that goes first.
    pub from: String,
    /// Name of the operation that waits.
    pub to: String,
    /// Steps between the two starts; the latency of `from` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<i64>,
    /// Iterations between the two; 0 when left out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub distance: u32,
    /// Cost of each step between the two; 1 when left out.
    #[serde(default = "one::<u64>", skip_serializing_if = "is_one")]
    pub communication: u64,
}

fn one<N: From<u8>>() -> N {
    N::from(1)
}
fn is_one<N: From<u8> + PartialEq>(number: &N) -> bool {
    *number == N::from(1)
}

impl DataflowFile {
    /// Returns whether a text is such a file, or means to be one.
    pub fn is_named_in(text: &str) -> bool {
        super::super::named_format(text).is_some_and(|format| format == FORMAT)
    }

    /// Reads a file; `file` is named in errors.
    ///
    /// # Errors
    /// When the text is not JSON of this format and version.
    pub fn from_json(text: &str, file: &str) -> Result<DataflowFile, FormatError> {
        let mut graph: DataflowFile = parse(text, file)?;
        check_version(file, FORMAT, &graph.format, graph.version)?;
        graph.file = file.to_owned();
        Ok(graph)
    }

    /// Names the file that it is part of, for errors.
    pub(super) fn read_from(&mut self, file: &str) {
        self.file = file.to_owned();
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        // Serialising plain data to a string cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Describes a graph.
    pub fn from_graph(graph: &Dataflow) -> DataflowFile {
        let resource = |r: &DataflowResource| DataflowResourceEntry { name: r.name.clone(), limit: r.limit };
        let used = |u: &ResourceUse| DataflowUseEntry {
            resource: graph.resources()[u.resource.index()].name.clone(),
            offset: u.offset,
            steps: u.steps,
            amount: u.amount,
        };
        let operation = |op: &DataflowOperation| DataflowOperationEntry {
            name: op.name.clone(),
            latency: op.latency,
            uses: op.uses.iter().map(used).collect(),
            storage: op.storage,
        };
        let dependence = |d: &DataflowDependence| {
            let [from, to] = [d.from, d.to].map(|op| &graph.operations()[op.index()]);
            DataflowDependenceEntry {
                from: from.name.clone(),
                to: to.name.clone(),
                delay: (d.delay != i64::from(from.latency)).then_some(d.delay),
                distance: d.distance,
                communication: d.communication,
            }
        };
        DataflowFile {
            format: FORMAT.into(),
            version: VERSION,
            name: graph.name().into(),
            resources: graph.resources().iter().map(resource).collect(),
            operations: graph.operations().iter().map(operation).collect(),
            dependences: graph.dependences().iter().map(dependence).collect(),
            file: String::new(),
        }
    }

    /// The graph, with everything that was left out filled in.
    ///
    /// # Errors
    /// When something names what is not there, or the graph makes no sense.
    pub fn graph(&self) -> Result<Dataflow, FormatError> {
        let wrong = |error| FormatError::Dataflow { file: self.file.clone(), error };
        let resources: HashMap<&str, usize> =
            self.resources.iter().enumerate().map(|(index, r)| (r.name.as_str(), index)).collect();
        let operation = |op: &DataflowOperationEntry| {
            let used = |u: &DataflowUseEntry| {
                let (operation, resource) = (op.name.clone(), u.resource.clone());
                let missing = || wrong(DataflowError::UnknownResource { operation, resource });
                let resource = UnitId::new(*resources.get(u.resource.as_str()).ok_or_else(missing)?);
                Ok(ResourceUse { resource, offset: u.offset, steps: u.steps, amount: u.amount })
            };
            let uses: Result<Vec<_>, FormatError> = op.uses.iter().map(used).collect();
            Ok(DataflowOperation { name: legible(&op.name), latency: op.latency, uses: uses?, storage: op.storage })
        };
        let operations: Result<Vec<_>, FormatError> = self.operations.iter().map(operation).collect();
        let names: HashMap<&str, usize> =
            self.operations.iter().enumerate().map(|(index, op)| (op.name.as_str(), index)).collect();
        let dependence = |(index, d): (usize, &DataflowDependenceEntry)| {
            let find = |name: &str| {
                let (file, place) = (self.file.clone(), format!("dependences[{index}]"));
                let missing = || FormatError::UnknownOperation { file, place, operation: name.to_owned() };
                names.get(name).copied().ok_or_else(missing)
            };
            let (from, to) = (find(&d.from)?, find(&d.to)?);
            let delay = d.delay.unwrap_or(i64::from(self.operations[from].latency));
            let (from, to) = (OpId::new(from), OpId::new(to));
            Ok(DataflowDependence { from, to, delay, distance: d.distance, communication: d.communication })
        };
        let dependences: Result<Vec<_>, FormatError> = self.dependences.iter().enumerate().map(dependence).collect();
        let resource = |r: &DataflowResourceEntry| DataflowResource { name: legible(&r.name), limit: r.limit };
        let resources = self.resources.iter().map(resource).collect();
        Dataflow::new(legible(&self.name), operations?, dependences?, resources).map_err(wrong)
    }
}
