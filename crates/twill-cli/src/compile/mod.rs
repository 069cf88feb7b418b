//! `twill compile`: schedule, check, generate, assemble.

mod assembler;
mod candidate;
mod folder;
mod report;
mod rules;

use crate::Exit;
use crate::arguments::{CompileArguments, SearchArguments, Switch, WarpAssignmentArgument};
use crate::error::Error;
use crate::input::{self, Source};
use crate::schedule;
use assembler::{Assembled, Assembler};
use candidate::{Attempt, Candidate};
use folder::{Staged, Target};
use std::sync::atomic::Ordering;
use twill_exact::{Budget, SearchOptions};

/// Work for the search of a second or later attempt: what is not found then is not worth the wait.
const LATER_WORK: u64 = 20_000_000;

pub(crate) fn run(arguments: &CompileArguments) -> Result<Exit, Error> {
    let input = || arguments.search.source.input.clone();
    let Some(source) = input::source(&arguments.search.source)? else {
        return Err(Error::NoSource { input: input() });
    };
    let target = Target::new(&arguments.output)?;
    let search = schedule::options(&arguments.search);
    let first = match Candidate::make(arguments, &arguments.search, &source, &search)? {
        Attempt::Made(candidate) => *candidate,
        Attempt::Nothing(status) => {
            eprintln!("error: {}: no schedule, so no code (twill schedule and twill explain say why)", input());
            return Ok(schedule::exit(status));
        }
    };
    let staged = target.stage()?;
    staged.write(&first.files())?;
    let best = match Assembler::new(arguments) {
        Some(assembler) => {
            let Some(best) = assembled(arguments, first, &source, &search, &assembler, &staged)? else {
                eprintln!("stopped: nothing was written");
                return Ok(Exit::Stopped);
            };
            staged.write(&best.files())?;
            best
        }
        None => first,
    };
    staged.finish()?;
    if !arguments.search.quiet {
        print!("{}", report::text(&best, source.machine.name(), &arguments.output));
    }
    Ok(Exit::Done)
}

/// The best of as many attempts as there may be: where registers do not suffice, the schedule is made again with
/// fewer, so that fewer values live at a time. None where it was stopped before there was anything.
fn assembled(
    arguments: &CompileArguments,
    first: Candidate,
    source: &Source,
    search: &SearchOptions,
    assembler: &Assembler,
    staged: &Staged,
) -> Result<Option<Candidate>, Error> {
    let stopped = || search.budget.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
    let note = |text: String| {
        if !arguments.search.quiet {
            eprintln!("{text}");
        }
    };
    let mut best = first;
    match assembler.run(staged.path(), &arguments.search.source.input) {
        _ if stopped() => return Ok(None),
        Ok(Assembled::Report(assembly)) => best.assembly = Some(assembly),
        Ok(Assembled::Impossible(why)) => {
            note(format!("note: the kernel is not assembled: {why}; name an interpreter that has it with --python"));
            return Ok(Some(best));
        }
        Err(error) => return Err(error),
    }
    let (mut tried, mut limits) = (arguments.clone(), arguments.search.clone());
    let work = search.budget.work.map_or(LATER_WORK, |work| work.min(LATER_WORK));
    let later = SearchOptions { budget: Budget { work: Some(work), ..search.budget.clone() }, ..search.clone() };
    let (mut granted, mut source_before) = (best.granted, best.source.clone());
    for number in 2..=arguments.attempts {
        let short = best.assembly.as_ref().is_some_and(twill_emit::gluon::Assembly::is_short_of_registers);
        if !short || stopped() {
            break;
        }
        let what = best.assembly.as_ref().map(report::machine_code).unwrap_or_default();
        // One change at a time; what does not help is taken back.
        let before = (tried.clone(), limits.clone());
        if tried.persistent.is_none() && best.program.tiling.persistent {
            tried.persistent = Some(Switch::Off);
            note(format!("{what}; attempt {number}: one tile a CTA"));
        } else if limits.model.warp_assignment.is_none() {
            limits.model.warp_assignment = Some(WarpAssignmentArgument::Free);
            note(format!("{what}; attempt {number}: any group may work on any sub-tile"));
        } else {
            let Some(fewer) = fewer_registers(&limits, granted, source) else { break };
            limits.registers_per_thread = Some(fewer);
            note(format!("{what}; attempt {number}: at most {fewer} registers a thread in the schedule"));
        }
        let mut candidate = match Candidate::make(&tried, &limits, source, &later) {
            Ok(Attempt::Made(candidate)) => *candidate,
            Ok(Attempt::Nothing(_)) => {
                note(format!("attempt {number}: there is no schedule, or none was found in time"));
                break;
            }
            Err(error) => {
                note(format!("attempt {number}: {error}"));
                break;
            }
        };
        granted = candidate.granted;
        if candidate.source == source_before {
            note(format!("attempt {number}: the same kernel"));
            continue;
        }
        source_before.clone_from(&candidate.source);
        staged.write(&candidate.files())?;
        match assembler.run(staged.path(), &arguments.search.source.input) {
            _ if stopped() => break,
            Ok(Assembled::Report(assembly)) => candidate.assembly = Some(assembly),
            Ok(Assembled::Impossible(why)) => {
                note(format!("attempt {number}: {why}"));
                break;
            }
            Err(error) => {
                note(format!("attempt {number}: {error}"));
                break;
            }
        }
        if candidate.cost() < best.cost() {
            note(format!("attempt {number} is better"));
            best = candidate;
        } else {
            note(format!("attempt {number} is no better"));
            let registers = limits.registers_per_thread;
            (tried, limits) = before;
            limits.registers_per_thread = registers;
            tried.persistent = tried.persistent.or(Some(Switch::On));
            limits.model.warp_assignment = limits.model.warp_assignment.or(Some(WarpAssignmentArgument::BySubTile));
        }
    }
    Ok(Some(best))
}

/// Fewer registers than this schedule grants a thread, or than it might; none where a thread must have more.
fn fewer_registers(limits: &SearchArguments, granted: u32, source: &Source) -> Option<u32> {
    let file = source.machine.resources().registers;
    let step = file.granularity.max(1);
    let most = limits.registers_per_thread.unwrap_or(file.maximum_per_thread);
    let fewer = granted.min(most.checked_sub(step)?) / step * step;
    (fewer >= file.minimum_per_thread.max(file.reserve_per_thread)).then_some(fewer)
}
