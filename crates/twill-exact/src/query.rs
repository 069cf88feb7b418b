//! One interval: the search for a schedule with any number of stages.

use crate::bounds;
use crate::encoding::{Candidate, Encoding, Question, Reply, Stages};
use crate::limits::Meter;
use crate::modulo;
use crate::proof_log::Log;
use twill_graph::proof::Proof;
use twill_graph::saturate;
use twill_graph::{Cycles, Families, GroupId, Liveness, Pipeline, Placement, Problem, RejectionReason, StageWindow};

/// The answer for one interval.
pub(crate) enum Verdict<'p> {
    Found(Box<Solution<'p>>),
    /// Proved that there is none with at most N stages; with any number when `None`.
    Excluded {
        stages: Option<u32>,
        reason: RejectionReason,
    },
    Stopped,
}

/// A schedule with as few stages as possible, and the encoding of bounded stages it answers.
pub(crate) struct Solution<'p> {
    pub(crate) encoding: Encoding<'p>,
    pub(crate) candidate: Candidate,
    /// Fewer stages are proved impossible.
    pub(crate) fewest_stages: bool,
}

/// Schedules usually have very few stages, and questions with few are answered fastest.
const FEW_STAGES: u32 = 2;

/// Under the paper's liveness the number of stages changes what is live, so every number is a
/// question of its own; this is where we stop asking.
const PAPER_STAGES: u32 = 8;

/// Intervals that are refuted one by one before each is counted as work, even where nothing was searched.
const FEW_INTERVALS: usize = 1024;
const INTERVAL_WORK: u64 = 100;

/// Spends the work of going on after N intervals that were refused, and tells whether to stop. Without it there would
/// be as many questions as there are cycles in a graph, and nobody would look at the clock.
pub(crate) fn spend_on_refused(refused: usize, meter: &Meter) -> bool {
    if refused < FEW_INTERVALS {
        return false;
    }
    meter.spend(INTERVAL_WORK);
    meter.pause()
}

/// Asks for a schedule at `interval` under some of the constraints, with as few stages as possible.
pub(crate) fn ask<'p>(problem: &'p Problem, interval: i64, families: Families, meter: &Meter) -> Verdict<'p> {
    match exists(problem, interval, families, meter) {
        Verdict::Found(found) if found.encoding.question.stages == Stages::Any => {
            fewest_stages(problem, *found, meter).map_or(Verdict::Stopped, |f| Verdict::Found(Box::new(f)))
        }
        verdict => verdict,
    }
}

/// Asks for any schedule at `interval` under some of the constraints.
pub(crate) fn exists<'p>(problem: &'p Problem, interval: i64, families: Families, meter: &Meter) -> Verdict<'p> {
    if let Some((op, resource)) = bounds::self_conflict(problem, interval, families) {
        let operation = problem.graph().operation(op).name.clone();
        return Verdict::Excluded { stages: None, reason: RejectionReason::SelfConflict { operation, resource } };
    }
    let joint = !families.within(Families::THROUGHPUT);
    let Some(plan) = stages_to_try(problem, interval, families, meter) else { return Verdict::Stopped };
    let mut conflicts = 0;
    for &stages in &plan {
        let question = Question { interval, stages, families };
        let Some(mut encoding) = Encoding::new(problem, question, meter) else { continue };
        let reply = if joint { with_few_groups(&mut encoding, meter) } else { encoding.solve(&[]) };
        conflicts += encoding.engine.conflicts();
        match reply {
            Reply::Stopped => return Verdict::Stopped,
            Reply::None => continue,
            Reply::Found(candidate) => {
                let fewest_stages = stages != Stages::Any;
                return Verdict::Found(Box::new(Solution { encoding, candidate, fewest_stages }));
            }
        }
    }
    let stages = plan.last().and_then(|s| s.most());
    let reason = if joint { RejectionReason::Search { conflicts } } else { RejectionReason::Throughput { conflicts } };
    Verdict::Excluded { stages, reason }
}

/// The schedule with these issue cycles and groups, if it breaks no constraint.
pub(crate) fn at<'p>(
    problem: &'p Problem,
    interval: i64,
    placements: &[Placement],
    meter: &Meter,
) -> Option<Solution<'p>> {
    let operations = problem.graph().op_ids().zip(placements);
    let length = operations.map(|(op, p)| p.cycle + problem.graph().operation(op).span()).max()?;
    let stages = Stages::AtMost(u32::try_from(length.div_ceil(Cycles(interval))).ok()?);
    let question = Question { interval, stages, families: Families::ALL };
    let place = |p: &Placement| (p.cycle.0, p.group);
    placed(problem, question, placements.iter().map(place), meter)
}

/// The modulo schedule with these issue cycles, if it breaks no constraint on throughput.
pub(crate) fn pipelined<'p>(problem: &'p Problem, found: &Pipeline, meter: &Meter) -> Option<Solution<'p>> {
    let question =
        Question { interval: found.interval.0, stages: Stages::AtMost(found.stages()), families: Families::THROUGHPUT };
    let cycles = found.cycles.iter().map(|cycle| (cycle.0, GroupId::new(0)));
    (found.cycles.len() == problem.graph().operations().len()).then(|| placed(problem, question, cycles, meter))?
}

/// The answer to a question that has these issue cycles and groups, if there is one.
fn placed<'p>(
    problem: &'p Problem,
    question: Question,
    places: impl Iterator<Item = (i64, GroupId)>,
    meter: &Meter,
) -> Option<Solution<'p>> {
    let mut encoding = Encoding::new(problem, question, meter)?;
    let mut fixed = Vec::new();
    for (op, (cycle, group)) in problem.graph().op_ids().zip(places) {
        fixed.extend(encoding.issued_at(op, cycle));
        if question.joint() {
            fixed.push(*encoding.assigned[op.index()].get(group.index())?);
        }
    }
    match encoding.solve(&fixed) {
        Reply::Found(candidate) => Some(Solution { encoding, candidate, fewest_stages: false }),
        Reply::None | Reply::Stopped => None,
    }
}

/// Proves that there is no schedule at an interval, with any number of stages; `None` when stopped, or when
/// there is one.
pub(crate) fn prove(problem: &Problem, interval: i64, meter: &Meter) -> Option<Proof> {
    let log = Log::start(interval, problem.graph().operations().len());
    let question = Question { interval, stages: Stages::Any, families: Families::ALL };
    let mut encoding = Encoding::logged(problem, question, meter, log.clone())?;
    match with_few_groups(&mut encoding, meter) {
        Reply::None => log.finish(),
        Reply::Found(_) | Reply::Stopped => None,
    }
}

/// Work for an attempt with fewer groups than allowed: a few hundredths of a second.
const FEW_GROUPS_WORK: u64 = 30_000;

/// Asks with few compute groups first: schedules that need few are found much faster that way, and
/// what is learnt on the way helps the full question.
pub(crate) fn with_few_groups(encoding: &mut Encoding, meter: &Meter) -> Reply {
    for group in encoding.compute_groups().into_iter().skip(1) {
        let closed = !encoding.used[group.index()];
        if let Reply::Found(candidate) = meter.within(FEW_GROUPS_WORK, || encoding.solve(&[closed])) {
            return Reply::Found(candidate);
        }
    }
    encoding.solve(&[])
}

/// Fewest stages of a schedule that was found without a bound; more than [`FEW_STAGES`] are needed.
///
/// What fits into some stages fits into more: the least number is looked for in growing steps, then by bisection. A value of a
/// million iterations ago takes a million stages.
fn fewest_stages<'p>(problem: &'p Problem, found: Solution<'p>, meter: &Meter) -> Option<Solution<'p>> {
    let Question { interval, families, .. } = found.encoding.question;
    let taken = |candidate: &Candidate| saturate::<u32>(Cycles(candidate.length).div_ceil(Cycles(interval)));
    let (mut low, mut high) = (bounds::least_stages(problem, interval).max(FEW_STAGES + 1), taken(&found.candidate));
    let (mut step, mut shortest, mut best) = (0, found.candidate, None);
    // Fewer than `low` are not enough; the shortest candidate takes `high`. The answer is one of an encoding of just as many.
    while low <= high && best.as_ref().is_none_or(|(stages, _)| *stages != low) {
        let stages = if best.is_some() { low.midpoint(high) } else { high.min(low.saturating_add(step)) };
        let question = Question { interval, stages: Stages::AtMost(stages), families };
        let encoded = Encoding::new(problem, question, meter).map(|mut encoding| (encoding.solve(&[]), encoding));
        match encoded {
            None | Some((Reply::None, _)) => {
                (low, step) = (stages.checked_add(1)?, step.saturating_mul(2).max(1));
            }
            Some((Reply::Found(candidate), encoding)) => {
                high = stages.min(taken(&candidate));
                shortest = candidate.clone();
                best = Some((stages, Solution { encoding, candidate, fewest_stages: true }));
            }
            // Asked again with more work, unless this was all there is.
            Some((Reply::Stopped, _)) if meter.stopped().is_none() => return None,
            Some((Reply::Stopped, _)) => {
                // The candidate answers another encoding, whose literals mean nothing in this one.
                let question = Question { stages: Stages::AtMost(high), ..question };
                let Candidate { times, groups, .. } = shortest;
                let places = times.into_iter().zip(groups);
                return meter.unhindered(|| placed(problem, question, places, meter));
            }
        }
    }
    best.map(|(_, solution)| solution)
}

/// Numbers of stages to ask for, in order; the last covers all. `None` when stopped.
pub(crate) fn stages_to_try(
    problem: &Problem,
    interval: i64,
    families: Families,
    meter: &Meter,
) -> Option<Vec<Stages>> {
    let joint = !families.within(Families::THROUGHPUT);
    let options = problem.options();
    let exactly = |n| if options.liveness == Liveness::Paper { Stages::Exactly(n) } else { Stages::AtMost(n) };
    let throughput = Families::THROUGHPUT.within(families);
    if joint && options.stage_window == StageWindow::Paper {
        match modulo::shortest_at(problem, interval, meter) {
            Some(shortest) => {
                let stages = Cycles(shortest.candidate.length).div_ceil(Cycles(interval));
                return Some(vec![exactly(saturate::<u32>(stages).max(1))]);
            }
            None if meter.pause() => return None,
            None if throughput => return Some(Vec::new()),
            // The modulo schedule that would say how many stages does not exist.
            None => {}
        }
    }
    if joint && options.liveness == Liveness::Paper {
        return Some((1..=PAPER_STAGES).map(Stages::Exactly).collect());
    }
    // Its bound counts on dependences and units.
    let least = if throughput { bounds::least_stages(problem, interval) } else { 1 };
    let few = least..=FEW_STAGES;
    Some(few.map(Stages::AtMost).chain([Stages::Any]).collect())
}
