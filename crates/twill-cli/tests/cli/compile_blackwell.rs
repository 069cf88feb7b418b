//! Code for Blackwell, as `twill compile` writes it: nothing is written unless its barriers are proved to be enough.

use crate::common::{stderr, stdout, twill};
use serde_json::Value;
use std::fs;

/// Runs `twill compile`, without assembling.
fn compile(example: &str, machine: &str, options: &[&str]) -> Result<(String, Value), String> {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("kernel");
    let input = format!("examples/{example}.ttir");
    let fixed = ["compile", &input, "--machine", machine, "--no-assemble", "--output", output.to_str().unwrap()];
    let done = twill(&[&fixed, options].concat());
    if done.status.code() != Some(0) {
        return Err(stdout(&done) + &stderr(&done));
    }
    let read = |name: &str| fs::read_to_string(output.join(name)).unwrap();
    Ok((read("kernel.py"), serde_json::from_str(&read("kernel.json")).unwrap()))
}

fn compiled(example: &str, machine: &str, options: &[&str]) -> (String, Value) {
    compile(example, machine, options).unwrap_or_else(|error| panic!("{example} {machine} {options:?}: {error}"))
}

/// The text of a group's function.
fn group<'s>(source: &'s str, name: &str) -> &'s str {
    let from = source.find(&format!("def {name}(")).unwrap();
    let length = source[from..].find("@gluon.jit").unwrap();
    &source[from..from + length]
}

#[test]
fn barriers_of_all_kernels_are_proved() {
    let plain = [
        "gemm_tma",
        "gemm_tma_m256",
        "gemm_tma_n256",
        "gemm_pointers",
        "swiglu",
        "attention_forward",
        "attention_forward_d64",
        "attention_forward_causal",
        "attention_backward_d64",
    ];
    let shared = ["attention_forward_m256", "attention_backward"];
    let kernels = plain.map(|k| (k, "b200")).into_iter().chain(shared.map(|k| (k, "b200-left-shared")));
    for (kernel, machine) in kernels {
        for persistent in ["on", "off"] {
            let (source, signature) = compiled(kernel, machine, &["--persistent", persistent]);
            assert_eq!(signature["architecture"], "sm_100a", "{kernel}");
            let mut multiplying = source.split("@gluon.jit").filter(|f| f.contains("tcgen05_mma("));
            assert!(multiplying.next().is_some_and(|f| f.contains("def mma(")), "{kernel}");
            assert_eq!(multiplying.next(), None, "{kernel}: one group starts MMAs");
            assert!(!source.contains("warpgroup_mma"), "{kernel}");
        }
    }
}

#[test]
fn the_unit_itself_gives_operands_back_and_says_that_results_are_there() {
    let (source, _) = compiled("gemm_tma", "b200", &["--persistent", "off"]);
    let mmas = group(&source, "mma");
    assert!(mmas.contains("use_acc=i > 0, mbarriers=[bars.index(A_EMPTY + a_at), bars.index(B_EMPTY + b_at)]"));
    assert!(mmas.contains("tcgen05_commit(bars.index(RESULTS_DONE))"), "{mmas}");
    assert!(!mmas.contains("mbarrier_arrive("), "{mmas}");
    let results = group(&source, "epilogue");
    let wait = results.find("mbarrier_wait(bars, base, RESULTS_DONE").unwrap();
    // Without an iteration, nothing is in tensor memory.
    let load = results.find("gl.where(trips >= 1, acc_buffer.index(0).load(TENSOR_128X128), acc_result)").unwrap();
    assert!(wait < load, "{results}");
}

#[test]
fn a_sum_that_is_rescaled_begins_in_tensor_memory() {
    let (source, _) = compiled("attention_forward_m256", "b200-left-shared", &["--persistent", "off"]);
    let first = "acc_multiply_tensor_0_buffer.index(0).store(gl.full([128, 128], 0.0, gl.float32, TENSOR_128X128))";
    let holder = source.split("@gluon.jit").find(|f| f.contains(first)).unwrap();
    assert!(holder.find(first) < holder.find("for i in range"), "{holder}");
    // What MMAs add to has been stored by then, always.
    let mmas = group(&source, "mma");
    assert!(mmas.contains("acc_multiply_tensor_0_buffer.index(0), use_acc=True"), "{mmas}");
    // One warp has too few registers for the descriptors of all operands.
    assert!(mmas.contains("q_0_buffer.index(zero)"), "{mmas}");
}

#[test]
fn too_many_columns_are_counted_and_there_is_a_way_out() {
    for (kernel, columns) in [("attention_forward_m256", 640), ("attention_backward", 544)] {
        let error = compile(kernel, "b200", &["--warp-assignment", "free"]).unwrap_err();
        let needed = format!("needs {columns} columns of tensor memory and there are 512");
        assert!(error.contains(&needed) && error.contains("--machine b200-left-shared"), "{error}");
    }
}
