//! A window's question for the SAT solver.
//!
//! Order encoding: a literal for each `s_v ≤ t`. A dependence is then a clause of two literals for each step, and what
//! objectives are made of is linear: `s_v = low + Σ ¬(s_v ≤ t)`, usage and live storage sums of literals that an
//! operation is there, a peak `P` the sum of literals by which capacity is lowered. The sums are [`Sums`].

mod counted;
mod energy;
mod goal;
mod ranges;

use super::brake::Brake;
use super::sums::{SumId, Sums};
use super::tracks::Costs;
use crate::control::{Clock, Paced};
use crate::model::Model;
use batsat::{Lit, Solver, SolverInterface, SolverOpts, lbool};
use ranges::{estimate, ranges};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Largest encoding, in literals of clauses and sums.
pub(super) const LARGEST: i64 = 6_000_000;

/// The question about a window.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ask<'q> {
    /// A smaller objective.
    Objective,
    /// Fewer slots in which a track is above its cap, and none above where its peak is now; other peaks stay, or rise to
    /// their caps, and communication costs at most `allowance`.
    Fewer { track: usize, caps: &'q [i64], allowance: i64 },
}

/// Operations that may move.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub ops: Vec<usize>,
    /// By how many steps; `None` for as far as they can.
    pub reach: Option<i64>,
}

/// The schedule around the window.
#[derive(Clone, Copy)]
pub(super) struct Around<'a, 's> {
    pub model: &'a Model<'a>,
    pub costs: &'a Costs,
    pub steps: &'s [i64],
    /// Usage by track and slot.
    pub usage: &'s [Vec<i64>],
    /// Its objective.
    pub value: i64,
}

/// Why there is no question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointless {
    /// Fixed operations, or bounds, already exclude a solution.
    Refuted,
    /// The encoding would be too large.
    TooLarge,
}

/// What the SAT solver found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SatResult {
    /// The schedule with the window moved.
    Sat(Vec<i64>),
    Unsat,
    /// Not within the effort.
    Unknown,
}

struct Domain {
    op: usize,
    low: i64,
    high: i64,
    /// `s ≤ low + k`, by `k`, below `high`.
    order: Vec<Lit>,
}

/// A question, which may be sharpened and asked on.
pub(super) struct Encoding<'a, 'c> {
    model: &'a Model<'a>,
    costs: &'a Costs,
    steps: Vec<i64>,
    solver: Solver<Brake<'c>>,
    sums: Sums,
    truth: Lit,
    domains: Vec<Domain>,
    /// Position in `domains`, by operation.
    index: Vec<u32>,
    between: HashMap<(usize, i64, i64), Lit>,
    /// Clauses already contradict each other.
    refuted: bool,
    /// The quantity that is minimised.
    goal: Option<SumId>,
    /// Part of what is asked for that is not in the sum.
    constant: i64,
    /// The goal of the schedule as it is.
    now: i64,
    /// By track whose peak costs: literals that lower it, and the least there is.
    levels: Vec<Vec<(Lit, i64)>>,
    least: Vec<i64>,
    /// Splits that have been told what follows from them.
    narrowed: HashSet<Vec<i64>>,
    /// Large encodings take seconds to make.
    paced: Paced<'c>,
}

const FIXED: u32 = u32::MAX;

impl<'a, 'c> Encoding<'a, 'c> {
    /// Encodes the question, for now so that the schedule as it is answers it; [`demand`](Self::demand) sharpens it.
    pub fn new(around: Around<'a, '_>, window: &Window, ask: Ask<'_>, clock: Clock<'c>) -> Result<Self, Pointless> {
        let Around { model, costs, steps, .. } = around;
        let mut index = vec![FIXED; model.len()];
        for (at, &v) in window.ops.iter().enumerate() {
            index[v] = at as u32;
        }
        let ranges = ranges(around, window, &index);
        if estimate(around, window, &ranges) > LARGEST {
            return Err(Pointless::TooLarge);
        }
        let work = Rc::new(Cell::new(0));
        let mut solver = Solver::new(SolverOpts::default(), Brake::new(clock, Rc::clone(&work)));
        let truth = Lit::new(solver.new_var_default(), true);
        solver.add_clause_reuse(&mut vec![truth]);
        let mut encoding = Self {
            model,
            costs,
            steps: steps.to_vec(),
            solver,
            sums: Sums::new(truth, work),
            truth,
            domains: Vec::with_capacity(ranges.len()),
            index,
            between: HashMap::new(),
            refuted: false,
            goal: None,
            constant: 0,
            now: 0,
            levels: Vec::new(),
            least: Vec::new(),
            narrowed: HashSet::new(),
            paced: Paced::new(&clock),
        };
        for (&op, (low, high)) in window.ops.iter().zip(ranges) {
            if encoding.paced.is_over_after(64 * (high - low + 1) as u64) {
                return Err(Pointless::TooLarge);
            }
            let order: Vec<Lit> = (low..high).map(|_| encoding.fresh()).collect();
            for pair in order.windows(2) {
                encoding.clause(&[!pair[0], pair[1]]);
            }
            encoding.domains.push(Domain { op, low, high, order });
        }
        encoding.add_dependences();
        let counted = costs.tracks.iter().zip(around.usage).map(|(track, usage)| encoding.count(track.counted, usage));
        let counted = counted.collect();
        match ask {
            Ask::Objective => encoding.smaller(around, counted, window.reach.is_none())?,
            Ask::Fewer { track, caps, allowance } => encoding.fewer(counted, track, caps, allowance)?,
        }
        // What was made in a hurry says too little.
        if clock.is_over() {
            return Err(Pointless::TooLarge);
        }
        Ok(encoding)
    }

    fn fresh(&mut self) -> Lit {
        Lit::new(self.solver.new_var_default(), true)
    }

    fn clause(&mut self, literals: &[Lit]) {
        if !literals.contains(&self.truth) {
            let mut clause: Vec<Lit> = literals.iter().copied().filter(|&l| l != !self.truth).collect();
            self.refuted |= clause.is_empty() || !self.solver.add_clause_reuse(&mut clause);
        }
    }

    /// `s_v ≤ step`.
    fn by(&self, v: usize, step: i64) -> Lit {
        let constant = |holds: bool| if holds { self.truth } else { !self.truth };
        match self.domains.get(self.index[v] as usize) {
            None => constant(self.steps[v] <= step),
            Some(domain) if step < domain.low || step >= domain.high => constant(step >= domain.high),
            Some(domain) => domain.order[(step - domain.low) as usize],
        }
    }

    /// Least and greatest step of an operation.
    pub fn range(&self, v: usize) -> (i64, i64) {
        self.domains.get(self.index[v] as usize).map_or((self.steps[v], self.steps[v]), |d| (d.low, d.high))
    }

    fn add_dependences(&mut self) {
        let model = self.model;
        for at in 0..self.domains.len() {
            let to = self.domains[at].op;
            let clauses = self.domains[at].order.len() * model.precedence.predecessors(to).len();
            if self.paced.is_over_after(64 * clauses as u64) {
                return;
            }
            for p in model.precedence.predecessors(to) {
                // Ranges keep those to fixed operations; one on itself holds at every step or at none.
                if self.index[p.op()] == FIXED || p.op() == to {
                    continue;
                }
                for step in self.domains[at].low..=self.domains[at].high {
                    self.clause(&[!self.by(to, step), self.by(p.op(), step - p.lag)]);
                }
            }
        }
    }

    /// Adds `Σ weight · literal ≤ limit`, or refutes the question; literals may repeat, contradict each other or hold.
    fn at_most(&mut self, terms: Vec<(Lit, i64)>, limit: i64) -> Option<SumId> {
        let (terms, constant) = merge(terms, self.truth);
        let limit = limit - constant;
        if limit < 0 {
            self.refuted = true;
            return None;
        }
        if terms.iter().map(|term| term.1).sum::<i64>() <= limit {
            return None;
        }
        Some(self.sums.add(terms, limit))
    }

    /// The goal of the schedule as it is.
    pub fn goal(&self) -> i64 {
        self.now
    }

    /// Asks for less than there is: the goal must be at most `most`.
    pub fn demand(&mut self, most: i64) {
        let most = most - self.constant;
        match self.goal {
            Some(goal) if most >= 0 => self.sums.tighten(goal, most),
            _ => self.refuted = true,
        }
    }

    /// Lets the solver find the schedule as it is, so that it will look near there first.
    pub fn remember(&mut self, steps: &[i64]) {
        let mut now = Vec::new();
        for domain in &self.domains {
            let step = steps[domain.op];
            now.extend([self.by(domain.op, step), !self.by(domain.op, step - 1)]);
        }
        now.retain(|&l| l != self.truth);
        let effort = now.len() as u64 + 1000;
        self.solver.cb_mut().release(effort);
        self.solver.solve_limited_th(&mut self.sums, &now);
    }

    /// Searches for an answer with peaks split in this way.
    pub fn solve_split(&mut self, split: &[i64], effort: u64) -> SatResult {
        if !split.is_empty() && self.narrowed.insert(split.to_vec()) {
            self.narrow(split);
        }
        let within = self.bounded(split);
        self.solve_within(within, effort)
    }

    /// Searches for an answer in which an operation starts at a step.
    pub fn solve_with(&mut self, op: usize, step: i64, effort: u64) -> SatResult {
        let within = vec![self.by(op, step), !self.by(op, step - 1)];
        self.solve_within(within, effort)
    }

    /// Searches for an answer.
    pub fn solve(&mut self, effort: u64) -> SatResult {
        self.solve_within(Vec::new(), effort)
    }

    fn solve_within(&mut self, within: Vec<Lit>, effort: u64) -> SatResult {
        if self.refuted {
            return SatResult::Unsat;
        }
        self.solver.cb_mut().release(effort);
        let result = self.solver.solve_limited_th(&mut self.sums, &within);
        if result == lbool::FALSE {
            // This stays refuted for all later clauses.
            let refuted: Vec<Lit> = within.iter().map(|&l| !l).collect();
            self.clause(&refuted);
            return SatResult::Unsat;
        }
        if result != lbool::TRUE {
            return SatResult::Unknown;
        }
        let mut steps = self.steps.clone();
        for domain in &self.domains {
            let later = domain.order.iter().take_while(|&&l| self.solver.value_lit(l) != lbool::TRUE).count();
            steps[domain.op] = domain.low + later as i64;
        }
        SatResult::Sat(steps)
    }

    /// Clauses and terms.
    pub fn size(&self) -> u64 {
        self.solver.num_clauses() + self.sums.size() as u64
    }

    /// Effort so far, the making of the encoding included.
    pub fn effort(&self) -> u64 {
        self.solver.cb().effort() + self.size() / 1024
    }
}

/// Adds up literals that repeat. What a literal and its negation have in common, and what holds, is constant.
fn merge(mut terms: Vec<(Lit, i64)>, truth: Lit) -> (Vec<(Lit, i64)>, i64) {
    terms.sort_unstable();
    let (mut merged, mut constant): (Vec<(Lit, i64)>, i64) = (Vec::with_capacity(terms.len()), 0);
    for (literal, weight) in terms {
        if literal.var() == truth.var() {
            constant += if literal == truth { weight } else { 0 };
            continue;
        }
        match merged.last_mut() {
            Some(last) if last.0 == literal => last.1 += weight,
            Some(last) if last.0 == !literal => {
                let common = last.1.min(weight);
                constant += common;
                last.1 -= common;
                if weight > common {
                    *last = (literal, weight - common);
                }
            }
            _ => merged.push((literal, weight)),
        }
    }
    merged.retain(|term| term.1 > 0);
    (merged, constant)
}
