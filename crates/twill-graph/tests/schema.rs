//! The published JSON Schemas are those of the code.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use twill_graph::format::{dataflow_schema, graph_schema, pipeline_schema, schedule_schema, trace_schema};

fn published(name: &str) -> serde_json::Value {
    let path = format!("{}/../../docs/schema/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn published_schemas_are_up_to_date() {
    let hint = "write them again: cargo run -- schema graph > docs/schema/graph.schema.json, likewise dataflow, schedule, pipeline, trace";
    assert!(published("graph") == graph_schema(), "{hint}");
    assert!(published("dataflow") == dataflow_schema(), "{hint}");
    assert!(published("schedule") == schedule_schema(), "{hint}");
    assert!(published("pipeline") == pipeline_schema(), "{hint}");
    assert!(published("trace") == trace_schema(), "{hint}");
}
