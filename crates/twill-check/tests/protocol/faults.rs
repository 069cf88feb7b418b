//! Each kind of fault, with the shortest way to it.

use crate::build::{
    Absolute, Builder, Current, End, access, advance, arrive, each, fence, load, mma, named_barrier_arrive,
    named_barrier_sync, only, read, store, wait, wait_previous, wait_stores, wgmma_wait_group, write,
};
use crate::systems;
use twill_check::protocol::{
    BufferId, Counterexample, Event, FaultKind, Limits, LoopId, NamedBarrierId, Node, Process, ProtocolError, System,
    verify,
};

fn violated(system: &System) -> Counterexample {
    match verify(system, &Limits::default()) {
        Err(ProtocolError::Violated(found)) => *found,
        other => panic!("{other:?}"),
    }
}

/// One process with one buffer, a cursor for its barrier, and a value of iteration 0.
fn alone(body: impl FnOnce(&mut Builder) -> Vec<Node>) -> System {
    let mut s = Builder::default();
    let body = body(&mut s);
    s.process("alone", &[("at", 1)], body);
    s.0
}

#[track_caller]
fn fails(system: &System, kind: FaultKind, steps: usize, fault: &str) {
    let found = violated(system);
    assert_eq!((found.kind, found.steps.len(), found.shortest), (kind, steps, true), "{found}");
    assert_eq!(found.fault, fault);
}

#[test]
fn a_wait_without_arrival() {
    let system = alone(|s| vec![wait(s.barrier("full", 1, 2), 0)]);
    fails(&system, FaultKind::Deadlock, 0, "deadlock: alone at `wait full phase 0` (0 of 2 arrivals in phase 0)");
}

#[test]
fn too_few_slots() {
    let found = violated(&systems::gemm(1));
    assert_eq!((found.kind, found.case.as_str()), (FaultKind::Deadlock, "trips of k: 2"), "{found}");
    assert_eq!(violated(&systems::handoff(1)).kind, FaultKind::Deadlock);
}

#[test]
fn a_read_before_arrival() {
    let system = alone(|s| {
        let (tile, full) = (s.buffer("tile", 1), s.barrier("full", 1, 1));
        let value = only(tile, 7, Absolute(0));
        vec![load(value, full, 0), read(value), wait(full, 0)]
    });
    fails(&system, FaultKind::InUse, 2, "alone reads tile while a load of alone still writes it");
}

#[test]
fn a_read_of_another_iteration() {
    let system = alone(|s| {
        let (tile, n) = (s.buffer("tile", 1), s.trips("n"));
        vec![each(n, 0, vec![write(only(tile, 7, Current(0))), read(only(tile, 7, Absolute(0)))])]
    });
    fails(&system, FaultKind::WrongValue, 4, "alone reads tile for v7 i0 and finds v7 i1");
}

#[test]
fn no_fence() {
    let body = |s: &mut Builder, fenced: bool| {
        let value = only(s.buffer("tile", 1), 7, Absolute(0));
        let mut body = vec![write(value), store(value), wait_stores(0)];
        if fenced {
            body.insert(1, fence());
        }
        body
    };
    fails(
        &alone(|s| body(s, false)),
        FaultKind::Unfenced,
        2,
        "an asynchronous unit reads tile for alone without a fence of alone, whose threads wrote it",
    );
    assert!(verify(&alone(|s| body(s, true)), &Limits::default()).is_ok());
}

/// A ring that one group fills and the threads of another read.
fn read_by_threads(fenced: bool, by_unit: bool) -> System {
    let mut s = Builder::default();
    let trips = s.trips("n");
    let ring = s.buffer("ring", 2);
    let (full, empty) = (s.barrier("full", 2, 1), s.barrier("empty", 2, 1));
    let mut fill = load(access(ring, 0, 0, Current(0)), full, 0);
    if let Node::Do(Event::Load { by_unit: by, .. }) = &mut fill {
        *by = by_unit;
    }
    let fills = vec![wait_previous(empty, 0), fill, advance(0)];
    s.process("loads", &[("at", 2)], vec![each(trips, 0, fills)]);
    let mut reads = vec![wait(full, 0), read(access(ring, 0, 0, Current(0))), arrive(empty, 0), advance(0)];
    if fenced {
        reads.insert(2, fence());
    }
    s.process("computes", &[("at", 2)], vec![each(trips, 0, reads)]);
    s.0
}

#[test]
fn what_threads_read_is_fenced_from_the_unit_that_writes_next() {
    let found = violated(&read_by_threads(false, true));
    let said = "an asynchronous unit writes ring[0] for loads without a fence of computes, whose threads read it";
    assert_eq!((found.kind, found.fault.as_str()), (FaultKind::Unfenced, said), "{found}");
    for (fenced, by_unit) in [(true, true), (false, false)] {
        assert!(verify(&read_by_threads(fenced, by_unit), &Limits::default()).is_ok());
    }
}

#[test]
fn an_end_without_a_wait() {
    let system = alone(|s| {
        let value = only(s.buffer("tile", 1), 7, Absolute(0));
        vec![write(value), fence(), mma(&[value])]
    });
    fails(&system, FaultKind::Unfinished, 3, "all warp groups end while an MMA of alone is under way");
}

#[test]
fn an_arrival_too_many() {
    let mut s = Builder::default();
    let full = s.barrier("full", 1, 1);
    s.process("hasty", &[("at", 1)], vec![arrive(full, 0), arrive(full, 0)]);
    s.process("slow", &[("at", 1)], vec![wait(full, 0)]);
    fails(
        &s.0,
        FaultKind::PhaseSlip,
        2,
        "slow waits for phase 0 of full, which has completed 2 phases: the parity is that of another phase",
    );
}

#[test]
fn two_writers() {
    let mut s = Builder::default();
    let tile = s.buffer("tile", 1);
    for name in ["one", "other"] {
        s.process(name, &[], vec![write(only(tile, 7, Absolute(0)))]);
    }
    fails(&s.0, FaultKind::Race, 1, "one writes tile and other writes it, in no order");
}

#[test]
fn unequal_arrivals() {
    let mut s = Builder::default();
    let pingpong = s.named("pingpong", 2);
    s.process("one", &[], vec![named_barrier_arrive(pingpong), named_barrier_arrive(pingpong)]);
    s.process("other", &[], vec![named_barrier_sync(pingpong), named_barrier_sync(pingpong)]);
    fails(&s.0, FaultKind::TwiceAtNamed, 2, "one arrives at pingpong twice before it opens");
}

#[test]
fn a_cursor_of_another_ring() {
    let mut s = Builder::default();
    let n = s.trips("n");
    let (tile, full, empty) = (s.buffer("tile", 3), s.barrier("full", 3, 1), s.barrier("empty", 3, 1));
    let produce = vec![wait_previous(empty, 0), load(access(tile, 0, 1, Current(0)), full, 0), advance(0)];
    s.process("producer", &[("at", 3)], vec![each(n, 0, produce)]);
    let consume =
        vec![wait(full, 0), mma(&[access(tile, 0, 1, Current(0))]), wgmma_wait_group(0), arrive(empty, 0), advance(0)];
    s.process("consumer", &[("at", 2)], vec![each(n, 0, consume)]);
    let found = violated(&s.0);
    assert_eq!((found.kind, found.case.as_str()), (FaultKind::Deadlock, "trips of n: 3"), "{found}");
    s.0.processes[1].cursors[0].slots = 4;
    let error = verify(&s.0, &Limits::default()).unwrap_err().to_string();
    assert_eq!(error, "consumer: cursor 0 goes round 4 slots, full has 3; as many at most");
}

#[test]
fn a_table() {
    let mut system = systems::gemm(2);
    system.barriers[0].arrivals = 1;
    let table = "\
upper waits for phase 0 of full[0], which has completed 2 phases: the parity is that of another phase
with trips of k: 1; shortest way, 5 steps:
step  producer             upper  lower  asynchronous
   1  wait empty[0] fresh
   2  load a[0]=v0 i0
   3  load b[0]=v1 i0
   4                                     producer: a[0] is there,
                                           arrive full[0]
   5                                     producer: b[0] is there,
                                           arrive full[0]
";
    assert_eq!(violated(&system).to_string(), table);
}

#[test]
fn too_little_work_is_allowed() {
    let limits = |states, cases| Limits { states, cases, ..Limits::default() };
    let few = verify(&systems::attention(2), &limits(0, 3)).unwrap_err();
    assert_eq!(few, ProtocolError::TooManyCases { limit: 3 });
    let short = verify(&systems::attention(2), &Limits { events: 50, ..Limits::default() }).unwrap_err();
    assert!(matches!(short, ProtocolError::TooLarge { limit: 50, .. }), "{short}");
    // Nine trips of eleven events and six accesses.
    let gemm = |events| verify(&systems::gemm(2), &Limits { events, ..Limits::default() });
    assert!(gemm(9 * 17).is_ok());
    assert_eq!(gemm(9 * 17 - 1).unwrap_err(), ProtocolError::TooLarge { events: 9 * 17, limit: 9 * 17 - 1 });
    // Without a search there still is a way, which is not said to be the shortest.
    let mut system = systems::gemm(2);
    system.barriers[0].arrivals = 1;
    let ProtocolError::Violated(found) = verify(&system, &limits(0, 1000)).unwrap_err() else { panic!() };
    assert_eq!((found.kind, found.shortest), (FaultKind::PhaseSlip, false));
}

#[test]
fn a_long_table_leaves_out_what_does_not_matter() {
    let mut system = systems::attention(2);
    let k_empty = system.barriers.iter_mut().find(|b| b.name == "k_empty").unwrap();
    k_empty.arrivals = 1;
    let found = violated(&system);
    let table = found.to_string();
    assert!(found.steps.len() > 24 && table.lines().count() < 24, "{table}");
    assert!(table.contains("others)\n"), "{table}");
    assert!(table.is_ascii());
}

/// Three arrivals a round where four make a phase, or four where three do: it takes rounds until a wait is for another phase.
#[test]
fn a_drift_of_phases() {
    for (arrivals, arriving) in [(3, 4), (4, 5), (4, 3)] {
        let mut s = Builder::default();
        let n = s.trips("n");
        let (tile, full, empty) = (s.buffer("tile", 3), s.barrier("full", 3, arrivals), s.barrier("empty", 3, 1));
        let mut produce = vec![wait_previous(empty, 0), write(access(tile, 0, 1, Current(0)))];
        produce.extend((0..arriving).map(|_| arrive(full, 0)));
        produce.push(advance(0));
        s.process("producer", &[("at", 3)], vec![each(n, 0, produce)]);
        let consume = vec![wait(full, 0), read(access(tile, 0, 1, Current(0))), arrive(empty, 0), advance(0)];
        s.process("consumer", &[("at", 3)], vec![each(n, 0, consume)]);
        let found = violated(&s.0);
        assert_eq!(found.kind == FaultKind::Deadlock, arriving < arrivals, "{found}");
    }
}

#[test]
fn what_makes_no_sense_is_said() {
    let error = |change: &dyn Fn(&mut System)| {
        let mut system = systems::attention(2);
        change(&mut system);
        verify(&system, &Limits::default()).unwrap_err().to_string()
    };
    assert_eq!(error(&|s| s.buffers[2].slots = u32::MAX), "buffer k: has no slots, or more than 1024");
    assert_eq!(error(&|s| s.barriers[4].arrivals = 0), "barrier k_full: takes no arrivals; at least one");
    assert_eq!(
        error(&|s| s.barriers[4].arrivals = u32::MAX),
        "there are more than 20000 combinations of trip counts; allow more, or split the kernel's loops"
    );
    assert_eq!(error(&|s| s.loops.clear()), "producer: loop 0 does not exist; there are 0");
    assert_eq!(error(&|s| s.processes[1].cursors.truncate(2)), "consumer0: cursor 2 does not exist");
    assert_eq!(
        error(&|s| s.processes[0].body = vec![Node::Tiles(s.processes[0].body.clone())]),
        "producer: tiles within tiles or within a loop; they go around all loops"
    );
    assert_eq!(
        error(&|s| s.processes[0].body.push(read(only(BufferId(0), 0, Current(0))))),
        "producer: value 0 is of the current iteration, outside of loops"
    );
    let beyond = |count: usize| System {
        processes: vec![Process { name: "p".into(), cursors: vec![], body: vec![] }; count],
        ..System::default()
    };
    assert_eq!(verify(&beyond(17), &Limits::default()).unwrap_err().to_string(), "processes: more than 16");
    assert!(verify(&beyond(16), &Limits::default()).is_ok());
    let missing = |count: u32| {
        alone(|s| {
            for _ in 0..count {
                s.named("pingpong", 1);
            }
            vec![named_barrier_sync(NamedBarrierId(1))]
        })
    };
    assert_eq!(
        verify(&missing(1), &Limits::default()).unwrap_err().to_string(),
        "alone: named barrier 1 does not exist"
    );
    assert!(verify(&missing(2), &Limits::default()).is_ok());
    assert_eq!(
        error(&|s| s.processes[0].body.push(read(only(BufferId(0), 0, End(LoopId(7), 1))))),
        "producer: loop 7 does not exist; there are 1"
    );
    // Waits for more than there ever is.
    let idle = alone(|_| vec![wgmma_wait_group(u32::MAX)]);
    assert_eq!(verify(&idle, &Limits::default()), Err(ProtocolError::TooManyCases { limit: 20_000 }));
}
