//! `twill compile`: schedule, check, generate, assemble.

mod folder;
mod report;
mod top;

use crate::arguments::{CompileArguments, width};
use crate::error::Error;
use crate::exit::Exit;
use crate::files;
use crate::progress::Ticker;
use folder::Target;
use std::collections::BTreeMap;
use std::ffi::OsString;
use twill_driver::options::CompileOptions;
use twill_driver::tune::{Assembler, Compiled, GeneratedKernel, compile_fastest};
use twill_driver::{Cache, Request, Session};

pub(crate) fn run(arguments: &CompileArguments) -> Result<Exit, Error> {
    let print_after = arguments.print_after()?;
    if let Some(requested) = arguments.top.options() {
        return top::run(arguments, requested);
    }
    let staged = Target::new(&arguments.output)?.stage()?;
    let request = arguments.search.request(&arguments.siblings)?;
    if let Some(pass) = print_after {
        let mut ticker = Ticker::new(arguments.search.quiet);
        let search = arguments.search.search_for_code();
        let mut session = Session { cache: arguments.search.cache(), ..Session::new(search, &mut ticker) };
        let text = twill_driver::tune::print_after(&request, &arguments.code(command()), pass, &mut session)?;
        drop(ticker);
        files::write(None, &text)?;
    }
    let search = arguments.search.search_for_code();
    let python = arguments.python.clone();
    let assembler = (!arguments.code.no_assemble).then(|| Assembler::new(python, staged.path().to_owned()));
    let mut ticker = Ticker::new(arguments.search.quiet);
    let mut session = Session { cache: arguments.cache(), ..Session::new(search, &mut ticker) };
    let options = arguments.code(command());
    let compiled = compile_fastest(&request, &options, assembler.as_ref(), &mut session)?;
    let best = match kernel(compiled, &request) {
        Ok(best) => best,
        Err(exit) => return Ok(exit),
    };
    let space = report::space(&best, &request, &mut session);
    drop(ticker);
    staged.write(&files_of(&best, arguments))?;
    staged.finish()?;
    if !arguments.search.quiet {
        files::write(None, &report::text(&best, space.as_deref(), &arguments.output, width(None, None)))?;
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
            Err(Exit::of(status))
        }
        Compiled::Stopped => {
            eprintln!("stopped: nothing was written");
            Err(Exit::Stopped)
        }
    }
}

/// The files of a kernel's folder.
fn files_of(kernel: &GeneratedKernel, arguments: &CompileArguments) -> BTreeMap<String, String> {
    let mut files = kernel.files.clone();
    if arguments.warp_program {
        files.insert("warp_program.txt".to_owned(), kernel.warp_program.clone());
    }
    files
}

impl CompileArguments {
    /// Where kernels are kept, without their warp programs: where one is asked for, nowhere.
    fn cache(&self) -> Option<Cache> {
        self.search.cache().filter(|_| !self.warp_program)
    }

    /// What is asked for; `command` generates the kernel again.
    fn code(&self, command: String) -> CompileOptions {
        let candidates = if self.top.top.is_some() { Some(1) } else { self.code.candidates };
        // Others are written next to the first of `--top`, not instead of it.
        CompileOptions { command, candidates, in_order: true, ..self.code.clone() }
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
