//! Every crate has a licence that `deny.toml` allows, and every package in the page's script stands in its LICENCES.

use super::bill::npm_packages;
use serde_json::Value;
use spdx::{Expression, ParseMode};
use std::path::Path;
use std::process::Command;

/// The crates of the lock file, those of tests as well.
///
/// # Errors
///
/// Those whose licence is missing, unknown or not allowed.
pub fn of_crates(root: &Path) -> Result<String, String> {
    let read = |name: &str| std::fs::read_to_string(root.join(name)).map_err(|e| format!("{name}: {e}"));
    let allowed = allowed(&read("deny.toml")?)?;
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    command.args(["metadata", "--format-version=1", "--locked", "--all-features"]).current_dir(root);
    let output = command.output().map_err(|e| format!("cargo metadata: {e}"))?;
    let said: Value = serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))?;
    let packages = said["packages"].as_array().ok_or("cargo metadata has no packages")?;
    let wrong: Vec<String> = packages.iter().filter_map(|package| complaint(package, &allowed)).collect();
    if wrong.is_empty() { Ok(format!("{} crates", packages.len())) } else { Err(wrong.join("\n")) }
}

fn allowed(deny: &str) -> Result<Vec<String>, String> {
    let table: toml::Table = deny.parse().map_err(|e| format!("deny.toml: {e}"))?;
    let list = table.get("licenses").and_then(|one| one.get("allow")).and_then(toml::Value::as_array);
    let words = list.ok_or("deny.toml has no licenses.allow")?.iter().filter_map(toml::Value::as_str);
    Ok(words.map(str::to_owned).collect())
}

fn complaint(package: &Value, allowed: &[String]) -> Option<String> {
    let name = format!("{} {}", package["name"].as_str()?, package["version"].as_str()?);
    let Some(licence) = package["license"].as_str() else { return Some(format!("{name}: no licence")) };
    match Expression::parse_mode(licence, ParseMode::LAX) {
        Err(_) => Some(format!("{name}: {licence} is no SPDX expression")),
        Ok(expression) => {
            let is_allowed = expression.evaluate(|one| allowed.iter().any(|word| *word == one.to_string()));
            (!is_allowed).then(|| format!("{name}: {licence} is not what deny.toml allows"))
        }
    }
}

/// The packages in the page's script, and their licences' texts.
///
/// # Errors
///
/// Those without one.
pub fn of_page(root: &Path) -> Result<String, String> {
    let file = root.join("crates/twill-report/page/LICENCES");
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let packages = npm_packages(root)?;
    let heading = |one: &(String, Value)| {
        let (name, entry) = one;
        format!("{name} {} ({})", entry["version"].as_str().unwrap_or("?"), entry["license"].as_str().unwrap_or("?"))
    };
    let missing: Vec<String> =
        packages.iter().map(heading).filter(|one| !text.lines().any(|line| line == one)).collect();
    match missing.is_empty() {
        true => Ok(format!("{} packages in its LICENCES", packages.len())),
        false => Err(format!("not in crates/twill-report/page/LICENCES: {}", missing.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint_of(licence: Value) -> Option<String> {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
        complaint(&serde_json::json!({"name": "a", "version": "1.0.0", "license": licence}), &allowed)
    }

    #[test]
    fn one_choice_has_to_be_allowed_and_all_of_what_goes_together() {
        for fine in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0-only OR MIT",
            "(MIT OR Zlib) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert_eq!(complaint_of(fine.into()), None, "{fine}");
        }
        for wrong in ["GPL-3.0-only", "MIT AND Zlib", "no licence", ""] {
            assert!(complaint_of(wrong.into()).unwrap().starts_with("a 1.0.0: "), "{wrong}");
        }
        assert_eq!(complaint_of(Value::Null).unwrap(), "a 1.0.0: no licence");
    }
}
