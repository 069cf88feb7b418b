//! Graphs that come with Twill: the cases of docs/model.md with known answers.
//!
//! They are ordinary graph files (`crates/twill-graph/graphs/`), so each is also an example of the
//! format.

use crate::LoopGraph;
use crate::format::{GraphFile, MachineReference};

/// A graph that comes with Twill.
#[derive(Clone, Debug)]
pub struct Builtin {
    /// Name to ask for it by.
    pub name: &'static str,
    /// Its kind.
    pub description: String,
    /// The loop.
    pub graph: LoopGraph,
    /// The machine its costs are for.
    pub machine: Option<MachineReference>,
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../graphs/", $name, ".json")))),*]
    };
}

const FILES: &[(&str, &str)] = files![
    "toy-attention",
    "toy-attention-blocking",
    "gemm",
    "attention-forward-hopper",
    "attention-forward-blackwell",
    "attention-backward-hopper",
    "attention-backward-blackwell",
];

/// Names of all built-in graphs, in the order of docs/model.md.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The built-in graph with this name.
pub fn find(name: &str) -> Option<Builtin> {
    let (name, text) = FILES.iter().find(|(n, _)| *n == name)?;
    let file = GraphFile::from_json(text, name).ok()?;
    let graph = file.graph().ok()?;
    Some(Builtin { name, description: file.description, graph, machine: file.machine })
}

/// The text of a built-in graph's file.
pub fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_reads_and_survives_a_round_trip() {
        for name in names() {
            let text = text(name).unwrap();
            let file = GraphFile::from_json(text, name).unwrap();
            let graph = file.graph().unwrap();
            assert!(!file.description.is_empty(), "{name}");
            let written = GraphFile::from_graph(&graph).to_json();
            let again = GraphFile::from_json(&written, name).unwrap().graph().unwrap();
            assert_eq!(graph, again);
            assert_eq!(find(name).unwrap().graph, graph);
        }
    }
}
