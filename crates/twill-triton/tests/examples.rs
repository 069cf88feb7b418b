//! The examples, from TTIR to loop graph.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::fmt::Write as _;
use std::path::Path;

use twill_exact::SearchOptions;
use twill_graph::{
    Bytes, Cycles, GroupRole, LoopGraph, ModelOptions, Operation, Problem, Storage, Traffic, Words, builtin,
};
use twill_machine::Machine;
use twill_triton::{Kernel, Options, Stands, lower, lower_parts, read};

fn example(name: &str) -> Kernel {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    read(&text, name).unwrap_or_else(|error| panic!("{error}"))
}

fn graph(name: &str, machine: &str) -> LoopGraph {
    graph_of(&example(name), machine)
}

fn graph_of(kernel: &Kernel, machine: &str) -> LoopGraph {
    let machine = Machine::load(machine).unwrap();
    lower(&kernel.loops()[0], &machine, &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// The types of descriptors, the names of their parts and what waits for other grids are written otherwise; the files are of `print_ttir.py --into`.
#[test]
fn what_triton_3_9_prints_is_the_same_kernel() {
    for name in ["attention_forward.ttir", "attention_backward.ttir", "fixtures/loops/dependent.ttir"] {
        let file = Path::new(name).file_name().unwrap();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/triton-3.9").join(file);
        let newer = read(&std::fs::read_to_string(path).unwrap(), name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(newer.loops().len(), example(name).loops().len());
        assert_eq!(table(&graph_of(&newer, "h200")), table(&graph(name, "h200")), "{name}");
    }
}

/// The loops of a kernel, whole and as they are lowered.
fn listing(name: &str) -> String {
    let machine = Machine::load("h100").unwrap();
    let kernel = example(name);
    kernel.loops().iter().fold(String::new(), |text, tile_loop| {
        format!("{text}{tile_loop}{}\n", Options::default().prepare(tile_loop, &machine).unwrap())
    })
}

fn table(graph: &LoopGraph) -> String {
    let mut text = format!("{}, {} bytes reserved\n", graph.name(), graph.reserved().shared.0);
    for op in graph.operations() {
        let units: Vec<String> = op.reservations.iter().map(|r| format!("{} {}", r.unit, r.cycles)).collect();
        let storage = match op.storage {
            Storage::None => String::new(),
            Storage::Registers(words) => format!("{} words", words.0),
            Storage::Shared(bytes) => format!("{} bytes", bytes.0),
            Storage::Tensor(columns) => format!("{} columns", columns.0),
        };
        let issue = format!("{:?} {}", op.execution, op.issue_width).to_lowercase();
        let mut flags = String::new();
        if op.variable_latency {
            flags.push_str(if op.streaming { "streaming" } else { "variable latency" });
        }
        writeln!(
            text,
            "{:22} {:12} {:15} {:>4} {issue:14} {storage:13} handoff {:<4}{flags}",
            op.name,
            op.kind,
            units.join(", "),
            op.latency,
            op.handoff
        )
        .unwrap();
    }
    for d in graph.dependences() {
        let name = |id| &graph.operation(id).name;
        let mut marks = Vec::new();
        if d.distance > 0 {
            marks.push(format!("distance {}", d.distance));
        }
        if d.blocking {
            marks.push("blocking".into());
        }
        if d.tied {
            marks.push("tied".into());
        }
        if d.hold > Cycles::ZERO {
            marks.push(format!("hold {}", d.hold));
        }
        writeln!(text, "{:22} -> {:22} {:>4} {}", name(d.from), name(d.to), d.delay, marks.join(", ")).unwrap();
    }
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn attention_forward_is_read_and_cut() {
    insta::assert_snapshot!(listing("attention_forward.ttir"));
}

#[test]
fn attention_forward_becomes_a_graph() {
    insta::assert_snapshot!(table(&graph("attention_forward.ttir", "h100")));
}

#[test]
fn attention_backward_is_read_and_cut() {
    insta::assert_snapshot!(listing("attention_backward.ttir"));
}

#[test]
fn attention_backward_becomes_a_graph() {
    insta::assert_snapshot!(table(&graph("attention_backward.ttir", "h100")));
}

#[test]
fn causal_attention_is_two_loops() {
    insta::assert_snapshot!(listing("attention_forward_causal.ttir"));
}

#[test]
fn gemms_are_read_and_cut() {
    let names = ["gemm_tma.ttir", "gemm_pointers.ttir", "swiglu.ttir", "fixtures/nested_loops.ttir"];
    insta::assert_snapshot!(names.map(listing).concat());
}

#[test]
fn attention_forward_on_ampere_is_synchronous() {
    insta::assert_snapshot!(table(&graph("attention_forward.ttir", "a100")));
}

#[test]
fn generic_and_custom_form_give_the_same_loop() {
    for name in ["attention_forward", "attention_backward", "gemm_pointers"] {
        assert_eq!(listing(&format!("{name}.ttir")), listing(&format!("fixtures/{name}_generic.ttir")));
    }
}

#[test]
fn every_example_is_lowered_for_every_machine() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !name.ends_with(".ttir") {
            continue;
        }
        for tile_loop in example(&name).loops() {
            count += 1;
            for machine in ["h100", "h200", "a100", "b200"] {
                let machine = Machine::load(machine).unwrap();
                let graph = lower(tile_loop, &machine, &Options::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
                // Every unit exists, and everything fits into memory.
                Problem::new(graph, machine.resources(), ModelOptions::default()).unwrap();
            }
        }
    }
    assert!(count >= 18, "{count} loops");
}

#[test]
fn every_operation_of_a_graph_says_what_it_stands_for() {
    let parts = |name: &str, machine: &str| {
        let machine = Machine::load(machine).unwrap();
        lower_parts(&example(name).loops()[0], &machine, &Options::default()).unwrap()
    };
    for (name, machine) in [
        ("attention_forward.ttir", "h100"),
        ("attention_backward.ttir", "h100"),
        ("attention_forward_m256.ttir", "b200"),
        ("attention_backward_m128.ttir", "b200"),
    ] {
        let lowered = parts(name, machine);
        let names = lowered.tiles.operation_names();
        assert_eq!(lowered.graph.operations().len(), lowered.stands_for.len(), "{name}");
        let mut tiles = Vec::new();
        for (op, stands) in lowered.graph.operations().iter().zip(&lowered.stands_for) {
            let kind = match stands {
                Stands::Tile(id) => {
                    tiles.push(id.index());
                    assert_eq!(op.name, names[id.index()]);
                    lowered.tiles.operation(*id).label()
                }
                Stands::ToShared(_) => "store_shared",
                Stands::ToTensor(_) | Stands::Accumulator(_) => "store_tensor",
                Stands::FromTensor(..) => "load_tensor",
            };
            assert_eq!(op.kind, kind, "{name}: {}", op.name);
        }
        assert_eq!(tiles, Vec::from_iter(0..names.len()), "{name}: every operation of the loop, in order");
    }
    let backward = parts("attention_backward.ttir", "h100");
    assert!(backward.stands_for.iter().any(|stands| matches!(stands, Stands::ToShared(_))));
}

/// The total cost of the operations of one kind and one sub-tile.
fn cycles(graph: &LoopGraph, unit: &str, sub_tile: Option<u32>) -> i64 {
    let mine = graph.operations().iter().filter(|op| op.sub_tile == sub_tile);
    mine.flat_map(|op| &op.reservations).filter(|r| r.unit == unit).map(|r| r.cycles.0).sum()
}

#[test]
fn attention_forward_costs_what_the_published_graph_costs() {
    let ours = graph("attention_forward.ttir", "h100");
    let published = builtin::find("attention-forward-hopper").unwrap().graph;
    assert_eq!(ours.reserved(), published.reserved());
    for (name, theirs) in [
        ("k", "ldK"),
        ("v", "ldV"),
        ("qk.0", "S0"),
        ("new_max.reduce_max.0", "max0"),
        ("p.fma.0", "sub0"),
        ("p.exp2.0", "exp0"),
        ("alpha.exp2.0", "alpha0"),
        ("row_sum.reduce_sum.1", "sum1"),
        ("acc.convert.1", "cast1"),
        ("acc.multiply.1", "resc1"),
        ("acc.dot.1", "O1"),
    ] {
        let find = |graph: &LoopGraph, name: &str| graph.operation(graph.find(name).unwrap()).clone();
        let (ours, published) = (find(&ours, name), find(&published, theirs));
        // Its traffic is not published.
        let cost = |op: Operation| Operation {
            name: String::new(),
            kind: String::new(),
            source: None,
            traffic: Traffic::default(),
            ..op
        };
        assert_eq!(cost(ours), cost(published), "{name}");
    }
    for sub_tile in [Some(0), Some(1), None] {
        for unit in ["tensor", "xu", "tma"] {
            assert_eq!(cycles(&ours, unit, sub_tile), cycles(&published, unit, sub_tile), "{unit} {sub_tile:?}");
        }
    }
    // Row statistics are operations of their own here: two cycles each.
    assert_eq!(cycles(&ours, "fma", Some(0)) - cycles(&published, "fma", Some(0)), 6);
    assert_eq!(cycles(&ours, "alu", Some(0)) - cycles(&published, "alu", Some(0)), 2);
}

#[test]
fn attention_forward_is_scheduled_as_published() {
    let machine = Machine::load("h100").unwrap();
    let graph = graph("attention_forward.ttir", "h100");
    let problem = Problem::new(graph, machine.resources(), ModelOptions::default()).unwrap();
    let report = twill_exact::schedule(&problem, &SearchOptions::default(), &mut |_| {});
    let schedule = report.outcome.schedule().unwrap();
    let compute = schedule.groups.iter().filter(|group| group.role == GroupRole::Compute).count();
    assert_eq!((schedule.interval, schedule.stages(), compute), (Cycles(2048), 2, 2));
}

#[test]
fn loads_are_cut_only_where_they_have_the_rows() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/gemm_pointers.ttir");
    let text = std::fs::read_to_string(path).unwrap();
    // Without the promise of aligned addresses no tensor descriptor stands for the pointers.
    let unaligned = read(&text.replace("tt.divisibility = 16", "tt.divisibility = 1"), "unaligned.ttir").unwrap();
    let pointers = example("gemm_pointers.ttir");
    for (kernel, unit, bytes_per_cycle) in
        [(example("gemm_tma.ttir"), "tma", 128), (pointers, "tma", 128), (unaligned, "lsu", 64)]
    {
        let machine = Machine::load("h100").unwrap();
        let graph = lower(&kernel.loops()[0], &machine, &Options::default()).unwrap();
        let load = |name: &str| graph.operation(graph.find(name).unwrap());
        for (name, bytes) in [("a.0", 8192), ("a.1", 8192), ("b", 16384)] {
            let op = load(name);
            assert!(op.streaming && op.variable_latency, "{name}");
            assert_eq!(op.storage, Storage::Shared(Bytes(bytes)));
            assert_eq!(op.reservations[0].unit, unit);
            assert_eq!(op.occupancy, Cycles((bytes / bytes_per_cycle) as i64));
            assert_eq!(op.transfer_latency, Cycles(650));
        }
    }
}

/// The operations whose results an operation reads or waits for.
fn sources<'g>(graph: &'g LoopGraph, of: &str) -> Vec<&'g str> {
    let to = graph.find(of).unwrap_or_else(|| panic!("{of}"));
    graph.dependences().iter().filter(|d| d.to == to).map(|d| graph.operation(d.from).name.as_str()).collect()
}

#[test]
fn backward_hands_its_transposed_operand_through_shared_memory() {
    let graph = graph("attention_backward.ttir", "h100");
    for half in ["0", "1"] {
        let (dot, atomic) = (format!("dq.dot.{half}"), format!("dq.atomic.{half}"));
        // Half of the columns of dQ each, summed over the rows of both sub-tiles.
        assert_eq!(sources(&graph, &dot), ["ds_t.convert.shared.0", "ds_t.convert.shared.1"]);
        assert_eq!(sources(&graph, &atomic), [dot.as_str()]);
        let [dot, reduce] = [&dot, &atomic].map(|name| graph.operation(graph.find(name).unwrap()));
        assert_eq!((dot.storage, dot.occupancy), (Storage::Registers(Words(4096)), Cycles(256)));
        assert!(reduce.variable_latency && !reduce.streaming && reduce.storage == Storage::None);
        assert_eq!(reduce.occupancy, Cycles(128));
    }
    assert_eq!(sources(&graph, "dk.0"), ["q", "ds_t.convert.0", "dk.0"]);
    assert_eq!(graph.reserved().shared, Bytes(65536));
}

#[test]
fn contraction_is_a_choice() {
    let machine = Machine::load("h100").unwrap();
    let kernel = example("attention_forward.ttir");
    let options = Options { contract: false, ..Options::default() };
    let apart = lower(&kernel.loops()[0], &machine, &options).unwrap();
    let together = lower(&kernel.loops()[0], &machine, &Options::default()).unwrap();
    assert_eq!(apart.operations().len(), together.operations().len() + 4);
    assert!(apart.find("p.subtract.0").is_some() && together.find("p.fma.0").is_some());
}

/// The traffic of a graph's operations, by name.
fn moved(graph: &LoopGraph, name: &str) -> (u64, u64, u64) {
    let Traffic { shared, global, flop } = graph.operation(graph.find(name).unwrap()).traffic;
    (shared.0, global.0, flop)
}

#[test]
fn mmas_read_shared_memory_anew_in_every_instruction() {
    // A sub-tile of 64 rows: Q, K and V from shared memory, P from registers.
    let forward = graph("attention_forward.ttir", "h200");
    assert_eq!(moved(&forward, "qk.0"), (2 * 128 * (64 + 128), 0, 2 * 64 * 128 * 128));
    assert_eq!(moved(&forward, "acc.dot.1"), (2 * 128 * 128, 0, 2 * 64 * 128 * 128));
    assert_eq!(moved(&forward, "k"), (0, 2 * 128 * 128, 0));
    assert_eq!(moved(&forward, "p.exp2.0"), (0, 0, 0));
    let whole = forward.traffic();
    assert_eq!((whole.shared, whole.mma_operands), (Bytes(160 << 10), Bytes(160 << 10)));
    assert_eq!((whole.global, whole.flop), (Bytes(64 << 10), 4 * 128 * 128 * 128));
    // Two instructions of 64 rows read the right operand twice; one of 256 columns reads the left one once.
    let one = Options { sub_tiles: Some(1), ..Options::default() };
    let machine = Machine::load("h200").unwrap();
    let gemm = |name: &str| lower(&example(name).loops()[0], &machine, &one).unwrap();
    assert_eq!(moved(&gemm("gemm_tma.ttir"), "acc").0, 2 * 64 * (128 + 2 * 128));
    assert_eq!(moved(&gemm("gemm_tma_n256.ttir"), "acc").0, 2 * 64 * (128 + 2 * 256));
}

#[test]
fn neighbours_along_the_first_axis_load_some_tiles_alike() {
    let machine = Machine::load("h200").unwrap();
    let common = |name: &str| {
        let options = Options::default();
        lower_parts(&example(name).loops()[0], &machine, &options).unwrap().common_bytes()
    };
    // Rows of A are those of the first axis, rows of B of the second; keys and values are those of a head.
    assert_eq!(common("gemm_tma.ttir"), Bytes(2 * 64 * 128));
    assert_eq!(common("gemm_tma_n256.ttir"), Bytes(2 * 64 * 256));
    assert_eq!(common("gemm_tma_m256.ttir"), Bytes(2 * 64 * 128));
    assert_eq!(common("attention_forward.ttir"), Bytes(64 << 10));
    // Queries and their gradients of a head, with two numbers of f32 a row; what is added to dQ belongs to each key block.
    assert_eq!(common("attention_backward.ttir"), Bytes(2 * 2 * 64 * 128 + 2 * 4 * 64));
}

#[test]
fn what_threads_store_for_others_counts() {
    let backward = graph("attention_backward.ttir", "h200");
    // Both operands of 64 × 64, the store of dS, and dQ on its way to the TMA.
    assert_eq!(moved(&backward, "s_t.0").0, 2 * 128 * (64 + 64));
    assert_eq!(moved(&backward, "ds_t.convert.shared.1"), (2 * 64 * 64, 0, 0));
    assert_eq!(moved(&backward, "dq.atomic.0"), (4 * 64 * 64, 4 * 64 * 64, 0));
    // Row statistics are read by arithmetic.
    assert_eq!(moved(&backward, "p_t.fma.0").0, 4 * 64);
    // An A100 fetches operands to registers, and what it has of shared memory is its threads' alone.
    let a100 = graph("gemm_tma.ttir", "a100");
    assert_eq!(moved(&a100, "acc.0").0, 2 * 64 * (64 + 128));
}

#[test]
fn left_operands_in_tensor_memory_are_not_read_from_shared_memory() {
    for (machine, left) in [("b200", 0), ("b200-left-shared", 128)] {
        let forward = graph("attention_forward.ttir", machine);
        assert_eq!(moved(&forward, "acc.dot").0, 2 * 128 * (left + 128), "{machine}");
        assert_eq!(moved(&forward, "qk").0, 2 * 128 * (128 + 128), "{machine}");
    }
}
