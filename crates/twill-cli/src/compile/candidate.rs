//! One kernel that could be written: scheduled, checked, generated.

use super::rules::{self, Registers};
use crate::arguments::{CompileArguments, SearchArguments, WhichSchedule};
use crate::error::Error;
use crate::input::{self, Loops, Posed, Source};
use crate::progress::Ticker;
use crate::{files, schedule, siblings};
use std::collections::BTreeSet;
use std::time::Instant;
use twill_check::Verified;
use twill_emit::gluon::{self, Assembly, Header, Signature};
use twill_emit::kernel::program::KernelProgram;
use twill_emit::kernel::{Checked, Options, ScheduledLoop};
use twill_exact::{Naive, SearchOptions};
use twill_graph::format::KernelScheduleFile;
use twill_graph::{GroupRole, Report, Schedule, Status};
use twill_triton::{Kernel, Lowered};

/// A kernel that could be written.
pub(super) struct Candidate {
    pub(super) program: Checked,
    /// By loop, what is known about its schedule.
    pub(super) statuses: Vec<String>,
    /// Seconds that the proof of its barriers took.
    pub(super) checking: f64,
    /// Most registers that the schedule grants a thread.
    pub(super) granted: u32,
    pub(super) source: String,
    pub(super) assembly: Option<Assembly>,
    signature: Signature,
    json: String,
    test: String,
}

/// What came of an attempt.
pub(super) enum Attempt {
    Made(Box<Candidate>),
    /// There is no schedule to generate code for.
    Nothing(Status),
}

/// What was found for the loops of a kernel, and its file.
struct Found {
    loops: Vec<Report<Verified<Schedule>>>,
    status: Status,
    json: String,
}

impl Candidate {
    /// Schedules a kernel within these limits, and generates it.
    pub(super) fn make(
        arguments: &CompileArguments,
        limits: &SearchArguments,
        source: &Source,
        search: &SearchOptions,
    ) -> Result<Attempt, Error> {
        let mut limits = limits.clone();
        let usual = if naive(arguments).is_some() { None } else { limits.model.warp_assignment };
        limits.model.warp_assignment = Some(usual.unwrap_or(rules::assignments(source)[0]));
        Candidate::within(arguments, &limits, source, search)
    }

    fn within(
        arguments: &CompileArguments,
        limits: &SearchArguments,
        source: &Source,
        search: &SearchOptions,
    ) -> Result<Attempt, Error> {
        let started = Instant::now();
        let posed = input::problems(limits)?;
        let found = find(arguments, limits, &posed, search, started)?;
        let schedules: Option<Vec<&Verified<Schedule>>> = found.loops.iter().map(|r| r.outcome.schedule()).collect();
        let Some(schedules) = schedules else { return Ok(Attempt::Nothing(found.status)) };
        let of_compute = schedules.iter().flat_map(|s| &s.groups).filter(|g| g.role == GroupRole::Compute);
        let granted = of_compute.map(|g| g.registers_per_thread).max().unwrap_or_default();
        let lower = |l| twill_triton::lower_parts(l, &source.machine, &source.options);
        let lowered: Result<Vec<Lowered>, twill_triton::Error> = source.kernel.loops().iter().map(lower).collect();
        let lowered = lowered?;
        let each = lowered.iter().zip(&posed.loops).zip(schedules);
        let loops: Vec<ScheduledLoop<'_>> =
            each.map(|((lowered, p), schedule)| ScheduledLoop { lowered, problem: &p.problem, schedule }).collect();
        let groups = loops.iter().flat_map(|l| &l.schedule.groups).filter(|g| g.role == GroupRole::Compute);
        let groups: BTreeSet<_> = groups.map(|g| g.id).collect();
        let share = twill_emit::kernel::register_share(u32::try_from(groups.len()).unwrap_or(1));
        let options = rules::options(arguments, source, &lowered, Registers { granted, share });
        let emitted = |error| Error::Emit { input: limits.source.input.clone(), error };
        let program = emit(&source.kernel, &loops, &options).map_err(emitted)?;
        let checking = Instant::now();
        let program = twill_emit::kernel::check(program).map_err(emitted)?;
        let checking = checking.elapsed().as_secs_f64();
        let header = header(arguments, source, &found);
        Ok(Attempt::Made(Box::new(Candidate {
            statuses: header.statuses.clone(),
            checking,
            granted,
            source: gluon::source(&program, &header),
            signature: Signature::new(&program, &header),
            json: found.json,
            test: gluon::test(&program),
            assembly: None,
            program,
        })))
    }

    /// All files of its folder.
    pub(super) fn files(&self) -> Vec<(&'static str, String)> {
        let signature = match &self.assembly {
            Some(assembly) => self.signature.clone().assembled(assembly.clone()),
            None => self.signature.clone(),
        };
        vec![
            ("kernel.py", self.source.clone()),
            ("kernel.json", signature.to_json()),
            ("schedule.json", self.json.clone()),
            ("launch.py", gluon::LAUNCHER.to_owned()),
            ("assemble.py", gluon::ASSEMBLER.to_owned()),
            ("test_kernel.py", self.test.clone()),
        ]
    }

    /// The smaller the better: multiplies that run one by one, quarters of a kilobyte spilled (less is nothing beside a longer
    /// interval: on an H200, attention backward with 104 bytes spilled and I = 2560 ran 9 % faster than with 52 and 2654),
    /// cycles an iteration, bytes spilled.
    pub(super) fn cost(&self) -> (usize, u64, i64, u64) {
        let interval = self.program.loops.iter().map(|l| l.interval).sum();
        let assembly = self.assembly.as_ref();
        let spills = assembly.map_or(0, |a| a.spill_stores + a.spill_loads);
        let serial = assembly.map_or(0, |a| a.count("serialised") + a.count("registers_refused"));
        (serial, spills / 256, interval, spills)
    }
}

/// The warp programs with the first options that fit shared memory.
fn emit(kernel: &Kernel, loops: &[ScheduledLoop<'_>], options: &[Options]) -> Result<KernelProgram, twill_emit::Error> {
    let mut last = None;
    for options in options {
        match twill_emit::kernel::lower(kernel, loops, options) {
            Err(error @ twill_emit::Error::SharedMemory { .. }) => last = last.or(Some(error)),
            other => return other,
        }
    }
    Err(last.unwrap_or(twill_emit::Error::SharedMemory { needed: 0, available: 0 }))
}

/// The naive schedule that is asked for, if one is.
fn naive(arguments: &CompileArguments) -> Option<Naive> {
    match arguments.schedule {
        WhichSchedule::Optimal => None,
        WhichSchedule::SwpOnly => Some(Naive::PipeliningOnly),
        WhichSchedule::NoSwp => Some(Naive::NoPipelining),
    }
}

/// Schedules all loops of the kernel.
fn find(
    arguments: &CompileArguments,
    search: &SearchArguments,
    posed: &Loops<Posed>,
    options: &SearchOptions,
    started: Instant,
) -> Result<Found, Error> {
    let reading = started.elapsed().as_secs_f64() / posed.loops.len().max(1) as f64;
    if let Some(kernel) = siblings::pose(search, &arguments.siblings, posed)? {
        let mut report = match naive(arguments) {
            Some(how) => {
                let mut ticker = Ticker::new(search.quiet);
                let report = twill_exact::naive_kernel(&kernel, how, options, &mut |p| ticker.tell(&p));
                siblings::verified(search, &kernel, report)?
            }
            None => siblings::solve(search, &kernel, options, reading)?,
        };
        // The same input gives the same folder, however long it took.
        report.phases.clear();
        report.loops.iter_mut().for_each(|own| own.phases.clear());
        let json = KernelScheduleFile::new(&kernel, &report).to_json() + "\n";
        return Ok(Found { status: report.outcome.status(), loops: report.loops, json });
    }
    let mut loops = Vec::new();
    for one in &posed.loops {
        let mut report = match naive(arguments) {
            Some(how) => find_naive(search, one, options, how)?,
            None => schedule::solve(search, one, options, reading)?,
        };
        report.phases.clear();
        loops.push(report);
    }
    let each = posed.loops.iter().zip(&loops);
    let json = files::json(each.map(|(p, r)| schedule::schedule_file(p, r)));
    let worst = loops.iter().map(|r| r.outcome.status()).max_by_key(|s| schedule::exit(*s));
    Ok(Found { status: worst.unwrap_or(Status::Unknown), loops, json })
}

/// The naive schedule of a loop.
fn find_naive(
    search: &SearchArguments,
    one: &Posed,
    options: &SearchOptions,
    how: Naive,
) -> Result<Report<Verified<Schedule>>, Error> {
    let mut ticker = Ticker::new(search.quiet);
    let report = twill_exact::naive(&one.problem, how, options, &mut |p| ticker.tell(&p));
    let verify = |schedule| twill_check::verify(&one.problem, schedule);
    report.try_map(verify).map_err(|error| Error::Defect { input: search.source.input.clone(), error })
}

fn header(arguments: &CompileArguments, source: &Source, found: &Found) -> Header {
    let status = |report: &Report<Verified<Schedule>>| {
        match report.outcome.status() {
            Status::Feasible if arguments.schedule == WhichSchedule::SwpOnly => {
                "software pipelining without choice of warps, to compare with"
            }
            Status::Feasible if arguments.schedule == WhichSchedule::NoSwp => "no software pipelining, to compare with",
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
