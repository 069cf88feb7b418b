//! Bad input of every kind: what is said about it, and that nothing else comes out.

use crate::common::{root, stderr, stdout, twill};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;
use twill_graph::format::ScheduleFile;
use twill_graph::{Cycles, LowerBoundKind, RejectionReason, Status};

/// Writes a file for the command to stumble over, and gives its path.
fn file(folder: &TempDir, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

fn example(name: &str) -> String {
    fs::read_to_string(root().join("examples").join(name)).unwrap()
}

/// The text with one thing changed.
fn changed(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from}");
    text.replace(from, to)
}

/// The 1-based line in which `part` stands first.
fn line_of(text: &str, part: &str) -> usize {
    1 + text.lines().position(|line| line.contains(part)).unwrap()
}

fn assert_says(error: &str, says: &[&str]) {
    assert!(error.starts_with("error: ") && error.ends_with('\n'), "{error}");
    assert!(!error.contains("panicked"), "{error}");
    for part in says {
        assert!(error.contains(part), "{part}:\n{error}");
    }
}

/// The command fails with one line that contains `says`, and leaves nothing: no text, no file.
fn refused(arguments: &[&str], says: &[&str]) {
    let output = twill(arguments);
    let error = stderr(&output);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{arguments:?}: {error}");
    assert_says(&error, says);
    assert_eq!(error.lines().count(), 1, "{error}");
}

/// As [`refused`], for `twill schedule`, with and without an output file.
fn unscheduled(arguments: &[&str], says: &[&str]) {
    let arguments = [&["schedule"], arguments].concat();
    refused(&arguments, says);
    let folder = tempfile::tempdir().unwrap();
    let answer = folder.path().join("answer.json");
    refused(&[&arguments[..], &["--format", "json", "--output", answer.to_str().unwrap()]].concat(), says);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{arguments:?}");
}

fn scheduled(arguments: &[&str]) -> ScheduleFile {
    let output = twill(&[&["schedule", "--format", "json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    ScheduleFile::from_json(&stdout(&output), "stdout").unwrap()
}

// TTIR

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

// Machine files

#[test]
fn what_is_wrong_in_a_machine_file_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let h100 = fs::read_to_string(root().join("machines/h100.toml")).unwrap();
    let transfer = h100.lines().find(|line| line.starts_with("transfer = ")).unwrap();
    let at = |part: &str| format!(":{}: ", line_of(&h100, part));
    let own = |rest: &str| format!("name = \"own\"\nextends = \"h100\"\n{rest}\n");
    let builtin = "a100, h100, h200, b200, b200-left-shared";
    let cases: &[(String, &[&str])] = &[
        (changed(&h100, &format!("{transfer}\n"), ""), &[&at("[latency]"), "`latency.transfer` is missing; expected "]),
        (
            changed(&h100, transfer, "transfer = { derived = -650, source = \"x\" }"),
            &[&at(transfer), "`latency.transfer` is -650; it must be a whole number from 0 to "],
        ),
        (
            changed(&h100, transfer, "transfer = 650"),
            &[&at(transfer), "`latency.transfer` does not say where it comes from; write { measured = 650, source = "],
        ),
        (
            changed(&h100, "[costs.convert]\nunit = \"alu\"", "[costs.convert]\nunit = \"cvt\""),
            &[
                &format!(":{}: ", line_of(&h100, "[costs.convert]") + 1),
                "`costs.convert.unit` is the unit `cvt`, which [units] does not declare",
                "it declares tensor, tma, xu, fma, alu, lsu",
            ],
        ),
        (changed(&h100, "\n[latency]\n", "\n[latencies]\n"), &[":1: `latency` is missing; expected a table [latency]"]),
        (changed(&h100, "[latency]\n", "[latency\n"), &[&at("[latency]"), "not valid TOML"]),
        (
            "name = \"own\"\nextends = \"h10\"\n".into(),
            &[
                ":2: `extends` names h10, which is not built in (did you mean `h100`?)",
                "a path relative to this file",
                builtin,
            ],
        ),
        (
            "name = \"own\"\nextends = \"./gone.toml\"\n".into(),
            &[":2: `extends` names ./gone.toml, which cannot be read", "a path relative to this file"],
        ),
        (
            own("[memory]\nshared_bytes = { measured = -1, source = \"x\" }"),
            &[":4: `memory.shared_bytes` is -1; it must be"],
        ),
    ];
    for (text, says) in cases {
        let path = file(&folder, "own.toml", text);
        unscheduled(&["examples/attention_forward_d64.ttir", "--machine", &path], &[&[path.as_str()], *says].concat());
        let all = twill(&["machine", "check", &path]);
        assert_eq!((all.status.code(), stdout(&all).as_str()), (Some(1), ""));
        assert_says(&stderr(&all), &[&[path.as_str()], *says].concat());
    }
}

#[test]
fn machines_that_extend_each_other_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let first = file(&folder, "first.toml", "name = \"first\"\nextends = \"./second.toml\"\n");
    file(&folder, "second.toml", "name = \"second\"\n\nextends = \"./first.toml\"\n");
    let says = ["second.toml:3: machines extend each other: ", "first.toml → ", "; remove one `extends`"];
    unscheduled(&["gemm", "--machine", &first], &says);
    refused(&["machine", "check", &first], &says);
    refused(&["machine", "show", &first], &says);
}

#[test]
fn a_machine_that_does_not_exist_is_named() {
    let built_in = "built in are a100, h100, h200, b200, b200-left-shared";
    let says = ["there is no machine `h10`", "did you mean `h100`?", built_in, "./h10.toml"];
    unscheduled(&["gemm", "--machine", "h10"], &says);
    refused(&["machine", "show", "h10"], &says);
    unscheduled(&["gemm", "--machine", "nowhere/h100.toml"], &["cannot read the machine file nowhere/h100.toml"]);
    refused(&["machine", "check", "nowhere/h100.toml"], &["cannot read nowhere/h100.toml"]);
}

#[test]
fn a_machine_of_ones_own_works_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let twice = "name = \"twice\"\nextends = \"h100\"\n[costs.special_function]\n\
                 elements_per_cycle = { measured = 32, source = \"my own runs\" }\n";
    let path = file(&folder, "twice.toml", twice);
    let bound = |arguments: &[&str]| {
        let file = scheduled(&[&["examples/attention_forward_d64.ttir"], arguments].concat());
        assert_eq!(file.status, Status::Optimal);
        let LowerBoundKind::Resource { unit, busy, .. } = file.lower_bound.kind else {
            panic!("{:?}", file.lower_bound)
        };
        assert_eq!(file.initiation_interval, Some(busy));
        (file.problem.resources.name, unit, busy.0)
    };
    assert_eq!(bound(&[]), ("h100".into(), "xu".into(), 1056));
    assert_eq!(bound(&["--machine", &path]), ("twice".into(), "tensor".into(), 1024));
}

#[test]
fn a_machine_that_lacks_what_tensor_memory_takes_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let like_b200 = |rest: &str| file(&folder, "machine.toml", format!("name = \"own\"\nextends = \"b200\"\n{rest}"));
    let no_loads = like_b200("[costs]\ntensor_load = false\n");
    unscheduled(
        &["examples/attention_forward.ttir", "--machine", &no_loads],
        &[
            "examples/attention_forward.ttir:41: `tt.dot` (line 42 of ",
            "machine `own` has no cost for a load from tensor memory: its file has no [costs.tensor_load]",
        ],
    );
    // What loads nothing does not need it.
    assert_eq!(scheduled(&["examples/swiglu.ttir", "--machine", &no_loads]).status, Status::Optimal);
    let narrow = like_b200("[memory]\ntensor_columns = { specified = 128, source = \"x\" }\n");
    let output = twill(&["schedule", "examples/swiglu.ttir", "--machine", &narrow]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains("columns of tensor memory: at least 256 needed, 128 at hand, for gate, up"));
}

// Graphs

/// JSON pointers with what to put there: null removes, `-` as the index of a list adds.
type Changes<'a> = &'a [(&'a str, Value)];

/// The built-in gemm, two loads and a dot, changed.
fn gemm(changes: Changes<'_>) -> Value {
    let mut graph: Value = serde_json::from_str(&stdout(&twill(&["kernels", "gemm"]))).unwrap();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match graph.pointer_mut(parent).unwrap() {
            Value::Array(list) if key == "-" => list.push(value.clone()),
            Value::Array(list) => list[key.parse::<usize>().unwrap()] = value.clone(),
            Value::Object(object) if value.is_null() => assert!(object.remove(key).is_some()),
            Value::Object(object) => drop(object.insert(key.into(), value.clone())),
            other => panic!("{pointer}: {other}"),
        }
    }
    graph
}

#[test]
fn what_is_wrong_in_a_graph_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let cases: &[(&str, Value, &[&str])] = &[
        (
            "/dependences/-",
            json!({"from": "C", "to": "load A", "value": false}),
            &[
                ": operations depend on each other within one iteration: load A → C → load A",
                "a loop-carried dependence needs a distance of at least 1",
            ],
        ),
        ("/dependences/0/to", json!("D"), &[": dependences[0] names the operation `D`, which is not in the file"]),
        ("/dependences/2/from", json!("c"), &[": dependences[2] names the operation `c`, which is not in the file"]),
        (
            "/dependences/-",
            json!({"from": "load A", "to": "C"}),
            &[": dependence `load A` → `C` (distance 0): it is given twice; merge the two"],
        ),
        (
            "/operations/2/result",
            Value::Null,
            &[": dependence `C` → `C` (distance 1): it is tied but carries no value"],
        ),
        (
            "/operations/2/units/0/unit",
            json!("tensr"),
            &[": operation `C` uses the unit `tensr`, which machine `h100` does not declare; it has `tensor`, `tma`"],
        ),
        ("/operations/2/units/0/cycles", json!(-5), &[": operation `C`: cycles is -5; it must be from 0 to 2^40"]),
        ("/operations/2/latency", json!(-1), &[": operation `C`: latency is -1; it must be from 0 to 2^40"]),
        ("/operations/2/latency", json!(1u64 << 62), &[": operation `C`: latency is 4611686018427387904; it must be"]),
        ("/operations/2/latency", json!(1.5), &["graph.json:", "invalid type: floating point `1.5`"]),
        ("/operations/2/result", json!({"registers": -1}), &["graph.json:", "invalid value: integer `-1`"]),
        (
            "/operations/2/cycles",
            json!(5),
            &[": operation `C`: its reservation of `tensor` ends at cycle 512", "raise `cycles`"],
        ),
        ("/operations/2/issue_width", json!(8), &[": operation `C`: issue_width is 8; it must be 1 (one warp) or 4"]),
        ("/operations/1/name", json!("C"), &[": two operations are named `C`; give each its own name"]),
        ("/operations/1/streams", json!(true), &["graph.json:", "unknown field `streams`", "`streaming`"]),
        ("/opertions", json!([]), &["graph.json:", "unknown field `opertions`", "`operations`"]),
        ("/operations", json!([]), &[": the graph has no operations"]),
        ("/operations", Value::Null, &["graph.json:", "missing field `operations`"]),
        ("/version", json!(2), &[": expected format `twill-graph` version 1, found `twill-graph` version 2"]),
        ("/format", json!("twill-schedule"), &[": expected format `twill-graph` version 1, found `twill-schedule`"]),
        (
            "/machine",
            Value::Null,
            &[": the graph does not name a machine; choose one with --machine (twill machine list)"],
        ),
        (
            "/reserved",
            json!({"shared_memory": 1_000_000}),
            &[": the loop `gemm` keeps 1000000 bytes of shared memory", "`h100` has 232448; choose smaller tiles"],
        ),
    ];
    for (pointer, value, says) in cases {
        let mut graph = gemm(&[(pointer, value.clone())]);
        if *pointer == "/operations/1/name" || value == &json!([]) {
            graph["dependences"] = json!([]);
        }
        let path = file(&folder, "graph.json", format!("{graph:#}"));
        unscheduled(&[&path], &[&["graph.json"], *says].concat());
    }
    let text = format!("{:#}", gemm(&[]));
    for (text, says) in [(&text[..300], "EOF while parsing"), (&text.replace('[', "(")[..], "expected value")] {
        let path = file(&folder, "graph.json", text);
        unscheduled(&[&path], &["graph.json:", says]);
    }
    let path = file(&folder, "nameless.json", format!("{:#}", gemm(&[("/machine", Value::Null)])));
    assert_eq!(scheduled(&[&path, "--machine", "h100"]).initiation_interval, Some(Cycles(512)));
}

#[test]
fn what_no_interval_can_hold_says_what_is_needed_and_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    // One group holds 128 threads of at most 255 registers, 32 of which are kept back.
    let group = 128 * (255 - 32);
    let shared = 232_448;
    let storage = |memory: &str, required, available, values: &[&str]| RejectionReason::Storage {
        memory: memory.into(),
        required,
        available,
        values: values.iter().map(|v| (*v).to_owned()).collect(),
    };
    let rings = [("/operations/0/result", json!({"shared_memory": 200_000}))];
    let wide = [("/operations/0/issue_width", json!(4))];
    let carried = [
        ("/operations/0/result", json!({"registers": 64})),
        ("/operations/0/streaming", Value::Null),
        ("/dependences/0/distance", json!(1)),
    ];
    let cases: &[(Changes<'_>, RejectionReason, &[&str])] = &[
        (
            &[("/operations/2/result", json!({"registers": 40_000}))],
            storage("register words of one warp group", 40_000, group, &["C"]),
            &["register words of one warp group: at least 40'000 needed, 28'544 at hand, for C"],
        ),
        (
            &[rings.as_slice(), &[("/operations/1/result", json!({"shared_memory": 100_000}))]].concat(),
            storage("bytes of shared memory", 300_000, shared, &["load A", "load B"]),
            &["bytes of shared memory: at least 300'000 needed, 232'448 at hand, for load A, load B"],
        ),
        (
            &[rings.as_slice(), &[("/reserved", json!({"shared_memory": 32_768}))]].concat(),
            storage("bytes of shared memory", 200_000 + 16_384 + 32_768, shared, &["load A", "load B"]),
            &["bytes of shared memory: at least 249'152 needed, 232'448 at hand"],
        ),
        (
            &wide,
            RejectionReason::NoGroup {
                operation: "load A".into(),
                why: "it is issued by 4 warps together, and no variable latency group has so many".into(),
            },
            &["no warp group may run load A", "it is issued by 4 warps together"],
        ),
        (
            &carried,
            RejectionReason::Handoff {
                from: "load A".into(),
                to: "C".into(),
                why: "`load A` needs a variable latency group and `C` a compute group".into(),
            },
            &["the register value load A → C cannot stay on one group"],
        ),
    ];
    for (changes, reason, says) in cases {
        let path = file(&folder, "graph.json", format!("{:#}", gemm(changes)));
        let output = twill(&["schedule", &path, "--format", "json"]);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(2), ""));
        let answer = ScheduleFile::from_json(&stdout(&output), "stdout").unwrap();
        assert_eq!((answer.status, answer.infeasible.as_ref()), (Status::Infeasible, Some(reason)));
        for format in ["text", "pseudocode"] {
            let output = twill(&["schedule", &path, "--format", format, "--width", "200"]);
            assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(2), ""));
            for part in [&["No schedule exists", "(infeasible: proved)"], *says].concat() {
                assert!(stdout(&output).contains(part), "{part}:\n{}", stdout(&output));
            }
        }
    }
}

// Schedules

#[test]
fn what_is_wrong_in_a_schedule_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = twill(&["schedule", "gemm", "--format", "json"]);
    let good: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let cases: &[(&str, Value, &[&str])] = &[
        ("version", json!(7), &["expected format `twill-schedule` version 1, found `twill-schedule` version 7"]),
        ("format", json!("twill-graph"), &["expected format `twill-schedule` version 1, found `twill-graph`"]),
        ("operations", json!([]), &["`operations` does not place every operation of the graph"]),
        ("initiation_interval", Value::Null, &["it has no schedule: `initiation_interval` or `length` is missing"]),
        ("stage", json!(0), &["unknown field `stage`"]),
        ("groups", json!([]), &["schedule.json: "]),
        ("rings", json!([]), &["schedule.json: ", "load A"]),
    ];
    for (key, value, says) in cases {
        let mut bad = good.clone();
        bad[*key] = value.clone();
        let path = file(&folder, "schedule.json", format!("{bad:#}"));
        let output = twill(&["check", &path]);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{key}");
        assert_says(&stderr(&output), &[&["schedule.json"], *says].concat());
    }
    let text = format!("{good:#}");
    let path = file(&folder, "schedule.json", &text[..text.len() / 2]);
    refused(&["check", &path], &["schedule.json:", "EOF while parsing"]);
    refused(&["check", "nowhere.json"], &["cannot read nowhere.json: "]);
}

// The command line

#[test]
fn programs_share_a_cta_in_numbers_that_fit_and_without_sub_tiles() {
    for (arguments, says) in [
        (&["--programs-per-cta", "2", "--sub-tiles", "2"][..], "cannot be used with '--sub-tiles"),
        (&["--programs-per-cta", "0"], "0 is not in 1..=16"),
        (&["--programs-per-cta", "17"], "17 is not in 1..=16"),
        (&["--programs-axis", "y"], "--programs-per-cta <N>"),
    ] {
        let output = twill(&[&["schedule", "examples/gemm_tma.ttir"], arguments].concat());
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{arguments:?}");
        assert_says(&stderr(&output), &[says]);
    }
}

#[test]
fn arguments_that_do_not_fit_say_what_would() {
    let graph = "is for kernels in TTIR; a loop graph has its tiles and loop already";
    let gemm = "examples/gemm_tma.ttir";
    let cases: &[(&[&str], &[&str])] = &[
        (&["toy"], &["`toy` is neither a file nor a built-in graph; built-in graphs: toy-attention, "]),
        (&["toy.ttir"], &["cannot read toy.ttir: No such file"]),
        (&["nowhere/toy"], &["cannot read nowhere/toy: No such file"]),
        (&["examples"], &["cannot read examples: "]),
        (&[gemm, "--loop", "3"], &["examples/gemm_tma.ttir: there is no loop 3; the kernel has 1, counted from 0"]),
        (&[gemm, "--kernel", "other"], &["examples/gemm_tma.ttir: there is no kernel `other`; there is gemm_tma"]),
        (
            &[gemm, "--sub-tiles", "3"],
            &["`gemm_tma`: 128 rows cannot be cut into 3 sub-tiles of one size; choose a number that divides 128"],
        ),
        (
            &[gemm, "--sub-tiles", "4"],
            &["`gemm_tma`: 4 sub-tiles of 128 rows leave 32 rows each", "at most 2 sub-tiles"],
        ),
        (
            &["examples/attention_forward_m256.ttir", "--machine", "b200", "--sub-tiles", "4"],
            &["4 sub-tiles of 256 rows leave 64 rows each", "machine `b200` works on at least 128", "at most 2"],
        ),
        (
            &["examples/attention_forward_causal_d64_m64.ttir", "--programs-per-cta", "3"],
            &[
                "examples/attention_forward_causal_d64_m64.ttir:47: `scf.for` (line 40 of ",
                "loop `attention_forward.loop0` cannot be shared by programs along x: whether or how often it runs \
                 depends on tl.program_id(0); use programs along another axis, ",
            ],
        ),
        (
            &[gemm, "--programs-per-cta", "2", "--programs-axis", "z"],
            &[
                "loop `gemm_tma`: programs along z would all compute the same, no tile of it depends on tl.program_id(2)",
            ],
        ),
        (&["gemm", "--programs-per-cta", "2"], &["gemm: --programs-per-cta ", graph]),
        (&["gemm", "--sub-tiles", "2"], &["gemm: --sub-tiles ", graph]),
        (&["gemm", "--loop", "0"], &["gemm: --loop ", graph]),
        (&["gemm", "--kernel", "gemm"], &["gemm: --kernel ", graph]),
        (&["gemm", "--no-contract"], &["gemm: --no-contract ", graph]),
        (&["gemm", "--normalise", "1"], &["gemm: 2 distinct costs cannot sum to at most 1; allow at least 2"]),
    ];
    for (arguments, says) in cases {
        unscheduled(arguments, says);
    }
    let path = "crates/twill-graph/graphs/gemm.json";
    unscheduled(&[path, "--sub-tiles", "2"], &[path, "--sub-tiles", graph]);
    refused(&["kernels", "toy"], &["no built-in graph is named `toy`; there are: toy-attention, "]);
}

#[test]
fn wrong_usage_is_an_error_and_not_a_proof() {
    for (arguments, says) in [
        (&["schedule"][..], "<INPUT>"),
        (&["schedule", "gemm", "--sub-tiles", "0"], "invalid value '0' for '--sub-tiles <N>'"),
        (&["schedule", "gemm", "--compute-groups", "17"], "invalid value '17' for '--compute-groups <N>'"),
        (&["schedule", "gemm", "--time-limit", "0"], "invalid value '0' for '--time-limit <SECONDS>'"),
        (&["schedule", "gemm", "--machines", "h100"], "unexpected argument '--machines' found"),
        (&["plan"], "unrecognized subcommand 'plan'"),
    ] {
        let output = twill(arguments);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{arguments:?}");
        assert_says(&stderr(&output), &[says]);
    }
}

#[test]
fn an_output_that_cannot_be_written_is_named_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let plain = file(&folder, "plain", "");
    let at = |end: &str| folder.path().join(end).to_str().unwrap().to_owned();
    for (output, why) in [
        (at("missing/answer.json"), "No such file or directory"),
        (folder.path().to_str().unwrap().to_owned(), "Is a directory"),
        (format!("{plain}/answer.json"), "Not a directory"),
        (at(".."), "Is a directory"),
    ] {
        refused(&["schedule", "gemm", "--output", &output], &[&format!("cannot write {output}: "), why]);
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["plain"]);
    let beside = Path::new(folder.path()).parent().unwrap();
    let partial = format!("{}.", folder.path().file_name().unwrap().to_str().unwrap());
    assert!(!fs::read_dir(beside).unwrap().any(|e| e.unwrap().file_name().to_string_lossy().starts_with(&partial)));
}

#[test]
fn an_answer_from_before_survives_a_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let answer = file(&folder, "answer.json", "from before");
    refused(&["schedule", "examples/fixtures/zero_trip.ttir", "--output", &answer], &["the loop never runs"]);
    assert_eq!(fs::read_to_string(&answer).unwrap(), "from before");
}

#[test]
fn a_closed_pipe_is_no_reason_to_speak() {
    for arguments in [&["schedule", "gemm"][..], &["kernels"], &["machine", "show", "h100"], &["schema", "graph"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_twill"));
        command.args(arguments).current_dir(root()).stdout(writer).stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{arguments:?}");
    }
}
