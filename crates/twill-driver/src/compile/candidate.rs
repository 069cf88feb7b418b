//! One kernel that could be written: scheduled, checked, generated.

use super::found::{Found, Preferred, find, in_batches, with_padded_latencies};
use super::rings;
use super::rules::{self, Registers};
use super::timed::{repeating, sass_estimate};
use super::written::{lines, names, signature, written};
use super::{CompileOptions, LATER_WORK, Language, TraceOptions, Which};
use crate::{Error, LoopProblem, Loops, Request, Session, Source, TopOptions};
use crate::{problems, schedule_file, top};
use std::time::Instant;
use twill_backend::gluon::{self, Assembly, Header, Signature, Simulated};
use twill_check::Verified;
use twill_codegen::{Checked, ScheduledLoop};
use twill_exact::{Budget, Naive, SearchOptions};
use twill_graph::{Bytes, Problem, Report, Schedule, Status, WarpAssignment};
use twill_machine::Machine;
use twill_triton::Lowered;

/// Searches with less shared memory where the best schedule takes too much.
const SMALLER: u32 = 3;

/// How much longer, in part, warp programs must be simulated to be slower for sure. Of causal attention the schedule that is
/// simulated 3 % faster than the one that computes least between MMAs is 1 % slower on an H200 at length 4096, and the one
/// that computes least with other costs is simulated 20 % slower and is 6 % slower (`bench/results/calibration.md`).
const CLEARLY: f64 = 0.05;

/// Files by their names.
pub(super) type Files = Vec<(&'static str, String)>;

/// A kernel that could be written.
pub(super) struct Candidate {
    /// The warp programs, their barriers proved.
    pub(super) program: Checked,
    /// By simulation; none where programs like these are not simulated.
    pub(super) simulated: Option<Simulated>,
    /// What it is for.
    pub(super) machine: Machine,
    /// By loop, what is known about its schedule.
    pub(super) statuses: Vec<String>,
    /// Seconds that the proof of its barriers took.
    pub(super) checking: f64,
    /// Most registers that the schedule grants a thread.
    pub(super) granted: u32,
    /// The kernel in its language.
    pub(super) source: String,
    /// By loop, the names of its operations.
    operations: Vec<Vec<String>>,
    /// What its language needs beside it.
    beside: Files,
    language: Language,
    header: Header,
    /// What the assembler made of it, if it was requested.
    pub(super) assembly: Option<Assembly>,
    /// Whether it was searched for again and preferred to what was found first.
    pub(super) preferred: bool,
    /// Of several loops, kernels of other schedules of the same intervals, among themselves the fewest cycles by simulation first.
    pub(super) others: Vec<Candidate>,
    /// Whether a simulation of warp programs is all that it was preferred to others for.
    pub(super) by_simulation: bool,
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

/// An attempt with another schedule than the best.
pub(super) struct Other {
    pub(super) attempt: Result<Attempt, Error>,
    /// In what the schedule differs from the best, in words.
    pub(super) differences: Vec<String>,
}

impl Candidate {
    /// Schedules a kernel within the request's limits, and generates it; where the best schedule takes too much memory, or none
    /// is found in time, with less of it, and at last with the schedule that takes least.
    pub(super) fn first(
        request: &Request,
        options: &CompileOptions,
        source: &Source,
        session: &mut Session<'_>,
    ) -> Result<Attempt, Error> {
        let requested = Candidate::make(request, options, source, session);
        if options.schedule != Which::Optimal || session.is_stopped() {
            return requested;
        }
        let mut room = source.machine.resources().shared_memory.0;
        let mut excess = match &requested {
            Ok(Attempt::Nothing(Status::Unknown)) => 0,
            Err(error) => match error.excess() {
                Some(excess) => excess,
                None => return requested,
            },
            Ok(_) => return requested,
        };
        let request = &with_assignment(request, options, source);
        // It takes no search; where it does not fit either, nothing is likely to.
        let least = match Candidate::within(&by_sub_tile(request), options, source, session, &Plan::Least) {
            Ok(Attempt::Made(candidate)) => Attempt::Made(candidate),
            _ => return requested,
        };
        for _ in 0..SMALLER {
            if excess == 0 || room <= excess || session.is_stopped() {
                break;
            }
            room -= excess;
            session.observer.note(&format!(
                "the schedule takes {} bytes of shared memory too many; the next may take {}",
                twill_graph::grouped(excess),
                twill_graph::grouped(room)
            ));
            let work = session.search.budget.work.map_or(LATER_WORK, |work| work.min(LATER_WORK));
            let budget = Budget { work: Some(work), ..session.search.budget.clone() };
            let later = SearchOptions { budget, ..session.search.clone() };
            match Candidate::within(request, options, source, &mut session.with(later), &Plan::Room(room)) {
                Ok(Attempt::Made(candidate)) => return Ok(Attempt::Made(candidate)),
                Ok(Attempt::Nothing(_)) => break,
                Err(error) => excess = error.excess().unwrap_or(0),
            }
        }
        let why = requested.as_ref().err().map_or("no schedule was found in time".to_owned(), ToString::to_string);
        session.observer.note(&format!("{why}\nthe schedule that takes least does: one iteration after another"));
        Ok(least)
    }

    /// Schedules a kernel within the request's limits, and generates it.
    pub(super) fn make(
        request: &Request,
        options: &CompileOptions,
        source: &Source,
        session: &mut Session<'_>,
    ) -> Result<Attempt, Error> {
        let requested = request.limits.warp_assignment;
        let assignments = requested.map_or_else(|| rules::assignments(source).to_vec(), |assignment| vec![assignment]);
        let request = with_assignment(request, options, source);
        Candidate::within(&request, options, source, session, &Plan::Requested(assignments))
    }

    /// The same with the schedule that was found first, whatever stands between its MMAs.
    pub(super) fn plain(
        request: &Request,
        options: &CompileOptions,
        source: &Source,
        session: &mut Session<'_>,
    ) -> Result<Attempt, Error> {
        let request = with_assignment(request, options, source);
        Candidate::within(&request, options, source, session, &Plan::Requested(Vec::new()))
    }

    /// The same of schedules that differ from the best.
    pub(super) fn others(
        request: &Request,
        options: &CompileOptions,
        source: &Source,
        requested: TopOptions,
        session: &mut Session<'_>,
    ) -> Result<Vec<Other>, Error> {
        let request = with_assignment(request, options, source);
        let problems = problems(&request)?;
        let input = &request.input.name;
        let [one] = problems.loops.as_slice() else {
            return Err(Error::TopOfLoops { input: input.clone(), count: problems.loops.len() });
        };
        let top = top(input, one, requested, session, 0.0)?;
        let each = top.each.into_iter().skip(1).map(|mut other| {
            other.report.phases.clear();
            let json = crate::json([schedule_file(one, &other.report)]);
            let found = Found {
                status: other.report.outcome.status(),
                loops: vec![other.report],
                json,
                naive: None,
                preferred: None,
            };
            let attempt = Candidate::of(&request, options, source, &problems, found);
            Other { attempt, differences: other.differences }
        });
        Ok(each.collect())
    }

    fn within(
        request: &Request,
        requested: &CompileOptions,
        source: &Source,
        session: &mut Session<'_>,
        plan: &Plan,
    ) -> Result<Attempt, Error> {
        let started = Instant::now();
        let mut first = problems(request)?;
        if let Plan::Room(bytes) = plan {
            less_room(&request.input.name, &mut first, *bytes)?;
        }
        let naive = naive(requested).or((*plan == Plan::Least).then_some(Naive::NoPipelining));
        let found = find(request, naive, &first, session, started)?;
        if let (None, Plan::Requested(assignments), true) =
            (naive, plan, requested.mma_batches && !rules::in_tensor_memory(source))
            && !assignments.is_empty()
            && let Some(best) = Candidate::in_batches(request, requested, source, &first, &found, session, started)?
        {
            return Ok(Attempt::Made(Box::new(best)));
        }
        if let (None, Plan::Requested(assignments)) = (naive, plan) {
            let mut together = with_padded_latencies(request, assignments, &first, &found, session, started)?;
            if first.loops.len() > 1 && !together.is_empty() {
                together.push((first.clone(), found.clone()));
                let mut all = Candidate::by_simulation(request, requested, source, together, session).into_iter();
                if let Some(best) = all.next() {
                    return Ok(Attempt::Made(Box::new(Candidate { others: all.collect(), ..best })));
                }
            } else if let Some((problems, together)) = together.pop() {
                match Candidate::of(request, requested, source, &problems, together) {
                    // What is not written for its assignment of groups may be for the schedule that was found first.
                    Err(error @ Error::Emit { .. }) if error.excess().is_none() => {
                        let made = Candidate::of(request, requested, source, &first, found)?;
                        session
                            .observer
                            .note(&format!("{error}\nthe schedule that was found first is generated instead"));
                        return Ok(made);
                    }
                    made => return made,
                }
            }
        }
        Candidate::of(request, requested, source, &first, found)
    }

    /// The one that takes the fewest cycles by simulation, of schedules whose sub-tiles start their MMAs in mma_batches.
    fn in_batches(
        request: &Request,
        requested: &CompileOptions,
        source: &Source,
        problems: &Loops<LoopProblem>,
        found: &Found,
        session: &mut Session<'_>,
        started: Instant,
    ) -> Result<Option<Candidate>, Error> {
        let mut best: Option<(u32, Candidate)> = None;
        for (problems, other) in in_batches(request, problems, found, session, started)? {
            let candidate = match Candidate::of(request, requested, source, &problems, other) {
                Ok(Attempt::Made(candidate)) => candidate,
                Ok(Attempt::Nothing(_)) => continue,
                // What cannot be written in mma_batches is written as it was found first.
                Err(error) => {
                    session.observer.note(&format!(
                        "{error}\nanother schedule is generated, whose MMAs do not start in this order"
                    ));
                    continue;
                }
            };
            let simulated = candidate.simulated.as_ref().and_then(|simulated| simulated.iterations.first().copied());
            let cycles = simulated.unwrap_or(u32::MAX);
            if best.as_ref().is_none_or(|(least, _)| cycles < *least) {
                best = Some((cycles, *candidate));
            }
        }
        Ok(best.map(|(_, candidate)| candidate))
    }

    /// Those of which code can be written, each once: first what computes least between MMAs, unless another is simulated
    /// clearly faster, then the others, the fewest cycles by simulation first.
    fn by_simulation(
        request: &Request,
        requested: &CompileOptions,
        source: &Source,
        found: Vec<(Loops<LoopProblem>, Found)>,
        session: &mut Session<'_>,
    ) -> Vec<Candidate> {
        let mut all: Vec<(u64, Option<i64>, Candidate)> = Vec::new();
        for (problems, found) in found {
            let between = found.between(&problems);
            match Candidate::of(request, requested, source, &problems, found) {
                Ok(Attempt::Made(candidate)) if all.iter().all(|(.., other)| other.source != candidate.source) => {
                    all.push((candidate.simulated_cycles(), between, *candidate));
                }
                Ok(_) => {}
                Err(error) => {
                    session.observer.note(&format!("{error}\nanother schedule of the same intervals is tried"))
                }
            }
        }
        all.sort_by_key(|(cycles, between, _)| (*cycles, *between));
        let together = (0..all.len()).min_by_key(|k| all[*k].1);
        let together = together.filter(|k| all[*k].0 as f64 <= all[0].0 as f64 * (1.0 + CLEARLY));
        let mut all: Vec<Candidate> =
            all.into_iter().map(|(.., one)| Candidate { by_simulation: true, ..one }).collect();
        if let Some(together) = together {
            let first = all.remove(together);
            all.insert(0, Candidate { by_simulation: false, ..first });
        }
        all
    }

    /// Cycles of an iteration by simulation, of all loops that repeat; the most there is where it is not known.
    fn simulated_cycles(&self) -> u64 {
        self.simulated.as_ref().map_or(u64::MAX, |simulated| repeating(&self.program, &simulated.iterations))
    }

    fn of(
        request: &Request,
        requested: &CompileOptions,
        source: &Source,
        problems: &Loops<LoopProblem>,
        found: Found,
    ) -> Result<Attempt, Error> {
        let schedules: Option<Vec<&Verified<Schedule>>> = found.loops.iter().map(|r| r.outcome.schedule()).collect();
        let Some(schedules) = schedules else { return Ok(Attempt::Nothing(found.status)) };
        let lowered = lowered(source)?;
        let loops = loops(&lowered, &problems.loops, &schedules);
        let registers = Registers::of(&schedules);
        let mma_batches = found.preferred == Some(Preferred::MmaBatches);
        let options = rules::options(requested, source, &lowered, &schedules, mma_batches);
        let emitted = |error| Error::Emit { input: request.input.name.clone(), error: Box::new(error) };
        let may_deepen = requested.ring_depth.is_none() && requested.schedule == Which::Optimal;
        let (program, simulated) = rings::emit(source, &lowered, &loops, &options, may_deepen).map_err(emitted)?;
        let checking = Instant::now();
        let program = twill_codegen::check(program).map_err(emitted)?;
        let checking = checking.elapsed().as_secs_f64();
        let header = header(request, requested, source, &found);
        let signature = signature(requested.language, &program, &header).map_err(emitted)?;
        let (listing, beside) = written(requested.language, &program, &header).map_err(emitted)?;
        let operations: Vec<Vec<String>> = problems.loops.iter().map(names).collect();
        let signature = signature.with_lines(lines(&listing, &operations)).with_simulated(simulated.clone());
        Ok(Attempt::Made(Box::new(Candidate {
            statuses: header.statuses.clone(),
            checking,
            granted: registers.granted,
            source: listing.text,
            operations,
            beside,
            language: requested.language,
            header,
            signature,
            json: found.json,
            test: gluon::test(&program),
            assembly: None,
            preferred: found.preferred.is_some(),
            others: Vec::new(),
            by_simulation: false,
            program,
            simulated,
            machine: source.machine.clone(),
        })))
    }

    /// The same kernel, recording the time of the last iterations of a tile.
    pub(super) fn traced(mut self, trace: TraceOptions, input: &str) -> Result<Candidate, Error> {
        let emitted = |error| Error::Emit { input: input.to_owned(), error: Box::new(error) };
        self.program = self.program.traced(trace.iterations, trace.detail.into());
        let (listing, beside) = written(self.language, &self.program, &self.header).map_err(emitted)?;
        let signature = signature(self.language, &self.program, &self.header).map_err(emitted)?;
        self.signature = signature.with_lines(lines(&listing, &self.operations)).with_simulated(self.simulated.clone());
        (self.source, self.beside) = (listing.text, beside);
        self.test = gluon::test(&self.program);
        self.assembly = None;
        Ok(self)
    }

    /// Cycles of an iteration of its machine code, by loop; empty where they are not known.
    pub(super) fn sass_estimate(&self) -> Vec<u32> {
        let of = |assembly| sass_estimate(assembly, &self.program, &self.machine);
        self.assembly.as_ref().map(of).unwrap_or_default()
    }

    /// All files of its folder.
    pub(super) fn files(&self) -> Files {
        let signature = match &self.assembly {
            Some(assembly) => self.signature.clone().assembled(assembly.clone(), self.sass_estimate()),
            None => self.signature.clone(),
        };
        let mut files = vec![
            (self.language.file(), self.source.clone()),
            ("kernel.json", signature.to_json()),
            ("schedule.json", self.json.clone()),
            ("launch.py", gluon::LAUNCHER.to_owned()),
            ("machine_code.py", gluon::MACHINE_CODE.to_owned()),
            ("test_kernel.py", self.test.clone()),
        ];
        files.extend(self.beside.iter().cloned());
        files
    }

    /// The smaller the better: MMAs that run one by one, quarters of a kilobyte spilled (less is nothing beside a longer
    /// interval: on an H200, attention backward with 104 bytes spilled and I = 2560 ran 9 % faster than with 52 and 2654),
    /// cycles an iteration, bytes spilled.
    pub(super) fn cost(&self) -> (usize, u64, i64, u64) {
        let interval = self.program.loops.iter().map(|l| l.interval).sum();
        let assembly = self.assembly.as_ref();
        let spills = assembly.map_or(0, |a| a.spill_stores + a.spill_loads);
        let serial = assembly.map_or(0, |a| a.count("serialised") + a.count("registers_refused"));
        (serial, spills / gluon::MANY_SPILLED, interval, spills)
    }
}

/// Which schedule an attempt takes.
#[derive(PartialEq, Eq)]
enum Plan {
    /// What the options say; warp assignments that may be tried besides.
    Requested(Vec<WarpAssignment>),
    /// The same with so many bytes of shared memory.
    Room(u64),
    /// The one that takes least memory.
    Least,
}

/// The request with its assignment of operations to groups.
pub(crate) fn with_assignment(request: &Request, options: &CompileOptions, source: &Source) -> Request {
    let mut request = request.clone();
    let requested = request.limits.warp_assignment.filter(|_| naive(options).is_none());
    request.limits.warp_assignment = Some(requested.unwrap_or(rules::assignments(source)[0]));
    request
}

/// The request for schedules that choose nothing: each sub-tile has a group.
pub(crate) fn by_sub_tile(request: &Request) -> Request {
    let mut request = request.clone();
    request.limits.warp_assignment = Some(WarpAssignment::BySubTile);
    request
}

/// All loops of the kernel as they are lowered.
pub(crate) fn lowered(source: &Source) -> Result<Vec<Lowered>, Error> {
    let lower = |l| twill_triton::lower_parts(l, &source.machine, &source.options);
    Ok(source.kernel.loops().iter().map(lower).collect::<Result<_, twill_triton::Error>>()?)
}

/// Loops with their schedules, as the generator wants them.
pub(crate) fn loops<'a>(
    lowered: &'a [Lowered],
    problems: &'a [LoopProblem],
    schedules: &[&'a Verified<Schedule>],
) -> Vec<ScheduledLoop<'a>> {
    let each = lowered.iter().zip(problems).zip(schedules);
    each.map(|((lowered, p), schedule)| ScheduledLoop { lowered, problem: &p.problem, schedule }).collect()
}

/// Takes shared memory from all loops.
fn less_room(input: &str, problems: &mut Loops<LoopProblem>, bytes: u64) -> Result<(), Error> {
    for one in &mut problems.loops {
        let mut resources = one.problem.resources().clone();
        resources.shared_memory = Bytes(bytes);
        one.problem = Problem::new(one.problem.graph().clone(), resources, *one.problem.options())
            .map_err(|error| Error::Problem { input: input.to_owned(), error: Box::new(error) })?;
        one.rolled = None;
    }
    Ok(())
}

/// The naive schedule that is asked for, if one is.
fn naive(options: &CompileOptions) -> Option<Naive> {
    match options.schedule {
        Which::Optimal => None,
        Which::SwpOnly => Some(Naive::PipeliningOnly),
        Which::NoSwp => Some(Naive::NoPipelining),
    }
}

fn header(request: &Request, requested: &CompileOptions, source: &Source, found: &Found) -> Header {
    let status = |report: &Report<Verified<Schedule>>| {
        match report.outcome.status() {
            Status::Feasible if found.naive == Some(Naive::PipeliningOnly) => {
                "software pipelining without choice of warps, to compare with"
            }
            Status::Feasible if requested.schedule == Which::NoSwp => "no software pipelining, to compare with",
            Status::Feasible if found.naive.is_some() => "no software pipelining: nothing else was found that fits",
            Status::Optimal => return format!("optimal in the model of {}: proved", source.machine.name()),
            Status::Feasible => "feasible: optimality not proved",
            Status::Infeasible | Status::Unknown => "not settled",
        }
        .to_owned()
    };
    Header {
        input: request.input.name.clone(),
        machine: source.machine.name().to_owned(),
        architecture: source.machine.architecture().to_owned(),
        command: requested.command.clone(),
        statuses: found.loops.iter().map(status).collect(),
    }
}
