//! The first iterations of a loop as a schedule runs them, for traces and pictures: the work in flight in each cycle,
//! which instance of a unit it holds, what is live.
//!
//! Iteration `k` of operation `v` issues at cycle `t_v + k · I`; the loop begins at cycle 0.

mod lanes;
mod live;

pub(crate) use lanes::first_fit;
pub(crate) use live::steps;

use twill_graph::{Dependence, GroupId, OpId, Problem, Schedule, UnitId};

/// Stages beyond this are not shown unless they are asked for: the picture would be of nothing else.
const MOST_STAGES: u32 = 30;

/// An operation of one iteration, or what it holds of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// The operation.
    pub op: OpId,
    /// Its iteration, from 0.
    pub iteration: u32,
    /// The cycle in which it issues, or first holds the unit.
    pub start: i64,
    /// The cycle after its last: a synchronous operation's warps are free, an asynchronous one's result is there, or
    /// the unit is free.
    pub end: i64,
}

/// The first iterations of a loop.
pub(crate) struct Run<'a> {
    pub problem: &'a Problem,
    pub schedule: &'a Schedule,
    pub iterations: u32,
    order: Vec<OpId>,
}

/// Iterations that show every part of a pipeline, the steady state for `steady` intervals.
pub(crate) fn iterations(schedule: &Schedule, steady: u32) -> u32 {
    schedule.stages().min(MOST_STAGES).saturating_add(steady).saturating_sub(1)
}

impl<'a> Run<'a> {
    /// At least one iteration is run.
    pub fn new(problem: &'a Problem, schedule: &'a Schedule, iterations: u32) -> Run<'a> {
        Run { problem, schedule, iterations: iterations.max(1), order: order(problem) }
    }

    /// Cycle after the last operation's last: `(n − 1) · I + L`, or later where a result is.
    pub fn end(&self) -> i64 {
        let last = self.events().map(|event| event.end).max();
        last.unwrap_or(0).max(self.schedule.interval.0 * i64::from(self.iterations - 1) + self.schedule.length.0)
    }

    /// Where the steady state begins and ends, if there is one: from the first cycle in which all stages run to the
    /// cycle in which another iteration would begin.
    pub fn steady(&self) -> Option<(i64, i64)> {
        let at = |iteration: u32| self.schedule.interval.0 * i64::from(iteration);
        let stages = self.schedule.stages();
        let end = at(self.iterations).min(self.end());
        (self.iterations >= stages).then(|| (at(stages - 1).min(end), end))
    }

    /// All operations of all iterations: by iteration, then so that what another one of the same iteration waits for
    /// comes before it.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        (0..self.iterations).flat_map(move |k| self.order.iter().map(move |op| self.event(*op, k)))
    }

    /// An operation of one iteration.
    pub fn event(&self, op: OpId, iteration: u32) -> Event {
        let operation = self.problem.graph().operation(op);
        let start = (self.schedule.placement(op).cycle + self.schedule.interval * iteration).0;
        let cycles = if operation.is_synchronous() { operation.span() } else { operation.completion() };
        Event { op, iteration, start, end: start + cycles.0.max(1) }
    }

    /// The group that issues an operation.
    pub fn group(&self, op: OpId) -> GroupId {
        self.schedule.placement(op).group
    }

    /// The holders of each instance of a unit; as few instances as there are ever held at once. The schedule does not
    /// say which instance: the first free one.
    pub fn holdings(&self, unit: UnitId) -> Vec<Vec<Event>> {
        let of = |event: Event| {
            let reservations = &self.problem.graph().operation(event.op).reservations;
            let here = reservations.iter().zip(self.problem.units_of(event.op)).filter(move |(_, u)| **u == unit);
            here.map(move |(held, _)| {
                let start = event.start + held.start.0;
                Event { start, end: start + held.cycles.0.max(1), ..event }
            })
        };
        first_fit(self.events().flat_map(of).collect(), |held| (held.start, held.end))
    }

    /// All dependences with the iterations of both ends, as far as both are run.
    pub fn dependences(&self) -> impl Iterator<Item = (&Dependence, u32, u32)> + '_ {
        let dependences = self.problem.graph().dependences().iter();
        dependences.flat_map(|d| (d.distance..self.iterations).map(move |to| (d, to - d.distance, to)))
    }

    /// Returns whether the operation that a dependence leads to must wait for a barrier: an asynchronous operation
    /// ends, or another group hands on a value.
    pub fn waits(&self, dependence: &Dependence) -> bool {
        dependence.blocking || (dependence.carries_value && self.group(dependence.from) != self.group(dependence.to))
    }
}

/// All operations, so that dependences within one iteration lead forward.
fn order(problem: &Problem) -> Vec<OpId> {
    let graph = problem.graph();
    let mut missing = vec![0_usize; graph.operations().len()];
    let within = || graph.dependences().iter().filter(|d| d.distance == 0);
    let mut readers: Vec<Vec<OpId>> = vec![Vec::new(); missing.len()];
    for d in within() {
        missing[d.to.index()] += 1;
        readers[d.from.index()].push(d.to);
    }
    let mut order: Vec<OpId> = graph.op_ids().filter(|op| missing[op.index()] == 0).collect();
    let mut next = 0;
    while let Some(&op) = order.get(next) {
        next += 1;
        for &reader in &readers[op.index()] {
            missing[reader.index()] -= 1;
            if missing[reader.index()] == 0 {
                order.push(reader);
            }
        }
    }
    order
}
