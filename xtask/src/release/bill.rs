//! The bill of materials, in CycloneDX 1.5: what the command, the Python package and the report's page are made of.
//!
//! The crates that are linked (Cargo.lock has their hashes), the npm packages in the page's script, and what the extras of the
//! Python package ask pip for. The same lock files give the same bytes: there is no date and no serial number in it.

use super::workspace::{Workspace, text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "crates/twill-report/page/package-lock.json";

/// Writes it into a folder; where, and how many components it has.
///
/// # Errors
///
/// What cannot be read or written.
pub fn write(root: &Path, folder: &Path) -> Result<(PathBuf, usize), String> {
    let workspace = Workspace::read(root)?;
    let bill = bill(root, &workspace)?;
    let path = folder.join(format!("twill-{}.cdx.json", workspace.version));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, format!("{bill:#}\n")));
    written.map_err(|e| format!("{}: {e}", path.display()))?;
    Ok((path, bill["components"].as_array().map_or(0, Vec::len)))
}

fn bill(root: &Path, workspace: &Workspace) -> Result<Value, String> {
    let read = |name: &str| fs::read_to_string(root.join(name)).map_err(|e| format!("{name}: {e}"));
    let checksums = checksums(&read("Cargo.lock")?)?;
    let released = workspace.released()?;
    let mut components: Vec<Value> = released.iter().map(|one| of_crate(workspace, one, &checksums)).collect();
    let mut needs: Vec<Value> = released
        .iter()
        .map(
            |one| json!({"ref": reference(one), "dependsOn": workspace.linked(one).map(reference).collect::<Vec<_>>()}),
        )
        .collect();
    let page = npm_packages(root)?;
    components.extend(page.iter().map(|(name, entry)| of_npm(name, entry)));
    components.extend(python_packages(&read("pyproject.toml")?)?.iter().map(of_python));
    let top = format!("twill@{}", workspace.version);
    let ends = released.iter().filter(|one| ["twill-cli", "twill-py"].contains(&text(&one["name"]).as_str()));
    let mut direct: Vec<String> = ends.map(|one| reference(one)).collect();
    direct.extend(page.iter().map(|(name, entry)| npm_url(name, entry)));
    needs.push(json!({"ref": top, "dependsOn": direct}));
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": top,
                "name": "twill",
                "version": workspace.version,
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
            },
            "tools": {"components": [{"type": "application", "name": "cargo xtask release", "version": workspace.version}]},
        },
        "components": components,
        "dependencies": needs,
    }))
}

fn of_crate(workspace: &Workspace, package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let (name, version) = (text(&package["name"]), text(&package["version"]));
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(package),
        "name": name,
        "version": version,
        // Before SPDX had expressions, crates wrote a slash.
        "licenses": [{"expression": text(&package["license"]).replace('/', " OR ")}],
    });
    if !workspace.is_member(package) {
        component["purl"] = format!("pkg:cargo/{name}@{version}").into();
    }
    if let Some(checksum) = checksums.get(&(name, version)) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}

fn reference(package: &Value) -> String {
    format!("{}@{}", text(&package["name"]), text(&package["version"]))
}

fn checksums(lock: &str) -> Result<BTreeMap<(String, String), String>, String> {
    let table: toml::Table = lock.parse().map_err(|e| format!("Cargo.lock: {e}"))?;
    let packages = table.get("package").and_then(toml::Value::as_array).ok_or("Cargo.lock has no packages")?;
    let of = |package: &toml::Value| {
        let field = |name: &str| Some(package.get(name)?.as_str()?.to_owned());
        Some(((field("name")?, field("version")?), field("checksum")?))
    };
    Ok(packages.iter().filter_map(of).collect())
}

/// Packages of npm that are in the page's script, not those that only make it; by name.
///
/// # Errors
///
/// That the lock file cannot be read.
pub fn npm_packages(root: &Path) -> Result<Vec<(String, Value)>, String> {
    let lock = fs::read_to_string(root.join(PAGE)).map_err(|e| format!("{PAGE}: {e}"))?;
    let lock: Value = serde_json::from_str(&lock).map_err(|e| format!("{PAGE}: {e}"))?;
    let all = lock["packages"].as_object().ok_or_else(|| format!("{PAGE} has no packages"))?;
    let own = all.iter().filter(|(_, entry)| entry["dev"] != true);
    Ok(own.filter_map(|(path, entry)| Some((path.rsplit_once("node_modules/")?.1.to_owned(), entry.clone()))).collect())
}

fn npm_url(name: &str, entry: &Value) -> String {
    format!("pkg:npm/{}@{}", name.replace('@', "%40"), text(&entry["version"]))
}

fn of_npm(name: &str, entry: &Value) -> Value {
    let url = npm_url(name, entry);
    let mut component = json!({
        "type": "library",
        "bom-ref": url,
        "name": name,
        "version": text(&entry["version"]),
        "licenses": [{"expression": text(&entry["license"])}],
        "purl": url,
    });
    let digest = entry["integrity"].as_str().and_then(|text| STANDARD.decode(text.strip_prefix("sha512-")?).ok());
    if let Some(digest) = digest {
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        component["hashes"] = json!([{"alg": "SHA-512", "content": hex}]);
    }
    component
}

/// Requirements of the extras, each with the names of its extras.
fn python_packages(project: &str) -> Result<Vec<(String, Vec<String>)>, String> {
    let table: toml::Table = project.parse().map_err(|e| format!("pyproject.toml: {e}"))?;
    let project = table.get("project").ok_or("pyproject.toml has no [project]")?;
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut take = |extra: &str, list: Option<&toml::Value>| {
        for one in list.and_then(toml::Value::as_array).into_iter().flatten().filter_map(toml::Value::as_str) {
            // An extra of the package itself is no other package.
            if !one.starts_with("twill-gpu") {
                found.entry(one.to_owned()).or_default().push(extra.to_owned());
            }
        }
    };
    take("", project.get("dependencies"));
    for (extra, list) in project.get("optional-dependencies").and_then(toml::Value::as_table).into_iter().flatten() {
        take(extra, Some(list));
    }
    Ok(found.into_iter().collect())
}

fn of_python((requirement, extras): &(String, Vec<String>)) -> Value {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = requirement.chars().take_while(|c| is_part(*c)).collect();
    let is_needed = extras.iter().any(String::is_empty);
    json!({
        "type": "library",
        "bom-ref": format!("pypi:{requirement}"),
        "name": name,
        "scope": if is_needed { "required" } else { "optional" },
        "purl": format!("pkg:pypi/{}", name.to_lowercase().replace('_', "-")),
        "properties": [
            {"name": "twill:requirement", "value": requirement},
            {"name": "twill:extras", "value": extras.join(",")},
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn it_has_what_is_linked_bundled_and_asked_for() {
        let root = crate::root().unwrap();
        let workspace = Workspace::read(&root).unwrap();
        let bill = bill(&root, &workspace).unwrap();
        let components = bill["components"].as_array().unwrap();
        let urls: Vec<String> = components.iter().map(|one| text(&one["purl"])).collect();
        for start in
            ["pkg:cargo/serde@1.", "pkg:cargo/pyo3@", "pkg:npm/preact@", "pkg:npm/%40dagrejs/dagre@", "pkg:pypi/triton"]
        {
            assert!(urls.iter().any(|url| url.starts_with(start)), "{start}");
        }
        for other in ["pkg:npm/esbuild", "pkg:cargo/proptest", "pkg:pypi/twill-gpu"] {
            assert!(!urls.iter().any(|url| url.starts_with(other)), "{other}");
        }
        // A crate of the registry has a hash and a licence; each reference is there once.
        for one in components.iter().filter(|one| text(&one["purl"]).starts_with("pkg:cargo")) {
            assert_eq!(text(&one["hashes"][0]["content"]).len(), 64, "{one}");
            assert!(!text(&one["licenses"][0]["expression"]).is_empty(), "{one}");
        }
        let names: BTreeSet<String> = components.iter().map(|one| text(&one["bom-ref"])).collect();
        assert_eq!(names.len(), components.len());
        for need in bill["dependencies"].as_array().unwrap() {
            for other in need["dependsOn"].as_array().unwrap() {
                assert!(names.contains(&text(other)), "{other}");
            }
        }
    }
}
