//! MMAs in batches: all sub-tiles have one order, at the interval that is proved.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod common;

use common::generated;
use twill_driver::tune::{CompileOptions, GeneratedKernel, Language};

/// The steady state of a compute group, by the lines that start with one of these.
fn steady<'a>(source: &'a str, group: &str, wanted: &[&str]) -> Vec<&'a str> {
    let body = source.split_once(&format!("void {group}(")).unwrap().1;
    let body = body.split_once("// steady state").unwrap().1;
    let lines = body.lines().take_while(|line| !line.starts_with("    }")).map(str::trim);
    lines.filter(|line| wanted.iter().any(|start| line.starts_with(start))).collect()
}

#[test]
fn attention_backward_has_its_mmas_in_one_order() {
    let options = CompileOptions { emit: Some(Language::Cuda), ..CompileOptions::default() };
    let kernel = generated("attention_backward", &options);
    let source = kernel.files.iter().find(|(name, _)| name.as_str() == "kernel.cu").map(|(_, text)| text).unwrap();
    for (own, group) in ["compute_1", "compute_2"].into_iter().enumerate() {
        let lines = steady(
            source,
            group,
            &["wgmma(", "wgmma_wait_group<", "fence_proxy_async(", "stmatrix(", "st_shared(", "lse_read", "delta_read"],
        );
        let expected = [
            "wgmma(s_t_",
            "lse_read",
            "wgmma(dp_t_",
            "wgmma_wait_group<1>",
            "delta_read",
            "wgmma_wait_group<0>",
            "stmatrix(ds_t_convert_",
            "wgmma(dv_dot_",
            "fence_proxy_async(",
            "wgmma(dq_dot_",
            "wgmma(dq_dot_",
            "wgmma_wait_group<2>",
            "wgmma(dk_",
            "wgmma_wait_group<1>",
            "st_shared(dq_dot_",
            "fence_proxy_async(",
            "wgmma_wait_group<0>",
        ];
        assert_eq!(lines.len(), expected.len(), "{lines:#?}");
        for (line, start) in lines.iter().zip(expected) {
            assert!(line.starts_with(start), "{line} is not {start}, group {own}");
        }
    }
    let plain = generated("attention_backward", &CompileOptions { mma_batches: false, ..options.clone() });
    assert_ne!(plain.files, kernel.files);
    let of = |kernel: &GeneratedKernel| {
        kernel.loops.iter().map(|one| (one.interval, one.status.clone())).collect::<Vec<_>>()
    };
    assert_eq!(of(&plain), of(&kernel));
    // One order only, or results that are used after the loop alone: nothing to choose.
    for example in ["gemm_tma", "swiglu"] {
        let [with, without] =
            [true, false].map(|mma_batches| generated(example, &CompileOptions { mma_batches, ..options.clone() }));
        assert_eq!(with.files, without.files, "{example}");
    }
}
