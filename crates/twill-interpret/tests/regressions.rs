//! Kernels for which wrong code, or none, was generated once: found by random kernels.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::collections::HashMap;
use std::rc::Rc;
use twill_codegen::GroupShares;
use twill_codegen::ir::TileOrder;
use twill_graph::{SplitMix64, WarpAssignment};
use twill_interpret::warps::{Choice, Habit};
use twill_interpret::{
    Argument, Arithmetic, Array, Compiled, Data, Launch, Memory, Question, Refusal, Tensor, Tile, Tolerance, Way,
    difference, sequential, tolerance, warps,
};
use twill_machine::Machine;
use twill_triton::Kernel;
use twill_triton::mlir::Type;

/// Rows and columns of what tiles are loaded from and stored to: more than all iterations reach.
const ROWS: i64 = 2048;
const COLUMNS: i64 = 128;

/// A kernel of `tests/kernels`, and how it is compiled.
struct Kept {
    name: &'static str,
    machine: &'static str,
    sub_tiles: Option<u32>,
    assignment: WarpAssignment,
    way: Way,
    /// The step of its loop's index.
    step: i64,
}

impl Kept {
    fn compile(&self) -> Result<Compiled, Refusal> {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels").join(self.name);
        let text = std::fs::read_to_string(path.with_extension("ttir")).unwrap();
        let machine = Machine::load(self.machine).unwrap();
        let lowering = twill_triton::Options { sub_tiles: self.sub_tiles, ..twill_triton::Options::default() };
        Compiled::new(&text, &Question { machine: &machine, lowering, assignment: self.assignment, work: 60_000 })
    }
}

/// A call in which everything is large enough, by the types of the parameters.
fn call(kernel: &Kernel, bound: i64, arithmetic: Arithmetic) -> (Launch, Memory) {
    let mut random = SplitMix64::new(11);
    let (mut arguments, mut memory) = (HashMap::new(), Memory::default());
    let mut array = |name: &str, element: &Type, count: i64| {
        let number = |random: &mut SplitMix64| (random.unit() * 512.0).round() / 256.0 - 1.0;
        let data = Data::Floats((0..count).map(|_| number(&mut random)).collect());
        memory.arrays.push(Array { name: name.into(), element: element.clone(), data });
        memory.arrays.len() - 1
    };
    let module = kernel.module();
    for argument in module.arguments(kernel.function()) {
        let name = module.value(*argument).name.clone();
        let given = match module.type_of(*argument) {
            Type::TensorDescriptor(block) => {
                let array = array(&name, block.element(), ROWS * COLUMNS);
                Argument::Tensor(Tensor { array, first: 0, extents: vec![ROWS, COLUMNS], strides: vec![COLUMNS, 1] })
            }
            Type::Pointer { pointee, .. } => {
                Argument::Scalar(Rc::new(Tile::pointer(array(&name, pointee, ROWS * COLUMNS))))
            }
            _ if name == "first" => Argument::Scalar(Rc::new(Tile::integer(bound))),
            _ if name == "second" => Argument::Scalar(Rc::new(Tile::integer(2 * bound))),
            _ => Argument::Scalar(Rc::new(Tile::integer(if name.ends_with("rows") { ROWS } else { COLUMNS }))),
        };
        arguments.insert(name, given);
    }
    (Launch { arguments, grid: [1, 1, 1], arithmetic }, memory)
}

/// Executes a kernel with few and many trips, with every habit.
fn agrees(kept: &Kept) {
    let name = kept.name;
    let compiled = kept.compile().unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
    let program = compiled.program(kept.way).unwrap_or_else(|error| panic!("{name}: {error}"));
    twill_codegen::check(program.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let tolerance = tolerance(&program);
    let arithmetic = if tolerance == Tolerance::Exact { Arithmetic::Rounded } else { Arithmetic::Double };
    for trips in [0, 1, 2, 9] {
        let (launch, before) = call(compiled.kernel(), trips * kept.step, arithmetic);
        let mut expected = before.clone();
        sequential::run(compiled.kernel(), &launch, &mut expected).unwrap();
        for habit in [Habit::Priorities, Habit::UnitsLate] {
            let mut found = before.clone();
            let run = warps::run(&program, &launch, 1, &mut found, &mut Choice::new(habit, 5));
            run.unwrap_or_else(|fault| panic!("{name}, {trips} trips, {habit:?}: {fault}"));
            assert_eq!(difference(&expected, &found, tolerance), None, "{name}, {trips} trips, {habit:?}");
        }
    }
}

const FREE: WarpAssignment = WarpAssignment::Free;
const FIXED: WarpAssignment = WarpAssignment::BySubTile;

fn way(persistent: bool, ring_depth: u32, handoff_depth: u32, pingpong: bool) -> Way {
    Way {
        persistent,
        order: TileOrder::Linear,
        ring_depth,
        handoff_depth,
        pingpong,
        mma_batches: false,
        shares: GroupShares::default(),
    }
}

#[test]
fn two_carried_values_that_begin_differently_are_refused() {
    // One variable held both: without a trip, one of them was the other.
    let kept = Kept {
        name: "carried_begin_differently",
        machine: "h200",
        sub_tiles: None,
        assignment: FIXED,
        way: way(false, 2, 1, true),
        step: 1,
    };
    let error = kept.compile().unwrap().program(kept.way).unwrap_err();
    assert!(error.to_string().contains("become the same and begin differently"), "{error}");
}

#[test]
fn carried_operands_are_prepared_before_the_loop_or_refused() {
    let way = way(false, 1, 2, true);
    agrees(&Kept { name: "carried_operand", machine: "h200", sub_tiles: Some(1), assignment: FIXED, way, step: 1 });
    let name = "carried_in_tensor_memory";
    let kept = Kept { name, machine: "b200", sub_tiles: Some(1), assignment: FIXED, way, step: 1 };
    let error = kept.compile().unwrap().program(kept.way).unwrap_err();
    assert!(error.to_string().contains("that the loop carries to its next iteration"), "{error}");
}

#[test]
fn values_and_slots_of_many_iterations_ago_are_found() {
    for (name, sub_tiles, way) in
        [("old_slots", Some(1), way(false, 2, 2, true)), ("old_values", None, way(false, 2, 1, false))]
    {
        agrees(&Kept { name, machine: "h200", sub_tiles, assignment: FIXED, way, step: 1 });
    }
}

#[test]
fn what_an_mma_in_tensor_memory_adds_to_may_be_of_the_iteration_before() {
    let way = way(false, 2, 1, false);
    agrees(&Kept { name: "addend_of_before", machine: "b200", sub_tiles: None, assignment: FREE, way, step: 1 });
}

#[test]
fn mmas_of_two_widths_read_one_tile() {
    let way = way(true, 2, 2, false);
    agrees(&Kept { name: "two_widths", machine: "h200", sub_tiles: None, assignment: FREE, way, step: 16 });
}

#[test]
fn turns_against_the_flow_of_results_are_not_taken() {
    let way = way(false, 2, 2, true);
    agrees(&Kept { name: "crossing_pingpong", machine: "h200", sub_tiles: None, assignment: FREE, way, step: 1 });
}

#[test]
fn a_cta_ends_after_what_its_mmas_signal() {
    let way = way(true, 3, 2, false);
    agrees(&Kept { name: "commit_at_the_end", machine: "b200", sub_tiles: Some(1), assignment: FIXED, way, step: 1 });
}

#[test]
fn another_group_makes_a_left_operand_or_stores_a_sum() {
    for (name, ring_depth, handoff_depth) in [("operand_handed_off", 2, 2), ("partials_elsewhere", 3, 1)] {
        let way = way(false, ring_depth, handoff_depth, false);
        agrees(&Kept { name, machine: "h200", sub_tiles: None, assignment: FREE, way, step: 1 });
    }
}

#[test]
fn values_for_code_after_the_loop_have_no_handoff() {
    let kept = |assignment| Kept {
        name: "stored_elsewhere",
        machine: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernels/stored_elsewhere.toml"),
        sub_tiles: None,
        assignment,
        way: way(false, 1, 1, false),
        step: 16,
    };
    let refused = kept(FREE).compile().and_then(|compiled| compiled.program(kept(FREE).way).map_err(Refusal::Code));
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("v28.0 comes to the group that reads it after the loop"), "{refused}");
    assert!(refused.contains("--warp-assignment by-sub-tile"), "{refused}");
    agrees(&kept(FIXED));
}
