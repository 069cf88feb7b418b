//! Loads whose rows or columns begin again at the end of the matrix, and what `tl.assume` says.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use twill_triton::kernel::Amount;
use twill_triton::{Kernel, read};

/// A product of examples/fixtures with texts replaced, each of which must be in it once.
fn product(name: &str, changes: &[(&str, &str)]) -> Kernel {
    let path = format!("{}/../../examples/fixtures/product_{name}.ttir", env!("CARGO_MANIFEST_DIR"));
    let mut text = std::fs::read_to_string(path).unwrap();
    for (from, to) in changes {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        text = text.replace(from, to);
    }
    read(&text, name).unwrap_or_else(|error| panic!("{error}\n{changes:?}"))
}

/// By load of the loop, the extents of the matrix that it is proved to read a tile of.
fn extents(kernel: &Kernel) -> Vec<Option<[String; 2]>> {
    let name = |amount: Amount| match amount {
        Amount::Argument(value) => kernel.module().value(value).name.clone(),
        Amount::Constant(number) => number.to_string(),
    };
    let product = &kernel.loops()[0];
    let loads = product.operations().iter().filter(|op| op.label() == "load");
    loads.map(|op| product.matrix_tile(op.statements[0]).map(|tile| tile.matrix.extents.map(name))).collect()
}

fn recognized(name: &str, changes: &[(&str, &str)]) -> [bool; 2] {
    let found: Vec<bool> = extents(&product(name, changes)).iter().map(Option::is_some).collect();
    found.try_into().unwrap()
}

const STORE: &str = "tt.store %c_ptrs_30, %c, %25 :";
const SUM: &str = "%c = arith.truncf %acc_22#2 :";

#[test]
fn rows_that_are_never_written_may_be_anything() {
    let found = extents(&product("wrapped_pointers", &[]));
    assert_eq!(found, [Some(["M".to_owned(), "K".to_owned()]), Some(["K".to_owned(), "N".to_owned()])]);
}

#[test]
fn arithmetic_on_rows_and_along_the_other_dimension_keeps_them_apart() {
    let squares = "%square = arith.mulf %acc_22#2, %acc_22#2 : tensor<128x128xf32>\n%c = arith.truncf %square :";
    assert_eq!(recognized("wrapped_pointers", &[(SUM, squares)]), [true, true]);
    // Sums of rows mix columns, and leave rows as they are.
    assert_eq!(recognized("wrapped_pointers", &[(SUM, &sums_along(1, "128x1"))]), [true, false]);
    assert_eq!(recognized("wrapped_pointers", &[(SUM, &sums_along(0, "1x128"))]), [false, true]);
}

/// Adds up the results along an axis, and stores the sums everywhere.
fn sums_along(axis: u32, single: &str) -> String {
    format!(
        "%sums = \"tt.reduce\"(%acc_22#2) <{{axis = {axis} : i32}}> ({{
         ^bb0(%x: f32, %y: f32):
           %z = arith.addf %x, %y : f32
           tt.reduce.return %z : f32
         }}) : (tensor<128x128xf32>) -> tensor<128xf32>
         %column = tt.expand_dims %sums {{axis = {axis} : i32}} : tensor<128xf32> -> tensor<{single}xf32>
         %spread = tt.broadcast %column : tensor<{single}xf32> -> tensor<128x128xf32>
         %c = arith.truncf %spread :"
    )
}

#[test]
fn rows_that_may_be_written_are_read_through_pointers() {
    for (what, from, to, expected) in [
        ("no mask", STORE, "tt.store %c_ptrs_30, %c :", [false, false]),
        ("rows only", STORE, "tt.store %c_ptrs_30, %c, %23 :", [true, false]),
        ("columns only", STORE, "tt.store %c_ptrs_30, %c, %24 :", [false, true]),
        ("rows up to another end", "%20 = arith.cmpi slt,", "%20 = arith.cmpi sle,", [false, true]),
        ("either", "%25 = arith.andi %23, %24 :", "%25 = arith.ori %23, %24 :", [false, false]),
        (
            "stored before",
            STORE,
            "tt.store %c_ptrs_30, %c : tensor<128x128x!tt.ptr<f16>>\ntt.store %c_ptrs_30, %c, %25 :",
            [false, false],
        ),
        (
            "turned round",
            SUM,
            "%turned = tt.trans %acc_22#2 {order = array<i32: 1, 0>} : tensor<128x128xf32> -> tensor<128x128xf32>
             %c = arith.truncf %turned :",
            [false, false],
        ),
        (
            "the whole depth",
            "%a_38 = tt.load %a_ptrs_31, %a_37, %cst_0 :",
            "%a_38 = tt.load %a_ptrs_31 :",
            [true, true],
        ),
    ] {
        assert_eq!(recognized("wrapped_pointers", &[(from, to)]), expected, "{what}");
    }
}

#[test]
fn coordinates_are_not_negative_where_the_kernel_says_so() {
    // A divisor of which nothing is known: what is left of rows is, by the launch.
    let divisor = (
        "%tile_n = arith.divsi %tile_m, %size_3 :",
        "%odd = arith.subi %M, %N : i32\n%tile_n = arith.divsi %tile_m, %odd :",
    );
    let unsaid = ("llvm.intr.assume %5 :", "llvm.intr.assume %4 :");
    let before =
        ("%program = tt.get_program_id x :", "%before = arith.constant -1 : i32\n%program = tt.get_program_id x :");
    let said = |text: &'static str| ("%5 = arith.cmpi sge, %tile_n, %c0_i32 :", text);
    for name in ["moving_pointers", "wrapped_pointers"] {
        assert_eq!(recognized(name, &[unsaid]), [true, true], "{name}: rows in groups");
        assert_eq!(recognized(name, &[divisor]), [true, true], "{name}");
        assert_eq!(recognized(name, &[divisor, unsaid]), [true, false], "{name}");
        let one_less = said("%5 = arith.cmpi sge, %tile_n, %before :");
        assert_eq!(recognized(name, &[divisor, one_less, before]), [true, false], "{name}: -1 or more");
        let more = said("%5 = arith.cmpi sgt, %tile_n, %before :");
        assert_eq!(recognized(name, &[divisor, more, before]), [true, true], "{name}: more than -1");
        let at_most = said("%5 = arith.cmpi sle, %tile_n, %c0_i32 :");
        assert_eq!(recognized(name, &[divisor, at_most]), [true, false], "{name}: at most 0");
    }
}
