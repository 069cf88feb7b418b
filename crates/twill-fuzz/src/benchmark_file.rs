//! Target: the formats that benchmarks of scheduling come in.

use crate::change::changed;
use crate::tape::Tape;
use twill_graph::format::{DataflowFile, DataflowOptions, NamedText, read_dataflow, read_graphml};

const MODEL: &str = include_str!("../../../tests/docs/given/loop_RM.xml");

const SSP: &str = r#"ssp.instance @canis of "ModuloProblem" [II<3>] {
  library {
    operator_type @Memory [latency<1>]
    operator_type @Mul [latency<4>, limit<2>, incDelay<0.5>]
  }
  resource {
    resource_type @Port [limit<1>, ii<2>]
  }
  graph {
    %0 = operation<@Memory> @load(@store [dist<1>]) uses[@Port] [t<2>]
    %1, %2:3 = operation<@Mul>(%0) [t<3>, z<0.1 : f32>]
    operation<@Memory> @store(%2#1, %1)
  }
}
"#;

const DATAFLOW: &str = r#"{
  "format": "twill-dataflow", "version": 1, "name": "mac", "resources": [{ "name": "multiplier", "limit": 1 }],
  "operations": [
    { "name": "product", "latency": 3, "uses": [{ "resource": "multiplier", "steps": 2 }], "storage": 4 },
    { "name": "sum" }
  ],
  "dependences": [{ "from": "product", "to": "sum" }, { "from": "sum", "to": "sum", "delay": 0, "distance": 1 }]
}"#;

const FILES: [(&str, &str); 6] = [
    ("fuzz.dot", include_str!("../../../tests/docs/given/graph.dot")),
    ("fuzz.blif", include_str!("../../../tests/docs/given/circuit.blif")),
    ("fuzz.gml", include_str!("../../../tests/docs/given/graph.gml")),
    ("fuzz.graphml", include_str!("../../../tests/docs/given/loop.graphml")),
    ("fuzz.mlir", SSP),
    ("fuzz.json", DATAFLOW),
];

const WORDS: [&str; 36] = [
    "->",
    ";",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    "=",
    ",",
    "@",
    "%0",
    "#1",
    ":",
    "label = add",
    "subgraph x",
    "strict",
    "digraph",
    ".names a b c\n",
    ".inputs",
    ".outputs",
    ".latch a b",
    ".end",
    "\\\n",
    "node [ id 0 ]",
    "edge [ source 0 target 0 ]",
    "<node id=\"x\">",
    "</graph>",
    "<data key=\"delay\">",
    "<!DOCTYPE x [<!ENTITY e \"e\">]>",
    "&e;",
    "limit=\"-1\"",
    "[dist<1>]",
    "operation<@Mul>(%0)",
    "\"distance\":",
    "\"uses\":",
];

/// Reads what the bytes make of a benchmark's file; what is a graph is written as JSON and read again.
///
/// # Panics
/// When it is not the same graph.
pub fn check(bytes: &[u8]) {
    let mut tape = Tape::new(bytes);
    let Some(&(file, text)) = tape.pick(&FILES) else { return };
    let chaining = matches!(file, "fuzz.blif" | "fuzz.gml").then(|| tape.one_in(2));
    let (text, model) = match tape.below(8) {
        0 => (String::from_utf8_lossy(tape.rest()).into_owned(), MODEL.to_owned()),
        1 if file == "fuzz.graphml" => (text.to_owned(), changed(&mut tape, MODEL, &WORDS)),
        _ => (changed(&mut tape, text, &WORDS), MODEL.to_owned()),
    };
    let source = NamedText { file, text: &text };
    let model = NamedText { file: "fuzz_RM.xml", text: &model };
    let _ = read_graphml(source, model);
    let graph = match read_dataflow(source, &DataflowOptions { model: Some(model), chaining, machine: None }) {
        Ok(graph) => graph,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let written = DataflowFile::from_graph(&graph).to_json();
    let again = read_dataflow(NamedText { file: "again.json", text: &written }, &DataflowOptions::default());
    assert_eq!(again.ok(), Some(graph), "{written}");
}
