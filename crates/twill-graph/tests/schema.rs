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

/// Files read back as they were written, to the last bit.
#[test]
fn numbers_are_read_as_they_are_written() {
    let seconds = 9.223_371_536_769_308e18_f64;
    let read: f64 = serde_json::from_str(&serde_json::to_string(&seconds).unwrap()).unwrap();
    assert_eq!(read.to_bits(), seconds.to_bits());
}
