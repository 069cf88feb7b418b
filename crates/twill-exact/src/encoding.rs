//! One question to the solver: is there a schedule at this interval with at most so many stages?
//!
//! Variables of the difference system: the origin of time, one issue cycle an operation, and the
//! length. Constraints that bind often are encoded at once; those on storage are checked on each
//! candidate, and only what a candidate breaks is added (docs/solvers.md).

use crate::constraints::{self, Storage};
use crate::engine::{Answer, Assignment, Engine};
use crate::limits::Meter;
use crate::objective::Caps;
use crate::theory::{Bound, Node};
use batsat::Lit;
use std::collections::HashMap;
use twill_graph::{Dependence, GroupId, GroupRole, OpId, Problem};

/// What to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// Initiation interval in cycles.
    pub(crate) interval: i64,
    /// Most stages.
    pub(crate) stages: u32,
    /// Whether warps are assigned too (phase 2), or only throughput matters (phase 1).
    pub(crate) joint: bool,
    /// Whether exactly this number of stages is meant, not at most.
    pub(crate) exact_stages: bool,
}

/// The question as clauses.
pub(crate) struct Encoding<'p> {
    pub(crate) problem: &'p Problem,
    pub(crate) question: Question,
    pub(crate) engine: Engine,
    /// `assigned[v][w]`: operation `v` runs on group `w`.
    pub(crate) assigned: Vec<Vec<Lit>>,
    /// `used[w]`: some operation runs on group `w`.
    pub(crate) used: Vec<Lit>,
    /// One literal for every value and group that may read it from another group.
    pub(crate) channels: Vec<Lit>,
    same: HashMap<(OpId, OpId), Lit>,
    pub(crate) storage: Storage,
    pub(crate) caps: Caps,
}

/// A schedule that satisfies the question.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// Issue cycle of each operation.
    pub(crate) times: Vec<i64>,
    /// Group of each operation; all zero in phase 1.
    pub(crate) groups: Vec<GroupId>,
    /// `max (t + span)`.
    pub(crate) length: i64,
}

/// The answer to a question.
pub(crate) enum Reply {
    Found(Candidate),
    None,
    Stopped,
}

/// The difference variable of an operation's issue cycle.
pub(crate) fn node(op: OpId) -> Node {
    Node::new(op.index() + 1)
}

const ORIGIN: usize = 0;

impl<'p> Encoding<'p> {
    /// Encodes a question; `None` when dependences alone rule it out.
    pub(crate) fn new(problem: &'p Problem, question: Question, meter: &Meter) -> Option<Encoding<'p>> {
        let operations = problem.graph().operations().len();
        let horizon = question.interval.saturating_mul(i64::from(question.stages));
        let (origin, length) = (Node::new(ORIGIN), Node::new(operations + 1));
        let mut bounds = Vec::new();
        for op in problem.graph().op_ids() {
            let span = problem.graph().operation(op).span().0;
            bounds.push(Bound { from: origin, to: node(op), least: 0 });
            bounds.push(Bound { from: node(op), to: length, least: span });
        }
        bounds.push(Bound { from: length, to: origin, least: -horizon });
        if question.exact_stages {
            bounds.push(Bound { from: origin, to: length, least: horizon - question.interval + 1 });
        }
        constraints::dependence::bounds(problem, question.interval, &mut bounds)?;
        let engine = Engine::new(operations + 2, bounds, meter)?;
        let mut encoding = Encoding {
            problem,
            question,
            engine,
            assigned: Vec::new(),
            used: Vec::new(),
            channels: Vec::new(),
            same: HashMap::new(),
            storage: Storage::default(),
            caps: Caps::default(),
        };
        constraints::encode(&mut encoding);
        Some(encoding)
    }

    /// The node of the length.
    pub(crate) fn length_node(&self) -> Node {
        Node::new(self.problem.graph().operations().len() + 1)
    }

    /// No schedule that answers the question is shorter.
    pub(crate) fn least_length(&self) -> i64 {
        self.engine.least(Node::new(ORIGIN), self.length_node())
    }

    /// The literal for "the length is at most `most` cycles".
    pub(crate) fn length_at_most(&mut self, most: i64) -> Lit {
        self.engine.at_least(self.length_node(), Node::new(ORIGIN), -most)
    }

    /// The literal for `t_to − t_from ≥ least`.
    pub(crate) fn at_least(&mut self, from: OpId, to: OpId, least: i64) -> Lit {
        self.engine.at_least(node(from), node(to), least)
    }

    /// The literal for "both run on the same group".
    pub(crate) fn same_group(&mut self, a: OpId, b: OpId) -> Lit {
        if a == b {
            return self.engine.truth();
        }
        let key = (a.min(b), a.max(b));
        if let Some(&known) = self.same.get(&key) {
            return known;
        }
        let no = self.engine.constant(false);
        let pairs: Vec<(Lit, Lit)> =
            self.assigned[a.index()].iter().copied().zip(self.assigned[b.index()].iter().copied()).collect();
        let literal = if pairs.iter().all(|&(x, y)| x == no || y == no) {
            no
        } else if pairs.iter().any(|&(x, y)| x == !no && y == !no) {
            !no
        } else {
            let same = self.engine.fresh();
            for (x, y) in pairs {
                self.engine.clause([!x, !y, same]);
                self.engine.clause([!same, !x, y]);
                self.engine.clause([!same, x, !y]);
            }
            same
        };
        self.same.insert(key, literal);
        literal
    }

    /// The range that `t_to − t_from` can take.
    pub(crate) fn range(&self, from: OpId, to: OpId) -> (i64, i64) {
        (self.engine.least(node(from), node(to)), -self.engine.least(node(to), node(from)))
    }

    /// Adds clauses: if all of `conditions` hold, `(t_to − t_from) mod I` is not in `[first, end)`.
    pub(crate) fn forbid_offsets(&mut self, conditions: &[Lit], from: OpId, to: OpId, first: i64, end: i64) {
        if first >= end || conditions.contains(&self.engine.constant(false)) {
            return;
        }
        let interval = self.question.interval;
        if end - first >= interval {
            self.engine.clause(conditions.iter().map(|&c| !c));
            return;
        }
        let (least, most) = self.range(from, to);
        // Copies k whose forbidden range [first + kI, end − 1 + kI] meets [least, most].
        let low = (least - end + 1).div_euclid(interval) + i64::from((least - end + 1).rem_euclid(interval) != 0);
        let high = (most - first).div_euclid(interval);
        for k in low..=high {
            let after = self.at_least(from, to, end + k * interval);
            let before = self.at_least(to, from, 1 - first - k * interval);
            self.engine.clause(conditions.iter().map(|&c| !c).chain([after, before]));
        }
    }

    /// Groups that are interchangeable and counted.
    pub(crate) fn compute_groups(&self) -> Vec<GroupId> {
        let groups = self.problem.groups();
        self.problem.group_ids().filter(|g| groups[g.index()].role == GroupRole::Compute).collect()
    }

    /// Value dependences on a register result, between different operations.
    pub(crate) fn register_dependences(&self) -> Vec<Dependence> {
        let graph = self.problem.graph();
        let in_registers = |op: OpId| matches!(graph.operation(op).storage, twill_graph::Storage::Registers(_));
        graph
            .dependences()
            .iter()
            .filter(|d| d.carries_value && d.from != d.to && in_registers(d.from))
            .cloned()
            .collect()
    }

    /// Searches for a schedule under `assumptions`, adding constraints that candidates break until
    /// one breaks none.
    pub(crate) fn solve(&mut self, assumptions: &[Lit]) -> Reply {
        loop {
            match self.engine.solve(assumptions) {
                Answer::Unsatisfiable => return Reply::None,
                Answer::Stopped => return Reply::Stopped,
                Answer::Satisfiable(assignment) => {
                    let candidate = self.candidate(&assignment);
                    if !self.question.joint || !constraints::refine(self, &candidate) {
                        return Reply::Found(candidate);
                    }
                }
            }
        }
    }

    fn candidate(&self, assignment: &Assignment) -> Candidate {
        let graph = self.problem.graph();
        let times: Vec<i64> = graph.op_ids().map(|op| assignment.time(node(op))).collect();
        let group = |row: &Vec<Lit>| GroupId::new(row.iter().position(|&x| assignment.holds(x)).unwrap_or(0));
        let length = graph.op_ids().map(|op| times[op.index()] + graph.operation(op).span().0).max().unwrap_or(0);
        Candidate { times, groups: self.assigned.iter().map(group).collect(), length }
    }
}
