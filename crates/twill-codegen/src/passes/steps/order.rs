//! The order of events: by slot, and within a slot by what must come first.
//!
//! Events at the same slot of the steady state may be instances of the same moment in time. There
//! the order must respect who waits for whom. Dependences cannot form a cycle of such pairs, for
//! those within one iteration have none ([`twill_graph::LoopGraph`]). With pairs of a reader and a
//! later writer of the same storage they can; then [`ranks`] asks for one more copy.

use crate::passes::steps::events::{Event, EventKind, Events, RelativeStep};
use crate::passes::steps::program::Barrier;
use crate::passes::steps::scheduled_graph::ScheduledGraph;
use crate::passes::steps::storage::Reused;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use twill_graph::OpId;

/// `after` of iteration `i + distance` comes after `before` of iteration `i`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Precedence {
    pub before: usize,
    pub after: usize,
    pub distance: i64,
    /// Only because the later one writes over what the earlier one reads.
    pub reuse: Option<Reused>,
}

/// A buffer's barriers: full ones of a value, or the empty ones.
type BarrierKey = (usize, Option<OpId>);

/// Everything that must come before something else.
pub(crate) fn precedences(scheduled: &ScheduledGraph, all: &Events) -> Vec<Precedence> {
    let events = &all.events;
    let issue: HashMap<OpId, usize> =
        events.iter().enumerate().filter_map(|(k, e)| e.kind.issues().map(|op| (op, k))).collect();
    // Who signals a barrier, and of which iteration, counted from its own.
    let mut signallers: HashMap<BarrierKey, Vec<(usize, i64)>> = HashMap::new();
    let key = |barrier: &Barrier| match *barrier {
        Barrier::Full { buffer, value } => (buffer.index(), Some(value)),
        Barrier::Empty { buffer } => (buffer.index(), None),
    };
    for (k, event) in events.iter().enumerate() {
        for step in &event.steps {
            match step {
                RelativeStep::MbarrierArrive { barrier, at } => {
                    signallers.entry(key(barrier)).or_default().push((k, *at));
                }
                RelativeStep::Issue { signals, .. } => {
                    for (barrier, at) in signals {
                        signallers.entry(key(barrier)).or_default().push((k, *at));
                    }
                }
                RelativeStep::Store { .. } | RelativeStep::MbarrierWait { .. } | RelativeStep::WaitAsync { .. } => {}
            }
        }
    }
    let mut pairs = Vec::new();
    for (after, event) in events.iter().enumerate() {
        for step in &event.steps {
            match step {
                RelativeStep::MbarrierWait { barrier, at } => {
                    let (depth, reuse) = match barrier {
                        Barrier::Full { .. } => (0, None),
                        Barrier::Empty { buffer } => {
                            let planned = &all.planned[buffer.index()];
                            (i64::from(planned.buffer.depth), Some(planned.reused(*buffer)))
                        }
                    };
                    for (before, signalled) in signallers.get(&key(barrier)).into_iter().flatten() {
                        let distance = depth + signalled - at;
                        pairs.push(Precedence { before: *before, after, distance, reuse });
                    }
                }
                RelativeStep::WaitAsync { op, at, .. } => {
                    let before = issue.get(op).copied();
                    pairs.extend(before.map(|before| Precedence { before, after, distance: -at, reuse: None }));
                }
                RelativeStep::Issue { .. } | RelativeStep::Store { .. } | RelativeStep::MbarrierArrive { .. } => {}
            }
        }
        let own = match event.kind {
            EventKind::ProducerCommit(op) => vec![(op, 0)],
            EventKind::ConsumerRelease(buffer, group) => {
                let reads = all.planned[buffer.index()].releases.get(&group);
                reads.into_iter().flatten().map(|r| (r.op, -r.lag)).collect()
            }
            EventKind::Start(_) | EventKind::Run(_) => Vec::new(),
        };
        for (op, distance) in own {
            pairs.extend(issue.get(&op).map(|&before| Precedence { before, after, distance, reuse: None }));
        }
    }
    // Who reads memory that an operation of its group writes over. (Registers have no addresses:
    // where this matters, the compiler takes another.)
    for storing in all.storings.iter().filter(|s| s.renewed && s.addressed) {
        for read in &storing.reads {
            if let Some((writer, _)) = storing.members.first()
                && scheduled.group(*writer) == scheduled.group(read.op)
                && (read.op, read.lag) != (*writer, i64::from(storing.depth))
                && let (Some(&before), Some(&after)) = (issue.get(&read.op), issue.get(writer))
            {
                pairs.push(Precedence {
                    before,
                    after,
                    distance: i64::from(storing.depth) - read.lag,
                    reuse: Some(Reused::Storing(*writer)),
                });
            }
        }
    }
    // Who waits for the slots of all goes first.
    for (op, &after) in &issue {
        let leader = scheduled.leader(*op);
        if leader != *op
            && let Some(&before) = issue.get(&leader)
        {
            pairs.push(Precedence { before, after, distance: 0, reuse: None });
        }
    }
    for d in scheduled.graph.dependences() {
        if let (Some(&before), Some(&after)) = (issue.get(&d.from), issue.get(&d.to)) {
            pairs.push(Precedence { before, after, distance: i64::from(d.distance), reuse: None });
        }
    }
    pairs
}

/// A number for every event; events at the same time happen in its order.
///
/// # Errors
/// What must be kept in one more copy, because operations read and write it in the same cycle in a
/// ring. That takes readers that hold what they read for no time.
pub(crate) fn ranks(interval: i64, events: &[Event], precedences: &[Precedence]) -> Result<Vec<usize>, Reused> {
    let mut successors: Vec<Vec<usize>> = vec![Vec::new(); events.len()];
    let mut missing = vec![0_usize; events.len()];
    let tied =
        |p: &&Precedence| p.before != p.after && events[p.before].time == events[p.after].time + p.distance * interval;
    for p in precedences.iter().filter(tied) {
        successors[p.before].push(p.after);
        missing[p.after] += 1;
    }
    let mut ready: BinaryHeap<Reverse<(EventKind, usize)>> =
        (0..events.len()).filter(|&k| missing[k] == 0).map(|k| Reverse((events[k].kind, k))).collect();
    let mut ranks: Vec<usize> = (0..events.len()).map(|k| events.len() + k).collect();
    let mut next = 0;
    while let Some(Reverse((_, k))) = ready.pop() {
        ranks[k] = next;
        next += 1;
        for &after in &successors[k] {
            missing[after] -= 1;
            if missing[after] == 0 {
                ready.push(Reverse((events[after].kind, after)));
            }
        }
    }
    let held_back = |k: usize| missing[k] > 0;
    let reuse = precedences.iter().filter(tied).filter(|p| held_back(p.before) && held_back(p.after));
    reuse.filter_map(|p| p.reuse).min().map_or(Ok(ranks), Err)
}
