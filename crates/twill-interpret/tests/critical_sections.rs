//! Kernels whose programs share a result, under a lock or by tickets: what is generated of their schedules leaves in memory what the
//! TTIR says, and the lock free.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::HashMap;
use std::rc::Rc;
use twill_graph::SplitMix64;
use twill_interpret::warps::{Choice, Habit};
use twill_interpret::{
    Argument, Arithmetic, Array, Compiled, Data, Launch, Memory, Question, Tile, Tolerance, Way, difference,
    sequential, warps,
};
use twill_machine::Machine;
use twill_triton::kernel::find;
use twill_triton::mlir::{FloatKind, Type, parse};

const LOCKED: &str = include_str!("../../../examples/fixtures/loops/locked.ttir");
const TICKETED: &str = include_str!("../../../examples/fixtures/loops/ticketed.ttir");
const TILE: usize = 64 * 64;
const PROGRAMS: u32 = 3;

/// A call of all programs with `n` products, of numbers whose products and sums are exact.
fn call(n: usize, flag: &str) -> (Launch, Memory) {
    let mut random = SplitMix64::new(n as u64);
    let mut numbers =
        || Data::Floats((0..n * TILE).map(|_| ((random.unit() * 2.0 - 1.0) * 4.0).round() / 4.0).collect());
    let f16 = || Type::Float(FloatKind::F16);
    let out = Data::Floats(vec![7.0; (1 + PROGRAMS as usize) * TILE]);
    let arrays = [
        ("x_ptr", f16(), numbers()),
        ("y_ptr", f16(), numbers()),
        ("out_ptr", f16(), out),
        (flag, Type::Integer(32), Data::Integers(vec![0])),
    ];
    let mut arguments = HashMap::from([("n".to_owned(), Argument::Scalar(Rc::new(Tile::integer(n as i64))))]);
    let mut memory = Memory::default();
    for (k, (name, element, data)) in arrays.into_iter().enumerate() {
        arguments.insert(name.to_owned(), Argument::Scalar(Rc::new(Tile::pointer(k))));
        memory.arrays.push(Array { name: name.into(), element, data });
    }
    (Launch { arguments, grid: [PROGRAMS, 1, 1], arithmetic: Arithmetic::Rounded }, memory)
}

/// Compares what is generated with the text, and gives back the number that programs share.
fn computes(text: &str, flag: &str, n: usize) -> i64 {
    let machine = Machine::load("h200").unwrap();
    let compiled = Compiled::new(text, &Question::new(&machine, 60_000)).unwrap();
    let module = parse(text, "test.ttir").unwrap();
    let (launch, before) = call(n, flag);
    let mut expected = before.clone();
    sequential::run_function(&module, find(&module, None).unwrap(), &launch, &mut expected).unwrap();
    assert!(difference(&before, &expected, Tolerance::Exact).is_some());
    for ring_depth in [1, 3] {
        let program = compiled.program(Way { ring_depth, ..Way::default() }).unwrap();
        for habit in Habit::ALL {
            let mut found = before.clone();
            warps::run(&program, &launch, PROGRAMS, &mut found, &mut Choice::new(habit, 5)).unwrap();
            assert_eq!(difference(&expected, &found, Tolerance::Exact), None, "n = {n}, {habit:?}");
        }
    }
    match &expected.arrays[3].data {
        Data::Integers(numbers) => numbers[0],
        _ => -1,
    }
}

/// Each program stores its part in its loop, where the group that loads does it: nothing would order that with the ticket.
#[test]
fn stores_of_another_group_before_a_ticket_are_refused() {
    let machine = Machine::load("h200").unwrap();
    let line = |of: &str| TICKETED.lines().find(|line| line.contains(of)).unwrap();
    let (dot, yielded, narrow, store) =
        (line("tt.dot"), line("scf.yield %acc_"), line("arith.truncf %acc "), line("tt.store %9,"));
    // The addresses are of before the loop then.
    let addresses: Vec<&str> = ["%5 = ", "%6 = ", "%7 = ", "%8 = ", "%9 = "].map(line).to_vec();
    let sum = dot.trim().split(' ').next().unwrap();
    let mut text = TICKETED.replace(&format!("{store}\n"), "");
    for address in &addresses {
        text = text.replace(&format!("{address}\n"), "");
    }
    let begun = line("%acc = scf.for");
    text = text.replace(&format!("{narrow}\n"), "").replace(begun, &format!("{}\n{begun}", addresses.join("\n")));
    let inside = format!("{}\n{store}\n{yielded}", narrow.replace("%acc ", &format!("{sum} ")));
    text = text.replace(yielded, &inside);
    let found = match Compiled::new(&text, &Question::new(&machine, 60_000)) {
        Ok(compiled) => compiled.program(Way::default()).map(|_| ()).map_err(|error| error.to_string()),
        Err(refusal) => Err(refusal.to_string()),
    };
    let refused =
        found.as_ref().is_err_and(|why| why.contains("a critical section after stores of another warp group"));
    assert!(refused, "{found:?}");
}

#[test]
fn programs_add_to_a_result_one_after_the_other() {
    for n in [1, 3, 7] {
        assert_eq!(computes(LOCKED, "lock_ptr", n), 0, "the lock is free");
    }
}

#[test]
fn the_last_program_adds_all_parts() {
    for n in [1, 3, 7] {
        assert_eq!(computes(TICKETED, "count_ptr", n), i64::from(PROGRAMS));
    }
}
