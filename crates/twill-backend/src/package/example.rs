//! The kernels of `examples/`, which bring a test and the names of their constants.

use serde::Serialize;
use std::collections::BTreeMap;
use twill_codegen::ir::WarpProgram;

/// A constexpr of the Triton kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum Constant {
    Number(u64),
    Switch(bool),
}

/// A kernel of `examples/`, known by its name and parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Example {
    AttentionForward,
    AttentionBackward,
    GemmTma,
    GemmPointers,
    SwiGlu,
    TutorialAttention,
}

/// Names of kernel and parameters, and the test.
const KNOWN: [(Example, &str, &[&str], &str); 6] = [
    (
        Example::AttentionForward,
        "attention_forward",
        &["q_desc", "k_desc", "v_desc", "o_desc", "lse_ptr", "softmax_scale", "length"],
        include_str!("tests/attention_forward.py"),
    ),
    (
        Example::AttentionBackward,
        "attention_backward",
        &[
            "q_desc",
            "k_desc",
            "v_desc",
            "do_desc",
            "dq_desc",
            "dk_desc",
            "dv_desc",
            "lse_ptr",
            "delta_ptr",
            "softmax_scale",
            "length",
        ],
        include_str!("tests/attention_backward.py"),
    ),
    (Example::GemmTma, "gemm_tma", &["a_desc", "b_desc", "c_desc", "K"], include_str!("tests/gemm_tma.py")),
    (
        Example::GemmPointers,
        "gemm_pointers",
        &["a_ptr", "b_ptr", "c_ptr", "M", "N", "K", "stride_a", "stride_b", "stride_c"],
        include_str!("tests/gemm_pointers.py"),
    ),
    (Example::SwiGlu, "swiglu", &["x_desc", "gate_desc", "up_desc", "y_desc", "K"], include_str!("tests/swiglu.py")),
    (
        Example::TutorialAttention,
        "_attn_fwd",
        &["sm_scale", "M", "Z", "H", "desc_q", "desc_k", "desc_v", "desc_o", "N_CTX"],
        include_str!("tests/tutorial_attention.py"),
    ),
];

/// The beginning of a test that compiles, and of one that runs; the end of both.
const COMPILES: &str = include_str!("tests/compiles.py");
const RUNS: &str = include_str!("tests/runs.py");
const TAIL: &str = include_str!("tests/tail.py");
/// What a traced kernel takes besides.
const TRACED: &str = include_str!("tests/traced.py");

fn example(kernel: &WarpProgram) -> Option<(Example, &'static str)> {
    let named = |names: &[&str]| kernel.source_parameters().iter().map(|p| p.name.as_str()).eq(names.iter().copied());
    let known = KNOWN.into_iter().find(|(_, name, parameters, _)| kernel.name == *name && named(parameters));
    known.map(|(example, _, _, test)| (example, test))
}

/// The constexprs of a known kernel by name: extents of the source's tiles, before they are cut. None of others.
pub(super) fn constants(kernel: &WarpProgram) -> BTreeMap<String, Constant> {
    let found = example(kernel).and_then(|(example, _)| named_constants(example, kernel));
    found.unwrap_or_default().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn named_constants(example: Example, kernel: &WarpProgram) -> Option<Vec<(&'static str, Constant)>> {
    let tile = |name: &str| {
        let parameter = kernel.parameters.iter().find(|p| p.name == name)?;
        <[u64; 2]>::try_from(parameter.kind.block()?.known_shape()?).ok()
    };
    let number = |(name, value): (&'static str, u64)| (name, Constant::Number(value));
    let product = |[m, n, k]: [u64; 3]| [("BLOCK_M", m), ("BLOCK_N", n), ("BLOCK_K", k)].map(number).to_vec();
    Some(match example {
        Example::AttentionForward | Example::AttentionBackward => {
            let ([m, d], [n, _]) = (tile("q_desc")?, tile("k_desc")?);
            let n = kernel.loops.first().and_then(|l| l.source_step).unwrap_or(n);
            let mut found = [("BLOCK_M", m), ("BLOCK_N", n), ("HEAD_DIM", d)].map(number).to_vec();
            if example == Example::AttentionForward {
                // The masked keys have a loop of their own.
                found.push(("CAUSAL", Constant::Switch(kernel.loops.len() > 1)));
            }
            found
        }
        Example::GemmTma => {
            let ([m, k], [n, _]) = (tile("a_desc")?, tile("b_desc")?);
            product([m, n, k])
        }
        Example::SwiGlu => {
            let ([m, k], [n, _]) = (tile("x_desc")?, tile("gate_desc")?);
            product([m, n, k])
        }
        Example::TutorialAttention => {
            let ([m, d], [n, _]) = (tile("desc_q")?, tile("desc_k")?);
            let n = kernel.loops.first().and_then(|l| l.source_step).unwrap_or(n);
            let stage = if kernel.loops.len() > 1 { 3 } else { 1 };
            [("BLOCK_M", m), ("BLOCK_N", n), ("HEAD_DIM", d), ("STAGE", stage)].map(number).to_vec()
        }
        Example::GemmPointers => product(kernel.loops.first()?.dot?),
    })
}

/// A test to write next to the kernel: that it compiles, and for a known one that it computes what it should.
pub(super) fn test(kernel: &WarpProgram) -> String {
    let known = example(kernel).filter(|_| !constants(kernel).is_empty());
    let traced = if kernel.trace.is_some() { TRACED } else { "" };
    known.map_or_else(|| [COMPILES, TAIL].concat(), |(_, test)| [RUNS, traced, test, TAIL].concat())
}
