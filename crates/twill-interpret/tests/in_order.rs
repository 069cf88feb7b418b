//! Kernels that are executed in order: their warp programs compute what their TTIR says, bit by bit.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod common;

use common::{Call, example};
use std::collections::HashMap;
use std::rc::Rc;
use twill_codegen::in_order::lower;
use twill_codegen::ir::WarpProgram;
use twill_graph::SplitMix64;
use twill_interpret::warps::{Choice, Habit};
use twill_interpret::{
    Argument, Arithmetic, Array, Data, Launch, Memory, Tile, Tolerance, difference, sequential, warps,
};
use twill_triton::kernel::find;
use twill_triton::mlir::{FloatKind, Module, Type};

/// The kernel's program, its form checked, its text read back.
fn program(module: &Module) -> WarpProgram {
    let program = lower(module, find(module, None).unwrap()).unwrap();
    assert_eq!(twill_codegen::verify::well_formed(&program), Ok(()));
    assert_eq!(program.to_string().parse::<WarpProgram>().unwrap(), program);
    twill_codegen::check(program).unwrap().into_inner()
}

fn agrees(name: &str, program: &WarpProgram, launch: &Launch, before: &Memory, expected: &Memory) {
    let mut found = before.clone();
    warps::run(program, launch, 1, &mut found, &mut Choice::new(Habit::Priorities, 0)).unwrap();
    assert_eq!(difference(expected, &found, Tolerance::Exact), None, "{name}");
    assert!(difference(before, &found, Tolerance::Exact).is_some(), "{name} writes something");
}

#[test]
fn examples() {
    for name in ["gemm_tma", "gemm_pointers", "swiglu", "attention_forward_causal_d64", "attention_backward_d64"] {
        let kernel = twill_triton::read(&example(name), name).unwrap();
        let program = program(kernel.module());
        let call = Call::new(&kernel, 2, 7);
        let mut expected = call.memory.clone();
        sequential::run(&kernel, &call.launch, &mut expected).unwrap();
        agrees(name, &program, &call.launch, &call.memory, &expected);
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
    for name in ["early_return", "nested", "while_loop", "regions"] {
        let module = twill_triton::mlir::parse(&example(&format!("fixtures/in_order/{name}")), name).unwrap();
        let program = program(&module);
        for n in [1, 2, 3, 5] {
            let (launch, before) = call(n, 4, n as u64);
            let mut expected = before.clone();
            sequential::run_function(&module, find(&module, None).unwrap(), &launch, &mut expected).unwrap();
            agrees(&format!("{name}, n = {n}"), &program, &launch, &before, &expected);
        }
    }
}

/// What the kernels of `fixtures/in_order` must compute where it is told without an interpreter.
#[test]
fn an_early_return_writes_nothing() {
    let module = twill_triton::mlir::parse(&example("fixtures/in_order/early_return"), "early_return").unwrap();
    let program = program(&module);
    let (launch, before) = call(2, 4, 1);
    let mut found = before.clone();
    warps::run(&program, &launch, 1, &mut found, &mut Choice::new(Habit::Priorities, 0)).unwrap();
    let Data::Floats(out) = &found.arrays[2].data else { panic!("numbers") };
    assert!(out[..512].iter().any(|x| *x != 7.0) && out[512..].iter().all(|x| *x == 7.0));
}
