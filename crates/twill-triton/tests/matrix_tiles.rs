//! Loads through pointers that are proved to read a tile of a matrix.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use twill_triton::kernel::{Amount, LaunchNumber, MatrixTile, Symbol};
use twill_triton::{Kernel, read};

/// examples/gemm_pointers.ttir without locations, with texts replaced that must be in it.
fn gemm(changes: &[(&str, &str)]) -> Kernel {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/gemm_pointers.ttir");
    let mut text = std::fs::read_to_string(path).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    read(&text, "gemm.ttir").unwrap_or_else(|error| panic!("{error}\n{changes:?}"))
}

/// The tiles that the loads of A and B read, where that is proved.
fn tiles(kernel: &Kernel) -> [Option<&MatrixTile>; 2] {
    let gemm = &kernel.loops()[0];
    let loads = gemm.operations().iter().filter(|op| op.label() == "load");
    let tiles: Vec<_> = loads.map(|op| gemm.matrix_tile(op.statements[0])).collect();
    tiles.try_into().unwrap()
}

/// Returns whether the loads of A and of B are tiles of matrices.
fn recognized(changes: &[(&str, &str)]) -> [bool; 2] {
    let kernel = gemm(changes);
    tiles(&kernel).map(|tile| tile.is_some())
}

const COMPARE: &str = "%a_38 = arith.cmpi slt, %a_ptrs_13, %a_37 :";
const BOTH: &str = "arith.andi %a_39, %a_40";
const LOAD: &str = "tt.load %a_ptrs_34, %a_41, %cst_0 :";
const ROWS: &str = "%rows_2 = arith.muli %rows, %c128_i32 :";
const STRIDE: &str = "%a_ptrs_9 = tt.splat %stride_a :";
const IN_M: &str = "%in_m = tt.splat %M :";
const OFFSET: &str = "tt.addptr %a_ptrs_11, %a_ptrs_10 : tensor<128x1x!tt.ptr<f16>>, tensor<128x1xi32>";
const COLUMNS: &str = "%a_ptrs_15 = tt.broadcast %a_ptrs_13 :";

#[test]
fn matrices_are_what_pointers_and_masks_say() {
    let kernel = gemm(&[]);
    let name = |amount: Amount| match amount {
        Amount::Argument(value) => kernel.module().value(value).name.clone(),
        Amount::Constant(number) => number.to_string(),
    };
    let [a, b] = tiles(&kernel).map(Option::unwrap);
    assert_eq!((a.matrix.extents.map(name), name(a.matrix.stride)), (["M", "K"].map(str::to_owned), "stride_a".into()));
    assert_eq!((b.matrix.extents.map(name), name(b.matrix.stride)), (["K", "N"].map(str::to_owned), "stride_b".into()));
    for (along_depth, along_programs) in
        [(&a.tile_origin[1], &a.tile_origin[0]), (&b.tile_origin[0], &b.tile_origin[1])]
    {
        assert_eq!(along_depth.terms().collect::<Vec<_>>(), [(&[Symbol::Iteration][..], 64)]);
        assert!(matches!(along_programs.terms().collect::<Vec<_>>()[..], [([Symbol::Scalar(_)], 128)]));
    }
}

#[test]
fn masks_and_pointers_may_be_written_in_any_form() {
    for (what, from, to) in [
        ("the other order", BOTH, "arith.andi %a_40, %a_39"),
        ("both twice", BOTH, "arith.andi %again, %a_40"),
        ("the other way round", COMPARE, "%a_38 = arith.cmpi sgt, %a_37, %a_ptrs_13 :"),
        (
            "at most one less",
            COMPARE,
            "%one = arith.constant dense<1> : tensor<1x64xi32>
             %less = arith.subi %a_37, %one : tensor<1x64xi32>
             %a_38 = arith.cmpi sle, %a_ptrs_13, %less :",
        ),
        (
            "k + depth < K",
            COMPARE,
            "%ks = tt.splat %k : i32 -> tensor<1x64xi32>
             %here = arith.addi %ks, %a_ptrs_13 : tensor<1x64xi32>
             %end = tt.splat %K : i32 -> tensor<1x64xi32>
             %a_38 = arith.cmpi slt, %here, %end :",
        ),
        ("a constant stride", STRIDE, "%far = arith.constant 4104 : i32\n%a_ptrs_9 = tt.splat %far :"),
        ("a constant extent", IN_M, "%high = arith.constant 1000 : i32\n%in_m = tt.splat %high :"),
        ("64 bits", OFFSET, "tt.addptr %a_ptrs_11, %wide : tensor<128x1x!tt.ptr<f16>>, tensor<128x1xi64>"),
        ("a number of the grid", ROWS, "%count = tt.get_num_programs y : i32\n%rows_2 = arith.muli %rows, %count :"),
    ] {
        let mut changes = vec![(from, to)];
        if what == "both twice" {
            changes.push(("%a_41 = ", "%again = arith.andi %a_40, %a_39 : tensor<128x64xi1>\n%a_41 = "));
        }
        if what == "64 bits" {
            let wide = "%wide = arith.extsi %a_ptrs_10 : tensor<128x1xi32> to tensor<128x1xi64>\n%a_ptrs_12 = ";
            changes.push(("%a_ptrs_12 = ", wide));
        }
        assert_eq!(recognized(&changes), [true, true], "{what}");
    }
}

#[test]
fn what_is_not_proved_is_read_through_pointers() {
    let unaligned = "%a_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}";
    let uneven = "%stride_a: i32 {tt.divisibility = 16 : i32}";
    for (what, from, to) in [
        ("a base without promise", unaligned, "%a_ptr: !tt.ptr<f16>"),
        ("a base at multiples of 8 bytes", unaligned, "%a_ptr: !tt.ptr<f16> {tt.divisibility = 8 : i32}"),
        ("a stride without promise", uneven, "%stride_a: i32"),
        ("a stride of 8200 bytes", STRIDE, "%far = arith.constant 4100 : i32\n%a_ptrs_9 = tt.splat %far :"),
        ("a stride of 0", STRIDE, "%none = arith.constant 0 : i32\n%a_ptrs_9 = tt.splat %none :"),
        ("another stride", STRIDE, "%sum = arith.addi %stride_a, %stride_b : i32\n%a_ptrs_9 = tt.splat %sum :"),
        ("one or the other", BOTH, "arith.ori %a_39, %a_40"),
        ("another condition", BOTH, "arith.andi %third, %a_40"),
        ("unsigned", COMPARE, "%a_38 = arith.cmpi ult, %a_ptrs_13, %a_37 :"),
        ("one column more", COMPARE, "%a_38 = arith.cmpi sle, %a_ptrs_13, %a_37 :"),
        ("from the end", COMPARE, "%a_38 = arith.cmpi sgt, %a_ptrs_13, %a_37 :"),
        ("a bound of the sum", IN_M, "%sum = arith.addi %M, %N : i32\n%in_m = tt.splat %sum :"),
        ("volatile", LOAD, "tt.load %a_ptrs_34, %a_41, %cst_0 {isVolatile = true} :"),
        ("pointers slower than masks", "%cst_1 = arith.constant dense<64>", "%cst_1 = arith.constant dense<32>"),
        ("every other column", COLUMNS, "%a_ptrs_15 = tt.broadcast %even :"),
        ("rows from a difference on", ROWS, "%less = arith.subi %M, %N : i32\n%rows_2 = arith.muli %rows, %less :"),
        ("rows from -1 on", ROWS, "%before = arith.constant -1 : i32\n%rows_2 = arith.addi %rows, %before :"),
        ("rows below 0", ROWS, "%rows_2 = arith.subi %rows, %c128_i32 :"),
        ("written", "%c_ptrs_29 = tt.splat %c_ptr :", "%c_ptrs_29 = tt.splat %a_ptr :"),
    ] {
        let mut changes = vec![(from, to)];
        if what == "another condition" {
            let third = "%cold = arith.cmpi slt, %M, %N : i32
                         %colds = tt.splat %cold : i1 -> tensor<128x64xi1>
                         %third = arith.andi %a_39, %colds : tensor<128x64xi1>\n%a_41 = ";
            changes.push(("%a_41 = ", third));
        }
        if what == "every other column" {
            let even = "%even = arith.addi %a_ptrs_13, %a_ptrs_13 : tensor<1x64xi32>\n%a_ptrs_14 = ";
            changes.push(("%a_ptrs_14 = ", even));
        }
        assert_eq!(recognized(&changes), [false, true], "{what}");
    }
    let longer = [("step %c64_i32", "step %c128_i32")];
    assert_eq!(recognized(&longer), [false, false], "masks faster than pointers");
}

const ENDLESS: &str = "2147483647";

/// Extents of A, and the strides and numbers of its matrices.
fn described(changes: &[(&str, &str)]) -> Option<(Vec<String>, Vec<String>)> {
    let kernel = gemm(changes);
    let name = |amount: &Amount| match amount {
        Amount::Argument(value) => kernel.module().value(*value).name.clone(),
        Amount::Constant(number) => number.to_string(),
    };
    let symbol = |symbol: &Symbol| match symbol {
        Symbol::Scalar(value) => kernel.module().value(*value).name.clone(),
        other => format!("{other:?}"),
    };
    let [a, _] = tiles(&kernel);
    let a = a?;
    let terms = |number: &twill_triton::kernel::Polynomial| {
        let terms =
            number.terms().map(|(product, n)| format!("{n} {}", product.iter().map(symbol).collect::<String>()));
        terms.collect::<Vec<_>>().join(" + ")
    };
    let batches =
        a.matrix.batches.iter().zip(&a.batch).map(|(by, number)| format!("{} by {}", terms(number), name(by)));
    Some((a.matrix.extents.iter().map(name).collect(), batches.collect()))
}

#[test]
fn what_has_no_bound_has_no_end() {
    for (what, to, rows, columns) in [
        ("no mask", "tt.load %a_ptrs_34 :", ENDLESS, ENDLESS),
        ("no bound of columns", "tt.load %a_ptrs_34, %a_39, %cst_0 :", "M", ENDLESS),
        ("no bound of rows", "tt.load %a_ptrs_34, %a_40, %cst_0 :", ENDLESS, "K"),
    ] {
        assert_eq!(described(&[(LOAD, to)]), Some((vec![rows.into(), columns.into()], Vec::new())), "{what}");
    }
    let tile = stored(&[(STORE, "tt.store %c_ptrs_33, %3 :")]).unwrap();
    assert_eq!(tile.matrix.extents, [Amount::Constant((1 << 31) - 1); 2]);
    // What may be negative is read where it lies: of rows as long as an argument says, nothing begins before the pointer.
    let less = (ROWS, "%less = arith.subi %M, %N : i32\n%rows_2 = arith.muli %rows, %less :");
    assert_eq!(described(&[(LOAD, "tt.load %a_ptrs_34 :"), less]), None);
    assert_eq!(described(&[less]), None);
}

#[test]
fn matrices_may_be_several() {
    const POINTERS: &str = "tt.splat %a_ptr :";
    let far = |ahead: &str| {
        format!(
            "%z = tt.get_program_id z : i32\n{ahead}\n%a_far = tt.addptr %a_ptr, %ahead_z : !tt.ptr<f16>, i32\n%a_ptrs = tt.expand_dims"
        )
    };
    let described = |ahead: &str, load: &str| {
        described(&[(POINTERS, "tt.splat %a_far :"), ("%a_ptrs = tt.expand_dims", &far(ahead)), (LOAD, load)])
    };
    let masked = |ahead: &str| described(ahead, LOAD).map(|(extents, batches)| (extents.join(" "), batches.join(", ")));
    let of = |extents: &str, batches: &str| Some((extents.to_owned(), batches.to_owned()));
    assert_eq!(masked("%ahead_z = arith.muli %z, %stride_b : i32"), of("M K", "1 z by stride_b"));
    assert_eq!(masked("%c = arith.constant 4096 : i32\n%ahead_z = arith.muli %z, %c : i32"), of("M K", "1 z by 4096"));
    let two = "%one = arith.muli %z, %stride_b : i32
        %c = arith.constant 2048 : i32
        %more = arith.muli %z, %c : i32
        %ahead_z = arith.addi %one, %more : i32";
    assert_eq!(masked(two), of("M K", "1 z by stride_b, 1 z by 2048"));
    // In 64 bits the kernel counts further than a coordinate does.
    let wide = "%wide = arith.extsi %z : i32 to i64
        %c = arith.constant 1048576 : i64
        %cz = arith.muli %wide, %c : i64
        %m = arith.extsi %M : i32 to i64
        %ahead_z = arith.muli %cz, %m : i64";
    let far = |ahead: &str| far(ahead).replace("!tt.ptr<f16>, i32", "!tt.ptr<f16>, i64");
    let changes = [(POINTERS, "tt.splat %a_far :"), ("%a_ptrs = tt.expand_dims", &far(wide)), (LOAD, LOAD)];
    assert_eq!(self::described(&changes), None);
    // Not at a multiple of 16 bytes.
    assert_eq!(masked("%c = arith.constant 4 : i32\n%ahead_z = arith.muli %z, %c : i32"), None);
    // The one before may be anybody's.
    assert_eq!(masked("%less = arith.subi %z, %M : i32\n%ahead_z = arith.muli %less, %stride_b : i32"), None);
    // Rows of the same matrix, where nothing says that they are none.
    let rows = described("%ahead_z = arith.muli %z, %stride_a : i32", "tt.load %a_ptrs_34 :");
    assert_eq!(rows, Some((vec![ENDLESS.into(); 2], Vec::new())));
}

#[test]
fn what_is_selected_under_the_mask_is_what_the_mask_says() {
    let select = |condition: &str| {
        format!(
            "%nothing = arith.constant dense<0> : tensor<128x1xi32>
             %chosen = arith.select {condition}, %a_ptrs, %nothing : tensor<128x1xi1>, tensor<128x1xi32>
             %a_ptrs_10 = arith.muli %chosen,"
        )
    };
    let before = "%a_ptrs_10 = arith.muli %a_ptrs,";
    let early = "%m_end = tt.splat %M : i32 -> tensor<128x1xi32>
        %in_m_early = arith.cmpi slt, %a_ptrs, %m_end : tensor<128x1xi32>\n";
    let chosen = |condition: &str| described(&[(before, &format!("{early}{}", select(condition)))]);
    assert_eq!(chosen("%in_m_early"), Some((vec!["M".into(), "K".into()], Vec::new())));
    let other = early.replace("%M", "%N");
    assert_eq!(described(&[(before, &format!("{other}{}", select("%in_m_early")))]), None, "another condition");
    let early = format!("{early}{}", select("%in_m_early"));
    let unmasked = [(before, early.as_str()), (LOAD, "tt.load %a_ptrs_34 :")];
    let rows = Some((vec!["M".into(), ENDLESS.into()], Vec::new()));
    assert_eq!(described(&unmasked), rows, "elements that the store's mask leaves out");
    let written = [unmasked.as_slice(), &[(STORE, "tt.store %c_ptrs_33, %3 :")]].concat();
    assert_eq!(described(&written), None, "elements that nothing leaves out");
}

#[test]
fn ones_elsewhere_are_selected_after_a_load_of_zeros() {
    let ones = [("%cst_0 = arith.constant dense<0.0", "%cst_0 = arith.constant dense<1.0")];
    assert_eq!(recognized(&ones), [true, true]);
    let kernel = gemm(&ones);
    let operations: Vec<&str> = kernel.loops()[0].operations().iter().map(|op| op.label()).collect();
    assert_eq!(operations, ["and", "load", "select", "load", "dot"]);
}

#[test]
fn a_machine_prices_what_is_recognized_as_tma() {
    let lines = |changes: &[(&str, &str)]| {
        let text = gemm(changes).loops()[0].to_string();
        text.lines().filter(|line| line.contains("load")).map(|l| l.trim().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(lines(&[]), ["a   = load tma          : 128x64xf16", "b   = load tma          : 64x128xf16"]);
    let pointers = lines(&[(BOTH, "arith.ori %a_39, %a_40")]);
    assert_eq!(pointers[0], "a   = load pointer      : 128x64xf16");
}

#[test]
fn a_value_used_twice_in_every_step_takes_no_exponential_time() {
    let mut doubled = String::from("%d0 = arith.addi %a_ptrs_13, %a_ptrs_13 : tensor<1x64xi32>\n");
    for k in 0..60 {
        doubled.push_str(&format!("%d{} = arith.addi %d{k}, %d{k} : tensor<1x64xi32>\n", k + 1));
    }
    let doubled = format!("{doubled}%a_ptrs_14 = ");
    let changes = [("%a_ptrs_14 = ", doubled.as_str()), (COLUMNS, "%a_ptrs_15 = tt.broadcast %d60 :")];
    assert_eq!(recognized(&changes), [false, true]);
}

/// The loads of A where columns of the tile are rows of the matrix, `a + row + column · stride`.
const TRANSPOSED: [(&str, &str); 3] = [
    ("tt.addptr %a_ptrs_11, %a_ptrs_10 :", "tt.addptr %a_ptrs_11, %a_ptrs :"),
    (
        "%a_ptrs_14 = ",
        "%apart = tt.splat %stride_a : i32 -> tensor<1x64xi32>
         %across = arith.muli %a_ptrs_13, %apart : tensor<1x64xi32>
         %ahead = arith.muli %stride_a, %c64_i32 : i32
         %aheads = tt.splat %ahead : i32 -> tensor<128x64xi32>
         %a_ptrs_14 = ",
    ),
    (COLUMNS, "%a_ptrs_15 = tt.broadcast %across :"),
];

#[test]
fn a_tile_may_be_read_transposed() {
    let kernel =
        gemm(&[&TRANSPOSED[..], &[("tt.addptr %a_ptrs_34, %cst_1 :", "tt.addptr %a_ptrs_34, %aheads :")]].concat());
    let [a, b] = tiles(&kernel).map(Option::unwrap);
    let name = |amount: Amount| match amount {
        Amount::Argument(value) => kernel.module().value(value).name.clone(),
        Amount::Constant(number) => number.to_string(),
    };
    assert!(a.transposed && !b.transposed);
    assert_eq!((a.matrix.extents.map(name), name(a.matrix.stride)), (["K", "M"].map(str::to_owned), "stride_a".into()));
    assert_eq!(a.tile_origin[0].terms().collect::<Vec<_>>(), [(&[Symbol::Iteration][..], 64)]);
    assert_eq!(recognized(&TRANSPOSED), [false, true], "pointers that go on along the columns");
}

/// A number of the launch as a reader knows it.
fn said(kernel: &Kernel, number: &LaunchNumber) -> String {
    match number {
        LaunchNumber::Argument(value) => kernel.module().value(*value).name.clone(),
        LaunchNumber::Constant(number) => number.to_string(),
        LaunchNumber::Programs(axis) => format!("programs_{axis}"),
        LaunchNumber::Of(operator, a, b) => {
            format!("{operator:?}({}, {})", said(kernel, a), said(kernel, b)).to_lowercase()
        }
    }
}

#[test]
fn what_is_subtracted_from_must_leave_something_in_every_program() {
    // Programs in groups of 8 rows of tiles, as `tl.swizzle2d` has them: the column is a quotient by what is left of the rows.
    let grouped = "%c127 = arith.constant 127 : i32
        %c8 = arith.constant 8 : i32
        %more = arith.addi %N, %c127 : i32
        %count = arith.divsi %more, %c128_i32 : i32
        %first = arith.divsi %rows, %c8 : i32
        %left = arith.subi %count, %first : i32
        %size = arith.minsi %left, %c8 : i32
        %which = arith.divsi %rows, %size : i32
        %rows_2 = arith.muli %which, %c128_i32 :";
    let kernel = gemm(&[(ROWS, grouped)]);
    let [a, _] = tiles(&kernel);
    let natural = &a.expect("it is a tile if the grid is no larger than the matrix").natural;
    let all: Vec<String> = natural.iter().map(|number| said(&kernel, number)).collect();
    assert!(all.contains(&"N".to_owned()), "{all:?}");
    let left = all.iter().find(|one| one.starts_with("minus")).unwrap_or_else(|| panic!("{all:?}"));
    assert!(left.contains("programs_") && left.contains("over"), "{left}");
    // Of what both ends vary with the program, nothing can be said beforehand.
    let both = grouped.replace("arith.subi %count, %first", "arith.subi %rows, %first");
    let kernel = gemm(&[(ROWS, &both)]);
    assert!(tiles(&kernel)[0].is_none());
}

#[test]
fn arguments_in_coordinates_must_not_be_negative() {
    let natural = |to: &str| {
        let kernel = gemm(&[(ROWS, to)]);
        let names = tiles(&kernel).map(|tile| {
            let natural = &tile.unwrap().natural;
            natural.iter().map(|number| said(&kernel, number)).collect::<Vec<_>>().join(" ")
        });
        names.join(", ")
    };
    assert_eq!(natural(ROWS), ", ");
    assert_eq!(natural("%rows_2 = arith.muli %rows, %N :"), "N, ");
    // A grid in one dimension: program / ceil(N / 128) * 128.
    let row_of_tiles = "%c127 = arith.constant 127 : i32
        %more = arith.addi %N, %c127 : i32
        %count = arith.divsi %more, %c128_i32 : i32";
    let quotient =
        format!("{row_of_tiles}\n%which = arith.divsi %rows, %count : i32\n%rows_2 = arith.muli %which, %c128_i32 :");
    assert_eq!(natural(&quotient), "N, ");
    // A remainder of a program number has its sign, for every divisor.
    let rest = quotient.replace("arith.divsi %rows", "arith.remsi %rows");
    assert_eq!(natural(&rest), ", ");
}

#[test]
fn a_loop_may_go_from_the_end_to_the_beginning() {
    // The number of tiles, one less than it, and columns from the last tile on down, by the loop's variable.
    let tiles = "%one = arith.constant 1 : i32
        %count = arith.divsi %K, %c64_i32 : i32
        %last = arith.subi %count, %one : i32\n%in_m = tt.splat %M :";
    let down = "%number = arith.subi %last, %k : i32
        %first = arith.muli %number, %c64_i32 : i32
        %left = arith.subi %K, %first : i32\n%a_37 = tt.splat %left :";
    let load = "%firsts = tt.splat %first : i32 -> tensor<128x64xi32>
        %at = tt.addptr %a_ptrs_16, %firsts : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
        %a_42 = tt.load %at, %a_41, %cst_0 :";
    let is_tile = |bounds: &str, down: &str| {
        let changes = [
            (IN_M, tiles),
            ("%c0_i32 to %K step %c64_i32", bounds),
            ("%a_37 = tt.splat %a :", down),
            ("%a_42 = tt.load %a_ptrs_34, %a_41, %cst_0 :", load),
        ];
        recognized(&changes)[0]
    };
    assert!(is_tile("%c0_i32 to %count step %one", down));
    assert!(!is_tile("%c0_i32 to %K step %one", down), "one that goes on below 0");
    assert!(!is_tile("%c0_i32 to %count step %one", &down.replace("%last,", "%M,")), "from elsewhere");
    let twice = "%twice = arith.addi %k, %k : i32\n%number = arith.subi %last, %twice :";
    assert!(!is_tile("%c0_i32 to %count step %one", &down.replace("%number = arith.subi %last, %k :", twice)));
    // Two iterations, of 0 and 64.
    let from = |top: &str| {
        let number = format!("%top = arith.constant {top} : i32\n%number = arith.subi %top, %k :");
        let down = down.replace("%number = arith.subi %last, %k :", &number);
        is_tile("%c0_i32 to %c128_i32 step %c64_i32", &down)
    };
    assert_eq!(["63", "64", "65"].map(from), [false, true, true]);
}

/// Returns whether the store of C writes a tile of a matrix.
fn stored(changes: &[(&str, &str)]) -> Option<MatrixTile> {
    let kernel = gemm(changes);
    let module = kernel.module();
    let stores: Vec<_> = module.walk(kernel.function()).filter(|id| module.operation(*id).name == "tt.store").collect();
    kernel.stored_matrix(stores[0])
}

const STORE: &str = "tt.store %c_ptrs_33, %3, %2 :";
const C_STRIDE: &str = "%c_ptrs_28 = arith.muli %a_ptrs, %c_ptrs :";

#[test]
fn the_store_of_c_writes_a_tile_of_a_matrix() {
    let kernel = gemm(&[]);
    let name = |amount: Amount| match amount {
        Amount::Argument(value) => kernel.module().value(value).name.clone(),
        Amount::Constant(number) => number.to_string(),
    };
    let c = stored(&[]).unwrap();
    assert_eq!((c.matrix.extents.map(name), name(c.matrix.stride)), (["M", "N"].map(str::to_owned), "stride_c".into()));
    assert!(matches!(c.tile_origin[1].terms().collect::<Vec<_>>()[..], [([Symbol::Scalar(_)], 128)]));
}

#[test]
fn stores_that_are_not_proved_to_write_tiles_go_through_pointers() {
    let again = format!("{STORE} tensor<128x128x!tt.ptr<f16>>\n{STORE}");
    for (what, from, to) in [
        ("written twice", STORE, again.as_str()),
        ("another stride", C_STRIDE, "%c_ptrs_28 = arith.muli %c_ptrs, %c_ptrs :"),
        ("rows that end anywhere", "%N: i32 {tt.divisibility = 16 : i32}", "%N: i32"),
        ("a base without promise", "%c_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}", "%c_ptr: !tt.ptr<f16>"),
        (
            "columns of another matrix",
            "%in_n = tt.splat %N :",
            "%sum = arith.addi %M, %N : i32\n%in_n = tt.splat %sum :",
        ),
    ] {
        assert_eq!(stored(&[(from, to)]), None, "{what}");
    }
}
