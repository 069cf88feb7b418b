//! Code of loads through pointers, as `twill compile` writes it.

use crate::common::{root, stderr, stdout, twill};
use serde_json::{Value, json};
use std::fs;

/// kernel.py and kernel.json of examples/gemm_pointers.ttir with texts replaced.
fn compiled(changes: &[(&str, &str)]) -> (String, Value) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut text = fs::read_to_string(root().join("examples/gemm_pointers.ttir")).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    fs::write(path("gemm.ttir"), text).unwrap();
    let output =
        twill(&["compile", &path("gemm.ttir"), "--machine", "h100", "-q", "--no-assemble", "--output", &path("gemm")]);
    assert_eq!((output.status.code(), stdout(&output) + &stderr(&output)), (Some(0), String::new()));
    let read = |name: &str| fs::read_to_string(folder.path().join("gemm").join(name)).unwrap();
    (read("kernel.py"), serde_json::from_str(&read("kernel.json")).unwrap())
}

#[test]
fn pointers_and_masks_become_a_descriptor() {
    let (source, signature) = compiled(&[]);
    let block = json!([
        {"argument": "b_ptr_64x128", "shape": [64, 128], "extents": ["K", "N"], "strides": ["stride_b", 1]}
    ]);
    assert_eq!(signature["parameters"][1]["blocks"], block);
    let stored = json!([
        {"argument": "c_ptr_64x128", "shape": [64, 128], "extents": ["M", "N"], "strides": ["stride_c", 1]}
    ]);
    assert_eq!(signature["parameters"][2]["blocks"], stored);
    assert_eq!(signature["arguments"].as_array().unwrap()[..3], ["c_ptr_64x128", "a_ptr_64x64", "b_ptr_64x128"]);
    assert!(source.contains("(c_ptr_64x128, [(program_x * 128) + 64, program_y * 128], staging_2"), "{source}");
    // The second half of the rows, and the iteration before: the schedule's stages are in the coordinates.
    assert!(source.contains("(a_ptr_64x64, [program_x * 128, (i - 1) * 64], "), "{source}");
    assert!(source.contains("(b_ptr_64x128, [i * 64, program_y * 128], "), "{source}");
    assert!(!source.contains("cp_async(a_0_buffer"), "{source}");
    assert_eq!(signature["registers"]["load"], 24);
}

#[test]
fn other_pointers_are_copied_by_four_warps() {
    let either = [("arith.andi %a_39, %a_40", "arith.ori %a_39, %a_40")];
    let (source, signature) = compiled(&either);
    assert_eq!(signature["parameters"][0]["blocks"], Value::Null);
    assert_eq!(signature["parameters"][1]["blocks"][0]["argument"], "b_ptr_64x128");
    assert!(source.contains("cp_async(a_0_buffer.index(a_0_at), "), "{source}");
    assert!(source.contains("        [4, 4],\n        [216, 72],\n"), "{source}");
    assert_eq!(signature["registers"]["load"], 72);
    // Every thread arrives when its copies are there.
    assert!(source.contains("mbarrier.init(bars.index(A_0_FULL + k), count=128)"), "{source}");
    assert!(source.contains("mbarrier.init(bars.index(B_FULL + k), count=1)"), "{source}");
}

#[test]
fn a_transposed_tile_lies_in_shared_memory_as_in_its_matrix() {
    // A is stored with its columns contiguous: a + row + depth · stride.
    let across = "%apart = tt.splat %stride_a : i32 -> tensor<1x64xi32>
         %across = arith.muli %a_ptrs_13, %apart : tensor<1x64xi32>
         %ahead = arith.muli %stride_a, %c64_i32 : i32
         %aheads = tt.splat %ahead : i32 -> tensor<128x64xi32>
         %a_ptrs_14 = ";
    let (source, signature) = compiled(&[
        ("tt.addptr %a_ptrs_11, %a_ptrs_10 :", "tt.addptr %a_ptrs_11, %a_ptrs :"),
        ("%a_ptrs_14 = ", across),
        ("%a_ptrs_15 = tt.broadcast %a_ptrs_13 :", "%a_ptrs_15 = tt.broadcast %across :"),
        ("tt.addptr %a_ptrs_34, %cst_1 :", "tt.addptr %a_ptrs_34, %aheads :"),
    ]);
    assert_eq!(signature["parameters"][0]["blocks"][0]["extents"], json!(["K", "M"]));
    assert!(source.contains("(a_ptr_64x64, [(i - 1) * 64, program_x * 128], "), "{source}");
    assert!(source.contains("warpgroup_mma(a_0_buffer.index(a_0_at).permute((1, 0)), b_buffer"), "{source}");
}
