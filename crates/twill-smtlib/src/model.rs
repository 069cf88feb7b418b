//! The unknowns: `op[v][t]`, operation `v` issues in cycle `t` of its own iteration; `warp[v][w]`,
//! group `w` runs it. And what follows from them: issued by a cycle, held in a slot, apart.

use crate::question::Question;
use crate::script::Script;
use crate::term::{Term, and, not, or};
use std::collections::HashMap;
use twill_graph::{Cycles, Dependence, GroupId, GroupRole, OpId, Problem, Storage};

/// The terms of all constraints.
#[derive(Debug)]
pub(crate) struct Model<'p> {
    pub(crate) problem: &'p Problem,
    /// `I`.
    pub(crate) interval: i64,
    /// `N`.
    pub(crate) stages: i64,
    pub(crate) script: Script,
    windows: HashMap<(OpId, i64, i64), Vec<Term>>,
}

impl<'p> Model<'p> {
    pub(crate) fn new(problem: &'p Problem, question: &Question) -> Model<'p> {
        Model {
            problem,
            interval: question.interval.0,
            stages: question.stages.into(),
            script: Script::default(),
            windows: HashMap::new(),
        }
    }

    /// No operation ends after this: `N · I`.
    pub(crate) fn horizon(&self) -> i64 {
        self.stages.saturating_mul(self.interval)
    }

    /// Last cycle in which an operation may issue.
    pub(crate) fn latest(&self, v: OpId) -> i64 {
        self.horizon() - self.problem.graph().operation(v).span().0
    }

    /// `t_v ≤ t`.
    pub(crate) fn issued(&self, v: OpId, t: i64) -> Term {
        match t {
            _ if t < 0 => Term::Known(false),
            _ if t >= self.latest(v) => Term::Known(true),
            _ => Term::text(format!("le_{}_{t}", v.index())),
        }
    }

    /// `w_v = w`.
    pub(crate) fn warp(&self, v: OpId, w: GroupId) -> Term {
        Term::text(format!("warp_{}_{}", v.index(), w.index()))
    }

    /// `w_a ≠ w_b`.
    pub(crate) fn apart(&self, a: OpId, b: OpId) -> Term {
        if a == b {
            return Term::Known(false);
        }
        let (a, b) = (a.min(b), a.max(b));
        Term::text(format!("apart_{}_{}", a.index(), b.index()))
    }

    /// The compute groups.
    pub(crate) fn compute_groups(&self) -> Vec<GroupId> {
        let pool = self.problem.group_ids().zip(self.problem.groups());
        pool.filter(|(_, group)| group.role == GroupRole::Compute).map(|(id, _)| id).collect()
    }

    /// Dependences through which a register result is read.
    pub(crate) fn register_values(&self) -> impl Iterator<Item = &'p Dependence> + use<'p> {
        let graph = self.problem.graph();
        let in_registers = |d: &&Dependence| matches!(graph.operation(d.from).storage, Storage::Registers(_));
        graph.dependences().iter().filter(|d| d.carries_value).filter(in_registers)
    }

    /// For every slot whether it is in `[t_v + start, t_v + start + length)` folded modulo `I`, where
    /// `0 ≤ length < I`.
    pub(crate) fn window(&mut self, v: OpId, start: i64, length: i64) -> Vec<Term> {
        if let Some(known) = self.windows.get(&(v, start, length)) {
            return known.clone();
        }
        let end = self.latest(v) + start + length;
        let mut slots = Vec::new();
        for slot in 0..self.interval {
            let first = start + Cycles(slot - start).slot(Cycles(self.interval)).0;
            let mut cycles = Vec::new();
            let mut cycle = first;
            while length > 0 && cycle < end {
                cycles.push(and([self.issued(v, cycle - start), not(&self.issued(v, cycle - start - length))]));
                cycle += self.interval;
            }
            let name = format!("in_{}_{start}_{length}_{slot}", v.index());
            slots.push(self.script.define(name, &or(cycles)));
        }
        self.windows.insert((v, start, length), slots.clone());
        slots
    }

    /// For every slot whether `v` issues in it.
    pub(crate) fn slots(&mut self, v: OpId) -> Vec<Term> {
        if self.interval > 1 { self.window(v, 0, 1) } else { vec![Term::Known(true)] }
    }

    /// How an operation is called in names of assertions.
    pub(crate) fn name(&self, v: OpId) -> &'p str {
        &self.problem.graph().operation(v).name
    }
}
