//! `cargo xtask release --dry-run`: what has to hold of a release, and the files that one would have. Nothing is published.

mod agreement;
mod bill;
mod licences;
mod packages;
mod table;
mod workspace;

pub use bill::write as bill;

use crate::environment::system_python;
use crate::{has_cargo, root, target, wheel};
use std::path::{Path, PathBuf};
use std::process::Command;
use table::{Table, Verdict};
use workspace::Workspace;

/// Parts that may be asked for by themselves, in their order; the slow one comes last.
const PARTS: [&str; 6] = ["versions", "licences", "sbom", "links", "crates", "wheels"];

/// What is done by hand once all of this has passed.
const BY_HAND: &str = "  git tag -s vVERSION && git push origin vVERSION
  python -m twine upload DIST/*.whl    # the Python package
  cargo publish -p CRATE               # each crate, in the order that --dry-run lists
  and DIST/*.cdx.json goes next to the wheels of the tagged release";

/// Where it looks, and where it puts files.
struct Release {
    root: PathBuf,
    /// `target/dist`.
    dist: PathBuf,
    workspace: Workspace,
}

impl Release {
    fn by_hand(&self) -> String {
        let dist = shown(&self.root, &self.dist);
        BY_HAND.replace("VERSION", &self.workspace.version).replace("DIST", &dist)
    }
}

/// Checks all parts, or those that `--only` names, and prints a table of what became of each.
///
/// # Errors
///
/// That something failed, or that something else was asked for than to try.
pub fn release(arguments: &[String]) -> Result<(), String> {
    let usage = format!("usage: cargo xtask release --dry-run [--only {}]", PARTS.join(","));
    let root = root()?;
    let release = Release { dist: target(&root).join("dist"), workspace: Workspace::read(&root)?, root };
    let parts = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => {
            let first =
                "releases are published by hand; `cargo xtask release --dry-run` checks everything and makes the files";
            return Err(format!("{first}. Then:\n{}", release.by_hand()));
        }
        ["--dry-run"] => PARTS.to_vec(),
        ["--dry-run", "--only", some] => some.split(',').collect(),
        _ => return Err(usage),
    };
    if let Some(other) = parts.iter().find(|part| !PARTS.contains(part)) {
        return Err(format!("there is no part `{other}`; {usage}"));
    }
    let mut table = Table::default();
    for part in PARTS {
        if !parts.contains(&part) {
            table.row(part, Verdict::Skipped("not asked for".into()));
            continue;
        }
        eprintln!("xtask: {part}");
        match part {
            "versions" => versions(&release, &mut table),
            "licences" => licences(&release, &mut table),
            "sbom" => table.row("bill of materials", Verdict::of(bill_of(&release))),
            "links" => links(&release, &mut table),
            "crates" => packages::check(&release, &mut table),
            _ => wheels(&release, &mut table),
        }
    }
    print!("{}", table.text());
    println!("\nNothing was published. By hand, once nothing is left to do:\n{}", release.by_hand());
    table.result()
}

fn versions(release: &Release, table: &mut Table) {
    let read = |name: &str| std::fs::read_to_string(release.root.join(name)).map_err(|e| format!("{name}: {e}"));
    let files = || Ok((read("pyproject.toml")?, read("CITATION.cff")?, read("CHANGELOG.md")?));
    match files() {
        Err(why) => table.row("versions", Verdict::Failed(why)),
        Ok((project, citation, changelog)) => {
            let version = &release.workspace.version;
            let agree = agreement::versions(&release.workspace, &project, &citation, &changelog);
            table.row("versions", Verdict::of(agree));
            table.row("changelog", agreement::changelog(version, &changelog));
        }
    }
}

fn licences(release: &Release, table: &mut Table) {
    table.row("licences of crates", Verdict::of(licences::of_crates(&release.root)));
    table.row("licences of the page", Verdict::of(licences::of_page(&release.root)));
    if !has_cargo("deny") {
        let how = "cargo-deny is not installed: cargo install cargo-deny --locked";
        return table.row("cargo deny", Verdict::Skipped(how.into()));
    }
    let mut deny = release.workspace.cargo(&["deny", "check", "licenses", "bans", "sources"]);
    table.row("cargo deny", Verdict::of(crate::succeed(&mut deny).map(|()| "licences, bans, sources".into())));
}

fn bill_of(release: &Release) -> Result<String, String> {
    let (path, count) = bill::write(&release.root, &release.dist)?;
    Ok(format!("{count} components in {}", shown(&release.root, &path)))
}

/// The tests of the documentation that need no package and take a moment.
fn links(release: &Release, table: &mut Table) {
    for (name, file) in [("links of the book", "test_links.py"), ("terms of the book", "test_terms.py")] {
        let result = system_python().and_then(|python| {
            let words = ["-m", "unittest", "discover", "--start-directory", "tests/docs", "--pattern", file];
            crate::succeed(Command::new(python).args(words).current_dir(&release.root))
        });
        table.row(name, Verdict::of(result.map(|()| format!("tests/docs/{file}"))));
    }
}

/// A wheel for each processor of GPU servers.
fn wheels(release: &Release, table: &mut Table) {
    // Those of another version are no part of this one.
    for entry in std::fs::read_dir(&release.dist).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|e| e == "whl") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    let mut native = None;
    for arch in wheel::ARCHITECTURES {
        let name = format!("wheel {arch}");
        if let Some(why) = wheel::missing(arch) {
            table.row(&name, Verdict::Skipped(format!("not built: {why}")));
            continue;
        }
        let made = wheel::portable(&release.root, arch, native.as_deref(), &release.dist);
        let verdict = made.map(|made| {
            let said = format!("{}, {}", shown(&release.root, &made.wheel), made.said);
            native = native.take().or(made.pages);
            said
        });
        table.row(&name, Verdict::of(verdict));
    }
}

fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_dry_run_it_says_what_is_done_by_hand() {
        let why = release(&[]).unwrap_err();
        assert!(why.contains("by hand") && why.contains("--dry-run") && why.contains("twine upload"), "{why}");
        assert!(release(&["--publish".into()]).unwrap_err().starts_with("usage: "));
        let why = release(&["--dry-run".into(), "--only".into(), "version".into()]).unwrap_err();
        assert!(why.contains("no part `version`") && why.contains("versions"), "{why}");
    }

    #[test]
    fn all_files_state_one_version() {
        release(&["--dry-run".into(), "--only".into(), "versions".into()]).unwrap();
    }
}
