//! Loop re-tiling: a loop over tiles of one size as a loop over tiles of another.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use twill_triton::mlir::{Module, parse};
use twill_triton::retile_loop::{AT_LEAST, FIRST_ITERATION, SOURCE_STEP};
use twill_triton::{Error, Kernel};

fn text(name: &str) -> String {
    let path = format!("{}/../../examples/{name}.ttir", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn with_step(text: &str, step: u64) -> Result<Kernel, Error> {
    Kernel::with_step(parse(text, "kernel.ttir").unwrap(), None, Some(step))
}

/// The types of the results of operations of a name.
fn types(module: &Module, name: &str) -> Vec<String> {
    let all = module.walk(module.top()).filter(|id| module.operation(*id).name == name);
    all.map(|id| module.type_of(module.operation(id).results[0]).to_string()).collect()
}

fn why(text: &str, step: u64) -> String {
    match with_step(text, step) {
        Err(Error::RetileLoop { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

/// Rows of 128 queries and 128 columns of the head dimension stay, though they are as many as the keys.
#[test]
fn what_runs_along_the_loop_is_found() {
    let kernel = with_step(&text("attention_forward"), 176).unwrap();
    let module = kernel.module();
    let loads = types(module, "tt.descriptor_load");
    assert_eq!(loads, ["tensor<128x128xf16>", "tensor<176x128xf16>", "tensor<176x128xf16>"]);
    assert_eq!(types(module, "tt.dot"), ["tensor<128x176xf32>", "tensor<128x128xf32>"]);
    let masks = module.walk(module.top()).map(|id| module.operation(id)).filter(|o| o.attributes.flag(FIRST_ITERATION));
    assert_eq!(masks.map(|o| o.name.as_str()).collect::<Vec<_>>(), ["arith.select"; 2]);
    let (index, _) = module.arguments(kernel.function()).iter().enumerate().next_back().unwrap();
    assert_eq!(module.argument_attributes(kernel.function(), index).unwrap().integer(AT_LEAST), Some(129));
    let parts = module.for_loops(kernel.function()).next().unwrap();
    assert_eq!(module.operation(parts.operation).attributes.integer(SOURCE_STEP), Some(128));
    assert_eq!(module.integer_constant(parts.step), Some(176));
    // Masks are no operations of the schedule.
    let source = twill_triton::read(&text("attention_forward"), "kernel.ttir").unwrap();
    assert_eq!(kernel.loops()[0].operations().len(), source.loops()[0].operations().len());
}

/// Uses are those of the changed text, in its order.
#[test]
fn uses_are_kept_up() {
    let kernel = with_step(&text("tutorial_attention"), 64).unwrap();
    let module = kernel.module();
    let mut uses = 0;
    for id in module.walk(module.top()) {
        for (index, value) in module.operation(id).operands.iter().enumerate() {
            assert!(module.uses(*value).iter().any(|u| u.operation == id && u.index == index));
            uses += 1;
        }
    }
    let values = module.walk(module.top()).flat_map(|id| {
        let regions = module.operation(id).regions.iter().flat_map(|r| &module.region(*r).blocks);
        let arguments = regions.flat_map(|b| module.block(*b).arguments.iter().copied());
        module.operation(id).results.iter().copied().chain(arguments).collect::<Vec<_>>()
    });
    assert_eq!(values.map(|v| module.uses(v).len()).sum::<usize>(), uses);
}

/// A text cannot say that its own masks are needed once only.
#[test]
fn marks_of_the_text_are_forgotten() {
    let causal = text("attention_forward_causal");
    let at = causal.find("arith.select").unwrap();
    let end = at + causal[at..].find(" : ").unwrap();
    let marked = format!("{} {{{FIRST_ITERATION}}}{}", &causal[..end], &causal[end..]);
    let count = |text: &str| twill_triton::read(text, "kernel.ttir").unwrap().loops()[1].operations().len();
    assert!(parse(&marked, "kernel.ttir").unwrap().to_string().contains(FIRST_ITERATION));
    assert_eq!(count(&marked), count(&causal));
}

#[test]
fn other_loops_are_refused() {
    let attention = text("attention_forward");
    let changed = |from: &str, to: &str| {
        assert!(attention.contains(from), "{from}");
        attention.replacen(from, to, 1)
    };
    for (text, said) in [
        (changed("scf.for %n = %c0_i32 to", "scf.for %n = %c128_i32 to"), "it must go from 0 to a parameter"),
        (changed("to %length step", "to %first_row_18 step"), "it must go from 0 to a parameter"),
        (
            changed("%k = arith.addi %first_row_18, %n", "%k = arith.muli %first_row_18, %n"),
            "a tile must begin at the loop's",
        ),
        (changed("arith.maxnumf %new_max_47, %new_max_48", "arith.mulf %new_max_47, %new_max_48"), "only sums, maxima"),
        (
            changed("tt.descriptor_load %v_desc[%k,", "tt.descriptor_load %v_desc[%first_row_18,"),
            "a tile along it must begin at",
        ),
        (
            changed("%alpha = arith.subf", "%block = arith.divsi %n, %c128_i32 : i32\n      %alpha = arith.subf"),
            "its variable is used for something else",
        ),
    ] {
        let found = why(&text, 176);
        assert!(found.contains(said), "{found} ({said})");
    }
    let twice = changed("%k = arith.addi %first_row_18, %n", "%k = arith.addi %n, %n");
    assert!(why(&twice, 176).contains("a tile must begin at the loop's"), "{}", why(&twice, 176));
    let huge = changed("to %length step", "to %most step").replacen(
        "%first_query = tt.get",
        "%most = arith.constant 2147483647 : i32\n    %first_query = tt.get",
        1,
    );
    assert!(why(&huge, 176).contains("further than 32 bits"), "{}", why(&huge, 176));
    // A place that goes on by half as much.
    let tutorial = text("tutorial_attention");
    let half = tutorial.replacen(
        "%offsetk_y_48 = arith.addi %offsetk_y, %c128_i32",
        "%offsetk_y_48 = arith.addi %offsetk_y, %half",
        1,
    );
    let half = half.replacen("    %offset_y_19 =", "    %half = arith.constant 64 : i32\n    %offset_y_19 =", 1);
    assert!(why(&half, 176).contains("goes on by another step"), "{}", why(&half, 176));
    assert!(why(&text("gemm_tma"), 32).contains("not loaded"));
    assert!(why(&text("attention_forward_causal"), 64).contains("one loop"));
    for step in [12, 72, 272, 0] {
        assert!(why(&attention, step).contains("a multiple of 16"));
    }
    // Nothing is known of the factor.
    let ones = "%ones = arith.constant dense<1.000000e+00> : tensor<128x128xf16>\n    %first_query = tt.get";
    let text = changed("%first_query = tt.get", ones).replacen("tt.dot %acc_45,", "tt.dot %ones,", 1);
    assert!(why(&text, 176).contains("must be computed in the loop"), "{}", why(&text, 176));
}
