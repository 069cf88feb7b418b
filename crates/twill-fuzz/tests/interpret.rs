//! The command that executes random programs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

/// Pointers of `examples/fixtures/pointers/exchanged.ttir` in tiles of 16 × 16, and two calls, one of no iteration.
const PROGRAM: &str = r#"{
  "pointers": [
    { "name": "x_ptr", "element": "float16", "count": 4096, "contents": "numbers" },
    { "name": "y_ptr", "element": "float16", "count": 4096, "contents": "numbers" },
    { "name": "out_ptr", "element": "float16", "count": 256, "contents": "zeros" }
  ],
  "calls": [
    { "grid": [1, 1, 1], "numbers": { "n": 3, "stride": 3 } },
    { "grid": [1, 1, 1], "numbers": { "n": 0, "stride": 3 } }
  ]
}"#;

fn run(folder: &Path) -> (Option<i32>, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_interpret")).arg("--check").arg(folder).output().unwrap();
    (done.status.code(), String::from_utf8(done.stdout).unwrap())
}

#[test]
fn warp_programs_compute_what_the_kernel_says() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fixtures/pointers/exchanged.ttir");
    std::fs::copy(kernel, folder.path().join("kernel.ttir")).unwrap();
    std::fs::write(folder.path().join("program.json"), PROGRAM).unwrap();
    assert_eq!(run(folder.path()), (Some(0), String::new()));
    let changed = |call: u32| {
        let bytes = std::fs::read(folder.path().join(format!("expected-{call}.bin"))).unwrap();
        // Nothing of what it reads, and some of what it writes.
        assert_eq!(bytes[..8], [0; 8]);
        u32::from_le_bytes(bytes[8..12].try_into().unwrap())
    };
    assert!(changed(0) > 200 && changed(1) == 0, "{} and {}", changed(0), changed(1));
}

#[test]
fn what_cannot_be_executed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("program.json"), PROGRAM.replace("float16", "float17")).unwrap();
    std::fs::write(folder.path().join("kernel.ttir"), "module {}").unwrap();
    let (code, said) = run(folder.path());
    assert!(code == Some(0) && said.starts_with(&folder.path().display().to_string()), "{said}");
}

/// A kernel of one program that writes 16 numbers to two places.
const DIVISIBLE: &str = r"module {
  tt.func public @f(%out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
    %c2 = arith.constant dense<2> : tensor<16xi32>
    %range = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %places = arith.remsi %range, %c2 : tensor<16xi32>
    %pointers = tt.splat %out : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %at = tt.addptr %pointers, %places : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %count = tt.splat %n : i32 -> tensor<16xi32>
    %sum = arith.addi %range, %count : tensor<16xi32>
    %value = arith.sitofp %sum : tensor<16xi32> to tensor<16xf32>
    tt.store %at, %value : tensor<16x!tt.ptr<f32>>
    tt.return
  }
}";

#[test]
fn what_the_launcher_refuses_is_not_executed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("kernel.ttir"), DIVISIBLE).unwrap();
    let program = r#"{
  "pointers": [{ "name": "out", "element": "float32", "count": 16, "contents": "zeros", "before": 8 }],
  "calls": [{ "grid": [1, 1, 1], "numbers": { "n": NUMBER } }]
}"#;
    let said = |number: &str| {
        std::fs::write(folder.path().join("program.json"), program.replace("NUMBER", number)).unwrap();
        let (code, said) = run(folder.path());
        assert_eq!(code, Some(0), "{said}");
        said
    };
    assert!(!said("16").contains("refuses"));
    let changed = std::fs::read(folder.path().join("expected-0.bin")).unwrap();
    // Two places behind those that are before the pointer.
    assert_eq!(changed[..12], [2, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0]);
    assert!(said("3").contains("in order: the launcher refuses it: n is 3"));
}
