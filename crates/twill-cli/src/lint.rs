//! `twill lint`: check machine code, which may be anybody's.

use crate::annotate::{self, Annotation, AnnotationFormat};
use crate::arguments::{LintArguments, LintFormat};
use crate::error::Error;
use crate::exit::Exit;
use crate::{files, printable};
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use twill_lint::{Coverage, Report, lint};

/// The disassembler by its name.
const NVDISASM: &str = "nvdisasm";
/// Where Triton's package keeps it.
const IN_TRITON: &str = "backends/nvidia/bin/nvdisasm";
/// Prints the folder of Triton's package, without importing it.
const FIND_TRITON: &str = "import importlib.util as u; print(u.find_spec('triton').submodule_search_locations[0])";

/// A file, and what is found in it.
#[derive(Debug, Serialize)]
struct Checked {
    path: String,
    #[serde(flatten)]
    report: Report,
}

/// A file that was left out, and why.
#[derive(Debug, Serialize)]
struct Unchecked {
    path: String,
    why: String,
}

#[derive(Debug, Serialize)]
struct All {
    format: &'static str,
    version: u32,
    files: Vec<Checked>,
    /// Files of a folder that are of other architectures, or empty.
    left_out: Vec<Unchecked>,
    /// Files that cannot be checked.
    errors: Vec<Unchecked>,
    findings: usize,
    read_off: Coverage,
}

pub(crate) fn run(arguments: &LintArguments) -> Result<Exit, Error> {
    let all = check(arguments);
    for error in &all.errors {
        eprintln!("error: {}", printable(&error.why));
    }
    let text = match arguments.format {
        LintFormat::Text => text(&all),
        LintFormat::Json => serde_json::to_string_pretty(&all).map(|text| text + "\n").unwrap_or_default(),
        LintFormat::Sarif => annotated(&all, AnnotationFormat::Sarif, arguments),
        LintFormat::Github => annotated(&all, AnnotationFormat::Github, arguments),
    };
    files::write(None, &text)?;
    Ok(match (all.errors.is_empty(), all.findings) {
        (false, _) => Exit::BAD_INPUT,
        (true, 0) => Exit::Done,
        (true, _) => Exit::FINDINGS,
    })
}

fn annotated(all: &All, format: AnnotationFormat, arguments: &LintArguments) -> String {
    let findings = all.files.iter().flat_map(|file| annotate::findings(&file.path, &file.report));
    let unchecked = all.errors.iter().map(|error| annotate::unchecked(&error.path, &error.why));
    let annotations: Vec<Annotation> = findings.chain(unchecked).collect();
    annotate::render(format, &annotate::LINT_RULES, &annotations, &arguments.annotations.root())
}

fn check(arguments: &LintArguments) -> All {
    let mut disassemblers = None;
    let mut all = All {
        format: "twill-lint",
        version: 1,
        files: Vec::new(),
        left_out: Vec::new(),
        errors: Vec::new(),
        findings: 0,
        read_off: Coverage::default(),
    };
    for input in &arguments.inputs {
        let found = twill_lint::files(input);
        if found.as_ref().is_ok_and(Vec::is_empty) {
            let why = format!("{}: there is no .cubin and no .sass in it", input.display());
            all.errors.push(Unchecked { path: input.display().to_string(), why });
        }
        match found {
            Ok(paths) => paths.iter().for_each(|path| one(path, input, arguments, &mut disassemblers, &mut all)),
            Err(error) => all.errors.push(Unchecked { path: input.display().to_string(), why: error.to_string() }),
        }
    }
    all
}

fn one(path: &Path, input: &Path, arguments: &LintArguments, known: &mut Option<Vec<PathBuf>>, all: &mut All) {
    let shown = path.display().to_string();
    let disassemblers = known.get_or_insert_with(|| disassemblers(arguments.nvdisasm.as_deref()));
    let text = match twill_lint::listing(path, disassemblers) {
        Ok(text) => text,
        Err(error) => return all.errors.push(Unchecked { path: shown, why: error.to_string() }),
    };
    match lint(&text) {
        Ok(report) => {
            all.findings += report.findings.len();
            all.read_off = all.read_off.plus(report.read_off);
            all.files.push(Checked { path: shown, report });
        }
        // A folder holds what it holds; a file was asked for by its name.
        Err(error) if path != input => all.left_out.push(Unchecked { path: shown, why: error.to_string() }),
        Err(error) => {
            let why = format!("{shown}: {error}");
            all.errors.push(Unchecked { path: shown, why });
        }
    }
}

/// What cubins are read through: what was asked for, or that of PATH, then Triton's.
fn disassemblers(asked: Option<&Path>) -> Vec<PathBuf> {
    match asked {
        Some(path) => vec![path.to_owned()],
        None => std::iter::once(NVDISASM.into()).chain(of_triton()).collect(),
    }
}

fn of_triton() -> Option<PathBuf> {
    let python = std::env::var_os("TWILL_PYTHON").unwrap_or_else(|| OsString::from("python3"));
    let output = Command::new(python).args(["-c", FIND_TRITON]).stdin(Stdio::null()).output().ok()?;
    let folder = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(Path::new(folder.trim()).join(IN_TRITON))
}

fn text(all: &All) -> String {
    let mut text = String::new();
    for file in &all.files {
        for finding in &file.report.findings {
            text += &format!("{}: {}", file.path, finding.text());
        }
    }
    for file in &all.left_out {
        text += &format!("{}: left out: {}\n", file.path, file.why);
    }
    let functions = || all.files.iter().flat_map(|file| &file.report.functions);
    text += &format!(
        "{} checked, {}, {} wgmma: {}\n{}\n",
        counted(all.files.len(), "file"),
        counted(functions().count(), "function"),
        functions().map(|function| function.wgmmas).sum::<usize>(),
        counted(all.findings, "finding"),
        all.read_off.text(),
    );
    text.lines().map(|line| twill_graph::showable(line) + "\n").collect()
}

fn counted(count: usize, of: &str) -> String {
    format!("{count} {of}{}", if count == 1 { "" } else { "s" })
}
