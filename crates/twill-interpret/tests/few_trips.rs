//! A loop that gathers rows: its indices are loaded many iterations ahead, so that the group that loads has many stages. With fewer
//! trips than stages, and with more, it computes what the TTIR says; and its code for few trips is no longer than that for many.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::collections::HashMap;
use std::rc::Rc;
use twill_codegen::ir::{Node, Op, WarpProgram, any, visit};
use twill_graph::SplitMix64;
use twill_interpret::warps::{Choice, Habit};
use twill_interpret::{
    Argument, Arithmetic, Array, Compiled, Data, Launch, Memory, Question, Tile, Tolerance, Way, difference,
    sequential, warps,
};
use twill_machine::{Changes, Machine};
use twill_triton::Kernel;
use twill_triton::mlir::{FloatKind, Type};

/// Rows of `b`, and the pitch of `a`: the depth of 128 iterations.
const ROWS: usize = 2048;

/// For a machine whose latencies are this many times those of an H100: the longer, the more stages.
fn compiled(latencies: f64) -> Compiled {
    let changes = Changes { latencies: Some(latencies), ..Changes::default() };
    let text = Machine::load("h100").unwrap().changed("h100", &changes);
    let machine = twill_machine::check(&text, "changed.toml").unwrap();
    let question = Question::new(&machine, 60_000);
    Compiled::new(include_str!("kernels/indexed_rows.ttir"), &question).unwrap()
}

fn program(compiled: &Compiled, way: Way) -> WarpProgram {
    let program = twill_codegen::check(compiled.program(way).unwrap()).unwrap().into_inner();
    assert_eq!(program.to_string().parse::<WarpProgram>().unwrap(), program);
    program
}

/// A call with numbers of which all products and sums are exact.
fn call(trips: i64) -> (Launch, Memory) {
    let mut random = SplitMix64::new(trips as u64);
    let mut number = |bound: f64| (random.unit() * bound).floor();
    let f16 = Type::Float(FloatKind::F16);
    let arrays = [
        ("a", f16.clone(), Data::Floats((0..64 * ROWS).map(|_| number(9.0) - 4.0).collect())),
        ("b", f16, Data::Floats((0..ROWS * 16).map(|_| number(9.0) - 4.0).collect())),
        ("places", Type::Integer(32), Data::Integers((0..ROWS).map(|_| number(ROWS as f64) as i64).collect())),
        ("out", Type::Float(FloatKind::F32), Data::Floats(vec![7.0; 64 * 16])),
    ];
    let mut arguments = HashMap::from([("n".to_owned(), Argument::Scalar(Rc::new(Tile::integer(trips))))]);
    let mut memory = Memory::default();
    for (k, (name, element, data)) in arrays.into_iter().enumerate() {
        arguments.insert(name.to_owned(), Argument::Scalar(Rc::new(Tile::pointer(k))));
        memory.arrays.push(Array { name: name.into(), element, data });
    }
    (Launch { arguments, grid: [1, 1, 1], arithmetic: Arithmetic::Rounded }, memory)
}

fn agrees(kernel: &Kernel, program: &WarpProgram, trips: i64) {
    let (launch, before) = call(trips);
    let mut expected = before.clone();
    sequential::run(kernel, &launch, &mut expected).unwrap();
    for habit in Habit::ALL {
        let mut found = before.clone();
        let run = warps::run(program, &launch, 1, &mut found, &mut Choice::new(habit, 5));
        run.unwrap_or_else(|fault| panic!("{trips} trips, {habit:?}: {fault}"));
        assert_eq!(difference(&expected, &found, Tolerance::Exact), None, "{trips} trips, {habit:?}");
    }
}

/// The code of the group that loads: stages before the last, code for as many trips or more, and code for fewer.
fn of_loads(program: &WarpProgram) -> (u32, &[Node], Vec<&Node>) {
    let is_mma = |op: &Op| matches!(op, Op::Wgmma { .. });
    let loads = program.groups.iter().find(|group| !any(&group.body, is_mma)).unwrap();
    let switch = loads.body.iter().find_map(|node| match node {
        Node::TripSwitch { at_least, then, .. } => {
            let few = node.blocks().into_iter().skip(1).flatten().collect();
            Some((*at_least, then.as_slice(), few))
        }
        _ => None,
    });
    switch.unwrap()
}

/// Operations but for new names.
fn operations(nodes: &[Node]) -> usize {
    let mut count = 0;
    visit(nodes, &mut |op| count += usize::from(!matches!(op, Op::CopyCursor { .. } | Op::Copy { .. })));
    count
}

#[test]
fn few_trips_compute_what_many_do() {
    for (latencies, ring_depth, persistent) in [(0.1, 1, true), (0.3, 2, true), (0.3, 12, false), (1.0, 2, false)] {
        let compiled = compiled(latencies);
        let program = program(&compiled, Way { ring_depth, persistent, ..Way::default() });
        let (stages, ..) = of_loads(&program);
        for trips in 0..=i64::from(stages) + 3 {
            agrees(compiled.kernel(), &program, trips);
        }
    }
}

#[test]
fn their_code_is_no_longer_than_that_of_many() {
    let of = |latencies: f64| {
        let program = program(&compiled(latencies), Way::default());
        let (stages, many, few) = of_loads(&program);
        let few: usize = few.into_iter().map(|node| operations(std::slice::from_ref(node))).sum();
        assert!(few <= 2 * operations(many), "{stages} stages: {few} operations, and {} of many", operations(many));
        stages
    };
    let stages: Vec<u32> = [0.1, 0.3, 1.0].map(of).to_vec();
    assert!(stages.is_sorted() && stages[0] < 8 && stages[2] > 40, "{stages:?}");
}
