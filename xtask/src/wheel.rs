//! `cargo xtask wheel`: the wheel of the Python package, and what becomes of it where there is no Rust. It has the manual pages
//! and the completions of the command.

use crate::environment::system_python;
use crate::playground;
use crate::{root, succeed, target};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What builds it, as `[build-system]` of pyproject.toml has it.
const MATURIN: &str = "maturin>=1.9,<2";

/// What the installed package has to do, in a folder that is not the checkout.
const EXERCISE: &str = r#"
import importlib.metadata, pathlib, sys
import twill_gpu
package = pathlib.Path(twill_gpu.__file__).resolve()
assert pathlib.Path(sys.prefix).resolve() in package.parents, package
found = twill_gpu.schedule(sys.argv[1], machine="h200")
print(f"wheel: {found.ii} cycles an iteration, {found.status}; kernel of {len(found.kernel_source)} characters")
start = package.parents[1] / "twill_gpu.pth"
assert "_twill_start" in start.read_text() and start.with_name("_twill_start.py").is_file(), start
extras = importlib.metadata.metadata("twill-gpu").get_all("Provides-Extra")
assert {"gluon", "cuda", "ray", "notebook"} <= set(extras), extras
share = pathlib.Path(sys.prefix, "share")
for file in ("man/man1/twill.1", "man/man1/twill-schedule.1", "bash-completion/completions/twill",
             "zsh/site-functions/_twill", "fish/vendor_completions.d/twill.fish"):
    assert "schedule" in (share / file).read_text(), file
"#;

/// Processors that wheels are made for.
pub const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];

/// The oldest glibc that portable wheels run with.
const PORTABLE: &str = "manylinux_2_28";

/// A linker for other systems and older libraries.
const LINKER: &str = "ziglang>=0.13";

/// What puts files into a wheel.
const PACKER: &str = "wheel>=0.45";

/// A wheel.
pub struct Made {
    /// Its file.
    pub wheel: PathBuf,
    /// Manual pages and completions that its command wrote, where this machine can run it.
    pub pages: Option<PathBuf>,
    /// Its size, and whether it was tried.
    pub said: String,
}

/// Builds the wheel into `target/wheels`, as portable as this machine's libraries allow; installs it in a new environment
/// and tries it there. `--profile dev` builds it as the tests are built, in a fraction of the time.
///
/// # Errors
///
/// That it cannot be built, is not portable, or does not work.
pub fn wheel(arguments: &[String]) -> Result<(), String> {
    let profile = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => "release",
        ["--profile", profile] => profile,
        _ => return Err("usage: cargo xtask wheel [--profile dev]".into()),
    };
    let root = root()?;
    let wheels = target(&root).join("wheels");
    // Another version's is no answer.
    let _ = fs::remove_dir_all(&wheels);
    // `check`: it links to nothing that a manylinux system need not have, and no library has to be put into it.
    let made = make(&root, &["--profile", profile, "--auditwheel", "check"], Some(Pages::Own), &wheels)?;
    check_tags(&file_name(&made.wheel))?;
    println!("wheel: {} ({})", made.wheel.display(), made.said);
    Ok(())
}

/// Puts the playground into the package; where this Rust cannot make it, the wheel has none, and says so.
fn with_playground(root: &Path) -> Result<(), String> {
    let place = root.join("python").join("twill_gpu").join("playground.html");
    let _ = fs::remove_file(&place);
    if !playground::has_target() {
        eprintln!("xtask: the wheel has no playground: {}", playground::HOW);
        return Ok(());
    }
    playground::playground()?;
    let made = target(root).join("playground.html");
    fs::copy(&made, &place).map(|_| ()).map_err(|e| format!("{}: {e}", place.display()))
}

/// Why there can be no wheel for a processor here; `None` where there can.
pub fn missing(arch: &str) -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("wheels for Linux are made on Linux".into());
    }
    let mut command = Command::new("rustc");
    let triple = triple(arch);
    let folder = command.args(["--print", "target-libdir", "--target", &triple]).output();
    let is_there = folder.is_ok_and(|o| Path::new(String::from_utf8_lossy(&o.stdout).trim()).is_dir());
    (!is_there).then(|| format!("rustup target add {triple}"))
}

/// A wheel for systems with glibc 2.28, for this processor or another one. `pages` are those of a wheel that could run here.
///
/// # Errors
///
/// That it cannot be built, is not portable, or does not work.
pub fn portable(root: &Path, arch: &str, pages: Option<&Path>, into: &Path) -> Result<Made, String> {
    let triple = triple(arch);
    let built = target(root).join("xtask").join("wheel").join(arch);
    let _ = fs::remove_dir_all(&built);
    let how = ["--profile", "release", "--zig", "--compatibility", PORTABLE, "--target", &triple];
    let pages = if arch == env::consts::ARCH { Some(Pages::Own) } else { pages.map(Pages::Of) };
    let mut made = make(root, &how, pages, &built)?;
    let name = file_name(&made.wheel);
    if !name.contains("-cp39-abi3-") || !name.contains(&format!("{PORTABLE}_{arch}")) {
        return Err(format!("{name}: it is not for {PORTABLE}_{arch}"));
    }
    let place = into.join(&name);
    let moved = fs::create_dir_all(into).and_then(|()| fs::copy(&made.wheel, &place));
    moved.map_err(|e| format!("{}: {e}", place.display()))?;
    made.wheel = place;
    Ok(made)
}

fn triple(arch: &str) -> String {
    format!("{arch}-unknown-linux-gnu")
}

/// Where the manual pages of a wheel come from.
enum Pages<'a> {
    /// Its own command writes them.
    Own,
    /// That of another one did.
    Of(&'a Path),
}

/// Builds a wheel, puts manual pages and completions into it, and tries it where it can run.
fn make(root: &Path, how: &[&str], pages: Option<Pages>, into: &Path) -> Result<Made, String> {
    let scratch = target(root).join("xtask").join("wheel");
    let tools = environment(&scratch.join("tools"))?;
    let linker = how.contains(&"--zig").then_some(LINKER);
    let pip = ["-m", "pip", "install", "--quiet", MATURIN, PACKER];
    succeed(Command::new(&tools).args(pip).args(linker))?;
    with_playground(root)?;
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = tools.parent().map(Path::to_path_buf).into_iter().chain(env::split_paths(&path));
    let path = env::join_paths(folders).map_err(|e| format!("PATH: {e}"))?;
    let mut build = Command::new(&tools);
    build.args(["-m", "maturin", "build", "--locked"]).args(how).arg("--out").arg(into);
    succeed(build.current_dir(root).env("PATH", path))?;
    let mut wheel = only_wheel(into)?;
    let is_own = matches!(pages, Some(Pages::Own));
    let pages = match pages {
        Some(Pages::Own) => Some(written_pages(&scratch, &wheel)?),
        Some(Pages::Of(folder)) => Some(folder.to_owned()),
        None => None,
    };
    if let Some(pages) = &pages {
        wheel = with_pages(&tools, &scratch, &wheel, pages)?;
    }
    if is_own {
        exercise(root, &scratch, &wheel)?;
    }
    let size = fs::metadata(&wheel).map_err(|e| format!("{}: {e}", wheel.display()))?.len();
    let tried = if is_own { "installed and tried" } else { "not tried: this machine cannot run it" };
    let said = format!("{:.1} MB, {tried}", size as f64 / 1e6);
    Ok(Made { wheel, pages: pages.filter(|_| is_own), said })
}

/// Files of shells and of `man` below `share`, as systems have them, written by the command of a wheel.
fn written_pages(scratch: &Path, wheel: &Path) -> Result<PathBuf, String> {
    let (folder, pages) = (scratch.join("pages"), scratch.join("share"));
    for one in [&folder, &pages] {
        let _ = fs::remove_dir_all(one);
    }
    let python = environment(&folder)?;
    install(&python, wheel)?;
    let twill = folder.join("bin").join("twill");
    let made = |path: &Path| fs::create_dir_all(path).map_err(|e| format!("{}: {e}", path.display()));
    succeed(Command::new(&twill).arg("man").arg(pages.join("man/man1")))?;
    for (shell, place) in COMPLETIONS {
        let path = pages.join(place);
        path.parent().map_or(Ok(()), made)?;
        let output = Command::new(&twill).args(["completions", shell]).output().map_err(|e| format!("{e}"))?;
        if !output.status.success() || output.stdout.is_empty() {
            return Err(format!("twill completions {shell}: {}", String::from_utf8_lossy(&output.stderr)));
        }
        fs::write(&path, output.stdout).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(pages)
}

/// Where each shell looks below `share`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/twill"),
    ("zsh", "zsh/site-functions/_twill"),
    ("fish", "fish/vendor_completions.d/twill.fish"),
];

/// The wheel with files below `share`; it is packed anew, as its list of files has their hashes.
fn with_pages(tools: &Path, scratch: &Path, wheel: &Path, pages: &Path) -> Result<PathBuf, String> {
    let open = scratch.join("open");
    let _ = fs::remove_dir_all(&open);
    succeed(Command::new(tools).args(["-m", "wheel", "unpack", "--dest"]).arg(&open).arg(wheel))?;
    let inside = fs::read_dir(&open).map_err(|e| format!("{}: {e}", open.display()))?;
    let inside = inside.flatten().next().ok_or("the wheel was empty")?.path();
    let name = inside.file_name().unwrap_or_default().to_string_lossy().into_owned();
    copy(pages, &inside.join(format!("{name}.data")).join("data").join("share"))?;
    let folder = wheel.parent().unwrap_or(wheel);
    fs::remove_file(wheel).map_err(|e| format!("{}: {e}", wheel.display()))?;
    succeed(Command::new(tools).args(["-m", "wheel", "pack", "--dest-dir"]).arg(folder).arg(inside))?;
    only_wheel(folder)
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", to.display());
    fs::create_dir_all(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)?.flatten() {
        let (source, place) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &place)?;
        } else {
            fs::copy(source, place).map_err(failed)?;
        }
    }
    Ok(())
}

/// Nothing else is needed, so no index either; and a PATH without Cargo.
fn install(python: &Path, wheel: &Path) -> Result<(), String> {
    let install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-cache-dir"];
    succeed(Command::new(python).args(install).arg(wheel).env("PATH", "/usr/bin:/bin"))
}

/// Installs it where there is no Rust, and runs what it brings.
fn exercise(root: &Path, scratch: &Path, wheel: &Path) -> Result<(), String> {
    let folder = scratch.join("installed");
    let _ = fs::remove_dir_all(&folder);
    let python = environment(&folder)?;
    let start = Instant::now();
    install(&python, wheel)?;
    println!("wheel: installed in {:.1} s", start.elapsed().as_secs_f64());
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&python);
        command.args(arguments).current_dir(&folder).env_remove("PYTHONPATH").env("TWILL_CACHE", folder.join("cache"));
        command
    };
    let example = root.join("examples").join("gemm_tma.ttir");
    succeed(run(&["-c", EXERCISE]).arg(&example))?;
    succeed(&mut run(&["-m", "twill_gpu", "--help"]))?;
    succeed(Command::new(folder.join("bin").join("twill")).args(["schedule", "--machine", "h200"]).arg(&example))
}

/// A new virtual environment, or the one that is there; its interpreter.
fn environment(folder: &Path) -> Result<PathBuf, String> {
    let interpreter = folder.join("bin").join("python");
    if !interpreter.exists() {
        succeed(Command::new(system_python()?).args(["-m", "venv"]).arg(folder))?;
    }
    Ok(interpreter)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn only_wheel(folder: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut wheels =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "whl"));
    match (wheels.next(), wheels.next()) {
        (Some(wheel), None) => Ok(wheel),
        _ => Err(format!("{}: one wheel was to be there", folder.display())),
    }
}

/// One wheel is for all Pythons from 3.9 on; on Linux it is for systems that are as old as its name says.
fn check_tags(name: &str) -> Result<(), String> {
    let portable = !cfg!(target_os = "linux") || name.contains("manylinux");
    match name.contains("-cp39-abi3-") && portable {
        true => Ok(()),
        false => Err(format!("{name}: it is for one Python or one system alone")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_of_one_system_are_refused() {
        assert_eq!(check_tags("twill_gpu-0.1.0-cp39-abi3-manylinux_2_34_x86_64.whl"), Ok(()));
        assert!(check_tags("twill_gpu-0.1.0-cp311-cp311-manylinux_2_34_x86_64.whl").is_err());
        assert_eq!(check_tags("twill_gpu-0.1.0-cp39-abi3-linux_x86_64.whl").is_err(), cfg!(target_os = "linux"));
    }

    #[test]
    fn maturin_is_what_the_package_is_built_with() {
        let manifest = fs::read_to_string(root().unwrap().join("pyproject.toml")).unwrap();
        assert!(manifest.contains(&format!("requires = [\"{MATURIN}\"]")));
    }
}
