//! Rings of streaming loads.

use crate::support::{accepted, hopper, problem, rejected, schedule};
use serde_json::json;
use twill_check::Constraint::Rings;
use twill_graph::{Bytes, OpId, Problem, Ring, Schedule};

/// A load read at 4 (until 7) and in the next iteration, at 1 + 8 (until 12), with I = 8.
fn loads() -> (Problem, Schedule) {
    let problem = problem(
        hopper(),
        json!([
            {"name": "load", "units": [{"unit": "tma", "cycles": 2}], "execution": "asynchronous", "issue_width": 1,
             "result": {"shared_memory": 50}, "variable_latency": true, "streaming": true, "transfer_latency": 17},
            {"name": "first", "units": [{"unit": "fma", "cycles": 3}]},
            {"name": "last", "units": [{"unit": "alu", "cycles": 2}], "latency": 3},
            {"name": "idle", "units": [{"unit": "tma", "cycles": 2}], "execution": "asynchronous", "issue_width": 1,
             "result": {"shared_memory": 50}, "variable_latency": true, "streaming": true, "transfer_latency": 900}
        ]),
        json!([{"from": "load", "to": "first"}, {"from": "load", "to": "last", "distance": 1}]),
    );
    let mut schedule = schedule(&problem, 8, &[(0, 0), (4, 1), (1, 2), (4, 0)]);
    // ⌈(17 + 12 − 4) / 8⌉ = 4, and one slot for what nobody reads; in any order.
    assert_eq!(schedule.rings.iter().map(|r| r.depth).collect::<Vec<_>>(), [4, 1]);
    schedule.rings.reverse();
    (problem, schedule)
}

#[test]
fn every_streaming_load_has_its_ring() {
    let (problem, schedule) = loads();
    accepted(&problem, schedule.clone());
    let mut without = schedule;
    without.rings.remove(0);
    rejected(&problem, without, Rings, &["the streaming load `idle` has no ring"]);
}

#[test]
fn a_ring_is_exactly_as_deep_as_needed() {
    for depth in [3, 5, 0, u32::MAX] {
        let (problem, mut schedule) = loads();
        schedule.rings[1].depth = depth;
        let message = format!("the ring of `load` has {depth} slots; 4 are filled or on their way at once");
        rejected(&problem, schedule, Rings, &[&message]);
    }
    let (problem, mut schedule) = loads();
    schedule.rings[0].depth = 113;
    rejected(&problem, schedule, Rings, &["the ring of `idle` has 113 slots; 1 are filled or on their way at once"]);
}

#[test]
fn a_later_reader_makes_it_deeper() {
    let (problem, before) = loads();
    let at = |first| schedule(&problem, 8, &[(0, 0), (first, 1), (1, 2), (4, 0)]);
    let mut stale = at(1);
    accepted(&problem, stale.clone());
    // 17 + 12 − 1 = 28 still takes 4 slots; first at 20 takes ⌈(17 + 23 − 9) / 8⌉ = 4; at 22 5.
    stale = at(22);
    stale.rings = before.rings;
    stale.channels.iter_mut().filter(|c| c.value == OpId::new(0)).for_each(|c| c.depth = 5);
    rejected(&problem, stale, Rings, &["the ring of `load` has 4 slots; 5 are filled or on their way at once"]);
}

#[test]
fn slots_have_the_size_of_the_load() {
    let (problem, mut schedule) = loads();
    schedule.rings[1].bytes = Bytes(49);
    rejected(&problem, schedule, Rings, &["the ring of `load` has slots of 49 bytes; the load brings 50"]);
}

#[test]
fn nothing_else_has_a_ring() {
    for (load, name) in [(1, "first"), (0, "load"), (99, "#99")] {
        let (problem, mut schedule) = loads();
        schedule.rings.push(Ring { load: OpId::new(load), bytes: Bytes(50), depth: 4 });
        let message =
            format!("the ring of `{name}` is listed twice, or `{name}` is no streaming load into shared memory");
        rejected(&problem, schedule, Rings, &[&message]);
    }
}

#[test]
fn a_load_that_is_there_and_gone_at_once_has_a_slot() {
    let problem = problem(
        hopper(),
        json!([
            {"name": "load", "issue_width": 1, "execution": "asynchronous", "result": {"shared_memory": 50},
             "variable_latency": true, "streaming": true, "transfer_latency": 0},
            {"name": "use"}
        ]),
        json!([{"from": "load", "to": "use"}]),
    );
    let schedule = schedule(&problem, 8, &[(0, 0), (4, 1)]);
    assert_eq!((schedule.rings[0].depth, schedule.channels[0].depth), (1, 1));
    accepted(&problem, schedule);
}
