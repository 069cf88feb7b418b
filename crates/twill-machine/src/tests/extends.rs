//! Files that build on others.

use crate::{Machine, check};
use std::fs;
use std::path::PathBuf;

/// A folder of machine files, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Folder {
        let folder = std::env::temp_dir().join(format!("twill-machine-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap_or(&folder)).unwrap_or_else(|e| panic!("{e}"));
            fs::write(path, text).unwrap_or_else(|e| panic!("{e}"));
        }
        Folder(folder)
    }

    fn path(&self, file: &str) -> String {
        self.0.join(file).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_file_changes_what_it_names_and_keeps_the_rest() {
    let base = r#"
        name = "base"
        description = "not inherited"
        extends = "h100"
        [memory]
        shared_bytes = { specified = 100000, source = "base" }
        [latency]
        transfer = { measured = 700, source = "base" }
    "#;
    let mine = r#"
        name = "mine"
        extends = "../base.toml"
        [latency]
        transfer = { measured = 800, source = "mine" }
        [units]
        tensor = { derived = 2, source = "two of them" }
    "#;
    let folder = Folder::new("deep", &[("base.toml", base), ("inner/mine.toml", mine)]);
    let machine = Machine::load(&folder.path("inner/mine.toml")).unwrap();
    assert_eq!((machine.name(), machine.description()), ("mine", ""));
    assert_eq!(machine.resources().shared_memory.0, 100_000);
    assert_eq!(machine.transfer_latency().0, 800);
    assert_eq!(machine.chip().streaming_multiprocessors, 132);
    let tensor = machine.resources().unit("tensor").unwrap();
    assert_eq!(machine.resources().units[tensor.index()].capacity, 2);
    let sources: Vec<&str> =
        machine.rows().filter(|r| r.key == "latency.transfer").map(|r| r.source.as_str()).collect();
    assert_eq!(sources, ["mine"]);
}

#[test]
fn false_takes_away_what_is_inherited() {
    let text = r#"
        name = "plain"
        extends = "h100"
        [groups]
        variable_latency = false
        [costs]
        tma_load = false
        tma_store = false
        tma_reduce = false
        [units]
        tma = false
    "#;
    let machine = check(text, "plain.toml").unwrap();
    let resources = machine.resources();
    assert_eq!(resources.variable_latency_group, None);
    assert_eq!(resources.unit("tma"), None);
    assert!(!machine.rows().any(|r| r.key.contains("tma") || r.key.contains("variable_latency")));
    assert_eq!(check(&machine.to_toml(), "plain.toml").unwrap().resources(), resources);
}

#[test]
fn cycles_are_named_with_all_their_files() {
    let folder = Folder::new(
        "cycle",
        &[
            ("a.toml", "name = \"a\"\nextends = \"./b.toml\""),
            ("b.toml", "name = \"b\"\n\nextends = \"./a.toml\""),
            ("self.toml", "name = \"self\"\nextends = \"self.toml\""),
        ],
    );
    let error = Machine::load(&folder.path("a.toml")).unwrap_err().to_string();
    let (a, b) = (folder.path("a.toml"), folder.path("./b.toml"));
    assert_eq!(error, format!("{b}:3: machines extend each other: {a} → {b} → {a}; remove one `extends`"));
    let error = Machine::load(&folder.path("self.toml")).unwrap_err().to_string();
    assert!(error.contains("self.toml:2: machines extend each other: "), "{error}");
}

#[test]
fn what_cannot_be_extended() {
    let of = |extends: &str| check(&format!("name = \"x\"\nextends = {extends}"), "x.toml").unwrap_err()[0].to_string();
    assert_eq!(
        of("\"h10\""),
        "x.toml:2: `extends` names h10, which is not built in (did you mean `h100`?); give a built-in machine (a100, h100, h200, b200, b200-left-shared) or a path relative to this file"
    );
    assert_eq!(
        of("\"nowhere/y.toml\""),
        "x.toml:2: `extends` names nowhere/y.toml, which cannot be read: entity not found; give a built-in machine (a100, h100, h200, b200, b200-left-shared) or a path relative to this file"
    );
    assert_eq!(of("3"), "x.toml:2: `extends` is 3; expected the name of a built-in machine or a path, in quotes");
}

#[test]
fn a_missing_base_hides_no_other_error_and_makes_up_none() {
    let text = "name = \"x\"\nextends = \"nothing-of-the-kind\"\n[chip]\nclock_mhz = 3\n[costs.fma]\nunit = \"fma\"";
    let errors: Vec<String> = check(text, "x.toml").unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(
        errors[0].starts_with("x.toml:2: `extends` names nothing-of-the-kind, which is not built in;"),
        "{errors:?}"
    );
    assert!(errors[1].starts_with("x.toml:4: `chip.clock_mhz` does not say where it comes from"), "{errors:?}");
}

#[test]
fn errors_in_the_base_name_the_base() {
    let folder = Folder::new(
        "base",
        &[
            (
                "base.toml",
                "name = \"base\"\nextends = \"h100\"\n[latency]\nhandoff = { measured = -1, source = \"b\" }",
            ),
            ("mine.toml", "name = \"mine\"\nextends = \"base.toml\""),
            ("broken.toml", "name = "),
            ("other.toml", "name = \"other\"\nextends = \"broken.toml\""),
        ],
    );
    let error = Machine::load(&folder.path("mine.toml")).unwrap_err().to_string();
    let base = folder.path("base.toml");
    assert_eq!(error, format!("{base}:4: `latency.handoff` is -1; it must be 0 or a greater number, and at most 1e15"));
    let error = Machine::load(&folder.path("other.toml")).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}:1: not valid TOML: ", folder.path("broken.toml"))), "{error}");
}
