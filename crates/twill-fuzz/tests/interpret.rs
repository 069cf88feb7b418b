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
