//! Kernels that are executed in order: their warp programs compute what their TTIR says, bit by bit.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod common;

use common::{Call, example};
use std::collections::HashMap;
use std::rc::Rc;
use twill_codegen::Error;
use twill_codegen::in_order::{RunsAhead, lower};
use twill_codegen::ir::{CursorId, Node, Note, Op, WarpProgram};
use twill_graph::SplitMix64;
use twill_interpret::warps::{Choice, Habit};
use twill_interpret::{
    Argument, Arithmetic, Array, Data, Launch, Memory, Tile, Tolerance, difference, sequential, warps,
};
use twill_triton::kernel::find;
use twill_triton::mlir::{FloatKind, Module, Type};

/// The kernel's programs, without and with loads that run ahead: their form checked, their text read back.
fn programs(module: &Module) -> [WarpProgram; 2] {
    let ahead = RunsAhead { ring_bytes: 192 << 10, stages: None };
    [None, Some(ahead)].map(|ahead| {
        let program = lower(module, find(module, None).unwrap(), None, ahead).unwrap();
        assert_eq!(twill_codegen::verify::well_formed(&program), Ok(()));
        assert_eq!(program.to_string().parse::<WarpProgram>().unwrap(), program);
        twill_codegen::check(program).unwrap().into_inner()
    })
}

fn agree(name: &str, programs: &[WarpProgram], launch: &Launch, before: &Memory, expected: &Memory) {
    for (program, habit) in programs.iter().flat_map(|program| Habit::ALL.map(|habit| (program, habit))) {
        let mut found = before.clone();
        warps::run(program, launch, 1, &mut found, &mut Choice::new(habit, 0)).unwrap();
        assert_eq!(difference(expected, &found, Tolerance::Exact), None, "{name}");
        assert!(difference(before, &found, Tolerance::Exact).is_some(), "{name} writes something");
    }
}

#[test]
fn examples() {
    for name in ["gemm_tma", "gemm_pointers", "swiglu", "attention_forward_causal_d64", "attention_backward_d64"] {
        let kernel = twill_triton::read(&example(name), name).unwrap();
        let programs = programs(kernel.module());
        let call = Call::new(&kernel, 2, 7);
        let mut expected = call.memory.clone();
        sequential::run(&kernel, &call.launch, &mut expected).unwrap();
        agree(name, &programs, &call.launch, &call.memory, &expected);
    }
}

/// A call of a kernel of `fixtures/in_order`: numbers in tiles of 16 × 16.
fn call(n: i64, programs: u32, seed: u64) -> (Launch, Memory) {
    let mut random = SplitMix64::new(seed);
    let mut arguments = HashMap::from([("n".to_owned(), Argument::Scalar(Rc::new(Tile::integer(n))))]);
    let mut memory = Memory::default();
    for (k, name) in ["x_ptr", "y_ptr", "out_ptr"].into_iter().enumerate() {
        let mut number = || ((random.unit() * 2.0 - 1.0) * 64.0).round() / 64.0;
        let data = (0..16 * 256).map(|_| if k < 2 { number() } else { 7.0 }).collect();
        memory.arrays.push(Array { name: name.into(), element: Type::Float(FloatKind::F16), data: Data::Floats(data) });
        arguments.insert(name.into(), Argument::Scalar(Rc::new(Tile::pointer(k))));
    }
    (Launch { arguments, grid: [programs, 1, 1], arithmetic: Arithmetic::Rounded }, memory)
}

#[test]
fn control_flow() {
    for name in ["early_return", "nested", "successive", "while_loop", "regions", "flattened", "viewed", "scanned"] {
        let module = twill_triton::mlir::parse(&example(&format!("fixtures/in_order/{name}")), name).unwrap();
        let programs = programs(&module);
        for n in [1, 2, 3, 5] {
            let (launch, before) = call(n, 4, n as u64);
            let mut expected = before.clone();
            sequential::run_function(&module, find(&module, None).unwrap(), &launch, &mut expected).unwrap();
            agree(&format!("{name}, n = {n}"), &programs, &launch, &before, &expected);
        }
    }
}

/// The operations of a loop that runs ahead, and what surrounds them, in the order of the text.
fn changed(program: &WarpProgram, change: &mut dyn FnMut(&mut Vec<Node>)) -> WarpProgram {
    fn walk(nodes: &mut Vec<Node>, change: &mut dyn FnMut(&mut Vec<Node>)) {
        change(nodes);
        for node in nodes {
            node.blocks_mut().into_iter().for_each(|block| walk(block, change));
        }
    }
    let mut program = program.clone();
    walk(&mut program.groups[0].body, change);
    program
}

#[test]
fn mistakes_in_rings_that_a_group_fills_itself_are_found() {
    let kernel = twill_triton::read(&example("gemm_pointers"), "gemm_pointers").unwrap();
    let [_, program] = programs(kernel.module());
    let is_wait = |node: &Node| matches!(node, Node::Op(Op::CpAsyncWait(_), _));
    let in_loop =
        |nodes: &[Node]| nodes.iter().any(|n| matches!(n, Node::Op(Op::AdvanceCursor(at), _) if at.index() == 1));
    type Change<'c> = (&'c str, &'c mut dyn FnMut(&mut Vec<Node>));
    let mistakes: [Change<'_>; 5] = [
        ("no wait", &mut |nodes| {
            if in_loop(nodes) {
                nodes.retain(|node| !is_wait(node));
            }
        }),
        ("a wait for too few", &mut |nodes| {
            for node in nodes {
                if let Node::Op(Op::CpAsyncWait(pending), _) = node {
                    *pending += 1;
                }
            }
        }),
        ("the same slot again", &mut |nodes| {
            if in_loop(nodes) {
                nodes.pop();
            }
        }),
        ("a slot that is still read", &mut |nodes| {
            if in_loop(nodes)
                && let Some(at) = nodes.iter().position(|n| matches!(n, Node::Op(Op::CpAsync { .. }, _)))
            {
                nodes.insert(at, Node::Op(Op::AdvanceCursor(CursorId::at(0)), Note::default()));
            }
        }),
        ("copies that nobody waits for", &mut |nodes| {
            if !in_loop(nodes) {
                nodes.retain(|node| !is_wait(node));
            }
        }),
    ];
    for (what, change) in mistakes {
        let planted = changed(&program, change);
        assert_ne!(planted, program, "{what}");
        assert!(matches!(twill_codegen::check(planted), Err(Error::Protocol { .. })), "{what}");
    }
}

#[test]
fn loops_one_after_the_other_share_rings() {
    let module = twill_triton::mlir::parse(&example("fixtures/in_order/successive"), "successive").unwrap();
    let [_, program] = programs(&module);
    // The first loop loads two tiles in an iteration, the second three.
    assert_eq!(program.buffers.len(), 3);
    let copies = program.to_string().matches("cp_async ").count();
    assert!(copies > program.buffers.len(), "{copies} copies");
    // Two cursors of the first loop, two of the second: what is read by a cursor of the other is not what was copied for it.
    let mistaken = changed(&program, &mut |nodes| {
        for node in nodes {
            if let Node::Op(Op::AdvanceCursor(at), _) = node
                && at.index() == 3
            {
                *at = CursorId::at(1);
            }
        }
    });
    assert_ne!(mistaken, program);
    assert!(matches!(twill_codegen::check(mistaken), Err(Error::Protocol { .. })));
    // Slots of a ring are as many as its longest loop needs.
    let mut short = program;
    short.buffers.iter_mut().for_each(|buffer| (buffer.slots, buffer.least_slots) = (1, 1));
    assert!(twill_codegen::check(short).is_err());
}

/// What the kernels of `fixtures/in_order` must compute where it is told without an interpreter.
#[test]
fn an_early_return_writes_nothing() {
    let module = twill_triton::mlir::parse(&example("fixtures/in_order/early_return"), "early_return").unwrap();
    let [program, _] = programs(&module);
    let (launch, before) = call(2, 4, 1);
    let mut found = before.clone();
    warps::run(&program, &launch, 1, &mut found, &mut Choice::new(Habit::Priorities, 0)).unwrap();
    let Data::Floats(out) = &found.arrays[2].data else { panic!("numbers") };
    assert!(out[..512].iter().any(|x| *x != 7.0) && out[512..].iter().all(|x| *x == 7.0));
}

/// Programs that return early, in every group, and branches in and after loops: their schedules are realised.
#[test]
fn early_returns_and_branches_of_pipelined_kernels() {
    use twill_interpret::{Compiled, Question, Way};
    let machine = twill_machine::Machine::load("h200").unwrap();
    for name in ["product_returning", "product_guarded", "product_branching"] {
        let (limits, branching) = (name == "product_returning", name == "product_branching");
        let compiled = Compiled::new(&example(&format!("fixtures/{name}")), &Question::new(&machine, 60_000)).unwrap();
        // A persistent CTA goes on with its next tile where a program returns.
        let [program, persistent] = [false, true].map(|persistent| {
            let way = Way { persistent, pingpong: persistent, ..Way::default() };
            twill_codegen::check(compiled.program(way).unwrap()).unwrap().into_inner()
        });

        let mut random = SplitMix64::new(3);
        let (mut memory, mut arguments) = (Memory::default(), HashMap::new());
        let depth = 192;
        for (k, (tensor, columns)) in [("a_desc", depth), ("b_desc", depth), ("c_desc", 256)].into_iter().enumerate() {
            let mut number = || ((random.unit() * 2.0 - 1.0) * 16.0).round() / 16.0;
            let data = (0..256 * columns).map(|_| if k < 2 { number() } else { 7.0 }).collect();
            let element = Type::Float(FloatKind::F16);
            memory.arrays.push(Array { name: tensor.into(), element, data: Data::Floats(data) });
            let tensor_of =
                twill_interpret::Tensor { array: k, first: 0, extents: vec![256, columns], strides: vec![columns, 1] };
            arguments.insert(tensor.to_owned(), Argument::Tensor(tensor_of));
        }
        if limits {
            let data = Data::Integers(vec![256, 128, 256, 256]);
            memory.arrays.push(Array { name: "limits_ptr".into(), element: Type::Integer(32), data });
            arguments.insert("limits_ptr".into(), Argument::Scalar(Rc::new(Tile::pointer(3))));
        }
        for pointer in ["bias_ptr", "counts_ptr"].into_iter().filter(|_| branching) {
            let data = (0..512).map(|k| f64::from(k % 7) * 0.25 - 1.0).collect();
            let array = Array { name: pointer.into(), element: Type::Float(FloatKind::F32), data: Data::Floats(data) };
            memory.arrays.push(array);
            arguments.insert(pointer.into(), Argument::Scalar(Rc::new(Tile::pointer(memory.arrays.len() - 1))));
        }
        arguments.insert("K".into(), Argument::Scalar(Rc::new(Tile::integer(depth))));
        arguments.insert("M".into(), Argument::Scalar(Rc::new(Tile::integer(200))));
        let launch = Launch { arguments, grid: [if branching { 2 } else { 3 }, 2, 1], arithmetic: Arithmetic::Rounded };
        let mut expected = memory.clone();
        sequential::run(compiled.kernel(), &launch, &mut expected).unwrap();
        let Data::Floats(c) = &expected.arrays[2].data else { panic!("numbers") };
        let written = c.iter().filter(|x| **x != 7.0).count();
        assert!(written > 256 * 100 && (!limits || c[128 * 256 + 128..128 * 256 + 256].iter().all(|x| *x == 7.0)));
        let runs = [(&program, 1), (&persistent, 1), (&persistent, 2)];
        for (habit, (program, ctas)) in Habit::ALL.into_iter().flat_map(|habit| runs.map(|run| (habit, run))) {
            let mut found = memory.clone();
            warps::run(program, &launch, ctas, &mut found, &mut Choice::new(habit, 5)).unwrap();
            assert_eq!(difference(&expected, &found, Tolerance::Exact), None, "{name}, {ctas} CTAs, {habit:?}");
        }

        if branching {
            let Data::Floats(counts) = &expected.arrays[4].data else { panic!("numbers") };
            let Data::Floats(before) = &memory.arrays[4].data else { panic!("numbers") };
            assert!(counts[3] == before[3] && counts[4] != before[4], "the mask of the source and the branch");
            continue;
        }
        // A group that does not return, or on another condition, waits for ever: it is not proved.
        let mut planted = program.clone();
        let last = planted.groups.len() - 1;
        let body = &mut planted.groups[last].body;
        let Some(Node::If { condition, .. }) = body.iter_mut().find(|n| matches!(n, Node::If { .. })) else {
            panic!("{name}: no early return")
        };
        *condition =
            twill_codegen::ir::Expression { kind: twill_codegen::ir::ExpressionKind::Integer(1), ..condition.clone() };
        assert!(twill_codegen::check(planted).is_err(), "{name}: another condition");
    }
}

/// A ticket for each program, a lock that the first one takes, and addresses that go through integers.
const TICKETS: &str = r#"module {
  tt.func public @tickets(%n_ptr: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out_ptr: !tt.ptr<i32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %true = arith.constant true
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i64
    %c5 = arith.constant 5 : i32
    %pid = tt.get_program_id x : i32
    %ticket = tt.atomic_rmw add, acq_rel, gpu, %n_ptr, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
    %lock_ptr = tt.addptr %n_ptr, %c1 : !tt.ptr<i32>, i32
    %mine = arith.addi %pid, %c5 : i32
    %before = tt.atomic_cas acq_rel, gpu, %lock_ptr, %c0, %mine : (!tt.ptr<i32>, i32, i32) -> i32
    %sum = arith.addi %ticket, %before : i32
    %address = tt.ptr_to_int %out_ptr : !tt.ptr<i32> -> i64
    %wide = arith.extsi %pid : i32 to i64
    %offset = arith.muli %wide, %c4 : i64
    %at = arith.addi %address, %offset : i64
    %to = tt.int_to_ptr %at : i64 -> !tt.ptr<i32>
    tt.store %to, %sum : !tt.ptr<i32>
    tt.return
  }
}
"#;

#[test]
fn atomic_operations_say_what_was_there_and_addresses_are_integers() {
    let module = twill_triton::mlir::parse(TICKETS, "tickets").unwrap();
    let memory = |counts: [i64; 2], out: [i64; 3]| {
        let array = |name: &str, data: &[i64]| Array {
            name: name.into(),
            element: Type::Integer(32),
            data: Data::Integers(data.to_vec()),
        };
        Memory { arrays: vec![array("n_ptr", &counts), array("out_ptr", &out)], ..Memory::default() }
    };
    let pointer = |array| Argument::Scalar(Rc::new(Tile::pointer(array)));
    let arguments = HashMap::from([("n_ptr".to_owned(), pointer(0)), ("out_ptr".to_owned(), pointer(1))]);
    let launch = Launch { arguments, grid: [3, 1, 1], arithmetic: Arithmetic::Rounded };
    let (before, expected) = (memory([0, 0], [-1; 3]), memory([3, 5], [0, 1 + 5, 2 + 5]));
    let mut found = before.clone();
    sequential::run_function(&module, find(&module, None).unwrap(), &launch, &mut found).unwrap();
    assert_eq!(difference(&expected, &found, Tolerance::Exact), None);
    agree("tickets", &programs(&module), &launch, &before, &expected);
}
