//! Loops on a machine whose MMAs leave their results in tensor memory.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::path::Path;

use twill_graph::{
    Bytes, Columns, Cycles, Dependence, Execution, LoopGraph, Operation, Storage, Traffic, Words, builtin,
};
use twill_machine::Machine;
use twill_triton::{Options, lower, read};

fn lowered(name: &str, index: usize) -> LoopGraph {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let kernel = read(&text, name).unwrap_or_else(|error| panic!("{error}"));
    let machine = Machine::load("b200").unwrap();
    lower(&kernel.loops()[index], &machine, &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn operation<'g>(graph: &'g LoopGraph, name: &str) -> &'g Operation {
    graph.operation(graph.find(name).unwrap_or_else(|| panic!("{name}")))
}

fn dependence<'g>(graph: &'g LoopGraph, from: &str, to: &str) -> &'g Dependence {
    let [from_id, to_id] = [from, to].map(|name| graph.find(name).unwrap_or_else(|| panic!("{name}")));
    let found = graph.dependences().iter().find(|d| d.from == from_id && d.to == to_id);
    found.unwrap_or_else(|| panic!("no dependence from {from} to {to}"))
}

/// The operations that an operation depends on.
fn sources<'g>(graph: &'g LoopGraph, of: &str) -> Vec<&'g str> {
    let to = graph.find(of).unwrap_or_else(|| panic!("{of}"));
    graph.dependences().iter().filter(|d| d.to == to).map(|d| graph.operation(d.from).name.as_str()).collect()
}

/// An operation without its name, its place, and its traffic, which is not published.
fn nameless(op: &Operation) -> Operation {
    Operation { name: String::new(), kind: String::new(), source: None, traffic: Traffic::default(), ..op.clone() }
}

/// Ours and the published name of an operation.
type Pair = (&'static str, &'static str);

/// Compares operations, and dependences of the published graph between them but for those left out.
fn assert_as_published(ours: &LoopGraph, published: &LoopGraph, pairs: &[(String, String)], but: &[[&str; 2]]) {
    for (our_name, name) in pairs {
        assert_eq!(nameless(operation(ours, our_name)), nameless(operation(published, name)), "{our_name}, {name}");
    }
    let ours_of = |name: &str| pairs.iter().find(|(_, theirs)| theirs == name).map(|(ours, _)| ours);
    let mut count = 0;
    for theirs in published.dependences() {
        let [from, to] = [theirs.from, theirs.to].map(|id| published.operation(id).name.as_str());
        let (Some(our_from), Some(our_to)) = (ours_of(from), ours_of(to)) else { continue };
        if but.iter().any(|[a, b]| from.trim_end_matches(['0', '1']) == *a && to.trim_end_matches(['0', '1']) == *b) {
            continue;
        }
        let mine = dependence(ours, our_from, our_to);
        // An MMA that adds to its own result does not wait for itself in either variant.
        let blocking = if from == to { mine.blocking } else { theirs.blocking };
        let expected = Dependence { from: mine.from, to: mine.to, blocking, ..theirs.clone() };
        assert_eq!(*mine, expected, "{our_from} -> {our_to}");
        count += 1;
    }
    assert!(count >= 14, "{count} dependences compared");
}

const FORWARD: [Pair; 13] = [
    ("qk", "S"),
    ("qk.registers", "ldS"),
    ("new_max.reduce_max", "max"),
    ("alpha.exp2", "alpha"),
    ("p.fma", "sub"),
    ("p.exp2", "exp"),
    ("row_sum.reduce_sum", "sum"),
    ("acc.convert", "cast"),
    ("acc.convert.tensor", "stP"),
    ("acc.dot.registers", "ldO"),
    ("acc.multiply", "mulO"),
    ("acc.multiply.tensor", "stO"),
    ("acc.dot", "O"),
];

#[test]
fn attention_forward_is_the_published_graph_with_row_statistics_of_their_own() {
    let ours = lowered("attention_forward_m256.ttir", 0);
    let published = builtin::find("attention-forward-blackwell").unwrap().graph;
    assert_eq!(ours.reserved(), published.reserved());
    let mut pairs = vec![("k".to_owned(), "ldK".to_owned()), ("v".to_owned(), "ldV".to_owned())];
    for sub_tile in 0..2 {
        pairs
            .extend(FORWARD.iter().map(|(ours, theirs)| (format!("{ours}.{sub_tile}"), format!("{theirs}{sub_tile}"))));
    }
    // The maximum so far and the sum so far are operations of their own, between those that are published.
    let but = [["max", "max"], ["max", "sub"], ["max", "alpha"], ["alpha", "sum"], ["sum", "sum"]];
    assert_as_published(&ours, &published, &pairs, &but);
    let known: Vec<&String> = pairs.iter().map(|(ours, _)| ours).collect();
    let more: Vec<&Operation> = ours.operations().iter().filter(|op| !known.contains(&&op.name)).collect();
    let names: Vec<&str> = more.iter().filter_map(|op| op.name.strip_suffix(".0")).collect();
    assert_eq!(names, ["new_max.multiply", "new_max.max", "alpha.subtract", "row_sum.fma"]);
    for op in &more {
        assert_eq!((op.occupancy, op.storage), (Cycles(1), Storage::Registers(Words(128))), "{}", op.name);
    }
    assert_eq!(more.len(), 8);
}

#[test]
fn attention_backward_is_the_published_graph_with_two_steps_to_ds() {
    let ours = lowered("attention_backward_m128.ttir", 0);
    let published = builtin::find("attention-backward-blackwell").unwrap().graph;
    assert_eq!(ours.reserved(), published.reserved());
    let pairs = [
        ("q", "ldQ"),
        ("do", "lddO"),
        ("s_t", "S"),
        ("dp_t", "dP"),
        ("dv.dot", "dV"),
        ("dk", "dK"),
        ("dq.dot", "dQ"),
        ("s_t.registers", "ldS0"),
        ("p_t.exp2", "exp0"),
        ("dv.convert", "castP0"),
        ("dv.convert.tensor", "stP0"),
        ("dp_t.registers", "ldP0"),
        ("ds_t.convert", "castS0"),
        ("ds_t.convert.shared", "stS0"),
        ("dq.dot.registers", "ldQr0"),
        ("dq.atomic", "red0"),
    ]
    .map(|(ours, theirs)| (ours.to_owned(), theirs.to_owned()));
    assert_as_published(&ours, &published, &pairs, &[]);
    // The logarithms and delta come by pointer, and reading them occupies the load/store unit.
    for (name, reads) in [("p_t.fma", "lse"), ("ds_t.subtract", "delta")] {
        assert_eq!(operation(&ours, reads).storage, Storage::Shared(Bytes(512)));
        let units: Vec<&str> = operation(&ours, name).reservations.iter().map(|r| r.unit.as_str()).collect();
        assert_eq!((units, operation(&ours, name).occupancy), (vec!["fma", "lsu"], Cycles(128)), "{name}");
        assert!(dependence(&ours, reads, name).blocking);
    }
    // One published operation of 256 cycles.
    assert_eq!(operation(&ours, "ds_t.multiply").occupancy, Cycles(128));
    assert_eq!(sources(&ours, "ds_t.multiply"), ["p_t.exp2", "ds_t.subtract"]);
    // dS is in shared memory for dQ, so dK reads it there too.
    assert_eq!(sources(&ours, "dk"), ["q", "ds_t.convert.shared", "dk"]);
    assert_eq!(sources(&ours, "dq.dot"), ["ds_t.convert.shared"]);
    assert_eq!(ours.operations().len(), 21);
}

#[test]
fn mmas_are_issued_by_one_warp_and_accumulate_in_tensor_memory() {
    for (name, index) in [("gemm_tma.ttir", 0), ("swiglu.ttir", 0), ("attention_forward_causal.ttir", 1)] {
        let graph = lowered(name, index);
        let mut dots = 0;
        for dot in graph.operations().iter().filter(|op| op.kind == "dot") {
            assert_eq!((dot.execution, dot.issue_width), (Execution::Asynchronous, 1), "{}", dot.name);
            assert_eq!(dot.storage, Storage::Tensor(Columns(128)), "{}", dot.name);
            dots += 1;
        }
        assert!(dots > 0, "{name}");
    }
    let gemm = lowered("gemm_tma.ttir", 0);
    let names: Vec<&str> = gemm.operations().iter().map(|op| op.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "acc"], "nothing moves while the sum grows");
    assert!(dependence(&gemm, "acc", "acc").tied);
}

#[test]
fn the_mask_of_causal_attention_is_applied_in_registers() {
    let graph = lowered("attention_forward_causal.ttir", 1);
    assert_eq!(sources(&graph, "qk.select"), ["qk.compare", "qk.dot.registers"]);
    let load = dependence(&graph, "qk.dot", "qk.dot.registers");
    assert!(load.blocking && load.carries_value && !load.tied && load.hold == Cycles(256));
}

#[test]
fn a_running_sum_is_read_before_it_is_added_to() {
    let graph = lowered("fixtures/accumulators.ttir", 0);
    let order = dependence(&graph, "acc.dot.registers", "acc.dot");
    assert_eq!((order.distance, order.delay, order.carries_value), (1, Cycles(256), false));
    assert!(dependence(&graph, "acc.dot", "acc.dot").tied);
    // The computed right operand goes through shared memory.
    assert_eq!(sources(&graph, "acc.dot"), ["acc.load", "acc.multiply.shared", "acc.dot", "acc.dot.registers"]);
    assert_eq!(operation(&graph, "acc.multiply.shared").storage, Storage::Shared(Bytes(16384)));
}

#[test]
fn a_sum_that_arithmetic_changes_goes_through_registers() {
    let graph = lowered("fixtures/accumulators.ttir", 1);
    let [load, store, add] = [
        dependence(&graph, "acc.dot", "acc.dot.registers"),
        dependence(&graph, "acc.multiply", "acc.multiply.tensor"),
        dependence(&graph, "acc.multiply.tensor", "acc.dot"),
    ];
    assert_eq!((load.distance, store.distance, add.distance), (0, 1, 0), "it is stored for the MMA");
    assert!(load.blocking && !store.tied && add.tied);
    assert_eq!(store.hold, Cycles(64));
}

#[test]
fn what_a_sum_starts_from_is_stored_for_it() {
    let graph = lowered("fixtures/accumulators.ttir", 2);
    let store = operation(&graph, "bias.tensor");
    assert_eq!((store.kind.as_str(), store.storage), ("store_tensor", Storage::Tensor(Columns(128))));
    assert_eq!(graph.reserved().shared, Bytes(65536), "where it comes from in every iteration");
    assert_eq!(store.occupancy, Cycles(512), "64 KB at 128 bytes a cycle");
    assert!(dependence(&graph, "bias.tensor", "load.dot").tied);
    assert_eq!(sources(&graph, "load.store"), ["load.convert"]);
}

#[test]
fn old_and_new_sum_are_loaded_each_by_itself() {
    let graph = lowered("fixtures/accumulators.ttir", 3);
    let (new, old) = ("new.dot.registers", "new.dot.registers2");
    assert_eq!([new, old].map(|name| dependence(&graph, "new.dot", name).distance), [0, 1]);
    assert_eq!([new, old].map(|name| dependence(&graph, name, "new.dot").distance), [1, 0]);
    assert_eq!(sources(&graph, "largest.subtract"), [new, old]);
}
