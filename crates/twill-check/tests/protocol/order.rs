//! The steps that put events in order, and those that do not.

use crate::build::{
    Absolute, Builder, arrive, fence, mma, named_barrier_arrive, named_barrier_sync, only, read, store, wait,
    wait_stores, wgmma_wait_group, write,
};
use twill_check::protocol::{Access, Event, FaultKind, Limits, Node, ProtocolError, System, verify};

fn kind(system: &System) -> FaultKind {
    match verify(system, &Limits::default()) {
        Err(ProtocolError::Violated(found)) => found.kind,
        other => panic!("{other:?}"),
    }
}

fn mma_into(place: Access) -> Node {
    Node::Do(Event::Mma { reads: vec![], writes: vec![place], signals: vec![] })
}

/// The end of one operation says nothing of others: a store of one group says nothing of an MMA of another.
#[test]
fn ends_of_one_unit_are_not_those_of_another() {
    let mut s = Builder::default();
    let (k, out) = (s.buffer("k", 1), s.buffer("out", 1));
    let (full, stored) = (s.barrier("full", 1, 1), s.barrier("stored", 1, 1));
    let result = only(out, 0, Absolute(0));
    // Two stores, one after the other: where everything runs as soon as it can, the MMA ends before the second.
    let mut stores = vec![write(result), fence()];
    stores.extend([store(result), wait_stores(0), store(result), wait_stores(0), arrive(stored, 0)]);
    s.process("stores", &[("at", 1)], stores);
    let (first, second) = (only(k, 1, Absolute(0)), only(k, 2, Absolute(0)));
    s.process("mmas", &[("at", 1)], vec![wait(full, 0), mma(&[first]), wgmma_wait_group(0)]);
    let writes = vec![write(first), fence(), arrive(full, 0), wait(stored, 0), write(second)];
    s.process("writes", &[("at", 1)], writes);
    assert!(matches!(kind(&s.0), FaultKind::InUse | FaultKind::WrongValue | FaultKind::Race), "{:?}", kind(&s.0));
}

/// The first and the last to arrive at a named barrier both know what the other did before.
#[test]
fn a_named_barrier_orders_both_ways() {
    let mut s = Builder::default();
    let (one, other) = (s.buffer("one", 1), s.buffer("other", 1));
    let pingpong = s.named("pingpong", 2);
    let (a, b) = (only(one, 0, Absolute(0)), only(other, 1, Absolute(0)));
    s.process("first", &[], vec![write(a), named_barrier_sync(pingpong), read(b)]);
    s.process("second", &[], vec![write(b), named_barrier_sync(pingpong), read(a)]);
    // Proved by the order of events.
    assert_eq!(verify(&s.0, &Limits::default()).unwrap().proof().searched, 0);
}

/// A process that only arrives does not learn what others did, though it stands at another barrier when they arrive.
#[test]
fn a_signal_orders_one_way() {
    let mut s = Builder::default();
    let tile = s.buffer("tile", 1);
    let (pingpong, next) = (s.named("pingpong", 2), s.named("next", 2));
    let value = only(tile, 0, Absolute(0));
    s.process("signals", &[], vec![named_barrier_arrive(pingpong), named_barrier_sync(next), read(value)]);
    s.process("writes", &[], vec![write(value), named_barrier_sync(pingpong)]);
    s.process("goes on", &[], vec![named_barrier_arrive(next)]);
    assert!(matches!(kind(&s.0), FaultKind::WrongValue | FaultKind::Race), "{:?}", kind(&s.0));
}

/// Results in memory are written until an MMA ends: its own group has to wait, and another one's MMA too.
#[test]
fn mmas_write_until_they_end() {
    let system = |bodies: Vec<Vec<Node>>, s: Builder| {
        let mut s = s;
        for (name, body) in ["one", "two"].iter().zip(bodies) {
            s.process(name, &[("at", 1)], body);
        }
        s.0
    };
    let begin = || {
        let mut s = Builder::default();
        let tile = s.buffer("tile", 1);
        (only(tile, 0, Absolute(0)), only(tile, 1, Absolute(0)), s)
    };
    let (value, _, s) = begin();
    let early = system(vec![vec![mma_into(value), read(value), wgmma_wait_group(0)]], s);
    assert_eq!(kind(&early), FaultKind::InUse);
    let (value, _, s) = begin();
    let waits = system(vec![vec![mma_into(value), wgmma_wait_group(0), read(value)]], s);
    assert!(verify(&waits, &Limits::default()).is_ok());
    // MMAs of one group end in their order.
    let (value, next, s) = begin();
    let in_order = vec![mma_into(value), mma_into(next), wgmma_wait_group(0), read(next)];
    assert!(verify(&system(vec![in_order], s), &Limits::default()).is_ok());
    let (value, next, mut s) = begin();
    let issued = s.barrier("issued", 1, 1);
    let one = vec![mma_into(value), arrive(issued, 0), wgmma_wait_group(0)];
    let two = vec![wait(issued, 0), mma_into(next), wgmma_wait_group(0)];
    assert_eq!(kind(&system(vec![one, two], s)), FaultKind::InUse);
}

/// A branch for at most N trips runs for N, and for no more.
#[test]
fn branches_for_few_trips() {
    let mut s = Builder::default();
    let (n, full) = (s.trips("n"), s.barrier("full", 1, 1));
    let when = |at_least, at_most, body| Node::When { trips: n, at_least, at_most, body };
    let few = when(0, Some(1), vec![arrive(full, 0)]);
    s.process("arrives", &[("at", 1)], vec![few, when(2, None, vec![arrive(full, 0)])]);
    s.process("waits", &[("at", 1)], vec![wait(full, 0)]);
    assert!(verify(&s.0, &Limits::default()).is_ok());
}
