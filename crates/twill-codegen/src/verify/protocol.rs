//! What the protocol checker sees of a warp program.
//!
//! The checker knows loops and branches on trip counts. In other loops and branches, it sees what threads read and write, in every
//! branch and once: that is more than any execution does. A branch around all that follows, in all groups on the same condition, is an
//! early return: a program takes it in all groups or in none. A loop around the pipelined ones that all groups walk alike is a run of
//! tiles. Where groups wait, arrive or start something that goes on by itself
//! elsewhere, nothing is proved yet.

use super::{copies, early_returns, enclosing_loops};
use crate::error::Error;
use crate::ir::{
    Addend, Arrival, Buffer, CursorId, Expression, ExpressionKind, FewTrips, Iteration, IterationNumber, MemoryValue,
    Node, Op, Operand, Slot, SlotValue, WarpProgram,
};
use std::collections::HashMap;
use twill_check::protocol as checked;
use twill_check::protocol::{Access, Event, LoopId, Tag};
use twill_graph::narrow;

impl WarpProgram {
    /// The groups as processes that share storage and barriers; those of both CTAs of a cluster.
    ///
    /// # Errors
    /// [`Error::NotProved`] where groups synchronise in loops or branches that the checker does not know.
    pub fn system(&self) -> Result<checked::System, Error> {
        let returns = early_returns::same_in_all(&self.groups);
        let enclosing = enclosing_loops::same_in_all(&self.groups) > 0;
        let one = Translation { buffers: &self.buffers, values: HashMap::new(), returns, enclosing }.system(self)?;
        Ok(match &self.cluster {
            Some(cluster) => cluster.of_both(&one),
            None => one,
        })
    }
}

/// From the program's things to the checker's.
struct Translation<'p> {
    buffers: &'p [Buffer],
    /// The checker's numbers of values, in the order in which they are met.
    values: HashMap<MemoryValue, u32>,
    /// Early returns that the group's code still begins with: the same in all groups.
    returns: usize,
    /// Loops around the pipelined ones are walked alike by all groups.
    enclosing: bool,
}

impl Translation<'_> {
    fn system(&mut self, program: &WarpProgram) -> Result<checked::System, Error> {
        let arrivals = |a: &Arrival| match a {
            Arrival::Unit | Arrival::Threads { .. } | Arrival::EachThread { .. } => 1,
        };
        let returns = std::mem::take(&mut self.returns);
        let mut processes = Vec::new();
        // One group that fills rings itself waits for nobody: `copies` looks at them.
        let fills_itself = program.is_in_order() && program.groups.iter().any(copies::fills);
        for group in program.groups.iter().filter(|_| !fills_itself) {
            let mut body = self.nodes(&group.begin)?;
            self.returns = returns;
            let tile = self.nodes(&group.body)?;
            body.extend(if program.tile_scheduler.persistent { vec![checked::Node::Tiles(tile)] } else { tile });
            body.extend(self.nodes(&group.end)?);
            let cursors =
                group.cursors.iter().map(|c| checked::Cursor { name: c.name.clone(), slots: c.slots }).collect();
            processes.push(checked::Process { name: group.name.clone(), cursors, body });
        }
        let buffers = program.buffers.iter().map(|b| checked::Buffer { name: b.name.clone(), slots: b.slots });
        let barriers = program.barriers.iter().map(|b| checked::BarrierArray {
            name: b.name.clone(),
            slots: b.slots,
            arrivals: b.arrivals.iter().map(arrivals).sum(),
        });
        let named = program
            .named_barriers
            .iter()
            .map(|(name, participants)| checked::NamedBarrier { name: name.clone(), participants: *participants });
        Ok(checked::System {
            buffers: buffers.collect(),
            barriers: barriers.collect(),
            named_barriers: named.collect(),
            loops: program.loops.iter().map(|l| l.name.clone()).collect(),
            processes,
        })
    }

    fn nodes(&mut self, list: &[Node]) -> Result<Vec<checked::Node>, Error> {
        let mut all = Vec::new();
        let Some((last, before)) = list.split_last() else { return Ok(all) };
        let returns = std::mem::take(&mut self.returns);
        for node in before {
            self.node(node, &mut all)?;
        }
        match last {
            // Programs that return have no events; of the others this is all.
            Node::If { condition, then, otherwise } if returns > 0 => {
                let mut events = Vec::new();
                self.reads([condition], &mut events);
                all.extend(events.into_iter().map(checked::Node::Do));
                self.returns = returns - 1;
                all.extend(self.nodes(if then.is_empty() { otherwise } else { then })?);
            }
            _ => self.node(last, &mut all)?,
        }
        Ok(all)
    }

    fn node(&mut self, node: &Node, all: &mut Vec<checked::Node>) -> Result<(), Error> {
        match node {
            Node::Op(op, _) => all.extend(self.events(op).into_iter().map(checked::Node::Do)),
            Node::PipelinedLoop { index, first, body } => {
                let trips = LoopId(narrow(*index));
                all.push(checked::Node::Loop { trips, first: *first, body: self.nodes(body)? });
            }
            Node::TripSwitch { index, at_least, then, fewer } => {
                let trips = LoopId(narrow(*index));
                let then = self.nodes(then)?;
                all.push(checked::Node::When { trips, at_least: *at_least, at_most: None, body: then });
                let few: Vec<(u32, u32, &[Node])> = match fewer {
                    FewTrips::Each(each) => each.iter().map(|(n, body)| (*n, *n, body.as_slice())).collect(),
                    FewTrips::Any(body) => {
                        at_least.checked_sub(1).map(|most| (0, most, body.as_slice())).into_iter().collect()
                    }
                };
                for (at_least, at_most, body) in few {
                    let body = self.nodes(body)?;
                    all.push(checked::Node::When { trips, at_least, at_most: Some(at_most), body });
                }
            }
            // As often in all groups, and as often as it may be: as for tiles. One in another is a longer run.
            Node::For { body, .. } | Node::While { body, .. }
                if self.enclosing && enclosing_loops::has_pipelined(body) =>
            {
                let mut events = Vec::new();
                self.reads(node.expressions(), &mut events);
                all.extend(events.into_iter().map(checked::Node::Do));
                if let Node::While { before, .. } = node {
                    all.extend(self.nodes(before)?);
                }
                let body = self.nodes(body)?;
                if !body.iter().any(|node| matches!(node, checked::Node::Tiles(_))) {
                    all.push(checked::Node::Tiles(body));
                } else if body.iter().all(|node| is_access(node) || matches!(node, checked::Node::Tiles(_))) {
                    all.extend(body);
                } else {
                    return Err(not_proved("a loop around loops around the pipelined ones"));
                }
            }
            Node::For { .. } | Node::While { .. } | Node::If { .. } => {
                let mut events = Vec::new();
                self.reads(node.expressions(), &mut events);
                all.extend(events.into_iter().map(checked::Node::Do));
                for block in node.blocks() {
                    let inner = self.nodes(block)?;
                    if !inner.iter().all(is_access) {
                        return Err(not_proved("a loop or a branch that the trip counts do not decide"));
                    }
                    all.extend(inner);
                }
            }
            Node::Return => return Err(not_proved("an early return")),
        }
        Ok(())
    }

    fn value(&mut self, value: SlotValue) -> Tag {
        let next = narrow(self.values.len());
        let number = *self.values.entry(value.id).or_insert(next);
        Tag { value: number, iteration: iteration(value.at) }
    }

    fn access(&mut self, slot: &Slot) -> Access {
        Access { buffer: checked::BufferId(slot.buffer.0), at: slot.at.map(cursor), value: self.value(slot.value) }
    }

    /// Reads of shared and tensor memory in expressions.
    fn reads<'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expression>, events: &mut Vec<Event>) {
        for expression in expressions {
            expression.walk(&mut |e| {
                if let ExpressionKind::FromShared(slot) | ExpressionKind::FromTensor(slot) = &e.kind {
                    events.push(Event::Read(self.access(slot)));
                }
            });
        }
    }

    fn events(&mut self, op: &Op) -> Vec<Event> {
        let mut events = Vec::new();
        match op {
            Op::Let { value, .. } => self.reads([value], &mut events),
            Op::Copy { .. } | Op::WgmmaInit(_) | Op::GroupSync | Op::Timestamp(_) => {}
            Op::Wgmma { left, right, .. } => {
                let mut reads = Vec::new();
                for operand in [left, right] {
                    if let Operand::Shared(slot) = operand {
                        reads.push(self.access(slot));
                    }
                }
                events.push(Event::Mma { reads, writes: Vec::new(), signals: Vec::new() });
            }
            Op::Tcgen05Mma(mma) => {
                let to = self.access(&mma.to);
                let mut reads = vec![self.access(&mma.left), self.access(&mma.right)];
                match &mma.addend {
                    // Whether there is an iteration before is not known here; that it writes over what others read is.
                    Addend::Zero | Addend::BeforeUnlessFirst(_) => {}
                    Addend::Value(value) => reads.push(Access { value: self.value(*value), ..to }),
                    Addend::Before => reads.push(Access { value: before(to.value), ..to }),
                }
                events.push(Event::Mma { reads, writes: vec![to], signals: signals(&mma.signals) });
            }
            Op::Tcgen05Commit(all) => {
                events.push(Event::Mma { reads: Vec::new(), writes: Vec::new(), signals: signals(all) });
            }
            Op::WgmmaWait { pending, .. } => events.push(Event::MmaWait(*pending)),
            Op::TmaLoad { coordinates, to, full, .. } => {
                self.reads(coordinates, &mut events);
                events.extend(self.load(to, *full, true));
            }
            Op::CpAsync { pointers, mask, whole, to, full, .. } => {
                let whole = whole.iter().flat_map(|whole| whole.expressions());
                self.reads(std::iter::once(pointers).chain(mask).chain(whole), &mut events);
                // A group of copies concerns the group that makes them alone.
                events.extend(full.and_then(|full| self.load(to, full, false)));
            }
            Op::LocalStore { value, to } => {
                self.reads([value], &mut events);
                events.push(Event::Write(self.access(to)));
                // Stores to tensor memory are waited for where they are made.
                if self.buffers[to.buffer.index()].is_tensor() {
                    events.push(Event::Fence);
                }
            }
            Op::CpAsyncCommit | Op::CpAsyncWait(_) => {}
            Op::FenceProxyAsync => events.push(Event::Fence),
            Op::TmaStore { coordinates, from, .. } => {
                self.reads(coordinates, &mut events);
                events.push(Event::Store(self.access(from)));
            }
            Op::TmaStoreWait(left) => events.push(Event::StoreWait(*left)),
            Op::GlobalStore { pointers, value, mask } | Op::AtomicAdd { pointers, value, mask } => {
                self.reads([pointers, value].into_iter().chain(mask), &mut events);
            }
            Op::MbarrierWait { barrier, at, previous } => {
                let barrier = checked::BarrierId(barrier.0);
                events.push(Event::Wait { barrier, at: cursor(*at), previous: *previous });
            }
            Op::MbarrierArrive { barrier, at } => {
                events.push(Event::Arrive { barrier: checked::BarrierId(barrier.0), at: cursor(*at) });
            }
            Op::AdvanceCursor(at) => events.push(Event::Advance(cursor(*at))),
            Op::CopyCursor { to, from } => events.push(Event::CopyCursor { to: cursor(*to), from: cursor(*from) }),
            Op::Opaque { operands, .. } => self.reads(operands, &mut events),
            Op::NamedBarrierSync(id) => events.push(Event::NamedBarrierSync(checked::NamedBarrierId(id.0))),
            Op::NamedBarrierArrive(id) => events.push(Event::NamedBarrierArrive(checked::NamedBarrierId(id.0))),
        }
        events
    }

    fn load(&mut self, to: &Slot, full: crate::ir::BarrierId, by_unit: bool) -> Option<Event> {
        let at = cursor(to.at?);
        Some(Event::Load { writes: self.access(to), barrier: checked::BarrierId(full.0), at, by_unit })
    }
}

/// Whether it only reads and writes memory.
fn is_access(node: &checked::Node) -> bool {
    matches!(node, checked::Node::Do(Event::Read(_) | Event::Write(_) | Event::Fence))
}

fn not_proved(what: &str) -> Error {
    Error::NotProved { why: format!("warp groups synchronise in {what}") }
}

fn cursor(id: CursorId) -> checked::CursorId {
    checked::CursorId(id.0)
}

fn signals(all: &[(crate::ir::BarrierId, CursorId)]) -> Vec<(checked::BarrierId, checked::CursorId)> {
    all.iter().map(|(barrier, at)| (checked::BarrierId(barrier.0), cursor(*at))).collect()
}

fn iteration(at: IterationNumber) -> checked::Iteration {
    match at.iteration {
        Iteration::Absolute(n) => checked::Iteration::Absolute(n),
        Iteration::Current(n) => checked::Iteration::Current(n),
        Iteration::End(n) => checked::Iteration::End(LoopId(narrow(at.index)), n),
    }
}

/// The iteration before.
fn before(tag: Tag) -> Tag {
    let iteration = match tag.iteration {
        checked::Iteration::Absolute(n) => checked::Iteration::Absolute(n - 1),
        checked::Iteration::Current(n) => checked::Iteration::Current(n - 1),
        checked::Iteration::End(of, n) => checked::Iteration::End(of, n - 1),
    };
    Tag { iteration, ..tag }
}
