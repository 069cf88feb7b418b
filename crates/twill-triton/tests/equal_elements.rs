//! Tiles of which a loop loads one element many times.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use twill_triton::kernel::Kernel;
use twill_triton::mlir::parse;

const SCALED: &str = include_str!("../../../examples/fixtures/loops/scaled.ttir");

/// Extents of the tiles of one dimension that a kernel's loop loads.
fn vectors(text: &str) -> Vec<u64> {
    let kernel = Kernel::new(parse(text, "test.ttir").unwrap(), None).unwrap();
    let module = kernel.module();
    let loads = module.walk(kernel.function()).filter(|id| module.operation(*id).name == "tt.load");
    let shapes = loads.filter_map(|id| module.type_of(module.operation(id).results[0]).known_shape());
    shapes.filter(|shape| shape.len() == 1).map(|shape| shape[0]).collect()
}

/// The text with one change.
fn changed(from: &str, to: &str) -> String {
    assert_eq!(SCALED.matches(from).count(), 1, "{from}");
    SCALED.replace(from, to)
}

#[test]
fn one_of_equal_elements_is_loaded() {
    assert_eq!(vectors(SCALED), [1, 1]);
}

#[test]
fn elements_beyond_the_end_that_are_written_are_loaded() {
    // A mask of other columns.
    let wider = changed("arith.cmpi slt, %tile_6, %1", "arith.cmpi sle, %tile_6, %1");
    assert_eq!(vectors(&wider), [64, 1]);
}

#[test]
fn elements_of_several_blocks_are_loaded() {
    let blocks_of_two = changed("arith.divsi %0, %cst_2", "arith.divsi %0, %cst_0");
    assert_eq!(vectors(&blocks_of_two), [1, 64]);
}

#[test]
fn pointers_that_something_else_reads_stay_as_they_are() {
    let step = "%of_rows_41 = tt.addptr %of_rows_18, %cst_0 : tensor<64x!tt.ptr<f16>>, tensor<64xi32> loc(#loc75)";
    let twice = changed(step, &format!("{step}\n{}", step.replace("of_rows_41", "again")));
    assert_eq!(vectors(&twice), [1, 64]);
}
