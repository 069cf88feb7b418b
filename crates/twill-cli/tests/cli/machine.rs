//! `twill machine diff`, and what is passed to Python.

use crate::common::{root, stderr, stdout, twill};
use serde_json::Value;
use std::fs;

const MINE: &str = "name = \"mine\"
extends = \"h100\"
[latency]
transfer = { measured = 910, source = \"my own runs\" }
[synchronization]
arrive = { measured = 16, source = \"my own runs\" }
[costs.fma]
elements_per_cycle = { measured = 128, source = \"my own runs\" }
[tensor_core]
sharing = \"in_order\"
";

#[test]
fn values_that_differ_and_how_many_are_known_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml").to_str().unwrap().to_owned();
    fs::write(&path, MINE).unwrap();
    let output = twill(&["machine", "diff", "h100", &path]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let expected = "h100 -> mine: 3 values differ

  number                  h100  mine   change  unit    provenance
  latency.transfer         650   910  +40.0 %  cycles  derived -> measured
  synchronization.arrive  none    16           cycles  measured

  words                h100  mine
  tensor_core.sharing  none  in_order

1 number has the same value and another provenance. --format json has their sources.
";
    assert_eq!(stdout(&output), expected);
    let output = twill(&["machine", "diff", "h100", &path, "--format", "json"]);
    let all: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(all.as_array().unwrap().len(), 4);
    assert_eq!((&all[0]["key"], &all[0]["percent"]), (&"latency.transfer".into(), &40.0.into()));
    assert_eq!((&all[0]["old"]["value"], &all[0]["new"]["provenance"]), (&650.0.into(), &"measured".into()));
    assert_eq!((&all[2]["old"], &all[3]["new"]), (&Value::Null, &"in_order".into()));
}

#[test]
fn machines_that_agree() {
    let output = twill(&["machine", "diff", "h100", "h100"]);
    assert_eq!(stdout(&output), "h100 and h100 agree in every value\n");
    let output = twill(&["machine", "diff", "h100", "h100", "--format", "json"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "[]\n"));
}

#[test]
fn a_machine_that_there_is_not() {
    let output = twill(&["machine", "diff", "h200", "h20"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
    assert!(stderr(&output).starts_with("error: there is no machine `h20`"), "{}", stderr(&output));
}

#[test]
fn what_python_does_says_so_where_it_is_not_there() {
    for (words, purpose) in [
        (vec!["machine", "calibrate", "--machine", "h200", "--help"], "for CUDA's driver and NVRTC"),
        (vec!["sweep", "--help"], "for Triton's front end"),
    ] {
        let mut command = crate::common::command();
        let output = command.args(&words).env("TWILL_PYTHON", "/nowhere/python").current_dir(root()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let said = stderr(&output);
        assert!(said.contains(purpose) && said.contains("/nowhere/python cannot: "), "{said}");
        assert!(said.contains("pip install the package from the checkout"), "{said}");
    }
}
