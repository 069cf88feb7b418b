//! What the protocol checker sees of a kernel's warp programs.

use crate::ir::{Addend, Arrival, Buffer, Operand, Slot, WarpProgram};
use crate::ir::{Expression, ExpressionKind};
use crate::ir::{Node, Op};
use twill_check::protocol as checked;
use twill_check::protocol::{Access, Event, Iteration, LoopId, NamedBarrierId, Tag};

impl WarpProgram {
    /// The groups as processes that share storage and barriers; those of both CTAs of a cluster.
    pub fn system(&self) -> checked::System {
        let one = self.system_of_one();
        match &self.cluster {
            Some(cluster) => cluster.of_both(&one),
            None => one,
        }
    }

    fn system_of_one(&self) -> checked::System {
        let arrivals = |a: &Arrival| match a {
            Arrival::Unit | Arrival::Threads { .. } | Arrival::EachThread { .. } => 1,
        };
        checked::System {
            buffers: self.buffers.iter().map(|b| checked::Buffer { name: b.name.clone(), slots: b.slots }).collect(),
            barriers: self
                .barriers
                .iter()
                .map(|b| checked::BarrierArray {
                    name: b.name.clone(),
                    slots: b.slots,
                    arrivals: b.arrivals.iter().map(arrivals).sum(),
                })
                .collect(),
            named_barriers: self
                .named_barriers
                .iter()
                .map(|(name, participants)| checked::NamedBarrier { name: name.clone(), participants: *participants })
                .collect(),
            loops: self.loops.iter().map(|l| l.name.clone()).collect(),
            processes: self
                .groups
                .iter()
                .map(|g| checked::Process {
                    name: g.name.clone(),
                    cursors: g
                        .cursors
                        .iter()
                        .map(|c| checked::Cursor { name: c.name.clone(), slots: c.slots })
                        .collect(),
                    body: {
                        let nodes = |list: &[Node]| nodes(&self.buffers, list);
                        let tile = nodes(&g.body);
                        let mut body = nodes(&g.begin);
                        body.extend(if self.tiling.persistent { vec![checked::Node::Tiles(tile)] } else { tile });
                        body.extend(nodes(&g.end));
                        body
                    },
                })
                .collect(),
        }
    }
}

fn nodes(buffers: &[Buffer], list: &[Node]) -> Vec<checked::Node> {
    list.iter().flat_map(|n| node(buffers, n)).collect()
}

fn node(buffers: &[Buffer], node: &Node) -> Vec<checked::Node> {
    let nodes = |list: &[Node]| nodes(buffers, list);
    let id = |index: usize| LoopId(u32::try_from(index).unwrap_or(0));
    match node {
        Node::Do(action, _) => events(buffers, action).into_iter().map(checked::Node::Do).collect(),
        Node::Loop { index, first, body } => {
            vec![checked::Node::Loop { trips: id(*index), first: *first, body: nodes(body) }]
        }
        Node::When { index, at_least, then, exactly } => {
            let trips = id(*index);
            let mut all = vec![checked::Node::When { trips, at_least: *at_least, at_most: None, body: nodes(then) }];
            all.extend(exactly.iter().map(|(trip, body)| checked::Node::When {
                trips,
                at_least: *trip,
                at_most: Some(*trip),
                body: nodes(body),
            }));
            all
        }
    }
}

fn access(slot: &Slot) -> Access {
    Access { buffer: slot.buffer, at: slot.at, value: slot.value }
}

/// Reads of shared and tensor memory in an expression.
fn reads(expression: &Expression, events: &mut Vec<Event>) {
    expression.walk(&mut |e| {
        if let ExpressionKind::FromShared(slot) | ExpressionKind::FromTensor(slot) = &e.kind {
            events.push(Event::Read(access(slot)));
        }
    });
}

/// The iteration before.
fn before(tag: Tag) -> Tag {
    let iteration = match tag.iteration {
        Iteration::Absolute(n) => Iteration::Absolute(n - 1),
        Iteration::Current(n) => Iteration::Current(n - 1),
        Iteration::End(of, n) => Iteration::End(of, n - 1),
    };
    Tag { iteration, ..tag }
}

fn events(buffers: &[Buffer], action: &Op) -> Vec<Event> {
    let mut events = Vec::new();
    match action {
        Op::Let { value, .. } => reads(value, &mut events),
        Op::Copy { .. } | Op::WgmmaInit(_) | Op::GroupSync | Op::Timestamp(_) => {}
        Op::Wgmma { left, right, .. } => {
            let shared = [left, right].into_iter().filter_map(|o| match o {
                Operand::Shared(slot) => Some(access(slot)),
                Operand::Registers(_) => None,
            });
            events.push(Event::Mma { reads: shared.collect(), writes: Vec::new(), signals: Vec::new() });
        }
        Op::Tcgen05Mma(mma) => {
            let to = &mma.to;
            let mut reads = vec![access(&mma.left), access(&mma.right)];
            let own = |value: Tag| Access { value, ..access(to) };
            match &mma.addend {
                // Whether there is an iteration before is not known here; that it writes over what others read is.
                Addend::Zero | Addend::BeforeUnlessFirst(_) => {}
                Addend::Value(tag) => reads.push(own(*tag)),
                Addend::Before => reads.push(own(before(to.value))),
            }
            events.push(Event::Mma { reads, writes: vec![access(to)], signals: mma.signals.clone() });
        }
        Op::Tcgen05Commit(signals) => {
            events.push(Event::Mma { reads: Vec::new(), writes: Vec::new(), signals: signals.clone() });
        }
        Op::WgmmaWait { pending, .. } => events.push(Event::MmaWait(*pending)),
        Op::TmaLoad { coordinates, to, full, .. } => {
            coordinates.iter().for_each(|c| reads(c, &mut events));
            if let Some(at) = to.at {
                events.push(Event::Load { writes: access(to), barrier: *full, at });
            }
        }
        Op::CpAsync { pointers, mask, to, full } => {
            reads(pointers, &mut events);
            mask.iter().for_each(|m| reads(m, &mut events));
            if let Some(at) = to.at {
                events.push(Event::Load { writes: access(to), barrier: *full, at });
            }
        }
        Op::LocalStore { value, to } => {
            reads(value, &mut events);
            events.push(Event::Write(access(to)));
            // Stores to tensor memory are waited for where they are made.
            if buffers[to.buffer.index()].is_tensor() {
                events.push(Event::Fence);
            }
        }
        Op::FenceProxyAsync => events.push(Event::Fence),
        Op::TmaStore { coordinates, from, .. } => {
            coordinates.iter().for_each(|c| reads(c, &mut events));
            events.push(Event::Store(access(from)));
        }
        Op::TmaStoreWait(left) => events.push(Event::StoreWait(*left)),
        Op::GlobalStore { pointers, value, mask } | Op::AtomicAdd { pointers, value, mask } => {
            reads(pointers, &mut events);
            reads(value, &mut events);
            mask.iter().for_each(|m| reads(m, &mut events));
        }
        Op::MbarrierWait { barrier, at, previous } => {
            events.push(Event::Wait { barrier: *barrier, at: *at, previous: *previous });
        }
        Op::MbarrierArrive { barrier, at } => events.push(Event::Arrive { barrier: *barrier, at: *at }),
        Op::AdvanceCursor(cursor) => events.push(Event::Advance(*cursor)),
        Op::CopyCursor { to, from } => events.push(Event::CopyCursor { to: *to, from: *from }),
        Op::NamedBarrierSync(id) => events.push(Event::NamedBarrierSync(NamedBarrierId(*id))),
        Op::NamedBarrierArrive(id) => events.push(Event::NamedBarrierArrive(NamedBarrierId(*id))),
    }
    events
}
