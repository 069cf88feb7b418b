//! The kernels of `examples/`: their warp programs compute what their TTIR says, in every order.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod common;

use common::{Call, example};
use twill_codegen::GroupShares;
use twill_codegen::ir::TileOrder;
use twill_graph::WarpAssignment;
use twill_interpret::warps::{Choice, Habit};
use twill_interpret::{Arithmetic, Compiled, Question, Tolerance, Way, difference, sequential, tolerance, warps};
use twill_machine::Machine;
use twill_triton::tile::Axis;
use twill_triton::{CtaCoarsening, Kernel, Options};

fn plain() -> Way {
    Way { ring_depth: 1, ..Way::default() }
}

/// Serpentine order, as with loops of different length: in every order, each tile has one CTA.
fn persistent() -> Way {
    Way { persistent: true, order: BACK, handoff_depth: 2, pingpong: true, ..Way::default() }
}

/// As attention backward is generated.
fn mma_batches() -> Way {
    Way { mma_batches: true, ..Way::default() }
}

const BACK: TileOrder = TileOrder::Lpt { width: 2, even_in_pairs: true };

const PRODUCTS: [&str; 11] = [
    "gemm_tma",
    "gemm_tma_m256",
    "gemm_tma_n256",
    "gemm_pointers",
    "gemm_pointers_m256",
    "gemm_pointers_n256",
    "swiglu",
    "gemm_bias_gelu",
    "gemm_rmsnorm",
    "fixtures/product_batched",
    "fixtures/product_column_sums",
];
const ATTENTION: [&str; 10] = [
    "attention_forward",
    "attention_forward_d64",
    "attention_forward_d64_m64",
    "attention_forward_causal",
    "attention_forward_causal_d64",
    "attention_forward_causal_d64_m64",
    "attention_mla",
    "tutorial_attention",
    "tutorial_attention_causal",
    "tutorial_attention_causal_d64",
];
/// Epilogues of biases, residuals, masks and factors of rows, and columns of their sub-tiles.
const BY_COLUMNS: [(&str, u64); 5] = [
    ("gemm_bias_gelu_n256", 64),
    ("gemm_tma_n256", 32),
    ("gemm_pointers", 64),
    ("gemm_rmsnorm", 16),
    ("attention_forward", 64),
];
/// The third, with tiles of 128 queries, is there to be scheduled: no code for it fits shared memory.
const BACKWARD: [&str; 3] = ["attention_backward", "attention_backward_d64", "attention_backward_causal"];

/// Trip counts of the plain program, and of the others.
const TRIPS: [&[i64]; 2] = [&[0, 1, 2, 3], &[2]];
/// Orders of events that are tried.
const HABITS: [Habit; 2] = [Habit::Priorities, Habit::UnitsLate];
/// Units of work for a schedule.
const WORK: u64 = 60_000;

/// Runs an example in all ways that fit.
fn agrees(name: &str, machine: &str, lowering: &Options) {
    executes(name, &example(name), machine, lowering);
}

/// Runs a kernel that takes what an example takes.
fn executes(name: &str, text: &str, machine: &str, lowering: &Options) {
    let mma_batches =
        (name.contains("backward") && lowering.programs.is_none()).then_some((self::mma_batches(), TRIPS[1]));
    let ways: Vec<(Way, &[i64])> = [plain(), persistent()].into_iter().zip(TRIPS).chain(mma_batches).collect();
    executes_in(&ways, name, text, machine, lowering);
}

/// The same in these ways, each with trip counts; those that do not fit are left out.
fn executes_in(ways: &[(Way, &[i64])], name: &str, text: &str, machine: &str, lowering: &Options) {
    let machine_file = Machine::load(machine).unwrap();
    let assignment = WarpAssignment::BySubTile;
    let question = Question { machine: &machine_file, lowering: lowering.clone(), assignment, work: WORK };
    let compiled = Compiled::new(text, &question).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
    // Sums of several programs in global memory have the order of the source where one CTA works on all of them.
    let ctas = if name.contains("backward") { 1 } else { 2 };
    let mut fitting = 0;
    for (way, trips) in ways.iter().copied() {
        let program = match compiled.program(way) {
            Ok(program) => program,
            Err(twill_codegen::Error::SharedMemory { .. }) => continue,
            Err(error) => panic!("{name} on {machine}: {error}"),
        };
        fitting += 1;
        let tolerance = tolerance(&program);
        for trips in trips {
            let mut call = Call::new(compiled.kernel(), *trips, 7 + *trips as u64);
            if tolerance != Tolerance::Exact {
                call.launch.arithmetic = Arithmetic::Double;
            }
            let mut expected = call.memory.clone();
            sequential::run(compiled.kernel(), &call.launch, &mut expected).unwrap();
            let mut first = None;
            for habit in HABITS {
                let mut found = call.memory.clone();
                let run = warps::run(&program, &call.launch, ctas, &mut found, &mut Choice::new(habit, 0));
                let place = format!("{name} on {machine}, {way:?}, {trips} trips, {habit:?}");
                let figures = run.unwrap_or_else(|fault| panic!("{place}: {fault}"));
                assert!(figures.events > 0, "{place}");
                if let Some(difference) = difference(&expected, &found, tolerance) {
                    panic!("{place}: {difference}");
                }
                // The order of operations in the program is the same in every interleaving.
                let first = first.get_or_insert_with(|| found.clone());
                assert_eq!(difference(first, &found, Tolerance::Exact), None, "{place}");
            }
        }
    }
    assert!(fitting > 0, "{name} on {machine} does not fit");
}

fn all_agree(names: &[&str], machine: &str, lowering: &Options) {
    for name in names {
        agrees(name, machine, lowering);
    }
}

/// Epilogues that go by some columns at a time compute what those over whole tiles do, bit for bit.
#[test]
fn epilogues_by_columns() {
    for (name, columns) in BY_COLUMNS {
        let by_columns =
            |way: Way| Way { shares: GroupShares { epilogue_subtile: Some(columns), ..way.shares }, ..way };
        let ways = [(by_columns(plain()), TRIPS[0]), (by_columns(persistent()), TRIPS[1])];
        executes_in(&ways, name, &example(name), "h200", &Options::default());
    }
}

/// An epilogue that reads several columns for one is left whole: the largest of a row, and sums over it.
#[test]
fn epilogues_of_whole_rows_stay_whole() {
    let machine = Machine::load("h200").unwrap();
    let whole = |name: &str| {
        let question = Question {
            machine: &machine,
            lowering: Options::default(),
            assignment: WarpAssignment::BySubTile,
            work: WORK,
        };
        let compiled = Compiled::new(&example(name), &question).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        let program = |subtile| {
            let shares = GroupShares { epilogue_subtile: subtile, ..GroupShares::default() };
            compiled.program(Way { shares, ..plain() }).unwrap()
        };
        program(None).to_string() == program(Some(32)).to_string()
    };
    assert!(whole("fixtures/epilogue_softmax"));
    assert!(!whole("fixtures/epilogue_erf"));
}

fn coarsening() -> Options {
    Options { programs: Some(CtaCoarsening { count: 3, axis: Axis::X }), ..Options::default() }
}

#[test]
fn products() {
    all_agree(&PRODUCTS, "h200", &Options::default());
}

#[test]
fn attention() {
    all_agree(&ATTENTION, "h200", &Options::default());
}

#[test]
fn attention_backward_and_shared_ctas() {
    all_agree(&BACKWARD, "h200", &Options::default());
    agrees("attention_forward_d64_m64", "h200", &coarsening());
}

/// Triton prints no tiles that are no power of two; others may.
#[test]
fn tiles_of_176_keys() {
    let text = example("attention_forward_d64_m64");
    let text =
        text.replace("128x64x", "176x64x").replace("64x128x", "64x176x").replace("constant 128 :", "constant 176 :");
    assert!(!text.contains("x128x") && text.contains("64x176xf32"));
    executes("176 keys", &text, "h200", &coarsening());
}

/// Only the first iteration has a mask, and a tile reads what the source reads.
#[test]
fn steps_of_another_size() {
    let machine = Machine::load("h200").unwrap();
    let assignment = WarpAssignment::BySubTile;
    for (name, lowering, steps, habits) in [
        ("attention_forward_d64_m64", coarsening(), &[176, 80][..], &[Habit::Priorities, Habit::UnitsLate][..]),
        ("attention_forward_d64", Options::default(), &[176, 256, 64, 48], &[Habit::Priorities]),
        ("tutorial_attention", Options::default(), &[64], &[Habit::Priorities]),
        ("fixtures/attention_relu", Options::default(), &[176, 48], &[Habit::Priorities]),
    ] {
        let text = example(name);
        let source = twill_triton::read(&text, name).unwrap();
        for step in steps {
            let module = twill_triton::mlir::parse(&text, name).unwrap();
            let kernel = Kernel::with_step(module, None, Some(*step)).unwrap();
            let question = Question { machine: &machine, lowering: lowering.clone(), assignment, work: 200_000 };
            let compiled = Compiled::of(kernel, &question).unwrap_or_else(|error| panic!("{name}, {step}: {error}"));
            let program = compiled.program(plain()).unwrap_or_else(|error| panic!("{name}, {step}: {error}"));
            for trips in [0, 1, 2, 3, 5, 11] {
                let place = format!("{name} in steps of {step}, {trips} of the source's");
                let mut call = Call::new(&source, trips, 7 + trips as u64);
                call.launch.arithmetic = Arithmetic::Double;
                let (mut expected, mut alike) = (call.memory.clone(), call.memory.clone());
                sequential::run(&source, &call.launch, &mut expected).unwrap();
                // Other heads beyond a short one are finite here.
                sequential::run(compiled.kernel(), &call.launch, &mut alike).unwrap_or_else(|f| panic!("{place}: {f}"));
                let close = Tolerance::Relative(1e-9);
                assert_eq!(difference(&expected, &alike, close), None, "{place}");
                for habit in habits {
                    let mut found = call.memory.clone();
                    let run = warps::run(&program, &call.launch, 2, &mut found, &mut Choice::new(*habit, 1));
                    run.unwrap_or_else(|fault| panic!("{place}: {fault}"));
                    assert_eq!(difference(&expected, &found, close), None, "{place}, {habit:?}");
                }
            }
        }
    }
}

#[test]
fn tensor_memory() {
    let names = ["gemm_tma", "gemm_pointers", "swiglu", "attention_forward", "attention_backward_d64"];
    all_agree(&names, "b200", &Options::default());
    agrees("attention_forward_m256", "b200-left-shared", &Options::default());
}
