//! What stands behind a pipelined loop, by the schedule, multistage and in order.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

#[allow(dead_code, reason = "each file of tests uses some of it")]
mod common;

use common::{compiled_text, text_of};
use twill_driver::tune::{CompileOptions, Compiled, Which};

/// The product of pointers with other operations on its result, which these lines have made: the value that is stored.
fn with_epilogue(lines: &[&str], stored: &str) -> String {
    let (before, after) = (text_of("gemm_pointers"), "    %3 = arith.truncf %acc_27#2 ");
    let new = format!("    {}\n{}", lines.join("\n    "), after.replace("%acc_27#2", stored));
    assert_eq!(before.matches(after).count(), 1);
    before.replace(after, &new)
}

/// The source of each form: by the schedule, multistage, and in order.
fn sources_of(text: &str) -> Vec<String> {
    [Which::Optimal, Which::Multistage, Which::InOrder].map(|schedule| source_of(text, schedule)).into()
}

fn source_of(text: &str, schedule: Which) -> String {
    let options = CompileOptions { schedule, ..CompileOptions::default() };
    let Compiled::Kernel(kernel) = compiled_text("product", text.to_owned(), &options).unwrap() else { panic!() };
    kernel.files["kernel.py"].clone()
}

#[test]
fn a_clamp_keeps_what_is_not_a_number_only_where_it_is_asked_for() {
    for (word, keeps) in [("none", false), ("all", true)] {
        let clamp = format!("%clamped = tt.clampf %acc_27#2, %low, %high, propagateNan = {word} : tensor<128x128xf32>");
        let lines = [
            "%low = arith.constant dense<-1.000000e+00> : tensor<128x128xf32>",
            "%high = arith.constant dense<1.000000e+00> : tensor<128x128xf32>",
            &clamp,
        ];
        for source in sources_of(&with_epilogue(&lines, "%clamped")) {
            assert_eq!((source.contains("clamp_nan("), source.contains("gl.minimum(gl.maximum(")), (keeps, !keeps));
        }
    }
}

/// Triton before 3.9 takes a negative `other` of narrow integers for another number.
#[test]
fn narrow_negative_numbers_are_selected_after_the_load() {
    for (other, is_selected) in [(-2, true), (-128, true), (-1, false), (0, false), (3, false)] {
        let other = format!("%other = arith.constant dense<{other}> : tensor<128x128xi8>");
        let lines = [
            &other,
            "%narrow = tt.bitcast %c_ptrs_33 : tensor<128x128x!tt.ptr<f16>> -> tensor<128x128x!tt.ptr<i8>>",
            "%loaded = tt.load %narrow, %2, %other : tensor<128x128x!tt.ptr<i8>>",
            "%wide = arith.sitofp %loaded : tensor<128x128xi8> to tensor<128x128xf32>",
            "%sum = arith.addf %acc_27#2, %wide : tensor<128x128xf32>",
        ];
        for source in sources_of(&with_epilogue(&lines, "%sum")) {
            assert_eq!(source.contains("load_or("), is_selected, "{other}");
        }
    }
}

#[test]
fn atomics_of_every_kind_stand_behind_a_pipelined_loop() {
    // Stores of all groups must come before a flag that others wait for.
    let orders = ["add", "max", "exch"].map(|kind| (kind, "acq_rel"));
    for (kind, sem) in ["max", "umin", "and", "or", "xor"].map(|kind| (kind, "relaxed")).into_iter().chain(orders) {
        let atomic =
            format!("%old = tt.atomic_rmw {kind}, {sem}, gpu, %at, %one, %yes : (!tt.ptr<i32>, i32, i1) -> i32");
        let lines = [
            "%at = tt.bitcast %c_ptr : !tt.ptr<f16> -> !tt.ptr<i32>",
            "%one = arith.constant 1 : i32",
            "%yes = arith.constant true",
            &atomic,
        ];
        let text = with_epilogue(&lines, "%acc_27#2");
        match compiled_text("product", text, &CompileOptions::default()) {
            Ok(Compiled::Kernel(kernel)) => {
                assert_eq!((kernel.in_order.as_ref(), sem), (None, "relaxed"), "{kind}");
                assert!(kernel.files["kernel.py"].contains(" = atomic("), "{kind}");
            }
            Err(error) => {
                assert!(sem == "acq_rel" && error.to_string().contains("that order stores"), "{kind}: {error}")
            }
            Ok(other) => panic!("{other:?}"),
        }
    }
}

/// What is computed ahead of a tile that is only seen in another shape has no layout of that: it has no name yet. Here it is
/// random numbers (`bench.random_programs`, seed 1603).
#[test]
fn layouts_are_those_of_what_is_there() {
    let source = source_of(include_str!("kernels/random_numbers.ttir"), Which::Optimal);
    let text = source.split("def compute_1(").nth(1).unwrap();
    assert!(text.contains(".type.layout"));
    for (at, line) in text.lines().enumerate() {
        for (end, _) in line.match_indices(".type.layout") {
            let name = line[..end].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
            let is_made = |line: &str| line.trim_start().starts_with(&format!("{name} = "));
            assert!(text.lines().take(at).any(is_made), "{name} in line {at}: {line}");
        }
    }
}
