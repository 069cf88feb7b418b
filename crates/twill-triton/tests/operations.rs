//! The table of operations has every one of Triton's dialect, in each version that is supported.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;
use twill_triton::Kernel;
use twill_triton::supported::NAMES;

/// As MLIR has them registered (`tests/versions/operations.py`).
const REGISTERED: &str = include_str!("data/operations.txt");

/// What a kernel is made of, and what ends a region.
const STRUCTURE: [&str; 7] = [
    "tt.func",
    "tt.return",
    "tt.get_program_id",
    "tt.get_num_programs",
    "tt.reduce.return",
    "tt.scan.return",
    "tt.map_elementwise.return",
];

/// What reading makes another operation, or takes out of a kernel that says it another way.
const READ_OTHERWISE: [&str; 3] = ["tt.approx_divf", "tt.grid_dependency_wait", "tt.grid_dependency_launch_dependents"];

#[test]
fn every_operation_of_every_version_has_a_rule() {
    let known: BTreeSet<&str> =
        NAMES.iter().copied().chain(STRUCTURE).chain(READ_OTHERWISE).filter(|name| name.starts_with("tt.")).collect();
    let mut versions = Vec::new();
    let mut all = BTreeSet::new();
    for line in REGISTERED.lines() {
        let (version, names) = line.split_once(": ").unwrap_or((line, ""));
        let names: BTreeSet<&str> = names.split(' ').collect();
        let without: Vec<&&str> = names.difference(&known).collect();
        assert!(without.is_empty(), "Triton {version} has {without:?}");
        assert!(names.len() >= 48, "Triton {version} has {}", names.len());
        versions.push(version);
        all.extend(names);
    }
    assert_eq!(versions, ["3.6.0", "3.7.1", "3.8.0", "3.9.0"]);
    let others: Vec<&&str> = known.difference(&all).collect();
    assert!(others.is_empty(), "no Triton has {others:?}");
}

/// Operands of other ranks than the product's, and branches without a condition, are refused where they are met.
#[test]
fn malformed_products_and_functions_are_no_reason_to_stop() {
    let of = |scale: &str, b: &str| {
        format!(
            "tt.func public @f(%a: tensor<16x32xf8E4M3FN>, %s: tensor<{scale}xi8>, %b: tensor<{b}xi8>, \
             %c: tensor<16x16xf32>, %n: i32) {{\n\
             %r = scf.for %i = %n to %n step %n iter_args(%x = %c) -> (tensor<16x16xf32>) : i32 {{\n\
             %d = tt.dot_scaled %a scale %s, %b scale %s, %x lhs = e4m3 rhs = e2m1 {{fastMath = false}} : \
             tensor<16x32xf8E4M3FN>, tensor<{scale}xi8> * tensor<{b}xi8>, tensor<{scale}xi8> -> tensor<16x16xf32>\n\
             scf.yield %d : tensor<16x16xf32>\n}}\ntt.return\n}}"
        )
    };
    let read = |text: &str| Kernel::new(twill_triton::mlir::parse(text, "f.ttir").unwrap(), None).map(|_| ());
    // The last is right; that nothing reads its result is what is wrong with it.
    for (scale, b) in [("16", "16x16"), ("16x1", "16"), ("16x1x1", "16x16"), ("16x3", "16x16"), ("16x1", "16x16")] {
        let text = of(scale, b);
        assert!(read(&text).is_ok() || read(&text).is_err_and(|error| !error.to_string().is_empty()), "{scale} {b}");
    }
    let mapped = "tt.func public @f(%c: tensor<16xf32>, %n: i32) {\n\
        %m = \"tt.map_elementwise\"(%c) <{pack = 1 : i32}> ({\n^bb0(%x: f32):\n\
        %y = \"scf.if\"() ({\n\"scf.yield\"(%x) : (f32) -> ()\n}, {\n\"scf.yield\"(%x) : (f32) -> ()\n}) : () -> f32\n\
        tt.map_elementwise.return %y : f32\n}) : (tensor<16xf32>) -> tensor<16xf32>\ntt.return\n}";
    if let Ok(module) = twill_triton::mlir::parse(mapped, "f.ttir") {
        assert!(Kernel::new(module, None).is_err());
    }
}
