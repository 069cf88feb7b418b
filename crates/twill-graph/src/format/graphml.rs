//! Loops of HatScheT: a graph in GraphML, and next to it a resource model.
//!
//! `t_src + latency_src + delay ≤ t_dst + distance · I`; a resource with `limit` −1 is always there, any
//! other is held for `blockingTime` cycles from the start of an operation (0 counts as 1: the start itself).
//! HatScheT: <https://gitlab.com/hatschet/hatschet>. Nothing of its benchmarks is part of Twill.

use super::FormatError;
use crate::names::legible;
use crate::{Cycles, ModuloDependence, ModuloOperation, ModuloProblem, ModuloResource, OpId, UnitId};
use roxmltree::{Document, Node};
use std::collections::HashMap;
use std::str::FromStr;

/// Costs, distances and limits are whole numbers up to this.
const LARGEST: i64 = 1 << 31;

/// A text with the name by which errors call it.
#[derive(Clone, Copy, Debug)]
pub struct NamedText<'a> {
    /// The file.
    pub file: &'a str,
    /// Its contents.
    pub text: &'a str,
}

/// Reads a loop from its graph and its resource model.
///
/// # Errors
/// The first thing that is wrong, with file, line and column.
pub fn read_graphml(graph: NamedText, model: NamedText) -> Result<ModuloProblem, FormatError> {
    read_with_latencies(graph, model).map(|(problem, _)| problem)
}

/// The loop, and the latency of each resource.
pub(super) fn read_with_latencies(
    graph: NamedText,
    model: NamedText,
) -> Result<(ModuloProblem, Vec<u32>), FormatError> {
    let resources = read_resources(&Xml::parse(model)?)?;
    let document = Xml::parse(graph)?;
    let graphs: Vec<Node> = document.elements("graph");
    let root = match graphs.as_slice() {
        [one] => *one,
        [] => return Err(document.error(document.tree.root_element(), "there is no <graph>")),
        [_, second, ..] => return Err(document.error(*second, "a second <graph>; a file holds one loop")),
    };
    if root.attribute("edgedefault") == Some("undirected") {
        return Err(document.error(root, "the graph is undirected; dependences have a direction"));
    }
    let keys = document.keys()?;
    let mut ids: HashMap<&str, OpId> = HashMap::new();
    let mut operations = Vec::new();
    for node in document.elements("node") {
        let id = document.attribute(node, "id")?;
        if ids.insert(id, OpId::new(operations.len())).is_some() {
            return Err(document.error(node, &format!("a second node `{id}`")));
        }
        let name = document.required(node, "uses_resource", &keys)?;
        let Some(&resource) = resources.by_name.get(name) else {
            let known = format!("node `{id}` uses the resource `{name}`, which {} does not declare", model.file);
            return Err(document.error(node, &known));
        };
        operations.push(ModuloOperation { name: legible(id), resource });
    }
    let mut dependences = Vec::new();
    for edge in document.elements("edge") {
        let end = |attribute| {
            let id = document.attribute(edge, attribute)?;
            let missing = || document.error(edge, &format!("its {attribute} `{id}` is not a node of the graph"));
            ids.get(id).copied().ok_or_else(missing)
        };
        let (from, to) = (end("source")?, end("target")?);
        let number = |key, least| document.number(edge, key, document.required(edge, key, &keys)?, least);
        let latency = resources.latencies[operations[from.index()].resource.index()];
        let delay = Cycles(latency + number("delay", -LARGEST)?);
        // At most LARGEST, which is well within the type.
        let distance = number("distance", 0)? as u32;
        dependences.push(ModuloDependence { from, to, delay, distance });
    }
    let name = std::path::Path::new(graph.file).file_stem().and_then(|s| s.to_str()).unwrap_or(graph.file);
    let problem = ModuloProblem::new(legible(name), operations, dependences, resources.list)
        .map_err(|error| FormatError::Modulo { file: graph.file.to_owned(), error })?;
    // At most LARGEST, which is well within the type.
    Ok((problem, resources.latencies.iter().map(|&latency| latency as u32).collect()))
}

struct ResourceModel {
    list: Vec<ModuloResource>,
    latencies: Vec<i64>,
    by_name: HashMap<String, UnitId>,
}

fn read_resources(model: &Xml) -> Result<ResourceModel, FormatError> {
    let mut read = ResourceModel { list: Vec::new(), latencies: Vec::new(), by_name: HashMap::new() };
    if let [table, ..] = model.elements("ReservationTable").as_slice() {
        return Err(model.error(*table, "reservation tables are not supported; give `limit` and `blockingTime`"));
    }
    for node in model.elements("Resource") {
        let name = model.attribute(node, "name")?;
        if read.by_name.insert(name.to_owned(), UnitId::new(read.list.len())).is_some() {
            return Err(model.error(node, &format!("a second resource `{name}`")));
        }
        let number = |key, least| model.number(node, key, model.attribute(node, key)?, least);
        read.latencies.push(number("latency", 0)?);
        let limit = match number("limit", -1)? {
            0 => return Err(model.error(node, "`limit` is 0; it must be at least 1, or -1 for no limit")),
            limit => u32::try_from(limit).ok(),
        };
        let blocking = match node.attribute("blockingTime") {
            Some(_) => number("blockingTime", 0)?.max(1) as u32,
            None => 1,
        };
        read.list.push(ModuloResource { name: legible(name), limit, blocking });
    }
    if read.list.is_empty() {
        return Err(model.error(model.tree.root_element(), "no <Resource>: this is not a resource model"));
    }
    Ok(read)
}

/// An XML document and the name of its file.
struct Xml<'a> {
    file: &'a str,
    tree: Document<'a>,
}

impl<'a> Xml<'a> {
    fn parse(NamedText { file, text }: NamedText<'a>) -> Result<Xml<'a>, FormatError> {
        let tree = Document::parse(text).map_err(|error| {
            let at = error.pos();
            let message = error.to_string();
            // The place stands before the message here.
            let place = format!(" at {}:{}", at.row, at.col);
            let message = message.strip_suffix(&place).map(str::to_owned).unwrap_or(message);
            FormatError::Syntax { file: file.to_owned(), line: at.row as usize, column: at.col as usize, message }
        })?;
        Ok(Xml { file, tree })
    }

    fn error(&self, node: Node, message: &str) -> FormatError {
        let at = self.tree.text_pos_at(node.range().start);
        let message = format!("<{}>: {message}", node.tag_name().name());
        FormatError::Syntax { file: self.file.to_owned(), line: at.row as usize, column: at.col as usize, message }
    }

    /// All elements of a name, in any namespace.
    fn elements<'s>(&'s self, name: &str) -> Vec<Node<'s, 'a>> {
        self.tree.descendants().filter(|n| n.is_element() && n.tag_name().name() == name).collect()
    }

    fn attribute<'s>(&self, node: Node<'s, 'a>, name: &str) -> Result<&'s str, FormatError> {
        node.attribute(name).ok_or_else(|| self.error(node, &format!("the attribute `{name}` is missing")))
    }

    /// The names of the file's data keys, where it declares them.
    fn keys(&self) -> Result<HashMap<&str, &str>, FormatError> {
        let declared = self.elements("key").into_iter();
        declared.map(|key| Ok((self.attribute(key, "id")?, self.attribute(key, "attr.name")?))).collect()
    }

    /// The text of a node's or edge's `<data>` of a key.
    fn required<'s>(&self, node: Node<'s, 'a>, name: &str, keys: &HashMap<&str, &str>) -> Result<&'s str, FormatError> {
        let called = |key: &str| keys.get(key).copied().unwrap_or(key) == name;
        let mut data = node
            .children()
            .filter(|child| child.tag_name().name() == "data" && child.attribute("key").is_some_and(called));
        let Some(one) = data.next() else {
            return Err(self.error(node, &format!("<data key=\"{name}\"> is missing")));
        };
        match data.next() {
            Some(second) => Err(self.error(second, &format!("`{name}` is given twice"))),
            None => Ok(one.text().unwrap_or_default().trim()),
        }
    }

    fn number(&self, node: Node, key: &str, text: &str, least: i64) -> Result<i64, FormatError> {
        let value = i64::from_str(text).ok().filter(|value| (least..=LARGEST).contains(value));
        let expected = || format!("`{key}` is `{text}`; it must be a whole number from {least} to {LARGEST}");
        value.ok_or_else(|| self.error(node, &expected()))
    }
}
