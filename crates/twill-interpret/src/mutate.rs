//! Warp programs with one small mistake.

use std::collections::BTreeSet;
use twill_codegen::ir::{Arrival, Group, Operand, WarpProgram};
use twill_codegen::ir::{BarrierId, BufferId, CursorId};
use twill_codegen::ir::{Node, Op};

/// A program that differs from a right one in one place.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The mutation, such as `Drop Wait`.
    pub kind: String,
    /// Where.
    pub place: String,
    /// The program.
    pub program: WarpProgram,
}

/// A change at one operation.
#[derive(Clone, Copy)]
enum Edit {
    Drop,
    Previous,
    InFlight,
    Swap,
}

/// Where a program may have such a mistake. A large program has as many places as operations, so mistakes are made one by one.
#[derive(Clone, Copy)]
pub struct Site(At);

#[derive(Clone, Copy)]
enum At {
    Op { group: usize, part: usize, op: usize, edit: Edit },
    Cursor { group: usize, cursor: usize },
    MoreArrivals { barrier: usize },
    FewerArrivals { barrier: usize },
    Ring { buffer: usize },
}

/// All places of a program.
pub fn sites(program: &WarpProgram) -> Vec<Site> {
    let mut all = Vec::new();
    for (group, of) in program.groups.iter().enumerate() {
        for part in 0..3 {
            for op in 0..count(nodes_of(of, part)) {
                let edits = [Edit::Drop, Edit::Previous, Edit::InFlight, Edit::Swap];
                all.extend(edits.map(|edit| At::Op { group, part, op, edit }));
            }
        }
        let rings = (0..of.cursors.len()).filter(|cursor| of.cursors[*cursor].slots > 1);
        all.extend(rings.map(|cursor| At::Cursor { group, cursor }));
    }
    for (barrier, of) in program.barriers.iter().enumerate() {
        all.push(At::MoreArrivals { barrier });
        all.extend((of.arrivals.len() > 1).then_some(At::FewerArrivals { barrier }));
    }
    let rings = (0..program.buffers.len()).filter(|buffer| program.buffers[*buffer].slots > 1);
    all.extend(rings.map(|buffer| At::Ring { buffer }));
    all.into_iter().map(Site).collect()
}

impl Site {
    /// The program with the mistake; `None` where that changes nothing.
    pub fn mutant(self, program: &WarpProgram) -> Option<Mutant> {
        let mut mutant = program.clone();
        let (kind, place) = match self.0 {
            At::Op { group, part, op, edit } => {
                let group = &mut mutant.groups[group];
                let place = format!("op {op} of part {part} of {}", group.name);
                let nodes = match part {
                    0 => &mut group.begin,
                    1 => &mut group.body,
                    _ => &mut group.end,
                };
                (change(nodes, &mut op.clone(), edit)?, place)
            }
            At::Cursor { group, cursor } => {
                let group = &mut mutant.groups[group];
                let cursor = &mut group.cursors[cursor];
                cursor.slots -= 1;
                ("Cursor".into(), format!("{} of {}", cursor.name, group.name))
            }
            At::MoreArrivals { barrier } => {
                let barrier = &mut mutant.barriers[barrier];
                barrier.arrivals.push(barrier.arrivals.first().copied().unwrap_or(Arrival::Unit));
                ("Arrivals +1".into(), barrier.name.clone())
            }
            At::FewerArrivals { barrier } => {
                let barrier = &mut mutant.barriers[barrier];
                barrier.arrivals.pop();
                ("Arrivals -1".into(), barrier.name.clone())
            }
            At::Ring { buffer } => {
                let place = program.buffers[buffer].name.clone();
                mutant = shrunk(program, buffer);
                ("Ring".into(), place)
            }
        };
        Some(Mutant { kind, place, program: mutant })
    }
}

fn nodes_of(group: &Group, part: usize) -> &[Node] {
    match part {
        0 => &group.begin,
        1 => &group.body,
        _ => &group.end,
    }
}

fn count(nodes: &[Node]) -> usize {
    let of = |node: &Node| match node {
        Node::Op(..) => 1,
        _ => node.blocks().into_iter().map(|block| count(block)).sum(),
    };
    nodes.iter().map(of).sum()
}

/// Changes the `left`-th operation; what was done, if that is a change.
fn change(nodes: &mut Vec<Node>, left: &mut usize, edit: Edit) -> Option<String> {
    for k in 0..nodes.len() {
        match &mut nodes[k] {
            Node::Op(..) if *left > 0 => *left -= 1,
            Node::Op(..) => return at(nodes, k, edit),
            other => {
                for block in other.blocks_mut() {
                    let here = count(block);
                    if *left < here {
                        return change(block, left, edit);
                    }
                    *left -= here;
                }
            }
        }
    }
    None
}

fn at(nodes: &mut Vec<Node>, k: usize, edit: Edit) -> Option<String> {
    let Node::Op(op, _) = &mut nodes[k] else { return None };
    let name = name(op)?;
    match (edit, op) {
        (Edit::Drop, Op::TmaLoad { .. } | Op::CpAsync { .. } | Op::Wgmma { .. }) => None,
        (Edit::Drop, Op::Tcgen05Mma(_) | Op::TmaStore { .. } | Op::LocalStore { .. }) => None,
        (Edit::Drop, _) => {
            nodes.remove(k);
            Some(format!("Drop {name}"))
        }
        (Edit::Previous, Op::MbarrierWait { previous, .. }) => {
            *previous = !*previous;
            Some("Phase Wait".into())
        }
        (Edit::InFlight, Op::WgmmaWait { pending: more, .. } | Op::TmaStoreWait(more) | Op::CpAsyncWait(more)) => {
            *more += 1;
            Some(format!("Early {name}"))
        }
        (Edit::Swap, _) => {
            let Some(Node::Op(next, _)) = nodes.get(k + 1) else { return None };
            let next = self::name(next)?;
            nodes.swap(k, k + 1);
            Some(format!("Swap {name} {next}"))
        }
        _ => None,
    }
}

/// The name of an operation with effects that others see.
fn name(op: &Op) -> Option<&'static str> {
    Some(match op {
        Op::Wgmma { .. } | Op::Tcgen05Mma(_) => "Mma",
        Op::Tcgen05Commit(_) => "Tcgen05Commit",
        Op::WgmmaWait { .. } => "WgmmaWait",
        Op::TmaLoad { .. } | Op::CpAsync { .. } => "Load",
        Op::CpAsyncCommit => "CpAsyncCommit",
        Op::CpAsyncWait(_) => "CpAsyncWait",
        Op::LocalStore { .. } => "LocalStore",
        Op::FenceProxyAsync => "Fence",
        Op::TmaStore { .. } => "Store",
        Op::TmaStoreWait(_) => "TmaStoreWait",
        Op::MbarrierWait { .. } => "Wait",
        Op::MbarrierArrive { .. } => "Arrive",
        Op::AdvanceCursor(_) => "Advance",
        Op::CopyCursor { .. } => "CopyCursor",
        Op::NamedBarrierSync(_) => "NamedBarrierSync",
        Op::NamedBarrierArrive(_) => "NamedBarrierArrive",
        _ => return None,
    })
}

/// With one slot less of a buffer, in all that goes round it.
fn shrunk(program: &WarpProgram, buffer: usize) -> WarpProgram {
    let mut mutant = program.clone();
    let mut barriers: BTreeSet<BarrierId> = BTreeSet::new();
    for group in &mut mutant.groups {
        let mut ops = Vec::new();
        [&group.begin, &group.body, &group.end].into_iter().for_each(|nodes| collect(nodes, &mut ops));
        let mut cursors: BTreeSet<CursorId> = BTreeSet::new();
        loop {
            let before = (cursors.len(), barriers.len());
            for op in &ops {
                uses(op, BufferId::at(buffer), &mut cursors, &mut barriers);
            }
            if before == (cursors.len(), barriers.len()) {
                break;
            }
        }
        for cursor in cursors {
            let slots = &mut group.cursors[cursor.index()].slots;
            *slots = slots.saturating_sub(1).max(1);
        }
    }
    // Barriers that another group found later are those of this buffer, too.
    mutant.buffers[buffer].slots -= 1;
    for barrier in barriers {
        let slots = &mut mutant.barriers[barrier.index()].slots;
        *slots = slots.saturating_sub(1).max(1);
    }
    mutant
}

fn collect(nodes: &[Node], ops: &mut Vec<Op>) {
    for node in nodes {
        match node {
            Node::Op(op, _) => ops.push(op.clone()),
            other => other.blocks().into_iter().for_each(|block| collect(block, ops)),
        }
    }
}

/// The cursors that go round a buffer, and the barriers of its slots.
fn uses(op: &Op, buffer: BufferId, cursors: &mut BTreeSet<CursorId>, barriers: &mut BTreeSet<BarrierId>) {
    let mut slots = op.reads();
    match op {
        Op::TmaLoad { to, full, .. } | Op::CpAsync { to, full: Some(full), .. } => {
            if to.buffer == buffer {
                barriers.insert(*full);
            }
            slots.push(to.clone());
        }
        Op::LocalStore { to, .. } => slots.push(to.clone()),
        Op::Wgmma { left: Operand::Shared(slot), .. } => slots.push(slot.clone()),
        Op::Tcgen05Mma(mma) => {
            slots.extend([&mma.left, &mma.right, &mma.to].map(Clone::clone));
            barriers.extend(mma.signals.iter().filter(|(_, at)| cursors.contains(at)).map(|(b, _)| *b));
        }
        Op::Tcgen05Commit(signals) => {
            barriers.extend(signals.iter().filter(|(_, at)| cursors.contains(at)).map(|(b, _)| *b));
        }
        Op::MbarrierWait { barrier, at, .. } | Op::MbarrierArrive { barrier, at } => {
            if cursors.contains(at) {
                barriers.insert(*barrier);
            }
            if barriers.contains(barrier) {
                cursors.insert(*at);
            }
        }
        Op::CopyCursor { to, from } if cursors.contains(to) || cursors.contains(from) => {
            cursors.extend([*to, *from]);
        }
        _ => {}
    }
    cursors.extend(slots.iter().filter(|s| s.buffer == buffer).filter_map(|s| s.at));
}
