//! `twill fit`: whether kernels fit, before anything is searched.

use crate::Exit;
use crate::arguments::{FitArguments, FitFormat};
use crate::error::Error;
use crate::{files, input};
use serde_json::json;
use std::fmt::Write as _;
use std::time::Instant;
use twill_driver::{Fit, Need, Request, Verdict};
use twill_graph::{grouped, grouped_real};
use twill_report::folded;

/// Attempts play no part before a kernel is assembled.
const ATTEMPTS: u32 = 1;

pub(crate) fn run(arguments: &FitArguments) -> Result<Exit, Error> {
    let (lowering, limits) = (arguments.lowering.lowering()?, arguments.limits.limits());
    let options = arguments.generator.options(ATTEMPTS);
    let one = |path: &std::path::PathBuf| -> Result<Fit, Error> {
        let input = input::read(&path.display().to_string())?;
        let (lowering, limits) = (lowering.clone(), limits.clone());
        let request = Request { input, lowering, limits, siblings: arguments.siblings.options() };
        Ok(twill_driver::fit(&request, &options)?)
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
            (Err(error), FitFormat::Text) => eprintln!("error: {error}"),
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
