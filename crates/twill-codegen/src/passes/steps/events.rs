//! Events: what a group does once in every iteration, with its time and its steps.
//!
//! There are three kinds: an operation issues; its producer commits its result (the full barrier); a consumer releases a buffer (the empty
//! barrier).
//! Steps name iterations relative to that of their event.

use crate::passes::steps::program::{Barrier, BufferId, BufferKind, Purpose};
use crate::passes::steps::scheduled_graph::ScheduledGraph;
use crate::passes::steps::storage::{LastRead, Planned, Reused, Storing, commit_time, plan, storings};
use std::collections::HashSet;
use twill_graph::{GroupId, OpId};

/// What happens; the order of variants decides between what happens at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EventKind {
    /// An asynchronous operation issues: this takes no time, so nothing is in its way that need not be.
    Start(OpId),
    /// A synchronous operation issues.
    Run(OpId),
    /// Its result is there for other groups, which wait at the full barrier.
    ProducerCommit(OpId),
    /// The group needs the buffer no more, and arrives at its empty barrier.
    ConsumerRelease(BufferId, GroupId),
}

/// A step of an event; `at` is its iteration minus the event's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RelativeStep {
    Issue { op: OpId, signals: Vec<(Barrier, i64)> },
    Store { op: OpId, buffer: BufferId },
    MbarrierWait { barrier: Barrier, at: i64 },
    MbarrierArrive { barrier: Barrier, at: i64 },
    WaitAsync { op: OpId, at: i64, purpose: Purpose },
}

/// An event of iteration 0.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub kind: EventKind,
    pub group: GroupId,
    pub time: i64,
    pub steps: Vec<RelativeStep>,
}

/// All events, and the buffers that their steps name.
pub(crate) struct Events {
    pub events: Vec<Event>,
    pub planned: Vec<Planned>,
    pub storings: Vec<Storing>,
}

impl EventKind {
    /// The operation that issues.
    pub(crate) fn issues(self) -> Option<OpId> {
        match self {
            EventKind::Start(op) | EventKind::Run(op) => Some(op),
            EventKind::ProducerCommit(_) | EventKind::ConsumerRelease(..) => None,
        }
    }
}

impl Events {
    /// Everything that happens in an iteration, with one copy more of some storage.
    pub(crate) fn new(scheduled: &ScheduledGraph, spare: &HashSet<Reused>) -> Events {
        let storings = storings(scheduled, spare);
        let planned = plan(scheduled, &storings, spare);
        let maker = Maker { scheduled: *scheduled, storings: &storings, planned: &planned };
        let mut events: Vec<Event> = Vec::new();
        for op in scheduled.graph.op_ids() {
            events.push(maker.issue(op));
            events.extend(maker.producer_commit(op));
        }
        for id in (0..planned.len()).map(BufferId) {
            for (group, reads) in &planned[id.index()].releases {
                events.extend(maker.consumer_release(id, *group, reads));
            }
        }
        Events { events, planned, storings }
    }
}

struct Maker<'a> {
    scheduled: ScheduledGraph<'a>,
    storings: &'a [Storing],
    planned: &'a [Planned],
}

impl Maker<'_> {
    fn buffers(&self) -> impl Iterator<Item = (BufferId, &Planned)> {
        self.planned.iter().enumerate().map(|(k, p)| (BufferId(k), p))
    }

    /// Buffers whose slot `op` takes when it issues (handoffs are taken when it is committed).
    fn taken_at_issue(&self, op: OpId) -> impl Iterator<Item = (BufferId, &Planned)> {
        let first = move |p: &Planned| p.buffer.values.first().is_some_and(|v| v.op == op);
        self.buffers().filter(move |(_, p)| first(p) && !matches!(p.buffer.kind, BufferKind::Handoff(_)))
    }

    /// Full barriers of `op`'s result outside handoffs.
    fn fulls(&self, op: OpId) -> impl Iterator<Item = (Barrier, BufferKind)> {
        let op = self.scheduled.leader(op);
        let holds = move |p: &Planned| p.buffer.values.iter().any(|v| v.op == op && v.shared);
        self.buffers()
            .filter(move |(_, p)| holds(p) && !matches!(p.buffer.kind, BufferKind::Handoff(_)))
            .map(move |(buffer, p)| (Barrier::Full { buffer, value: op }, p.buffer.kind))
    }

    /// The order between groups needs no more than that `op` has issued.
    fn follows_issue(&self, op: OpId, kind: BufferKind) -> bool {
        let BufferKind::Order(to) = kind else { return false };
        let latency = self.scheduled.operation(op).latency;
        let short = |d: &twill_graph::Dependence| d.from == op && d.to == to && d.delay < latency && !d.blocking;
        self.scheduled.graph.dependences().iter().any(short)
    }

    fn issue(&self, op: OpId) -> Event {
        let scheduled = &self.scheduled;
        let asynchronous = scheduled.is_asynchronous(op);
        let mut steps = Vec::new();
        for d in scheduled.graph.dependences().iter().filter(|d| d.to == op) {
            let at = -i64::from(d.distance);
            let ring = scheduled.operation(d.from).streaming && d.carries_value;
            if scheduled.crosses(d) || ring {
                let from = if ring { scheduled.leader(d.from) } else { d.from };
                let channel = self.buffers().find(|(_, p)| {
                    let matching = match p.buffer.kind {
                        BufferKind::Order(to) => {
                            let mut reads = p.releases.values().flatten();
                            !d.carries_value && to == op && reads.any(|r| r.lag == i64::from(d.distance))
                        }
                        _ => d.carries_value,
                    };
                    matching && p.buffer.values.iter().any(|v| v.op == from && v.shared)
                });
                if let Some((buffer, _)) = channel {
                    steps.push(RelativeStep::MbarrierWait { barrier: Barrier::Full { buffer, value: from }, at });
                }
            } else if d.blocking && d.from != op && scheduled.is_asynchronous(d.from) {
                steps.push(RelativeStep::WaitAsync { op: d.from, at, purpose: Purpose::Operand });
            }
        }
        let waits_for = |s: &&Storing| s.addressed || scheduled.code.is_none();
        let taken = self.storings.iter().filter(|s| s.renewed && s.members.first().is_some_and(|m| m.0 == op));
        for storing in taken.filter(waits_for) {
            // Not the operation itself, if it writes over what it reads.
            let depth = i64::from(storing.depth);
            let own = |r: &&LastRead| scheduled.group(r.op) == scheduled.group(op) && (r.op, r.lag) != (op, depth);
            for read in storing.reads.iter().filter(|r| r.lasting).filter(own) {
                let at = read.lag - depth;
                steps.push(RelativeStep::WaitAsync { op: read.op, at, purpose: Purpose::Reuse });
            }
        }
        for (buffer, planned) in self.taken_at_issue(op).filter(|(_, p)| !p.releases.is_empty()) {
            debug_assert_eq!(planned.buffer.writer, scheduled.group(op));
            steps.push(RelativeStep::MbarrierWait { barrier: Barrier::Empty { buffer }, at: 0 });
        }
        let mut signals: Vec<(Barrier, i64)> = Vec::new();
        let mut arrivals = Vec::new();
        for (barrier, kind) in self.fulls(op) {
            if !asynchronous || self.follows_issue(op, kind) {
                arrivals.push(RelativeStep::MbarrierArrive { barrier, at: 0 });
            } else if scheduled.signals_result(op) {
                signals.push((barrier, 0));
            }
        }
        for (buffer, planned) in self.buffers() {
            if planned.releases.values().any(|reads| self.releasing_unit(planned, reads) == Some(op)) {
                signals.push((Barrier::Empty { buffer }, 0));
            }
        }
        steps.push(RelativeStep::Issue { op, signals });
        steps.extend(arrivals);
        let kind = if asynchronous { EventKind::Start(op) } else { EventKind::Run(op) };
        Event { kind, group: scheduled.group(op), time: scheduled.time(op), steps }
    }

    fn producer_commit(&self, op: OpId) -> Option<Event> {
        let scheduled = &self.scheduled;
        let mut steps = Vec::new();
        let handoff = self.buffers().find(|(_, p)| {
            matches!(p.buffer.kind, BufferKind::Handoff(_)) && p.buffer.values.iter().any(|v| v.op == op)
        });
        if let Some((buffer, _)) = handoff {
            steps.push(RelativeStep::MbarrierWait { barrier: Barrier::Empty { buffer }, at: 0 });
            steps.push(RelativeStep::Store { op, buffer });
            steps.push(RelativeStep::MbarrierArrive { barrier: Barrier::Full { buffer, value: op }, at: 0 });
        }
        if scheduled.is_asynchronous(op) {
            let by_software = |kind| !scheduled.signals_result(op) && !self.follows_issue(op, kind);
            let fulls = self.fulls(op).filter(|(_, kind)| by_software(*kind));
            steps.extend(fulls.map(|(barrier, _)| RelativeStep::MbarrierArrive { barrier, at: 0 }));
        }
        if steps.is_empty() {
            return None;
        }
        if scheduled.is_asynchronous(op) {
            steps.insert(0, RelativeStep::WaitAsync { op, at: 0, purpose: Purpose::ProducerCommit });
        }
        let time = commit_time(scheduled, op);
        Some(Event { kind: EventKind::ProducerCommit(op), group: scheduled.group(op), time, steps })
    }

    /// The operation whose unit gives the buffer back by itself, and with it the earlier readers of
    /// the group: units end their operations in order.
    fn releasing_unit(&self, planned: &Planned, reads: &[LastRead]) -> Option<OpId> {
        let scheduled = &self.scheduled;
        let last = reads.iter().max_by_key(|r| scheduled.time(r.op))?;
        let in_line = |r: &LastRead| {
            scheduled.signals_release(r.op)
                && r.lag == 0
                && scheduled.queue(r.op) == scheduled.queue(last.op)
                && (r.op == last.op || scheduled.time(r.op) < scheduled.time(last.op))
        };
        let order = matches!(planned.buffer.kind, BufferKind::Order(_));
        (!order && reads.iter().all(in_line)).then_some(last.op)
    }

    fn consumer_release(&self, buffer: BufferId, group: GroupId, reads: &[LastRead]) -> Option<Event> {
        if self.releasing_unit(&self.planned[buffer.index()], reads).is_some() {
            return None;
        }
        let time = reads.iter().map(|r| r.released(&self.scheduled)).max()?;
        // The readers may be of iterations after the last; the value must be there all the same,
        // or the barriers would run ahead.
        let values = &self.planned[buffer.index()].buffer.values;
        let shared = |r: &&LastRead| values.iter().any(|v| v.op == r.value && v.shared);
        let full =
            |r: &LastRead| RelativeStep::MbarrierWait { barrier: Barrier::Full { buffer, value: r.value }, at: 0 };
        let mut steps: Vec<RelativeStep> = reads.iter().filter(shared).map(full).collect();
        let lasting = reads.iter().filter(|r| r.lasting);
        steps.extend(lasting.map(|r| RelativeStep::WaitAsync {
            op: r.op,
            at: r.lag,
            purpose: Purpose::ConsumerRelease,
        }));
        steps.push(RelativeStep::MbarrierArrive { barrier: Barrier::Empty { buffer }, at: 0 });
        Some(Event { kind: EventKind::ConsumerRelease(buffer, group), group, time, steps })
    }
}
