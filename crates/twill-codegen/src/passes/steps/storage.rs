//! Buffers: which values share storage, how many copies there are, who must give them back.

use crate::passes::steps::program::{Buffer, BufferId, BufferKind, BufferedValue};
use crate::passes::steps::scheduled_graph::ScheduledGraph;
use std::collections::{BTreeMap, HashSet};
use twill_graph::saturate;
use twill_graph::{Bytes, Dependence, GroupId, OpId, Storage};

/// A read after which storage may be used again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastRead {
    /// What is read.
    pub value: OpId,
    /// The reader.
    pub op: OpId,
    /// Its iteration, counted from that of the value.
    pub lag: i64,
    /// When it is over, in the iteration of the value.
    pub over: i64,
    /// It still reads after its issue, while its group goes on.
    pub lasting: bool,
}

impl LastRead {
    /// The place of its release in the order of its group: a synchronous reader is over before the
    /// group does anything else.
    pub(crate) fn released(&self, scheduled: &ScheduledGraph) -> i64 {
        if self.lasting { self.over } else { self.over.min(scheduled.time(self.op) + self.lag * scheduled.interval()) }
    }
}

/// Values that live in the same storage one after another.
#[derive(Clone, Debug)]
pub(crate) struct Storing {
    /// The values with their lags, the first written one first.
    pub members: Vec<(OpId, i64)>,
    /// It is written anew in every iteration, by the first member; otherwise it holds one value
    /// that all iterations go on with.
    pub renewed: bool,
    /// It is memory, not registers.
    pub addressed: bool,
    /// Copies.
    pub depth: u32,
    /// Reads that must be over before it is written anew.
    pub reads: Vec<LastRead>,
}

/// Storage that is written again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Reused {
    /// That of a [`Storing`], named by its first member.
    Storing(OpId),
    /// A ring, handoff buffer or order.
    Buffer(BufferId),
}

impl Planned {
    /// The storage behind the buffer.
    pub(crate) fn reused(&self, id: BufferId) -> Reused {
        match (self.buffer.kind, self.buffer.values.first()) {
            (BufferKind::Shared(_) | BufferKind::Tensor(_), Some(first)) => Reused::Storing(first.op),
            _ => Reused::Buffer(id),
        }
    }
}

/// A buffer with what is needed to program its barriers.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub buffer: Buffer,
    /// Reads that hold each group's release back.
    pub releases: BTreeMap<GroupId, Vec<LastRead>>,
}

/// The memory of a value, so far as ties are concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Memory {
    None,
    Registers(GroupId),
    Shared,
    Tensor,
}

fn memory(scheduled: &ScheduledGraph, op: OpId) -> Memory {
    match scheduled.operation(op).storage {
        Storage::None => Memory::None,
        Storage::Registers(_) => Memory::Registers(scheduled.group(op)),
        Storage::Shared(_) => Memory::Shared,
        Storage::Tensor(_) => Memory::Tensor,
    }
}

/// The dependences through which the consumer goes on in the producer's storage: ties around
/// cycles, as of accumulators, and ties within one iteration. A tie to a later iteration outside of
/// cycles is taken for a copy.
fn continuations<'a>(scheduled: &ScheduledGraph<'a>) -> Vec<&'a Dependence> {
    let same = |d: &&Dependence| {
        d.tied && !scheduled.operation(d.from).streaming && memory(scheduled, d.from) == memory(scheduled, d.to)
    };
    let ties: Vec<&Dependence> = scheduled.graph.dependences().iter().filter(same).collect();
    let cyclic: Vec<bool> = scheduled.graph.op_ids().map(|op| returns(&ties, op)).collect();
    let kept = |d: &&Dependence| match (cyclic[d.from.index()], cyclic[d.to.index()]) {
        (true, true) => true,
        (false, false) => d.distance == 0,
        _ => false,
    };
    ties.into_iter().filter(kept).collect()
}

/// Whether ties lead from an operation back to it.
fn returns(ties: &[&Dependence], op: OpId) -> bool {
    let mut reached = vec![op];
    let mut next = 0;
    while let Some(&at) = reached.get(next) {
        next += 1;
        for d in ties.iter().filter(|d| d.from == at) {
            if d.to == op {
                return true;
            }
            if !reached.contains(&d.to) {
                reached.push(d.to);
            }
        }
    }
    false
}

/// Values outside handoff buffers and rings, by the storage that they share.
pub(crate) fn storings(scheduled: &ScheduledGraph, spare: &HashSet<Reused>) -> Vec<Storing> {
    let graph = scheduled.graph;
    let ties = continuations(scheduled);
    let stored = |op: &OpId| memory(scheduled, *op) != Memory::None && !scheduled.operation(*op).streaming;
    let mut seen = vec![false; graph.operations().len()];
    let mut storings = Vec::new();
    let fresh = |op: &OpId| !ties.iter().any(|d| d.to == *op);
    // First from the values that are written anew, then what is left: cycles of ties.
    let (first, rest): (Vec<OpId>, Vec<OpId>) = graph.op_ids().filter(stored).partition(fresh);
    for (start, renewed) in first.into_iter().map(|op| (op, true)).chain(rest.into_iter().map(|op| (op, false))) {
        if seen[start.index()] {
            continue;
        }
        seen[start.index()] = true;
        let mut members = vec![(start, 0)];
        let mut round = 0;
        let mut next = 0;
        while let Some(&(op, lag)) = members.get(next) {
            next += 1;
            for d in ties.iter().filter(|d| d.from == op) {
                if d.to == start {
                    round = round.max(lag + i64::from(d.distance));
                } else if !seen[d.to.index()] {
                    seen[d.to.index()] = true;
                    members.push((d.to, lag + i64::from(d.distance)));
                }
            }
        }
        let reads = if renewed { last_reads(scheduled, &ties, &members) } else { Vec::new() };
        let depth = if reads.is_empty() { saturate::<u32>(round.max(1)) } else { depth(scheduled, start, &reads) };
        let depth = depth + u32::from(spare.contains(&Reused::Storing(start)));
        let addressed = !matches!(memory(scheduled, start), Memory::Registers(_));
        storings.push(Storing { members, renewed, addressed, depth, reads });
    }
    storings
}

/// Copies of what `writer` writes: `⌈(end of the last read − issue) / I⌉`, at least 1.
fn depth(scheduled: &ScheduledGraph, writer: OpId, reads: &[LastRead]) -> u32 {
    let over = reads.iter().map(|r| r.over).max().unwrap_or(i64::MIN);
    scheduled.copies(over.saturating_sub(scheduled.time(writer)))
}

/// Reads of members' values that do not go on in the same storage, or whose result nobody reads.
fn last_reads(scheduled: &ScheduledGraph, ties: &[&Dependence], members: &[(OpId, i64)]) -> Vec<LastRead> {
    let mut reads = Vec::new();
    // What is written anew has no ties to later iterations, so all members are of one iteration.
    for &(op, _) in members {
        for d in scheduled.uses(op) {
            let goes_on = ties.contains(&d) && members.iter().any(|m| m.0 == d.to);
            if goes_on && scheduled.uses(d.to).next().is_some() {
                continue;
            }
            let over = scheduled.consumer_time(d) + d.hold.0;
            let lasting = scheduled.is_asynchronous(d.to);
            reads.push(LastRead { value: op, op: d.to, lag: i64::from(d.distance), over, lasting });
        }
    }
    reads
}

/// All buffers: rings, handoffs, values in shared and tensor memory, orders between groups.
pub(crate) fn plan(scheduled: &ScheduledGraph, storings: &[Storing], spare: &HashSet<Reused>) -> Vec<Planned> {
    let graph = scheduled.graph;
    let mut planned: Vec<Planned> = Vec::new();
    for op in graph.op_ids() {
        match scheduled.operation(op).storage {
            Storage::Shared(bytes) if scheduled.operation(op).streaming => planned.push(ring(scheduled, op, bytes)),
            Storage::Registers(words) => planned.extend(handoff(scheduled, op, Bytes(words.0.saturating_mul(4)))),
            Storage::None | Storage::Shared(_) | Storage::Tensor(_) => {}
        }
        let storing = storings.iter().find(|s| s.members.first().is_some_and(|m| m.0 == op));
        planned.extend(storing.and_then(|s| resident(scheduled, op, s)));
    }
    let first = |planned: &Planned| planned.buffer.values.first().map(|value| value.op);
    for k in 0..planned.len() {
        let leader = first(&planned[k]).map(|op| scheduled.leader(op));
        if matches!(planned[k].buffer.kind, BufferKind::Ring(_)) && leader != first(&planned[k]) {
            let is_ring = |p: &Planned| matches!(p.buffer.kind, BufferKind::Ring(_)) && first(p) == leader;
            planned[k].buffer.guarded_by = planned.iter().position(is_ring).map(BufferId);
        }
    }
    let orders = graph.dependences().iter().filter(|d| !d.carries_value && scheduled.crosses(d));
    planned.extend(orders.map(|d| order(scheduled, d)));
    for (k, planned) in planned.iter_mut().enumerate() {
        planned.buffer.depth += u32::from(spare.contains(&Reused::Buffer(BufferId(k))));
    }
    planned
}

fn by_group(scheduled: &ScheduledGraph, reads: impl Iterator<Item = LastRead>) -> BTreeMap<GroupId, Vec<LastRead>> {
    let mut groups: BTreeMap<GroupId, Vec<LastRead>> = BTreeMap::new();
    for read in reads {
        groups.entry(scheduled.group(read.op)).or_default().push(read);
    }
    groups
}

fn buffer(
    scheduled: &ScheduledGraph,
    op: OpId,
    kind: BufferKind,
    depth: u32,
    shared: bool,
    releases: BTreeMap<GroupId, Vec<LastRead>>,
) -> Planned {
    let values = vec![BufferedValue { op, lag: 0, shared }];
    let released_by = releases.keys().copied().collect();
    let writer = scheduled.group(op);
    Planned { buffer: Buffer { kind, depth, values, writer, released_by, guarded_by: None }, releases }
}

/// A read that holds the copy until the reader is over.
fn whole_read(scheduled: &ScheduledGraph, d: &Dependence) -> LastRead {
    let over = scheduled.consumer_time(d) + scheduled.operation(d.to).completion().0;
    let lasting = scheduled.is_asynchronous(d.to);
    LastRead { value: d.from, op: d.to, lag: i64::from(d.distance), over, lasting }
}

fn ring(scheduled: &ScheduledGraph, op: OpId, bytes: Bytes) -> Planned {
    let guarded = scheduled.guarded(scheduled.leader(op));
    let all = guarded.into_iter().flat_map(|op| scheduled.uses(op));
    let mut reads: Vec<LastRead> = all.map(|d| whole_read(scheduled, d)).collect();
    let depth = if reads.is_empty() { 1 } else { depth(scheduled, op, &reads) };
    // Another's barriers guard it.
    if scheduled.leader(op) != op {
        reads.clear();
    }
    let shared = !reads.is_empty();
    buffer(scheduled, op, BufferKind::Ring(bytes), depth, shared, by_group(scheduled, reads.into_iter()))
}

fn handoff(scheduled: &ScheduledGraph, op: OpId, bytes: Bytes) -> Option<Planned> {
    let reads: Vec<LastRead> =
        scheduled.uses(op).filter(|d| scheduled.crosses(d)).map(|d| whole_read(scheduled, d)).collect();
    if reads.is_empty() {
        return None;
    }
    let depth = depth(scheduled, op, &reads);
    Some(buffer(scheduled, op, BufferKind::Handoff(bytes), depth, true, by_group(scheduled, reads.into_iter())))
}

/// The place in the order of its group where a result is passed to other groups: after a
/// synchronous operation, for the group does nothing else before it is over; when an asynchronous
/// operation is done, but before its result is needed.
pub(crate) fn commit_time(scheduled: &ScheduledGraph, op: OpId) -> i64 {
    if !scheduled.is_asynchronous(op) {
        return scheduled.time(op);
    }
    let ready = scheduled.time(op) + scheduled.operation(op).latency.0;
    let streaming = scheduled.operation(op).streaming;
    let from_here = scheduled.graph.dependences().iter().filter(|d| d.from == op);
    let needed = from_here
        .filter(|d| streaming || scheduled.crosses(d))
        .map(|d| scheduled.consumer_time(d))
        .min()
        .unwrap_or(ready);
    ready.min(needed).max(scheduled.time(op))
}

fn resident(scheduled: &ScheduledGraph, op: OpId, storing: &Storing) -> Option<Planned> {
    let kind = match scheduled.operation(op).storage {
        Storage::Shared(bytes) => BufferKind::Shared(bytes),
        Storage::Tensor(columns) => BufferKind::Tensor(columns),
        Storage::None | Storage::Registers(_) => return None,
    };
    let writer = scheduled.group(op);
    let shared = |op: OpId| scheduled.uses(op).any(|d| scheduled.crosses(d));
    let values = storing.members.iter().map(|&(op, lag)| BufferedValue { op, lag, shared: shared(op) }).collect();
    let foreign = storing.reads.iter().copied().filter(|r| scheduled.group(r.op) != writer);
    let releases = by_group(scheduled, foreign);
    let released_by = releases.keys().copied().collect();
    let buffer = Buffer { kind, depth: storing.depth, values, writer, released_by, guarded_by: None };
    Some(Planned { buffer, releases })
}

fn order(scheduled: &ScheduledGraph, d: &Dependence) -> Planned {
    let over = scheduled.consumer_time(d).max(scheduled.time(d.to) + i64::from(d.distance) * scheduled.interval());
    let lag = i64::from(d.distance);
    let read = LastRead { value: d.from, op: d.to, lag, over, lasting: false };
    let depth = depth(scheduled, d.from, &[read]);
    let releases = by_group(scheduled, std::iter::once(read));
    buffer(scheduled, d.from, BufferKind::Order(d.to), depth, true, releases)
}
