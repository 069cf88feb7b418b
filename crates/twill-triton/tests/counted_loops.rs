//! `while` loops that count are loops over a range; what else goes on and on is left as it is.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use twill_triton::Error;
use twill_triton::kernel::Kernel;
use twill_triton::mlir::parse;

const COUNTING: &str = include_str!("../../../examples/fixtures/loops/counting.ttir");

/// Lower bound, upper bound and step of the kernel's loop over a range, by the operations that compute them; `None` without one.
fn range(text: &str) -> Option<[String; 3]> {
    let kernel = match Kernel::new(parse(text, "test.ttir").unwrap(), None) {
        Ok(kernel) => kernel,
        Err(Error::NoLoop { .. }) => return None,
        Err(error) => panic!("{error}"),
    };
    let module = kernel.module();
    let parts = module.for_loops(kernel.function()).next().unwrap();
    assert!(module.walk(kernel.function()).all(|id| module.operation(id).name != "scf.while"));
    let name = |value| module.operation(module.defining_operation(value).unwrap()).name.clone();
    Some([parts.lower, parts.upper, parts.step].map(name))
}

/// The text with one change.
fn changed(from: &str, to: &str) -> String {
    assert_eq!(COUNTING.matches(from).count(), 1, "{from}");
    COUNTING.replace(from, to)
}

#[test]
fn a_loop_that_counts_to_a_bound_is_one_over_a_range() {
    // One more than the bound, where that is the last number.
    let [lower, step] = ["tt.get_program_id", "arith.constant"];
    assert_eq!(range(COUNTING), Some([lower, "arith.addi", step].map(String::from)));
    let below = changed("arith.cmpi sle,", "arith.cmpi slt,");
    assert_eq!(range(&below), Some([lower, "arith.muli", step].map(String::from)));
    let exchanged = below.replace("arith.cmpi slt, %at_9, %11", "arith.cmpi sgt, %11, %at_9");
    assert_ne!(exchanged, below);
    assert_eq!(range(&exchanged), Some([lower, "arith.muli", step].map(String::from)));
}

#[test]
fn a_loop_that_may_not_count_up_to_a_fixed_bound_is_left() {
    let sum = "arith.addi %at_9, %c2_i32";
    for text in [
        changed("%c2_i32 = arith.constant 2 ", "%c2_i32 = arith.constant -2 "),
        changed("%c2_i32 = arith.constant 2 ", "%c2_i32 = arith.constant 0 "),
        // A step that nobody knows, a sum of another number, another operation, and a bound that moves.
        changed(sum, "arith.addi %at_9, %n"),
        changed(sum, "arith.addi %n, %c2_i32"),
        changed(sum, "arith.muli %at_9, %c2_i32"),
        changed("arith.cmpi sle, %at_9, %11", "arith.cmpi sle, %at_9, %at_9"),
        changed("arith.cmpi sle,", "arith.cmpi ne,"),
        changed("arith.cmpi sle,", "arith.cmpi ule,"),
        // What another program writes may end it.
        changed("%x = tt.load %xs_8 :", "%x = tt.load %xs_8 {isVolatile = true} :"),
        // It never runs.
        changed("%at = tt.get_program_id x : i32", "%at = arith.constant 9 : i32")
            .replace("arith.cmpi sle, %at_9, %11", "arith.cmpi sle, %at_9, %c2_i32"),
    ] {
        assert_eq!(range(&text), None);
    }
}
