//! What cargo says of the workspace.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is released: the command, and the extension of the Python package.
const ROOTS: [&str; 2] = ["twill-cli", "twill-py"];

/// What wheels are for. Those of ARM link the same crates.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Packages, as the command and the Python package use them.
pub struct Workspace {
    root: PathBuf,
    /// That of all crates of the workspace.
    pub version: String,
    packages: BTreeMap<String, Value>,
    members: BTreeSet<String>,
    /// By package, those that it links.
    links: BTreeMap<String, Vec<String>>,
}

impl Workspace {
    /// Asks cargo.
    ///
    /// # Errors
    ///
    /// What cargo says, or what it does not say.
    pub fn read(root: &Path) -> Result<Self, String> {
        let platform = format!("--filter-platform={PLATFORM}");
        let with = ["metadata", "--format-version=1", "--locked", "--features=twill-py/command", &platform];
        let mut command = cargo(root, &with);
        let output = command.output().map_err(|e| format!("cargo metadata: {e}"))?;
        if !output.status.success() {
            return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let said: Value = serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))?;
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let packages = list(&said["packages"]).into_iter().map(|package| (text(&package["id"]), package)).collect();
        let links = list(&said["resolve"]["nodes"]).iter().map(|node| (text(&node["id"]), linked(node))).collect();
        let members = list(&said["workspace_members"]).iter().map(text).collect();
        let mut workspace = Self { root: root.to_owned(), version: String::new(), packages, members, links };
        workspace.version = workspace.member("twill-cli").map(|package| text(&package["version"]))?;
        Ok(workspace)
    }

    /// A command of cargo at the top of the checkout.
    pub fn cargo(&self, arguments: &[&str]) -> Command {
        cargo(&self.root, arguments)
    }

    /// The crates of the workspace.
    pub fn members(&self) -> impl Iterator<Item = &Value> {
        self.members.iter().filter_map(|id| self.packages.get(id))
    }

    fn member(&self, name: &str) -> Result<&Value, String> {
        self.members().find(|package| package["name"] == name).ok_or_else(|| format!("there is no crate {name}"))
    }

    /// Whether a package is one of ours.
    pub fn is_member(&self, package: &Value) -> bool {
        self.members.contains(&text(&package["id"]))
    }

    /// What is released and what that links, what is needed first standing first.
    ///
    /// # Errors
    ///
    /// That a crate is missing.
    pub fn released(&self) -> Result<Vec<&Value>, String> {
        let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
        for name in ROOTS {
            self.visit(&text(&self.member(name)?["id"]), &mut seen, &mut order);
        }
        Ok(order)
    }

    fn visit<'a>(&'a self, id: &str, seen: &mut BTreeSet<String>, order: &mut Vec<&'a Value>) {
        if !seen.insert(id.to_owned()) {
            return;
        }
        for other in self.links.get(id).into_iter().flatten() {
            self.visit(other, seen, order);
        }
        order.extend(self.packages.get(id));
    }

    /// Packages that a package links.
    pub fn linked(&self, package: &Value) -> impl Iterator<Item = &Value> {
        let links = self.links.get(&text(&package["id"]));
        links.into_iter().flatten().filter_map(|id| self.packages.get(id))
    }
}

/// Dependences that are no tests' and no build script's.
fn linked(node: &Value) -> Vec<String> {
    let all = node["deps"].as_array().cloned().unwrap_or_default();
    let is_normal =
        |dep: &&Value| dep["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|k| k["kind"].is_null()));
    all.iter().filter(is_normal).map(|dep| text(&dep["pkg"])).collect()
}

/// A text, or nothing.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    command.args(arguments).current_dir(root);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_comes_first_and_tests_are_not_released() {
        let workspace = Workspace::read(&crate::root().unwrap()).unwrap();
        let names: Vec<String> = workspace.released().unwrap().iter().map(|one| text(&one["name"])).collect();
        let at = |name: &str| names.iter().position(|one| one == name);
        assert!(at("twill-graph") < at("twill-exact") && at("twill-exact") < at("twill-cli"), "{names:?}");
        assert!(at("serde").is_some() && at("pyo3").is_some());
        for other in ["twill-fuzz", "xtask", "proptest", "insta", "divan"] {
            assert_eq!(at(other), None, "{other}");
        }
    }
}
