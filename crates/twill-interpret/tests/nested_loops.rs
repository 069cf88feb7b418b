//! Loops over tiles and their parts in one, which are read as two loops: these compute what the text says.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::collections::HashMap;
use std::rc::Rc;
use twill_graph::SplitMix64;
use twill_interpret::{Argument, Arithmetic, Array, Data, Launch, Memory, Tile, Tolerance, difference, sequential};
use twill_triton::kernel::find;
use twill_triton::mlir::{FloatKind, Type};

/// A persistent product of tiles of 16 × 16: each program has `tiles` of them, of `parts` products each.
const FLAT: &str = r#"module {
  tt.func public @flat(%x_ptr: !tt.ptr<f16>, %y_ptr: !tt.ptr<f16>, %out_ptr: !tt.ptr<f16>, %tiles: i32, %parts: i32) attributes {noinline = false} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c9 = arith.constant 9 : i32
    %cm1 = arith.constant -1 : i32
    %c256 = arith.constant 256 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
    %sixteen = arith.constant dense<16> : tensor<16x1xi32>
    %pid = tt.get_program_id x : i32
    %range = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %rows = tt.expand_dims %range {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %columns = tt.expand_dims %range {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %row_starts = arith.muli %rows, %sixteen : tensor<16x1xi32>
    %row_offsets = tt.broadcast %row_starts : tensor<16x1xi32> -> tensor<16x16xi32>
    %column_offsets = tt.broadcast %columns : tensor<1x16xi32> -> tensor<16x16xi32>
    %offsets = arith.addi %row_offsets, %column_offsets : tensor<16x16xi32>
    %x_tile = tt.splat %x_ptr : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
    %y_tile = tt.splat %y_ptr : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
    %out_tile = tt.splat %out_ptr : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
    %total = arith.muli %tiles, PARTS : i32
    %last_part = arith.subi PARTS, %c1 : i32
    %end:3 = scf.for %i = %c0 to %total step %c1 iter_args(%before = INITIAL, %tile = %pid, %acc = %zero) -> (i32, i32, tensor<16x16xf32>)  : i32 {
ADVANCE
      %first = arith.cmpi eq, PART, %c0 : i32
BEGIN
      %base = arith.muli %now, PARTS : i32
      %at = arith.addi %base, PART : i32
      %start = arith.muli %at, %c256 : i32
      %starts = tt.splat %start : i32 -> tensor<16x16xi32>
      %places = arith.addi %starts, %offsets : tensor<16x16xi32>
      %x_at = tt.addptr %x_tile, %places : tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi32>
      %x = tt.load %x_at : tensor<16x16x!tt.ptr<f16>>
      %y_at = tt.addptr %y_tile, %places : tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi32>
      %y = tt.load %y_at : tensor<16x16x!tt.ptr<f16>>
SUM
      %done = arith.cmpi eq, PART, LAST : i32
END
      scf.yield %after, NOW, %next : i32, i32, tensor<16x16xf32>
    }
    tt.return
  }
}
"#;
const ADVANCE: &str = "      %at_end = arith.cmpi eq, %before, LAST : i32
      %more = arith.addi %before, %c1 : i32
      %after = arith.select %at_end, %c0, %more : i32";
const REMAINDER: &str = "      %more = arith.addi %before, %c1 : i32
      %after = arith.remsi %more, PARTS : i32";
const BEGIN: &str = "      %now = scf.if %first -> (i32) {
        %new = arith.addi %tile, %c1 : i32
        scf.yield %new : i32
      } else {
        scf.yield %tile : i32
      }";
/// A tile's number is that of the part at which it begins.
const BEGIN_BY_PART: &str = "      %now = scf.if %first -> (i32) {
        %seen = arith.addi %tile, %c1 : i32
        %seen_tile = tt.splat %seen : i32 -> tensor<16x16xi32>
        %seen_half = arith.sitofp %seen_tile : tensor<16x16xi32> to tensor<16x16xf16>
        tt.store %out_tile, %seen_half : tensor<16x16x!tt.ptr<f16>>
        scf.yield %after : i32
      } else {
        scf.yield %tile : i32
      }";
const SAME: &str = "      %now = arith.addi %tile, %c0 : i32";
const SUM: &str = "      %sum = tt.dot %x, %y, %acc : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>";
const SUM_SELECTED: &str = "      %start_sum = arith.select %first, %zero, %acc : tensor<16x16xf32>
      %next = tt.dot %x, %y, %start_sum : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>";
const STORE: &str = "        %to_start = arith.muli %now, %c256 : i32
        %to_starts = tt.splat %to_start : i32 -> tensor<16x16xi32>
        %to_places = arith.addi %to_starts, %offsets : tensor<16x16xi32>
        %to = tt.addptr %out_tile, %to_places : tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi32>
        %narrow = arith.truncf SUMMED : tensor<16x16xf32> to tensor<16x16xf16>
        tt.store %to, %narrow : tensor<16x16x!tt.ptr<f16>>";

/// The end of a tile: its store, and what the next one begins with.
fn end(of: &str) -> String {
    let store = STORE.replace("SUMMED", if of == "selected first" { "%next" } else { "%sum" });
    match of {
        "selected first" => format!("      scf.if %done {{\n{store}\n      }}"),
        "yielded" => format!(
            "      %next = scf.if %done -> (tensor<16x16xf32>) {{\n{store}\n        scf.yield %zero : tensor<16x16xf32>
      }} else {{\n        scf.yield %sum : tensor<16x16xf32>\n      }}"
        ),
        "late" => format!(
            "      %next = arith.select %done, %zero, %sum : tensor<16x16xf32>
      %later = scf.if %done -> (i32) {{\n{store}\n        %new = arith.addi %tile, %c1 : i32
        scf.yield %new : i32\n      }} else {{\n        scf.yield %tile : i32\n      }}"
        ),
        _ => format!(
            "      %next = arith.select %done, %zero, %sum : tensor<16x16xf32>\n      scf.if %done {{\n{store}\n      }}"
        ),
    }
}

/// A spelling of the loop.
struct Spelling {
    advance: &'static str,
    /// Whether a number of parts is counted before it is used.
    counts_first: bool,
    begin: &'static str,
    sum: &'static str,
    end: &'static str,
    /// Whether there are nine parts, by the text: fewer would be unrolled.
    constant: bool,
}

const FIRST: Spelling =
    Spelling { advance: ADVANCE, counts_first: true, begin: BEGIN, sum: SUM, end: "", constant: false };

impl Spelling {
    fn text(&self) -> String {
        let (initial, part) = if self.counts_first { ("%cm1", "%after") } else { ("%c0", "%before") };
        let (parts, last) = if self.constant { ("%c9", "%c8") } else { ("%parts", "%last_part") };
        FLAT.replace("ADVANCE", self.advance)
            .replace("BEGIN", self.begin)
            .replace("SUM\n", &format!("{}\n", self.sum))
            .replace("END\n", &format!("{}\n", end(self.end)))
            .replace("NOW", if self.end == "late" { "%later" } else { "%now" })
            .replace("INITIAL", initial)
            .replace("PARTS", parts)
            .replace("PART", part)
            .replace("LAST", last)
    }
}

fn call(tiles: i64, parts: i64) -> (Launch, Memory) {
    let mut random = SplitMix64::new(3);
    let number = |n| Argument::Scalar(Rc::new(Tile::integer(n)));
    let mut arguments = HashMap::from([("tiles".to_owned(), number(tiles)), ("parts".to_owned(), number(parts))]);
    let mut memory = Memory::default();
    for (k, name) in ["x_ptr", "y_ptr", "out_ptr"].into_iter().enumerate() {
        let mut number = || ((random.unit() * 2.0 - 1.0) * 64.0).round() / 64.0;
        let data = (0..48 * 256).map(|_| if k < 2 { number() } else { 7.0 }).collect();
        memory.arrays.push(Array { name: name.into(), element: Type::Float(FloatKind::F16), data: Data::Floats(data) });
        arguments.insert(name.into(), Argument::Scalar(Rc::new(Tile::pointer(k))));
    }
    (Launch { arguments, grid: [2, 1, 1], arithmetic: Arithmetic::Rounded }, memory)
}

/// Whether the kernel's loop is read as two, which compute what the text says.
fn is_nested(text: &str) -> bool {
    let module = twill_triton::mlir::parse(text, "flat").unwrap();
    let kernel = twill_triton::read(text, "flat").unwrap();
    for (tiles, parts) in [(2, 3), (1, 3), (3, 3), (0, 3), (2, 1), (2, 0)] {
        let (launch, before) = call(tiles, parts);
        let [mut expected, mut found] = [before.clone(), before.clone()];
        sequential::run_function(&module, find(&module, None).unwrap(), &launch, &mut expected).unwrap();
        sequential::run(&kernel, &launch, &mut found).unwrap();
        assert_eq!(difference(&expected, &found, Tolerance::Exact), None, "{tiles} of {parts}: {text}");
        if (tiles, parts) == (2, 3) {
            assert!(difference(&before, &found, Tolerance::Exact).is_some(), "something is written");
        }
    }
    kernel.module().for_loops(kernel.module().top()).count() == 2
}

#[test]
fn every_spelling_is_two_loops() {
    let spellings = [
        FIRST,
        Spelling { constant: true, ..FIRST },
        Spelling { advance: REMAINDER, ..FIRST },
        Spelling { counts_first: false, ..FIRST },
        Spelling { counts_first: false, advance: REMAINDER, constant: true, ..FIRST },
        Spelling { sum: SUM_SELECTED, end: "selected first", ..FIRST },
        Spelling { end: "yielded", constant: true, ..FIRST },
        Spelling { begin: SAME, end: "late", ..FIRST },
        Spelling { begin: BEGIN_BY_PART, ..FIRST },
    ];
    for (number, spelling) in spellings.iter().enumerate() {
        assert!(is_nested(&spelling.text()), "{number}: {}", spelling.text());
    }
}

#[test]
fn what_is_no_loop_over_tiles_stays_one() {
    let text = FIRST.text();
    // A number that only the first part has; parts that are counted from elsewhere, a sum that goes on, a store at another part, a
    // tile that is read as it was before, a place of the last part.
    let alone = "      %one = scf.if %first -> (i32) {\n        scf.yield %c1 : i32\n      } else {\n        scf.yield %c0 : i32\n      }
      %shifted = arith.addi %now, %one : i32\n      %base = arith.muli %shifted, %parts : i32";
    let dot = "      %sum = tt.dot";
    let store = "        tt.store %out_tile, %x : tensor<16x16x!tt.ptr<f16>>";
    let others = [
        text.replace("      %base = arith.muli %now, %parts : i32", alone),
        // Branches on what counts the parts.
        text.replace(dot, &format!("      scf.if %at_end {{\n{store}\n      }}\n{dot}")),
        text.replace(dot, &format!("      scf.if %first_part {{\n      }} else {{\n        %p = arith.addi %more, %c0 : i32\n{store}\n      }}\n{dot}"))
            .replace("      %first = ", "      %first_part = arith.cmpi slt, %after, %c1 : i32\n      %first = "),
        text.replace("%before = %cm1", "%before = %c1"),
        text.replace("%next = arith.select %done, %zero, %sum", "%next = arith.select %first, %zero, %sum"),
        text.replace("arith.cmpi eq, %after, %last_part", "arith.cmpi eq, %after, %c1"),
        text.replace("arith.muli %now, %parts", "arith.muli %tile, %parts"),
        text.replace("arith.muli %now, %c256", "arith.muli %at, %c256"),
    ];
    for (number, other) in others.iter().enumerate() {
        assert_ne!(*other, text);
        assert!(!is_nested(other), "{number}");
    }
}
