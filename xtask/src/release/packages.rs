//! The crates as cargo packs them, and what would stop it from publishing them.

use super::Release;
use super::table::{Table, Verdict};
use super::workspace::text;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Lists the files of each crate, in the order in which they would be published, and says what stands in the way.
pub fn check(release: &Release, table: &mut Table) {
    let released = match release.workspace.released() {
        Ok(all) => all,
        Err(why) => return table.row("crates", Verdict::Failed(why)),
    };
    // The extension of the Python package is in its wheels.
    let ours = released.into_iter().filter(|one| release.workspace.is_member(one) && one["name"] != "twill-py");
    let (mut files, mut wrong, mut names) = (0, Vec::new(), Vec::new());
    let mut stops: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in ours {
        let name = text(&package["name"]);
        let mut list = release.workspace.cargo(&["package", "--list", "--allow-dirty", "--locked", "-p", &name]);
        match list.output() {
            Ok(output) if output.status.success() => files += String::from_utf8_lossy(&output.stdout).lines().count(),
            Ok(output) => wrong.push(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim())),
            Err(e) => wrong.push(format!("{name}: {e}")),
        }
        for stop in stopping(package) {
            stops.entry(stop).or_default().push(name.clone());
        }
        names.push(name);
    }
    let listed = format!("{files} files in {} crates, in this order: {}", names.len(), names.join(" "));
    table.row("packages of crates", Verdict::of(if wrong.is_empty() { Ok(listed) } else { Err(wrong.join("\n")) }));
    let all = names.len();
    let line = |(stop, those): (String, Vec<String>)| {
        let those = if those.len() == all { format!("all {all} crates") } else { those.join(", ") };
        format!("{stop}: {those}")
    };
    let lines: Vec<String> = stops.into_iter().map(line).collect();
    let verdict = match lines.is_empty() {
        true => Verdict::Passed("nothing stops it".into()),
        false => Verdict::ToDo(lines.join("\n")),
    };
    table.row("publishing of crates", verdict);
}

/// What cargo or a registry refuses a crate for.
fn stopping(package: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if package["publish"].as_array().is_some_and(Vec::is_empty) {
        found.push("publish = false".to_owned());
    }
    let dependences = package["dependencies"].as_array();
    let is_bare = |one: &Value| one["path"].is_string() && one["req"] == "*" && one["kind"].as_str() != Some("dev");
    if dependences.is_some_and(|all| all.iter().any(is_bare)) {
        found.push("crates of the workspace are named without a version".to_owned());
    }
    for field in ["description", "repository"] {
        if package[field].is_null() {
            found.push(format!("no {field}"));
        }
    }
    let folder = package["manifest_path"].as_str().map(Path::new).and_then(Path::parent);
    if folder.is_some_and(reads_outside) {
        found.push("sources include files from outside the crate, which its package lacks".to_owned());
    }
    found
}

/// Whether a source of the crate includes a file that is not in the crate's folder.
fn reads_outside(folder: &Path) -> bool {
    let sources = folder.join("src");
    files(&sources).iter().filter(|file| file.extension().is_some_and(|e| e == "rs")).any(|file| {
        let depth = file.strip_prefix(folder).map_or(0, |inside| inside.components().count() - 1);
        let text = fs::read_to_string(file).unwrap_or_default();
        let is_test = file.components().any(|part| part.as_os_str() == "tests");
        !is_test && text.lines().any(|line| line.contains("include_") && line.contains(&"../".repeat(depth + 1)))
    })
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_stops_a_crate_is_said() {
        let path = |kind: Value| json!({"path": "/there", "req": "*", "kind": kind});
        let crate_of = |publish: Value, dependences: Value| json!({"publish": publish, "dependencies": dependences, "description": "d", "repository": "r"});
        let fine = crate_of(Value::Null, json!([{"path": "/there", "req": "^0.1", "kind": null}, path("dev".into())]));
        assert!(stopping(&fine).is_empty());
        let found = stopping(&crate_of(json!([]), json!([path(Value::Null)])));
        assert!(found.len() == 2 && found[0].contains("publish") && found[1].contains("version"), "{found:?}");
        let bare = json!({"publish": null, "dependencies": [], "description": null, "repository": null});
        assert_eq!(stopping(&bare), ["no description", "no repository"]);
    }

    #[test]
    fn files_of_other_folders_are_seen() {
        let root = crate::root().unwrap();
        assert!(reads_outside(&root.join("crates/twill-machine")));
        assert!(!reads_outside(&root.join("crates/twill-report")));
    }
}
