//! Functions of one number that branch, mapped over tiles, compute what they say of each number.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::collections::HashMap;
use std::rc::Rc;
use twill_graph::{SplitMix64, WarpAssignment};
use twill_interpret::warps::{Choice, Habit};
use twill_interpret::{
    Argument, Arithmetic, Array, Compiled, Data, Launch, Memory, Question, Tensor, Tile, Way, difference, sequential,
    tolerance, warps,
};
use twill_machine::Machine;
use twill_triton::mlir::{FloatKind, Type};
use twill_triton::{Kernel, Options};

const ROWS: usize = 64;
const DEPTH: usize = 128;
const BLOCK: usize = 64;
const SLOPE: f64 = 1.5;

fn selu(x: f64) -> f64 {
    if x > 0.0 {
        x
    } else if x < -4.0 {
        -SLOPE
    } else {
        SLOPE * (x.exp() - 1.0)
    }
}

#[test]
fn both_ways_of_a_branch_are_taken_and_one_is_selected() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fixtures/mapped.ttir");
    let text = std::fs::read_to_string(path).unwrap();
    let kernel = Kernel::new(twill_triton::mlir::parse(&text, "mapped").unwrap(), None).unwrap();
    let mut random = SplitMix64::new(3);
    let mut memory = Memory::default();
    let mut launch = Launch { arguments: HashMap::new(), grid: [1, 1, 1], arithmetic: Arithmetic::Double };
    let mut operand = || (0..ROWS * DEPTH).map(|_| (random.unit() * 64.0 - 32.0).round() / 32.0).collect::<Vec<f64>>();
    let (a, b) = (operand(), operand());
    for (name, numbers) in [("a_desc", &a), ("b_desc", &b)] {
        let array = memory.arrays.len();
        let element = Type::Float(FloatKind::F16);
        memory.arrays.push(Array { name: name.into(), element, data: Data::Floats(numbers.clone()) });
        let extents = vec![ROWS as i64, DEPTH as i64];
        let tensor = Tensor { array, first: 0, extents, strides: vec![DEPTH as i64, 1] };
        launch.arguments.insert(name.into(), Argument::Tensor(tensor));
    }
    for name in ["c_ptr", "d_ptr"] {
        launch.arguments.insert(name.into(), Argument::Scalar(Rc::new(Tile::pointer(memory.arrays.len()))));
        let data = Data::Floats(vec![0.0; ROWS * ROWS]);
        memory.arrays.push(Array { name: name.into(), element: Type::Float(FloatKind::F32), data });
    }
    launch.arguments.insert("slope".into(), Argument::Scalar(Rc::new(Tile::float(SLOPE))));
    launch.arguments.insert("K".into(), Argument::Scalar(Rc::new(Tile::integer(DEPTH as i64))));
    let before = memory.clone();
    sequential::run(&kernel, &launch, &mut memory).unwrap();
    let (Data::Floats(c), Data::Floats(d)) = (&memory.arrays[2].data, &memory.arrays[3].data) else { panic!() };
    let (mut ways, mut expected) = ([0; 3], vec![[0.0; 2]; ROWS * ROWS]);
    for (at, sums) in expected.iter_mut().enumerate() {
        let (row, column) = (at / ROWS * DEPTH, at % ROWS * DEPTH);
        for first in (0..DEPTH).step_by(BLOCK) {
            let x: f64 = (first..first + BLOCK).map(|k| a[row + k] * b[column + k]).sum();
            ways[if x > 0.0 { 0 } else { usize::from(x < -4.0) + 1 }] += 1;
            *sums = [sums[0] + selu(x), sums[1] + x * x];
        }
    }
    assert!(ways.iter().all(|count| *count > 100), "{ways:?}");
    for (at, [selu, square]) in expected.iter().enumerate() {
        assert!((c[at] - selu).abs() < 1e-9 && (d[at] - square).abs() < 1e-9, "{at}: {} {}", c[at], d[at]);
    }
    // What is generated of its schedule computes the same.
    let machine = Machine::load("h200").unwrap();
    let assignment = WarpAssignment::BySubTile;
    let question = Question { machine: &machine, lowering: Options::default(), assignment, work: 60_000 };
    let compiled = Compiled::new(&text, &question).unwrap_or_else(|refusal| panic!("{refusal}"));
    let program = compiled.program(Way { ring_depth: 1, ..Way::default() }).unwrap();
    let mut by_warps = before;
    warps::run(&program, &launch, 1, &mut by_warps, &mut Choice::new(Habit::Priorities, 0)).unwrap();
    assert_eq!(difference(&memory, &by_warps, tolerance(&program)), None);
}
