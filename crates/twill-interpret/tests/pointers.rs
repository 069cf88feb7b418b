//! Pipelined loops that load through pointers, multiply small tiles or other elements, and go through parts of a tile: what their
//! warp programs compute is what the TTIR says, bit by bit, in any order of the groups.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::collections::HashMap;
use std::rc::Rc;
use twill_codegen::GroupShares;
use twill_codegen::in_order::RunsAhead;
use twill_codegen::ir::{Arrival, Op, WarpProgram, visit};
use twill_graph::SplitMix64;
use twill_interpret::warps::{Choice, Habit};
use twill_interpret::{
    Argument, Arithmetic, Array, Compiled, Data, Launch, Memory, Question, Tile, Tolerance, Way, difference,
    sequential, warps,
};
use twill_triton::kernel::find;
use twill_triton::mlir::{FloatKind, Module, Type};

const AHEAD: RunsAhead = RunsAhead { ring_bytes: 192 << 10, stages: None };

/// The text of a kernel of `examples/fixtures`, by its folder and name; `pointers/right` is `pointers/around` with both operands
/// of its loop exchanged. Without `boxes` pointers lie at multiples of 8 bytes, so that TMA can copy nothing.
fn text(name: &str, boxes: bool) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fixtures");
    let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}.ttir")).unwrap();
    let text = match name {
        "pointers/right" => read("pointers/around").replace("tt.dot %left_12, %y_25,", "tt.dot %y_25, %left_12,"),
        _ => read(name),
    };
    let pointers = ["f16", "i8"].map(|element| format!("!tt.ptr<{element}> {{tt.divisibility = "));
    match boxes {
        true => text,
        false => {
            pointers.iter().fold(text, |text, pointer| text.replace(&format!("{pointer}16"), &format!("{pointer}8")))
        }
    }
}

const ELEMENTS: usize = 64 * 64 * 16;

/// A call of such a kernel, with numbers of which all products and sums are exact.
fn call(is_bytes: bool, n: i64) -> (Launch, Memory) {
    let mut random = SplitMix64::new(n as u64);
    // In `loops/branching` the compiler names the number of iterations by what it becomes.
    let scalars = [("n", n), ("last", n), ("stride", 3)]
        .map(|(name, value)| (name, Argument::Scalar(Rc::new(Tile::integer(value)))));
    let mut arguments: HashMap<String, Argument> = scalars.into_iter().map(|(name, a)| (name.to_owned(), a)).collect();
    let mut memory = Memory::default();
    for (k, name) in ["x_ptr", "y_ptr", "out_ptr"].into_iter().enumerate() {
        let mut number = || ((random.unit() * 2.0 - 1.0) * 4.0).round();
        let (element, data) = match k {
            0 | 1 if is_bytes => (Type::Integer(8), Data::Integers((0..ELEMENTS).map(|_| number() as i64).collect())),
            2 => (Type::Float(FloatKind::F16), Data::Floats(vec![7.0; 4 * 64 * 64 + 8])),
            _ => (Type::Float(FloatKind::F16), Data::Floats((0..ELEMENTS).map(|_| number() / 4.0).collect())),
        };
        memory.arrays.push(Array { name: name.into(), element, data });
        arguments.insert(name.into(), Argument::Scalar(Rc::new(Tile::pointer(k))));
    }
    (Launch { arguments, grid: [1, 1, 1], arithmetic: Arithmetic::Rounded }, memory)
}

/// The kernel with schedules of its loops.
fn scheduled(name: &str, boxes: bool) -> Compiled {
    let machine = twill_machine::Machine::load("h100").unwrap();
    Compiled::new(&text(name, boxes), &Question::new(&machine, 60_000)).unwrap()
}

/// The kernel's program, and how many asynchronous copies and multiplications of each kind it has.
fn program(name: &str, compiled: &Compiled, way: Way) -> (WarpProgram, [usize; 4]) {
    let program = compiled.program(way).unwrap();
    assert_eq!(program.to_string().parse::<WarpProgram>().unwrap(), program);
    let [mut copies, mut stores, mut wgmmas, mut others] = [0; 4];
    for group in &program.groups {
        visit(&group.body, &mut |op| match op {
            Op::CpAsync { elements, .. } => {
                assert!(*elements > 1, "{name}: neighbours at once");
                copies += 1;
            }
            Op::TmaLoad { .. } => copies += 1,
            Op::LocalStore { .. } => stores += 1,
            Op::Wgmma { .. } => wgmmas += 1,
            Op::Opaque { .. } => others += 1,
            _ => {}
        });
    }
    (twill_codegen::check(program).unwrap().into_inner(), [copies, stores, wgmmas, others])
}

#[test]
fn loops_through_pointers_compute_what_they_say() {
    // Whether there are copies by `cp.async` or TMA, stores to shared memory, MMAs by `wgmma` and others.
    for (name, has) in [
        ("pointers/turned", [true, false, true, false]),
        ("pointers/strided", [false, true, true, false]),
        ("pointers/small", [true, false, false, true]),
        ("pointers/bytes", [true, false, true, false]),
        ("pointers/parts", [true, false, true, false]),
        ("pointers/around", [true, false, true, true]),
        ("pointers/held", [true, false, true, false]),
        ("pointers/looked_up", [true, true, true, false]),
        ("pointers/rounded", [true, true, true, false]),
        ("pointers/several", [true, false, true, false]),
        ("pointers/bounded", [true, false, true, false]),
        ("pointers/mixed", [true, false, true, false]),
        ("pointers/carried_on", [true, false, true, false]),
        ("loops/persistent", [true, false, true, false]),
        ("loops/carrying", [true, false, true, false]),
        ("loops/deep", [true, false, true, false]),
        ("loops/returning", [true, false, true, false]),
        ("loops/clearing", [true, false, true, false]),
        ("loops/dependent", [true, false, true, false]),
        ("loops/chosen", [true, false, true, false]),
        ("loops/adding", [true, false, true, false]),
        ("loops/recurrent", [true, false, true, false]),
        ("loops/multiplying", [true, true, true, false]),
        ("loops/following", [true, true, true, true]),
        ("loops/scaled", [true, true, true, false]),
        ("loops/branching", [true, false, true, true]),
        ("loops/grouped", [true, false, true, false]),
        ("loops/filled", [true, false, true, false]),
        ("loops/counting", [true, false, true, false]),
        ("loops/dividing", [true, false, true, false]),
        ("loops/chained", [true, true, true, true]),
        ("loops/leaving", [true, false, true, false]),
        ("loops/ending", [true, false, true, false]),
        ("pointers/nearest", [true, true, true, true]),
        ("pointers/halves", [true, false, true, true]),
        ("pointers/precise", [true, true, false, true]),
        // It is computed before the loop, and stored once.
        ("pointers/right", [true, true, true, true]),
    ] {
        let module = twill_triton::mlir::parse(&text(name, true), name).unwrap();
        let ways = [(1, false), (3, false), (2, true)];
        let both = [false, true].map(|boxes| (boxes, scheduled(name, boxes)));
        let each = both.iter().flat_map(|one| ways.map(|way| (one, way)));
        for ((boxes, compiled), (ring_depth, operands_in_memory)) in each {
            let way = Way {
                ring_depth,
                // What saves registers.
                shares: GroupShares {
                    operands_in_memory,
                    fresh_addresses: operands_in_memory,
                    ..GroupShares::default()
                },
                ..plain()
            };
            let (program, counts) = program(name, compiled, way);
            let [copies, stores, wgmmas, others] = has;
            let stores = match operands_in_memory || *boxes {
                // What TMA stores lies in shared memory first.
                true => name == "pointers/around" || counts[1] > 0,
                false => stores,
            };
            let found = counts.map(|count| count > 0);
            assert_eq!(found, [copies, stores, wgmmas, others], "{name}, {boxes}: {counts:?}");
            computes_what_it_says(name, &module, &program, &[1, 2, 3, 7]);
        }
        // Where no group only loads, the threads that compute load ahead.
        let function = find(&module, None).unwrap();
        // What inline PTX computes is not known here.
        if module.walk(function).any(|id| module.operation(id).name == "tt.elementwise_inline_asm") {
            continue;
        }
        let program = twill_codegen::in_order::lower(&module, function, None, Some(AHEAD)).unwrap();
        computes_what_it_says(name, &module, &twill_codegen::check(program).unwrap().into_inner(), &[1, 2, 7]);
    }
}

fn computes_what_it_says(name: &str, module: &Module, program: &WarpProgram, lengths: &[i64]) {
    for &n in lengths {
        let (launch, before) = call(name == "pointers/bytes", n);
        let mut expected = before.clone();
        sequential::run_function(module, find(module, None).unwrap(), &launch, &mut expected).unwrap();
        let returns = name == "loops/returning" && n == 2;
        let writes = difference(&before, &expected, Tolerance::Exact).is_some();
        assert_eq!(writes, !returns, "{name} writes something");
        for habit in Habit::ALL {
            let mut found = before.clone();
            warps::run(program, &launch, 1, &mut found, &mut Choice::new(habit, 5)).unwrap();
            assert_eq!(difference(&expected, &found, Tolerance::Exact), None, "{name}, n = {n}, {habit:?}");
        }
    }
}

/// A block that several lead to is written for each: its loop has values of its own each time.
#[test]
fn a_loop_that_is_written_twice_loads_ahead_each_time() {
    for name in ["pointers/looked_up", "pointers/small", "pointers/gathered"] {
        let text = text(name, true);
        let at = text.lines().position(|line| line.contains("scf.for")).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        let branch =
            ["    %written_twice = arith.constant false", "    cf.cond_br %written_twice, ^bb1, ^bb1", "  ^bb1:"];
        lines.splice(at..at, branch);
        let module = twill_triton::mlir::parse(&lines.join("\n"), name).unwrap();
        let function = find(&module, None).unwrap();
        let program = twill_codegen::in_order::lower(&module, function, None, Some(AHEAD)).unwrap();
        let mut copies = 0;
        visit(&program.groups[0].body, &mut |op| copies += usize::from(matches!(op, Op::CpAsync { .. })));
        assert!(copies > 0, "{name}");
        computes_what_it_says(name, &module, &twill_codegen::check(program).unwrap().into_inner(), &[1, 2, 7]);
    }
}

fn plain() -> Way {
    Way { ring_depth: 3, ..Way::default() }
}

#[test]
fn what_threads_copied_is_fenced_where_the_barrier_is_that_of_a_tma_load() {
    let (program, _) = program("pointers/mixed", &scheduled("pointers/mixed", true), plain());
    let is_mixed = |number: usize| {
        let arrivals = &program.barriers[number].arrivals;
        arrivals.contains(&Arrival::Unit) && arrivals.iter().any(|one| matches!(one, Arrival::EachThread { .. }))
    };
    let mut mmas = 0;
    for group in &program.groups {
        let mut is_fenced = true;
        visit(&group.body, &mut |op| match op {
            Op::MbarrierWait { barrier, previous: false, .. } if is_mixed(barrier.index()) => is_fenced = false,
            Op::FenceProxyAsync => is_fenced = true,
            Op::Wgmma { .. } => {
                mmas += 1;
                assert!(is_fenced, "{}", group.name);
            }
            _ => {}
        });
    }
    assert!(mmas > 0);
    assert!((0..program.barriers.len()).any(is_mixed), "they share one");
}

#[test]
fn all_stores_are_fenced_and_a_fence_is_before_each_mma_where_that_is_asked_for() {
    for name in ["loops/chained", "loops/following", "pointers/rounded"] {
        let shares = GroupShares { fenced_stores: true, ..GroupShares::default() };
        let (program, _) = program(name, &scheduled(name, true), Way { shares, ..plain() });
        let mut mmas = 0;
        for group in &program.groups {
            let mut is_fenced = false;
            visit(&group.body, &mut |op| match op {
                Op::FenceProxyAsync => is_fenced = true,
                Op::Wgmma { .. } => {
                    mmas += 1;
                    assert!(is_fenced, "{name}: {}", group.name);
                }
                _ => is_fenced = false,
            });
        }
        assert!(mmas > 0, "{name}");
    }
}

#[test]
fn tiles_between_unknown_bounds_are_copied_in_one_where_they_are_whole() {
    let wholes = |boxes: bool| {
        let (program, _) = program("pointers/bounded", &scheduled("pointers/bounded", boxes), plain());
        let mut wholes = 0;
        for group in &program.groups {
            visit(&group.body, &mut |op| wholes += usize::from(matches!(op, Op::CpAsync { whole: Some(_), .. })));
        }
        wholes
    };
    assert!(wholes(true) > 0);
    assert_eq!(wholes(false), 0, "pointers that are no multiples of 16 bytes");
}
