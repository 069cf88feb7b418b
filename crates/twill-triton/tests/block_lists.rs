//! Softmax over blocks of a list: what is scaled after a maximum, and what is carried as a number.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use twill_triton::kernel::{Kernel, POSITIVE};
use twill_triton::mlir::{Type, parse};

const LISTED: &str = include_str!("../../../examples/fixtures/loops/listed.ttir");

fn kernel(text: &str) -> Kernel {
    Kernel::new(parse(text, "listed.ttir").unwrap(), None).unwrap()
}

/// The text with one change.
fn changed(from: &str, to: &str) -> String {
    assert_eq!(LISTED.matches(from).count(), 1, "{from}");
    LISTED.replace(from, to)
}

/// Whether rows are multiplied after their maximum is taken.
fn scales_maxima(text: &str) -> bool {
    let kernel = kernel(text);
    let module = kernel.module();
    module.walk(kernel.function()).any(|id| {
        let operation = module.operation(id);
        let is_reduced =
            |value: &_| module.defining_operation(*value).is_some_and(|of| module.operation(of).name == "tt.reduce");
        operation.name == "arith.mulf" && operation.operands.iter().any(is_reduced)
    })
}

/// Dimensions of what the loop carries.
fn carried(text: &str) -> Vec<usize> {
    let kernel = kernel(text);
    let module = kernel.module();
    let parts = module.for_loops(kernel.function()).next().unwrap();
    parts.carried.iter().map(|value| module.type_of(*value).known_shape().map_or(0, |shape| shape.len())).collect()
}

/// The text with another tile of factors.
fn scaled_by(factors: &str) -> String {
    let tile = LISTED.lines().find(|line| line.contains("tt.splat %scale")).unwrap();
    let name = tile.trim().split(' ').next().unwrap();
    changed(tile, &format!("      {name} = {factors}"))
}

/// The arguments that have to be positive.
fn positive(text: &str) -> Vec<String> {
    let kernel = kernel(text);
    let module = kernel.module();
    let is_positive = |index: &usize| {
        let attributes = module.argument_attributes(kernel.function(), *index);
        attributes.is_some_and(|all| all.integer(POSITIVE).is_some())
    };
    let arguments = module.arguments(kernel.function());
    (0..arguments.len()).filter(is_positive).map(|index| module.value(arguments[index]).name.clone()).collect()
}

#[test]
fn a_maximum_is_taken_before_its_numbers_are_scaled() {
    assert!(scales_maxima(LISTED));
    assert_eq!(positive(LISTED), ["scale"]);
    let constant = |number: &str| scaled_by(&format!("arith.constant dense<{number}> : tensor<64x64xf32>"));
    assert!(scales_maxima(&constant("1.250000e-01")));
    assert_eq!(positive(&constant("1.250000e-01")), Vec::<String>::new());
    // A negative factor turns their order round, and zero makes all of them equal.
    for factor in ["-1.250000e-01", "0.000000e+00"] {
        assert!(!scales_maxima(&constant(factor)), "{factor}");
    }
    let other = scaled_by("tt.splat %other : f32 -> tensor<64x64xf32>");
    let of = |number: &str| other.replacen("    %", &format!("    %other = {number}\n    %"), 1);
    for (number, takes) in [("arith.mulf %scale, %scale : f32", true), ("arith.negf %scale : f32", false)] {
        assert_eq!(scales_maxima(&of(number)), takes, "{number}");
    }
}

/// As of `scores = zeros; scores += …`: an exponential sees no sign of zero, a sum does.
#[test]
fn zero_may_be_added_before_an_exponential() {
    let scaled = LISTED.lines().find(|line| line.contains("arith.mulf") && line.contains("64x64xf32>")).unwrap();
    let name = scaled.trim().split(' ').next().unwrap();
    let zero = "%nothing = arith.constant dense<0.000000e+00> : tensor<64x64xf32>";
    let added = format!("{scaled}\n      {zero}\n      %added = arith.addf {name}, %nothing : tensor<64x64xf32>");
    let text = changed(scaled, &added).replace(&format!(", {name}, %cst"), ", %added, %cst");
    assert!(scales_maxima(&text));
    let exponential = text.lines().find(|line| line.contains("math.exp2") && line.contains("64x64")).unwrap();
    assert!(!scales_maxima(&text.replace(exponential, &exponential.replace("math.exp2", "math.absf"))));
}

/// The second maximum is of what the first one became.
#[test]
fn a_maximum_of_scaled_maxima_keeps_both_factors() {
    let reduce = LISTED.find("%greater = \"tt.reduce\"").unwrap();
    let after = reduce + LISTED[reduce..].find("tensor<64xf32>").unwrap();
    let after = after + LISTED[after..].find('\n').unwrap();
    let more = "
      %two = arith.constant dense<2.000000e+00> : tensor<64xf32>
      %twice = arith.mulf %greater, %two : tensor<64xf32>
      %greatest = \"tt.reduce\"(%twice) <{axis = 0 : i32}> ({
      ^bb0(%one: f32, %other: f32):
        %most_of = arith.maxnumf %one, %other : f32
        tt.reduce.return %most_of : f32
      }) : (tensor<64xf32>) -> f32";
    let kernel = kernel(&format!("{}{more}{}", &LISTED[..after], &LISTED[after..]));
    let module = kernel.module();
    let by = |value| module.operation(module.defining_operation(value).unwrap());
    let mut reduces = module.walk(kernel.function()).map(|id| module.operation(id));
    let second = reduces.find(|one| one.name == "tt.reduce" && one.attributes.axis() == 0);
    // Rows are scaled, and then their maximum is taken, which is doubled.
    let rows = by(second.unwrap().operands[0]);
    assert_eq!((rows.name.as_str(), by(rows.operands[0]).name.as_str()), ("arith.mulf", "tt.reduce"));
}

#[test]
fn scaled_numbers_that_are_left_out_as_another_number_stay_as_they_are() {
    // A finite number is another one once it is scaled.
    let infinite = LISTED.lines().find(|line| line.contains("dense<0xFF800000> : tensor<64x64xf32>")).unwrap();
    assert!(!scales_maxima(&changed(infinite, &infinite.replace("0xFF800000", "-1.000000e+09"))));
}

#[test]
fn scaled_numbers_that_something_else_reads_stay_as_they_are() {
    let subtracted = LISTED.lines().find(|line| line.contains("arith.subf") && line.contains("64x64")).unwrap();
    let exponential = LISTED.lines().find(|line| line.contains("math.exp2") && line.contains("64x64")).unwrap();
    let name = subtracted.trim().split(' ').next().unwrap();
    let scaled = subtracted.split("arith.subf ").nth(1).unwrap().split(',').next().unwrap();
    assert!(!scales_maxima(&changed(exponential, &exponential.replace(&format!("{name} "), &format!("{scaled} ")))));
}

#[test]
fn offsets_that_go_on_by_any_number_are_carried_as_numbers() {
    // A sum of products, two of rows, and two numbers.
    let mut dimensions = carried(LISTED);
    dimensions.sort_unstable();
    assert_eq!(dimensions, [0, 0, 1, 1, 2]);
}

/// A sum of 32 bits would wrap around where addresses do not.
#[test]
fn pointers_that_go_on_by_numbers_of_32_bits_stay_tiles() {
    let recurrent = include_str!("../../../examples/fixtures/loops/recurrent.ttir");
    let kernel = kernel(recurrent);
    let module = kernel.module();
    let parts = module.for_loops(kernel.function()).next().unwrap();
    let kinds = |found: fn(&Type) -> bool| parts.carried.iter().filter(|value| found(module.type_of(**value))).count();
    assert_eq!(kinds(|kind| kind.is_tensor() && matches!(kind.element(), Type::Pointer { .. })), 1);
    assert_eq!(kinds(|kind| kind.is_tensor() && matches!(kind.element(), Type::Integer(_))), 0);
}

#[test]
fn offsets_that_go_on_by_one_number_stay_tiles() {
    let ahead = LISTED.lines().find(|line| line.contains("tt.splat %goes_on") && line.contains("i32")).unwrap();
    let number = ahead.split("tt.splat ").nth(1).unwrap().split(' ').next().unwrap();
    let steady = changed(ahead, &ahead.replace(number, "%c64_i32"));
    assert!(steady.contains("%c64_i32 = arith.constant"));
    assert!(carried(&steady).iter().filter(|dimensions| **dimensions > 0).count() > 3);
}

#[test]
fn blocks_at_numbers_in_memory_are_tiles_of_a_matrix_that_begins_before_them() {
    let kernel = kernel(LISTED);
    let module = kernel.module();
    let loads = module.walk(kernel.function()).filter(|id| {
        let result = module.operation(*id).results.first();
        module.operation(*id).name == "tt.load"
            && result.is_some_and(|tile| matches!(module.type_of(*tile), Type::Tensor { .. }))
    });
    let tiles: Vec<_> = loads.filter_map(|load| kernel.loops()[0].matrix_tile(load)).collect();
    assert_eq!(tiles.len(), 2);
    for tile in tiles {
        // Two offsets of 32 bits, in rows of 64 numbers.
        assert_eq!(tile.matrix.rows_before, (1 << 32) / 64);
    }
}
