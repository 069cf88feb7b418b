//! `twill compile`: schedule, check, generate, assemble.

mod folder;
mod report;
mod top;

use crate::Exit;
use crate::arguments::{
    CompileArguments, GeneratorArguments, LanguageArgument, OrderArgument, SearchArguments, Switch, TraceDetailArgument,
    WhichSchedule,
};
use crate::error::Error;
use crate::progress::Ticker;
use crate::schedule;
use folder::Target;
use std::ffi::OsString;
use twill_driver::compile::{
    Assembler, CompileOptions, Compiled, GeneratedKernel, Language, TileOrderOption, TraceDetail, TraceOptions, Which, compile,
};
use twill_driver::{Request, Session};

/// Seconds that all searches for a kernel may take when nothing is said.
const COMPILE_SECONDS: f64 = 120.0;

pub(crate) fn run(arguments: &CompileArguments) -> Result<Exit, Error> {
    arguments.print_after()?;
    if let Some(requested) = arguments.top.options() {
        return top::run(arguments, requested);
    }
    let request = arguments.search.request_with(&arguments.siblings)?;
    let target = Target::new(&arguments.output)?;
    let search = schedule::options(&arguments.patient_search());
    let staged = target.stage()?;
    let python = arguments.python.clone();
    let assembler = (!arguments.no_assemble).then(|| Assembler::new(python, staged.path().to_owned()));
    let mut ticker = Ticker::new(arguments.search.quiet);
    let mut session = Session { cache: arguments.search.cache(), ..Session::new(search, &mut ticker) };
    let options = arguments.options(command());
    let compiled = compile(&request, &options, assembler.as_ref(), &mut session)?;
    let best = match kernel(compiled, &request) {
        Ok(best) => best,
        Err(exit) => return Ok(exit),
    };
    let space = report::space(&best, &request, &mut session);
    drop(ticker);
    staged.write(&best.files)?;
    staged.finish()?;
    if !arguments.search.quiet {
        print!("{}", report::text(&best, space.as_deref(), &arguments.output, schedule::width(None, None)));
    }
    Ok(Exit::Done)
}

/// What was generated; where that is nothing, says so.
fn kernel(compiled: Compiled, request: &Request) -> Result<Box<GeneratedKernel>, Exit> {
    match compiled {
        Compiled::Kernel(best) => Ok(best),
        Compiled::NoSchedule(status) => {
            let input = &request.input.name;
            eprintln!("error: {input}: no schedule, so no code (twill schedule and twill explain say why)");
            Err(schedule::exit(status))
        }
        Compiled::Stopped => {
            eprintln!("stopped: nothing was written");
            Err(Exit::Stopped)
        }
    }
}

impl CompileArguments {
    /// How to search where nothing is said of time: code is searched for many times, within limits of work, and must not depend
    /// on how fast the machine is.
    pub(crate) fn patient_search(&self) -> SearchArguments {
        let mut search = self.search.clone();
        search.budget.time_limit.get_or_insert(COMPILE_SECONDS);
        search
    }

    /// What is asked for; `command` generates the kernel again.
    pub(crate) fn options(&self, command: String) -> CompileOptions {
        let language = match self.emit {
            LanguageArgument::Gluon => Language::Gluon,
            LanguageArgument::Cuda => Language::Cuda,
        };
        let detail = match self.trace_detail {
            TraceDetailArgument::Operations => TraceDetail::Operations,
            TraceDetailArgument::Segments => TraceDetail::Segments,
            TraceDetailArgument::Iterations => TraceDetail::Iterations,
        };
        let trace = self.trace.map(|iterations| TraceOptions { iterations, detail });
        CompileOptions {
            command,
            language,
            trace,
            cluster: self.cluster > 1,
            wave_sync: self.wave_sync,
            // Others are written beside the first of `--top`, not instead of it.
            candidates: if self.top.top.is_some() { Some(1) } else { self.candidates },
            ..self.generator.options(self.attempts)
        }
    }
}

impl GeneratorArguments {
    /// What the generator is asked for.
    pub(crate) fn options(&self, attempts: u32) -> CompileOptions {
        let is_on = |switch: Option<Switch>| switch.map(|switch| switch == Switch::On);
        CompileOptions {
            persistent: is_on(self.persistent),
            tile_order: self.tile_order.map(|order| match order {
                OrderArgument::Linear => TileOrderOption::Linear,
                OrderArgument::Lpt => TileOrderOption::Lpt,
                OrderArgument::GroupM => TileOrderOption::GroupM,
            }),
            group_m: self.group_m,
            ring_depth: self.ring_depth,
            handoff_depth: self.handoff_depth,
            mma_batches: is_on(self.mma_batches).unwrap_or(true),
            operands_in_registers: is_on(self.operands_in_registers),
            pingpong: is_on(self.pingpong),
            schedule: match self.schedule {
                WhichSchedule::Optimal => Which::Optimal,
                WhichSchedule::SwpOnly => Which::SwpOnly,
                WhichSchedule::NoSwp => Which::NoSwp,
            },
            attempts,
            ..CompileOptions::default()
        }
    }
}

/// The command line, to be typed again in a shell (POSIX: within single quotes nothing means anything).
fn command() -> String {
    let quote = |argument: OsString| {
        let argument = argument.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+".contains(c);
        if !argument.is_empty() && argument.chars().all(plain) {
            return argument.into_owned();
        }
        format!("'{}'", argument.replace('\'', r"'\''"))
    };
    // Run by Python, the process has words of its own before those of the command.
    let arguments: Vec<String> = std::env::args_os().skip_while(|word| word != "compile").map(quote).collect();
    format!("twill {}", arguments.join(" "))
}
