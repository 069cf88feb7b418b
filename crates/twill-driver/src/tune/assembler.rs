//! What the assembler makes of a generated kernel, through `assemble.py` of its folder.

use super::thresholds::THRESHOLDS;
use super::written::Files;
use crate::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, thread};
use twill_backend::package::{Assembly, Finding, HAZARD, Linted};
use twill_exact::{Budget, Clock};
use web_time::Instant;

/// The interpreter when none is given.
const PYTHON: &str = "python3";
/// A program that says which versions an interpreter has, and what an assembler is chosen by there.
const TOOLCHAIN: &str = include_str!("../../../../python/twill_gpu/toolchain.py");
/// Where `assemble.py` writes the machine code as text.
const LISTING: &str = "kernel.sass";

/// What ends a process that took all of its time (SIGXCPU).
const OUT_OF_TIME: i32 = 24;

/// What Python says where the system refuses it memory or space on a disk.
/// ENOMEM, EFBIG, ENOSPC, EDQUOT.
const OF_THE_SYSTEM: [&str; 6] =
    ["[Errno 12]", "[Errno 27]", "[Errno 28]", "[Errno 122]", "MemoryError", "std::bad_alloc"];

/// A Python that can assemble kernels, as far as is known.
#[derive(Clone, Debug)]
pub struct Assembler {
    python: PathBuf,
    /// Whether somebody asked for this one, so that it has to work.
    requested: bool,
    folder: PathBuf,
    /// What machine code depends on in addition to the kernel, as far as the caller knows: versions of Triton and of the assembler.
    toolchain: String,
    /// When the time for all searches is over, by which clock.
    until: Option<(Instant, Clock)>,
}

/// What came of running it.
pub(super) enum Assembled {
    /// Machine code, and what it is like.
    Report(Assembly),
    /// It cannot be done here, for this reason.
    Impossible(String),
}

impl Assembler {
    /// An assembler that prepares its files in a folder, which must exist. Without an interpreter it is `python3`, and
    /// does without where that has no Triton.
    pub fn new(python: Option<PathBuf>, folder: PathBuf) -> Assembler {
        let requested = python.is_some();
        let python = python.unwrap_or_else(|| PYTHON.into());
        Assembler { python, requested, folder, toolchain: String::new(), until: None }
    }

    /// The same, with what is known of its toolchain.
    #[must_use]
    pub fn of(self, toolchain: String) -> Assembler {
        Assembler { toolchain, ..self }
    }

    /// The same for a kernel that is to be there by then.
    pub(super) fn within(&self, budget: &Budget) -> Assembler {
        Assembler { until: budget.until.map(|until| (until, budget.clock)), ..self.clone() }
    }

    /// What this gives for one that prepares its files in a folder within this one's, which is there meanwhile.
    pub(super) fn apart<T>(&self, name: &str, run: impl FnOnce(&Assembler) -> T) -> Result<T, Error> {
        let folder = self.folder.join(name);
        let failed = |error| Error::Scratch { path: folder.display().to_string(), error };
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let result = run(&Assembler { folder: folder.clone(), ..self.clone() });
        std::fs::remove_dir_all(&folder).map_err(failed)?;
        Ok(result)
    }

    /// Removes files of its folder, where they are there.
    pub(super) fn remove<'n>(&self, names: impl Iterator<Item = &'n String>) {
        for name in names {
            let _ = std::fs::remove_file(self.folder.join(name));
        }
    }

    /// What its answers depend on: an interpreter, and with it a Triton and an assembler. The interpreter is asked where the caller
    /// did not say.
    pub(super) fn depends(&self) -> String {
        let asked = || {
            let output = Command::new(&self.python).args(["-c", TOOLCHAIN]).stdin(Stdio::null()).output().ok()?;
            output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
        };
        let toolchain = match self.toolchain.as_str() {
            "" => asked().unwrap_or_default(),
            known => known.to_owned(),
        };
        format!("{} {toolchain}", self.python.display())
    }

    /// Assembles a kernel.
    pub(super) fn run(&self, files: &[(&'static str, String)], input: &str) -> Result<Assembled, Error> {
        self.run_in(&self.folder, files, input)
    }

    /// Assembles kernels, several at a time, each in a folder of its own; what came of each, in their order.
    pub(super) fn run_all(&self, kernels: &[Files], input: &str) -> Vec<Result<Assembled, Error>> {
        let next = AtomicUsize::new(0);
        let results: Vec<OnceLock<_>> = kernels.iter().map(|_| OnceLock::new()).collect();
        thread::scope(|scope| {
            for _ in 0..at_a_time().min(kernels.len()) {
                scope.spawn(|| {
                    while let Some(number) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < kernels.len()) {
                        let _ = results[number].set(self.run_apart(number, &kernels[number], input));
                    }
                });
            }
        });
        results.into_iter().filter_map(OnceLock::into_inner).collect()
    }

    fn run_apart(&self, number: usize, files: &Files, input: &str) -> Result<Assembled, Error> {
        // The folder is a kernel's in the end.
        self.apart(&format!(".{number}"), |apart| apart.run(files, input))?
    }

    fn run_in(&self, folder: &Path, files: &[(&'static str, String)], input: &str) -> Result<Assembled, Error> {
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| Error::Scratch { path: path.display().to_string(), error })?;
        }
        let python = || self.python.display().to_string();
        let failed = |why: String| Err(Error::Assembler { input: input.to_owned(), python: python(), why });
        let interrupted = |why: String| Err(Error::Interrupted { input: input.to_owned(), python: python(), why });
        let listing = folder.join(LISTING);
        // That of another kernel is none of this one's; usually there is none.
        let _ = std::fs::remove_file(&listing);
        let mut command = Command::new(&self.python);
        // No caches of Python in the folder.
        command.args(["-B", "assemble.py", "--json", "--sass", LISTING]).current_dir(folder).stdin(Stdio::null());
        let time = |(until, clock): (Instant, Clock)| {
            let left = until.checked_add(THRESHOLDS.last_time).unwrap_or(until);
            left.saturating_duration_since(clock.now()).max(THRESHOLDS.least_time)
        };
        let seconds = self.until.map(|until| time(until).as_secs());
        command.args(seconds.map(|seconds| format!("--seconds={seconds}")));
        let output = match command.output() {
            Ok(output) => output,
            Err(error) if !self.requested && error.kind() == io::ErrorKind::NotFound => {
                return Ok(Assembled::Impossible(format!("there is no {}", python())));
            }
            Err(error) => return interrupted(error.to_string()),
        };
        let complaint = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let last = complaint.trim_end().lines().last().unwrap_or_default();
            let in_cuda = files.iter().any(|(name, _)| *name == "kernel.cu");
            let needed = if in_cuda { "NVRTC" } else { "Triton 3.6 to 3.9" };
            let lacks = ["ModuleNotFoundError", "ImportError"].iter().any(|kind| last.starts_with(kind));
            if let (Some(OUT_OF_TIME), Some(seconds)) = (signal(output.status), seconds) {
                return failed(format!("it took more than {seconds} seconds; --time-limit gives it more"));
            }
            if output.status.code().is_none() {
                return interrupted(output.status.to_string());
            }
            if OF_THE_SYSTEM.iter().any(|kind| last.contains(kind)) {
                return interrupted(last.to_owned());
            }
            return match (lacks, self.requested) {
                (true, false) => Ok(Assembled::Impossible(format!("{} has no {needed} ({last})", python()))),
                (true, true) => failed(format!("it has no {needed} ({last})")),
                (false, _) => failed(complaint.trim_end().to_owned()),
            };
        }
        match serde_json::from_slice(&output.stdout) {
            Ok(assembly) => {
                let text = std::fs::read_to_string(&listing).ok();
                // It is no file of a kernel.
                let _ = std::fs::remove_file(&listing);
                Ok(Assembled::Report(linted(assembly, text.as_deref())))
            }
            Err(error) => failed(format!("its report does not read: {error}")),
        }
    }
}

/// The signal that ended a process.
#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

/// Elsewhere none does.
#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}

/// Kernels that are assembled at a time: `TWILL_ASSEMBLERS`, else as many as there are processors, but four at most, as each
/// takes some hundred megabytes.
fn at_a_time() -> usize {
    let asked = env::var("TWILL_ASSEMBLERS").ok().and_then(|number| number.parse().ok());
    asked.unwrap_or_else(|| thread::available_parallelism().map_or(1, |n| n.get().min(4))).max(1)
}

/// A report with what the checker of machine code finds in the listing. Without one, and where it is not for Hopper, there is
/// nothing to check.
fn linted(mut assembly: Assembly, listing: Option<&str>) -> Assembly {
    let Some(Ok(mut report)) = listing.map(twill_lint::lint) else { return assembly };
    // A product that nothing uses looks as one that ptxas lost: no more than the PTX has of those are none.
    let is_lost = |found: &twill_lint::Finding| found.rule == twill_lint::Rule::WgmmaLost;
    if report.findings.iter().filter(|found| is_lost(found)).count() <= assembly.unused_products {
        report.findings.retain(|found| !is_lost(found));
    }
    let count = |of: fn(&twill_lint::FunctionReport) -> usize| report.functions.iter().map(of).sum();
    assembly.lint = Some(Linted {
        instructions: count(|function| function.instructions),
        wgmmas: count(|function| function.wgmmas),
        findings: report.findings.len(),
    });
    let finding = |found: &twill_lint::Finding| {
        let message = format!("twill lint finds a hazard in what the assembler made: {}", found.line());
        Finding { kind: HAZARD.to_owned(), message }
    };
    assembly.findings.extend(report.findings.iter().map(finding));
    assembly
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: &str = "\t.headerflags @\"EF_CUDA_SM90\"
\t.section .text.kernel,\"ax\"
        /*0000*/ WARPGROUP.ARRIVE ;
        /*0010*/ HGMMA.64x64x16.F32 R24, R4, gdesc[UR4], RZ, !UPT, gsb0 ;
        /*0020*/ WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*0030*/ MOV R4, RZ ;
        /*0040*/ EXIT ;";

    fn assembly() -> Assembly {
        let text =
            r#"{"registers":8,"spill_stores":0,"spill_loads":0,"shared_memory":0,"barriers_at":0,"findings":[]}"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_hazard_in_the_machine_code_makes_a_candidate_unusable() {
        let clean = linted(assembly(), Some(CLEAN));
        assert_eq!(clean.lint, Some(Linted { instructions: 5, wgmmas: 1, findings: 0 }));
        assert_eq!(clean.unusable(), None);
        let late = CLEAN.replace("/*0020*/ WARPGROUP.DEPBAR.LE gsb0, 0x0", "/*0020*/ NOP");
        let hazard = linted(assembly(), Some(&late));
        let why = hazard.unusable().unwrap();
        assert!(why.contains("wgmma-operand-written") && why.contains("MOV R4, RZ"), "{why}");
        assert!(hazard.is_short_of_registers(), "so that the next rung of the ladder is tried");
    }

    #[test]
    fn products_that_nothing_uses_are_not_lost() {
        let none = CLEAN.replace("HGMMA.64x64x16.F32 R24, R4, gdesc[UR4]", "HGMMA.64x8x16.F16 RZ, gdesc[URZ]");
        let why = linted(assembly(), Some(&none)).unusable().unwrap();
        assert!(why.contains("wgmma-lost"), "{why}");
        let unused = Assembly { unused_products: 1, ..assembly() };
        assert_eq!(linted(unused, Some(&none)).unusable(), None);
    }

    #[cfg(unix)]
    #[test]
    fn what_stops_the_assembler_says_nothing_about_the_kernel() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let python = folder.path().join("python");
        for (script, stopped) in [
            ("kill -9 $$", true),
            ("echo 'OSError: [Errno 28] No space left on device' >&2; exit 1", true),
            ("echo 'KernelError: a layout' >&2; exit 1", false),
        ] {
            std::fs::write(&python, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o700)).unwrap();
            let ran = Assembler::new(Some(python.clone()), folder.path().to_owned()).run(&[], "kernel");
            assert_eq!(matches!(ran, Err(Error::Interrupted { .. })), stopped, "{script}");
            assert_eq!(matches!(ran, Err(Error::Assembler { .. })), !stopped, "{script}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_kernel_that_takes_the_compiler_too_long_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let python = folder.path().join("python");
        // As assemble.py with a shorter limit: the kernel is never done.
        let script =
            "#!/bin/sh\nfor last; do :; done\n[ ${last#--seconds=} -gt 4 ] && ulimit -S -t 1 && while :; do :; done\n";
        std::fs::write(&python, script).unwrap();
        std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o700)).unwrap();
        let assembler = Assembler::new(Some(python), folder.path().to_owned())
            .within(&Budget { until: Some(Instant::now()), ..Budget::default() });
        let Err(error @ Error::Assembler { .. }) = assembler.run(&[], "kernel") else { panic!("it has an end") };
        assert!(error.to_string().contains("seconds; --time-limit gives it more"), "{error}");
    }

    #[test]
    fn without_a_listing_of_hopper_nothing_is_said() {
        assert_eq!(linted(assembly(), None), assembly());
        assert_eq!(linted(assembly(), Some(&CLEAN.replace("SM90", "SM100"))), assembly());
    }
}
