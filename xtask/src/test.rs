//! `cargo xtask test`: what a change has to pass, in minutes; `--all` adds what takes longer, as continuous integration
//! runs it, and `--rest` is what `--all` adds.

use crate::environment::{Environment, has_browser, has_cargo, system_python};
use crate::steps::{Step, Steps};
use crate::{playground, root, target};
use std::env;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

/// Which tests to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Formatting, unit tests with lints, the Python package, the book, the page.
    Essential,
    /// Everything there is.
    All,
    /// What is in `All` and not in `Essential`, which ran just before.
    Rest,
}

impl Part {
    /// What the arguments after `test` ask for.
    ///
    /// # Errors
    ///
    /// What may be asked for.
    pub fn of(arguments: &[String]) -> Result<Self, String> {
        match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [] => Ok(Self::Essential),
            ["--all"] => Ok(Self::All),
            ["--rest"] => Ok(Self::Rest),
            _ => Err("usage: cargo xtask test [--all | --rest]; --rest is what --all adds".into()),
        }
    }

    fn has(self, essential: bool) -> bool {
        match self {
            Self::Essential => essential,
            Self::All => true,
            Self::Rest => !essential,
        }
    }
}

/// The files of a folder that a step has.
enum Files {
    All,
    /// Those of this pattern: another step has the others.
    Only(&'static str),
    /// Those that are not of this pattern, by pytest.
    But(&'static str),
}

/// A suite in Python, which neither needs both cores nor measures time.
struct Suite {
    folder: &'static str,
    files: Files,
    pytest: bool,
    essential: bool,
}

impl Suite {
    fn name(&self) -> String {
        match self.files {
            Files::Only(files) => format!("{}/{files}", self.folder),
            Files::But(ignored) => format!("{} but {ignored}", self.folder),
            Files::All => self.folder.to_owned(),
        }
    }
}

const fn suite(folder: &'static str, pytest: bool, essential: bool) -> Suite {
    Suite { folder, files: Files::All, pytest, essential }
}

/// A folder of pytest's without files that another step has.
const fn suite_but(folder: &'static str, ignored: &'static str) -> Suite {
    Suite { folder, files: Files::But(ignored), pytest: true, essential: true }
}

/// A part of a folder: it takes longer than the other lane has work for, or needs what only `--rest` makes.
const fn part_of(folder: &'static str, files: &'static str, pytest: bool) -> Suite {
    Suite { folder, files: Files::Only(files), pytest, essential: false }
}

/// The playground's tests.
const PLAYGROUND: &str = "test_playground.py";
const PLAYGROUND_ELSEWHERE: &str = "*/test_playground.py";

/// The longest first.
const SUITES: [Suite; 13] = [
    part_of("tests/runtime", "test_cuda*.py", false),
    part_of("tests/runtime", "test_[!c]*.py", false),
    suite("tests/hostile", false, false),
    // It mostly waits for the browser, and leaves its core to others.
    suite_but("tests/browser", PLAYGROUND_ELSEWHERE),
    suite_but("tests/python", "*/test_[!a-j]*.py"),
    suite_but("tests/python", "*/test_[a-j]*.py"),
    suite("tests/docs", false, true),
    suite("tests/newcomer", false, true),
    part_of("tests/browser", PLAYGROUND, true),
    suite("tests/cross_check", false, false),
    suite("tests/perfetto", false, false),
    suite("tests/loaders", false, false),
    suite("bench", false, false),
];

/// Features of twill-py with which it is made of what the tests have built.
const PACKAGE: &str = "command,as_tested";

/// How many random problems have their certificates checked.
const CERTIFICATES: &str = "12";

/// Variants of the model to compare with Z3: number of problems, seed, options for Z3 and for twill. Our own comes
/// last.
const VARIANTS: [(&str, &str, &str, &[&str]); 4] = [
    (
        "8",
        "5",
        r#"{"exclusive_issue": false, "concurrency_window": "literal"}"#,
        &["--twill-argument=--exclusive-issue=off", "--twill-argument=--concurrency-window=literal"],
    ),
    (
        "8",
        "6",
        r#"{"consumer_registers": false, "cross_group_registers": false}"#,
        &["--twill-argument=--consumer-registers=off", "--twill-argument=--cross-group-registers=off"],
    ),
    ("8", "7", r#"{"warp_assignment": "by_sub_tile"}"#, &["--twill-argument=--warp-assignment=by-sub-tile"]),
    ("24", "0", "{}", &[]),
];

/// Runs a part. What is missing is said first; what does not need it runs.
///
/// # Errors
///
/// That something failed, or that nothing can be run.
pub fn test(part: Part) -> Result<(), String> {
    let root = root()?;
    let mut steps = Steps::new(target(&root).join("xtask"));
    let mut present = |name: &str, there: bool, how: &str| {
        if !there {
            steps.skip(name, how);
        }
        there
    };
    let formatting = part.has(true) && present("formatting", has_cargo("fmt"), "rustup component add rustfmt");
    // Clippy takes the compiler's place where it builds tests: checking all of it by itself takes another two minutes.
    let lints = present("lints", has_cargo("clippy") && has_clippy_driver(), "rustup component add clippy");
    let licences = part.has(false) && {
        // Building it takes longer than all tests.
        present("licences and sources", has_cargo("deny"), "cargo install cargo-deny --locked")
    };
    let browser = present("tests/browser", has_browser(), "install Chromium, or name it in CHROMIUM");
    let wasm = part.has(false) && browser && present("playground", playground::has_target(), playground::HOW);

    system_python()?;

    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
        command.args(arguments).current_dir(&root);
        linted(command, lints)
    };
    if formatting {
        steps.run(Step::new("formatting", cargo(&["fmt", "--all", "--check"])));
    }
    let tests = ["test", "--workspace", "--locked", "--no-fail-fast"];
    // The whole workspace each time: with fewer packages some of what they need has other features, and is built again.
    let (name, what): (&str, &[&str]) = match part {
        Part::Essential => ("unit tests", &["--lib", "--bins"]),
        Part::All => ("Rust tests", &["--lib", "--bins", "--tests"]),
        // The unit tests ran just before.
        Part::Rest => ("Rust tests", &["--test", "*"]),
    };
    let with = if lints { " with lints" } else { "" };
    // Nothing runs benchmarks and examples here.
    let others: &[&str] = if part.has(false) { &["--benches", "--examples"] } else { &[] };
    let build = cargo(&[&tests[..], what, others, &["--no-run"]].concat());
    // Downloads wait for the network, and need no core meanwhile.
    let (built, environment) = thread::scope(|scope| {
        let environment = scope.spawn(|| Environment::new(&root).inspect_err(|why| eprintln!("xtask: {why}")));
        let built = steps.run(Step::new(format!("{name} are built{with}"), build));
        (built, environment.join().unwrap_or_else(|_| Err("its thread panicked".into())))
    });
    let environment = steps.attempt("Python environment", environment);
    let run = Step::new(name, cargo(&[&tests[..], what].concat()));
    let mut beside = Vec::new();
    if part.has(false) {
        // They leave half a core to what needs Python.
        if built {
            beside.push(run);
        }
        steps.run(Step::new("documentation tests", cargo(&[&tests[..], &["--doc"]].concat())));
    } else if built {
        steps.run(run);
    }
    if licences {
        steps.run(Step::new("licences and sources", cargo(&["deny", "check", "licenses", "bans", "sources"])));
    }
    if let Some(environment) = environment {
        if wasm {
            let made = Instant::now();
            let result = playground::playground();
            steps.count("playground", result, &format!("{:.0} s", made.elapsed().as_secs_f64()));
        }
        python(&mut steps, part, &root, &environment, Present { lints, browser }, beside)?;
    } else {
        steps.skip("what needs Python", "the environment could not be made");
        steps.side_by_side(beside, 1);
    }
    steps.close()
}

/// Whether the compiler that looks for lints is on the path, where Cargo looks for it.
fn has_clippy_driver() -> bool {
    Command::new("clippy-driver").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Has clippy compile the workspace's own crates, if there is one, as the compiler does but for its own optimisations before
/// LLVM's (`mir-opt-level=0`). What is built again has to be built so as well.
fn linted(mut command: Command, lints: bool) -> Command {
    if lints {
        command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    }
    command
}

/// What is there that steps have in common.
#[derive(Clone, Copy)]
struct Present {
    lints: bool,
    browser: bool,
}

/// What needs Python: the kernels printed anew by Triton, the package as it is installed, the suites and the page's check
/// side by side with what else there is, and the cross-checks against Z3.
fn python(
    steps: &mut Steps,
    part: Part,
    root: &Path,
    environment: &Environment,
    Present { lints, browser }: Present,
    mut beside: Vec<Step>,
) -> Result<(), String> {
    let python = |arguments: &[&str]| environment.python(arguments);
    if part.has(false) {
        steps.run(Step::new("examples", python(&["examples/print_ttir.py", "--check"])));
    }
    // The command as the package installs it: a second build with optimisations would take minutes.
    let path = root.join(".venv").join("bin").join("twill");
    let twill = path.to_str().ok_or("the path of the checkout is not UTF-8")?;
    if part.has(true) {
        // With the profile and the features of the tests, whose dependences are built.
        let built = format!("--config-settings=build-args=--profile=dev --features={PACKAGE}");
        let pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", &built, "."];
        if !steps.run(Step::new("Python package", linted(python(&pip), lints))) {
            steps.skip("what needs the Python package", "it could not be built");
            steps.side_by_side(beside, 1);
            return Ok(());
        }
    } else if !path.exists() {
        steps.side_by_side(beside, 1);
        return Err(format!("{twill} is missing: --rest follows `cargo xtask test`"));
    }
    // A third has the time that others wait: for a browser, for the last test of a program.
    let lanes = 3;
    let is_built = !beside.is_empty();
    let suites = &mut beside;
    // Suites of `--rest` begin the command a thousand times: that of the Rust tests, if it was built, which needs no Python.
    let tested = target(root).join("debug").join("twill");
    let tested = if is_built && tested.exists() { tested.to_str().unwrap_or(twill) } else { twill };
    let cache = target(root).join("xtask").join("cache");
    let _ = std::fs::remove_dir_all(&cache);
    for suite in SUITES.iter().filter(|suite| part.has(suite.essential) && (browser || suite.folder != "tests/browser"))
    {
        let mut command = match (suite.pytest, &suite.files) {
            (_, Files::But(glob)) => python(&["-m", "pytest", "--quiet", suite.folder, "--ignore-glob", glob]),
            (true, Files::All) => python(&["-m", "pytest", "--quiet", suite.folder]),
            (true, Files::Only(files)) => python(&["-m", "pytest", "--quiet", &format!("{}/{files}", suite.folder)]),
            (false, Files::All) => python(&["-m", "unittest", "discover", "--start-directory", suite.folder]),
            (false, Files::Only(files)) => {
                python(&["-m", "unittest", "discover", "--start-directory", suite.folder, "--pattern", files])
            }
        };
        command.env("TWILL_COMMAND", if suite.essential { twill } else { tested });
        // What somebody's cache has changes no test.
        command.env("TWILL_CACHE", &cache);
        suites.push(Step::new(suite.name(), command));
    }
    if part.has(true) {
        let check = r#"node "$0" ci --no-audit --no-fund; node "$0" run check"#;
        suites.push(Step::new("page", environment.npm("crates/twill-report/page", check)?));
    }
    steps.side_by_side(beside, lanes);
    if part.has(false) {
        cross_checks(steps, &python, tested);
    }
    Ok(())
}

/// Certificates, exported questions and answers compared with those of Z3, which need both cores.
fn cross_checks(steps: &mut Steps, python: &dyn Fn(&[&str]) -> Command, twill: &str) {
    let certificates = ["tests/cross_check/certificates.py", "--count", CERTIFICATES, "--twill", twill];
    steps.run(Step::new("certificates", python(&certificates)));
    let fixed = ["--seed", "21", "--twill-argument=--warp-assignment=by-sub-tile"];
    steps.run(Step::new("certificates by sub-tile", python(&[&certificates[..], &fixed].concat())));
    let exported = ["tests/cross_check/exported.py", "--count", "16", "--jobs", "2", "--twill", twill];
    steps.run(Step::new("exported questions", python(&exported)));
    for (count, seed, options, flags) in VARIANTS {
        let mut arguments = vec!["tests/cross_check/cross_check.py", "--jobs", "2", "--twill", twill];
        arguments.extend(["--count", count, "--seed", seed, "--options", options]);
        arguments.extend(flags);
        steps.run(Step::new(format!("cross-check {options}"), python(&arguments)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_and_the_essential_are_all() {
        for essential in [true, false] {
            assert!(Part::All.has(essential));
            assert_ne!(Part::Essential.has(essential), Part::Rest.has(essential));
        }
    }

    #[test]
    fn other_arguments_are_refused() {
        let of = |words: &[&str]| Part::of(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        assert_eq!((of(&[]), of(&["--all"]), of(&["--rest"])), (Ok(Part::Essential), Ok(Part::All), Ok(Part::Rest)));
        assert!(of(&["--al"]).unwrap_err().contains("--all"));
        assert!(of(&["--all", "--rest"]).is_err());
    }

    #[test]
    fn no_file_of_a_folder_in_parts_is_left_out() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/runtime");
        let names = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        // As the patterns of its parts have it.
        let left_out = |name: &String| name.starts_with("test_c") && !name.starts_with("test_cuda");
        assert_eq!(names.filter(left_out).count(), 0);
    }

    /// With other features of one macro, half of the workspace would be built a second time.
    #[test]
    fn the_package_is_made_of_what_the_tests_have_built() {
        let root = root().unwrap();
        let features = |arguments: &[&str]| -> std::collections::BTreeSet<String> {
            let mut tree = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
            tree.args(["tree", "--locked", "--prefix=none", "--no-dedupe", "--format={p} {f}"]).args(arguments);
            let output = tree.current_dir(&root).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
        };
        let package = features(&["--package=twill-py", "--features", PACKAGE, "--edges=normal,build"]);
        let tests = features(&["--workspace", "--edges=normal,build,dev"]);
        let others: Vec<_> = package.difference(&tests).filter(|one| !one.starts_with("twill-py ")).collect();
        assert!(package.len() > 50 && others.is_empty(), "{others:?}");
    }

    #[test]
    fn every_suite_is_a_folder() {
        let root = root().unwrap();
        for suite in SUITES {
            assert!(root.join(suite.folder).is_dir(), "{}", suite.folder);
        }
    }
}
