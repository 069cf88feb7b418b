//! Graphs of operations in all formats: what is read, what is refused and where, and that nothing panics.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use proptest::prelude::*;
use twill_graph::format::{DataflowFile, DataflowOptions, GraphFile, NamedText, read_dataflow};
use twill_graph::{Dataflow, OpId, Random, UnitId, builtin};

const DOT: &str = "// made by hand
digraph small {
    node [fontcolor=white,style=filled,color=\"160,60,176\"];
    rankdir = LR;
    A [label = MUL ];
    2 [ label = \"add\" ];
    B_1 [label=imp]
    A -> 2 -> B_1 [ name = 0 ];
}
";
const BLIF: &str = "# made by hand
.model small
.inputs a \\
 b[0]
.outputs y
.names a n1 y
11 1
.names a b[0] n1
1- 1
-1 1
.end
";
const GML: &str = "graph [
  directed 1
  comment [ made [ by \"hand\" ] ]
  node [ id 0 label \"x\" parameter 7 ]
  node [ id 1 parameter 0 ]
  edge [ source 0 target 1 parameter 3 ]
  edge [ source 0 target 1 name \"0\" ]
]
";
const SSP: &str = "// made by hand
ssp.instance @fig2 of \"ModuloProblem\" [II<3>] {
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
";
const GRAPHML: &str = "<graphml><graph>
  <node id=\"load\"><data key=\"uses_resource\">mem</data></node>
  <node id=\"sum\"><data key=\"uses_resource\">add</data></node>
  <edge id=\"e\" source=\"load\" target=\"sum\"><data key=\"delay\">1</data><data key=\"distance\">0</data></edge>
</graph></graphml>";
const MODEL: &str = "<Model><Resource name=\"add\" limit=\"-1\" latency=\"0\" blockingTime=\"0\"/>
<Resource name=\"mem\" limit=\"2\" latency=\"2\" blockingTime=\"3\"/></Model>";
const JSON: &str = r#"{
  "format": "twill-dataflow", "version": 1, "name": "mac", "resources": [{ "name": "multiplier", "limit": 1 }],
  "operations": [
    { "name": "product", "latency": 3, "uses": [{ "resource": "multiplier", "steps": 2 }], "storage": 4 },
    { "name": "sum" }
  ],
  "dependences": [{ "from": "product", "to": "sum" }, { "from": "sum", "to": "sum", "delay": 0, "distance": 1 }]
}"#;
const FILES: [(&str, &str); 6] =
    [("g.dot", DOT), ("g.blif", BLIF), ("g.gml", GML), ("g.mlir", SSP), ("g.graphml", GRAPHML), ("g.json", JSON)];

fn options() -> DataflowOptions<'static> {
    DataflowOptions { model: Some(NamedText { file: "g_RM.xml", text: MODEL }), ..DataflowOptions::default() }
}

fn read(file: &str, text: &str) -> Result<Dataflow, String> {
    read_dataflow(NamedText { file, text }, &options()).map_err(|error| error.to_string())
}

/// Operations as `name latency storage resource×steps`, dependences as `from to delay distance communication`.
fn shown(graph: &Dataflow) -> (Vec<String>, Vec<String>) {
    let name = |op: OpId| graph.operations()[op.index()].name.as_str();
    let unit = |unit: UnitId| graph.resources()[unit.index()].name.as_str();
    let operations = graph.operations().iter().map(|op| {
        let uses: Vec<_> = op.uses.iter().map(|u| format!("{}{}×{}", u.amount, unit(u.resource), u.steps)).collect();
        format!("{} {} {} {}", op.name, op.latency, op.storage, uses.join(" "))
    });
    let dependence = |d: &twill_graph::DataflowDependence| {
        format!("{} {} {} {} {}", name(d.from), name(d.to), d.delay, d.distance, d.communication)
    };
    (operations.collect(), graph.dependences().iter().map(dependence).collect())
}

fn read_as(file: &str, text: &str, name: &str, operations: &[&str], dependences: &[&str]) {
    let graph = read(file, text).unwrap();
    let (o, d) = shown(&graph);
    let own: (Vec<&str>, Vec<&str>) = (o.iter().map(String::as_str).collect(), d.iter().map(String::as_str).collect());
    assert_eq!((graph.name(), own), (name, (operations.to_vec(), dependences.to_vec())));
}

#[test]
fn each_format_is_read_with_its_own_meaning() {
    let operations = ["A 2 1 1multiplier×2", "2 1 1 1alu×1", "B_1 1 1 1alu×1"];
    read_as("g.dot", DOT, "small", &operations, &["A 2 2 0 1", "2 B_1 1 0 1"]);
    let operations = ["a", "b[0]", "y", "n1"].map(|name| format!("{name} 1 1 1gate×1"));
    let operations = operations.each_ref().map(String::as_str);
    read_as("g.blif", BLIF, "small", &operations, &["a y 1 0 1", "n1 y 1 0 1", "a n1 1 0 1", "b[0] n1 1 0 1"]);
    read_as("dir/g.gml", GML, "g", &["x 1 7 7memory×1", "1 1 0 "], &["x 1 0 0 1", "x 1 0 0 0"]);
    let operations = ["load 1 1 1Port×2", "%1 4 1 1Mul×1", "store 1 1 "];
    read_as(
        "g.mlir",
        SSP,
        "fig2",
        &operations,
        &["store load 1 1 1", "load %1 1 0 1", "%1 store 4 0 1", "%1 store 4 0 1"],
    );
    read_as("g.graphml", GRAPHML, "g", &["load 2 1 1mem×3", "sum 0 1 "], &["load sum 3 0 1"]);
    let operations = ["product 3 4 1multiplier×2", "sum 1 1 "];
    read_as("g.json", JSON, "mac", &operations, &["product sum 3 0 1", "sum sum 0 1 1"]);
}

#[test]
fn chaining_is_chosen_where_the_format_leaves_it_open() {
    let delays = |file, text, chaining| {
        let options = DataflowOptions { chaining, ..DataflowOptions::default() };
        let graph = read_dataflow(NamedText { file, text }, &options).map_err(|error| error.to_string())?;
        Ok::<i64, String>(graph.dependences().iter().map(|d| d.delay).sum())
    };
    assert_eq!(delays("g.gml", GML, Some(false)), Ok(2));
    assert_eq!(delays("g.blif", BLIF, Some(true)), Ok(0));
    assert!(delays("g.dot", DOT, Some(true)).unwrap_err().contains("can be chosen for .blif and .gml"));
}

#[test]
fn a_loop_of_tile_operations_keeps_units_and_distances() {
    let toy = builtin::find("toy-attention").unwrap();
    let mut file = GraphFile::from_graph(&toy.graph);
    file.machine = toy.machine.clone();
    let text = file.to_json();
    let graph = read("loop.json", &text).unwrap();
    let loops = toy.graph.dependences();
    assert_eq!(graph.operations().len(), toy.graph.operations().len());
    assert!(graph.dependences().iter().zip(loops).all(|(a, b)| (a.delay, a.distance) == (b.delay.0, b.distance)));
    let gemm = &graph.operations()[0].uses[0];
    let unit = &graph.resources()[gemm.resource.index()];
    assert_eq!((unit.name.as_str(), unit.limit, gemm.steps), ("tensor", Some(1), 1));
    let bare = GraphFile::from_graph(&toy.graph).to_json();
    assert!(read("loop.json", &bare).unwrap_err().contains("loop.json: a loop graph needs a machine"));
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_the_way_out() {
    let refused = |file: &str, from: &str, to: &str, says: &str| {
        let (_, text) = FILES.iter().find(|(name, _)| *name == file).unwrap();
        let changed = text.replacen(from, to, 1);
        assert!(changed != *text, "{from}");
        let error = read(file, &changed).unwrap_err();
        assert!(error.contains(says), "{says}:\n{error}");
    };
    refused("g.dot", "digraph", "graph", "g.dot:2:1: an undirected graph; dependences have a direction: `digraph`");
    refused("g.dot", "B_1 [label=imp]", "", "g.dot:8:15: node `B_1` is not declared; say what it does: B_1 [label");
    refused("g.dot", "label=imp", "", "g.dot:7:5: node `B_1` has no label");
    refused("g.dot", "2 [", "A [", "g.dot:6:5: a second node `A`");
    refused("g.dot", "->", "--", "g.dot:8:8: expected `->`; dependences have a direction, found `-`");
    refused("g.dot", "\"add\"", "\"add", "g.dot:6:17: this text has no closing quote");
    refused("g.dot", "// made", "/* made", "g.dot:1:1: this comment has no end");
    refused("g.dot", "}\n", "", "g.dot:9:1: expected a node, an edge or `}`, found the end of the file");
    refused("g.dot", "}\n", "}}", "g.dot:9:2: expected the end of the file; a file holds one graph, found `}`");
    refused("g.dot", "A -> 2", "subgraph x {", "g.dot:8:5: subgraphs are not read");
    refused("g.dot", "B_1 [ name", "A [ name", "g.dot: operations wait for each other within one iteration: 2 → A → 2");
    refused("g.blif", "b[0] n1", "b[1] n1", "g.blif:8:10: nothing drives the signal `b[1]`; declare it");
    refused("g.blif", ".outputs y", ".outputs z", "g.blif:5:10: nothing drives the signal `z`");
    refused("g.blif", "n1 y", "n1 a", "g.blif:6:13: a second driver of signal `a`");
    refused("g.blif", "1- 1", ".latch a q", "g.blif:9:1: a register; only combinational circuits are read");
    refused("g.blif", "1- 1", ".subckt a q", "g.blif:9:1: `.subckt` is not read; flatten");
    refused("g.blif", "1- 1", "what", "g.blif:9:1: expected .model, .inputs, .outputs, .names, a cover");
    refused("g.blif", ".names a n1 y", ".names", "g.blif:6:1: `.names` without a signal");
    refused("g.blif", ".inputs", ".model two\n.inputs", "g.blif:3:1: a second `.model`");
    refused("g.blif", ".outputs", ".end\n.outputs", "g.blif:6:1: something follows `.end`");
    refused("g.gml", "directed 1", "directed 0", "g.gml:1:1: the graph is undirected; dependences have a direction");
    refused("g.gml", "id 1", "id 0", "g.gml:5:13: a second node with id `0`");
    refused("g.gml", "id 1", "", "g.gml:5:3: this node has no `id`");
    refused("g.gml", "target 1", "target 5", "g.gml:6:26: no node has the id `5`");
    refused("g.gml", "target 1", "", "g.gml:6:3: an edge needs a `source` and a `target`");
    refused(
        "g.gml",
        "parameter 7",
        "parameter -7",
        "`parameter` is `-7`; it must be a whole number from 0 to 281474976710656",
    );
    refused("g.gml", "0\" ]\n]", "0\" ]\n]]", "g.gml:8:2: expected a key, found `]`");
    refused("g.mlir", "[latency<1>]", "", "g.mlir:4:19: `@Memory` has no latency; write [latency<1>]");
    refused(
        "g.mlir",
        "operation<@Mul>",
        "operation<@Add>",
        "g.mlir:12:26: the operator type `@Add` is not in the library",
    );
    refused("g.mlir", "(%0)", "(%9)", "g.mlir:12:32: nothing is called `%9`");
    refused("g.mlir", "uses[@Port]", "uses[@Gate]", "g.mlir:11:58: the resource type `@Gate` is not declared");
    refused("g.mlir", "dist<1>", "dist<0>", "operations wait for each other within one iteration: ");
    refused(
        "g.json",
        "\"to\": \"sum\" }",
        "\"to\": \"s\" }",
        "g.json: dependences[0] names the operation `s`, which is not",
    );
    refused(
        "g.json",
        "\"resource\": \"m",
        "\"resource\": \"",
        "`product` uses `ultiplier`, which is not among the resources",
    );
    refused("g.json", "\"steps\": 2", "\"steps\": 0", "`product` takes 1 of `multiplier` for 0 steps");
    refused("g.json", "latency", "latncy", "g.json:4:33: unknown field `latncy`");
    refused("g.json", "twill-dataflow", "twill-data", "expected format `twill-dataflow` version 1, found `twill-data`");
    let without = DataflowOptions::default();
    let alone = read_dataflow(NamedText { file: "g.graphml", text: GRAPHML }, &without).unwrap_err().to_string();
    assert!(alone.contains("needs its resource model next to it; give g_RM.xml, too"), "{alone}");
    assert!(read("g.txt", "").unwrap_err().contains("no format of graphs ends in `.txt`; known: .json"));
}

#[test]
fn depth_is_no_danger() {
    let nested = format!("graph [ directed 1 a {} {} ]", "[ a ".repeat(200_000), "] ".repeat(200_000));
    assert!(read("g.gml", &nested).is_err());
    assert!(read("g.dot", &"digraph {".repeat(100_000)).is_err());
    assert!(read("g.mlir", &format!("ssp.instance of {}", "[a<".repeat(100_000))).is_err());
}

fn random() -> impl Strategy<Value = Random> {
    let shape = (1..60_u32, 0.0..0.3_f64, 0..10_u32, 0..10_u32, 1..4_u32);
    let costs = (1..5_u32, 0..4_u32, 0..4_u64, 0..9_u32, any::<u64>());
    (shape, costs).prop_map(|(shape, costs)| {
        let (nodes, density, reach, back_edges, distance) = shape;
        let (latency, resources, limit, storage, seed) = costs;
        Random { nodes, density, reach, back_edges, distance, recurrence: 0, latency, resources, limit, storage, seed }
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(random in random()) {
        let graph = random.graph().unwrap();
        let text = DataflowFile::from_graph(&graph).to_json();
        prop_assert_eq!(read("g.json", &text), Ok(graph));
    }

    /// One place of a valid file overwritten, cut or doubled.
    #[test]
    fn a_damaged_file_is_read_or_refused(which in 0..FILES.len(), at in 0..900_usize, length in 0_usize..40, text in "[ -~\u{e4}\n<>\"/&;0-9\\[\\]{}]{0,12}") {
        let (file, whole) = FILES[which];
        let at = at % whole.len();
        let end = (at + length).min(whole.len());
        let (at, end) = (whole.floor_char_boundary(at), whole.floor_char_boundary(end));
        for text in [format!("{}{text}{}", &whole[..at], &whole[end..]), format!("{}{}", &whole[..end], &whole[at..])] {
            if let Err(error) = read(file, &text) {
                prop_assert!(error.starts_with("g."), "{}", error);
            }
        }
    }

    #[test]
    fn anything_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        for (file, _) in FILES {
            let _ = read(file, &text);
        }
    }
}

/// The benchmark graphs themselves, which are not part of Twill: `TWILL_BENCHMARKS` names their folder.
#[test]
fn benchmarks_are_read() {
    let Some(folder) = std::env::var_os("TWILL_BENCHMARKS").map(std::path::PathBuf::from) else {
        println!("SKIPPED: set TWILL_BENCHMARKS to the folder of the benchmark graphs");
        return;
    };
    let mut count = 0;
    for (part, files) in [("express", 23), ("epfl", 15), ("gs_random", 12)] {
        let before = count;
        for entry in std::fs::read_dir(folder.join(part)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "csv") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let start = std::time::Instant::now();
            let graph = read(path.to_str().unwrap(), &text).unwrap();
            let (operations, dependences) = (graph.operations().len(), graph.dependences().len());
            println!("{} {operations} {dependences} {:?}", path.display(), start.elapsed());
            count += 1;
        }
        assert_eq!(count - before, files, "{part}");
    }
}
