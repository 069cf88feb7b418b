//! Small mistakes, to test a check.

use super::system::{CursorId, Event, Node, System};

/// The change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mutation {
    /// An event is missing.
    Drop,
    /// An event is there twice.
    Duplicate,
    /// An event has changed places with its next neighbour.
    Swap,
    /// A wait is for the other phase.
    Previous,
    /// Another cursor of the process, with as many slots.
    OtherCursor,
    /// Waits for more MMAs or stores than before, or for fewer.
    InFlight,
    /// A loop starts, or a condition holds, one trip earlier or later.
    Edge,
    /// A buffer has one slot more or less.
    BufferSlots,
    /// A barrier has one slot more or less.
    BarrierSlots,
    /// A cursor goes round one slot more or less.
    CursorSlots,
    /// A barrier takes one arrival more or less.
    Arrivals,
    /// A named barrier has one participant more or less.
    Participants,
}

/// A system with one mistake.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The change.
    pub mutation: Mutation,
    /// The name of the event that was changed, if one was: `Wait`, `Arrive` ...
    pub event: &'static str,
    /// For [`Mutation::Swap`], the name of the neighbour.
    pub neighbour: &'static str,
    /// Where, and what.
    pub name: String,
    /// The changed system.
    pub system: System,
}

/// Every system that differs from this one by a small mistake in its synchronisation. Accesses stay as they are,
/// but for what moves past them.
pub fn mutants(system: &System) -> Vec<Mutant> {
    let mut found = Vec::new();
    let mut of_numbers = |mutation, name: &str, change: &dyn Fn(&mut System) -> Option<&mut u32>| {
        for more in [true, false] {
            let mut system = system.clone();
            let Some(number) = change(&mut system) else { continue };
            let changed = if more { number.checked_add(1) } else { number.checked_sub(1) };
            let Some(changed) = changed.filter(|&n| n > 0) else { continue };
            *number = changed;
            let name = format!("{name}: {mutation:?} {changed}");
            found.push(Mutant { mutation, event: "", neighbour: "", name, system });
        }
    };
    for (i, buffer) in system.buffers.iter().enumerate() {
        of_numbers(Mutation::BufferSlots, &buffer.name, &|s| s.buffers.get_mut(i).map(|b| &mut b.slots));
    }
    for (i, barrier) in system.barriers.iter().enumerate() {
        of_numbers(Mutation::BarrierSlots, &barrier.name, &|s| s.barriers.get_mut(i).map(|b| &mut b.slots));
        of_numbers(Mutation::Arrivals, &barrier.name, &|s| s.barriers.get_mut(i).map(|b| &mut b.arrivals));
    }
    for (i, named) in system.named_barriers.iter().enumerate() {
        of_numbers(Mutation::Participants, &named.name, &|s| s.named_barriers.get_mut(i).map(|b| &mut b.participants));
    }
    for (p, process) in system.processes.iter().enumerate() {
        for (i, cursor) in process.cursors.iter().enumerate() {
            let name = format!("{}.{}", process.name, cursor.name);
            of_numbers(Mutation::CursorSlots, &name, &|s| {
                s.processes.get_mut(p).and_then(|p| p.cursors.get_mut(i)).map(|c| &mut c.slots)
            });
        }
    }
    for (p, process) in system.processes.iter().enumerate() {
        let cursors: Vec<u32> = process.cursors.iter().map(|c| c.slots).collect();
        let mut changes = Vec::new();
        edits(&process.body, &process.name, &cursors, &mut changes);
        found.extend(changes.into_iter().map(|Edit { mutation, event, neighbour, name, body }| {
            let mut system = system.clone();
            if let Some(process) = system.processes.get_mut(p) {
                process.body = body;
            }
            Mutant { mutation, event, neighbour, name, system }
        }));
    }
    found
}

struct Edit {
    mutation: Mutation,
    event: &'static str,
    neighbour: &'static str,
    name: String,
    body: Vec<Node>,
}

/// Every way to change one node of these.
fn edits(nodes: &[Node], place: &str, cursors: &[u32], found: &mut Vec<Edit>) {
    for (at, node) in nodes.iter().enumerate() {
        let place = format!("{place}.{at}");
        let mut add = |mutation, what: String, neighbour, with: Vec<Node>, replaced: usize| {
            let body = [&nodes[..at], &with, &nodes[at + replaced..]].concat();
            let name = format!("{place}: {mutation:?} {what}");
            found.push(Edit { mutation, event: kind(node), neighbour, name, body });
        };
        if let Some(next) = nodes.get(at + 1)
            && (synchronises(node) || synchronises(next))
            && node != next
        {
            let what = format!("{} / {}", describe(node), describe(next));
            add(Mutation::Swap, what, kind(next), vec![next.clone(), node.clone()], 2);
        }
        if synchronises(node) {
            add(Mutation::Drop, describe(node), "", vec![], 1);
            add(Mutation::Duplicate, describe(node), "", vec![node.clone(), node.clone()], 1);
        }
        match node {
            Node::Do(event) => {
                for (mutation, event) in variants(event, cursors) {
                    add(mutation, describe(&Node::Do(event.clone())), "", vec![Node::Do(event)], 1);
                }
            }
            Node::Loop { trips, first, body } => {
                for first in [first.checked_add(1), first.checked_sub(1)].into_iter().flatten() {
                    let changed = Node::Loop { trips: *trips, first, body: body.clone() };
                    add(Mutation::Edge, format!("loop from {first}"), "", vec![changed], 1);
                }
            }
            Node::When { trips, at_least, at_most, body } => {
                for at_least in [at_least.checked_add(1), at_least.checked_sub(1)].into_iter().flatten() {
                    let changed = Node::When { trips: *trips, at_least, at_most: *at_most, body: body.clone() };
                    add(Mutation::Edge, format!("when at least {at_least}"), "", vec![changed], 1);
                }
            }
            Node::Tiles(_) => {}
        }
        let (Node::Loop { body, .. } | Node::When { body, .. } | Node::Tiles(body)) = node else { continue };
        let mut inner = Vec::new();
        edits(body, &place, cursors, &mut inner);
        for edit in inner {
            let changed = match node {
                Node::Loop { trips, first, .. } => Node::Loop { trips: *trips, first: *first, body: edit.body },
                Node::When { trips, at_least, at_most, .. } => {
                    Node::When { trips: *trips, at_least: *at_least, at_most: *at_most, body: edit.body }
                }
                _ => Node::Tiles(edit.body),
            };
            found.push(Edit { body: [&nodes[..at], &[changed], &nodes[at + 1..]].concat(), ..edit });
        }
    }
}

/// The same event with another phase, cursor or number.
fn variants(event: &Event, cursors: &[u32]) -> Vec<(Mutation, Event)> {
    let mut found = Vec::new();
    let slots = |c: &CursorId| cursors.get(c.index());
    let all = (0u32..).map(CursorId).take(cursors.len());
    let others = |at: CursorId| all.clone().filter(move |c| *c != at).filter(move |c| slots(c) == slots(&at));
    let either = |n: u32| [n.checked_add(1), n.checked_sub(1)].into_iter().flatten();
    match *event {
        Event::Wait { barrier, at, previous } => {
            found.push((Mutation::Previous, Event::Wait { barrier, at, previous: !previous }));
            found.extend(others(at).map(|at| (Mutation::OtherCursor, Event::Wait { barrier, at, previous })));
        }
        Event::Arrive { barrier, at } => {
            found.extend(others(at).map(|at| (Mutation::OtherCursor, Event::Arrive { barrier, at })));
        }
        Event::Advance(at) => found.extend(others(at).map(|at| (Mutation::OtherCursor, Event::Advance(at)))),
        Event::MmaWait(n) => {
            found.extend(either(n).map(|n| (Mutation::InFlight, Event::MmaWait(n))));
        }
        Event::StoreWait(n) => found.extend(either(n).map(|n| (Mutation::InFlight, Event::StoreWait(n)))),
        _ => {}
    }
    found
}

/// It is there for other groups' or units' sake.
fn synchronises(node: &Node) -> bool {
    match node {
        Node::Do(event) => !matches!(
            event,
            Event::Load { .. } | Event::Mma { .. } | Event::Write(_) | Event::Read(_) | Event::Store(_)
        ),
        _ => false,
    }
}

fn kind(node: &Node) -> &'static str {
    match node {
        Node::Loop { .. } => "Loop",
        Node::When { .. } => "When",
        Node::Tiles(_) => "Tiles",
        Node::Do(event) => match event {
            Event::Wait { .. } => "Wait",
            Event::Arrive { .. } => "Arrive",
            Event::Load { .. } => "Load",
            Event::Mma { .. } => "Mma",
            Event::MmaWait(_) => "MmaWait",
            Event::Write(_) => "Write",
            Event::Read(_) => "Read",
            Event::Fence => "Fence",
            Event::Store(_) => "Store",
            Event::StoreWait(_) => "StoreWait",
            Event::NamedBarrierSync(_) => "NamedBarrierSync",
            Event::NamedBarrierArrive(_) => "NamedBarrierArrive",
            Event::Advance(_) => "Advance",
            Event::CopyCursor { .. } => "CopyCursor",
        },
    }
}

fn describe(node: &Node) -> String {
    match node {
        Node::Do(event) => format!("{event:?}"),
        other => kind(other).to_owned(),
    }
}
