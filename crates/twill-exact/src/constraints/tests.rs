//! What random problems do not reach, constraint by constraint.

use super::{assignment, bandwidth, channels, exclusive, handoff, registers, shared_memory, symmetry, tensor_memory};
use crate::compact::compact;
use crate::encoding::storage::Cap;
use crate::encoding::{Anchor, Candidate, Encoding, Question, Reply, Stages};
use crate::limits::{Budget, Meter};
use crate::proof_log::Log;
use crate::query::{self, Verdict};
use batsat::Lit;
use serde_json::{Value, json};
use twill_graph::format::{GraphFile, MachineReference};
use twill_graph::{
    Cycles, Families, GroupId, LowerBoundKind, ModelOptions, OpId, Placement, Problem, Resources, WarpAssignment,
};

/// A load group, up to three compute groups of one warp, and 1,280 registers for these.
fn machine() -> Value {
    json!({
        "name": "small", "units": [{"name": "tma"}, {"name": "alu", "capacity": 2}],
        "shared_memory": 4096, "tensor_memory": 64, "shared_bytes_per_cycle": 32,
        "registers": {"words": 1280 + 32 * 24, "minimum_per_thread": 16, "maximum_per_thread": 64, "granularity": 8,
                      "reserve_per_thread": 8},
        "variable_latency_group": {"warps": 1, "allocated_warps": 1, "registers_per_thread": 24},
        "compute_groups": {"warps": 1, "maximum": 3}
    })
}

fn problem_with(options: ModelOptions, operations: &Value, dependences: &Value) -> Problem {
    let mut operations = operations.clone();
    for operation in operations.as_array_mut().unwrap() {
        operation["issue_width"] = json!(1);
    }
    let graph = json!({"format": "twill-graph", "version": 1, "name": "test", "machine": machine(),
                       "reserved": {"shared_memory": 100, "tensor_memory": 3}, "operations": operations, "dependences": dependences});
    let file = GraphFile::from_json(&graph.to_string(), "test").unwrap();
    let Some(MachineReference::Resources(resources)) = file.machine.clone() else { unreachable!() };
    Problem::new(file.graph().unwrap(), *resources, options).unwrap()
}

fn problem(operations: &Value, dependences: &Value) -> Problem {
    problem_with(ModelOptions::default(), operations, dependences)
}

fn meter() -> Meter {
    Meter::start(&Budget { work: Some(500_000), ..Budget::default() })
}

fn encoding<'p>(problem: &'p Problem, interval: i64, stages: u32, meter: &Meter) -> Encoding<'p> {
    let question = Question { interval, stages: Stages::AtMost(stages), families: Families::ALL };
    Encoding::new(problem, question, meter).unwrap()
}

fn is_found(e: &mut Encoding, assumptions: &[Lit]) -> bool {
    match e.solve(assumptions) {
        Reply::Found(_) => true,
        Reply::None => false,
        Reply::Stopped => panic!("it takes too long"),
    }
}

fn at(times: &[i64], groups: &[usize], length: i64) -> Candidate {
    Candidate::placed(times.to_vec(), groups.iter().map(|&g| GroupId::new(g)).collect(), length)
}

fn placements(places: &[(i64, usize)]) -> Vec<Placement> {
    places.iter().map(|&(cycle, group)| Placement { cycle: Cycles(cycle), group: GroupId::new(group) }).collect()
}

/// Two sub-tiles of an operation of one cycle and another that reads it; `second` is in the other sub-tile's first.
fn sub_tiles(options: ModelOptions, second: &Value) -> Problem {
    let mut operations = json!([
        {"name": "a0", "kind": "add", "units": [{"unit": "alu", "cycles": 1}], "sub_tile": 0, "result": {"registers": 32}},
        {"name": "b0", "units": [{"unit": "alu", "cycles": 1}], "sub_tile": 0},
        {"name": "a1", "kind": "add", "units": [{"unit": "alu", "cycles": 1}], "sub_tile": 1, "result": {"registers": 32}},
        {"name": "b1", "units": [{"unit": "alu", "cycles": 1}], "sub_tile": 1}
    ]);
    for (key, value) in second.as_object().unwrap() {
        operations[2][key] = value.clone();
    }
    problem_with(options, &operations, &json!([{"from": "a0", "to": "b0"}, {"from": "a1", "to": "b1"}]))
}

#[test]
fn sub_tiles_that_are_alike_start_in_order_where_groups_are_free() {
    let meter = meter();
    for (warp_assignment, in_order) in [(WarpAssignment::Free, true), (WarpAssignment::BySubTile, false)] {
        let problem = sub_tiles(ModelOptions { warp_assignment, ..ModelOptions::default() }, &json!({}));
        let mut e = encoding(&problem, 4, 2, &meter);
        let second_first = e.at_least(Anchor::Issue(OpId::new(2)), Anchor::Issue(OpId::new(0)), 1);
        assert_eq!(is_found(&mut e, &[second_first]), !in_order, "{warp_assignment:?}");
        assert!(is_found(&mut e, &[!second_first]));
    }
}

#[test]
fn sub_tiles_are_alike_whatever_they_are_called() {
    let swaps = |second: Value| symmetry::swaps(sub_tiles(ModelOptions::default(), &second).graph()).len();
    assert_eq!(swaps(json!({})), 1);
    assert_eq!(swaps(json!({"kind": "subtract"})), 1);
    assert_eq!(swaps(json!({"source": {"file": "kernel.py", "line": 3}})), 1);
    assert_eq!(swaps(json!({"result": {"registers": 64}})), 0);
    assert_eq!(swaps(json!({"units": [{"unit": "alu", "cycles": 2}]})), 0);
}

#[test]
fn a_schedule_is_put_in_order_by_swapping() {
    let problem = sub_tiles(ModelOptions::default(), &json!({}));
    let in_order = |places: &[(i64, usize)]| symmetry::in_order(&problem, placements(places));
    // The second sub-tile was first, and on the last group.
    let swapped = in_order(&[(7, 3), (8, 2), (5, 1), (9, 1)]);
    assert_eq!(swapped, placements(&[(0, 1), (4, 1), (2, 2), (3, 3)]));
    let as_it_was = in_order(&[(5, 1), (9, 1), (5, 2), (6, 2)]);
    assert_eq!(as_it_was, placements(&[(0, 1), (4, 1), (0, 2), (1, 2)]));
}

#[test]
fn sub_tiles_that_start_together_stay_where_they_are() {
    let operation =
        |name: &str, tile: u32| json!({"name": name, "units": [{"unit": "alu", "cycles": 1}], "sub_tile": tile});
    let operations: Vec<Value> =
        (0..3).flat_map(|tile| ["a", "b"].map(|name| operation(&format!("{name}{tile}"), tile))).collect();
    let pairs: Vec<Value> = (0..3).map(|tile| json!({"from": format!("a{tile}"), "to": format!("b{tile}")})).collect();
    let problem = problem(&json!(operations), &json!(pairs));
    let places = placements(&[(0, 1), (1, 1), (0, 1), (2, 1), (5, 1), (6, 1)]);
    assert_eq!(symmetry::in_order(&problem, places.clone()), places);
}

#[test]
fn a_synchronous_operation_that_is_longer_than_the_interval_excludes_it() {
    let operations =
        json!([{"name": "long", "cycles": 3}, {"name": "other", "execution": "asynchronous", "cycles": 9}]);
    let (meter, problem) = (meter(), problem(&operations, &json!([])));
    assert_eq!(exclusive::self_conflict(&problem, 2), Some(OpId::new(0)));
    assert_eq!(exclusive::self_conflict(&problem, 3), None);
    assert!(matches!(query::exists(&problem, 2, Families::ALL, &meter), Verdict::Excluded { .. }));
}

#[test]
fn the_first_operation_opens_the_first_compute_group() {
    let meter = meter();
    let problem = sub_tiles(ModelOptions::default(), &json!({}));
    let mut e = encoding(&problem, 4, 2, &meter);
    let compute = e.compute_groups();
    let on = |op: usize, group: usize, e: &Encoding| e.assigned[op][compute[group].index()];
    let (first_on_second, second_on_third) = (on(0, 1, &e), on(1, 2, &e));
    assert!(!is_found(&mut e, &[first_on_second]) && !is_found(&mut e, &[second_on_third]));
    let (first, second) = (on(0, 0, &e), on(1, 1, &e));
    assert!(is_found(&mut e, &[first, second]));
    assert!(assignment::is_free(&problem));
}

#[test]
fn bytes_of_shared_memory_bound_the_interval_and_what_moves_them_is_named() {
    let operations = json!([
        {"name": "few", "units": [{"unit": "alu", "cycles": 1}], "traffic": {"shared": 40}},
        {"name": "none", "units": [{"unit": "alu", "cycles": 1}]},
        {"name": "many", "units": [{"unit": "alu", "cycles": 1}], "traffic": {"shared": 60}}
    ]);
    let problem = problem(&operations, &json!([]));
    let bound = bandwidth::bound(&problem).unwrap();
    assert_eq!(bound.interval, Cycles(4));
    let LowerBoundKind::SharedBandwidth { operations, .. } = bound.kind else { panic!("{:?}", bound.kind) };
    assert_eq!(operations, ["many", "few"]);
    let meter = meter();
    let verdict = |interval| query::exists(&problem, interval, Families::ALL, &meter);
    assert!(matches!(verdict(3), Verdict::Excluded { .. }) && matches!(verdict(4), Verdict::Found(_)));
}

/// A load, what waits for it, and a value that could be made long before it is used.
fn early() -> Problem {
    let operations = json!([
        {"name": "load", "units": [{"unit": "tma", "cycles": 4}], "latency": 9, "execution": "asynchronous",
         "variable_latency": true, "result": {"shared_memory": 64}},
        {"name": "make", "units": [{"unit": "alu", "cycles": 1}], "result": {"registers": 64}},
        {"name": "use", "units": [{"unit": "alu", "cycles": 1}]}
    ]);
    let waits = json!({"from": "load", "to": "use", "blocking": true, "delay": 9});
    problem(&operations, &json!([waits, {"from": "make", "to": "use"}]))
}

#[test]
fn what_is_made_is_made_when_it_is_needed() {
    let (meter, problem) = (meter(), early());
    let mut e = encoding(&problem, 12, 1, &meter);
    let fixed: Vec<Lit> = e.issued_at(OpId::new(1), 0).into_iter().collect();
    let Reply::Found(early) = e.solve(&fixed) else { panic!("there is a schedule") };
    assert_eq!(early.times[1], 0);
    let moved = compact(&e, early);
    assert_eq!(moved.times[2] - moved.times[1], 1, "{:?}", moved.times);
}

#[test]
fn registers_that_are_too_many_are_told_in_as_few_as_that_takes() {
    let resources: Resources = problem(&json!([{"name": "a"}]), &json!([])).resources().clone();
    let group = GroupId::new;
    // 1,280 are 40 for one group of one warp.
    assert_eq!(registers::over_file(&resources, vec![(group(1), 24), (group(2), 16)]), None);
    let told = registers::over_file(&resources, vec![(group(1), 64), (group(2), 40)]).unwrap();
    assert_eq!(told, [(group(1), 16), (group(2), 32)]);
    let told = registers::over_file(&resources, vec![(group(1), 24), (group(2), 16), (group(3), 16)]).unwrap();
    assert_eq!(told, [(group(1), 16), (group(2), 16), (group(3), 16)]);
}

#[test]
fn a_group_that_is_given_many_registers_is_given_fewer_too() {
    let (meter, problem) = (meter(), early());
    for levels in [[16, 32, 48], [48, 32, 16], [32, 48, 16], [32, 16, 48]] {
        let mut e = encoding(&problem, 12, 1, &meter);
        let [one, another] = [1, 2].map(GroupId::new);
        let mut of = |group, levels: &[u32]| -> Vec<Lit> {
            levels.iter().map(|&registers| registers::level(&mut e, group, registers)).collect()
        };
        let (literals, other) = (of(one, &levels), of(another, &levels));
        for (a, &higher) in literals.iter().zip(&levels) {
            for (b, &lower) in literals.iter().zip(&levels) {
                assert_eq!(is_found(&mut e, &[*a, !*b]), higher < lower, "{higher} without {lower}");
            }
            assert!(other.iter().all(|b| is_found(&mut e, &[*a, !*b])), "another group has its own");
        }
    }
}

/// Two values of 16 registers a thread each.
fn heavy(options: ModelOptions) -> Problem {
    let value = |name| json!({"name": name, "units": [{"unit": "alu", "cycles": 1}], "result": {"registers": 16 * 32}});
    let reads = |name| json!({"name": name, "units": [{"unit": "alu", "cycles": 1}]});
    let operations = json!([value("a"), value("b"), reads("reads a"), reads("reads b")]);
    problem_with(options, &operations, &json!([{"from": "a", "to": "reads a"}, {"from": "b", "to": "reads b"}]))
}

#[test]
fn a_full_register_file_leaves_what_fits() {
    let (meter, problem) = (meter(), heavy(ModelOptions::default()));
    let mut e = encoding(&problem, 8, 1, &meter);
    // Two values at once take 40 registers a thread, which leaves none for a second group.
    let bad = at(&[0, 0, 4, 4], &[1, 1, 1, 2], 5);
    assert!(super::refine(&mut e, &bad));
    let both: Vec<Lit> = [(0, 1), (1, 1), (2, 1), (3, 1)].iter().map(|&(op, group)| e.assigned[op][group]).collect();
    let excluded: Vec<Lit> = (0..4).flat_map(|op| e.issued_at(OpId::new(op), bad.times[op])).collect();
    assert!(is_found(&mut e, &both));
    let groups: Vec<Lit> = [(0, 1), (1, 1), (2, 1), (3, 2)].iter().map(|&(op, group)| e.assigned[op][group]).collect();
    assert!(!is_found(&mut e, &[excluded, groups].concat()));
}

#[test]
fn a_ring_holds_what_its_readers_of_different_iterations_need() {
    let operations = json!([
        {"name": "load", "units": [{"unit": "tma", "cycles": 1}], "execution": "asynchronous",
         "variable_latency": true, "streaming": true, "transfer_latency": 5, "result": {"shared_memory": 64}},
        {"name": "now", "units": [{"unit": "alu", "cycles": 1}]},
        {"name": "later", "units": [{"unit": "alu", "cycles": 2}]}
    ]);
    let reads = json!([{"from": "load", "to": "now", "blocking": true},
                       {"from": "load", "to": "later", "distance": 2, "blocking": true}]);
    let problem = problem(&operations, &reads);
    // From cycle 3, less 5 of the transfer, to cycle 4 + 2 · 7 + 2 in slots of 7.
    let depth = |interval| shared_memory::ring_depth(&problem, OpId::new(0), &[0, 3, 4], interval);
    assert_eq!((depth(7), depth(22), depth(3)), (4, 3, 5));
}

#[test]
fn a_load_of_nothing_has_no_ring() {
    let operations = json!([
        {"name": "load", "units": [{"unit": "tma", "cycles": 1}], "execution": "asynchronous",
         "variable_latency": true, "streaming": true, "transfer_latency": 5, "result": {"shared_memory": 0}},
        {"name": "use", "units": [{"unit": "alu", "cycles": 1}]}
    ]);
    let problem = problem(&operations, &json!([{"from": "load", "to": "use", "blocking": true}]));
    let meter = meter();
    assert!(encoding(&problem, 2, 4, &meter).storage.rings.is_empty());
}

#[test]
fn columns_in_use_are_those_alive_and_those_reserved() {
    let operations = json!([
        {"name": "a", "units": [{"unit": "alu", "cycles": 1}], "result": {"tensor_memory": 16}},
        {"name": "b", "units": [{"unit": "alu", "cycles": 1}], "result": {"tensor_memory": 8}},
        {"name": "c", "units": [{"unit": "alu", "cycles": 1}]}
    ]);
    let problem =
        problem(&operations, &json!([{"from": "a", "to": "c", "delay": 1}, {"from": "b", "to": "c", "delay": 1}]));
    let meter = meter();
    let e = encoding(&problem, 4, 2, &meter);
    let columns = |times: &[i64]| tensor_memory::peak(&e, &at(times, &[1, 1, 1], 8));
    assert_eq!(columns(&[0, 1, 3]), 27);
    // The first of two iterations is alive.
    assert_eq!(columns(&[0, 5, 6]), 3 + 2 * 16 + 8);
}

/// Two values for other groups: three units of words and one.
fn values() -> Problem {
    let operations = json!([
        {"name": "large", "units": [{"unit": "alu", "cycles": 1}], "result": {"registers": 192}},
        {"name": "small", "units": [{"unit": "alu", "cycles": 1}], "result": {"registers": 64}},
        {"name": "reads both", "units": [{"unit": "alu", "cycles": 1}]}
    ]);
    problem(&operations, &json!([{"from": "large", "to": "reads both"}, {"from": "small", "to": "reads both"}]))
}

#[test]
fn a_cap_on_words_excludes_what_is_above_it() {
    let (meter, problem) = (meter(), values());
    for (most, allowed) in [(4, [true; 3]), (3, [true, true, false]), (1, [true, false, false]), (0, [false; 3])] {
        let mut e = encoding(&problem, 4, 2, &meter);
        let cap = e.engine.unnamed();
        e.caps.handoff_words = Some(Cap { most, active: cap });
        let [large, small] = [0, 1].map(|op| !e.same_group(OpId::new(op), OpId::new(2)));
        let answers = [vec![!large, small], vec![large, !small], vec![large, small]]
            .map(|groups| is_found(&mut e, &[vec![cap], groups].concat()));
        assert_eq!(answers, allowed, "at most {most}");
        e.caps.handoff_words = None;
        assert!(is_found(&mut e, &[large, small]), "without the cap");
    }
    let e = encoding(&problem, 4, 2, &meter);
    assert_eq!(handoff::total(&e, &at(&[0, 0, 2], &[1, 2, 3], 4)), 4);
}

#[test]
fn channels_are_of_values_and_groups() {
    let (meter, problem) = (meter(), values());
    let e = encoding(&problem, 4, 2, &meter);
    // Two values that one of three groups may read.
    assert_eq!(e.channels.len(), 6);
    assert_eq!(channels::pairs(&problem, &at(&[0, 0, 2], &[1, 2, 2], 4)).len(), 1);
}

#[test]
fn proofs_name_what_they_speak_of() {
    let (meter, problem) = (meter(), early());
    let question = Question { interval: 12, stages: Stages::Any, families: Families::ALL };
    let log = Log::start(12, problem.graph().operations().len());
    let mut e = Encoding::logged(&problem, question, &meter, log).unwrap();
    let atom = || twill_graph::proof::Atom::Waits { op: OpId::new(2) };
    let one = e.engine.fresh(atom);
    let (truth, never) = (e.engine.truth(), e.engine.constant(false));
    assert_eq!(e.engine.any(vec![[never], [one]], None), one);
    assert_ne!(e.engine.any(vec![[never], [one]], Some(atom())), one);
    assert_eq!(e.engine.any(vec![[one], [truth]], Some(atom())), truth);
    assert_eq!(e.engine.any(vec![[never, one]], Some(atom())), never);
    assert_eq!(e.engine.any(vec![[one, truth], [one, never]], None), one);
}
