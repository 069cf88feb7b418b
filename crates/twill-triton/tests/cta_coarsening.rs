//! CTA coarsening: programs of a grid that share a CTA, and the cases where they cannot.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use twill_machine::Machine;
use twill_triton::tile::{Axes, Axis, Origin, Role, Split, TileLoop, TileOpKind};
use twill_triton::{
    CtaCoarsening, Error, Kernel, Options, Stands, coarsening, contract, lower, lower_parts, read, sub_tile,
};

fn example(name: &str) -> Kernel {
    let path = format!("{}/../../examples/{name}.ttir", env!("CARGO_MANIFEST_DIR"));
    read(&std::fs::read_to_string(&path).unwrap(), name).unwrap()
}

fn h100() -> Machine {
    Machine::load("h100").unwrap()
}

fn along(axis: Axis, count: u32) -> Options {
    Options { programs: Some(CtaCoarsening { count, axis }), ..Options::default() }
}

fn listing(l: &TileLoop) -> Vec<String> {
    l.to_string().lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn programs_that_attend_to_the_same_keys_load_them_once() {
    let options = along(Axis::X, 3);
    let kernel = example("attention_forward_d64_m64");
    let lowered = lower_parts(&kernel.loops()[0], &h100(), &options).unwrap();
    let l = &lowered.tiles;
    assert_eq!((l.split(), l.sub_tiles()), (Split::Programs { count: 3, axis: Axis::X }, 3));
    let lines = listing(l);
    assert!(lines[0].starts_with("loop attention_forward, 64 rows, 3 programs along x (line 40 of "), "{}", lines[0]);
    for line in [
        "k = load tma : 128x64xf16",
        "qk.2 = dot q.2', k^T : 64x128xf32",
        "new_max.max.1 = max new_max.max.1[-1], new_max.multiply.1 : 64xf32",
        "acc.dot.0 = dot acc.convert.0, v, acc.multiply.0 : 64x64xf32",
    ] {
        assert!(lines.iter().any(|l| l == line), "{line}\n{l}");
    }
    let shared = l.operations().iter().filter(|op| op.sub_tile.is_none());
    assert!(shared.clone().all(|op| matches!(op.kind, TileOpKind::Load(_))) && shared.count() == 2);
    assert_eq!(l.operations().len(), 2 + 3 * 13);
    // Each program has queries of its own, of one value of the TTIR; nothing else is read from before the loop.
    let queries: Vec<_> = l.tiles().iter().filter(|tile| matches!(tile.origin, Origin::Invariant { .. })).collect();
    assert_eq!(queries.iter().map(|tile| tile.part).collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
    assert!(queries.iter().all(|tile| tile.shape == [64, 64] && tile.origin == queries[0].origin));
    assert_eq!(lowered.graph.reserved().shared.0, 3 * 64 * 64 * 2);
    // Every operation belongs to the program whose tiles it reads.
    for op in l.operations() {
        let own = op.operands.iter().flat_map(|o| &o.tiles).filter_map(|tile| l.tile(*tile).part);
        assert!(own.into_iter().all(|part| Some(part) == op.sub_tile), "{}", op.variable);
        assert_eq!(op.result.and_then(|result| l.tile(result).part), op.sub_tile);
    }
    assert!(lowered.stands_for.iter().all(|stands| matches!(stands, Stands::Tile(_))));
}

#[test]
fn a_program_costs_what_it_costs_alone() {
    let kernel = example("attention_forward_d64_m64");
    let graph = |options: &Options| lower(&kernel.loops()[0], &h100(), options).unwrap();
    let (alone, three) = (graph(&Options::default()), graph(&along(Axis::X, 3)));
    for op in alone.operations() {
        let names: Vec<String> = if op.kind == "load" {
            vec![op.name.clone()]
        } else {
            (0..3).map(|program| format!("{}.{program}", op.name)).collect()
        };
        for name in names {
            let copy = three.operation(three.find(&name).unwrap_or_else(|| panic!("{name}")));
            let same = |op: &twill_graph::Operation| {
                (op.reservations.clone(), op.occupancy, op.latency, op.storage, op.streaming, op.handoff)
            };
            assert_eq!(same(copy), same(op), "{name}");
        }
    }
}

#[test]
fn two_programs_of_64_rows_are_two_sub_tiles_of_128() {
    let graph = |name: &str, options: &Options| lower(&example(name).loops()[0], &h100(), options).unwrap();
    let programs = graph("attention_forward_d64_m64", &along(Axis::X, 2));
    assert_eq!(programs, graph("attention_forward_d64", &Options::default()));
    assert_ne!(programs, graph("attention_forward_d64_m64", &along(Axis::Y, 2)), "another head has other keys");
}

#[test]
fn each_operand_of_a_multiplication_is_shared_along_one_axis() {
    let kernel = example("gemm_tma");
    let of = |axis| listing(&along(axis, 2).prepare(&kernel.loops()[0], &h100()).unwrap())[1..].to_vec();
    assert_eq!(
        of(Axis::X),
        [
            "a.0 = load tma : 128x64xf16",
            "a.1 = load tma : 128x64xf16",
            "b = load tma : 128x64xf16",
            "acc.0 = dot a.0, b^T, acc.0[-1] : 128x128xf32",
            "acc.1 = dot a.1, b^T, acc.1[-1] : 128x128xf32",
        ]
    );
    assert_eq!(
        of(Axis::Y),
        [
            "a = load tma : 128x64xf16",
            "b.0 = load tma : 128x64xf16",
            "b.1 = load tma : 128x64xf16",
            "acc.0 = dot a, b.0^T, acc.0[-1] : 128x128xf32",
            "acc.1 = dot a, b.1^T, acc.1[-1] : 128x128xf32",
        ]
    );
}

#[test]
fn what_is_added_up_in_global_memory_is_added_by_each_program() {
    let kernel = example("attention_backward_d64");
    let l = along(Axis::X, 2).prepare(&kernel.loops()[0], &h100()).unwrap();
    let shared: Vec<_> = l.operations().iter().filter(|op| op.sub_tile.is_none()).map(|op| &op.variable).collect();
    assert_eq!(shared, ["q", "lse", "do", "delta"]);
    let atomics = l.operations().iter().filter(|op| matches!(op.kind, TileOpKind::AtomicReduce(_)));
    assert_eq!(atomics.map(|op| op.sub_tile).collect::<Vec<_>>(), [Some(0), Some(1)]);
    // k and v of before the loop, in the roles of left and right operand, are each program's own.
    let dots = l.operations().iter().filter(|op| matches!(op.kind, TileOpKind::Dot { .. }));
    let own = dots.flat_map(|op| [Role::Left, Role::Right].map(|role| (op.sub_tile, op.operand(role).unwrap())));
    for (program, operand) in own {
        let parts = operand.tiles.iter().filter_map(|tile| l.tile(*tile).part);
        assert!(parts.into_iter().all(|part| Some(part) == program));
    }
}

/// A kernel with one loop.
fn kernel(before: &str, loop_head: &str, body: &str, after: &str) -> Kernel {
    let text = format!(
        "
tt.func public @k(%f: !tt.tensordesc<tensor<64x64xf32>>, %p: !tt.ptr<f32>, %counter: !tt.ptr<i32>, %n: i32) {{
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %true = arith.constant true
    %px = tt.get_program_id x : i32
    %py = tt.get_program_id y : i32
    %size = tt.get_num_programs x : i32
    {before}
    {loop_head} {{
      {body}
    }}
    {after}
    tt.return
}}"
    );
    read(&text, "k.ttir").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

const FOR: &str = "scf.for %i = %c0 to %n step %c1 : i32";
const TILE: &str = "tensor<64x64xf32>";

fn load(name: &str, row: &str) -> String {
    format!("%{name} = tt.descriptor_load %f[{row}, %c0] : !tt.tensordesc<{TILE}> -> {TILE}\n")
}

fn store(row: &str, value: &str) -> String {
    format!("tt.descriptor_store %f[{row}, %c0], {value} : !tt.tensordesc<{TILE}>, {TILE}\n")
}

/// The axes along which programs differ in the row that `before` computes, as the load of it says.
fn differs(before: &str) -> String {
    let kernel = kernel(before, FOR, &(load("x", "%row") + &store("%i", "%x")), "");
    let tile = &kernel.loops()[0].tiles()[0];
    let names = [(Axis::X, 'x'), (Axis::Y, 'y'), (Axis::Z, 'z')];
    names.into_iter().filter(|(axis, _)| tile.differs.contains(*axis)).map(|(_, name)| name).collect()
}

#[test]
fn programs_differ_in_what_is_computed_from_their_number() {
    let branch = |condition: &str, one: &str| {
        format!(
            "%row = scf.if {condition} -> (i32) {{
      scf.yield {one} : i32
    }} else {{
      scf.yield %n : i32
    }}"
        )
    };
    let walk = |bound: &str, start: &str, next: &str| {
        format!(
            "%row = scf.for %j = %c0 to {bound} step %c1 iter_args(%old = {start}) -> (i32) : i32 {{
      %next = arith.addi %old, {next} : i32
      scf.yield %next : i32
    }}"
        )
    };
    let compare = "%is = arith.cmpi slt, %py, %n : i32\n";
    for (before, axes) in [
        ("%row = arith.addi %n, %c1 : i32".to_owned(), ""),
        ("%row = arith.addi %n, %size : i32".to_owned(), ""),
        ("%row = arith.muli %px, %n : i32".to_owned(), "x"),
        ("%row = arith.muli %px, %py : i32".to_owned(), "xy"),
        ("%row = tt.get_program_id z : i32".to_owned(), "z"),
        (branch("%true", "%c0"), ""),
        (branch("%true", "%px"), "x"),
        (compare.to_owned() + &branch("%is", "%c0"), "y"),
        (compare.to_owned() + &branch("%is", "%px"), "xy"),
        (walk("%n", "%c0", "%j"), ""),
        (walk("%n", "%px", "%j"), "x"),
        (walk("%n", "%c0", "%py"), "y"),
        (walk("%px", "%c0", "%c1"), "x"),
        ("%row = tt.load %counter : !tt.ptr<i32>".to_owned(), ""),
        ("%mine = tt.addptr %counter, %py : !tt.ptr<i32>, i32\n %row = tt.load %mine : !tt.ptr<i32>".to_owned(), "y"),
        // The first to arrive gets the first.
        (
            "%row = tt.atomic_rmw add, acq_rel, gpu, %counter, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32".to_owned(),
            "xyz",
        ),
        ("%row = tt.call @elsewhere(%n) : (i32) -> i32".to_owned(), "xy"),
    ] {
        assert_eq!(differs(&before), axes, "{before}");
    }
}

#[test]
fn a_carried_value_is_each_programs_own_from_its_start_on() {
    // Neither what is loaded nor what is added differs, but what the sum starts with does.
    let body = load("x", "%i") + &format!("%sum = arith.addf %old, %x : {TILE}\n scf.yield %sum : {TILE}");
    let head = format!("%r = scf.for %i = %c0 to %n step %c1 iter_args(%old = %first) -> ({TILE}) : i32");
    let kernel = kernel(&load("first", "%px"), &head, &body, &store("%px", "%r"));
    let l = coarsening(&kernel.loops()[0], CtaCoarsening { count: 2, axis: Axis::X }).unwrap();
    assert_eq!(
        listing(&l)[1..],
        ["x = load tma : 64x64xf32", "sum.0 = add sum.0[-1], x : 64x64xf32", "sum.1 = add sum.1[-1], x : 64x64xf32",]
    );
    let result = kernel.module().for_loop(kernel.loops()[0].statement()).unwrap().results[0];
    assert_eq!(kernel.differs(result), Axes::from(Axis::X));
}

#[test]
fn shared_arithmetic_is_done_once_and_stores_are_each_programs() {
    let body = load("x", "%i")
        + &format!("%twice = arith.addf %x, %x : {TILE}\n")
        + &load("mine", "%px")
        + &format!("%sum = arith.mulf %twice, %mine : {TILE}\n")
        + &store("%px", "%sum")
        + &store("%py", "%twice");
    let kernel = kernel("", FOR, &body, "");
    let l = coarsening(&kernel.loops()[0], CtaCoarsening { count: 2, axis: Axis::X }).unwrap();
    assert_eq!(
        listing(&l)[1..],
        [
            "x = load tma : 64x64xf32",
            "twice.add = add x, x : 64x64xf32",
            "mine.0 = load tma : 64x64xf32",
            "mine.1 = load tma : 64x64xf32",
            "sum.multiply.0 = multiply twice.add, mine.0 : 64x64xf32",
            "sum.multiply.1 = multiply twice.add, mine.1 : 64x64xf32",
            "sum.store.0 store tma sum.multiply.0",
            "sum.store.1 store tma sum.multiply.1",
            "twice.store.0 store tma twice.add",
            "twice.store.1 store tma twice.add",
        ]
    );
}

#[test]
fn a_gang_of_one_is_the_loop_itself_and_a_gang_stays_one() {
    let kernel = example("attention_forward_d64_m64");
    let whole = &kernel.loops()[0];
    let one = CtaCoarsening { count: 1, axis: Axis::X };
    assert_eq!(coarsening(whole, one).unwrap(), *whole);
    assert_eq!(whole.split(), Split::Whole);
    // Prepared with the usual options, it is only contracted; what is split already stays as it is.
    let options = along(Axis::X, 3);
    let three = options.prepare(whole, &h100()).unwrap();
    assert_eq!(three, coarsening(&contract(whole), CtaCoarsening { count: 3, axis: Axis::X }).unwrap());
    assert_eq!(Options::default().prepare(&three, &h100()).unwrap(), three);
    assert_eq!(along(Axis::X, 1).prepare(whole, &h100()).unwrap(), contract(whole));
}

#[test]
fn loops_that_programs_cannot_share_are_refused() {
    let message = |result: Result<TileLoop, Error>| result.unwrap_err().to_string();
    let x = |count| CtaCoarsening { count, axis: Axis::X };
    let forward = example("attention_forward_d64_m64");
    let l = &forward.loops()[0];
    for count in [0, 17] {
        assert_eq!(
            message(coarsening(l, x(count))),
            format!("loop `attention_forward`: {count} programs cannot share a CTA; ask for 1 to 16")
        );
    }
    let both = Options { sub_tiles: Some(1), ..along(Axis::X, 3) };
    assert_eq!(
        message(both.prepare(l, &h100())),
        "loop `attention_forward`: programs that share a CTA are not cut into sub-tiles as well; ask for one or the other, and choose the rows of a program as those of a sub-tile"
    );
    let three = coarsening(l, x(3)).unwrap();
    assert_eq!(
        message(sub_tile(&three, 2)),
        "loop `attention_forward` has no dimension that it can be cut along: it is made of 3 programs along x already; ask for 1 sub-tile"
    );
    assert_eq!(
        message(coarsening(&three, x(2))),
        "loop `attention_forward` is made of 3 programs along x already; let programs share a CTA before anything else splits the loop"
    );
    assert!(
        message(coarsening(&sub_tile(l, 2).unwrap(), x(2)))
            .starts_with("loop `attention_forward` is cut into 2 sub-tiles")
    );
    assert_eq!(
        message(coarsening(l, CtaCoarsening { count: 2, axis: Axis::Z })),
        "loop `attention_forward`: programs along z would all compute the same, no tile of it depends on tl.program_id(2); use programs along another axis"
    );
    let causal = example("attention_forward_causal_d64_m64");
    for (l, name) in causal.loops().iter().zip(["loop0", "loop1"]) {
        let error = message(coarsening(l, x(3)));
        assert!(
            error.contains(&format!(
                "`scf.for` (line 40 of examples/attention_forward.py): loop `attention_forward.{name}` cannot be shared by programs along x: whether or how often it runs depends on tl.program_id(0); use "
            )),
            "{error}"
        );
        coarsening(l, CtaCoarsening { count: 3, axis: Axis::Y }).unwrap();
    }
}

#[test]
fn programs_part_ways_around_the_loop_too() {
    let body = load("x", "%px") + &store("%i", "%x");
    let inner = |head: &str| format!("{head} {{ {body} }}");
    let compare = "%is = arith.cmpi slt, %px, %n : i32";
    for (kernel, parts) in [
        (kernel("", FOR, &body, ""), false),
        (kernel("", "scf.for %i = %px to %n step %c1 : i32", &body, ""), true),
        (kernel("", "scf.for %i = %c0 to %n step %px : i32", &body, ""), true),
        (kernel("", "scf.for %j = %px to %n step %size : i32", &inner(FOR), ""), true),
        (kernel("", "scf.for %j = %py to %n step %size : i32", &inner(FOR), ""), false),
        (kernel(compare, "scf.if %is", &inner(FOR), ""), true),
        (kernel(compare, "scf.if %true", &inner(FOR), ""), false),
        (kernel(&format!("{compare}\n cf.cond_br %is, ^bb1, ^bb2\n ^bb1:\n tt.return\n ^bb2:"), FOR, &body, ""), true),
        (kernel("cf.cond_br %true, ^bb1, ^bb2\n ^bb1:\n tt.return\n ^bb2:", FOR, &body, ""), false),
    ] {
        let result = coarsening(&kernel.loops()[0], CtaCoarsening { count: 2, axis: Axis::X });
        assert_eq!(matches!(result, Err(Error::ProgramsPartWays { .. })), parts, "{result:?}");
    }
}
