//! Loops of one kernel that are scheduled together (docs/model.md, "Sibling loops").

use crate::cache::{EntryKind, Key};
use crate::solve::is_proved;
use crate::{Error, LoopProblem, Loops, Request, Session, SiblingOptions, Siblings};
use twill_check::Verified;
use twill_exact::Naive;
use twill_graph::format::{KernelScheduleFile, ProblemEntry};
use twill_graph::{Liveness, MultiLoopProblem, MultiLoopReport, Phase, Schedule, StageWindow, Tie};
use web_time::Instant;

/// The loops as one problem; `None` where each is scheduled by itself.
///
/// # Errors
/// When trip counts were given that mean nothing, or the loops do not go together.
pub fn problem(request: &Request, problems: &Loops<LoopProblem>) -> Result<Option<MultiLoopProblem>, Error> {
    let input = || request.input.name.clone();
    let requested = &request.siblings;
    let refused = |why| Err(Error::TripCounts { input: input(), why });
    let given = !requested.trip_counts.is_empty();
    let Some(siblings) = &problems.siblings else {
        return if given { refused("there is one loop") } else { Ok(None) };
    };
    if let Some(why) = apart(requested, problems) {
        return if given { refused(why) } else { Ok(None) };
    }
    let weights = if given { requested.trip_counts.clone() } else { weights(siblings) };
    let problems = problems.loops.iter().map(|p| p.problem.clone()).collect();
    MultiLoopProblem::new(siblings.kernel.clone(), problems, weights, siblings.ties.clone())
        .map(Some)
        .map_err(|error| Error::Kernel { input: input(), error: Box::new(error) })
}

/// Why loops are scheduled each by itself.
fn apart(requested: &SiblingOptions, problems: &Loops<LoopProblem>) -> Option<&'static str> {
    let options = problems.loops.first().map(|p| p.problem.options());
    let paper = |o: &twill_graph::ModelOptions| o.liveness == Liveness::Paper || o.stage_window == StageWindow::Paper;
    if requested.separate_loops {
        Some("--separate-loops schedules each by itself")
    } else if problems.loops.iter().any(|p| p.normalisation.is_some()) {
        Some("--normalise gives every loop cycles of its own, which cannot be added up")
    } else if options.is_some_and(paper) {
        Some("the paper's variant of the model is for one loop")
    } else {
        None
    }
}

/// Trip counts, if the kernel says all of them; otherwise all loops count alike.
fn weights(siblings: &Siblings) -> Vec<u64> {
    let known: Option<Vec<u64>> = siblings.trip_counts.iter().copied().collect();
    let in_range = |weights: &Vec<u64>| weights.iter().all(|w| (1..=MultiLoopProblem::MOST_WEIGHT).contains(w));
    known.filter(in_range).unwrap_or_else(|| vec![1; siblings.trip_counts.len()])
}

/// Searches, and lets nothing out that does not survive its replay.
///
/// # Errors
/// [`Error::KernelDefect`] when the checker does not accept what was found.
pub fn solve(
    input: &str,
    kernel: &MultiLoopProblem,
    session: &mut Session<'_>,
    reading: f64,
) -> Result<MultiLoopReport<Verified<Schedule>>, Error> {
    let started = Instant::now();
    let key = key(kernel, session);
    let cache = session.cache.clone();
    let mut report = match cache.as_ref().and_then(|cache| cache.find(&key, |text| remembered(kernel, text))) {
        Some(mut report) => {
            report.phases = vec![Phase { name: "cache".into(), seconds: started.elapsed().as_secs_f64() }];
            report
        }
        None => {
            let Session { search, observer, .. } = session;
            let report = twill_exact::schedule_multi_loop(kernel, search, &mut |p| observer.progress(&p));
            let replay = Instant::now();
            let mut report = verified(input, kernel, report)?;
            if let Some(cache) = cache.filter(|_| is_proved(report.outcome.status())) {
                cache.write(&key, &KernelScheduleFile::new(kernel, &report).to_json());
            }
            report.phases.push(Phase { name: "replay".into(), seconds: replay.elapsed().as_secs_f64() });
            report
        }
    };
    report.phases.insert(0, Phase { name: "reading".into(), seconds: reading });
    Ok(report)
}

fn key(kernel: &MultiLoopProblem, session: &Session<'_>) -> Key {
    let loops: Vec<ProblemEntry> = kernel.loops().iter().map(ProblemEntry::new).collect();
    let tied = |tie: &Tie| tie.operations.iter().map(|o| (o.index, o.op.index())).collect();
    let ties: Vec<Vec<(usize, usize)>> = kernel.ties().iter().map(tied).collect();
    Key::new(EntryKind::Schedule, &(loops, kernel.weights(), ties, session.depends()))
}

/// What was proved of these loops before; `None` where it does not survive its replay.
fn remembered(kernel: &MultiLoopProblem, text: &str) -> Option<MultiLoopReport<Verified<Schedule>>> {
    let report = KernelScheduleFile::from_json(text, "cache").ok()?.report(kernel).ok()?;
    let at_bound = report.outcome.schedule().is_none_or(|common| common.cycles == report.lower_bound);
    let proved = is_proved(report.outcome.status()) && at_bound;
    verified("cache", kernel, report).ok().filter(|_| proved)
}

/// Naive schedules of all loops.
///
/// # Errors
/// [`Error::KernelDefect`] when the checker does not accept them.
pub(crate) fn naive(
    input: &str,
    kernel: &MultiLoopProblem,
    how: Naive,
    session: &mut Session<'_>,
) -> Result<MultiLoopReport<Verified<Schedule>>, Error> {
    let Session { search, observer, .. } = session;
    verified(input, kernel, twill_exact::naive_multi_loop(kernel, how, search, &mut |p| observer.progress(&p)))
}

/// Lets no schedules out that do not survive their replay.
fn verified(
    input: &str,
    kernel: &MultiLoopProblem,
    report: MultiLoopReport,
) -> Result<MultiLoopReport<Verified<Schedule>>, Error> {
    let defect = |error| Error::KernelDefect { input: input.to_owned(), error: Box::new(error) };
    let verified = match report.outcome.schedule() {
        Some(common) => {
            let schedules = report.loops.iter().filter_map(|r| r.outcome.schedule().cloned()).collect();
            twill_check::verify_multi_loop(kernel, &common.groups, schedules).map_err(defect)?
        }
        None => Vec::new(),
    };
    let mut verified = verified.into_iter();
    // A loop has a schedule where the kernel has one, and nowhere else.
    report.try_map(|(_, own)| {
        own.try_map(|_| verified.next().ok_or_else(|| defect(twill_check::RejectedLoops::default())))
    })
}
