//! `twill compile`: what is written, what is refused, and what is made of the assembler's report.

#[cfg(unix)]
mod assembling;

use crate::common::{root, stderr, stdout, twill};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;
use tempfile::TempDir;

const FILES: [&str; 9] = [
    "assemble.py",
    "kernel.json",
    "kernel.py",
    "launch.py",
    "machine_code.py",
    "plan.py",
    "ptxas.py",
    "schedule.json",
    "test_kernel.py",
];

fn example(name: &str) -> String {
    root().canonicalize().unwrap().join("examples").join(name).with_extension("ttir").to_str().unwrap().to_owned()
}

/// Compiles into the folder `kernel` of this one.
fn compile(place: &TempDir, arguments: &[&str]) -> Output {
    crate::common::command()
        .args(["compile", "--machine", "h200", "-o", "kernel"])
        .args(arguments)
        .current_dir(place.path())
        .output()
        .unwrap()
}

/// Compiles without an assembler; its standard output.
fn compiled(place: &TempDir, name: &str, arguments: &[&str]) -> String {
    let output = compile(place, &[&[example(name).as_str(), "--no-assemble"], arguments].concat());
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{name} {arguments:?}");
    stdout(&output)
}

fn contents(folder: &Path) -> BTreeMap<String, String> {
    let each = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    each.map(|e| (e.file_name().into_string().unwrap(), fs::read_to_string(e.path()).unwrap())).collect()
}

fn kernel_json(place: &TempDir) -> Value {
    serde_json::from_str(&fs::read_to_string(place.path().join("kernel/kernel.json")).unwrap()).unwrap()
}

/// Nothing but what was there before: neither the kernel nor what it was prepared in.
fn assert_entries(place: &TempDir, names: &[&str]) {
    let mut found: Vec<String> = contents_names(place.path());
    found.sort();
    assert_eq!(found, names);
}

fn contents_names(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_folder_has_kernel_launcher_test_and_schedule() {
    let place = tempfile::tempdir().unwrap();
    let said = compiled(&place, "gemm_tma", &[]);
    assert!(
        said.starts_with(
            "gemm_tma for h200\ngemm_tma: I = 512 cycles, 2 stages (optimal in the model of h200: proved)\n"
        ),
        "{said}"
    );
    assert!(said.contains(" cycles simulated\nsearched: each sub-tile on one warp group; for any assignment I >= 512 is proved\nbarriers: proved"), "{said}");
    // An H200 takes 527 cycles (bench/results/order.md).
    let simulated = kernel_json(&place)["simulated"]["iterations"][0].as_f64().unwrap();
    assert!((simulated - 527.0).abs() < 0.05 * 527.0, "{simulated}");
    let traffic = &kernel_json(&place)["simulated"]["traffic"];
    let expected = [("shared", 48 << 10), ("global", 32 << 10), ("common", 16 << 10), ("flop", 1 << 21)];
    assert!(expected.iter().all(|(key, amount)| traffic[0][key] == *amount), "{traffic}");
    assert!(said.ends_with("written to kernel\n"), "{said}");
    assert_entries(&place, &["kernel"]);
    let files = contents(&place.path().join("kernel"));
    assert_eq!(files.keys().collect::<Vec<_>>(), FILES.iter().collect::<Vec<_>>());
    let source = &files["kernel.py"];
    for line in [
        "gemm_tma: I = 512 cycles, 2 stages (optimal in the model of h200: proved).",
        "\ndef compute_1(\n",
        "\ndef load(\n",
        "    \"\"\"1 warp, 24 registers a thread.\"\"\"\n",
        "        for i in range(1, trips):",
        "    gl.warp_specialize(\n",
    ] {
        assert!(source.contains(line), "{line}:\n{source}");
    }
    let json = kernel_json(&place);
    assert_eq!((&json["format"], &json["architecture"]), (&"twill-kernel".into(), &"sm_90a".into()));
    assert_eq!(json["constants"], serde_json::json!({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}));
    assert_eq!((&json["barriers_at"], json.get("assembly")), (&(-1).into(), None));
    assert!(files["test_kernel.py"].contains("class Product(Runs)"));
    let checked = twill(&["check", place.path().join("kernel/schedule.json").to_str().unwrap()]);
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
}

#[test]
fn constants_of_the_examples_are_their_tiles_before_they_are_cut() {
    let place = tempfile::tempdir().unwrap();
    for (name, constants) in [
        ("attention_forward_d64", r#"{"BLOCK_M": 128, "BLOCK_N": 128, "CAUSAL": false, "HEAD_DIM": 64}"#),
        ("attention_forward_causal", r#"{"BLOCK_M": 128, "BLOCK_N": 128, "CAUSAL": true, "HEAD_DIM": 128}"#),
        ("attention_backward", r#"{"BLOCK_M": 64, "BLOCK_N": 128, "HEAD_DIM": 128}"#),
        ("gemm_tma_n256", r#"{"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64}"#),
        ("gemm_pointers", r#"{"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}"#),
        ("swiglu", r#"{"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}"#),
    ] {
        // They do not depend on the schedule, and this one takes no search.
        compiled(&place, name, &["--schedule=no-swp"]);
        let wanted: Value = serde_json::from_str(constants).unwrap();
        assert_eq!(kernel_json(&place)["constants"], wanted, "{name}");
    }
}

#[test]
fn a_kernel_that_is_no_example_has_a_test_that_compiles() {
    let place = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(example("gemm_tma")).unwrap().replace("@gemm_tma", "@another");
    fs::write(place.path().join("another.ttir"), text).unwrap();
    let output = compile(&place, &["another.ttir", "--no-assemble"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let files = contents(&place.path().join("kernel"));
    assert!(files["test_kernel.py"].contains("test_compiles") && !files["test_kernel.py"].contains("torch"));
    assert_eq!(kernel_json(&place)["constants"], serde_json::json!({}));
}

#[test]
fn a_warp_program_is_written_beside_the_kernel_where_it_is_asked_for() {
    let place = tempfile::tempdir().unwrap();
    // A kernel that is kept has none.
    compiled(&place, "gemm_tma", &[]);
    compiled(&place, "gemm_tma", &["--warp-program"]);
    let text = contents(&place.path().join("kernel"))["warp_program.txt"].clone();
    let groups: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("group ")).collect();
    let wanted = kernel_json(&place)["groups"].as_array().map_or(0, Vec::len);
    assert!(text.starts_with("warp_program gemm_tma {") && groups.len() == wanted && wanted > 1, "{groups:?} {wanted}");
    compiled(&place, "gemm_tma", &[]);
    assert!(!contents(&place.path().join("kernel")).contains_key("warp_program.txt"));
}

#[test]
fn the_same_command_writes_the_same_bytes() {
    for (name, options) in
        [("attention_forward_causal", vec!["--persistent=on"]), ("swiglu", vec!["--schedule=swp-only"])]
    {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        compiled(&one, name, &options);
        // Over a kernel that is there, too.
        compiled(&two, "gemm_tma", &["--schedule=no-swp"]);
        compiled(&two, name, &options);
        assert_entries(&two, &["kernel"]);
        assert_eq!(contents(&one.path().join("kernel")), contents(&two.path().join("kernel")), "{name}");
    }
}

/// The command fails, says this, and leaves nothing.
fn refused(code: i32, arguments: &[&str], says: &str) {
    let place = tempfile::tempdir().unwrap();
    let output = compile(&place, &[arguments, &["--no-assemble"]].concat());
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(code), ""), "{arguments:?}");
    let error = stderr(&output);
    assert!(error.starts_with("error: ") && error.contains(says), "{arguments:?}: {error}");
    assert_entries(&place, &[]);
}

#[test]
fn what_cannot_be_generated_is_refused_and_nothing_is_written() {
    let (gemm, attention) = (example("gemm_tma"), example("attention_forward"));
    refused(1, &["toy-attention"], "it is a loop graph; code is generated from a kernel in TTIR");
    refused(1, &["absent.ttir"], "absent.ttir");
    refused(1, &[&attention, "--ring-depth", "8"], "bytes of shared memory and there are 232,448");
    refused(2, &[&gemm, "--registers-per-thread", "32"], "no schedule, so no code");
    refused(2, &[&attention, "--compute-groups", "1", "--registers-per-thread", "64"], "no schedule, so no code");
    refused(1, &[&gemm, "--python", "python3"], "cannot be used with");
}

#[test]
fn an_operation_that_is_not_known_is_named_with_its_place() {
    let place = tempfile::tempdir().unwrap();
    let store = "    tt.descriptor_store %c_desc";
    let text = fs::read_to_string(example("gemm_tma")).unwrap();
    let text = text.replace(store, &format!("    \"ttg.async_wait\"() : () -> () loc(#loc14)\n{store}"));
    fs::write(place.path().join("odd.ttir"), text).unwrap();
    let output = compile(&place, &["odd.ttir", "--no-assemble", "--emit", "cuda"]);
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("error: odd.ttir:") && error.contains("`ttg.async_wait`"), "{error}");
    assert_entries(&place, &["odd.ttir"]);
}

#[test]
fn without_time_for_a_search_one_iteration_follows_another() {
    let place = tempfile::tempdir().unwrap();
    let limits = ["--work-limit", "1", "--sub-tiles", "2", "--no-assemble"];
    let output = compile(&place, &[&[example("attention_forward").as_str()], limits.as_slice()].concat());
    let error = stderr(&output);
    assert!(output.status.success() && error.contains("one iteration after another"), "{error}");
    let kernel = fs::read_to_string(place.path().join("kernel/kernel.py")).unwrap();
    assert!(kernel.contains("gl.warp_specialize"));
}

/// No pipeline is better than no kernel: what is in the way is said.
#[test]
fn what_cannot_be_pipelined_is_executed_in_order() {
    let read = |name: &str| fs::read_to_string(example(&format!("fixtures/{name}"))).unwrap();
    // It stores to what it loads.
    let text = read("loops/persistent");
    let aliased = text.replace("tt.addptr %out_ptr", "tt.addptr %x_ptr");
    assert_ne!(aliased, text);
    for (name, text, why) in [
        ("aliased", aliased, "a load of what the kernel itself has stored"),
        ("while_loop", read("in_order/while_loop"), "no loop with tile operations"),
    ] {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join(name), text).unwrap();
        let output = compile(&place, &[name, "--no-assemble"]);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{name}: {error}");
        assert!(error.contains(why) && error.contains("is executed in order instead"), "{name}: {error}");
        let kernel = fs::read_to_string(place.path().join("kernel/kernel.py")).unwrap();
        assert!(kernel.contains("def in_order(") && !kernel.contains("gl.warp_specialize"), "{name}");
    }
}

/// The last CTA's programs beyond the grid repeat its last one, which does for stores and not for sums.
#[test]
fn sums_in_memory_are_not_made_by_programs_that_share_a_cta() {
    let place = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(example("attention_forward_d64_m64")).unwrap();
    let (store, rest) = ("tt.descriptor_store %o_desc[", "tt.descriptor_reduce add, %o_desc[");
    assert!(text.contains(store));
    fs::write(place.path().join("sums.ttir"), text.replace(store, rest)).unwrap();
    let output = compile(&place, &["sums.ttir", "--no-assemble", "--cta-coarsening", "3"]);
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("atomics of programs that share a CTA"), "{error}");
}

/// A schedule whose MMAs start together may have an assignment of groups that is not written; the first one is then.
#[test]
fn what_is_not_written_in_mma_batches_is_written_without() {
    let place = tempfile::tempdir().unwrap();
    let kernel = root().join("examples/fixtures/attention_alibi.ttir");
    let output =
        compile(&place, &[kernel.to_str().unwrap(), "--emit", "cuda", "--no-assemble", "--work-limit", "400000"]);
    let notes = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{notes}");
    assert!(notes.contains("comes to the group that reads it after the loop"), "{notes}");
    assert!(notes.contains("the schedule that was found first is generated instead"), "{notes}");
}

/// What a row's whole sum is broadcast over is a tile like any other, not four partials of each row.
#[test]
fn sums_spread_over_a_tile_are_whole_tiles() {
    let text = fs::read_to_string(root().join("examples/fixtures/attention_relu.ttir")).unwrap();
    let (divide, store) = ("    %o_26 = arith.divf %o_22, %o_25", "    tt.descriptor_store %o_desc");
    assert!(text.contains(divide) && text.contains(store));
    // Stored itself, and with something computed of it.
    let stored = format!(
        "    %spread = arith.truncf %o_25 : tensor<128x64xf32> to tensor<128x64xf16>\n    tt.descriptor_store \
         %o_desc[%queries_18, %c0_i32], %spread : !tt.tensordesc<tensor<128x64xf16>>, tensor<128x64xf16>\n{store}"
    );
    let computed = "    %e = math.exp %o_25 : tensor<128x64xf32>\n    %o_26 = arith.divf %o_22, %e";
    for (from, to, stores) in [(store, stored.as_str(), 2), (divide, computed, 1)] {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("spread.ttir"), text.replace(from, to)).unwrap();
        let options = ["spread.ttir", "--emit", "cuda", "--no-assemble"];
        let output = compile(&place, &options);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let source = fs::read_to_string(place.path().join("kernel/kernel.cu")).unwrap();
        let group =
            &source[source.find("TWILL void compute_1(").unwrap()..source.find("TWILL void compute_2(").unwrap()];
        assert_eq!(group.matches("stmatrix(staging_1(), ").count(), stores, "{group}");
        assert_eq!(group.matches(" st_shared(").count(), 0, "{group}");
    }
}

/// Programs of experts: CTAs stay for the next tile, rows of the list are found once, and results leave in whole vectors.
#[test]
fn rows_of_a_list_are_found_once_and_stored_in_vectors() {
    for (folder, name) in [("quantised", "fused_moe"), ("fixtures", "product_returning")] {
        let place = tempfile::tempdir().unwrap();
        let kernel = root().join(format!("examples/{folder}/{name}.ttir"));
        let output = compile(&place, &[kernel.to_str().unwrap(), "--no-assemble"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let source = fs::read_to_string(place.path().join("kernel/kernel.py")).unwrap();
        assert!(
            source.contains("gl.num_programs(0)"),
            "{name}: programs that return do not keep CTAs from being persistent"
        );
        if name == "fused_moe" {
            let (computes, loads) = source.split_at(source.find("def load(").unwrap());
            let body = &loads[loads.find("# steady state").unwrap()..loads.find("@gluon.jit").unwrap()];
            assert!(!body.contains("pairs"), "{body}");
            let stores = computes.lines().filter(|line| line.trim_start().starts_with("gl.store("));
            assert!(stores.clone().count() > 0 && stores.clone().all(|line| line.contains("_V8")), "{computes}");
        }
    }
}

/// One CTA of a cluster would wait for ever for what the other one, which has returned, was to load.
#[test]
fn clusters_of_which_one_cta_may_return_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let kernel = root().join("examples/fixtures/product_returning.ttir");
    let options = ["--emit=cuda", "--no-assemble", "--cluster=2", "--tile-order=linear"];
    let output = compile(&place, &[&[kernel.to_str().unwrap()], &options[..]].concat());
    let notes = stderr(&output);
    assert!(notes.contains("clusters of CTAs of which one may return early; leave out --cluster"), "{notes}");
    assert_ne!(output.status.code(), Some(0), "{notes}");
}

/// The group that loads also adds dQ to memory: what it loads does not wait for sums of the iteration before.
#[test]
fn loads_run_ahead_of_what_their_group_stores() {
    let place = tempfile::tempdir().unwrap();
    compiled(&place, "attention_backward", &[]);
    let source = fs::read_to_string(place.path().join("kernel/kernel.py")).unwrap();
    let loads = &source[source.find("def load(").unwrap()..];
    let before = |first: &str, second: &str| loads[..loads.find(second).unwrap()].matches(first).count();
    assert!(before("(q_desc_64x128, ", "tma_add(dq_desc") >= 2, "{loads}");
    assert!(before("(lse_buffer.index", "tma_add(dq_desc") >= 2, "{loads}");
}

/// ptxas may put something else in the place of registers that an MMA reads if nobody waits for them.
#[test]
fn waits_name_what_mmas_read_from_registers() {
    let place = tempfile::tempdir().unwrap();
    compiled(&place, "attention_forward", &["--schedule", "no-swp"]);
    let source = fs::read_to_string(place.path().join("kernel/kernel.py")).unwrap();
    assert!(source.contains("warpgroup_mma(q_0_held, "), "{source}");
    assert!(source.contains("qk_0, q_0_held = warpgroup_mma_wait("), "{source}");
}

/// What groups that run ahead of each other, or Gluon's signed arithmetic, would get wrong without a word.
#[test]
fn what_would_be_silently_wrong_is_refused() {
    let cases = [
        ("attention_forward", "%row_sum_49 = arith.addf", "%row_sum_49 = arith.mulf", ""),
        ("gemm_pointers", "arith.cmpi slt", "arith.cmpi ult", ""),
        ("attention_backward", "tt.descriptor_reduce add", "tt.descriptor_reduce max", "atomics other than add"),
        ("attention_forward", "tt.descriptor_store %o_desc", "tt.descriptor_store %q_desc", ""),
    ];
    for (name, from, to, says) in cases {
        let place = tempfile::tempdir().unwrap();
        let text = fs::read_to_string(example(name)).unwrap();
        assert!(text.contains(from), "{name}: {from}");
        fs::write(place.path().join("odd.ttir"), text.replace(from, to)).unwrap();
        let output = compile(&place, &["odd.ttir", "--no-assemble", "-q", "--emit", "cuda", "--work-limit", "300000"]);
        let error = stderr(&output);
        if says.is_empty() {
            // A load before the store is in order, numbers without a sign are compared as such, and elements are combined by
            // any operation.
            assert_eq!(output.status.code(), Some(0), "{error}");
        } else {
            assert_eq!(output.status.code(), Some(1), "{name} {to}: {error}");
            assert!(error.contains(says), "{name} {to}: {error}");
        }
    }
}

#[test]
fn folders_of_others_are_left_alone() {
    let gemm = example("gemm_tma");
    for (file, text) in [("notes.txt", "mine"), ("kernel.json", "{\"format\": \"somebody's\"}"), ("kernel.py", "pass")]
    {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("kernel")).unwrap();
        fs::write(place.path().join("kernel").join(file), text).unwrap();
        let output = compile(&place, &[&gemm, "--no-assemble"]);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.starts_with("error: kernel: ") && error.contains("a kernel needs a new folder"), "{error}");
        assert_eq!(contents(&place.path().join("kernel")), [(file.to_owned(), text.to_owned())].into());
        assert_entries(&place, &["kernel"]);
    }
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("kernel"), "a file").unwrap();
    assert!(stderr(&compile(&place, &[&gemm, "--no-assemble"])).contains("it is a file"));
    // An empty one, and one with a kernel that Python has run, are ours to fill.
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("kernel")).unwrap();
    compiled(&place, "gemm_tma", &[]);
    fs::create_dir(place.path().join("kernel/__pycache__")).unwrap();
    compiled(&place, "swiglu", &[]);
    assert_eq!(kernel_json(&place)["name"], "swiglu");
}

#[test]
fn what_was_measured_and_drawn_of_a_kernel_goes_with_it() {
    let place = tempfile::tempdir().unwrap();
    compiled(&place, "gemm_tma", &[]);
    for file in ["trace.bin", "trace.bin.json", "trace.json", "report.html"] {
        fs::write(place.path().join("kernel").join(file), "of gemm_tma").unwrap();
    }
    compiled(&place, "swiglu", &[]);
    assert_eq!(contents(&place.path().join("kernel")).into_keys().collect::<Vec<_>>(), FILES);
    assert_eq!(kernel_json(&place)["name"], "swiglu");
}

#[test]
fn naive_schedules_are_schedules_and_worse() {
    let interval = |name: &str, which: &str| {
        let place = tempfile::tempdir().unwrap();
        let said = compiled(&place, name, &["--schedule", which]);
        let checked = twill(&["check", place.path().join("kernel/schedule.json").to_str().unwrap()]);
        assert_eq!(checked.status.code(), Some(0), "{name} {which}: {}", stderr(&checked));
        let source = fs::read_to_string(place.path().join("kernel/kernel.py")).unwrap();
        if which == "no-swp" {
            assert!(said.contains("1 stage (no software pipelining, to compare with)"), "{said}");
            let rings = source.lines().filter(|l| l.contains("= gl.allocate_shared_memory") && !l.contains("bars"));
            assert!(
                rings.clone().count() > 3 && rings.clone().all(|l| l.contains(", [1, ")),
                "one slot each:\n{source}"
            );
        }
        kernel_json(&place)["schedule"]["interval"].as_i64().unwrap()
    };
    for name in ["gemm_tma", "swiglu", "attention_forward", "attention_backward"] {
        let [optimal, pipelined, naive] = ["optimal", "swp-only", "no-swp"].map(|which| interval(name, which));
        assert!(optimal <= pipelined && pipelined < naive, "{name}: {optimal}, {pipelined}, {naive}");
        assert!(optimal < pipelined || !name.starts_with("attention"), "{name}: {optimal}, {pipelined}");
    }
}

#[test]
fn one_program_shares_its_cta_with_none() {
    let place = TempDir::new().unwrap();
    let kernel = |arguments: &[&str]| {
        compiled(&place, "gemm_tma", &[&["--emit", "cuda"], arguments].concat());
        let text = fs::read_to_string(place.path().join("kernel/kernel.cu")).unwrap();
        text.split_once("#include").unwrap().1.to_owned()
    };
    assert_eq!(kernel(&["--cta-coarsening", "1"]), kernel(&["--sub-tiles", "1"]));
}

/// Triton prints no tiles that are no power of two; others may. A tile of keys is read in MMAs of 176 columns.
#[test]
fn tiles_need_not_be_powers_of_two() {
    let place = TempDir::new().unwrap();
    let text = fs::read_to_string(example("attention_forward_d64_m64")).unwrap();
    let text =
        text.replace("128x64x", "176x64x").replace("64x128x", "64x176x").replace("constant 128 :", "constant 176 :");
    fs::write(place.path().join("keys.ttir"), text).unwrap();
    let output = compile(&place, &["keys.ttir", "--emit", "cuda", "--no-assemble", "--cta-coarsening", "3"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let code = fs::read_to_string(place.path().join("kernel/kernel.cu")).unwrap();
    for part in ["m64n176k16", "smem_tile<__half, 176, 64> k_buffer", "accumulator<64, 176>", "(length + 175) / 176"] {
        assert!(code.contains(part), "{part}");
    }
    // The sum begins with zero, of which any number of columns has its share: the exchange waits for the end of the loop.
    assert!(code.contains("row_sum_reduce_sum_0 = row_partials(p_exp2_0, add{})"), "{code}");
}

/// With results a little later, the same interval has a schedule that starts both MMAs of a group in one turn; the first
/// schedule found has a row sum between them, which costs 9 % on an H200.
#[test]
fn mmas_of_a_ping_pong_slot_start_back_to_back() {
    let place = TempDir::new().unwrap();
    let said = compiled(&place, "attention_forward_d64_m64", &["--cta-coarsening", "3", "--emit", "cuda"]);
    assert!(said.contains("I = 1584 cycles"), "{said}");
    // An H200 takes 2390 cycles.
    let simulated = kernel_json(&place)["simulated"]["iterations"][0].as_f64().unwrap();
    assert!((simulated - 2390.0).abs() < 0.05 * 2390.0, "{simulated}");
    let source = fs::read_to_string(place.path().join("kernel/kernel.cu")).unwrap();
    let pingpong: Vec<&str> =
        source.split("// steady state").skip(1).map(|l| l.split("named_barrier_arrive<").next().unwrap()).collect();
    assert_eq!(pingpong.len(), 4, "three groups and the loader");
    for slot in pingpong.iter().filter(|slot| slot.contains("mma(")) {
        let (first, last) = (slot.find("mma(").unwrap(), slot.rfind("mma(").unwrap());
        assert!(slot[first..].starts_with("mma(qk_"), "scores first:{slot}");
        assert!(!slot[first..last].contains("row_partials("), "nothing is computed between them:{slot}");
    }
}

#[test]
fn cuda_holds_operands_in_registers_where_it_is_asked_to() {
    let place = TempDir::new().unwrap();
    let holds = |arguments: &[&str]| {
        compiled(&place, "attention_forward", &[&["--emit", "cuda"], arguments].concat());
        fs::read_to_string(place.path().join("kernel/kernel.cu")).unwrap().contains("q_0_held")
    };
    assert!(!holds(&[]));
    assert!(holds(&["--operands-in-registers", "on"]));
}
