//! All files state one version, and the changelog says what is new in it.

use super::table::Verdict;
use super::workspace::{Workspace, text};

/// Where the version stands, and that it is one.
///
/// # Errors
///
/// The files that state another one, or none.
pub fn versions(workspace: &Workspace, project: &str, citation: &str, changelog: &str) -> Result<String, String> {
    let version = &workspace.version;
    let mut wrong = Vec::new();
    for package in workspace.members().filter(|package| package["version"] != version.as_str()) {
        wrong.push(format!("crate {}: {}", text(&package["name"]), text(&package["version"])));
    }
    match of_project(project) {
        // maturin takes it from the crate.
        Ok(None) => {}
        Ok(Some(own)) => {
            wrong.push(format!("pyproject.toml has a version of its own, {own}: say dynamic = [\"version\"]"))
        }
        Err(why) => wrong.push(why),
    }
    for (file, stated) in [("CITATION.cff", of_citation(citation)), ("CHANGELOG.md", newest(changelog))] {
        match stated {
            Some(stated) if stated == *version => {}
            Some(stated) => wrong.push(format!("{file}: {stated}")),
            None => wrong.push(format!("{file} states none")),
        }
    }
    if wrong.is_empty() {
        return Ok(format!("{version} in Cargo.toml, pyproject.toml (by maturin), CITATION.cff, CHANGELOG.md"));
    }
    Err(format!("Cargo.toml: {version}\n{}", wrong.join("\n")))
}

/// The changelog's entry for a version. What stands under `Unreleased` would be in no version.
pub fn changelog(version: &str, text: &str) -> Verdict {
    let entries = |title: &str| {
        let lines = text.lines().skip_while(|line| line.strip_prefix("## ").and_then(first_word) != Some(title));
        lines.skip(1).take_while(|line| !line.starts_with("## ")).filter(|line| !line.trim().is_empty()).count()
    };
    match (entries(version), entries("Unreleased")) {
        (0, _) => Verdict::Failed(format!("CHANGELOG.md says nothing under `## {version}`")),
        (_, 0) => Verdict::Passed(format!("## {version}")),
        _ => Verdict::ToDo(format!(
            "CHANGELOG.md has entries under `## Unreleased`: give them a version after {version}, here, in Cargo.toml and in CITATION.cff"
        )),
    }
}

fn of_project(text: &str) -> Result<Option<String>, String> {
    let table: toml::Table = text.parse().map_err(|e| format!("pyproject.toml: {e}"))?;
    let project = table.get("project").ok_or("pyproject.toml has no [project]")?;
    let is_dynamic = project
        .get("dynamic")
        .and_then(toml::Value::as_array)
        .is_some_and(|all| all.iter().any(|one| one.as_str() == Some("version")));
    match project.get("version").and_then(toml::Value::as_str) {
        Some(own) => Ok(Some(own.to_owned())),
        None if is_dynamic => Ok(None),
        None => Err("pyproject.toml states no version".into()),
    }
}

fn of_citation(text: &str) -> Option<String> {
    let stated = text.lines().find_map(|line| line.strip_prefix("version:"))?;
    Some(stated.trim().trim_matches('"').to_owned())
}

/// The first version with a heading.
fn newest(changelog: &str) -> Option<String> {
    let mut titles = changelog.lines().filter_map(|line| line.strip_prefix("## ").and_then(first_word));
    titles.find(|title| *title != "Unreleased").map(str::to_owned)
}

/// `0.2.0` of `[0.2.0] - 2027-01-01`.
fn first_word(title: &str) -> Option<&str> {
    title.split_whitespace().next().map(|word| word.trim_matches(['[', ']']))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROJECT: &str = "[project]\nname = \"x\"\ndynamic = [\"version\"]\n";

    #[test]
    fn another_version_is_named_with_its_file() {
        let workspace = Workspace::read(&crate::root().unwrap()).unwrap();
        let own = workspace.version.clone();
        let (citation, changelog) =
            (format!("version: {own}\n"), format!("# C\n\n## Unreleased\n\n## {own}\n\nFirst.\n"));
        assert!(versions(&workspace, PROJECT, &citation, &changelog).unwrap().starts_with(&own));
        let why = versions(&workspace, PROJECT, "version: \"9.9.9\"\n", "# C\n").unwrap_err();
        assert!(why.contains("CITATION.cff: 9.9.9") && why.contains("CHANGELOG.md states none"), "{why}");
        let fixed = "[project]\nname = \"x\"\nversion = \"0.0.1\"\n";
        assert!(versions(&workspace, fixed, &citation, &changelog).unwrap_err().contains("0.0.1"));
        assert!(versions(&workspace, "[project]\n", &citation, &changelog).unwrap_err().contains("no version"));
    }

    #[test]
    fn a_version_needs_an_entry() {
        let text = "# C\n\n## [0.2.0] - 2027-01-01\n\n- New.\n\n## 0.1.0\n\n";
        assert!(matches!(changelog("0.2.0", text), Verdict::Passed(_)));
        assert!(matches!(changelog("0.1.0", text), Verdict::Failed(_)));
        assert!(matches!(changelog("0.3.0", text), Verdict::Failed(_)));
        let more = text.replace("# C\n", "# C\n\n## Unreleased\n\n- Later.\n");
        assert!(matches!(changelog("0.2.0", &more), Verdict::ToDo(_)));
        let empty = text.replace("# C\n", "# C\n\n## Unreleased\n");
        assert!(matches!(changelog("0.2.0", &empty), Verdict::Passed(_)));
    }
}
