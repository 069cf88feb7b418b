//! `twill check-perf`: what fails, what does not, and what cannot be compared.

use crate::common::{root, stderr, stdout, twill};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Two kernels that take milliseconds.
const KERNELS: [&str; 2] = ["examples/gemm_tma.ttir", "examples/swiglu.ttir"];

/// A baseline of them, written.
fn baseline(options: &[&str]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("baseline.json");
    let output = twill(&[&["check-perf", path.to_str().unwrap(), "--write"], &KERNELS[..], options].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    (folder, path)
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Changes a value of the first kernel.
fn change(path: &Path, pointer: &str, value: Value) {
    let mut file = read(path);
    let kernel = &mut file["kernels"][KERNELS[0]];
    *kernel.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
    fs::write(path, file.to_string()).unwrap();
}

fn checked(path: &Path, options: &[&str]) -> (i32, String, String) {
    let output = twill(&[&["check-perf", path.to_str().unwrap()], options].concat());
    (output.status.code().unwrap(), stdout(&output), stderr(&output))
}

#[test]
fn a_baseline_is_the_same_each_time_and_nothing_is_worse_than_itself() {
    let (_folder, path) = baseline(&[]);
    let first = fs::read_to_string(&path).unwrap();
    let kernel = &read(&path)["kernels"][KERNELS[0]];
    assert_eq!((&kernel["loops"][0]["interval"], &kernel["loops"][0]["optimal"]), (&512.into(), &true.into()));
    assert_eq!(kernel["machine"]["name"], "h200");
    // More than the values need is given to every kernel, and says nothing.
    assert!((40..200).contains(&kernel["registers"].as_u64().unwrap()), "{kernel}");
    assert!(kernel["shared_memory"].as_u64() > Some(1024), "{kernel}");
    let (_other, again) = baseline(&[]);
    assert_eq!(fs::read_to_string(&again).unwrap(), first);
    let (code, text, error) = checked(&path, &[]);
    assert_eq!((code, error.as_str()), (0, ""), "{text}");
    assert!(text.contains("as before: I = 512") && text.contains("2 kernels checked, 0 worse"), "{text}");
    // Written again with no kernel named, it keeps them all.
    assert_eq!(twill(&["check-perf", path.to_str().unwrap(), "--write"]).status.code(), Some(0));
    assert_eq!(fs::read_to_string(&path).unwrap(), first);
}

#[test]
fn each_value_that_is_worse_fails_and_says_by_how_much() {
    for (pointer, before, said) in [
        ("/loops/0/interval", 500, "worse: initiation interval of gemm_tma: 500 -> 512 cycles (+12, +2.4 %)"),
        ("/registers", 16, "worse: registers: 16 -> "),
        ("/shared_memory", 1024, "worse: shared memory: 1024 -> "),
    ] {
        let (_folder, path) = baseline(&[]);
        change(&path, pointer, before.into());
        let (code, text, _) = checked(&path, &["--width", "200"]);
        assert_eq!(code, 2, "{pointer}: {text}");
        assert!(text.contains("examples/gemm_tma.ttir: worse") && text.contains(said), "{pointer}: {text}");
        assert!(text.contains("examples/swiglu.ttir: as before"), "{text}");
        let (code, text, _) = checked(&path, &["--format", "json"]);
        let json: Value = serde_json::from_str(&text).unwrap();
        let worse: Vec<&Value> = json["kernels"].as_array().unwrap().iter().filter(|k| k["worse"] == true).collect();
        assert_eq!((code, worse.len()), (2, 1));
        assert_eq!((&worse[0]["input"], &worse[0]["changes"][0]["before"]), (&KERNELS[0].into(), &before.into()));
        let (code, text, _) = checked(&path, &["--format", "github"]);
        assert_eq!(code, 2);
        assert!(text.starts_with("::error file=examples/gemm_tma.py,line="), "{text}");
        // A kernel that is not asked for fails nothing.
        assert_eq!(checked(&path, &[KERNELS[1]]).0, 0);
    }
}

#[test]
fn less_is_told_and_fails_nothing() {
    let (_folder, path) = baseline(&[]);
    change(&path, "/registers", 1000.into());
    let (code, text, _) = checked(&path, &[]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("not worse") && text.contains("registers: 1000 -> ") && text.contains("--write"), "{text}");
}

#[test]
fn what_cannot_be_compared_is_an_error_that_says_the_way_out() {
    let (folder, path) = baseline(&[]);
    let cases: [(&[&str], &[&str]); 4] = [
        (&["examples/attention_forward.ttir"], &["examples/attention_forward.ttir", "does not have it", "--write"]),
        (&["--machine", "h100"], &["is for the machine h200, not h100", "leave --machine out"]),
        (&["--sub-tiles", "1"], &["--sub-tiles", "leave it out, or write it again"]),
        (&["--work-limit", "7"], &["--work-limit 60000000, not 7"]),
    ];
    for (options, says) in cases {
        let (code, _, error) = checked(&path, options);
        assert_eq!(code, 1, "{options:?}: {error}");
        assert!(says.iter().all(|part| error.contains(part)), "{options:?}: {error}");
    }
    assert_eq!(checked(&path, &["--machine", "h200"]).0, 0, "the machine of the baseline, named");
    change(&path, "/machine/digest", "0123456789abcdef".into());
    let (code, _, error) = checked(&path, &[]);
    assert_eq!(code, 1);
    assert!(error.contains("the machine h200 is not what it was"), "{error}");
    let mut file = read(&path);
    file["kernels"] = json!({"examples/gone.ttir": file["kernels"][KERNELS[1]]});
    fs::write(&path, file.to_string()).unwrap();
    let (code, _, error) = checked(&path, &[]);
    assert!(code == 1 && error.contains("cannot read examples/gone.ttir"), "{error}");
    file["kernels"] = json!({KERNELS[0]: file["kernels"]["examples/gone.ttir"]});
    fs::write(&path, file.to_string()).unwrap();
    let (code, _, error) = checked(&path, &[]);
    assert!(code == 1 && error.contains("its kernel is `gemm_tma`"), "{error}");
    for (text, says) in [("{}", "no baseline"), ("{\"format\": \"x\", \"version\": 1, \"kernels\": {}}", "`x`")] {
        fs::write(&path, text).unwrap();
        let (code, _, error) = checked(&path, &[]);
        assert!(code == 1 && error.contains(says) && error.contains("--write"), "{error}");
    }
    let absent = folder.path().join("absent.json");
    let (code, _, error) = checked(&absent, &[]);
    assert!(code == 1 && error.contains("absent.json") && error.contains("--write"), "{error}");
}

#[test]
fn a_baseline_keeps_the_options_it_was_written_with() {
    let (_folder, path) = baseline(&["--ring-depth", "2", "--machine", "h100"]);
    let kernel = &read(&path)["kernels"][KERNELS[0]];
    assert_eq!((&kernel["options"]["ring_depth"], &kernel["machine"]["name"]), (&2.into(), &"h100".into()));
    let (code, text, error) = checked(&path, &[]);
    assert_eq!((code, error.as_str()), (0, ""), "{text}");
}

#[test]
fn a_kernel_that_cannot_be_measured_leaves_the_baseline_as_it_was() {
    let (_folder, path) = baseline(&[]);
    let before = fs::read_to_string(&path).unwrap();
    let words = ["check-perf", path.to_str().unwrap(), "--write", "examples/fixtures/no_loop.ttir"];
    let output = twill(&words);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no_loop.ttir") && stderr(&output).contains("is not written"));
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    assert!(root().join("examples/fixtures/no_loop.ttir").exists());
}
