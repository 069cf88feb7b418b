//! `twill fit`: whether kernels fit, before anything is searched.

use crate::annotate::{self, Annotation};
use crate::arguments::{FitArguments, FitFormat, PythonArguments};
use crate::error::Error;
use crate::exit::Exit;
use crate::{files, printable, python_source};
use serde_json::json;
use std::fmt::Write as _;
use std::time::Instant;
use twill_driver::{Fit, Need, Options, Places, Verdict, places};
use twill_graph::{grouped, grouped_real};
use twill_report::folded;

pub(crate) fn run(arguments: &FitArguments) -> Result<Exit, Error> {
    let options = Options {
        lowering: arguments.lowering.clone(),
        limits: arguments.limits.clone(),
        model: arguments.model.clone(),
        loops: arguments.siblings.clone(),
        code: arguments.code.clone(),
        ..Options::default()
    };
    let machine = options.lowering.lowering()?.machine;
    let as_annotations = arguments.format.annotations();
    let one = |path: &std::path::PathBuf| -> Result<(Fit, Option<Places>), Error> {
        let python = PythonArguments::default();
        let input = python_source::input(&path.display().to_string(), &python, arguments.lowering.machine.as_deref())?;
        let request = options.request(input, machine.clone())?;
        let fit = twill_driver::fit(&request, &options.code)?;
        Ok((fit, as_annotations.and_then(|_| places(&request).ok().flatten())))
    };
    let (mut text, mut verdicts, mut failed) = (String::new(), Vec::new(), false);
    let mut annotations: Vec<Annotation> = Vec::new();
    for path in &files::kernels(&arguments.inputs)? {
        let started = Instant::now();
        let found = one(path);
        let milliseconds = started.elapsed().as_secs_f64() * 1e3;
        match (&found, arguments.format) {
            (Ok((fit, _)), FitFormat::Text) => {
                text.push_str(&folded(&words(fit, arguments.verbose), arguments.width.columns()))
            }
            (Err(error), FitFormat::Text) => eprintln!("error: {}", printable(&error.to_string())),
            (Ok((fit, places)), FitFormat::Sarif | FitFormat::Github) => {
                annotations.extend(annotate::fitted(fit, places.as_ref()));
            }
            (Err(error), FitFormat::Sarif | FitFormat::Github) => {
                eprintln!("error: {}", printable(&error.to_string()));
                annotations.push(annotate::refused(&path.display().to_string(), error));
            }
            (found, FitFormat::Json) => {
                let mut value = match found {
                    // Plain data always serialises.
                    Ok((fit, _)) => serde_json::to_value(fit).unwrap_or_default(),
                    Err(error) => json!({"input": path.display().to_string(), "error": error.to_string()}),
                };
                if arguments.timings {
                    value["milliseconds"] = json!(milliseconds);
                }
                let _ = writeln!(text, "{value}");
            }
        }
        match found {
            Ok((fit, _)) => verdicts.push(fit.verdict),
            Err(_) => failed = true,
        }
    }
    if let Some(format) = as_annotations {
        text = annotate::render(format, &annotate::FIT_RULES, &annotations, &arguments.annotations.root());
    }
    files::write(None, &text)?;
    Ok(if failed {
        Exit::Error
    } else if verdicts.contains(&Verdict::DoesNotFit) {
        Exit::Infeasible
    } else if verdicts.contains(&Verdict::Unknown) {
        Exit::Stopped
    } else {
        Exit::Done
    })
}

/// A line, and more where it does not fit.
fn words(fit: &Fit, verbose: bool) -> String {
    let mut line = format!("{}: {}", fit.input, fit.verdict);
    if let Some(rate) = fit.loops.iter().filter_map(|l| l.teraflops).reduce(f64::max) {
        let bounds: Vec<String> = fit.loops.iter().map(|l| grouped(l.bound.interval.0)).collect();
        let _ = write!(line, "; I >= {}, at most {} TFLOP/s", bounds.join(" + "), grouped_real(rate, Some(1)));
    }
    line.push('\n');
    if let Some(misfit) = &fit.misfit {
        let _ = writeln!(line, "  {}\n  {}", misfit.reason, misfit.way_out);
    }
    if verbose || !fit.fits() {
        fit.needs.iter().for_each(|need| line.push_str(&needed(need)));
    }
    line
}

fn needed(need: &Need) -> String {
    let Need { resource, required, available, largest } = need;
    let mut line = format!("  {resource}: {} of {} {}", grouped(*required), grouped(*available), resource.unit());
    let names: Vec<String> = largest.iter().map(ToString::to_string).collect();
    if !names.is_empty() {
        let _ = write!(line, ": {}", names.join(", "));
    }
    line + "\n"
}
