//! Kernels without warp specialisation have the warps and stages that are asked for.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod common;

use common::{compiled, compiled_text, generated, text_of};
use twill_driver::Error;
use twill_driver::tune::{CompileOptions, Compiled, GeneratedKernel, Language, Which};

fn options(num_warps: Option<u32>, num_stages: Option<u32>) -> CompileOptions {
    CompileOptions { schedule: Which::Multistage, num_warps, num_stages, ..CompileOptions::default() }
}

fn signature(kernel: &GeneratedKernel) -> serde_json::Value {
    serde_json::from_str(&kernel.files["kernel.json"]).unwrap()
}

#[test]
fn warps_and_stages_are_those_that_are_asked_for() {
    for warps in [1, 2, 4, 8] {
        let kernel = generated("gemm_pointers", &options(Some(warps), Some(3)));
        assert_eq!(signature(&kernel)["num_warps"], warps);
        // A warp group is four warps.
        assert_eq!(kernel.files["kernel.py"].contains("start_wgmma("), warps >= 4);
    }
    for stages in [2, 3, 4] {
        let kernel = generated("gemm_pointers", &options(None, Some(stages)));
        assert!(kernel.files["kernel.py"].contains(&format!("[{stages}, 128, 64]")), "{stages} slots");
        assert_eq!(kernel.operations.cp_async, 4, "two copies before the loop, two in it");
    }
    let one = generated("gemm_pointers", &options(Some(4), Some(1)));
    assert_eq!(one.operations.cp_async, 0, "one stage loads nothing ahead");
}

/// `ptxas` before 13.1 loses a left operand in registers that a loop does not change. In tiles of 64 × 64 the scores are such
/// operands of the second multiplication, and what is loaded like them had their layout.
#[test]
fn what_a_loop_does_not_change_is_multiplied_from_shared_memory() {
    let text = text_of("attention_forward_d64").replace("128", "64");
    let Compiled::Kernel(kernel) = compiled_text("attention", text, &options(Some(4), Some(2))).unwrap() else {
        panic!()
    };
    let lines = kernel.files["kernel.py"].lines();
    let put = lines.clone().find_map(|line| line.split_once(" = put(q_")).map(|(name, _)| name.trim()).unwrap();
    assert!(lines.clone().any(|line| line.contains(&format!("start_wgmma({put},"))), "{put}");
}

#[test]
fn what_no_kernel_has_is_an_error() {
    for (options, is_expected) in [
        (options(Some(3), None), (|error| matches!(error, Error::NoNumWarps { .. })) as fn(&Error) -> bool),
        (CompileOptions { schedule: Which::Optimal, ..options(Some(4), None) }, |e| {
            matches!(e, Error::NoNumWarps { .. })
        }),
        (CompileOptions { emit: Some(Language::Cuda), ..options(None, Some(3)) }, |e| {
            matches!(e, Error::NoNumStages { .. })
        }),
        (CompileOptions { schedule: Which::InOrder, ..options(None, Some(3)) }, |e| {
            matches!(e, Error::NoNumStages { .. })
        }),
    ] {
        match compiled("gemm_pointers", &options) {
            Err(error) => assert!(is_expected(&error), "{error}"),
            Ok(_) => panic!("a kernel of {options:?}"),
        }
    }
}
