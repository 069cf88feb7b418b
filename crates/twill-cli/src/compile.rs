//! `twill compile`: schedule, check, generate.

use crate::Exit;
use crate::arguments::{CompileArguments, OrderArgument, SearchArguments};
use crate::error::Error;
use crate::input::{self, Loops, Posed, Source};
use crate::{files, schedule, siblings};
use std::fs;
use std::path::Path;
use std::time::Instant;
use twill_check::Verified;
use twill_emit::gluon::{self, Header, Signature};
use twill_emit::kernel::program::TileOrder;
use twill_emit::kernel::{Options, ScheduledLoop};
use twill_graph::format::KernelScheduleFile;
use twill_graph::{Report, Schedule, Status};
use twill_triton::Lowered;

/// What was found for the loops of a kernel, and its file.
struct Found {
    loops: Vec<Report<Verified<Schedule>>>,
    status: Status,
    json: String,
}

pub(crate) fn run(arguments: &CompileArguments) -> Result<Exit, Error> {
    let started = Instant::now();
    let input = || arguments.search.source.input.clone();
    let Some(source) = input::source(&arguments.search.source)? else {
        return Err(Error::NoSource { input: input() });
    };
    let posed = input::problems(&arguments.search)?;
    let found = find(arguments, &posed, started)?;
    let schedules: Option<Vec<&Verified<Schedule>>> = found.loops.iter().map(|r| r.outcome.schedule()).collect();
    let Some(schedules) = schedules else {
        eprintln!("error: {}: no schedule, so no code (twill schedule and twill explain say why)", input());
        return Ok(schedule::exit(found.status));
    };
    let lowered: Result<Vec<Lowered>, twill_triton::Error> = source
        .kernel
        .loops()
        .iter()
        .map(|l| twill_triton::lower_parts(l, &source.machine, &source.options))
        .collect();
    let lowered = lowered?;
    let each = lowered.iter().zip(&posed.loops).zip(schedules);
    let loops: Vec<ScheduledLoop<'_>> =
        each.map(|((lowered, p), schedule)| ScheduledLoop { lowered, problem: &p.problem, schedule }).collect();
    let options = options(arguments, &source);
    let emitted = |error| Error::Emit { input: input(), error };
    let program = twill_emit::kernel::lower(&source.kernel, &loops, &options).map_err(emitted)?;
    let header = header(arguments, &source, &found);
    let files = [
        ("kernel.py", gluon::source(&program, &header)),
        ("kernel.json", Signature::new(&program, &header).to_json()),
        ("schedule.json", found.json),
        ("launch.py", gluon::LAUNCHER.to_owned()),
        ("assemble.py", gluon::ASSEMBLER.to_owned()),
    ];
    let folder: &Path = &arguments.output;
    fs::create_dir_all(folder).map_err(|error| Error::Write { path: folder.to_owned(), error })?;
    for (name, text) in files {
        files::write(Some(&folder.join(name)), &text)?;
    }
    Ok(Exit::Done)
}

/// Schedules all loops of the kernel.
fn find(arguments: &CompileArguments, posed: &Loops<Posed>, started: Instant) -> Result<Found, Error> {
    let search: &SearchArguments = &arguments.search;
    let options = schedule::options(search);
    let reading = started.elapsed().as_secs_f64() / posed.loops.len().max(1) as f64;
    if let Some(kernel) = siblings::pose(search, &arguments.siblings, posed)? {
        let report = siblings::solve(search, &kernel, &options, reading)?;
        let json = KernelScheduleFile::new(&kernel, &report).to_json() + "\n";
        return Ok(Found { status: report.outcome.status(), loops: report.loops, json });
    }
    let mut loops = Vec::new();
    for one in &posed.loops {
        loops.push(schedule::solve(search, one, &options, reading)?);
    }
    let each = posed.loops.iter().zip(&loops);
    let json = files::json(each.map(|(p, r)| schedule::schedule_file(p, r)));
    let worst = loops.iter().map(|r| r.outcome.status()).max_by_key(|s| schedule::exit(*s));
    Ok(Found { status: worst.unwrap_or(Status::Unknown), loops, json })
}

fn options(arguments: &CompileArguments, source: &Source) -> Options {
    let grows = source.kernel.loops().len() > 1;
    let order = match arguments.order {
        Some(OrderArgument::Linear) => TileOrder::Linear,
        Some(OrderArgument::Longest) => TileOrder::LongestFirst { heads: arguments.band },
        Some(OrderArgument::Grouped) => TileOrder::Grouped(arguments.band),
        None if grows => TileOrder::LongestFirst { heads: arguments.band },
        None => TileOrder::Linear,
    };
    let axis = |axis: twill_triton::tile::Axis| match axis {
        twill_triton::tile::Axis::X => 0,
        twill_triton::tile::Axis::Y => 1,
        twill_triton::tile::Axis::Z => 2,
    };
    Options {
        persistent: arguments.persistent,
        order,
        ring_depth: arguments.ring_depth,
        handover_depth: arguments.handover_depth,
        late_releases: arguments.late_releases,
        operands_in_registers: arguments.operands_in_registers,
        turns: arguments.turns,
        shared_bytes: source.machine.resources().shared_memory.0,
        programs: source.options.programs.map(|gang| (gang.count, axis(gang.axis))),
    }
}

fn header(arguments: &CompileArguments, source: &Source, found: &Found) -> Header {
    let status = |report: &Report<Verified<Schedule>>| {
        match report.outcome.status() {
            Status::Optimal => "optimal: proved",
            Status::Feasible => "feasible: optimality not proved",
            Status::Infeasible | Status::Unknown => "not settled",
        }
        .to_owned()
    };
    Header {
        input: arguments.search.source.input.clone(),
        machine: source.machine.name().to_owned(),
        architecture: source.machine.architecture().to_owned(),
        command: command(),
        statuses: found.loops.iter().map(status).collect(),
    }
}

/// The command line, to be typed again.
fn command() -> String {
    let quote = |argument: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+".contains(c);
        if !argument.is_empty() && argument.chars().all(plain) { argument } else { format!("{argument:?}") }
    };
    let arguments: Vec<String> = std::env::args().skip(1).map(quote).collect();
    format!("twill {}", arguments.join(" "))
}
