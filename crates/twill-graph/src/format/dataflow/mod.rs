//! Graphs of operations without warps, from the formats that benchmarks of scheduling come in.
//!
//! | ending | what | by itself |
//! |---|---|---|
//! | `.json` | [`DataflowFile`]; or a loop graph of Twill (`twill-graph`), whose machine is in the file or in the options | |
//! | `.graphml` | a loop of HatScheT, with its resource model | `t_u + latency + delay ≤ t_v + distance·II` |
//! | `.dot` | a graph of EXPRESS | multiplications and divisions hold a multiplier for 2 steps, all else an ALU for 1 |
//! | `.blif` | a circuit of EPFL | a gate or primary input takes a step |
//! | `.gml` | a graph of GS-Schedule | a consumer may share its producer's step |
//! | `.mlir` | an instance of CIRCT's `ssp` dialect | delay is latency |

mod blif;
mod dot;
mod gml;
mod json;
mod loops;
mod schedule;
mod ssp;
mod text;

pub use json::{
    DataflowDependenceEntry, DataflowFile, DataflowOperationEntry, DataflowResourceEntry, DataflowUseEntry,
};
pub use loops::{loop_dataflow, modulo_dataflow};
pub use schedule::{
    DataflowFound, DataflowObjectiveEntry, DataflowScheduleFile, DataflowSeconds, DataflowSummary, DataflowValue,
};

use super::{FormatError, GraphFile, MachineReference, NamedText, graphml};
use crate::names::legible;
use crate::{Dataflow, Resources};
use std::collections::HashMap;
use std::path::Path;
use text::Source;

/// The options that a file does not state itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct DataflowOptions<'a> {
    /// The resource model of a `.graphml`.
    pub model: Option<NamedText<'a>>,
    /// For a loop graph of Twill: the machine whose units it runs on, where its file does not hold one in full.
    pub machine: Option<&'a Resources>,
    /// For `.blif` and `.gml`: a consumer may share its producer's step. They say by convention: `.gml` may,
    /// `.blif` may not.
    pub chaining: Option<bool>,
}

/// Reads a graph in the format that the ending of its name says.
///
/// ```
/// use twill_graph::format::{DataflowOptions, NamedText, read_dataflow};
/// let text = "digraph g { a [label = mul]; b [label = add]; a -> b; }";
/// let graph = read_dataflow(NamedText { file: "g.dot", text }, &DataflowOptions::default()).unwrap();
/// assert_eq!(graph.dependences()[0].delay, 2);
/// ```
///
/// # Errors
/// The first thing that is wrong: file, line and column where there is such a place, and the way out.
pub fn read_dataflow(source: NamedText, options: &DataflowOptions) -> Result<Dataflow, FormatError> {
    let path = Path::new(source.file);
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    let unusable = |why: String| Err(FormatError::Schedule { file: source.file.to_owned(), why });
    if options.chaining.is_some() && !matches!(ending.as_str(), "blif" | "gml") {
        return unusable("chaining can be chosen for .blif and .gml; other files give delays themselves".into());
    }
    let name = &legible(path.file_stem().and_then(|s| s.to_str()).unwrap_or(source.file));
    match ending.as_str() {
        // For every file name.
        _ if DataflowFile::is_named_in(source.text) => read_json(source, options),
        "json" => read_json(source, options),
        "graphml" => match options.model {
            Some(model) => {
                let (problem, latencies) = graphml::read_with_latencies(source, model)?;
                let latency = |op: crate::OpId| latencies[problem.operations()[op.index()].resource.index()];
                modulo_dataflow(&problem, latency).map_err(|error| Source::of(source).graph(error))
            }
            None => unusable(format!("a .graphml needs its resource model next to it; give {name}_RM.xml, too")),
        },
        "dot" | "gv" => dot::read(Source::of(source), name),
        "blif" => blif::read(Source::of(source), name, options.chaining.unwrap_or(false)),
        "gml" => gml::read(Source::of(source), name, options.chaining.unwrap_or(true)),
        "mlir" => ssp::read(Source::of(source)),
        _ => unusable(format!(
            "no format of graphs ends in `.{ending}`; known: .json .graphml .dot .gv .blif .gml .mlir"
        )),
    }
}

/// `twill-dataflow` or `twill-graph`.
fn read_json(source: NamedText, options: &DataflowOptions) -> Result<Dataflow, FormatError> {
    #[derive(serde::Deserialize)]
    struct Head {
        #[serde(default)]
        format: String,
    }
    let head: Head = super::parse(source.text, source.file)?;
    if head.format != super::graph::FORMAT {
        return DataflowFile::from_json(source.text, source.file)?.graph();
    }
    let file = GraphFile::from_json(source.text, source.file)?;
    let graph = file.graph()?;
    let machine = match (options.machine, &file.machine) {
        (Some(machine), _) => machine,
        (None, Some(MachineReference::Resources(machine))) => machine,
        (None, _) => {
            let why = "a loop graph needs a machine, whose units limit it; name one".to_owned();
            return Err(FormatError::Schedule { file: source.file.to_owned(), why });
        }
    };
    loop_dataflow(&graph, &machine.units).map_err(|error| FormatError::Dataflow { file: source.file.into(), error })
}

/// Names and where they are declared, so that a second declaration is refused with its place.
#[derive(Default)]
struct Names<'a>(HashMap<&'a str, usize>);

impl<'a> Names<'a> {
    /// Takes the next index, the number of names before it.
    fn declare(&mut self, source: &Source, what: &str, name: &'a str, at: usize) -> Result<usize, FormatError> {
        let index = self.0.len();
        match self.0.insert(name, index) {
            None => Ok(index),
            Some(_) => Err(source.error(at, format!("a second {what} `{name}`; give each a name of its own"))),
        }
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.0.get(name).copied()
    }
}
