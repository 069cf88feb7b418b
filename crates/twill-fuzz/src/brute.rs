//! The least interval and the best schedule at it, by trying everything: groups, slots and stages of all operations.
//!
//! The constraints are written down a third time here, from `docs/model.md`, after the engine's and the checker's. Only
//! three things are taken from outside the table, each for a search that ends:
//!
//! - time has no origin: the first operation stands at cycle 0, others before or after it;
//! - free compute groups are interchangeable: a new one is the next;
//! - where the stages of some operations all lie above those of the others by more than any dependence asks for (its delay
//!   and handoff, or its distance), they may as well lie one lower: no dependence breaks and no life grows. So stages
//!   are tried only without such gaps.

mod memory;
mod stages;

use crate::brute::stages::Stages;
use twill_graph::saturate;
use twill_graph::{ConcurrencyWindow, Dependence, GroupRole, Operation, Problem, Storage, WarpAssignment};

/// Stages, compute groups, handoff words, channels, length, registers a thread: the objective after the interval.
pub type Objectives = [i64; 6];

/// The result of trying everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optimum {
    /// The least interval.
    Found {
        /// The interval, in cycles.
        interval: i64,
        /// The least objectives there; `None` when there was too much to try.
        objectives: Option<Objectives>,
    },
    /// There is no schedule up to the largest interval.
    None,
    /// There was too much to try.
    TooMuch,
}

/// Tries every schedule of every interval up to `largest` cycles, with at most `tries` (choices of a group, a slot
/// or stages) for each.
pub fn optimum(problem: &Problem, largest: i64, tries: u64) -> Optimum {
    for interval in 1..=largest {
        let mut search = Search::new(problem, interval, tries);
        search.groups(0, 0);
        match (search.best, search.tries) {
            (Some(_), 0) => return Optimum::Found { interval, objectives: None },
            (Some(best), _) => return Optimum::Found { interval, objectives: Some(best) },
            (None, 0) => return Optimum::TooMuch,
            (None, _) => {}
        }
    }
    Optimum::None
}

/// An interval above which nothing new is possible (`docs/model.md`, "Why one proof rejects every smaller interval").
pub fn enough(problem: &Problem) -> i64 {
    let graph = problem.graph();
    let operations = graph.operations().iter().map(|op| 2 * op.span().max(op.completion()).0 + op.transfer_latency.0);
    let dependences = graph.dependences().iter().map(|d| d.delay.0 + graph.operation(d.from).handoff.0 + d.hold.0);
    let bytes: u64 = graph.operations().iter().map(|op| op.traffic.shared.0).sum();
    let rate = problem.resources().shared_bytes_per_cycle;
    let bandwidth = rate.map_or(0, |rate| saturate::<i64>(bytes.div_ceil(rate.0)));
    operations.chain(dependences).sum::<i64>().max(bandwidth)
}

struct Search<'p> {
    problem: &'p Problem,
    interval: i64,
    /// Group of each operation, slot of each operation.
    group: Vec<usize>,
    slot: Vec<i64>,
    /// True for operations that wait (`concurrency`); follows from the groups.
    waits: Vec<bool>,
    /// Instances held, by unit and slot.
    held: Vec<Vec<u32>>,
    tries: u64,
    best: Option<Objectives>,
}

impl<'p> Search<'p> {
    fn new(problem: &'p Problem, interval: i64, tries: u64) -> Search<'p> {
        let count = problem.graph().operations().len();
        let held = vec![vec![0; interval as usize]; problem.resources().units.len()];
        let (group, slot, waits) = (vec![0; count], vec![0; count], vec![false; count]);
        Search { problem, interval, group, slot, waits, held, tries, best: None }
    }

    fn op(&self, v: usize) -> &'p Operation {
        &self.problem.graph().operations()[v]
    }

    fn dependences(&self) -> &'p [Dependence] {
        self.problem.graph().dependences()
    }

    /// A register value that passes to another group; both ends have theirs.
    fn crosses(&self, d: &Dependence) -> bool {
        let registers = matches!(self.op(d.from.index()).storage, Storage::Registers(_));
        registers && d.carries_value && self.group[d.from.index()] != self.group[d.to.index()]
    }

    /// Cycles from issue to issue, with the handoff.
    fn delay(&self, d: &Dependence) -> i64 {
        d.delay.0 + if self.crosses(d) { self.op(d.from.index()).handoff.0 } else { 0 }
    }

    /// Returns whether there is nothing left to try with; counts a try.
    fn is_over(&mut self) -> bool {
        self.tries = self.tries.saturating_sub(1);
        self.tries == 0
    }

    /// Groups of operations from `v` on, when `used` compute groups have something to do.
    fn groups(&mut self, v: usize, used: usize) {
        if self.is_over() {
            return;
        }
        if v == self.group.len() {
            return self.with_groups();
        }
        let pool = self.problem.groups();
        let first = pool.iter().position(|g| g.role == GroupRole::Compute).unwrap_or(pool.len());
        let free = self.problem.options().warp_assignment == WarpAssignment::Free;
        for (g, group) in pool.iter().enumerate() {
            let compute = group.role == GroupRole::Compute;
            let new = compute && g >= first + used;
            if (free && new && g > first + used) || !self.may_run(v, g, first) {
                continue;
            }
            self.group[v] = g;
            self.groups(v + 1, used + usize::from(new));
        }
    }

    /// `assignment`.
    fn may_run(&self, v: usize, g: usize, first: usize) -> bool {
        let (machine, op, group) = (self.problem.resources(), self.op(v), self.problem.groups()[g]);
        let loads = machine.variable_latency_group.is_some();
        let of_loads = group.role == GroupRole::VariableLatency;
        let of_issue = group.role == GroupRole::Issue;
        let by_sub_tile = self.problem.options().warp_assignment == WarpAssignment::BySubTile;
        let turn = op.sub_tile.map_or(0, |s| s as usize % machine.compute_groups.maximum as usize);
        group.warps >= op.issue_width
            && (!loads || op.variable_latency == of_loads)
            && (machine.issue_group.is_none() || of_loads || (op.issue_width == 1) == of_issue)
            && !(by_sub_tile && group.role == GroupRole::Compute && g != first + turn)
    }

    fn with_groups(&mut self) {
        let crossing = |d: &&Dependence| self.crosses(d);
        let allowed = self.problem.options().cross_group_registers;
        // `handoff`, as far as it speaks of groups; dependences of an operation on itself; `bandwidth`.
        if self.dependences().iter().filter(crossing).any(|d| d.distance > 0 || !allowed) {
            return;
        }
        let own = |d: &&Dependence| d.from == d.to;
        if self.dependences().iter().filter(own).any(|d| d.delay.0 > i64::from(d.distance) * self.interval) {
            return;
        }
        let bytes: u64 = self.problem.graph().operations().iter().map(|op| op.traffic.shared.0).sum();
        let rate = self.problem.resources().shared_bytes_per_cycle;
        if rate.is_some_and(|rate| bytes > rate.0 * self.interval as u64) {
            return;
        }
        for v in 0..self.waits.len() {
            let mut incoming = self.dependences().iter().filter(|d| d.to.index() == v);
            self.waits[v] = incoming.any(|d| (d.blocking && d.from != d.to) || self.crosses(d));
        }
        self.slots(0);
    }

    /// Slots of operations from `v` on.
    fn slots(&mut self, v: usize) {
        if self.is_over() {
            return;
        }
        if v == self.slot.len() {
            return Stages::new(self).try_all();
        }
        // Time has no origin.
        for slot in 0..if v == 0 { 1 } else { self.interval } {
            self.slot[v] = slot;
            let fits = self.hold(v, 1);
            if fits && (0..v).all(|u| !self.clash(u, v)) && !self.overlaps_itself(v) {
                self.slots(v + 1);
            }
            self.hold(v, -1);
        }
    }

    /// Adds what `v` holds of units (`by` 1) or takes it away (-1); whether no unit is held too often (`resource`).
    fn hold(&mut self, v: usize, by: i32) -> bool {
        let mut fits = true;
        for (r, unit) in self.op(v).reservations.iter().zip(self.problem.units_of(twill_graph::OpId::new(v))) {
            let capacity = self.problem.resources().units[unit.index()].capacity;
            for cycle in r.start.0..r.start.0 + r.cycles.0 {
                let slot = (self.slot[v] + cycle).rem_euclid(self.interval) as usize;
                let held = &mut self.held[unit.index()][slot];
                *held = held.wrapping_add_signed(by);
                fits &= *held <= capacity;
            }
        }
        fits
    }

    /// Slots from `u` on to `v`.
    fn apart(&self, u: usize, v: usize) -> i64 {
        (self.slot[v] - self.slot[u]).rem_euclid(self.interval)
    }

    /// `concurrency` and `exclusive`, of two operations.
    fn clash(&self, u: usize, v: usize) -> bool {
        if self.group[u] != self.group[v] {
            return false;
        }
        let literal = self.problem.options().concurrency_window == ConcurrencyWindow::Literal;
        let window = |o: usize| match self.op(o).is_synchronous() || literal {
            true => self.op(o).occupancy.0,
            false => 1,
        };
        let stalls = |waiting: usize, o: usize| self.waits[waiting] && self.apart(o, waiting) < window(o);
        let busy = |o: usize| self.op(o).occupancy.0;
        let exclusive = self.problem.options().exclusive_issue
            && [u, v].iter().all(|&o| self.op(o).is_synchronous() && busy(o) > 0);
        stalls(u, v) || stalls(v, u) || (exclusive && (self.apart(u, v) < busy(u) || self.apart(v, u) < busy(v)))
    }

    /// `exclusive`, of one operation and its next iteration.
    fn overlaps_itself(&self, v: usize) -> bool {
        let op = self.op(v);
        self.problem.options().exclusive_issue && op.is_synchronous() && op.occupancy.0 > self.interval
    }
}
