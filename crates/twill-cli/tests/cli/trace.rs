//! `twill compile --trace` and `twill trace`: from a kernel to a buffer that a GPU might have written, and back.

use crate::common::{root, stderr, stdout, twill};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A traced kernel of an example, in a folder of this one.
fn traced(place: &TempDir, example: &str) -> PathBuf {
    let (input, folder) = (root().join("examples").join(example), place.path().join("kernel"));
    let [input, output] = [&input, &folder].map(|path| path.to_str().unwrap());
    let arguments = ["compile", input, "--machine", "h200", "-o", output, "--emit", "cuda", "--no-assemble", "-q"];
    let run = twill(&[&arguments[..], &["--trace", "8"]].concat());
    assert_eq!((run.status.code(), stderr(&run).as_str()), (Some(0), ""));
    folder
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// What the kernel records if each iteration takes `interval` cycles, and each timestamp comes `step` after the one before.
fn buffer(folder: &Path, interval: u64, step: u64) -> Vec<u8> {
    let trace = &json(&folder.join("kernel.json"))["trace"];
    let timestamps = trace["timestamps"].as_array().unwrap().len() as u64;
    let stamps = (0..8 * timestamps).map(|k| 1_000_000 + k / timestamps * interval + k % timestamps * step);
    stamps.flat_map(u64::to_le_bytes).collect()
}

fn trace(folder: &Path, more: &[&str]) -> std::process::Output {
    twill(&[&["trace", folder.to_str().unwrap()], more].concat())
}

#[test]
fn what_was_recorded_is_compared_with_the_schedule() {
    let place = TempDir::new().unwrap();
    let folder = traced(&place, "gemm_tma.ttir");
    fs::write(folder.join("trace.bin"), buffer(&folder, 530, 3)).unwrap();
    fs::write(
        folder.join("trace.bin.json"),
        r#"{ "gpu": "NVIDIA H200", "date": "2026-01-31", "revision": "a1b2c3", "launches": 5 }"#,
    )
    .unwrap();
    let out = folder.join("trace.json");
    let run = trace(&folder, &["-o", out.to_str().unwrap()]);
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    let told = stdout(&run);
    assert!(told.starts_with("gemm_tma for h200, measured on NVIDIA H200 on 2026-01-31\n"), "{told}");
    assert!(told.contains("cycles an iteration: 512 predicted, 530 measured (+3.5 %)"), "{told}");
    let written = json(&out);
    assert_eq!(written, serde_json::from_str::<Value>(&stdout(&trace(&folder, &["--format", "json"]))).unwrap());
    twill_graph::format::TraceFile::from_json(&fs::read_to_string(&out).unwrap(), "trace.json").unwrap();
    assert_eq!(written["revision"], "a1b2c3");
    let one = &written["loops"][0];
    assert_eq!(one["initiation_interval"], serde_json::json!({ "predicted": 512.0, "measured": 530.0 }));
    let schedule = json(&folder.join("schedule.json"));
    let operations = one["operations"].as_array().unwrap();
    assert_eq!(operations.len(), schedule["operations"].as_array().unwrap().len());
    for operation in schedule["operations"].as_array().unwrap() {
        let found = operations.iter().find(|o| o["operation"] == operation["name"]).unwrap();
        assert_eq!(found["predicted"]["start"].as_f64(), operation["cycle"].as_f64());
        assert_eq!(found["group"], operation["group"]);
    }
    // A folder with a trace is still one that can be written again.
    traced(&place, "gemm_tma.ttir");
    assert!(!folder.join("trace.bin").exists());
}

#[test]
fn what_cannot_be_compared_says_why() {
    let place = TempDir::new().unwrap();
    let folder = traced(&place, "gemm_tma.ttir");
    let refused = |folder: &Path, more: &[&str], says: &str| {
        let run = trace(folder, more);
        assert_eq!(run.status.code(), Some(1));
        assert!(stderr(&run).contains(says), "{}", stderr(&run));
    };
    refused(&folder, &[], "bench/gpu/trace.py writes it");
    refused(&place.path().join("nowhere"), &[], "cannot read");
    let empty = place.path().join("empty.bin");
    fs::write(&empty, vec![0; buffer(&folder, 1, 1).len()]).unwrap();
    refused(&folder, &["--buffer", empty.to_str().unwrap()], "the kernel did not run, or its loops have fewer than");
    fs::write(&empty, [0; 12]).unwrap();
    refused(&folder, &["--buffer", empty.to_str().unwrap()], "it has 12 bytes, and each launch of this kernel records");
    let metadata = place.path().join("empty.bin.json");
    for broken in ["{ \"gpu\": \"NVIDIA", "{ \"gpu\": 200 }"] {
        fs::write(&metadata, broken).unwrap();
        refused(&folder, &["--buffer", empty.to_str().unwrap()], "empty.bin.json: ");
    }
    let kernel = folder.join("kernel.json");
    let mut untraced = json(&kernel);
    untraced.as_object_mut().unwrap().remove("trace");
    fs::write(&kernel, untraced.to_string()).unwrap();
    refused(&folder, &[], "the kernel records nothing; compile it with --emit cuda --trace");
}

#[test]
fn the_schedule_is_replayed() {
    let place = TempDir::new().unwrap();
    let folder = traced(&place, "gemm_tma.ttir");
    fs::write(folder.join("trace.bin"), buffer(&folder, 530, 3)).unwrap();
    assert_eq!(trace(&folder, &[]).status.code(), Some(0));
    let path = folder.join("schedule.json");
    let good = json(&path);
    let refused = |change: &dyn Fn(&mut Value), says: &str| {
        let mut schedule = good.clone();
        change(&mut schedule);
        fs::write(&path, schedule.to_string()).unwrap();
        let run = trace(&folder, &[]);
        assert_eq!((run.status.code(), stdout(&run).as_str()), (Some(1), ""));
        assert!(stderr(&run).contains("schedule.json: ") && stderr(&run).contains(says), "{}", stderr(&run));
    };
    let late = |schedule: &mut Value| {
        let cycle = schedule["operations"][0]["cycle"].as_i64().unwrap();
        schedule["operations"][0]["cycle"] = (cycle + 100_000).into();
    };
    refused(&late, "cycle");
    let unknown = |schedule: &mut Value| {
        let file = schedule.as_object_mut().unwrap();
        file.retain(|name, _| ["format", "version", "problem", "lower_bound"].contains(&name.as_str()));
        file.extend([("status".into(), "unknown".into()), ("stopped_by".into(), "the time limit".into())]);
    };
    refused(&unknown, "there is no schedule of gemm_tma in it");
}

#[test]
fn only_cuda_is_traced() {
    let (place, input) = (TempDir::new().unwrap(), root().join("examples/gemm_tma.ttir"));
    let output = place.path().join("kernel");
    let [input, output] = [&input, &output].map(|path| path.to_str().unwrap());
    let run = twill(&["compile", input, "--machine", "h200", "-o", output, "--trace"]);
    assert_eq!(run.status.code(), Some(1));
    assert!(stderr(&run).contains("add --emit cuda"), "{}", stderr(&run));
    let run = twill(&["compile", input, "-o", output, "--emit", "cuda", "--trace", "2"]);
    assert_eq!(run.status.code(), Some(1));
    assert!(stderr(&run).contains("'--trace [<ITERATIONS>]'"), "{}", stderr(&run));
}
