//! The variables of a question, and the facts that hold unconditionally.

use crate::constraints::{bandwidth, dependence};
use crate::encoding::{ORIGIN, Question, Stages, issue};
use crate::theory::{Bound, DifferenceSystem, NO_PATH, Node};
use twill_graph::{Family, OpId, Problem};

/// How many variables a question has, and what holds of them unconditionally; `None` when dependences
/// alone rule it out, or bandwidth.
pub(crate) fn variables(problem: &Problem, question: Question) -> Option<(usize, Vec<Bound>)> {
    if question.families.has(Family::Bandwidth) && !bandwidth::holds(problem, question.interval) {
        return None;
    }
    let operations = problem.graph().operations().len();
    Some(match question.stages {
        Stages::AtMost(n) | Stages::Exactly(n) => (operations + 2, issue_bounds(problem, question, n)?),
        Stages::Any => (2 * operations + 1, slot_bounds(problem, question)?),
    })
}

/// The facts about issue cycles within this many stages that hold unconditionally.
fn issue_bounds(problem: &Problem, question: Question, stages: u32) -> Option<Vec<Bound>> {
    let horizon = question.interval.saturating_mul(i64::from(stages));
    let length = Node::new(problem.graph().operations().len() + 1);
    let mut bounds = Vec::new();
    for op in problem.graph().op_ids() {
        let span = problem.graph().operation(op).span().0;
        bounds.push(Bound { from: ORIGIN, to: issue(op), least: 0 });
        bounds.push(Bound { from: issue(op), to: length, least: span });
    }
    bounds.push(Bound { from: length, to: ORIGIN, least: -horizon });
    if matches!(question.stages, Stages::Exactly(_)) {
        bounds.push(Bound { from: ORIGIN, to: length, least: horizon - question.interval + 1 });
    }
    if question.families.has(Family::Dependence) {
        for (from, to, least) in dependence::delays(problem, question.interval)? {
            bounds.push(Bound { from: issue(from), to: issue(to), least });
        }
    }
    Some(bounds)
}

/// The facts about slots and stages that hold unconditionally. A schedule may be turned around the circle of
/// slots, so one operation stands in slot 0.
fn slot_bounds(problem: &Problem, question: Question) -> Option<Vec<Bound>> {
    let operations = problem.graph().operations().len();
    let mut bounds = vec![Bound { from: issue(OpId::new(0)), to: ORIGIN, least: 0 }];
    for op in problem.graph().op_ids() {
        bounds.push(Bound { from: ORIGIN, to: issue(op), least: 0 });
        bounds.push(Bound { from: issue(op), to: ORIGIN, least: 1 - question.interval });
        bounds.push(Bound { from: ORIGIN, to: Node::new(operations + 1 + op.index()), least: 0 });
    }
    if question.families.has(Family::Dependence) {
        dependence::delays(problem, question.interval)?;
    }
    Some(bounds)
}

/// Longest paths between all operations along dependences; [`NO_PATH`] where there is none. `None`
/// when there is a positive cycle.
pub(crate) fn longest_paths(problem: &Problem, interval: i64) -> Option<Vec<Vec<i64>>> {
    let operations = problem.graph().operations().len();
    let delays = dependence::delays(problem, interval)?;
    let bounds = delays.into_iter().map(|(from, to, least)| Bound { from: issue(from), to: issue(to), least });
    let system = DifferenceSystem::new(operations + 1, bounds)?;
    let from = |a| (0..operations).map(move |b| (a, b));
    let row = |a| from(a).map(|(a, b)| system.least(issue(OpId::new(a)), issue(OpId::new(b)))).collect();
    Some((0..operations).map(row).collect())
}

/// Returns whether a longest path exists.
pub(crate) fn is_path(length: i64) -> bool {
    length != NO_PATH
}
