//! `--retile-loop`: tiles of another size along a kernel's loop.

use crate::common::{root, stderr, stdout, twill};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// Compiles an example without an assembler; where to, or what the command complains of.
fn compile(example: &str, options: &[&str]) -> Result<(TempDir, PathBuf), String> {
    let place = tempfile::tempdir().unwrap();
    let (folder, example) = (place.path().join("kernel"), root().join("examples").join(example).with_extension("ttir"));
    let paths = [example.to_str().unwrap(), "-o", folder.to_str().unwrap()];
    let done = twill(&[&["compile", "--no-assemble", "--machine", "h200"], paths.as_slice(), options].concat());
    if done.status.code() == Some(0) { Ok((place, folder)) } else { Err(stdout(&done) + &stderr(&done)) }
}

const CUDA: [&str; 2] = ["--emit", "cuda"];

#[test]
fn only_the_first_iteration_has_a_mask() {
    let (_place, folder) = compile("attention_forward", &[&CUDA[..], &["--retile-loop", "176"]].concat()).unwrap();
    let source = fs::read_to_string(folder.join("kernel.cu")).unwrap();
    for part in ["m64n176k16", "smem_tile<__half, 176, 128> k_buffer", "I = 2816 cycles"] {
        assert!(source.contains(part), "{part}");
    }
    let mask = "e.column() < (((begin + (0 * 176)) + 176) - maximum<int>(begin + (0 * 176), 0))";
    // The row maximum, the row sum and the operand of P·V, in each of two groups.
    assert_eq!(source.matches(mask).count(), 6);
    assert_eq!(source.matches("e.column()").count(), 6);
    for steady in source.split("// steady state\n").skip(1) {
        let body = steady.split("\n      }\n").next().unwrap();
        assert!(!body.contains("e.column()"), "{body}");
    }
    // Rows of another head are not read: what is too short is refused.
    assert!(
        source.contains("if (length > 0 && length < 129) return refuse(\"length\", \"must be 0, or at least 129: ")
    );
    let kernel: Value = serde_json::from_str(&fs::read_to_string(folder.join("kernel.json")).unwrap()).unwrap();
    let length = kernel["parameters"].as_array().unwrap().iter().find(|p| p["name"] == "length").unwrap();
    assert_eq!(length["at_least"], 129);
    // The constexprs are those of the source.
    assert_eq!(kernel["constants"]["BLOCK_N"], 128);
}

#[test]
fn the_step_of_the_source_changes_nothing() {
    let source = |options: &[&str]| {
        let (_place, folder) = compile("attention_forward", &[&CUDA[..], options].concat()).unwrap();
        let text = fs::read_to_string(folder.join("kernel.cu")).unwrap();
        text.split_once("#include").unwrap().1.to_owned()
    };
    assert_eq!(source(&["--retile-loop", "128"]), source(&[]));
}

#[test]
fn what_cannot_be_done_says_where_and_why() {
    let refused = |example: &str, step: &str, options: &[&str]| {
        compile(example, &[&["--retile-loop", step], options].concat()).unwrap_err()
    };
    for (example, step, said) in [
        (
            "gemm_tma",
            "96",
            "gemm_tma.ttir:20: `tt.dot` (line 29 of examples/gemm_tma.py): the loop takes no other step: what is combined along it must be computed in the loop, not loaded",
        ),
        (
            "attention_forward_causal",
            "176",
            "attention_forward_causal.ttir:82: `scf.for` (line 40 of examples/attention_forward.py): the loop takes no other step: the kernel must have one loop",
        ),
        (
            "attention_forward",
            "100",
            "the loop takes no other step: a step must be a multiple of 16, and at most 256; leave --retile-loop out",
        ),
        (
            "attention_backward",
            "80",
            "`tt.load` (line 54 of examples/attention_backward.py): the loop takes no other step: tiles along it must be loaded through tensor descriptors",
        ),
    ] {
        let error = refused(example, step, &CUDA);
        assert!(error.contains(said), "{error}");
    }
    let error = refused("attention_forward", "176", &[]);
    assert!(error.contains("the Gluon back end does not write tiles of "), "{error}");
    assert!(error.contains("no powers of two; generate the kernel with --emit cuda"), "{error}");
    let kernel = root().join("examples/attention_forward.ttir");
    let done = twill(&["schedule", kernel.to_str().unwrap(), "--machine", "b200", "--retile-loop", "64"]);
    assert!(stderr(&done).contains("--retile-loop is not for b200 yet"), "{}", stderr(&done));
    let done = twill(&["schedule", "gemm", "--retile-loop", "64"]);
    assert_ne!(done.status.code(), Some(0));
    assert!(stderr(&done).contains("--retile-loop"), "{}", stderr(&done));
}
