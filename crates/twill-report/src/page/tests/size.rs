//! The size of the file.

use super::*;
use twill_graph::format::DataflowScheduleFile;

const MEGABYTE: usize = 1_000_000;

/// A name of 40 letters, which compresses as badly as names do at worst.
fn name(index: u64) -> String {
    let digest = Sha256::digest(index.to_le_bytes());
    digest.iter().take(20).map(|byte| format!("{byte:02x}")).collect()
}

/// A schedule of a graph without warps, in which an operation waits for up to three before it.
fn dataflow(count: u64) -> Page {
    let random = |index: u64, which: u8| {
        let digest = Sha256::digest([index.to_le_bytes().as_slice(), &[which]].concat());
        u64::from_le_bytes(digest[..8].try_into().unwrap())
    };
    let (mut operations, mut dependences, mut steps) = (vec![], vec![], Vec::<u64>::new());
    for index in 0..count {
        let latency = 1 + random(index, 9) % 5;
        let resource = format!("unit {}", index % 4);
        operations.push(json!({
            "name": name(index), "latency": latency, "storage": 1 + index % 7,
            "uses": [{ "resource": resource, "steps": latency, "amount": 1 + index % 3 }]
        }));
        let before: std::collections::BTreeSet<u64> =
            (0..3).filter(|_| index > 0).map(|which| random(index, which) % index).collect();
        dependences
            .extend(before.iter().map(|from| json!({ "from": name(*from), "to": name(index), "communication": 2 })));
        let free = |from: &u64| steps[*from as usize] + operations[*from as usize]["latency"].as_u64().unwrap();
        steps.push(before.iter().map(free).max().unwrap_or(0));
    }
    let resources: Vec<Value> = (0..4).map(|unit| json!({ "name": format!("unit {unit}") })).collect();
    let text = json!({
        "format": "twill-dataflow-schedule", "version": 1,
        "graph": {
            "format": "twill-dataflow", "version": 1, "name": "large", "resources": resources,
            "operations": operations, "dependences": dependences
        },
        "objective": { "kind": "storage" }, "steps": steps,
        "summary": {
            "graph": "large", "operations": count, "dependences": dependences.len(), "engine": "asap", "seed": 1,
            "objective": { "kind": "storage", "value": 1, "lower_bound": 1 }, "peaks": {}, "gradients": 0,
            "seconds": { "reading": 0.0, "bound": 0.0, "search": 0.0, "replay": 0.0 }, "trace": []
        }
    });
    let file = DataflowScheduleFile::from_json(&text.to_string(), "large.json").unwrap();
    let problem = file.problem().unwrap();
    let found = twill_check::verify_dataflow(&problem, file.start_steps()).unwrap();
    Page::of_dataflow(&problem, &found, file.summary)
}

#[test]
fn thousands_of_operations_with_long_names_stay_below_a_megabyte() {
    let page = dataflow(5000);
    let file = html(&page);
    assert!(page.to_json().len() > 2 * MEGABYTE, "names are repeated: {}", page.to_json().len());
    assert!(file.len() < MEGABYTE * 7 / 10, "{}", file.len());
    assert_eq!(data_in(&file), serde_json::from_str::<Value>(&page.to_json()).unwrap());
}
