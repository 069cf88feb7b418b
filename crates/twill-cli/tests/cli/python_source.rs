//! Kernels in Python source and folders of collected kernels, as far as the command sees them: Python stands behind a stub.

use crate::common::{root, stderr, stdout};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

/// An interpreter that has the package, and does this for a module; `$*` are its words.
fn interpreter(folder: &TempDir, does: &str) -> PathBuf {
    let path = folder.path().join("python");
    fs::write(&path, format!("#!/bin/sh\n[ \"$1\" = -c ] && exit 0\n{does}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn twill_with(python: &Path, words: &[&str]) -> Output {
    let mut command = crate::common::command();
    command.args(words).env("TWILL_PYTHON", python).current_dir(root()).output().unwrap()
}

#[test]
fn a_function_in_python_source_is_scheduled_like_its_ttir() {
    let folder = tempfile::tempdir().unwrap();
    let python = interpreter(&folder, "echo \"$*\" >\"$0.words\"; cat examples/gemm_tma.ttir");
    let words = ["schedule", "gemm.py::gemm", "--arg", "K=4096", "--arg", "a=fp16[128,64]", "--machine", "h100", "-q"];
    let output = twill_with(&python, &words);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("gemm_tma on h100, "), "{}", stdout(&output));
    let asked = fs::read_to_string(folder.path().join("python.words")).unwrap();
    assert_eq!(asked, "-m twill_gpu.ttir gemm.py::gemm --arg=K=4096 --arg=a=fp16[128,64] --machine=h100\n");
    for words in [["fit", "gemm.py::gemm"], ["lower", "gemm.py::gemm"], ["coverage", "gemm.py::gemm"]] {
        let output = twill_with(&python, &words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
    }
}

#[test]
fn what_python_says_is_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let python = interpreter(&folder, "echo 'error: nothing is said of K; give --arg K=16' >&2; exit 1");
    let output = twill_with(&python, &["schedule", "gemm.py::gemm"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
    assert_eq!(stderr(&output), "error: gemm.py::gemm: nothing is said of K; give --arg K=16\n");
    let output = twill_with(&folder.path().join("absent"), &["schedule", "gemm.py::gemm"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("TWILL_PYTHON"), "{}", stderr(&output));
}

#[test]
fn types_are_for_python_source_alone() {
    for option in [["--arg", "K=1"], ["--call", "app.py"]] {
        let output = twill_with(Path::new("python3"), &["schedule", "examples/gemm_tma.ttir", option[0], option[1]]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(&format!("{} is for Python source", option[0])), "{}", stderr(&output));
    }
}

#[test]
fn collect_passes_its_words_on_with_the_dashes_before_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let python = interpreter(&folder, "echo \"$*\"");
    for words in
        [&["collect", "--", "python", "app.py", "-x"][..], &["collect", "-o", "k", "--", "app"], &["collect", "-h"]]
    {
        let output = twill_with(&python, words);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(stdout(&output), format!("-m twill_gpu.collecting {}\n", words[1..].join(" ")));
    }
}

#[test]
fn collected_kernels_come_in_the_order_of_their_time() {
    let folder = tempfile::tempdir().unwrap();
    let record = |count: u64, milliseconds: f64| {
        json!({"format": "twill-collected", "version": 1, "kernel": "k",
            "launches": [{"count": count, "milliseconds": milliseconds}, {"count": 1, "milliseconds": null}]})
    };
    for (name, kernel, count, milliseconds) in [("a", "gemm_tma", 10, 0.5), ("b", "fixtures/no_loop", 2, 10.0)] {
        let text = fs::read_to_string(root().join(format!("examples/{kernel}.ttir"))).unwrap();
        fs::write(folder.path().join(format!("{name}.ttir")), text).unwrap();
        let record = record(count, milliseconds).to_string();
        fs::write(folder.path().join(format!("{name}.json")), record).unwrap();
    }
    let place = folder.path().to_str().unwrap();
    let output = twill_with(Path::new("python3"), &["coverage", place, "--no-cache", "--format", "json"]);
    let rows: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = rows.iter().map(|row| (row["launches"].as_u64(), row["milliseconds"].as_f64())).collect();
    assert_eq!(told, [(Some(3), Some(20.0)), (Some(11), Some(5.0))]);
    let text = stdout(&twill_with(Path::new("python3"), &["coverage", place, "--no-cache"]));
    assert!(text.contains("launched: 11 times, 5.0 ms on the GPU"), "{text}");
    assert!(text.contains("of the time on the GPU: 5.0 of 25.0 ms (20.0 %)"), "{text}");
    let fit = stdout(&twill_with(Path::new("python3"), &["fit", place]));
    assert!(fit.contains("a.ttir: fits"), "{fit}");
    // One of the kernels has no loop: that is an error, and the other is explained.
    let words = ["explain", place, "--what-if", "none", "-q"];
    let output = twill_with(Path::new("python3"), &words);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("b.ttir") && stdout(&output).starts_with("gemm_tma on h200"),
        "{}",
        stdout(&output)
    );
    let output = twill_with(Path::new("python3"), &[&words[..], &["--format", "json"]].concat());
    assert_eq!(serde_json::from_str::<Value>(&stdout(&output)).unwrap().as_array().unwrap().len(), 1);
    let output = twill_with(Path::new("python3"), &[&words[..], &["--format", "github"]].concat());
    let titles: Vec<String> =
        stdout(&output).lines().map(|line| line.split("title=").nth(1).unwrap().to_owned()).collect();
    assert!(titles[0].starts_with("twill not-lowered") && titles[1].starts_with("twill optimal"), "{titles:?}");
}
