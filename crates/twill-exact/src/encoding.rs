//! One question to the solver: does a schedule exist at this interval?
//!
//! Two forms of the same question. With a bound on stages, an operation is one integer variable,
//! its issue cycle: paths propagate well, and schedules are found at once. Without a bound it is
//! two, stage and slot (`t = stage · I + slot`): weaker on long paths, but its size does not depend
//! on the number of stages, and an answer "none" covers all of them. Constraints that bind often are
//! encoded at once; those on storage are checked on each candidate, and only what a candidate breaks
//! is added (docs/solvers.md).

pub(crate) mod storage;

use storage::{Caps, Storage};
use twill_graph::saturate;

use crate::engine::{Assignment, Engine};
use crate::proof_log::Log;
use crate::theory::Node;
use batsat::Lit;
use std::collections::HashMap;
use std::rc::Rc;
use twill_graph::proof::{Atom, Reason};
use twill_graph::{Dependence, DependenceId, Families, Family, GroupId, GroupRole, OpId, Problem};

/// The origin of time (bounded form), or slot 0 and stage 0 (unbounded form).
pub(crate) const ORIGIN: Node = Node::new(0);

/// The variable of an operation's issue cycle, or of its slot, among those of its loop.
pub(crate) fn issue(op: OpId) -> Node {
    Node::new(op.index() + 1)
}

/// The question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// Initiation interval in cycles.
    pub(crate) interval: i64,
    /// Stages allowed.
    pub(crate) stages: Stages,
    /// The constraints that are asked for: all, those of phase 1, or fewer for an explanation.
    pub(crate) families: Families,
}

impl Question {
    /// Returns whether warps are assigned too (phase 2), or only throughput matters (phase 1).
    pub(crate) fn joint(self) -> bool {
        !self.families.within(Families::THROUGHPUT)
    }
}

/// Stages allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stages {
    AtMost(u32),
    Exactly(u32),
    Any,
}

impl Stages {
    /// The bound, if there is one.
    pub(crate) fn most(self) -> Option<u32> {
        match self {
            Stages::AtMost(n) | Stages::Exactly(n) => Some(n),
            Stages::Any => None,
        }
    }
}

/// A point in time that constraints speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Anchor {
    /// Issue of an operation.
    Issue(OpId),
    /// End of the iteration; only where stages are bounded.
    Length,
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
    later: HashMap<Later, Lit>,
    /// The arguments of [`Encoding::forbid_offsets`].
    pub(crate) forbidden: Vec<ForbiddenOffsets>,
    pub(crate) storage: Storage,
    pub(crate) caps: Caps,
    /// The variables that it shares with other loops in the same engine.
    pub(crate) common: Option<Common>,
    /// True if interchangeable sub-tiles start in order.
    pub(crate) sub_tiles_in_order: bool,
    /// The first of its variables in the engine.
    base: usize,
}

/// The variables that the loops of one kernel share (docs/model.md, "Sibling loops").
#[derive(Clone, Debug)]
pub(crate) struct Common {
    /// The groups of tied operations, as rows of [`Encoding::assigned`].
    pub(crate) rows: Vec<Option<Vec<Lit>>>,
    /// [`Encoding::used`].
    pub(crate) used: Vec<Lit>,
}

/// Operations whose stages are compared, operations whose slots are, and the least sum.
type Later = ((OpId, OpId), (OpId, OpId), i64);

/// A schedule that satisfies the question.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// Issue cycle of each operation.
    pub(crate) times: Vec<i64>,
    /// Group of each operation; all zero where groups do not matter.
    pub(crate) groups: Vec<GroupId>,
    /// `max (t + span)`.
    pub(crate) length: i64,
    assignment: Rc<Assignment>,
}

impl Candidate {
    /// One that answers no question: no literal of it is known.
    pub(crate) fn placed(times: Vec<i64>, groups: Vec<GroupId>, length: i64) -> Candidate {
        Candidate { times, groups, length, assignment: Rc::default() }
    }

    /// Returns whether a literal holds.
    pub(crate) fn holds(&self, literal: Lit) -> bool {
        self.assignment.holds(literal)
    }
}

/// If all conditions hold, `(t_to − t_from) mod I` is not in `[first, end)`.
#[derive(Clone, Debug)]
pub(crate) struct ForbiddenOffsets {
    pub(crate) conditions: Vec<Lit>,
    pub(crate) from: OpId,
    pub(crate) to: OpId,
    pub(crate) first: i64,
    pub(crate) end: i64,
}

/// The answer to a question.
pub(crate) enum Reply {
    Found(Candidate),
    None,
    Stopped,
}

/// Wraps of two operations, or copies of an item, that any problem of use has.
pub(crate) const FEW_WRAPS: i64 = 1024;

impl<'p> Encoding<'p> {
    /// An encoding whose variables start at `base` of an engine; nothing is encoded yet.
    pub(crate) fn within(problem: &'p Problem, question: Question, engine: Engine, base: usize) -> Encoding<'p> {
        Encoding {
            problem,
            question,
            engine,
            assigned: Vec::new(),
            used: Vec::new(),
            channels: Vec::new(),
            same: HashMap::new(),
            later: HashMap::new(),
            forbidden: Vec::new(),
            storage: Storage::default(),
            caps: Caps::default(),
            common: None,
            sub_tiles_in_order: true,
            base,
        }
    }

    /// Hands the engine on to another loop in it.
    pub(crate) fn hand_on(&mut self, to: &mut Encoding) {
        std::mem::swap(&mut self.engine, &mut to.engine);
        self.storage.hand_on_levels(&mut to.storage);
    }

    /// The variable in the engine.
    fn node(&self, of_loop: Node) -> Node {
        Node::new(self.base + of_loop.index())
    }

    fn issue(&self, op: OpId) -> Node {
        self.node(issue(op))
    }

    fn operations(&self) -> usize {
        self.problem.graph().operations().len()
    }

    fn length(&self) -> Node {
        self.node(Node::new(self.operations() + 1))
    }

    /// The variable of an operation's stage (unbounded form).
    fn stage(&self, op: OpId) -> Node {
        self.node(Node::new(self.operations() + 1 + op.index()))
    }

    /// The literal for "the length is at most `most` cycles" (bounded form).
    pub(crate) fn length_at_most(&mut self, most: i64) -> Lit {
        self.engine.at_least(self.length(), self.node(ORIGIN), -most)
    }

    /// Literals that together say when an operation issues (bounded form).
    pub(crate) fn issued_at(&mut self, op: OpId, cycle: i64) -> [Lit; 2] {
        let (origin, issue) = (self.node(ORIGIN), self.issue(op));
        [self.engine.at_least(origin, issue, cycle), self.engine.at_least(issue, origin, -cycle)]
    }

    /// The literal for `t_to − t_from ≥ least`.
    pub(crate) fn at_least(&mut self, from: Anchor, to: Anchor, least: i64) -> Lit {
        let node = |e: &Self, a| match a {
            Anchor::Issue(op) => e.issue(op),
            Anchor::Length => e.length(),
        };
        match (self.question.stages, from, to) {
            (Stages::Any, Anchor::Issue(a), Anchor::Issue(b)) => self.stages_and_slots((a, b), (a, b), least),
            _ => self.engine.at_least(node(self, from), node(self, to), least),
        }
    }

    /// The literal for `q · I + s ≥ least`, `q` the difference of two operations' stages and `s` that
    /// of two operations' slots (unbounded form). With `least = hI + r`, `0 ≤ r < I`:
    /// `q ≥ h + 2, or q ≥ h + 1 and s ≥ r − I, or q ≥ h and s ≥ r`.
    pub(crate) fn stages_and_slots(&mut self, stages: (OpId, OpId), slots: (OpId, OpId), least: i64) -> Lit {
        if let Some(&known) = self.later.get(&(stages, slots, least)) {
            return known;
        }
        let (truth, never) = (self.engine.truth(), self.engine.constant(false));
        let interval = self.question.interval;
        let (whole, rest) = (least.div_euclid(interval), least.rem_euclid(interval));
        let stage = |e: &mut Self, n| {
            let (a, b) = (e.stage(stages.0), e.stage(stages.1));
            e.engine.at_least(a, b, n)
        };
        let (two, one, none) = (stage(self, whole + 2), stage(self, whole + 1), stage(self, whole));
        let (from, to) = (self.issue(slots.0), self.issue(slots.1));
        let wrapped = self.engine.at_least(from, to, rest - interval);
        let plain = self.engine.at_least(from, to, rest);
        let literal = if two == truth || (one == truth && wrapped == truth) || (none == truth && plain == truth) {
            truth
        } else if none == never {
            never
        } else {
            let later = self.engine.fresh(|| Atom::Later { stages, slots, least });
            let meaning = Log::definition(later);
            self.engine.clause([!later, none], meaning);
            self.engine.clause([!later, one, plain], meaning);
            self.engine.clause([!later, two, wrapped], meaning);
            self.engine.clause([!two, later], meaning);
            self.engine.clause([!one, !wrapped, later], meaning);
            self.engine.clause([!none, !plain, later], meaning);
            later
        };
        self.later.insert((stages, slots, least), literal);
        literal
    }

    /// The literal for "operation `later`'s slot is at least `least` after that of `earlier`"
    /// (unbounded form).
    pub(crate) fn slot_at_least(&mut self, earlier: OpId, later: OpId, least: i64) -> Lit {
        self.engine.at_least(self.issue(earlier), self.issue(later), least)
    }

    /// Requires `t_to − t_from ≥ least`, without a literal of its own (unbounded form).
    pub(crate) fn require_later(&mut self, from: OpId, to: OpId, least: i64) {
        // With c stages between them the slots must make up for least − cI, which is out of reach
        // at I or more, and granted at −I or less.
        let interval = self.question.interval;
        let (a, b) = (self.stage(from), self.stage(to));
        let fewest = (least - interval).div_euclid(interval) + 1;
        let at_fewest = self.engine.at_least(a, b, fewest);
        self.engine.clause([at_fewest], Reason::Dependence { from, to, stages: fewest - 1 });
        for c in fewest..=fewest + 1 {
            let more = self.engine.at_least(a, b, c + 1);
            let slots = self.engine.at_least(self.issue(from), self.issue(to), least - c * interval);
            self.engine.clause([more, slots], Reason::Dependence { from, to, stages: c });
        }
    }

    /// The literal for "both run on the same group".
    pub(crate) fn same_group(&mut self, a: OpId, b: OpId) -> Lit {
        if a == b {
            return self.engine.truth();
        }
        let tied = self.common.as_ref().and_then(|c| c.rows[a.index()].as_ref());
        if tied.is_some_and(|row| *row == self.assigned[b.index()]) {
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
            let same = self.engine.fresh(|| Atom::Same { a: key.0, b: key.1 });
            let meaning = Log::definition(same);
            for (x, y) in pairs {
                self.engine.clause([!x, !y, same], meaning);
                self.engine.clause([!same, !x, y], meaning);
                self.engine.clause([!same, x, !y], meaning);
            }
            same
        };
        self.same.insert(key, literal);
        literal
    }

    /// The range that `t_to − t_from` can take (bounded form).
    pub(crate) fn range(&self, from: Anchor, to: Anchor) -> (i64, i64) {
        let node = |a| match a {
            Anchor::Issue(op) => self.issue(op),
            Anchor::Length => self.length(),
        };
        (self.engine.least(node(from), node(to)), -self.engine.least(node(to), node(from)))
    }

    /// Adds clauses: if all of `conditions` hold, `(t_to − t_from) mod I` is not in `[first, end)`, for a
    /// reason that says how many wraps of the circle of slots a clause is about.
    pub(crate) fn forbid_offsets(
        &mut self,
        conditions: &[Lit],
        from: OpId,
        to: OpId,
        (first, end): (i64, i64),
        reason: impl Fn(i64) -> Reason,
    ) {
        if first >= end || conditions.contains(&self.engine.constant(false)) {
            return;
        }
        let interval = self.question.interval;
        if end - first >= interval {
            self.engine.clause(conditions.iter().map(|&c| !c), reason(0));
            return;
        }
        self.forbidden.push(ForbiddenOffsets { conditions: conditions.to_vec(), from, to, first, end });
        let (a, b) = (self.issue(from), self.issue(to));
        let (least, most) = (self.engine.least(a, b), -self.engine.least(b, a));
        // Copies k whose forbidden range [first + kI, end − 1 + kI] overlaps [least, most].
        let low = -(end - 1 - least).div_euclid(interval);
        let high = (most - first).div_euclid(interval);
        for k in low..=high {
            if self.is_spent_on(k - low) {
                return;
            }
            let after = self.engine.at_least(a, b, end + k * interval);
            let before = self.engine.at_least(b, a, 1 - first - k * interval);
            self.engine.clause(conditions.iter().map(|&c| !c).chain([after, before]), reason(k));
        }
    }

    /// Returns whether clauses need not be added any more, after this many of a kind. Where an interval is short
    /// compared with occupancies, lives or issue times there are very many wraps, copies and slots: beyond a few they
    /// are work, each as much as there are already, for its bound takes its place among theirs.
    pub(crate) fn is_spent_on(&mut self, count: i64) -> bool {
        match count > FEW_WRAPS {
            true => self.engine.is_spent(saturate::<u64>(count / FEW_WRAPS)),
            false => self.engine.is_cut_off(),
        }
    }

    /// Groups that are interchangeable and counted.
    pub(crate) fn compute_groups(&self) -> Vec<GroupId> {
        let groups = self.problem.groups();
        self.problem.group_ids().filter(|g| groups[g.index()].role == GroupRole::Compute).collect()
    }

    /// Value dependences on a register result, between different operations.
    pub(crate) fn register_dependences(&self) -> Vec<(DependenceId, Dependence)> {
        let graph = self.problem.graph();
        let in_registers = |op: OpId| matches!(graph.operation(op).storage, twill_graph::Storage::Registers(_));
        graph
            .dependences()
            .iter()
            .enumerate()
            .filter(|(_, d)| d.carries_value && d.from != d.to && in_registers(d.from))
            .map(|(id, d)| (DependenceId::new(id), d.clone()))
            .collect()
    }

    /// Returns whether a family of constraints is asked for.
    pub(crate) fn has(&self, family: Family) -> bool {
        self.question.families.has(family)
    }

    /// Those of [`Encoding::register_dependences`] that may lead to another group: handoff keeps
    /// carried values on one.
    pub(crate) fn handoffs(&self) -> Vec<(DependenceId, Dependence)> {
        let mut handoffs = self.register_dependences();
        handoffs.retain(|(_, d)| d.distance == 0 || !self.has(Family::Handoff));
        handoffs
    }

    /// This loop's schedule in an assignment of the engine.
    pub(crate) fn candidate(&self, assignment: Rc<Assignment>) -> Candidate {
        let graph = self.problem.graph();
        let interval = self.question.interval;
        let time = |op| match self.question.stages {
            Stages::Any => assignment.time(self.stage(op)) * interval + assignment.time(self.issue(op)),
            Stages::AtMost(_) | Stages::Exactly(_) => assignment.time(self.issue(op)),
        };
        let times: Vec<i64> = graph.op_ids().map(time).collect();
        let group = |row: &Vec<Lit>| GroupId::new(row.iter().position(|&x| assignment.holds(x)).unwrap_or(0));
        let length = graph.op_ids().map(|op| times[op.index()] + graph.operation(op).span().0).max().unwrap_or(0);
        let groups = match self.question.joint() {
            true => self.assigned.iter().map(group).collect(),
            false => vec![GroupId::new(0); times.len()],
        };
        Candidate { times, groups, length, assignment }
    }
}
