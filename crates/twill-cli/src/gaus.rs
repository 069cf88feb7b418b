//! `twill gaus`: large graphs, without warps.

use crate::arguments::{GausArguments, GausFormat};
use crate::error::Error;
use crate::exit::Exit;
use crate::printable;
use crate::progress::Ticker;
use crate::{budgets, files, pictures, progress};
use twill_driver::gaus;
use twill_driver::options::GausEngine;
use twill_graph::format::ModuloFile;

/// Iterations of a loop in a trace.
pub(crate) const TRACED_ITERATIONS: u32 = 3;

pub(crate) fn run(arguments: &GausArguments) -> Result<Exit, Error> {
    match arguments.options.engine {
        GausEngine::Exact => exact(arguments).or_else(|error| stopped(error).map(|(exit, _)| exit)),
        _ => answer(arguments).map(|(exit, _)| exit),
    }
}

/// As `twill schedule` exits: what is not proved optimal is the best known.
pub(crate) fn run_for_proof(arguments: &GausArguments) -> Result<Exit, Error> {
    answer(arguments).map(|(exit, proved)| if exit == Exit::Done && !proved { Exit::Stopped } else { exit })
}

/// The exit code, and whether the answer is proved optimal.
fn answer(arguments: &GausArguments) -> Result<(Exit, bool), Error> {
    match solve(arguments) {
        Err(Error::Gaus(error)) if error.proves_infeasible() => {
            eprintln!("{}", printable(&error.to_string()));
            Ok((Exit::Infeasible, true))
        }
        other => other.or_else(stopped),
    }
}

/// What ended before there was a graph was not found in time.
fn stopped(error: Error) -> Result<(Exit, bool), Error> {
    match error {
        Error::Gaus(error) if error.is_stopped() => {
            eprintln!("{}", printable(&error.to_string()));
            Ok((Exit::Stopped, false))
        }
        other => Err(other),
    }
}

fn solve(arguments: &GausArguments) -> Result<(Exit, bool), Error> {
    let output = arguments.page.output.as_deref();
    pictures::check_output(arguments.format() == GausFormat::Perfetto, output)?;
    let mut ticker = Ticker::new(arguments.quiet);
    let found = gaus::find(arguments.input.as_deref(), &arguments.options, progress::interrupt(), &mut ticker)?;
    drop(ticker);
    let text = || twill_report::dataflow_text(&found.summary, arguments.page.text_options());
    match (arguments.format(), &found.schedule) {
        (GausFormat::Json, _) => files::write(output, &(found.to_json() + "\n"))?,
        (GausFormat::Text, _) => files::write(output, &text())?,
        (GausFormat::Summary, _) => files::write(output, &(found.figures() + "\n"))?,
        (GausFormat::Perfetto, Some(schedule)) => {
            let trace = twill_report::dataflow_perfetto(&found.problem.graph, &schedule.steps, TRACED_ITERATIONS);
            files::write(output, &trace)?;
        }
        (GausFormat::Perfetto, None) => eprint!("{}", text()),
    }
    Ok((if found.schedule.is_some() { Exit::Done } else { Exit::Stopped }, found.proved))
}

/// `--engine exact`: the least interval, with its proof.
fn exact(arguments: &GausArguments) -> Result<Exit, Error> {
    if matches!(arguments.format(), GausFormat::Summary | GausFormat::Perfetto) {
        return Err(Error::Arguments("--engine exact writes text or json (--format)".to_owned()));
    }
    let mut ticker = Ticker::new(arguments.quiet);
    let (input, options) = (arguments.input.as_deref(), &arguments.options);
    let found = gaus::exact(input, options, budgets::started(), progress::interrupt(), &mut ticker)?;
    drop(ticker);
    let text = match arguments.format() {
        GausFormat::Json => ModuloFile::new(&found.problem, &found.report).to_json() + "\n",
        _ => twill_report::modulo_text(&found.problem, &found.report, arguments.page.text_options()),
    };
    files::write(arguments.page.output.as_deref(), &text)?;
    let exit = Exit::of(found.report.outcome.status());
    Ok(budgets::explain_stop(&options.limits(), arguments.quiet, exit))
}
