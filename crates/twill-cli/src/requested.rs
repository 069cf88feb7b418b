//! Options of the command for an input that is no file: what the Python package passes on.

use crate::arguments::{Arguments, Command, CompileArguments};
use crate::error::Error;
use crate::keywords::OptionError;
use crate::arguments::GausArguments;
use crate::{budgets, gaus as dataflow, schedule};
use clap::Parser;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use twill_driver::compile::CompileOptions;
use twill_driver::{Input, Request};
use twill_exact::{ExplainOptions, SearchOptions};
use twill_machine::{Machine, MachineError};

/// Options of `twill compile`, which are those of `twill schedule` and more.
#[derive(Clone, Debug)]
pub struct Requested {
    arguments: Box<CompileArguments>,
}

impl Requested {
    /// Reads options as the command has them, such as `--sub-tiles=2`.
    ///
    /// # Errors
    /// When there is no such option or it cannot have this value.
    pub fn read(options: &[String]) -> Result<Requested, OptionError> {
        let fixed = ["twill", "compile", "input", "--output", "output"].map(str::to_owned);
        let words = fixed.into_iter().chain(options.iter().cloned());
        match Arguments::try_parse_from(words) {
            Ok(Arguments { command: Command::Compile(arguments) }) if arguments.top.options().is_some() => {
                Err(OptionError::Other(
                    "top is for the command: it gives several schedules, and here one is asked for".into(),
                ))
            }
            Ok(Arguments { command: Command::Compile(arguments) }) => Ok(Requested { arguments: Box::new(arguments) }),
            Ok(_) => Err(OptionError::Other("not an option of twill compile".into())),
            Err(error) => Err(OptionError::of(&error)),
        }
    }

    /// What is asked about an input.
    ///
    /// # Errors
    /// When the machine that an option names does not read.
    pub fn request(&self, input: Input, machine: Option<Machine>) -> Result<Request, MachineError> {
        let arguments = &self.arguments;
        let mut request = arguments.search.request_about(input)?;
        request.siblings = arguments.siblings.options();
        request.lowering.machine = machine.or(request.lowering.machine);
        Ok(request)
    }

    /// How hard to search, until `interrupt` is set.
    pub fn search(&self, interrupt: Arc<AtomicBool>) -> SearchOptions {
        schedule::options_with(&self.arguments.search, Instant::now(), interrupt)
    }

    /// How hard to search for code, until `interrupt` is set.
    pub fn search_for_code(&self, interrupt: Arc<AtomicBool>) -> SearchOptions {
        schedule::options_with(&self.arguments.patient_search(), Instant::now(), interrupt)
    }

    /// What the generator is asked for; `command` is what generates the kernel again.
    pub fn compile(&self, command: &str) -> CompileOptions {
        self.arguments.options(command.to_owned())
    }

    /// How hard to explain, within the time of the search, of which this leaves half to it.
    pub fn explain(&self, search: &mut SearchOptions, effort: u64, what_ifs: bool) -> ExplainOptions {
        ExplainOptions {
            budget: budgets::for_explanation(search),
            question_work: effort,
            what_if_work: effort.saturating_mul(4),
            what_ifs,
            largest_interval: search.largest_interval,
        }
    }

    /// Whether results are kept on disk.
    pub fn is_cached(&self) -> bool {
        !self.arguments.search.no_cache
    }
}

/// What came of scheduling a large graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GausAnswer {
    /// A schedule with its graph and figures, or figures alone where none was found in time, as JSON (`docs/formats.md`).
    Found(String),
    /// Dependences rule every schedule out; why.
    Infeasible(String),
    /// The input or an option is wrong; what.
    Wrong(String),
}

/// Reads the words of `twill gaus`.
fn gaus_arguments(words: &[String]) -> Result<GausArguments, OptionError> {
    let all = ["twill", "gaus"].map(str::to_owned).into_iter().chain(words.iter().cloned());
    match Arguments::try_parse_from(all) {
        Ok(Arguments { command: Command::Gaus(arguments) }) => Ok(arguments),
        Ok(_) => Err(OptionError::Other("not an option of twill gaus".into())),
        Err(error) => Err(OptionError::of(&error)),
    }
}

/// Checks the words of `twill gaus`.
///
/// # Errors
/// When there is no such option, or it cannot have this value.
pub fn check_gaus(words: &[String]) -> Result<(), OptionError> {
    gaus_arguments(words).map(|_| ())
}

/// Schedules a large graph with the words of `twill gaus`, until `interrupt` is set.
pub fn gaus(words: &[String], interrupt: Arc<AtomicBool>) -> GausAnswer {
    let arguments = match gaus_arguments(words) {
        Ok(arguments) => arguments,
        Err(error) => return GausAnswer::Wrong(error.to_string()),
    };
    match dataflow::find(&arguments, interrupt) {
        Ok(found) => GausAnswer::Found(found.to_json()),
        Err(Error::Search { input, error }) if error.proves_infeasible() => {
            GausAnswer::Infeasible(format!("{input}: {error}"))
        }
        Err(error) => GausAnswer::Wrong(error.to_string()),
    }
}
