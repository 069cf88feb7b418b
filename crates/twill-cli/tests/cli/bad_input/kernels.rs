//! Kernels in TTIR.

use super::{assert_says, changed, example, file, line_of, scheduled, unscheduled};
use crate::common::{root, stderr, twill};
use std::fs;
use twill_graph::format::ScheduleFile;
use twill_graph::{Cycles, Status};

#[test]
fn a_truncated_kernel_says_what_was_open() {
    let folder = tempfile::tempdir().unwrap();
    let text = example("attention_forward.ttir");
    let cut = "; is the file cut short?";
    for (after, says) in [
        ("#loc1 = loc(", ["inside a location, which began in line 2", cut]),
        ("module {\n", ["inside the body of `builtin.module`, which began in line 19", cut]),
        ("tt.func public @attention_forward(%q_desc", ["inside `tt.func`, which began in line 20", cut]),
        ("%scale = arith.mulf", ["inside `arith.mulf`, which began in line 34", cut]),
        ("iter_args(%acc_25 =", ["inside `scf.for`, which began in line 37", cut]),
        ("%row_sum_49 = arith.addf %row_sum_47", ["inside `arith.addf`, which began in line 61", cut]),
        ("tensor<128xf32> loc(#loc90)\n", ["inside the body of `scf.for`, which began in line 37", cut]),
        ("tt.return loc(#loc50)\n  } loc(#loc)\n} loc(#loc)\n", ["location #loc", "is the end of the file missing?"]),
        ("#loc50 = loc(\"examples/atten", ["inside a location, which began in line 132", cut]),
    ] {
        let end = text.find(after).unwrap() + after.len();
        let path = file(&folder, "cut.ttir", &text[..end]);
        unscheduled(&[&path], &[&[format!("{path}:").as_str()], &says[..]].concat());
    }
    // Wherever else it stops, file and line are named.
    for end in (200..text.len() - 20).step_by(499) {
        let path = file(&folder, "cut.ttir", &text[..end]);
        let last = text[..end].lines().count();
        let error = stderr(&twill(&["schedule", &path]));
        assert_says(&error, &[]);
        let line = error.strip_prefix(&format!("error: {path}:")).and_then(|rest| rest.split(':').next());
        assert!((1..=last + 1).contains(&line.unwrap().parse().unwrap()), "{end}: {error}");
    }
}

#[test]
fn what_is_no_kernel_is_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let python = fs::read(root().join("examples/attention_forward.py")).unwrap();
    // A fixed sequence without pattern.
    let random: Vec<u8> = (0u32..4096).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let unlike = "expected Triton IR as MLIR text, but this looks like";
    let not_text = "Twill reads TTIR (.ttir) and loop graphs (.json)";
    let cases: &[(&str, &[u8], &[&str])] = &[
        ("kernel.py", &python, &[unlike, "Python source", "pass compiled.asm[\"ttir\"]"]),
        ("python.ttir", &python, &[unlike, "Python source", "pass compiled.asm[\"ttir\"]"]),
        ("json.ttir", b"{\"operations\": []}", &[unlike, "JSON"]),
        ("list.txt", b"[1, 2]", &[unlike, "JSON"]),
        ("kernel.ptx", b"//\n.version 8.7\n.target sm_90a\n", &[unlike, "PTX", "pass compiled.asm[\"ttir\"]"]),
        ("random.ttir", &random, &["not text: byte ", " is not UTF-8", not_text]),
        ("random.json", &random, &["not text: byte ", " is not UTF-8", not_text]),
        ("kernel.cubin", b"\x7fELF\x02\x01\x01\0\0\0\xff\xfe", &["not text: byte 10 is not UTF-8", not_text]),
        ("elf.ttir", b"\x7fELF\x02\x01\x01\0\0\0", &[unlike, "an ELF binary", "pass compiled.asm[\"ttir\"]"]),
        ("empty.ttir", b"", &["the text is empty; expected a module of Triton IR"]),
        ("blank.ttir", b"\n \t\n", &["the text is empty; expected a module of Triton IR"]),
        ("empty.json", b"", &[":1:0: EOF while parsing"]),
        ("words.txt", b"some words\n", &[":1:1: expected an operation, found `some`"]),
        ("zeros.ttir", &[0; 64], &[":1:1: expected an operation, found `"]),
    ];
    for (name, content, says) in cases {
        let path = file(&folder, name, content);
        unscheduled(&[&path], &[&[path.as_str()], *says].concat());
    }
}

#[test]
fn what_is_wrong_in_a_kernel_is_named_with_both_lines() {
    let folder = tempfile::tempdir().unwrap();
    let attention = example("attention_forward.ttir");
    let exp2 = "%p_37 = math.exp2 %p_36 : tensor<128x128xf32>";
    let extern_call = "%p_37 = tt.extern_elementwise %p_36 {libname = \"\", libpath = \"\", pure = false, \
                       symbol = \"__nv_tanhf\"} : (tensor<128x128xf32>) -> tensor<128x128xf32>";
    let scan = "%p_37 = \"tt.scan\"(%p_36) : (tensor<128x128xf32>) -> tensor<128x128xf32>";
    let undefined = "%p_37 = math.exp2 %p_99 : tensor<128x128xf32>";
    let (k, v) = ("%k_28 = tt.descriptor_load %k_desc[%k, %c0_i32]", "!tt.tensordesc<tensor<128x128xf16>>");
    let untyped = format!("%k_28 = \"tt.descriptor_load\"(%k_desc, %k, %c0_i32) : ({v}, i32, i32)");
    let unsupported = "is not supported inside a loop that is to be scheduled; use tl.dot, loads, stores, \
                       reductions, casts and elementwise arithmetic instead, or move it out of the loop";
    let at = |part: &str| line_of(&attention, part);
    let (exponential, load) = (at("%p_37 = math.exp2"), at("%k_28 ="));
    let source = "of examples/attention_forward.py)";
    let unknown = |what: &str| format!(":{exponential}: `{what}` (line 48 {source} {unsupported}");
    let extent = format!(
        ":{load}: `tt.descriptor_load` (line 41 {source}: the shape of tensor<?x128xf16> is not known at compile time; \
         make every extent of a tile a tl.constexpr"
    );
    let loads = changed(&attention, &format!("{k} : {v}"), &untyped)
        .replace(&format!("{untyped} -> tensor<128x128xf16>"), &format!("{untyped} -> tensor<?x128xf16>"));
    let loads = changed(
        &loads,
        "%qk = tt.trans %k_28 {order = array<i32: 1, 0>} : tensor<128x128xf16> ->",
        "%qk = tt.trans %k_28 {order = array<i32: 1, 0>} : tensor<?x128xf16> ->",
    );
    let zero = example("fixtures/zero_trip.ttir");
    for (text, says) in [
        (changed(&attention, exp2, extern_call), unknown("tt.extern_elementwise __nv_tanhf")),
        (changed(&attention, exp2, scan), unknown("tt.scan")),
        (
            changed(&attention, exp2, undefined),
            format!(":{exponential}:25: %p_99 is used but nothing above defines it"),
        ),
        (loads, extent),
        (
            zero.clone(),
            format!(
                ":{}: `scf.for` (line 48 of examples/fixtures/fixtures.py): the loop never runs: it goes from 0 to 0 in \
                 steps of 1; remove it or change its bounds",
                line_of(&zero, "scf.for")
            ),
        ),
        (
            example("fixtures/no_loop.ttir"),
            ": kernel `no_loop` has no loop with tile operations; Twill schedules `for` loops over a range (scf.for) \
             that load, multiply or combine tiles"
                .into(),
        ),
        ("module {\n}\n".into(), ": there is no kernel: the module has no public tt.func with a body".into()),
    ] {
        let path = file(&folder, "kernel.ttir", text);
        unscheduled(&[&path], &[&format!("error: {path}{says}")]);
    }
}

#[test]
fn the_innermost_of_nested_loops_is_scheduled() {
    let nested = scheduled(&["examples/fixtures/nested_loops.ttir"]);
    assert_eq!((nested.status, nested.initiation_interval), (Status::Optimal, Some(Cycles(512))));
    let plain = scheduled(&["examples/gemm_tma.ttir"]);
    let placed = |file: &ScheduleFile| -> Vec<_> {
        file.operations.iter().map(|op| (op.name.clone(), op.cycle, op.stage, op.group)).collect()
    };
    assert_eq!(placed(&nested), placed(&plain), "the same loop without one around it");
}

#[test]
fn the_generic_form_gives_the_same_answer() {
    for name in ["attention_forward", "gemm_pointers"] {
        let [custom, generic] = [format!("examples/{name}.ttir"), format!("examples/fixtures/{name}_generic.ttir")]
            .map(|path| {
                let mut file = scheduled(&[&path]);
                file.seconds.clear();
                file.to_json()
            });
        assert_eq!(custom, generic, "{name}");
    }
}
