//! Who reads what, when: dependences seen from the times of a schedule.

use crate::passes::steps::shared_barriers::SharedBarriers;
use twill_graph::saturate;
use twill_graph::{Cycles, Dependence, Execution, GroupId, LoopGraph, OpId, Operation, Problem, Schedule, Storage};

/// A problem with a schedule, and the questions that are asked of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScheduledGraph<'a> {
    pub graph: &'a LoopGraph,
    pub schedule: &'a Schedule,
    /// Code is generated. A compiler gives every register value a register of its own, so nobody waits for one to be
    /// free, and rings go on where an earlier loop left them, so nothing is known to be free.
    pub code: Option<ReorderingOptions>,
    /// Loads that share barriers, if any do.
    pub shared: Option<&'a SharedBarriers>,
}

/// What generated code may do apart from the schedule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReorderingOptions {
    /// MMAs that a group starts one after another start together: what it computes for them comes before, and what it
    /// gives back afterwards.
    pub mma_batches: bool,
    /// Slots that every ring has at least.
    pub ring_depth: u32,
    /// Loads may share barriers.
    pub shared_barriers: bool,
    /// Groups that load may have shorter pipelines for few iterations.
    pub shorter_pipelines: bool,
}

impl<'a> ScheduledGraph<'a> {
    pub(crate) fn new(problem: &'a Problem, schedule: &'a Schedule) -> ScheduledGraph<'a> {
        ScheduledGraph { graph: problem.graph(), schedule, code: None, shared: None }
    }

    /// The same, to generate code.
    pub(crate) fn for_code(self, reordering: ReorderingOptions) -> ScheduledGraph<'a> {
        ScheduledGraph { code: Some(reordering), ..self }
    }

    /// The same with loads that share barriers.
    pub(crate) fn sharing(self, shared: &'a SharedBarriers) -> ScheduledGraph<'a> {
        ScheduledGraph { shared: Some(shared), ..self }
    }

    /// The load whose barriers guard a load.
    pub(crate) fn leader(&self, op: OpId) -> OpId {
        self.shared.map_or(op, |shared| shared.leader(op))
    }

    /// The loads that a load's barriers guard, itself first.
    pub(crate) fn guarded(&self, op: OpId) -> Vec<OpId> {
        self.shared.map_or_else(|| vec![op], |shared| shared.guarded(op).collect())
    }

    pub(crate) fn interval(&self) -> i64 {
        self.schedule.interval.0.max(1)
    }

    pub(crate) fn group(&self, op: OpId) -> GroupId {
        self.schedule.placement(op).group
    }

    pub(crate) fn operation(&self, op: OpId) -> &'a Operation {
        self.graph.operation(op)
    }

    pub(crate) fn is_asynchronous(&self, op: OpId) -> bool {
        self.operation(op).execution == Execution::Asynchronous
    }

    /// When an operation stands in its group's order. A streaming load stands where its ring
    /// expects it, `transfer_latency` before its first reader, between the operations that it is
    /// ordered with. Loads that share barriers stand together, where the first of them has to.
    pub(crate) fn time(&self, op: OpId) -> i64 {
        let together = self.guarded(self.leader(op));
        together.into_iter().map(|op| self.own_time(op)).min().unwrap_or_else(|| self.own_time(op))
    }

    fn own_time(&self, op: OpId) -> i64 {
        let scheduled = self.schedule.placement(op).cycle.0;
        if !self.operation(op).streaming {
            return scheduled;
        }
        let Some(first) = self.graph.uses(op).map(|d| self.consumer_time(d)).min() else { return scheduled };
        let orders = || self.graph.dependences().iter().filter(|d| !d.carries_value);
        if orders().any(|d| d.from == op && d.to == op) {
            return scheduled;
        }
        let after = orders().filter(|d| d.to == op).map(|d| {
            let distance = self.distance(d);
            if self.operation(d.from).streaming { scheduled } else { self.scheduled(d.from) + d.delay.0 - distance }
        });
        let before = orders()
            .filter(|d| d.from == op)
            .map(|d| if self.operation(d.to).streaming { scheduled } else { self.consumer_time(d) - d.delay.0 });
        let earliest = after.max().unwrap_or(i64::MIN);
        let latest = before.min().unwrap_or(i64::MAX);
        (first - self.operation(op).transfer_latency.0).min(latest).max(earliest)
    }

    fn scheduled(&self, op: OpId) -> i64 {
        self.schedule.placement(op).cycle.0
    }

    fn distance(&self, dependence: &Dependence) -> i64 {
        (self.schedule.interval * dependence.distance).0
    }

    /// When the consumer of a dependence issues, in the iteration of the producer.
    pub(crate) fn consumer_time(&self, dependence: &Dependence) -> i64 {
        self.scheduled(dependence.to) + self.distance(dependence)
    }

    /// Value dependences from `op`.
    pub(crate) fn uses(&self, op: OpId) -> impl Iterator<Item = &'a Dependence> + use<'a> {
        self.graph.uses(op)
    }

    /// Whether a dependence crosses from one group to another.
    pub(crate) fn crosses(&self, dependence: &Dependence) -> bool {
        self.group(dependence.from) != self.group(dependence.to)
    }

    /// `⌈cycles / I⌉`, at least 1.
    pub(crate) fn copies(&self, cycles: i64) -> u32 {
        saturate::<u32>(Cycles(cycles).div_ceil(Cycles(self.interval())).max(1))
    }

    /// Whether the unit that executes `op` signals a barrier when the result is there: TMA loads,
    /// and tensor operations that one warp issues (`tcgen05.commit`). `wgmma` does not.
    pub(crate) fn signals_result(&self, op: OpId) -> bool {
        let operation = self.operation(op);
        let outside_registers = matches!(operation.storage, Storage::Shared(_) | Storage::Tensor(_));
        self.is_asynchronous(op) && operation.issue_width == 1 && outside_registers
    }

    /// Whether the unit that executes `op` signals a barrier when it has read its operands. TMA
    /// stores do not.
    pub(crate) fn signals_release(&self, op: OpId) -> bool {
        let operation = self.operation(op);
        self.is_asynchronous(op) && operation.issue_width == 1 && !operation.variable_latency
    }

    /// Asynchronous operations with the same queue end in the order in which a group issues them.
    pub(crate) fn queue(&self, op: OpId) -> (GroupId, Option<&'a str>) {
        let reservations = &self.operation(op).reservations;
        (self.group(op), reservations.iter().rev().max_by_key(|r| r.cycles).map(|r| r.unit.as_str()))
    }
}
