//! `twill fit`: whether kernels fit, before anything is searched.

use crate::arguments::{FitArguments, FitFormat};
use crate::error::Error;
use crate::exit::Exit;
use crate::files;
use crate::printable;
use serde_json::json;
use std::fmt::Write as _;
use std::time::Instant;
use twill_driver::files::named;
use twill_driver::{Fit, Need, Options, Verdict};
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
    let one = |path: &std::path::PathBuf| -> Result<Fit, Error> {
        let input = named(&path.display().to_string())?;
        Ok(twill_driver::fit(&options.request(input, machine.clone())?, &options.code)?)
    };
    let (mut text, mut verdicts, mut failed) = (String::new(), Vec::new(), false);
    for path in &arguments.inputs {
        let started = Instant::now();
        let found = one(path);
        let milliseconds = started.elapsed().as_secs_f64() * 1e3;
        match (&found, arguments.format) {
            (Ok(fit), FitFormat::Text) => {
                text.push_str(&folded(&words(fit, arguments.verbose), arguments.width.columns()))
            }
            (Err(error), FitFormat::Text) => eprintln!("error: {}", printable(&error.to_string())),
            (found, FitFormat::Json) => {
                let mut value = match found {
                    // Plain data always serialises.
                    Ok(fit) => serde_json::to_value(fit).unwrap_or_default(),
                    Err(error) => json!({"input": path.display().to_string(), "error": error.to_string()}),
                };
                if arguments.timings {
                    value["milliseconds"] = json!(milliseconds);
                }
                let _ = writeln!(text, "{value}");
            }
        }
        match found {
            Ok(fit) => verdicts.push(fit.verdict),
            Err(_) => failed = true,
        }
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
