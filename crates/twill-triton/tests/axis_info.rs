//! Axis information: the facts that Triton's own test of it expects (`test/Analysis/test-alignment.mlir`), and what a thread may move.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use twill_triton::kernel::find;
use twill_triton::mlir::{Module, ValueId, parse};
use twill_triton::{Access, AxisInfos};

/// What Triton calls the divisibility of 0.
const ALL: u64 = 1 << 30;

fn module(body: &str) -> Module {
    let text = format!(
        "tt.func public @k(%p: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %q: !tt.ptr<f16>, %n: i32 {{tt.divisibility = 16 : i32}}, %m: i32) {{
{body}
  tt.return
}}"
    );
    parse(&text, "k.ttir").unwrap_or_else(|error| panic!("{error}"))
}

fn value(module: &Module, name: &str) -> ValueId {
    let function = find(module, None).unwrap();
    let results = module.walk(function).flat_map(|id| module.operation(id).results.clone());
    let mut arguments = module.walk(function).flat_map(|id| module.for_loop(id).map(|l| l.carried.to_vec())).flatten();
    let found = results.into_iter().find(|v| module.value(*v).name == name);
    found.or_else(|| arguments.find(|v| module.value(*v).name == name)).unwrap_or_else(|| panic!("%{name}"))
}

/// Contiguity, divisibility and constancy along each dimension.
fn facts(module: &Module, name: &str) -> Vec<[u64; 3]> {
    let infos = AxisInfos::new(module, find(module, None).unwrap());
    let axes = infos.of(value(module, name));
    axes.iter().map(|axis| [axis.contiguity, axis.divisibility, axis.constancy]).collect()
}

#[test]
fn elementwise_operations() {
    let module = module(
        "%0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %1 = arith.constant dense<1> : tensor<128xi32>
  %2 = arith.addi %0, %1 : tensor<128xi32>
  %3 = arith.constant dense<4> : tensor<128xi32>
  %4 = arith.muli %0, %3 : tensor<128xi32>
  %5 = arith.constant dense<128> : tensor<128xi32>
  %6 = arith.addi %0, %5 : tensor<128xi32>
  %7 = arith.subi %0, %1 : tensor<128xi32>
  %8 = arith.remsi %0, %5 : tensor<128xi32>
  %9 = arith.cmpi slt, %0, %5 : tensor<128xi32>
  %10 = arith.divsi %0, %3 : tensor<128xi32>
  %11 = tt.splat %n : i32 -> tensor<128xi32>
  %12 = arith.cmpi slt, %0, %11 : tensor<128xi32>
  %13 = tt.splat %m : i32 -> tensor<128xi32>
  %14 = arith.cmpi slt, %0, %13 : tensor<128xi32>
  %15 = arith.remsi %0, %13 : tensor<128xi32>
  %16 = arith.remsi %0, %13 {tt.contiguity = dense<64> : tensor<1xi32>, tt.divisibility = dense<64> : tensor<1xi32>} : tensor<128xi32>
  %17 = arith.shli %13, %3 : tensor<128xi32>
  %18 = arith.select %14, %0, %13 : tensor<128xi1>, tensor<128xi32>
  %19 = arith.divsi %11, %3 : tensor<128xi32>
  %20 = arith.shrsi %11, %3 : tensor<128xi32>
  %21 = arith.shrui %0, %1 : tensor<128xi32>
  %22 = arith.shrsi %11, %1 : tensor<128xi32>",
    );
    for (name, expected) in [
        ("0", [128, ALL, 1]),
        ("1", [1, 1, 128]),
        ("2", [128, 1, 1]),
        ("3", [1, 4, 128]),
        ("4", [1, 4, 1]),
        ("6", [128, 128, 1]),
        ("7", [128, 1, 1]),
        ("8", [128, 128, 1]),
        ("9", [1, 1, 128]),
        ("10", [1, 1, 4]),
        ("11", [1, 16, 128]),
        ("12", [1, 1, 16]),
        ("14", [1, 1, 1]),
        ("15", [1, 1, 1]),
        ("16", [64, 64, 1]),
        ("17", [1, 16, 128]),
        ("18", [1, 1, 1]),
        ("19", [1, 4, 128]),
        ("20", [1, 1, 128]),
        ("21", [1, 1, 2]),
        ("22", [1, 8, 128]),
    ] {
        assert_eq!(facts(&module, name), [expected], "%{name}");
    }
}

/// Rows of 128 elements and columns of 32 through a pointer that a loop moves.
fn tile(pointer: &str, stride: &str, step: &str, mask: &str) -> Module {
    module(&format!(
        "%c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = tt.make_range {{end = 128 : i32, start = 0 : i32}} : tensor<128xi32>
  %c = tt.make_range {{end = 32 : i32, start = 0 : i32}} : tensor<32xi32>
  %r2 = tt.expand_dims %r {{axis = 1 : i32}} : tensor<128xi32> -> tensor<128x1xi32>
  %c2 = tt.expand_dims %c {{axis = 0 : i32}} : tensor<32xi32> -> tensor<1x32xi32>
  %s = tt.splat {stride} : i32 -> tensor<128x1xi32>
  %rs = arith.muli %r2, %s : tensor<128x1xi32>
  %rb = tt.broadcast %rs : tensor<128x1xi32> -> tensor<128x32xi32>
  %cb = tt.broadcast %c2 : tensor<1x32xi32> -> tensor<128x32xi32>
  %o = arith.addi %rb, %cb : tensor<128x32xi32>
  %b = tt.splat {pointer} : !tt.ptr<f16> -> tensor<128x32x!tt.ptr<f16>>
  %first = tt.addptr %b, %o : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
  %step = tt.splat {step} : i32 -> tensor<128x32xi32>
  %bound = tt.splat {mask} : i32 -> tensor<1x32xi32>
  %inside = arith.cmpi slt, %c2, %bound : tensor<1x32xi32>
  %mask = tt.broadcast %inside : tensor<1x32xi1> -> tensor<128x32xi1>
  %last = scf.for %i = %c0 to %m step %c1 iter_args(%at = %first) -> (tensor<128x32x!tt.ptr<f16>>) : i32 {{
    %x = tt.load %at, %mask : tensor<128x32x!tt.ptr<f16>>
    %next = tt.addptr %at, %step : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
    scf.yield %next : tensor<128x32x!tt.ptr<f16>>
  }}"
    ))
}

#[test]
fn what_a_thread_moves_at_once() {
    for (pointer, stride, step, mask, elements) in [
        ("%p", "%n", "%n", "%n", 8),
        ("%q", "%n", "%n", "%n", 1),
        ("%p", "%m", "%n", "%n", 1),
        ("%p", "%n", "%m", "%n", 1),
        ("%p", "%n", "%n", "%m", 1),
        ("%p", "%n", "%c0", "%n", 8),
    ] {
        let module = tile(pointer, stride, step, mask);
        let infos = AxisInfos::new(&module, find(&module, None).unwrap());
        let access = infos.access(value(&module, "at"), Some(value(&module, "mask")));
        assert_eq!(access, Access { dimension: 1, elements }, "{pointer} {stride} {step} {mask}");
    }
    let module = tile("%p", "%n", "%m", "%n");
    assert_eq!(facts(&module, "first"), [[1, 2, 1], [32, 16, 1]]);
    assert_eq!(facts(&module, "at"), [[1, 2, 1], [32, 2, 1]]);
    assert_eq!(facts(&module, "last"), facts(&module, "at"));
}
