//! Schedules of a kernel's loops that code could be generated for.

use super::thresholds::THRESHOLDS;
use super::{latency_padding, mma_batches};
use crate::{Error, LoopProblem, Loops, Request, Session, Source, relax, schedule_file, siblings, solve};
use twill_check::Verified;
use twill_exact::{Budget, Naive, SearchOptions};
use twill_graph::format::KernelScheduleFile;
use twill_graph::{Cycles, Outcome, Report, Schedule, Status, WarpAssignment};
use web_time::Instant;

/// What was found for the loops of a kernel, and its file.
#[derive(Clone)]
pub(super) struct KernelSchedules {
    pub(super) loops: Vec<Report<Verified<Schedule>>>,
    /// Of a kernel without a schedule for each loop.
    pub(super) status: Status,
    pub(super) json: String,
    /// The naive schedule that it is, if it was not searched for.
    pub(super) naive: Option<Naive>,
    /// In which way it is preferred to what was found first, if it is.
    pub(super) preferred: Option<Preferred>,
}

/// Why another schedule of the same interval is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preferred {
    /// Groups compute less between MMAs ([`latency_padding`]).
    PaddedLatencies,
    /// Sub-tiles start their MMAs in one order and in batches ([`mma_batches`]).
    MmaBatches,
}

impl KernelSchedules {
    /// Cycles that groups compute between MMAs, of all loops; `None` without a schedule for each.
    pub(super) fn between(&self, problems: &Loops<LoopProblem>) -> Option<i64> {
        let each = self.loops.iter().zip(&problems.loops);
        each.map(|(report, one)| Some(latency_padding::between(&one.problem, report.outcome.schedule()?))).sum()
    }

    fn intervals(&self) -> Vec<Option<Cycles>> {
        self.loops.iter().map(|report| report.outcome.schedule().map(|schedule| schedule.interval)).collect()
    }

    /// What is proved of other schedules of the same intervals holds for these, and what was proved of a machine that does less
    /// does not.
    fn take_proofs(&mut self, others: &KernelSchedules) {
        for (own, other) in self.loops.iter_mut().zip(&others.loops) {
            let is_proved = other.outcome.status() == Status::Optimal;
            if let Some(schedule) = own.outcome.schedule().cloned() {
                own.outcome = if is_proved { Outcome::Optimal { schedule } } else { Outcome::Feasible { schedule } };
            }
        }
    }
}

/// Schedules all loops of the kernel.
pub(super) fn find(
    request: &Request,
    naive: Option<Naive>,
    problems: &Loops<LoopProblem>,
    session: &mut Session<'_>,
    started: Instant,
) -> Result<KernelSchedules, Error> {
    let input = &request.input.name;
    let reading = started.elapsed().as_secs_f64() / problems.loops.len().max(1) as f64;
    if let Some(kernel) = siblings::problem(request, problems)? {
        let mut report = match naive {
            Some(how) => siblings::naive(input, &kernel, how, session)?,
            None => siblings::solve(input, &kernel, session, reading)?,
        };
        if relax::is_relaxed(&request.limits) {
            report = relax::without_proof_of_loops(report);
        }
        // The same input gives the same folder, however long it took.
        report.phases.clear();
        report.loops.iter_mut().for_each(|own| own.phases.clear());
        let json = KernelScheduleFile::new(&kernel, &report).to_json() + "\n";
        return Ok(KernelSchedules {
            status: report.outcome.status(),
            loops: report.loops,
            json,
            naive,
            preferred: None,
        });
    }
    let mut loops = Vec::new();
    for one in &problems.loops {
        let mut report = match naive {
            Some(how) => crate::solve::naive(input, one, how, session)?,
            None => solve(input, one, session, reading)?,
        };
        report.phases.clear();
        loops.push(if relax::is_relaxed(&request.limits) { relax::without_proof(report) } else { report });
    }
    let each = problems.loops.iter().zip(&loops);
    let json = crate::json(each.map(|(p, r)| schedule_file(p, r)));
    let infeasible = loops.iter().any(|r| r.outcome.status() == Status::Infeasible);
    Ok(KernelSchedules {
        status: if infeasible { Status::Infeasible } else { Status::Unknown },
        loops,
        json,
        naive,
        preferred: None,
    })
}

/// As far as the session's time goes, other schedules of the same intervals, whose groups start MMAs together; none where
/// those found start all of them so. Of one loop, each computes less between MMAs than those found and those before it; of
/// several loops, all that are found, as what stands between MMAs counts differently in each loop.
pub(super) fn with_padded_latencies(
    request: &Request,
    source: &Source,
    assignments: &[WarpAssignment],
    problems: &Loops<LoopProblem>,
    found: &KernelSchedules,
    session: &mut Session<'_>,
    begun: Instant,
) -> Result<Vec<(Loops<LoopProblem>, KernelSchedules)>, Error> {
    let mut all = Vec::new();
    let Some(mut least) = found.between(problems).filter(|between| *between > 0) else { return Ok(all) };
    let is_only = problems.loops.len() == 1;
    let intervals = found.intervals();
    let largest_intervals: Vec<Cycles> = intervals.iter().flatten().copied().collect();
    let largest_interval = largest_intervals.iter().max().copied();
    let work = session.search.budget.work.map_or(THRESHOLDS.padded_work, |work| work.min(THRESHOLDS.padded_work));
    let budget = Budget { work: Some(work), ..session.search.budget.clone() };
    let limit = budget.time;
    let search = SearchOptions { budget, largest_interval, largest_intervals, ..session.search.clone() };
    let mut session = session.with(search);
    for &assignment in assignments {
        let mut request = request.clone();
        request.limits.warp_assignment = Some(assignment);
        let requested = crate::problems_of_source(&request, source)?;
        for by in THRESHOLDS.later.into_iter().chain((!is_only).then_some(THRESHOLDS.latest)) {
            let left = limit.map(|limit| limit.saturating_sub(session.search.budget.clock.since(begun)));
            if (is_only && least == 0) || session.is_stopped() || left.is_some_and(|left| left.is_zero()) {
                return Ok(all);
            }
            session.search.budget.time = left;
            let Some(later) = latency_padding::later(&requested, by) else { break };
            let mut other = find(&request, None, &later, &mut session, Instant::now())?;
            let Some(between) = other.between(&later) else {
                // What is impossible, or not found in time, stays so where results come later still.
                break;
            };
            if other.intervals() != intervals {
                continue;
            }
            if between < least || !is_only {
                least = between.min(least);
                other.preferred = Some(Preferred::PaddedLatencies);
                other.take_proofs(found);
                all.push((later, other));
            }
        }
    }
    Ok(all)
}

/// As far as the session's time goes, schedules of the same interval whose sub-tiles start their MMAs in batches: one for
/// each order in which there is one, of those orders that leave the fewest handoffs exposed.
pub(super) fn in_batches(
    request: &Request,
    problems: &Loops<LoopProblem>,
    found: &KernelSchedules,
    session: &mut Session<'_>,
    begun: Instant,
) -> Result<Vec<(Loops<LoopProblem>, KernelSchedules)>, Error> {
    let mut all = Vec::new();
    let ([one], &[Some(interval)]) = (problems.loops.as_slice(), found.intervals().as_slice()) else { return Ok(all) };
    let work = session.search.budget.work.map_or(THRESHOLDS.padded_work, |work| work.min(THRESHOLDS.padded_work));
    let budget = Budget { work: Some(work), ..session.search.budget.clone() };
    let limit = budget.time;
    let search = SearchOptions { budget, largest_interval: Some(interval), ..session.search.clone() };
    let mut session = session.with(search);
    let mut least = None;
    for (exposed, order) in mma_batches::orders(&one.problem) {
        if least.is_some_and(|least| exposed > least) {
            break;
        }
        let left = limit.map(|limit| limit.saturating_sub(session.search.budget.clock.since(begun)));
        if session.is_stopped() || left.is_some_and(|left| left.is_zero()) {
            break;
        }
        session.search.budget.time = left;
        let Some(ordered) = mma_batches::in_batches(problems, &order, interval) else { continue };
        let mut other = find(request, None, &ordered, &mut session, Instant::now())?;
        if other.intervals() == [Some(interval)] {
            other.preferred = Some(Preferred::MmaBatches);
            least = Some(exposed);
            other.take_proofs(found);
            all.push((ordered, other));
        }
    }
    Ok(all)
}
