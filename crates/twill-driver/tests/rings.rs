//! Rings are as deep as loads take to come, where shared memory goes.

#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[allow(dead_code, reason = "each file of tests uses some of it")]
mod common;

use common::{compiled_on, generated};
use twill_driver::tune::{CompileOptions, Compiled, GeneratedKernel, Language, Which};

fn simulated(kernel: &GeneratedKernel) -> Option<u32> {
    kernel.loops[0].simulated
}

#[test]
fn rings_are_deepened_where_loads_are_waited_for() {
    for language in [Language::Cuda, Language::Gluon] {
        let options = CompileOptions { emit: Some(language), ..CompileOptions::default() };
        let of = |ring_depth| generated("gemm_tma", &CompileOptions { ring_depth, ..options.clone() });
        let [usual, three, four, five] = [None, Some(3), Some(4), Some(5)].map(of);
        // What is asked for is kept to.
        assert!(simulated(&three) > simulated(&four), "{:?} {:?}", simulated(&three), simulated(&four));
        assert_eq!(simulated(&usual), Some(512));
        // As deep as it gains, and one more.
        assert_eq!(usual.files, five.files);
    }
}

#[test]
fn rings_stay_as_they_are_where_no_load_is_waited_for() {
    for example in ["swiglu", "gemm_tma_n256"] {
        let options = CompileOptions { emit: Some(Language::Cuda), ..CompileOptions::default() };
        let of = |ring_depth| generated(example, &CompileOptions { ring_depth, ..options.clone() });
        assert_eq!(of(None).files, of(Some(3)).files, "{example}");
    }
    let naive = CompileOptions { schedule: Which::NoSwp, ..CompileOptions::default() };
    let kernel = generated("gemm_tma", &naive);
    assert!(kernel.files["kernel.py"].contains("[1, "), "one slot each");
}

/// Iterations of 16 × 16 tiles are short beside what gathered indices take, so that 66 would overlap: code for each trip count
/// below that had 255,634 lines (`bench.random_programs`, seed 2706).
#[test]
fn iterations_that_are_short_beside_loads() {
    let text = include_str!("kernels/short_iterations.ttir").to_owned();
    let error = compiled_on("h100", "short", text, &CompileOptions::default()).unwrap_err().to_string();
    assert!(error.contains("use larger tiles"), "{error}");
}

/// A tile that threads transpose is read from their registers, two iterations of it where the reader is more than an interval
/// behind (`bench.random_programs`, seed 2091): the graph counted on shared memory alone, and code for its schedules was refused.
#[test]
fn a_transposed_tile_is_kept_until_it_is_read() {
    let text = include_str!("kernels/transposed.ttir").to_owned();
    let made = compiled_on("h100", "transposed", text, &CompileOptions::default()).unwrap();
    let Compiled::Kernel(kernel) = made else { panic!("{made:?}") };
    assert!(kernel.loops[0].stages > 1, "{:?}", kernel.loops[0]);
}

/// A tile that TMA loads in one loop, and threads load in another, where its box is not known to lie in the matrix: in one ring,
/// 128 threads arrived at barriers that counted one arrival, and the kernel failed (found by compute-sanitizer).
#[test]
fn tiles_of_two_transfers_have_rings_of_their_own() {
    let text = include_str!("kernels/both_ways.ttir").to_owned();
    let made = compiled_on("h100", "both_ways", text, &CompileOptions::default()).unwrap();
    let Compiled::Kernel(kernel) = made else { panic!("{made:?}") };
    assert_eq!(kernel.loops.len(), 2);
    assert!(kernel.loops.iter().all(|one| one.simulated.is_some()), "{:?}", kernel.loops);
}
