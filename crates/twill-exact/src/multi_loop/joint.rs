//! All loops in one solver: each with its own issue cycles, at its own interval; with common literals
//! for the groups of tied operations, for groups in use, and for registers a thread.
//!
//! Parts of the difference system that belong to different loops share no bound, so a bound costs
//! what it costs in its own loop.

use super::classes::Classes;
use crate::bounds;
use crate::constraints::{self, assignment, handoff, registers, symmetry};
use crate::encoding::storage::Cap;
use crate::encoding::{Candidate, Common, Encoding, Question, Stages};
use crate::engine::{Engine, SatResult};
use crate::limits::Meter;
use crate::proof_log::Log;
use crate::theory::{Bound, Node};
use batsat::Lit;
use std::rc::Rc;
use twill_graph::saturate;
use twill_graph::{Families, GroupId, MultiLoopProblem, OpId, RejectionReason, WarpGroup};

/// The question whether all loops have schedules at these intervals.
pub(super) struct Joint<'p> {
    pub(super) parts: Vec<Encoding<'p>>,
    /// The loop that holds the engine.
    active: usize,
    /// A limit on the handoff words of all loops.
    pub(super) handoff_words: Option<Cap>,
}

/// One candidate a loop.
pub(super) type Candidates = Vec<Candidate>;

/// The answer to a question.
pub(super) enum JointReply {
    Found(Candidates),
    None,
    Stopped,
}

impl<'p> Joint<'p> {
    /// Encodes a question; `None` when dependences alone rule it out, or bandwidth.
    pub(super) fn new(
        kernel: &'p MultiLoopProblem,
        classes: &Classes,
        intervals: &[i64],
        stages: Stages,
        meter: &Meter,
    ) -> Option<Joint<'p>> {
        let question = |interval| Question { interval, stages, families: Families::ALL };
        let mut counts = Vec::new();
        let mut bounds = Vec::new();
        let mut bases = Vec::new();
        for (problem, &interval) in kernel.loops().iter().zip(intervals) {
            let base: usize = counts.iter().sum();
            let (count, own) = crate::variables::variables(problem, question(interval))?;
            let shifted = |n: Node| Node::new(base + n.index());
            bounds.extend(own.into_iter().map(|b| Bound { from: shifted(b.from), to: shifted(b.to), ..b }));
            counts.push(count);
            bases.push(base);
        }
        let mut engine = Engine::new(&counts, bounds, meter, Log::default())?;
        let pool = kernel.loops().first()?.groups().len();
        // No proof is written, so it does not matter which operation a row is named after.
        let rows: Vec<Vec<Lit>> =
            classes.groups().iter().map(|groups| assignment::choice(&mut engine, OpId::new(0), groups, pool)).collect();
        let used: Vec<Lit> = (0..pool).map(|_| engine.unnamed()).collect();
        let mut joint = Joint { parts: Vec::new(), active: 0, handoff_words: None };
        let mut engine = Some(engine);
        for (k, (problem, &interval)) in kernel.loops().iter().zip(intervals).enumerate() {
            // The others hold an engine without variables.
            let own = engine.take().or_else(|| Engine::new(&[1], [], meter, Log::default()))?;
            let mut part = Encoding::within(problem, question(interval), own, bases[k]);
            let row = |class: &Option<usize>| class.map(|c| rows[c].clone());
            part.common = Some(Common { rows: classes.of_loop(k).iter().map(row).collect(), used: used.clone() });
            joint.parts.push(part);
        }
        for k in 0..joint.parts.len() {
            joint.part(k).encode();
        }
        let all: Vec<Vec<Lit>> = joint.parts.iter().flat_map(|p| p.assigned.iter().cloned()).collect();
        let first = joint.part(0);
        assignment::order_groups(first, &all);
        for pair in classes.ordered(kernel) {
            symmetry::order(first, pair);
        }
        Some(joint)
    }

    /// A loop, with the engine.
    pub(super) fn part(&mut self, k: usize) -> &mut Encoding<'p> {
        if let Ok([from, to]) = self.parts.get_disjoint_mut([self.active, k]) {
            from.hand_on(to);
            self.active = k;
        }
        &mut self.parts[k]
    }

    /// The engine.
    pub(super) fn engine(&mut self) -> &mut Engine {
        &mut self.parts[self.active].engine
    }

    /// Searches for schedules under `assumptions`, adding constraints that candidates break until
    /// they break none.
    pub(super) fn solve(&mut self, assumptions: &[Lit]) -> JointReply {
        loop {
            let assignment = match self.engine().solve(assumptions) {
                SatResult::Unsatisfiable => return JointReply::None,
                SatResult::Stopped => return JointReply::Stopped,
                SatResult::Satisfiable(assignment) => Rc::new(assignment),
            };
            let candidates: Candidates = self.parts.iter().map(|p| p.candidate(Rc::clone(&assignment))).collect();
            let mut broken = false;
            for (k, candidate) in candidates.iter().enumerate() {
                broken |= constraints::refine(self.part(k), candidate);
            }
            if !broken && !self.register_file(&candidates) && !self.handoff(&candidates) {
                return JointReply::Found(candidates);
            }
        }
    }

    /// The largest need of any loop, of every group in use; none in excess of what a thread can address.
    pub(super) fn needed(&self, candidates: &[Candidate]) -> Vec<(GroupId, u32)> {
        let mut needed: Vec<(GroupId, u32)> = Vec::new();
        for (part, candidate) in self.parts.iter().zip(candidates) {
            for (group, registers) in registers::needed(part, candidate) {
                let registers = registers.unwrap_or(u32::MAX);
                match needed.iter_mut().find(|n| n.0 == group) {
                    Some(known) => known.1 = known.1.max(registers),
                    None => needed.push((group, registers)),
                }
            }
        }
        needed.sort_unstable();
        needed
    }

    /// Returns whether the groups that any loop uses exceed the register file; if so, that is excluded.
    fn register_file(&mut self, candidates: &[Candidate]) -> bool {
        let resources = self.parts[0].problem.resources();
        let Some(too_many) = registers::over_file(resources, self.needed(candidates)) else { return false };
        let mut clause = Vec::new();
        for (k, candidate) in candidates.iter().enumerate() {
            clause = registers::not_all(self.part(k), candidate, &too_many);
        }
        // Levels are common, so the clause is the same for every loop.
        self.engine().unlogged(clause);
        true
    }

    /// Handoff words of all loops.
    pub(super) fn handoff_total(&self, candidates: &[Candidate]) -> u64 {
        self.parts.iter().zip(candidates).map(|(part, candidate)| handoff::total(part, candidate)).sum()
    }

    fn handoff(&mut self, candidates: &[Candidate]) -> bool {
        let Some(cap) = self.handoff_words.filter(|cap| self.handoff_total(candidates) > cap.most) else {
            return false;
        };
        let mut apart = Vec::new();
        for (k, (part, candidate)) in self.parts.iter().zip(candidates).enumerate() {
            let weighed = handoff::apart(part, candidate).into_iter();
            apart.extend(weighed.map(|d| (handoff::weight(part.problem.graph(), &d), k, d)));
        }
        apart.sort_by_key(|(weight, _, _)| std::cmp::Reverse(*weight));
        let mut clause = vec![!cap.active];
        let mut sum = 0;
        for (weight, k, d) in apart {
            if sum > cap.most {
                break;
            }
            sum += weight;
            clause.push(self.part(k).same_group(d.from, d.to));
        }
        self.engine().unlogged(clause);
        true
    }

    /// The groups that any loop uses, with the registers that all loops give them.
    pub(super) fn groups(&self, candidates: &[Candidate]) -> Vec<WarpGroup> {
        let needed = self.needed(candidates);
        let problem = self.parts[0].problem;
        let in_use = |id: &GroupId| candidates.iter().any(|c| c.groups.contains(id));
        let used = problem.group_ids().zip(problem.groups()).filter(|(id, _)| in_use(id));
        used.map(|(id, pooled)| {
            let fixed = problem.fixed_group(pooled.role).map(|g| g.registers_per_thread);
            let computed = needed.iter().find(|n| n.0 == id).map(|n| n.1);
            let registers_per_thread = fixed.or(computed).unwrap_or(0);
            WarpGroup { id, role: pooled.role, warps: pooled.warps, registers_per_thread }
        })
        .collect()
    }

    /// Returns whether all loops together fit the register file.
    pub(super) fn fits_file(&self, candidates: &[Candidate]) -> bool {
        registers::over_file(self.parts[0].problem.resources(), self.needed(candidates)).is_none()
    }
}

/// The answer for one vector of intervals.
pub(super) enum JointVerdict<'p> {
    Found(Box<JointSolution<'p>>),
    /// Proved that there is none, with any number of stages.
    Excluded(RejectionReason),
    Stopped,
}

/// Schedules at the vector, and the encoding of bounded stages they answer.
pub(super) struct JointSolution<'p> {
    pub(super) joint: Joint<'p>,
    pub(super) candidates: Candidates,
    /// Fewer stages, of the loop that has most, are proved impossible.
    pub(super) fewest_stages: bool,
}

/// As for one loop: few stages are answered fastest.
const FEW_STAGES: u32 = 2;

/// Work for an attempt with fewer groups than allowed.
const FEW_GROUPS_WORK: u64 = 60_000;

/// Asks for schedules at `intervals`. `own`: a schedule of each loop by itself, with its interval, to start from.
pub(super) fn ask<'p>(
    kernel: &'p MultiLoopProblem,
    classes: &Classes,
    intervals: &[i64],
    own: &[Option<(i64, Candidate)>],
    meter: &Meter,
) -> JointVerdict<'p> {
    for (problem, &interval) in kernel.loops().iter().zip(intervals) {
        if let Some((op, resource)) = bounds::self_conflict(problem, interval, Families::ALL) {
            let operation = problem.graph().operation(op).name.clone();
            return JointVerdict::Excluded(RejectionReason::SelfConflict { operation, resource });
        }
    }
    let stages = |(problem, &interval)| bounds::least_stages(problem, interval);
    let least = kernel.loops().iter().zip(intervals).map(stages).max().unwrap_or(1);
    let mut conflicts = 0;
    for stages in (least..=FEW_STAGES).map(Stages::AtMost).chain([Stages::Any]) {
        let Some(mut joint) = Joint::new(kernel, classes, intervals, stages, meter) else { continue };
        let reply = match stages {
            Stages::Any => with_few_groups(&mut joint, meter),
            Stages::AtMost(_) | Stages::Exactly(_) => match around_one(&mut joint, intervals, own, meter) {
                Some(candidates) => JointReply::Found(candidates),
                None => with_few_groups(&mut joint, meter),
            },
        };
        conflicts += joint.engine().conflicts();
        match reply {
            JointReply::Stopped => return JointVerdict::Stopped,
            JointReply::None => {}
            JointReply::Found(candidates) => {
                let found = JointSolution { joint, candidates, fewest_stages: true };
                let found = match stages {
                    Stages::Any => fewest_stages(kernel, classes, intervals, found, least.max(FEW_STAGES + 1), meter),
                    Stages::AtMost(_) | Stages::Exactly(_) => Some(found),
                };
                return found.map_or(JointVerdict::Stopped, |f| JointVerdict::Found(Box::new(f)));
            }
        }
    }
    JointVerdict::Excluded(RejectionReason::Search { conflicts })
}

/// Work for the other loops around the schedule of one: a tenth of a second.
const AROUND_WORK: u64 = 150_000;

/// Schedules around what one of the loops does by itself: a smaller question, and loops of one kernel are
/// much alike.
fn around_one(
    joint: &mut Joint,
    intervals: &[i64],
    own: &[Option<(i64, Candidate)>],
    meter: &Meter,
) -> Option<Candidates> {
    for (k, (own, interval)) in own.iter().zip(intervals).enumerate() {
        let Some((_, candidate)) = own.as_ref().filter(|(i, _)| i == interval) else { continue };
        let placed = placed(joint, k, candidate);
        if let JointReply::Found(candidates) = meter.within(AROUND_WORK, || joint.solve(&placed)) {
            return Some(candidates);
        }
    }
    None
}

/// Literals for everything that a loop's candidate says of issue cycles and groups.
fn placed(joint: &mut Joint, k: usize, candidate: &Candidate) -> Vec<Lit> {
    let part = joint.part(k);
    let mut placed = Vec::new();
    for (op, (&time, group)) in part.problem.graph().op_ids().zip(candidate.times.iter().zip(&candidate.groups)) {
        placed.extend(part.issued_at(op, time));
        placed.push(part.assigned[op.index()][group.index()]);
    }
    placed
}

fn with_few_groups(joint: &mut Joint, meter: &Meter) -> JointReply {
    let used = joint.parts[0].used.clone();
    for group in joint.parts[0].compute_groups().into_iter().skip(1) {
        let closed = !used[group.index()];
        if let JointReply::Found(candidates) = meter.within(FEW_GROUPS_WORK, || joint.solve(&[closed])) {
            return JointReply::Found(candidates);
        }
    }
    joint.solve(&[])
}

/// The least bound on the stages of every loop; `found` was found without one.
fn fewest_stages<'p>(
    kernel: &'p MultiLoopProblem,
    classes: &Classes,
    intervals: &[i64],
    found: JointSolution<'p>,
    least: u32,
    meter: &Meter,
) -> Option<JointSolution<'p>> {
    let stages = super::objective::stages(&found.joint, &found.candidates);
    let used = saturate::<u32>(stages);
    for stages in least..=used {
        let Some(mut joint) = Joint::new(kernel, classes, intervals, Stages::AtMost(stages), meter) else { continue };
        match joint.solve(&[]) {
            JointReply::Found(candidates) => return Some(JointSolution { joint, candidates, fewest_stages: true }),
            JointReply::None => {}
            // Asked again with more work, unless this was all there is.
            JointReply::Stopped if meter.stopped().is_none() => return None,
            JointReply::Stopped => {
                // The candidate answers another encoding, whose literals mean nothing in this one.
                let mut joint = Joint::new(kernel, classes, intervals, Stages::AtMost(used), meter)?;
                let placed: Vec<Lit> =
                    (0..).zip(&found.candidates).flat_map(|(k, candidate)| placed(&mut joint, k, candidate)).collect();
                let JointReply::Found(candidates) = meter.unhindered(|| joint.solve(&placed)) else { return None };
                return Some(JointSolution { joint, candidates, fewest_stages: false });
            }
        }
    }
    None
}
