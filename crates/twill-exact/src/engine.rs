//! The SAT solver with difference logic: literals for bounds, clauses, answers.

use crate::limits::{Meter, SolverCallbacks};
use crate::proof_log::Log;
use crate::theory::{Bound, DifferenceSystem, DifferenceTheory, NO_PATH, Node, Origin};
use batsat::{Lit, Solver, SolverInterface, SolverOpts, lbool};
use std::collections::{BTreeMap, HashMap};
use twill_graph::proof::{Atom, Reason};

/// Clauses over Boolean literals and literals that stand for bounds `x_j − x_i ≥ c`.
pub(crate) struct Engine {
    solver: Solver<SolverCallbacks>,
    theory: DifferenceTheory,
    truth: Lit,
    literals: HashMap<Bound, Lit>,
    conjunctions: HashMap<Vec<Lit>, Lit>,
    /// Numbers of variables of parts that share no bound; the first of each part is its origin of time.
    parts: Vec<usize>,
    /// Clauses are missing, for there was no time for them: there is no answer any more.
    is_cut_off: bool,
    log: Log,
}

/// What the SAT solver found.
pub(crate) enum SatResult {
    /// All clauses and bounds hold.
    Satisfiable(Assignment),
    /// They cannot.
    Unsatisfiable,
    /// The meter stopped it.
    Stopped,
}

/// A satisfying assignment: the earliest times, and the literals.
#[derive(Debug, Default)]
pub(crate) struct Assignment {
    times: Vec<i64>,
    values: Vec<lbool>,
}

impl Assignment {
    pub(crate) fn time(&self, node: Node) -> i64 {
        self.times[node.index()]
    }

    pub(crate) fn holds(&self, literal: Lit) -> bool {
        let value = self.values.get(literal.var().idx() as usize).copied().unwrap_or(lbool::FALSE);
        (value == lbool::TRUE) == literal.sign()
    }
}

impl Engine {
    /// An engine over parts of this many variables, the first of each its origin of time; `None` if
    /// the unconditional bounds contradict each other.
    pub(crate) fn new(
        parts: &[usize],
        bounds: impl IntoIterator<Item = Bound>,
        meter: &Meter,
        log: Log,
    ) -> Option<Engine> {
        let nodes = parts.iter().sum();
        let system = DifferenceSystem::new(nodes, bounds)?;
        let callbacks = SolverCallbacks { meter: meter.clone(), conflicts: 0, log: log.clone() };
        let mut solver = Solver::new(SolverOpts::default(), callbacks);
        let truth = Lit::new(solver.new_var_default(), true);
        solver.add_clause_reuse(&mut vec![truth]);
        log.all(truth, &[]);
        log.clause(&[truth], Log::definition(truth));
        let theory = DifferenceTheory::new(system, nodes, meter.counter(), log.clone());
        Some(Engine {
            solver,
            theory,
            truth,
            literals: HashMap::new(),
            conjunctions: HashMap::new(),
            parts: parts.to_vec(),
            is_cut_off: false,
            log,
        })
    }

    /// The literal that is always true.
    pub(crate) fn truth(&self) -> Lit {
        self.truth
    }

    /// The literal that is always `value`.
    pub(crate) fn constant(&self, value: bool) -> Lit {
        if value { self.truth } else { !self.truth }
    }

    /// A new literal, and what it means.
    pub(crate) fn fresh(&mut self, meaning: impl FnOnce() -> Atom) -> Lit {
        let literal = Lit::new(self.solver.new_var_default(), true);
        self.log.atom(literal, meaning);
        literal
    }

    /// A new literal that proofs never speak of: a level of the objective.
    pub(crate) fn unnamed(&mut self) -> Lit {
        debug_assert!(!self.log.is_on());
        Lit::new(self.solver.new_var_default(), true)
    }

    /// Returns whether a proof is written.
    pub(crate) fn is_logged(&self) -> bool {
        self.log.is_on()
    }

    /// The bound that holds unconditionally: greatest `c` with `x_to − x_from ≥ c`. A proof may not count on what the
    /// solver has found out meanwhile.
    pub(crate) fn least(&self, from: Node, to: Node) -> i64 {
        match self.log.is_on() {
            true => self.theory.system.unconditional(from, to),
            false => self.theory.system.least(from, to),
        }
    }

    /// The literal for `x_to − x_from ≥ least`.
    pub(crate) fn at_least(&mut self, from: Node, to: Node, least: i64) -> Lit {
        if from == to {
            return self.constant(least <= 0);
        }
        if self.least(from, to) >= least {
            return self.truth;
        }
        let back = self.least(to, from);
        if back != NO_PATH && back + least > 0 {
            return !self.truth;
        }
        let bound = Bound { from, to, least };
        if let Some(&known) = self.literals.get(&bound) {
            return known;
        }
        if let Some(&known) = self.literals.get(&bound.negated()) {
            return !known;
        }
        let literal = Lit::new(self.solver.new_var_default(), true);
        self.log.bound(literal, bound);
        self.theory.bind(literal, bound);
        self.literals.insert(bound, literal);
        literal
    }

    /// Adds a clause, which holds for a reason.
    pub(crate) fn clause(&mut self, literals: impl IntoIterator<Item = Lit>, reason: Reason) {
        let mut clause: Vec<Lit> = Vec::new();
        for literal in literals {
            if literal == self.truth {
                return;
            }
            if literal != !self.truth {
                clause.push(literal);
            }
        }
        self.log.clause(&clause, reason);
        self.solver.add_clause_reuse(&mut clause);
    }

    /// Adds a clause that proofs never speak of.
    pub(crate) fn unlogged(&mut self, literals: impl IntoIterator<Item = Lit>) {
        debug_assert!(!self.log.is_on());
        self.clause(literals, Log::definition(self.truth));
    }

    /// A literal that holds if all of these do.
    pub(crate) fn all(&mut self, mut literals: Vec<Lit>) -> Lit {
        literals.sort_unstable();
        literals.dedup();
        literals.retain(|&l| l != self.truth);
        if literals.contains(&!self.truth) {
            return !self.truth;
        }
        match literals.as_slice() {
            [] => self.truth,
            [one] => *one,
            _ => {
                if let Some(&known) = self.conjunctions.get(&literals) {
                    return known;
                }
                let all = Lit::new(self.solver.new_var_default(), true);
                self.log.all(all, &literals);
                self.clause(literals.iter().map(|&l| !l).chain([all]), Log::definition(all));
                self.conjunctions.insert(literals, all);
                all
            }
        }
    }

    /// A literal that holds if everything of one of these ways does. Proofs may speak of one with a name.
    pub(crate) fn any<const N: usize>(&mut self, mut ways: Vec<[Lit; N]>, name: Option<Atom>) -> Lit {
        let (truth, never) = (self.truth, !self.truth);
        ways.retain(|way| !way.contains(&never));
        if ways.contains(&[truth; N]) {
            return truth;
        }
        match (ways.as_slice(), &name) {
            ([], _) => return never,
            ([way], None) if way[1..].iter().all(|l| *l == truth) => return way[0],
            _ => {}
        }
        let any = match name {
            Some(name) => self.fresh(|| name),
            None => self.unnamed(),
        };
        for way in ways {
            self.clause(way.map(|l| !l).into_iter().chain([any]), Log::definition(any));
        }
        any
    }

    /// Requires `Σ weight · literal ≤ limit` if all of `conditions` hold, for a reason.
    pub(crate) fn at_most(&mut self, conditions: &[Lit], terms: Vec<(Lit, u64)>, limit: u64, reason: Reason) {
        let mut merged: BTreeMap<Lit, u64> = BTreeMap::new();
        let mut fixed: u64 = 0;
        // Literals that hold already; what follows from the sum follows only with them.
        let mut given: Vec<Lit> = Vec::new();
        for (literal, weight) in terms {
            let value = self.solver.value_lvl_0(literal);
            if literal == self.truth || value == lbool::TRUE {
                fixed = fixed.saturating_add(weight);
                given.push(literal);
            } else if literal != !self.truth && value == lbool::UNDEF && weight > 0 {
                let sum = merged.entry(literal).or_insert(0);
                *sum = sum.saturating_add(weight);
            }
        }
        if fixed > limit {
            self.clause(conditions.iter().chain(&given).map(|&c| !c), reason);
            return;
        }
        let limit = limit - fixed;
        // An item that is too heavy by itself is excluded outright.
        let (heavy, light): (Vec<_>, Vec<_>) = merged.into_iter().partition(|&(_, weight)| weight > limit);
        for (literal, _) in heavy {
            self.clause(conditions.iter().chain(&given).map(|&c| !c).chain([!literal]), reason);
        }
        let merged: BTreeMap<Lit, u64> = light.into_iter().collect();
        let total = merged.values().fold(0, |a: u64, &b| a.saturating_add(b));
        let conditions: Vec<Lit> = conditions.iter().copied().filter(|&c| c != self.truth).collect();
        if total <= limit || conditions.contains(&!self.truth) {
            return;
        }
        let mut terms: Vec<(Lit, u64)> = merged.into_iter().collect();
        if conditions.is_empty() {
            self.theory.sums.add(terms, limit, Some(Origin { given, reason }));
            return;
        }
        // While the conditions do not all hold, what they weigh leaves room for everything.
        let applies = match conditions.as_slice() {
            [one] => *one,
            _ => self.all(conditions),
        };
        match self.solver.value_lvl_0(applies) {
            value if value == lbool::TRUE => {
                given.push(applies);
                self.theory.sums.add(terms, limit, Some(Origin { given, reason }));
            }
            value if value == lbool::FALSE => {}
            _ => {
                terms.push((applies, total - limit));
                self.theory.sums.add(terms, total, Some(Origin { given, reason }));
            }
        }
    }

    /// Returns whether clauses need not be added any more, as the search is over. What has no more clauses has no
    /// answer.
    pub(crate) fn is_cut_off(&mut self) -> bool {
        self.is_cut_off = self.is_cut_off || self.solver.cb().meter.is_over();
        self.is_cut_off
    }

    /// The same, after this much work besides, of what a part of the search is allowed, also where it is otherwise run
    /// to its end.
    pub(crate) fn is_spent(&mut self, work: u64) -> bool {
        let meter = &self.solver.cb().meter;
        meter.spend(work);
        self.is_cut_off = self.is_cut_off || meter.is_used_up();
        self.is_cut_off
    }

    /// Conflicts met so far.
    pub(crate) fn conflicts(&self) -> u64 {
        self.solver.cb().conflicts
    }

    /// Searches for an assignment under `assumptions`.
    pub(crate) fn solve(&mut self, assumptions: &[Lit]) -> SatResult {
        if self.is_cut_off {
            return SatResult::Stopped;
        }
        if assumptions.contains(&!self.truth) {
            return SatResult::Unsatisfiable;
        }
        let result = self.solver.solve_limited_preserving_trail_th(&mut self.theory, assumptions);
        let answer = if result == lbool::TRUE {
            let mut times = Vec::new();
            for nodes in &self.parts {
                let origin = Node::new(times.len());
                let part = origin.index()..origin.index() + nodes;
                times.extend(part.map(|i| self.theory.system.least(origin, Node::new(i))));
            }
            SatResult::Satisfiable(Assignment { times, values: self.solver.get_model().to_vec() })
        } else if result == lbool::FALSE {
            SatResult::Unsatisfiable
        } else {
            SatResult::Stopped
        };
        self.solver.pop_model(&mut self.theory);
        answer
    }
}
