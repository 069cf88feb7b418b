//! Events: what a group does once in every iteration, with its time and its steps.
//!
//! There are three kinds: an operation issues; its result is published; a group releases a buffer.
//! Steps name iterations relative to that of their event.

use crate::passes::steps::program::{Barrier, BufferId, BufferKind, Purpose};
use crate::passes::steps::reads::Context;
use crate::passes::steps::storage::{LastRead, Planned, Reused, Storing, plan, publish_time, storings};
use std::collections::HashSet;
use twill_graph::{GroupId, OpId};

/// What happens; the order of variants decides between what happens at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// An asynchronous operation issues: this takes no time, so nothing is in its way that need not be.
    Start(OpId),
    /// A synchronous operation issues.
    Run(OpId),
    /// Its result is published.
    Publish(OpId),
    /// The group releases the buffer.
    Release(BufferId, GroupId),
}

/// A step of an event; `at` is its iteration minus the event's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Issue { op: OpId, signals: Vec<(Barrier, i64)> },
    Store { op: OpId, buffer: BufferId },
    WaitChannel { barrier: Barrier, at: i64 },
    ArriveChannel { barrier: Barrier, at: i64 },
    WaitAsync { op: OpId, at: i64, purpose: Purpose },
}

/// An event of iteration 0.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub kind: Kind,
    pub group: GroupId,
    pub time: i64,
    pub actions: Vec<Action>,
}

/// All events, and the buffers that their steps name.
pub(crate) struct Events {
    pub events: Vec<Event>,
    pub planned: Vec<Planned>,
    pub storings: Vec<Storing>,
}

impl Kind {
    /// The operation that issues.
    pub(crate) fn issues(self) -> Option<OpId> {
        match self {
            Kind::Start(op) | Kind::Run(op) => Some(op),
            Kind::Publish(_) | Kind::Release(..) => None,
        }
    }
}

impl Events {
    /// Everything that happens in an iteration, with one copy more of some storage.
    pub(crate) fn new(context: &Context, spare: &HashSet<Reused>) -> Events {
        let storings = storings(context, spare);
        let planned = plan(context, &storings, spare);
        let maker = Maker { context: *context, storings: &storings, planned: &planned };
        let mut events: Vec<Event> = Vec::new();
        for op in context.graph.op_ids() {
            events.push(maker.issue(op));
            events.extend(maker.publish(op));
        }
        for id in (0..planned.len()).map(BufferId) {
            for (group, reads) in &planned[id.index()].releases {
                events.extend(maker.release(id, *group, reads));
            }
        }
        Events { events, planned, storings }
    }
}

struct Maker<'a> {
    context: Context<'a>,
    storings: &'a [Storing],
    planned: &'a [Planned],
}

impl Maker<'_> {
    fn buffers(&self) -> impl Iterator<Item = (BufferId, &Planned)> {
        self.planned.iter().enumerate().map(|(k, p)| (BufferId(k), p))
    }

    /// Buffers whose slot `op` takes when it issues (hand-offs are taken when it is published).
    fn taken_at_issue(&self, op: OpId) -> impl Iterator<Item = (BufferId, &Planned)> {
        let first = move |p: &Planned| p.buffer.values.first().is_some_and(|v| v.op == op);
        self.buffers().filter(move |(_, p)| first(p) && !matches!(p.buffer.kind, BufferKind::Handoff(_)))
    }

    /// Full barriers of `op`'s result outside hand-offs.
    fn fulls(&self, op: OpId) -> impl Iterator<Item = (Barrier, BufferKind)> {
        let holds = move |p: &Planned| p.buffer.values.iter().any(|v| v.op == op && v.shared);
        self.buffers()
            .filter(move |(_, p)| holds(p) && !matches!(p.buffer.kind, BufferKind::Handoff(_)))
            .map(move |(buffer, p)| (Barrier::Full { buffer, value: op }, p.buffer.kind))
    }

    /// The order between groups needs no more than that `op` has issued.
    fn follows_issue(&self, op: OpId, kind: BufferKind) -> bool {
        let BufferKind::Order(to) = kind else { return false };
        let latency = self.context.operation(op).latency;
        let short = |d: &twill_graph::Dependence| d.from == op && d.to == to && d.delay < latency && !d.blocking;
        self.context.graph.dependences().iter().any(short)
    }

    fn issue(&self, op: OpId) -> Event {
        let context = &self.context;
        let asynchronous = context.is_asynchronous(op);
        let mut actions = Vec::new();
        for d in context.graph.dependences().iter().filter(|d| d.to == op) {
            let at = -i64::from(d.distance);
            let ring = context.operation(d.from).streaming && d.carries_value;
            if context.crosses(d) || ring {
                let channel = self.buffers().find(|(_, p)| {
                    let matching = match p.buffer.kind {
                        BufferKind::Order(to) => {
                            let mut reads = p.releases.values().flatten();
                            !d.carries_value && to == op && reads.any(|r| r.lag == i64::from(d.distance))
                        }
                        _ => d.carries_value,
                    };
                    matching && p.buffer.values.iter().any(|v| v.op == d.from && v.shared)
                });
                if let Some((buffer, _)) = channel {
                    actions.push(Action::WaitChannel { barrier: Barrier::Full { buffer, value: d.from }, at });
                }
            } else if d.blocking && d.from != op && context.is_asynchronous(d.from) {
                actions.push(Action::WaitAsync { op: d.from, at, purpose: Purpose::Operand });
            }
        }
        let waits_for = |s: &&Storing| s.addressed || context.code.is_none();
        let taken = self.storings.iter().filter(|s| s.renewed && s.members.first().is_some_and(|m| m.0 == op));
        for storing in taken.filter(waits_for) {
            // Not the operation itself, if it writes over what it reads.
            let depth = i64::from(storing.depth);
            let own = |r: &&LastRead| context.group(r.op) == context.group(op) && (r.op, r.lag) != (op, depth);
            for read in storing.reads.iter().filter(|r| r.lasting).filter(own) {
                let at = read.lag - depth;
                actions.push(Action::WaitAsync { op: read.op, at, purpose: Purpose::Reuse });
            }
        }
        for (buffer, planned) in self.taken_at_issue(op).filter(|(_, p)| !p.releases.is_empty()) {
            debug_assert_eq!(planned.buffer.writer, context.group(op));
            actions.push(Action::WaitChannel { barrier: Barrier::Empty { buffer }, at: 0 });
        }
        let mut signals: Vec<(Barrier, i64)> = Vec::new();
        let mut arrivals = Vec::new();
        for (barrier, kind) in self.fulls(op) {
            if !asynchronous || self.follows_issue(op, kind) {
                arrivals.push(Action::ArriveChannel { barrier, at: 0 });
            } else if context.signals_result(op) {
                signals.push((barrier, 0));
            }
        }
        for (buffer, planned) in self.buffers() {
            if planned.releases.values().any(|reads| self.releasing_unit(planned, reads) == Some(op)) {
                signals.push((Barrier::Empty { buffer }, 0));
            }
        }
        actions.push(Action::Issue { op, signals });
        actions.extend(arrivals);
        let kind = if asynchronous { Kind::Start(op) } else { Kind::Run(op) };
        Event { kind, group: context.group(op), time: context.time(op), actions }
    }

    fn publish(&self, op: OpId) -> Option<Event> {
        let context = &self.context;
        let mut actions = Vec::new();
        let handoff = self.buffers().find(|(_, p)| {
            matches!(p.buffer.kind, BufferKind::Handoff(_)) && p.buffer.values.iter().any(|v| v.op == op)
        });
        if let Some((buffer, _)) = handoff {
            actions.push(Action::WaitChannel { barrier: Barrier::Empty { buffer }, at: 0 });
            actions.push(Action::Store { op, buffer });
            actions.push(Action::ArriveChannel { barrier: Barrier::Full { buffer, value: op }, at: 0 });
        }
        if context.is_asynchronous(op) {
            let by_software = |kind| !context.signals_result(op) && !self.follows_issue(op, kind);
            let fulls = self.fulls(op).filter(|(_, kind)| by_software(*kind));
            actions.extend(fulls.map(|(barrier, _)| Action::ArriveChannel { barrier, at: 0 }));
        }
        if actions.is_empty() {
            return None;
        }
        if context.is_asynchronous(op) {
            actions.insert(0, Action::WaitAsync { op, at: 0, purpose: Purpose::Publish });
        }
        let time = publish_time(context, op);
        Some(Event { kind: Kind::Publish(op), group: context.group(op), time, actions })
    }

    /// The operation whose unit gives the buffer back by itself, and with it the earlier readers of
    /// the group: units end their operations in order.
    fn releasing_unit(&self, planned: &Planned, reads: &[LastRead]) -> Option<OpId> {
        let context = &self.context;
        let last = reads.iter().max_by_key(|r| context.time(r.op))?;
        let in_line = |r: &LastRead| {
            context.signals_release(r.op)
                && r.lag == 0
                && context.queue(r.op) == context.queue(last.op)
                && (r.op == last.op || context.time(r.op) < context.time(last.op))
        };
        let order = matches!(planned.buffer.kind, BufferKind::Order(_));
        (!order && reads.iter().all(in_line)).then_some(last.op)
    }

    fn release(&self, buffer: BufferId, group: GroupId, reads: &[LastRead]) -> Option<Event> {
        if self.releasing_unit(&self.planned[buffer.index()], reads).is_some() {
            return None;
        }
        let time = reads.iter().map(|r| r.released(&self.context)).max()?;
        // The readers may be of iterations after the last; the value must be there all the same,
        // or the barriers would run ahead.
        let values = &self.planned[buffer.index()].buffer.values;
        let shared = |r: &&LastRead| values.iter().any(|v| v.op == r.value && v.shared);
        let full = |r: &LastRead| Action::WaitChannel { barrier: Barrier::Full { buffer, value: r.value }, at: 0 };
        let mut actions: Vec<Action> = reads.iter().filter(shared).map(full).collect();
        let lasting = reads.iter().filter(|r| r.lasting);
        actions.extend(lasting.map(|r| Action::WaitAsync { op: r.op, at: r.lag, purpose: Purpose::Release }));
        actions.push(Action::ArriveChannel { barrier: Barrier::Empty { buffer }, at: 0 });
        Some(Event { kind: Kind::Release(buffer, group), group, time, actions })
    }
}
