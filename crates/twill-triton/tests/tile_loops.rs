//! Small loops: tile operations, their operands, and errors.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use twill_graph::Cycles;
use twill_machine::Machine;
use twill_triton::tile::TileLoop;
use twill_triton::{Error, Options, contract, lower, read, read_kernel, sub_tile};

/// Constants and arguments that the loops below use.
const BEFORE: &str = "
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %row0 = arith.constant dense<0.0> : tensor<128xf32>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %step = arith.constant dense<64> : tensor<128x64xi32>
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %w = tt.descriptor_load %d[%c0, %c0] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
    %bias = tt.descriptor_load %f[%c0, %c0] : !tt.tensordesc<tensor<128x64xf32>> -> tensor<128x64xf32>";

fn kernel(carried: &str, body: &str, yielded: &str) -> String {
    let types: Vec<&str> = yielded.split_once(':').map_or(vec![], |(_, types)| types.split(',').collect());
    let results = if types.is_empty() { String::new() } else { format!(" -> ({})", types.join(",")) };
    let count = if types.len() > 1 { format!("%r:{} = ", types.len()) } else { "%r = ".into() };
    let count = if types.is_empty() { String::new() } else { count };
    let carried = if carried.is_empty() { String::new() } else { format!(" iter_args({carried})") };
    let uses: String = types
        .iter()
        .enumerate()
        .filter(|(_, kind)| kind.trim() == "tensor<128x64xf32>")
        .map(|(i, kind)| {
            let value = if types.len() > 1 { format!("%r#{i}") } else { "%r".into() };
            format!("tt.descriptor_store %f[%c0, %c0], {value} : !tt.tensordesc<{0}>, {0}\n", kind.trim())
        })
        .collect();
    format!(
        "
tt.func public @k(%a: !tt.tensordesc<tensor<128x64xf16>>, %d: !tt.tensordesc<tensor<64x64xf16>>, %f: !tt.tensordesc<tensor<128x64xf32>>, %p: !tt.ptr<f32>, %pi: !tt.ptr<i32>, %n: i32, %s: f32) {{{BEFORE}
    {count}scf.for %i = %c0 to %n step %c1{carried}{results} : i32 {{
{body}
      scf.yield {yielded}
    }}
    {uses}tt.return
  }}"
    )
}

fn only_loop(carried: &str, body: &str, yielded: &str) -> TileLoop {
    let text = kernel(carried, body, yielded);
    let kernel = read(&text, "k.ttir").unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(kernel.loops().len(), 1);
    kernel.loops()[0].clone()
}

fn listing(carried: &str, body: &str, yielded: &str) -> Vec<String> {
    let text = only_loop(carried, body, yielded).to_string();
    text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn message(carried: &str, body: &str, yielded: &str) -> String {
    match read(&kernel(carried, body, yielded), "k.ttir") {
        Ok(kernel) => panic!("this was read:\n{}", kernel.loops()[0]),
        Err(error) => error.to_string(),
    }
}

const LOAD: &str = "%x = tt.descriptor_load %f[%i, %c0] : !tt.tensordesc<tensor<128x64xf32>> -> tensor<128x64xf32>\n";
const TILE: &str = "tensor<128x64xf32>";

#[test]
fn values_that_move_through_carried_places_are_read_from_longer_ago() {
    let carried = "%old = %zero, %older = %zero, %sum = %zero";
    let body = format!("{LOAD} %next = arith.addf %sum, %older : {TILE}");
    let lines = listing(carried, &body, &format!("%x, %old, %next : {TILE}, {TILE}, {TILE}"));
    // A loaded tile is carried in registers.
    assert_eq!(
        lines,
        [
            "x.load = load tma : 128x64xf32",
            "next = add next[-1], x.select[-2] : 128x64xf32",
            "x.select = select x.load, x.load : 128x64xf32",
        ]
    );
}

#[test]
fn what_stays_the_same_is_no_operation() {
    let body = format!(
        "{LOAD} %twice = arith.addf %bias, %bias : {TILE}
         %y = arith.mulf %x, %twice : {TILE}
         %z = arith.addf %sum, %y : {TILE}
         %q = arith.addf %z, %same : {TILE}"
    );
    let lines = listing("%sum = %zero, %same = %bias", &body, &format!("%q, %same : {TILE}, {TILE}"));
    assert_eq!(
        lines,
        [
            "x = load tma : 128x64xf32",
            "y = multiply x, twice' : 128x64xf32",
            "z = add q[-1], y : 128x64xf32",
            "q = add z, same' : 128x64xf32",
        ]
    );
}

#[test]
fn arithmetic_of_addresses_and_masks_is_no_operation() {
    let body = "
      %ptrs = tt.splat %p : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>>
      %here = tt.addptr %ptrs, %offsets : tensor<128x64x!tt.ptr<f32>>, tensor<128x64xi32>
      %limit = tt.splat %n : i32 -> tensor<128x64xi32>
      %mask = arith.cmpi slt, %offsets, %limit : tensor<128x64xi32>
      %x = tt.load %here, %mask, %zero : tensor<128x64x!tt.ptr<f32>>
      %next = arith.addf %sum, %x : tensor<128x64xf32>
      %moved = arith.addi %offsets, %step : tensor<128x64xi32>";
    let lines =
        listing("%offsets = %step, %sum = %zero", body, "%moved, %next : tensor<128x64xi32>, tensor<128x64xf32>");
    assert_eq!(lines, ["x = load pointer : 128x64xf32", "next = add next[-1], x : 128x64xf32"]);
}

#[test]
fn a_load_at_loaded_addresses_waits_for_them() {
    let body = "
      %ints = tt.splat %pi : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %where = tt.addptr %ints, %range : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %rows = tt.load %where : tensor<64x!tt.ptr<i32>>
      %scaled = arith.addi %rows, %range : tensor<64xi32>
      %floats = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      %there = tt.addptr %floats, %scaled : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      %v = tt.load %there : tensor<64x!tt.ptr<f32>>
      %wide = tt.expand_dims %v {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
      %tile = tt.broadcast %wide : tensor<1x64xf32> -> tensor<128x64xf32>
      %next = arith.addf %sum, %tile : tensor<128x64xf32>";
    let carried = "%sum = %zero";
    let lines = listing(carried, body, "%next : tensor<128x64xf32>");
    assert_eq!(
        lines,
        ["rows = load pointer : 64xi32", "v = load pointer at rows : 64xf32", "next = add next[-1], v : 128x64xf32"]
    );
    let h100 = Machine::load("h100").unwrap();
    let graph = lower(&only_loop(carried, body, "%next : tensor<128x64xf32>"), &h100, &Options::default()).unwrap();
    let load = |name: &str| graph.operation(graph.find(name).unwrap());
    assert!(load("rows").streaming && !load("v").streaming);
    assert_eq!(load("v").latency, Cycles(650));
}

#[test]
fn scalars_that_come_from_tiles_are_operations() {
    let body = format!(
        "{LOAD}
      %m = \"tt.reduce\"(%x) <{{axis = 1 : i32}}> ({{
      ^bb0(%l: f32, %r: f32):
        %o = arith.maxnumf %l, %r : f32
        tt.reduce.return %o : f32
      }}) : (tensor<128x64xf32>) -> tensor<128xf32>
      %all = \"tt.reduce\"(%m) <{{axis = 0 : i32}}> ({{
      ^bb0(%l: f32, %r: f32):
        %o = arith.maxnumf %l, %r : f32
        tt.reduce.return %o : f32
      }}) : (tensor<128xf32>) -> f32
      %factor = arith.divf %s, %all : f32
      %tile = tt.splat %factor : f32 -> {TILE}
      %y = arith.mulf %x, %tile : {TILE}
      %next = arith.maxnumf %sum, %y : {TILE}"
    );
    let lines = listing("%sum = %zero", &body, &format!("%next : {TILE}"));
    assert_eq!(
        lines,
        [
            "x = load tma : 128x64xf32",
            "m = reduce_max axis 1 x : 128xf32",
            "all = reduce_max axis 0 m : f32",
            "factor = divide all : f32",
            "y = multiply x, factor : 128x64xf32",
            "next = max next[-1], y : 128x64xf32",
        ]
    );
}

#[test]
fn a_product_that_is_read_twice_is_not_contracted() {
    let body = |last: &str| {
        format!("{LOAD} %y = arith.mulf %x, %x : {TILE}\n %z = arith.addf %sum, %y : {TILE}\n %q = {last} : {TILE}")
    };
    let carried = "%sum = %zero";
    let contracted = |last: &str| contract(&only_loop(carried, &body(last), &format!("%q : {TILE}"))).to_string();
    assert!(contracted("arith.maxnumf %z, %x").contains("z = fma x, x, q[-1]"));
    assert!(contracted("arith.maxnumf %z, %y").contains("z = add q[-1], y"));
    // One multiplication can go into one add only, and an add takes one multiplication only.
    let two = format!(
        "{LOAD} %y = arith.mulf %x, %x : {TILE}\n %u = arith.mulf %sum, %x : {TILE}\n %q = arith.subf %y, %u : {TILE}"
    );
    let text = contract(&only_loop(carried, &two, &format!("%q : {TILE}"))).to_string();
    assert!(text.contains("q = fma x, x, u"), "{text}");
}

#[test]
fn a_product_of_rows_is_not_contracted_into_a_tile() {
    let body = format!(
        "{LOAD} %m = \"tt.reduce\"(%x) <{{axis = 1 : i32}}> ({{
      ^bb0(%l: f32, %r: f32):
        %o = arith.addf %l, %r : f32
        tt.reduce.return %o : f32
      }}) : (tensor<128x64xf32>) -> tensor<128xf32>
      %mm = arith.mulf %m, %m : tensor<128xf32>
      %e = tt.expand_dims %mm {{axis = 1 : i32}} : tensor<128xf32> -> tensor<128x1xf32>
      %b = tt.broadcast %e : tensor<128x1xf32> -> {TILE}
      %y = arith.addf %sum, %b : {TILE}"
    );
    let whole = only_loop("%sum = %zero", &body, &format!("%y : {TILE}"));
    assert_eq!(contract(&whole), whole);
    assert_eq!(whole.rows(), Some(128));
}

#[test]
fn what_goes_on_with_columns_is_shared_out_and_what_needs_whole_rows_is_not() {
    let body = "
      %x = tt.descriptor_load %a[%i, %c0] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
      %h = tt.dot %x, %w, %sum : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
      %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<128x64xf16> -> tensor<64x128xf16>
      %cc = arith.constant dense<0.0> : tensor<64x64xf32>
      %o = tt.dot %t, %x, %cc : tensor<64x128xf16> * tensor<128x64xf16> -> tensor<64x64xf32>
      %u = tt.trans %o {order = array<i32: 1, 0>} : tensor<64x64xf32> -> tensor<64x64xf32>
      %e = arith.mulf %o, %u : tensor<64x64xf32>
      %v = math.exp2 %u : tensor<64x64xf32>
      %ptrs = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
      tt.store %ptrs, %e : tensor<64x64x!tt.ptr<f32>>
      tt.store %ptrs, %v : tensor<64x64x!tt.ptr<f32>>";
    let whole = only_loop("%sum = %zero", body, "%h : tensor<128x64xf32>");
    insta::assert_snapshot!(sub_tile(&whole, 2).unwrap(), @r"
    loop k, 128 rows in 2 sub-tiles
      x.0          = load tma                     : 64x64xf16
      x.1          = load tma                     : 64x64xf16
      h.0          = dot x.0, w', h.0[-1]         : 64x64xf32
      h.1          = dot x.1, w', h.1[-1]         : 64x64xf32
      o.0          = dot {x.0, x.1}^T, {x.0, x.1} : 64x32xf32
      o.1          = dot {x.0, x.1}^T, {x.0, x.1} : 64x32xf32
      e.multiply.0 = multiply o.0, {o.0, o.1}^T   : 64x32xf32
      e.multiply.1 = multiply o.1, {o.0, o.1}^T   : 64x32xf32
      v.exp2       = exp2 {o.0, o.1}^T            : 64x64xf32
      e.store.0      store pointer e.multiply.0
      e.store.1      store pointer e.multiply.1
      v.store        store pointer v.exp2
    ");
}

#[test]
fn a_dot_that_sums_over_the_rows_reads_all_sub_tiles_and_is_shared_out() {
    let body = "
      %x = tt.descriptor_load %a[%i, %c0] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
      %y = tt.dot %x, %w, %zero : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
      %h = arith.truncf %y : tensor<128x64xf32> to tensor<128x64xf16>
      %g = tt.dot %h, %w, %sum : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
      %t = tt.trans %h {order = array<i32: 1, 0>} : tensor<128x64xf16> -> tensor<64x128xf16>
      %cc = arith.constant dense<0.0> : tensor<64x64xf32>
      %o = tt.dot %t, %x, %cc : tensor<64x128xf16> * tensor<128x64xf16> -> tensor<64x64xf32>
      %ptrs = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
      tt.store %ptrs, %o : tensor<64x64x!tt.ptr<f32>>";
    let whole = only_loop("%sum = %zero", body, "%g : tensor<128x64xf32>");
    let cut = sub_tile(&whole, 2).unwrap();
    insta::assert_snapshot!(format!("{whole}{cut}"), @r"
    loop k, 128 rows
      x       = load tma            : 128x64xf16
      y       = dot x, w'           : 128x64xf32
      h       = convert y           : 128x64xf16
      g       = dot h, w', g[-1]    : 128x64xf32
      o.dot   = dot h^T, x          : 64x64xf32
      o.store   store pointer o.dot
    loop k, 128 rows in 2 sub-tiles
      x.0       = load tma                     : 64x64xf16
      x.1       = load tma                     : 64x64xf16
      y.0       = dot x.0, w'                  : 64x64xf32
      y.1       = dot x.1, w'                  : 64x64xf32
      h.0       = convert y.0                  : 64x64xf16
      h.1       = convert y.1                  : 64x64xf16
      g.0       = dot h.0, w', g.0[-1]         : 64x64xf32
      g.1       = dot h.1, w', g.1[-1]         : 64x64xf32
      o.dot.0   = dot {h.0, h.1}^T, {x.0, x.1} : 64x32xf32
      o.dot.1   = dot {h.0, h.1}^T, {x.0, x.1} : 64x32xf32
      o.store.0   store pointer o.dot.0
      o.store.1   store pointer o.dot.1
    ");
    assert_eq!(sub_tile(&whole, 1).unwrap(), whole);
    let message = |result: Result<TileLoop, Error>| result.unwrap_err().to_string();
    assert_eq!(
        message(sub_tile(&whole, 3)),
        "loop `k`: 128 rows cannot be cut into 3 sub-tiles of one size; choose a number that divides 128"
    );
    assert_eq!(
        message(sub_tile(&cut, 2)),
        "loop `k` has no dimension that it can be cut along: it is cut into 2 sub-tiles already; ask for 1 sub-tile"
    );
    let h100 = Machine::load("h100").unwrap();
    let four = lower(&whole, &h100, &Options { sub_tiles: Some(4), ..Options::default() });
    assert_eq!(
        four.unwrap_err().to_string(),
        "loop `k`: 4 sub-tiles of 128 rows leave 32 rows each, but one warp group of machine `h100` works on at least 64; use at most 2 sub-tiles or a larger tile"
    );
    // A loop that is cut already is lowered as it is.
    assert_eq!(lower(&cut, &h100, &Options::default()), lower(&whole, &h100, &Options::default()));
}

#[test]
fn a_loop_whose_rows_run_along_both_dimensions_is_not_cut() {
    let body = "
      %x = tt.descriptor_load %a[%i, %c0] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
      %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<128x64xf16> -> tensor<64x128xf16>
      %cc = arith.constant dense<0.0> : tensor<128x128xf32>
      %o = tt.dot %x, %t, %cc : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
      %ptrs = tt.splat %p : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
      tt.store %ptrs, %o : tensor<128x128x!tt.ptr<f32>>";
    let error = sub_tile(&only_loop("", body, ""), 2).unwrap_err();
    assert_eq!(
        error.to_string(),
        "loop `k` has no dimension that it can be cut along: the rows run along two dimensions of `o`; ask for 1 sub-tile"
    );
}

#[test]
fn operations_that_nobody_listed_are_tile_operations() {
    let sum = "({ ^bb0(%left: f32, %right: f32): %t = arith.addf %left, %right : f32 tt.scan.return %t : f32 })";
    let largest = "({ ^bb0(%left: f32, %ix: i32, %right: f32, %jx: i32): %b = arith.cmpf ogt, %left, %right : f32
        %t = arith.select %b, %left, %right : f32 %u = arith.select %b, %ix, %jx : i32 tt.reduce.return %t, %u : f32, i32 })";
    let body = format!(
        "{LOAD} %y = \"tt.scan\"(%x) <{{axis = 1 : i32, reverse = false}}> {sum} : ({TILE}) -> {TILE}
      %j = tt.join %y, %x : {TILE} -> tensor<128x64x2xf32>
      %lo, %hi = tt.split %j : tensor<128x64x2xf32> -> {TILE}
      %m:2 = \"tt.reduce\"(%lo, %step) <{{axis = 1 : i32}}> {largest} : ({TILE}, tensor<128x64xi32>) -> (tensor<128xf32>, tensor<128xi32>)
      %e = tt.expand_dims %m#0 {{axis = 1 : i32}} : tensor<128xf32> -> tensor<128x1xf32>
      %wide = tt.broadcast %e : tensor<128x1xf32> -> {TILE}
      %f1 = arith.sitofp %m#1 : tensor<128xi32> to tensor<128xf32>
      %e1 = tt.expand_dims %f1 {{axis = 1 : i32}} : tensor<128xf32> -> tensor<128x1xf32>
      %wide1 = tt.broadcast %e1 : tensor<128x1xf32> -> {TILE}
      %h = arith.mulf %hi, %wide : {TILE}
      %q = arith.addf %h, %wide1 : {TILE}"
    );
    let whole = only_loop("%acc = %zero", &body, &format!("%q : {TILE}"));
    let labels: Vec<&str> = whole.operations().iter().map(|op| op.label()).collect();
    // Of operations with two results, one for each.
    assert_eq!(
        labels,
        ["load", "scan", "join", "split", "split", "reduce", "reduce", "convert", "multiply", "add"],
        "{whole}"
    );
    // They work along other dimensions than the rows.
    let cut = sub_tile(&whole, 2).unwrap();
    assert_eq!(cut.operations().len(), 2 * whole.operations().len());
    let options = Options { sub_tiles: Some(2), ..Options::default() };
    let graph = lower(&whole, &Machine::load("h100").unwrap(), &options).unwrap();
    assert!(graph.operations().iter().filter(|op| op.kind == "join").all(|op| op.latency > Cycles(1)));
}

#[test]
fn unknown_operations_are_named_with_their_place() {
    let body = |operation: &str| format!("{LOAD} {operation}\n %q = arith.addf %sum, %y : {TILE}");
    let message = |operation: &str| message("%sum = %zero", &body(operation), &format!("%q : {TILE}"));
    assert_eq!(
        message(&format!("%y = \"tt.scan\"(%x) : ({TILE}) -> {TILE} loc(\"kernel.py\":12:8)")),
        "k.ttir:13: `tt.scan` (line 12 of kernel.py) is not supported inside a loop that is to be scheduled; use tl.dot, loads, stores, reductions, casts and elementwise arithmetic instead, or move it out of the loop"
    );
    assert!(
        message(&format!(
            "%y = \"tt.extern_elementwise\"(%x) <{{libname = \"\", libpath = \"\", pure = false, symbol = \"__nv_tanhf\"}}> : ({TILE}) -> {TILE}"
        ))
        .starts_with("k.ttir:13: `tt.extern_elementwise __nv_tanhf` is not supported")
    );
    assert_eq!(
        message(&format!("%y = tt.call @helper(%x) : ({TILE}) -> {TILE}")),
        "k.ttir:13: `tt.call helper`: a call inside the loop is not supported; let Triton inline the function (no noinline=True)"
    );
}

#[test]
fn functions_of_libraries_without_effects_are_operations() {
    let call = "\"tt.extern_elementwise\"(%x) <{libname = \"\", libpath = \"\", pure = true, symbol = \"__nv_tanhf\"}>";
    let body = format!("{LOAD} %y = {call} : ({TILE}) -> {TILE}\n %q = arith.addf %sum, %y : {TILE}");
    let listing = listing("%sum = %zero", &body, &format!("%q : {TILE}"));
    assert!(listing.iter().any(|line| line.contains("call")), "{listing:?}");
}

#[test]
fn branches_become_selects_and_those_with_effects_are_refused() {
    let branch = |kind: &str, inside: &str, value: &str| {
        format!(
            "{LOAD} %small = arith.cmpi slt, %i, %n : i32
      %y = scf.if %small -> ({kind}) {{
        {inside} scf.yield {value} : {kind}
      }} else {{
        scf.yield {value} : {kind}
      }}"
        )
    };
    let sum = format!("\n %q = arith.addf %sum, %y : {TILE}");
    let tiles = branch(TILE, "", "%x") + &sum;
    let lines = listing("%sum = %zero", &tiles, &format!("%q : {TILE}"));
    assert_eq!(lines[1..], ["y = select x, x : 128x64xf32", "q = add q[-1], y : 128x64xf32"]);
    let product = format!("%product = tt.dot %x, %w, %x : tensor<128x64xf16> * tensor<64x64xf16> -> {TILE}\n");
    let lines = listing("%sum = %zero", &(branch(TILE, &product, "%x") + &sum), &format!("%q : {TILE}"));
    assert!(lines.iter().any(|line| line.starts_with("y = select")), "{lines:?}");
    let print = format!("\"tt.print\"(%x) : ({TILE}) -> ()\n");
    assert_eq!(
        message("%sum = %zero", &(branch(TILE, &print, "%x") + &sum), &format!("%q : {TILE}")),
        "k.ttir:14: `scf.if`: control flow around tile operations inside the loop is not supported; select values with tl.where, or split the loop into one loop for each case"
    );
    let scalars = format!(
        "{}\n %t = tt.splat %y : f32 -> {TILE}\n %u = arith.mulf %x, %t : {TILE}\n %q = arith.addf %sum, %u : {TILE}",
        branch("f32", "", "%s")
    );
    let lines = listing("%sum = %zero", &scalars, &format!("%q : {TILE}"));
    assert_eq!(lines[1], "u = multiply x : 128x64xf32");
}

#[test]
fn tiles_of_unknown_size_or_strange_elements_are_refused() {
    assert_eq!(
        message(
            "",
            "%x = \"tt.load\"(%p) : (!tt.ptr<f32>) -> tensor<?x64xf32>\n %y = \"tt.trans\"(%x) : (tensor<?x64xf32>) -> tensor<64x?xf32>",
            ""
        ),
        "k.ttir:12: `tt.load`: the shape of tensor<?x64xf32> is not known at compile time; make every extent of a tile a tl.constexpr"
    );
    let other = |kind: &str| {
        format!("%x = \"tt.load\"(%p) : (!tt.ptr<f32>) -> {kind}\n \"tt.store\"(%p, %x) : (!tt.ptr<f32>, {kind}) -> ()")
    };
    assert_eq!(
        message("", &other("tensor<64xindex>"), ""),
        "k.ttir:12: `tt.load`: tiles of index are not supported; use floating-point numbers or integers of 1, 8, 16, 32 or 64 bits"
    );
    assert_eq!(
        message("", &other("tensor<1048576x1048576x1048576x1048576xf32>"), ""),
        "k.ttir:12: `tt.load`: tensor<1048576x1048576x1048576x1048576xf32> has more than 1048576 elements, the most that Triton allows in a tile; choose a smaller block"
    );
}

#[test]
fn mmas_that_no_tensor_core_does_are_multiplications_and_additions() {
    let body = format!(
        "{LOAD} %y = tt.trans %x {{order = array<i32: 1, 0>}} : {TILE} -> tensor<64x128xf32>
      %cc = arith.constant dense<0.0> : tensor<128x128xf32>
      %o = tt.dot %x, %y, %cc : {TILE} * tensor<64x128xf32> -> tensor<128x128xf32>
      %ptrs = tt.splat %p : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
      tt.store %ptrs, %o : tensor<128x128x!tt.ptr<f32>>"
    );
    let options = Options { sub_tiles: Some(1), ..Options::default() };
    let units = |text: &str| -> Vec<String> {
        let kernel = read(text, "k.ttir").unwrap();
        let graph = lower(&kernel.loops()[0], &Machine::load("h100").unwrap(), &options).unwrap();
        let dot = graph.operations().iter().find(|op| op.kind == "dot").unwrap();
        dot.reservations.iter().map(|r| r.unit.to_string()).collect()
    };
    assert!(units(&kernel("", &body, "")).contains(&"fma".to_owned()));
    let tf32 = kernel("", &body.replace("%x, %y, %cc :", "%x, %y, %cc, inputPrecision = tf32 :"), "");
    assert_eq!(units(&tf32), ["tensor"]);
    let f8 = body.replace("f32", "f8E5M2").replace(
        "%cc = arith.constant dense<0.0> : tensor<128x128xf8E5M2>",
        "%cc = arith.constant dense<0.0> : tensor<128x128xf32>",
    );
    let f8 =
        f8.replace("tensor<64x128xf8E5M2> -> tensor<128x128xf8E5M2>", "tensor<64x128xf8E5M2> -> tensor<128x128xf32>");
    let f8 = f8.replace("!tt.ptr<f8E5M2>", "!tt.ptr<f32>").replace("%f[%i", "%g[%i");
    let text = kernel("", &f8, "").replace("%n: i32", "%n: i32, %g: !tt.tensordesc<tensor<128x64xf8E5M2>>");
    let read = read(&text, "k.ttir").unwrap_or_else(|error| panic!("{error}\n{text}"));
    lower(&read.loops()[0], &Machine::load("h100").unwrap(), &options).unwrap();
    assert_eq!(
        lower(&read.loops()[0], &Machine::load("a100").unwrap(), &options).unwrap_err().to_string(),
        "k.ttir:15: `tt.dot`: the tensor core of machine `a100` does not multiply f8; it multiplies f16, bf16, tf32, i8"
    );
}

#[test]
fn modules_without_the_kernel_asked_for_are_refused() {
    let message = |text: &str, name: Option<&str>| {
        match name {
            Some(name) => read_kernel(text, "k.ttir", name),
            None => read(text, "k.ttir"),
        }
        .unwrap_err()
        .to_string()
    };
    let empty = |visibility: &str, name: &str| format!("tt.func {visibility} @{name}() {{\n tt.return\n }}\n");
    let two = format!("module {{ {} {} }}", empty("public", "one"), empty("public", "two"));
    let loops = "Twill schedules `for` loops over a range (scf.for) that load, multiply or combine tiles";
    assert_eq!(
        message(&format!("module {{ {} }}", empty("private", "helper")), None),
        "k.ttir: there is no kernel: the module has no public tt.func with a body"
    );
    assert_eq!(message(&two, None), "k.ttir: there are several kernels: one, two; name one of them");
    assert_eq!(message(&two, Some("three")), "k.ttir: there is no kernel `three`; there is one, two");
    assert_eq!(message(&two, Some("two")), format!("k.ttir: kernel `two` has no loop with tile operations; {loops}"));
    assert_eq!(message("import triton", None).split(':').next(), Some("k.ttir"));
}

#[test]
fn a_loop_that_never_runs_is_refused() {
    let text = kernel("", &format!("{LOAD} tt.descriptor_store %f[%i, %c0], %x : !tt.tensordesc<{TILE}>, {TILE}"), "");
    let never = text.replace("%c0 to %n step", "%c1 to %c0 step");
    assert_eq!(
        read(&never, "k.ttir").unwrap_err().to_string(),
        "k.ttir:11: `scf.for`: the loop never runs: it goes from 1 to 0 in steps of 1; remove it or change its bounds"
    );
}

#[test]
fn a_loop_of_vectors_spreads_them_over_threads() {
    let body = "
      %ptrs = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
      %x = tt.load %ptrs : tensor<128x!tt.ptr<f32>>
      %y = math.exp2 %x : tensor<128xf32>
      tt.store %ptrs, %y : tensor<128x!tt.ptr<f32>>";
    let graph = lower(&only_loop("", body, ""), &Machine::load("h100").unwrap(), &Options::default()).unwrap();
    let exp2 = graph.operation(graph.find("y.exp2").unwrap());
    assert_eq!((exp2.occupancy, exp2.register_words().0), (Cycles(8), 128));
}

#[test]
fn damaged_kernels_give_errors_and_no_panics() {
    let h100 = Machine::load("h100").unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/");
    let mut lowered = 0;
    for name in ["attention_backward", "attention_forward_causal", "gemm_pointers"] {
        let text = std::fs::read_to_string(format!("{folder}{name}.ttir")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let code = lines.iter().take_while(|line| !line.starts_with("#loc2 ")).count();
        let changes: [fn(&str) -> Option<String>; 5] = [
            |_| None,
            |line| Some(line.replace("128", "64")),
            |line| Some(line.replace("1, 0", "1, 7")),
            |line| Some(line.replace("axis = 1", "axis = 9")),
            |line| Some(line.replace("f32", "f64")),
        ];
        for (index, change) in (0..code).flat_map(|index| changes.map(|change| (index, change))) {
            let damaged: Vec<String> = lines
                .iter()
                .enumerate()
                .filter_map(|(at, line)| if at == index { change(line) } else { Some((*line).to_owned()) })
                .collect();
            let Ok(kernel) = read(&damaged.join("\n"), "k.ttir") else { continue };
            for tile_loop in kernel.loops() {
                lowered += usize::from(lower(tile_loop, &h100, &Options::default()).is_ok());
            }
        }
    }
    assert!(lowered > 100, "{lowered}");
}
