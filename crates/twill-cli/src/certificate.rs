//! Certificates on disk: a folder with the schedule, the claim, and three files for every proof by search.

use crate::arguments::SearchArguments;
use crate::error::Error;
use crate::files;
use std::fs;
use std::path::{Path, PathBuf};
use twill_check::{Evidence, Verified};
use twill_driver::files::FileError;
use twill_exact::Budget;
use twill_graph::format::{CertificateFile, ScheduleFile};
use twill_graph::proof::{Certificate, Proof};
use twill_graph::{Problem, Report, Schedule};

const SCHEDULE: &str = "schedule.json";
const CERTIFICATE: &str = "certificate.json";
const KERNEL: &str = "kernel.json";

/// A folder that appears whole or not at all.
pub(crate) struct Folder {
    target: PathBuf,
    partial: PathBuf,
}

impl Folder {
    /// Prepares a folder that must not exist, or be empty.
    pub(crate) fn create(target: &Path) -> Result<Folder, Error> {
        let failed = |error| Error::Write { path: target.to_owned(), error };
        if target.exists() && (!target.is_dir() || fs::read_dir(target).map_err(failed)?.next().is_some()) {
            return Err(Error::FolderExists { path: target.to_owned() });
        }
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let partial = target.with_file_name(name);
        fs::create_dir_all(&partial).map_err(failed)?;
        Ok(Folder { target: target.to_owned(), partial })
    }

    /// Writes one certificate, into a sub-folder where a kernel has several loops.
    pub(crate) fn add(
        &self,
        name: Option<&str>,
        schedule: &str,
        problem: &Problem,
        certificate: &Certificate,
    ) -> Result<(), Error> {
        let folder = name.map_or_else(|| self.partial.clone(), |n| self.partial.join(n));
        fs::create_dir_all(&folder).map_err(|error| Error::Write { path: folder.clone(), error })?;
        let write = |name: &str, text: &str| files::write(Some(&folder.join(name)), text);
        write(SCHEDULE, schedule)?;
        write(CERTIFICATE, &CertificateFile::new(problem, certificate).to_json())?;
        for proof in &certificate.proofs {
            let [cnf, drat, why] = names(proof.interval);
            write(&cnf, &proof.cnf())?;
            write(&drat, &proof.drat())?;
            write(&why, &proof.meanings())?;
        }
        Ok(())
    }

    /// Writes the schedules of sibling loops together.
    pub(crate) fn add_kernel(&self, text: &str) -> Result<(), Error> {
        files::write(Some(&self.partial.join(KERNEL)), text)
    }

    /// Puts the folder in its place.
    pub(crate) fn finish(self) -> Result<(), Error> {
        let failed = |error| Error::Write { path: self.target.clone(), error };
        if self.target.is_dir() {
            fs::remove_dir(&self.target).map_err(failed)?;
        }
        fs::rename(&self.partial, &self.target).map_err(failed)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Best effort; after `finish` there is nothing left.
        let _ = fs::remove_dir_all(&self.partial);
    }
}

fn names(interval: i64) -> [String; 3] {
    ["cnf", "drat", "why"].map(|suffix| format!("interval-{interval}.{suffix}"))
}

/// A certificate read back, with the schedule file next to it.
pub(crate) struct Read {
    pub(crate) path: String,
    pub(crate) schedule: ScheduleFile,
    pub(crate) problem: Problem,
    pub(crate) certificate: Certificate,
}

/// The schedules of sibling loops together, where the folder is about several.
pub(crate) fn kernel(folder: &Path) -> Result<Option<(String, String)>, Error> {
    let path = folder.join(KERNEL);
    if !path.exists() {
        return Ok(None);
    }
    Ok(Some((path.display().to_string(), files::read(&path)?)))
}

/// Reads a folder: one certificate, or one in each of its `loop-…` folders.
pub(crate) fn read(folder: &Path) -> Result<Vec<Read>, Error> {
    if folder.join(CERTIFICATE).exists() {
        return Ok(vec![read_one(folder)?]);
    }
    let failed = |error| Error::File(FileError::Read { path: folder.to_owned(), error });
    let mut loops: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.join(CERTIFICATE).exists() {
            loops.push(path);
        }
    }
    if loops.is_empty() {
        return Err(Error::NoCertificate { path: folder.to_owned() });
    }
    // `loop-10` comes after `loop-2`.
    let number = |path: &PathBuf| {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        name.strip_prefix("loop-").and_then(|n| n.parse().ok()).unwrap_or(u64::MAX)
    };
    loops.sort_by_key(|path| (number(path), path.clone()));
    loops.iter().map(|path| read_one(path)).collect()
}

fn read_one(folder: &Path) -> Result<Read, Error> {
    let path_of = |name: &str| folder.join(name);
    let path = path_of(SCHEDULE);
    let schedule = ScheduleFile::from_json(&files::read(&path)?, &path.display().to_string())?;
    let problem = schedule.problem()?;
    let path = path_of(CERTIFICATE);
    let file = CertificateFile::from_json(&files::read(&path)?, &path.display().to_string())?;
    let mut certificate = file.certificate(&problem)?;
    for interval in &file.proofs {
        let [cnf, drat, why] = names(interval.0).map(|name| files::read(&path_of(&name)));
        let name = path_of(&format!("interval-{interval}", interval = interval.0)).display().to_string();
        let proof = Proof::read(&name, &cnf?, &drat?, &why?)?;
        if proof.interval != interval.0 {
            return Err(Error::ProofInterval { path: name, interval: proof.interval });
        }
        certificate.proofs.push(proof);
    }
    Ok(Read { path: folder.display().to_string(), schedule, problem, certificate })
}

/// What was found, in a line.
pub(crate) fn told(certificate: &Certificate, evidence: &Evidence) -> String {
    let below = evidence.below;
    let claim = match (certificate.infeasible, evidence.everything) {
        (true, true) => "no schedule exists at any interval".to_owned(),
        (true, false) => {
            format!("no schedule exists at any interval below {below} cycles (of larger ones nothing is said)")
        }
        (false, _) => format!("no schedule exists at any interval below {below} cycles: this one is optimal"),
    };
    let search = match evidence.proofs {
        0 => "by bounds alone".to_owned(),
        n => format!(
            "by bounds and {n} proof{} by search ({} instances of constraints, {} lemmas, {} steps)",
            if n == 1 { "" } else { "s" },
            evidence.clauses,
            evidence.lemmas,
            evidence.steps
        ),
    };
    format!("{claim}, proved {search}")
}

/// Writes what proves each report, and lets no proof out that does not survive its check.
pub(crate) fn certify<'a>(
    folder: &Path,
    arguments: &SearchArguments,
    loops: impl ExactSizeIterator<Item = (&'a Problem, &'a Report<Verified<Schedule>>, ScheduleFile)>,
    together: Option<&str>,
    budget: &Budget,
) -> Result<(), Error> {
    let input = || arguments.source.input.clone();
    let folder = Folder::create(folder)?;
    if let Some(text) = together {
        folder.add_kernel(text)?;
    }
    let several = loops.len() > 1;
    for (index, (problem, report, file)) in loops.enumerate() {
        let certificate =
            twill_exact::certify(problem, report, budget).map_err(|error| Error::Certify { input: input(), error })?;
        twill_check::verify_certificate(problem, &certificate)
            .map_err(|error| Error::DefectiveProof { input: input(), error })?;
        let name = several.then(|| format!("loop-{index}"));
        folder.add(name.as_deref(), &(file.to_json() + "\n"), problem, &certificate)?;
    }
    folder.finish()
}
