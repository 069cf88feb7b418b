//! A schedule with its problem, with times wide enough that nothing overflows.
//!
//! A schedule is untrusted: its times may be any 64-bit numbers, and a distance may multiply them
//! by 2^20. All sums of times are therefore taken in 128 bits.

use twill_graph::{Cycles, Dependence, GroupId, LoopGraph, OpId, Operation, Problem, Schedule, Storage};

/// A schedule whose shape fits its problem, for replaying.
pub(crate) struct Placed<'a> {
    /// The problem to solve.
    pub problem: &'a Problem,
    /// The claim.
    pub schedule: &'a Schedule,
    /// `I`, at least 1.
    pub interval: i128,
    /// For every operation, the dependences through which its result is read.
    readers: Vec<Vec<&'a Dependence>>,
}

impl<'a> Placed<'a> {
    /// Requires what [`crate::structure::check_shape`] checks.
    pub fn new(problem: &'a Problem, schedule: &'a Schedule) -> Placed<'a> {
        let mut readers = vec![Vec::new(); problem.graph().operations().len()];
        for d in problem.graph().dependences().iter().filter(|d| d.carries_value) {
            readers[d.from.index()].push(d);
        }
        Placed { problem, schedule, interval: i128::from(schedule.interval.0), readers }
    }

    pub fn graph(&self) -> &'a LoopGraph {
        self.problem.graph()
    }

    pub fn operations(&self) -> impl Iterator<Item = (OpId, &'a Operation)> + use<'a> {
        self.graph().operations().iter().enumerate().map(|(i, op)| (OpId::new(i), op))
    }

    pub fn name(&self, op: OpId) -> String {
        self.graph().operation(op).name.clone()
    }

    /// `t_v`: issue cycle of the copy in iteration 0.
    pub fn issue(&self, op: OpId) -> i128 {
        self.schedule.placements[op.index()].cycle.0.into()
    }

    /// `w_v`.
    pub fn group(&self, op: OpId) -> GroupId {
        self.schedule.placements[op.index()].group
    }

    /// Dependences through which the result of `op` is read.
    pub fn readers(&self, op: OpId) -> &[&'a Dependence] {
        &self.readers[op.index()]
    }

    /// Returns whether `d` passes a register value from one group to another.
    pub fn is_handoff(&self, d: &Dependence) -> bool {
        d.carries_value
            && matches!(self.graph().operation(d.from).storage, Storage::Registers(_))
            && self.group(d.from) != self.group(d.to)
    }

    /// Issue cycle of the consumer that reads the value of iteration 0.
    pub fn read_at(&self, d: &Dependence) -> i128 {
        self.issue(d.to) + i128::from(d.distance) * self.interval
    }

    /// First cycle after the last row of `op` in iteration 0: an operation without cycles still
    /// takes the row in which it issues.
    pub fn last_row(&self, op: OpId) -> i128 {
        self.issue(op) + i128::from(self.graph().operation(op).occupancy.0.max(1))
    }

    /// `L`, from the placements.
    pub fn length(&self) -> i128 {
        self.operations().map(|(v, _)| self.last_row(v)).max().unwrap_or(0)
    }
}

/// Cycles from issue to the moment when an operation is over in every respect.
pub(crate) fn completion(op: &Operation) -> i128 {
    i128::from(op.occupancy.0).max(op.latency.0.into())
}

/// For messages: as close as 64 bits come.
pub(crate) fn cycles(time: i128) -> Cycles {
    Cycles(time.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
}

/// For messages: as close as 64 bits come.
pub(crate) fn amount(sum: i128) -> u64 {
    sum.clamp(0, u64::MAX.into()) as u64
}
