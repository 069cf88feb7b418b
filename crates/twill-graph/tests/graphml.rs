//! Loops of HatScheT in GraphML: what is read, what is refused and where, and that nothing panics.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use proptest::prelude::*;
use twill_graph::format::{NamedText, read_graphml};
use twill_graph::{Cycles, ModuloDependence, ModuloProblem, OpId};

const GRAPH: &str = r#"<?xml version="1.0" encoding="UTF-8"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <graph>
    <node id="load">
      <data key="name">node_load</data>
      <data key="uses_resource">mem_read</data>
    </node>
    <node id="sum">
      <data key="uses_resource">adder</data>
    </node>
    <edge id="load_sum" source="load" target="sum">
      <data key="delay">-1</data>
      <data key="distance">0</data>
      <data key="deptype">Data</data>
    </edge>
    <edge id="sum_sum" source="sum" target="sum">
      <data key="delay">3</data>
      <data key="distance">2</data>
    </edge>
  </graph>
</graphml>
"#;

const MODEL: &str = r#"<?xml version="1.0" encoding="UTF-8"?><ModelInformation Version="1.0">
  <Resources>
    <Resource blockingTime="1" latency="2" limit="2" name="mem_read" physicalDelay="0.0">
      <Cost demand="0" name="LUT"/>
    </Resource>
    <Resource blockingTime="0" latency="0" limit="-1" name="adder" physicalDelay="1.591"/>
  </Resources>
</ModelInformation>
"#;

fn read(graph: &str, model: &str) -> Result<ModuloProblem, String> {
    let graph = NamedText { file: "loops/one.graphml", text: graph };
    read_graphml(graph, NamedText { file: "one_RM.xml", text: model }).map_err(|error| error.to_string())
}

#[test]
fn latencies_join_the_delays_of_what_leaves_an_operation() {
    let problem = read(GRAPH, MODEL).unwrap();
    assert_eq!(problem.name(), "one");
    assert_eq!(problem.operations().iter().map(|op| op.name.as_str()).collect::<Vec<_>>(), ["load", "sum"]);
    let [read, adder] = problem.resources() else { unreachable!() };
    assert_eq!((read.limit, read.blocking, adder.limit), (Some(2), 1, None));
    let dependence = |from, to, delay, distance| {
        let (from, to) = (OpId::new(from), OpId::new(to));
        ModuloDependence { from, to, delay: Cycles(delay), distance }
    };
    assert_eq!(problem.dependences(), [dependence(0, 1, 2 - 1, 0), dependence(1, 1, 3, 2)]);
}

#[test]
fn declared_keys_name_the_data() {
    let declared = GRAPH.replace("key=\"delay\"", "key=\"d7\"").replace(
        "  <graph>",
        "  <key id=\"d7\" for=\"edge\" attr.name=\"delay\" attr.type=\"int\"/>\n  <graph edgedefault=\"directed\">",
    );
    assert_eq!(read(&declared, MODEL), read(GRAPH, MODEL));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let refused = |from: &str, to: &str, says: &str| {
        let (graph, model) = (GRAPH.replacen(from, to, 1), MODEL.replacen(from, to, 1));
        assert!(graph != GRAPH || model != MODEL, "{from}");
        let error = read(&graph, &model).unwrap_err();
        assert!(error.contains(says), "{says}:\n{error}");
    };
    refused("</graph>", "</grph>", "loops/one.graphml:19:3: expected 'graph' tag, not 'grph'");
    refused("<graph>", "<graph edgedefault=\"undirected\">", "loops/one.graphml:2:3: <graph>: the graph is undirected");
    refused("</graphml>", "<graph/></graphml>", "loops/one.graphml:20:1: <graph>: a second <graph>");
    refused("node id=\"sum\"", "node id=\"load\"", "loops/one.graphml:7:5: <node>: a second node `load`");
    refused("node id=\"sum\"", "node", "loops/one.graphml:7:5: <node>: the attribute `id` is missing");
    refused("<data key=\"uses_resource\">adder</data>", "", "<node>: <data key=\"uses_resource\"> is missing");
    refused(">adder<", ">addr<", "node `sum` uses the resource `addr`, which one_RM.xml does not declare");
    refused("target=\"sum\"", "target=\"nil\"", "one.graphml:10:5: <edge>: its target `nil` is not a node");
    refused("target=\"sum\"", "", "<edge>: the attribute `target` is missing");
    refused("<data key=\"distance\">0</data>", "", "<edge>: <data key=\"distance\"> is missing");
    refused(">-1<", ">1.5<", "<edge>: `delay` is `1.5`; it must be a whole number from -2147483648 to 2147483648");
    refused("\"distance\">2<", "\"distance\">-2<", "`distance` is `-2`; it must be a whole number from 0");
    refused("\"deptype\">Data", "\"delay\">4", "<data>: `delay` is given twice");
    refused("\"distance\">2<", "\"distance\">0<", "operations wait for each other within one iteration: sum → sum");
    refused("limit=\"2\"", "limit=\"0\"", "one_RM.xml:3:5: <Resource>: `limit` is 0");
    refused("limit=\"2\"", "", "one_RM.xml:3:5: <Resource>: the attribute `limit` is missing");
    refused("latency=\"2\"", "latency=\"\"", "`latency` is ``; it must be a whole number from 0");
    refused("name=\"adder\"", "name=\"mem_read\"", "one_RM.xml:6:5: <Resource>: a second resource `mem_read`");
    refused("<Resources>", "<Resources><ReservationTable/>", "reservation tables are not supported");
    let swapped = read(MODEL, GRAPH).unwrap_err();
    assert!(swapped.contains("one_RM.xml:1:39: <graphml>: no <Resource>: this is not a resource model"), "{swapped}");
}

#[test]
fn numbers_beyond_all_measure_are_refused() {
    let edges: String = (0..2)
        .map(|k| {
            format!(
                "<edge id=\"e{k}\" source=\"sum\" target=\"sum\"><data key=\"delay\">2147483648</data>\
                 <data key=\"distance\">2147483648</data></edge>"
            )
        })
        .collect();
    let error = read(&GRAPH.replace("</graph>", &(edges + "</graph>")), MODEL).unwrap_err();
    assert!(error.contains("too large"), "{error}");
}

#[test]
fn depth_is_no_danger() {
    let deep = "<a>".repeat(100_000) + &"</a>".repeat(100_000);
    assert!(read(&deep, MODEL).is_err());
}

proptest! {
    /// One place of a valid file overwritten, cut or doubled.
    #[test]
    fn a_damaged_file_is_read_or_refused(at in 0..GRAPH.len(), length in 0_usize..40, text in "[ -~<>\"/&;0-9]{0,12}", model in any::<bool>()) {
        let whole = if model { MODEL } else { GRAPH };
        let at = at.min(whole.len());
        let end = (at + length).min(whole.len());
        let damaged = format!("{}{text}{}", &whole[..at], &whole[end..]);
        let doubled = format!("{}{}", &whole[..end], &whole[at..]);
        for text in [damaged, doubled] {
            let result = if model { read(GRAPH, &text) } else { read(&text, MODEL) };
            if let Err(error) = result {
                prop_assert!(error.starts_with("loops/one.graphml") || error.starts_with("one_RM.xml"), "{error}");
            }
        }
    }

    #[test]
    fn anything_else_is_refused(text in ".{0,200}") {
        prop_assert!(read(&text, MODEL).is_err());
        prop_assert!(read(GRAPH, &text).is_err());
    }
}
