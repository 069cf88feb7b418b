//! Correct systems: the shapes that generated code has.

use crate::build::{
    Absolute, Builder, Current, End, access, advance, arrive, at, copy_cursor, each, fence, if_any, load, mma,
    named_barrier_arrive, named_barrier_sync, only, read, store, wait, wait_previous, wait_stores, wgmma_wait_group,
    write,
};
use twill_check::protocol::{Access, Event, Node, System};

/// A producer, a ring of A and B tiles that share a barrier, two consumers that keep one MMA under way.
pub fn gemm(slots: u32) -> System {
    let mut s = Builder::default();
    let k = s.trips("k");
    let (a, b) = (s.buffer("a", slots), s.buffer("b", slots));
    let (full, empty) = (s.barrier("full", slots, 2), s.barrier("empty", slots, 2));
    let body = vec![
        wait_previous(empty, 0),
        load(access(a, 0, 0, Current(0)), full, 0),
        load(access(b, 0, 1, Current(0)), full, 0),
        advance(0),
    ];
    s.process("producer", &[("at", slots)], vec![each(k, 0, body)]);
    for name in ["upper", "lower"] {
        let product = |i| mma(&[access(a, 0, 0, i), access(b, 0, 1, i)]);
        let first = vec![wait(full, 0), product(Absolute(0)), advance(0)];
        let steady =
            vec![wait(full, 0), product(Current(0)), wgmma_wait_group(1), arrive(empty, 1), advance(1), advance(0)];
        let last = vec![wgmma_wait_group(0), arrive(empty, 1), advance(1)];
        s.process(name, &[("at", slots), ("free", slots)], vec![if_any(k, first), each(k, 1, steady), if_any(k, last)]);
    }
    s.0
}

/// Persistent attention: Q once a tile for each of two consumers, rings of K and V, QK of an iteration while PV of
/// the one before.
pub fn attention(slots: u32) -> System {
    let mut s = Builder::default();
    let n = s.trips("n");
    let q = [s.buffer("q0", 1), s.buffer("q1", 1)];
    let (k, v) = (s.buffer("k", slots), s.buffer("v", slots));
    let q_full = [s.barrier("q0_full", 1, 1), s.barrier("q1_full", 1, 1)];
    let q_empty = [s.barrier("q0_empty", 1, 1), s.barrier("q1_empty", 1, 1)];
    let (k_full, k_empty) = (s.barrier("k_full", slots, 1), s.barrier("k_empty", slots, 2));
    let (v_full, v_empty) = (s.barrier("v_full", slots, 1), s.barrier("v_empty", slots, 2));
    let mut tile = Vec::new();
    for g in 0..2 {
        tile.extend([wait_previous(q_empty[g], 0), load(only(q[g], g as u32, Absolute(0)), q_full[g], 0)]);
    }
    tile.push(advance(0));
    let body = vec![
        wait_previous(k_empty, 1),
        load(access(k, 1, 2, Current(0)), k_full, 1),
        wait_previous(v_empty, 1),
        load(access(v, 1, 3, Current(0)), v_full, 1),
        advance(1),
    ];
    tile.push(each(n, 0, body));
    s.process("producer", &[("tile", 1), ("kv", slots)], vec![Node::Tiles(tile)]);
    for g in 0..2 {
        let qk = |i| mma(&[only(q[g], g as u32, Absolute(0)), access(k, 1, 2, i)]);
        let pv = |i| mma(&[access(v, 2, 3, i)]);
        let first = vec![wait(k_full, 1), qk(Absolute(0)), wgmma_wait_group(0), arrive(k_empty, 1), advance(1)];
        let steady = vec![
            wait(k_full, 1),
            qk(Current(0)),
            wait(v_full, 2),
            pv(Current(-1)),
            wgmma_wait_group(1),
            arrive(k_empty, 1),
            advance(1),
            wgmma_wait_group(0),
            arrive(v_empty, 2),
            advance(2),
        ];
        let last = vec![wait(v_full, 2), pv(End(n, -1)), wgmma_wait_group(0), arrive(v_empty, 2), advance(2)];
        let tile = vec![
            wait(q_full[g], 0),
            if_any(n, first),
            each(n, 1, steady),
            arrive(q_empty[g], 0),
            advance(0),
            if_any(n, last),
        ];
        let cursors = [("tile", 1), ("k", slots), ("v", slots)];
        s.process(&format!("consumer{g}"), &cursors, vec![Node::Tiles(tile)]);
    }
    s.0
}

/// Register values pass through shared memory: one group computes, another starts MMAs with what it wrote and
/// stores it, one store still reading.
pub fn handoff(slots: u32) -> System {
    let mut s = Builder::default();
    let n = s.trips("n");
    let ring = s.buffer("p", slots);
    let (full, empty) = (s.barrier("p_full", slots, 1), s.barrier("p_empty", slots, 1));
    let body =
        vec![wait_previous(empty, 0), write(access(ring, 0, 0, Current(0))), fence(), arrive(full, 0), advance(0)];
    s.process("softmax", &[("at", slots)], vec![each(n, 0, body)]);
    let (at, free) = (0, 1);
    let first = vec![
        wait(full, at),
        mma(&[access(ring, at, 0, Absolute(0))]),
        store(access(ring, at, 0, Absolute(0))),
        advance(at),
    ];
    let steady = vec![
        wait(full, at),
        mma(&[access(ring, at, 0, Current(0))]),
        store(access(ring, at, 0, Current(0))),
        wgmma_wait_group(1),
        wait_stores(1),
        arrive(empty, free),
        advance(free),
        advance(at),
    ];
    let last = vec![wgmma_wait_group(0), wait_stores(0), arrive(empty, free), advance(free)];
    s.process(
        "correction",
        &[("at", slots), ("free", slots)],
        vec![if_any(n, first), each(n, 1, steady), if_any(n, last)],
    );
    s.0
}

/// Ping-pong: two groups alternate at a buffer that exists once.
pub fn ping_pong() -> System {
    let mut s = Builder::default();
    let n = s.trips("n");
    let scratch = s.buffer("scratch", 1);
    let pingpong = [s.named("pingpong0", 2), s.named("pingpong1", 2)];
    for g in 0..2 {
        let (value, own, other) = (g as u32, pingpong[g], pingpong[1 - g]);
        let iteration = vec![
            named_barrier_sync(own),
            write(only(scratch, value, Current(0))),
            fence(),
            mma(&[only(scratch, value, Current(0))]),
            wgmma_wait_group(0),
            read(only(scratch, value, Current(0))),
            named_barrier_arrive(other),
        ];
        let tiles = Node::Tiles(vec![each(n, 0, iteration)]);
        // The second group arrives first at the first group's barrier; the first group waits there once more at the
        // end.
        let body = if g == 1 {
            vec![named_barrier_arrive(pingpong[0]), tiles]
        } else {
            vec![tiles, named_barrier_sync(pingpong[0])]
        };
        s.process(&format!("group{g}"), &[], body);
    }
    s.0
}

/// As much as attention backward: five groups, eleven rings, threads and units with handoffs between them.
pub fn backward() -> System {
    let mut s = Builder::default();
    let n = s.trips("n");
    let (k, v) = (s.buffer("k", 1), s.buffer("v", 1));
    let (kv_full, kv_empty) = (s.barrier("kv_full", 1, 2), s.barrier("kv_empty", 1, 2));
    let (q, dout) = (s.buffer("q", 2), s.buffer("do", 2));
    let (q_full, q_empty) = (s.barrier("q_full", 2, 1), s.barrier("q_empty", 2, 2));
    let (do_full, do_empty) = (s.barrier("do_full", 2, 1), s.barrier("do_empty", 2, 2));
    let statistics = s.buffer("statistics", 2);
    let (s_full, s_empty) = (s.barrier("s_full", 2, 1), s.barrier("s_empty", 2, 2));
    let (ds, dq) = ([s.buffer("ds0", 1), s.buffer("ds1", 1)], s.buffer("dq", 2));
    let (ds_full, ds_empty) = (
        [s.barrier("ds0_full", 1, 1), s.barrier("ds1_full", 1, 1)],
        [s.barrier("ds0_empty", 1, 1), s.barrier("ds1_empty", 1, 1)],
    );
    let (dq_full, dq_empty) = (s.barrier("dq_full", 2, 1), s.barrier("dq_empty", 2, 1));
    let body = vec![
        wait_previous(q_empty, 1),
        load(access(q, 1, 2, Current(0)), q_full, 1),
        wait_previous(s_empty, 1),
        load(access(statistics, 1, 4, Current(0)), s_full, 1),
        wait_previous(do_empty, 1),
        load(access(dout, 1, 3, Current(0)), do_full, 1),
        advance(1),
    ];
    let tile = vec![
        wait_previous(kv_empty, 0),
        load(only(k, 0, Absolute(0)), kv_full, 0),
        load(only(v, 1, Absolute(0)), kv_full, 0),
        advance(0),
        each(n, 0, body),
    ];
    s.process("producer", &[("tile", 1), ("at", 2)], vec![Node::Tiles(tile)]);
    for g in 0..2 {
        let value = 10 + g as u32;
        let body = vec![
            wait(q_full, 1),
            mma(&[access(q, 1, 2, Current(0)), only(k, 0, Absolute(0))]),
            wait(do_full, 1),
            mma(&[access(dout, 1, 3, Current(0)), only(v, 1, Absolute(0))]),
            wait(s_full, 1),
            read(access(statistics, 1, 4, Current(0))),
            arrive(s_empty, 1),
            wgmma_wait_group(1),
            mma(&[access(dout, 1, 3, Current(0))]),
            wgmma_wait_group(1),
            wait_previous(ds_empty[g], 2),
            write(only(ds[g], value, Current(0))),
            fence(),
            arrive(ds_full[g], 2),
            advance(2),
            mma(&[access(q, 1, 2, Current(0))]),
            wgmma_wait_group(1),
            arrive(do_empty, 1),
            wgmma_wait_group(0),
            arrive(q_empty, 1),
            advance(1),
        ];
        let tile = vec![wait(kv_full, 0), each(n, 0, body), arrive(kv_empty, 0), advance(0)];
        s.process(&format!("compute{g}"), &[("tile", 1), ("at", 2), ("ds", 1)], vec![Node::Tiles(tile)]);
    }
    let body = vec![
        wait(ds_full[0], 1),
        mma(&[only(ds[0], 10, Current(0)), only(k, 0, Absolute(0))]),
        wait(ds_full[1], 1),
        mma(&[only(ds[1], 11, Current(0)), only(k, 0, Absolute(0))]),
        wgmma_wait_group(1),
        arrive(ds_empty[0], 1),
        wgmma_wait_group(0),
        arrive(ds_empty[1], 1),
        advance(1),
        wait_previous(dq_empty, 2),
        write(access(dq, 2, 5, Current(0))),
        fence(),
        arrive(dq_full, 2),
        advance(2),
    ];
    let tile = vec![wait(kv_full, 0), each(n, 0, body), arrive(kv_empty, 0), advance(0)];
    s.process("reduce", &[("tile", 1), ("ds", 1), ("dq", 2)], vec![Node::Tiles(tile)]);
    if let Some(kv_empty) = s.0.barriers.get_mut(1) {
        kv_empty.arrivals = 3;
    }
    let body =
        vec![wait(dq_full, 0), store(access(dq, 0, 5, Current(0))), wait_stores(0), arrive(dq_empty, 0), advance(0)];
    s.process("store", &[("dq", 2)], vec![Node::Tiles(vec![each(n, 0, body)])]);
    s.0
}

/// A producer, one thread that issues MMAs into two accumulators in tensor memory, and threads that read them:
/// units tell each other when they are done, no thread waits in between.
pub fn tensor_memory(slots: u32) -> System {
    let mut s = Builder::default();
    let k = s.trips("k");
    let (a, accumulator) = (s.buffer("a", slots), s.buffer("accumulator", 2));
    let (full, empty) = (s.barrier("full", slots, 1), s.barrier("empty", slots, 1));
    let (ready, free) = (s.barrier("ready", 2, 1), s.barrier("free", 2, 1));
    let body = vec![wait_previous(empty, 0), load(access(a, 0, 0, Current(0)), full, 0), advance(0)];
    s.process("producer", &[("at", slots)], vec![Node::Tiles(vec![each(k, 0, body)])]);
    let product = |i, before: &[Access]| {
        Node::Do(Event::Mma {
            reads: [&[access(a, 0, 0, i)], before].concat(),
            writes: vec![access(accumulator, 1, 1, i)],
            signals: vec![(empty, at(0))],
        })
    };
    let last = Event::Mma { reads: vec![], writes: vec![], signals: vec![(ready, at(1))] };
    let issue = vec![
        wait_previous(free, 1),
        if_any(k, vec![wait(full, 0), product(Absolute(0), &[]), advance(0)]),
        each(k, 1, vec![wait(full, 0), product(Current(0), &[access(accumulator, 1, 1, Current(-1))]), advance(0)]),
        Node::Do(last),
        advance(1),
    ];
    s.process("issue", &[("at", slots), ("tile", 2)], vec![Node::Tiles(issue)]);
    let epilogue =
        vec![wait(ready, 0), if_any(k, vec![read(access(accumulator, 0, 1, End(k, -1)))]), arrive(free, 0), advance(0)];
    s.process("epilogue", &[("tile", 2)], vec![Node::Tiles(epilogue)]);
    s.0
}

/// Two loops that share a ring, as in causal attention, and a cursor that stays at the start.
pub fn two_loops(slots: u32) -> System {
    let mut s = Builder::default();
    let loops = [s.trips("unmasked"), s.trips("masked")];
    let k = s.buffer("k", slots);
    let (full, empty) = (s.barrier("full", slots, 1), s.barrier("empty", slots, 1));
    let produce = |g: usize| {
        let body = vec![wait_previous(empty, 0), load(access(k, 0, g as u32, Current(0)), full, 0), advance(0)];
        each(loops[g], 0, body)
    };
    s.process("producer", &[("at", slots)], vec![Node::Tiles(vec![produce(0), produce(1)])]);
    let consume = |g: usize| {
        let body = vec![
            wait(full, 0),
            mma(&[access(k, 0, g as u32, Current(0))]),
            copy_cursor(1, 0),
            advance(0),
            wgmma_wait_group(0),
            arrive(empty, 1),
        ];
        each(loops[g], 0, body)
    };
    s.process("consumer", &[("at", slots), ("start", slots)], vec![Node::Tiles(vec![consume(0), consume(1)])]);
    s.0
}

/// All of them, with their names.
pub fn all() -> Vec<(&'static str, System)> {
    vec![
        ("gemm with 2 slots", gemm(2)),
        ("gemm with 3 slots", gemm(3)),
        ("attention", attention(2)),
        ("handoff", handoff(2)),
        ("ping-pong", ping_pong()),
        ("tensor memory", tensor_memory(2)),
        ("two loops", two_loops(2)),
    ]
}
