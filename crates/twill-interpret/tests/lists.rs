//! Tiles that begin where numbers in memory say, also before the pointer that the kernel is given.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::HashMap;
use std::rc::Rc;
use twill_codegen::ir::{Op, WarpProgram, visit};
use twill_graph::SplitMix64;
use twill_interpret::warps::{Choice, Habit};
use twill_interpret::{
    Argument, Arithmetic, Array, Compiled, Data, Launch, Memory, Pointer, Question, Tile, Tolerance, Way, difference,
    sequential, tolerance, warps,
};
use twill_triton::kernel::{Kernel, find};
use twill_triton::mlir::{FloatKind, Type};

const LISTED: &str = include_str!("../../../examples/fixtures/loops/listed.ttir");
/// Keys of a block, and numbers of a key.
const KEYS: i64 = 128;
const DIM: i64 = 64;
/// Blocks before the first one, of which a list may name some by negative numbers.
const BEFORE: i64 = 2;

/// A launch of two programs with these lists of blocks.
fn call(lists: [&[i64]; 2]) -> (Launch, Memory) {
    let mut random = SplitMix64::new(7);
    let mut memory = Memory::default();
    let mut arguments = HashMap::new();
    let mut add = |name: &str, element: Type, data: Data, offset: i64| {
        let tile =
            Tile { data: Data::Pointers(vec![Pointer { array: memory.arrays.len(), offset }]), ..Tile::pointer(0) };
        arguments.insert(name.to_owned(), Argument::Scalar(Rc::new(tile)));
        memory.arrays.push(Array { name: name.into(), element, data });
    };
    let f16 = || Type::Float(FloatKind::F16);
    let mut numbers =
        |count: i64| Data::Floats((0..count).map(|_| ((random.unit() - 0.5) * 16.0).round() / 8.0).collect());
    let before = BEFORE * KEYS * DIM;
    add("q_ptr", f16(), numbers(2 * 64 * DIM), 0);
    add("k_ptr", f16(), numbers(before + 4 * KEYS * DIM), before);
    add("v_ptr", f16(), numbers(before + 4 * KEYS * DIM), before);
    add("out_ptr", f16(), Data::Floats(vec![7.0; 2 * 64 * 64]), 0);
    let counts = lists.iter().map(|list| i64::try_from(list.len()).unwrap()).collect();
    add("counts_ptr", Type::Integer(32), Data::Integers(counts), 0);
    let padded = lists.iter().flat_map(|list| list.iter().copied().chain(std::iter::repeat(0)).take(8)).collect();
    add("list_ptr", Type::Integer(32), Data::Integers(padded), 0);
    let scale = Tile { shape: Vec::new(), data: Data::Floats(vec![0.125 * std::f64::consts::LOG2_E]) };
    arguments.insert("scale".into(), Argument::Scalar(Rc::new(scale)));
    (Launch { arguments, grid: [2, 1, 1], arithmetic: Arithmetic::Rounded }, memory)
}

const LISTS: [[&[i64]; 2]; 4] = [[&[0], &[0, 1]], [&[], &[1]], [&[-1, 0], &[3, 0, -2, 1]], [&[2, 1, 0], &[]]];

/// The kernel with zero added to its scores, as `scores = zeros; scores += …` is.
fn with_zero() -> String {
    let scaled = LISTED.lines().find(|line| line.contains("arith.mulf") && line.contains("64x64xf32>")).unwrap();
    let name = scaled.trim().split(' ').next().unwrap();
    let sum =
        "      %nothing = arith.constant dense<0.000000e+00> : tensor<64x64xf32>\n      %added = arith.addf %nothing, ";
    let lines = LISTED.lines().map(|line| match line.contains("arith.select") {
        true => line.replace(&format!("{name},"), "%added,"),
        false if line == scaled => format!("{line}\n{sum}{name} : tensor<64x64xf32>"),
        false => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Scores are scaled after their maximum is taken, and numbers are carried instead of tiles.
#[test]
fn the_kernel_that_is_read_computes_the_same_bits() {
    for text in [LISTED, &with_zero()] {
        is_read_as_it_is(text);
    }
}

fn is_read_as_it_is(text: &str) {
    let module = twill_triton::mlir::parse(text, "listed.ttir").unwrap();
    let kernel = Kernel::new(module.clone(), None).unwrap();
    for lists in LISTS {
        let (launch, before) = call(lists);
        let (mut expected, mut found) = (before.clone(), before);
        sequential::run_function(&module, find(&module, None).unwrap(), &launch, &mut expected).unwrap();
        sequential::run_function(kernel.module(), kernel.function(), &launch, &mut found).unwrap();
        assert_eq!(difference(&expected, &found, Tolerance::Exact), None, "{lists:?}");
    }
}

#[test]
fn blocks_of_a_list_are_copied_by_tma_wherever_they_are() {
    let machine = twill_machine::Machine::load("h100").unwrap();
    let compiled = Compiled::new(LISTED, &Question::new(&machine, 60_000)).unwrap();
    let program = compiled.program(Way { ring_depth: 3, ..Way::default() }).unwrap();
    assert_eq!(program.to_string().parse::<WarpProgram>().unwrap(), program);
    let [mut tma, mut others] = [0; 2];
    for group in &program.groups {
        visit(&group.body, &mut |op| match op {
            Op::TmaLoad { .. } => tma += 1,
            Op::CpAsync { .. } => others += 1,
            _ => {}
        });
    }
    assert!(tma > 0 && others == 0, "{tma} by TMA, {others} others");
    let program = twill_codegen::check(program).unwrap().into_inner();
    let module = twill_triton::mlir::parse(LISTED, "listed.ttir").unwrap();
    for lists in LISTS {
        let (mut launch, before) = call(lists);
        // The sums of rows are added up in another order.
        launch.arithmetic = Arithmetic::Double;
        let mut expected = before.clone();
        sequential::run_function(&module, find(&module, None).unwrap(), &launch, &mut expected).unwrap();
        for habit in Habit::ALL {
            let mut found = before.clone();
            warps::run(&program, &launch, 1, &mut found, &mut Choice::new(habit, 5)).unwrap();
            assert_eq!(difference(&expected, &found, tolerance(&program)), None, "{lists:?}, {habit:?}");
        }
    }
}
