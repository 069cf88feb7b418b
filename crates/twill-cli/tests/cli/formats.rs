//! What docs/formats.md says, as far as it can be run.

use crate::common::{root, stderr, stdout, twill};
use serde_json::Value;
use std::fs;
use twill_graph::format::ScheduleFile;
use twill_graph::{Cycles, Status};

fn text() -> String {
    fs::read_to_string(root().join("docs/formats.md")).unwrap()
}

/// The graph in the text: its first example.
fn example(text: &str) -> &str {
    let (_, rest) = text.split_once("```json\n").unwrap();
    rest.split_once("```\n").unwrap().0
}

#[test]
fn the_example_is_scheduled_and_replayed_as_the_text_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (graph, schedule) = (path("scaled-gemm.json"), path("schedule.json"));
    let text = text();
    fs::write(&graph, example(&text)).unwrap();
    let output = twill(&["schedule", &graph, "--format", "json", "-o", &schedule]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let file = ScheduleFile::from_json(&fs::read_to_string(&schedule).unwrap(), &schedule).unwrap();
    assert_eq!((file.status, file.initiation_interval), (Status::Optimal, Some(Cycles(256))));
    assert!(text.contains("I = 256 cycles"));
    let output = twill(&["check", &schedule]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("every constraint holds; I = 256 cycles"));
}

/// Every key of every object that a schema describes.
fn properties(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get("properties") {
                found.extend(properties.keys().cloned());
            }
            object.values().for_each(|value| properties(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| properties(value, found)),
        _ => {}
    }
}

#[test]
fn every_field_is_described() {
    let text = text();
    let described = |key: &str| text.contains(&format!("`{key}`")) || text.contains(&format!("{{\"{key}\": "));
    let undescribed = |schema: &Value| {
        let mut keys = Vec::new();
        properties(schema, &mut keys);
        keys.retain(|key| !described(key));
        keys
    };
    // A machine given in full is a schedule's `resources`; machines.md and the schema describe it.
    let mut graph = twill_graph::format::graph_schema();
    let defs = graph["$defs"].as_object_mut().unwrap();
    defs.retain(|name, _| name.ends_with("Entry") || name == "Source");
    assert_eq!(defs.len(), 6, "{:?}", defs.keys());
    assert_eq!(undescribed(&graph), Vec::<String>::new());
    let mut schedule = twill_graph::format::schedule_schema();
    let described = ["PlacedOperation", "LowerBound", "ModuloSchedule", "ObjectiveValue", "Rejection"];
    schedule["$defs"].as_object_mut().unwrap().retain(|name, schema| {
        // What a bound or a rejection is about depends on its kind.
        schema.as_object_mut().map(|s| s.remove("oneOf"));
        name.ends_with("Entry") || described.contains(&name.as_str())
    });
    assert_eq!(undescribed(&schedule), Vec::<String>::new());
    let mut explanation = twill_graph::format::explanation_schema();
    explanation["$defs"].as_object_mut().unwrap().retain(|name, schema| {
        schema.as_object_mut().map(|s| s.remove("oneOf"));
        let own = ["ExplainedRejection", "Conflict", "Member", "Demand", "Breach", "WhatIf", "PlaceEntry"];
        own.contains(&name.as_str())
    });
    assert_eq!(undescribed(&explanation), Vec::<String>::new());
    let mut pipeline = twill_graph::format::pipeline_schema();
    pipeline["$defs"].as_object_mut().unwrap().clear();
    assert_eq!(undescribed(&pipeline), Vec::<String>::new());
    let mut trace = twill_graph::format::trace_schema();
    trace["$defs"]
        .as_object_mut()
        .unwrap()
        .retain(|name, _| name.starts_with("Trace") || name == "Compared" || name == "Span");
    assert_eq!(undescribed(&trace), Vec::<String>::new());
    for name in ["graph", "schedule", "explanation", "pipeline", "trace", "fit", "performance"] {
        let published = fs::read_to_string(root().join(format!("docs/schema/{name}.schema.json"))).unwrap();
        assert!(text.contains(&format!("(schema/{name}.schema.json)")));
        let printed = stdout(&twill(&["schema", name]));
        assert_eq!(
            serde_json::from_str::<Value>(&published).unwrap(),
            serde_json::from_str::<Value>(&printed).unwrap(),
            "{name}"
        );
    }
}
