//! Operations that stand for several others compute what they say: by the TTIR, and by what is generated of its schedule.

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

/// An example and its text.
fn example(name: &str) -> (String, Kernel) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let text = std::fs::read_to_string(path.with_extension("ttir")).unwrap();
    let kernel = Kernel::new(twill_triton::mlir::parse(&text, name).unwrap(), None).unwrap();
    (text, kernel)
}

/// What is generated of a kernel's schedule leaves in memory what its TTIR left there.
fn same_by_warps(text: &str, launch: &Launch, mut memory: Memory, expected: &Memory) {
    let machine = Machine::load("h200").unwrap();
    let assignment = WarpAssignment::BySubTile;
    let question = Question { machine: &machine, lowering: Options::default(), assignment, work: 60_000 };
    let compiled = Compiled::new(text, &question).unwrap_or_else(|refusal| panic!("{refusal}"));
    let program = compiled.program(Way { ring_depth: 1, ..Way::default() }).unwrap();
    warps::run(&program, launch, 1, &mut memory, &mut Choice::new(Habit::Priorities, 0)).unwrap();
    assert_eq!(difference(expected, &memory, tolerance(&program)), None);
}

const ROWS: usize = 128;
const BLOCK: usize = 32;

/// The number that 4 bits are: a sign, two of the exponent with a bias of 1, one of the mantissa.
fn e2m1(bits: u8) -> f64 {
    let magnitude = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][usize::from(bits & 7)];
    if bits & 8 == 0 { magnitude } else { -magnitude }
}

/// 255 is no number.
fn e8m0(bits: u8) -> f64 {
    if bits == 255 { f64::NAN } else { 2_f64.powi(i32::from(bits) - 127) }
}

struct Operand {
    numbers: Vec<f64>,
    scales: Vec<u8>,
}

impl Operand {
    fn at(&self, row: usize, k: usize, depth: usize) -> f64 {
        self.numbers[row * depth + k] * e8m0(self.scales[(row * depth + k) / BLOCK])
    }
}

/// Runs an example on operands of 128 rows, and compares each number of its result.
fn computes(name: &str, depth: usize, scales: [u8; 2], mut own: impl FnMut(&mut Operand)) {
    let (text, kernel) = example(name);
    let mut random = SplitMix64::new(7);
    let packed = name.contains("mxfp4");
    let [mut a, b] = [false, packed].map(|is_packed| {
        let number = |random: &mut SplitMix64| match is_packed {
            true => f64::from(u8::try_from(random.below(16)).unwrap()),
            // e4m3 has these.
            false => (random.below(17) as f64 - 8.0) / 8.0,
        };
        let numbers = (0..ROWS * depth).map(|_| number(&mut random)).collect();
        let span = u64::from(scales[1] - scales[0]);
        let scale = |random: &mut SplitMix64| scales[0] + u8::try_from(random.below(span + 1)).unwrap();
        Operand { numbers, scales: (0..ROWS * depth / BLOCK).map(|_| scale(&mut random)).collect() }
    });
    own(&mut a);
    let signed = |bytes: &[u8]| bytes.iter().map(|byte| i64::from(byte.cast_signed())).collect::<Vec<_>>();
    let floats = |operand: &Operand| (Type::Float(FloatKind::F8E4M3FN), Data::Floats(operand.numbers.clone()));
    let nibbles: Vec<u8> = b.numbers.iter().map(|x| *x as u8).collect();
    let pairs: Vec<u8> = nibbles.chunks(2).map(|pair| pair[0] | pair.get(1).unwrap() << 4).collect();
    let of_b = if packed { (Type::Integer(8), Data::Integers(signed(&pairs))) } else { floats(&b) };
    let mut memory = Memory::default();
    let mut launch = Launch { arguments: HashMap::new(), grid: [1, 1, 1], arithmetic: Arithmetic::Double };
    let of_scales = |operand: &Operand| (Type::Integer(8), Data::Integers(signed(&operand.scales)));
    let result = (Type::Float(FloatKind::F32), Data::Floats(vec![0.0; ROWS * ROWS]));
    let arrays = [
        ("a_ptr", floats(&a)),
        ("b_ptr", of_b),
        ("c_ptr", result),
        ("a_scale_ptr", of_scales(&a)),
        ("b_scale_ptr", of_scales(&b)),
    ];
    for (name, (element, data)) in arrays {
        launch.arguments.insert(name.into(), Argument::Scalar(Rc::new(Tile::pointer(memory.arrays.len()))));
        memory.arrays.push(Array { name: name.into(), element, data });
    }
    let b_width = if packed { depth / 2 } else { depth };
    let sizes =
        [("M", ROWS), ("N", ROWS), ("K", depth), ("stride_am", depth), ("stride_bn", b_width), ("stride_cm", ROWS)];
    for (name, value) in sizes.into_iter().chain([("stride_as", depth / BLOCK), ("stride_bs", depth / BLOCK)]) {
        launch.arguments.insert(name.into(), Argument::Scalar(Rc::new(Tile::integer(value as i64))));
    }
    let before = memory.clone();
    sequential::run(&kernel, &launch, &mut memory).unwrap();
    same_by_warps(&text, &launch, before, &memory);
    let Data::Floats(found) = &memory.arrays[2].data else { panic!("no floats") };
    let b = if packed { Operand { numbers: nibbles.iter().map(|bits| e2m1(*bits)).collect(), ..b } } else { b };
    for (at, found) in found.iter().enumerate() {
        let (row, column) = (at / ROWS, at % ROWS);
        let expected: f64 = (0..depth).map(|k| a.at(row, k, depth) * b.at(column, k, depth)).sum();
        assert!(
            *found == expected || found.is_nan() && expected.is_nan(),
            "{name} {row} {column}: {found}, {expected}"
        );
    }
}

#[test]
fn bytes_and_nibbles_are_scaled_by_blocks() {
    // Sums of so many numbers of so few bits are exact.
    computes("quantised/gemm_mxfp8", 256, [122, 130], |_| {});
    computes("quantised/gemm_mxfp4", 256, [122, 130], |_| {});
}

#[test]
fn a_scale_of_255_is_no_number() {
    computes("quantised/gemm_mxfp8", 128, [127, 128], |a| a.scales[5] = 255);
    computes("quantised/gemm_mxfp4", 128, [127, 128], |a| a.scales[4 * 127 + 3] = 255);
}

const SIDE: usize = 64;
const DEPTH: usize = 128;
const STEP: usize = 64;
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
    let (text, kernel) = example("fixtures/mapped");
    let mut random = SplitMix64::new(3);
    let mut memory = Memory::default();
    let mut launch = Launch { arguments: HashMap::new(), grid: [1, 1, 1], arithmetic: Arithmetic::Double };
    let mut operand = || (0..SIDE * DEPTH).map(|_| (random.unit() * 64.0 - 32.0).round() / 32.0).collect::<Vec<f64>>();
    let (a, b) = (operand(), operand());
    for (name, numbers) in [("a_desc", &a), ("b_desc", &b)] {
        let array = memory.arrays.len();
        let element = Type::Float(FloatKind::F16);
        memory.arrays.push(Array { name: name.into(), element, data: Data::Floats(numbers.clone()) });
        let extents = vec![SIDE as i64, DEPTH as i64];
        let tensor = Tensor { array, first: 0, extents, strides: vec![DEPTH as i64, 1] };
        launch.arguments.insert(name.into(), Argument::Tensor(tensor));
    }
    for name in ["c_ptr", "d_ptr"] {
        launch.arguments.insert(name.into(), Argument::Scalar(Rc::new(Tile::pointer(memory.arrays.len()))));
        let data = Data::Floats(vec![0.0; SIDE * SIDE]);
        memory.arrays.push(Array { name: name.into(), element: Type::Float(FloatKind::F32), data });
    }
    launch.arguments.insert("slope".into(), Argument::Scalar(Rc::new(Tile::float(SLOPE))));
    launch.arguments.insert("K".into(), Argument::Scalar(Rc::new(Tile::integer(DEPTH as i64))));
    let before = memory.clone();
    sequential::run(&kernel, &launch, &mut memory).unwrap();
    let (Data::Floats(c), Data::Floats(d)) = (&memory.arrays[2].data, &memory.arrays[3].data) else { panic!() };
    let (mut ways, mut expected) = ([0; 3], vec![[0.0; 2]; SIDE * SIDE]);
    for (at, sums) in expected.iter_mut().enumerate() {
        let (row, column) = (at / SIDE * DEPTH, at % SIDE * DEPTH);
        for first in (0..DEPTH).step_by(STEP) {
            let x: f64 = (first..first + STEP).map(|k| a[row + k] * b[column + k]).sum();
            ways[if x > 0.0 { 0 } else { usize::from(x < -4.0) + 1 }] += 1;
            *sums = [sums[0] + selu(x), sums[1] + x * x];
        }
    }
    assert!(ways.iter().all(|count| *count > 100), "{ways:?}");
    for (at, [selu, square]) in expected.iter().enumerate() {
        assert!((c[at] - selu).abs() < 1e-9 && (d[at] - square).abs() < 1e-9, "{at}: {} {}", c[at], d[at]);
    }
    same_by_warps(&text, &launch, before, &memory);
}
