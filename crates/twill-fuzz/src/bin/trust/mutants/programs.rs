//! The programs of a package's tests with its defects, built of a copy of the checkout.

use super::listed::Mutant;
use super::schemata::{self, NUMBER};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What was built: it can be tried where there is no compiler.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Built {
    /// Names of the defects that do not compile.
    pub unviable: Vec<String>,
    pub variants: Vec<Variant>,
}

/// Programs, and the defects that they can have.
#[derive(Debug, Serialize, Deserialize)]
pub struct Variant {
    /// Name of a test's target, `lib` for unit tests, and the program.
    pub programs: Vec<(String, PathBuf)>,
    /// Numbers and names; a program without a number in its environment has none, or its only one.
    pub mutants: Vec<(u32, String)>,
}

/// Builds the tests of these packages with these defects, which are in the first. `folder` keeps the copy of the checkout and
/// the programs.
pub fn build(root: &Path, folder: &Path, packages: &[&str], mutants: &[Mutant]) -> Result<Built, String> {
    let tree = folder.join("tree");
    let package = packages.first().copied().unwrap_or_default();
    copy(root, &tree)?;
    let library = tree.join("crates").join(package).join("src/lib.rs");
    let text = read(&library)? + NUMBER;
    write(&library, &text)?;
    let numbered: Vec<(u32, &Mutant)> = (1..).zip(mutants).collect();
    let name = |number: u32| mutants[number as usize - 1].name.clone();
    let mut unviable = BTreeSet::new();
    // Defects that do not compile are left out, until the rest does.
    let (programs, with) = loop {
        let with = all(root, &tree, &numbered, &unviable)?;
        match tests(folder, &tree, packages)? {
            Compiled::Programs(programs) => break (programs, with),
            Compiled::Errors(errors) => {
                let wrong: BTreeSet<u32> = errors.iter().filter_map(|error| with.at(error)).collect();
                if wrong.is_empty() {
                    let said: Vec<&str> = errors.iter().map(|error| error.said.as_str()).collect();
                    return Err(format!("{package} does not compile with defects: {}", said.join("\n")));
                }
                eprintln!("trust: {} defects of {package} do not compile", wrong.len());
                unviable.extend(wrong);
            }
        }
    };
    let chosen = numbered.iter().map(|(number, _)| *number);
    let chosen = chosen.filter(|number| !with.left.contains(number) && !unviable.contains(number));
    let chosen = chosen.map(|number| (number, name(number))).collect();
    let mut built = Built::default();
    built.variants.push(Variant { programs: kept(root, folder, 0, programs)?, mutants: chosen });
    for number in with.left {
        let mutant = &mutants[number as usize - 1];
        let original = read(&root.join(&mutant.file))?;
        all(root, &tree, &numbered, &(1..=mutants.len() as u32).collect())?;
        write(&tree.join(&mutant.file), &schemata::with_one(&original, mutant))?;
        match tests(folder, &tree, packages)? {
            Compiled::Programs(programs) => {
                let programs = kept(root, folder, number, programs)?;
                built.variants.push(Variant { programs, mutants: vec![(number, name(number))] });
            }
            Compiled::Errors(_) => {
                unviable.insert(number);
            }
        }
    }
    built.unviable = unviable.into_iter().map(name).collect();
    Ok(built)
}

/// Which defects are at which lines of which files, and which are not in the programs.
#[derive(Debug, Default)]
struct Within {
    lines: BTreeMap<String, Vec<(std::ops::Range<usize>, u32)>>,
    left: Vec<u32>,
}

impl Within {
    /// The defect at whose lines the compiler stumbles.
    fn at(&self, error: &Error) -> Option<u32> {
        error.places.iter().find_map(|(file, line)| {
            let (_, number) = self.lines.get(file)?.iter().find(|(lines, _)| lines.contains(line))?;
            Some(*number)
        })
    }
}

/// Writes files with all these defects but for some.
fn all(root: &Path, tree: &Path, mutants: &[(u32, &Mutant)], without: &BTreeSet<u32>) -> Result<Within, String> {
    let mut files: BTreeMap<&str, Vec<(u32, &Mutant)>> = BTreeMap::new();
    for (number, mutant) in mutants {
        files.entry(&mutant.file).or_default().push((*number, mutant));
    }
    let mut within = Within::default();
    for (file, mutants) in files {
        let source = schemata::with_all(&read(&root.join(file))?, &mutants, without);
        let text = if file.ends_with("src/lib.rs") { source.text + NUMBER } else { source.text };
        write(&tree.join(file), &text)?;
        within.lines.insert(file.to_owned(), source.lines);
        within.left.extend(source.left);
    }
    Ok(within)
}

/// What the compiler says, and where, the most likely place first.
struct Error {
    said: String,
    places: Vec<(String, usize)>,
}

enum Compiled {
    Programs(Vec<(String, PathBuf)>),
    Errors(Vec<Error>),
}

/// Builds the tests of packages.
fn tests(folder: &Path, tree: &Path, packages: &[&str]) -> Result<Compiled, String> {
    let output = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
        .args(["test", "--no-run", "--locked", "--lib", "--tests", "--message-format=json"])
        .args(packages.iter().map(|package| format!("--package={package}")))
        .args(packages.iter().map(|package| format!("--config=profile.dev.package.{package}.opt-level=2")))
        // Arms of one function are much alike, and nobody reads them.
        .env("RUSTFLAGS", "--cap-lints=allow")
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .current_dir(tree)
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|e| format!("cargo test: {e}"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<Value> = printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if output.status.success() {
        let program = |message: &Value| {
            let path = PathBuf::from(message.get("executable")?.as_str()?);
            let target = message.get("target")?;
            // Unit tests are those of the package with the defects.
            let unit = target["kind"][0] != "test";
            let own = target["src_path"].as_str()?.contains(&format!("/crates/{}/", packages.first()?));
            let name = if unit { "lib" } else { target["name"].as_str()? };
            (own || !unit).then(|| (name.to_owned(), path))
        };
        return Ok(Compiled::Programs(messages.iter().filter_map(program).collect()));
    }
    Ok(Compiled::Errors(messages.iter().filter_map(error).collect()))
}

/// An error among cargo's messages.
fn error(message: &Value) -> Option<Error> {
    let message = message.get("message").filter(|message| message["level"] == "error")?;
    let spans = message["spans"].as_array()?;
    let (primary, others): (Vec<&Value>, Vec<&Value>) = spans.iter().partition(|span| span["is_primary"] == true);
    let place = |span: &Value| Some((span["file_name"].as_str()?.to_owned(), span["line_start"].as_u64()? as usize));
    let places = primary.into_iter().chain(others).filter_map(place).collect();
    Some(Error { said: message["rendered"].as_str().unwrap_or_default().to_owned(), places })
}

/// Takes programs out of the way of the next build; their paths from the top of the checkout.
fn kept(
    root: &Path,
    folder: &Path,
    variant: u32,
    programs: Vec<(String, PathBuf)>,
) -> Result<Vec<(String, PathBuf)>, String> {
    let into = folder.join("programs").join(variant.to_string());
    std::fs::create_dir_all(&into).map_err(|e| format!("{}: {e}", into.display()))?;
    let keep = |(name, path): (String, PathBuf)| {
        let to = into.join(&name);
        // A program that still runs cannot be written over.
        let _ = std::fs::remove_file(&to);
        std::fs::copy(&path, &to).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok((name, to.strip_prefix(root).map_or(to.clone(), Path::to_path_buf)))
    };
    programs.into_iter().map(keep).collect()
}

/// Copies what git knows of, or would.
fn copy(root: &Path, tree: &Path) -> Result<(), String> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|e| format!("git: {e}"))?;
    let _ = std::fs::remove_dir_all(tree);
    for file in String::from_utf8_lossy(&listed.stdout).split('\0').filter(|file| !file.is_empty()) {
        let (from, to) = (root.join(file), tree.join(file));
        if let Some(parent) = to.parent().filter(|_| from.is_file()) {
            std::fs::create_dir_all(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
            std::fs::copy(&from, &to).map_err(|e| format!("{}: {e}", from.display()))?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
