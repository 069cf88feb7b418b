//! `twill explain` as a user runs it, on the cases with known answers.

use crate::common::{root, stderr, stdout, twill};
use serde_json::Value;

fn explain(arguments: &[&str]) -> (i32, Value) {
    let output = twill(&[&["explain", "--format", "json"], arguments].concat());
    let code = output.status.code().unwrap();
    assert!(code != 1, "{}", stderr(&output));
    (code, serde_json::from_str(&stdout(&output)).unwrap())
}

fn members(rejection: &Value) -> Vec<&str> {
    let members = rejection["conflict"]["members"].as_array().unwrap();
    members.iter().map(|m| m["family"].as_str().unwrap()).collect()
}

fn what_if<'a>(file: &'a Value, change: &str) -> &'a Value {
    let what_ifs = file["what_ifs"].as_array().unwrap();
    what_ifs.iter().find(|w| w["change"] == change).unwrap_or_else(|| panic!("{change}: {what_ifs:#?}"))
}

#[test]
fn one_group_holds_too_much_for_hopper_attention_forward() {
    let (code, file) = explain(&[
        "examples/attention_forward.ttir",
        "--compute-groups",
        "1",
        "--max-interval",
        "2048",
        "--warp-assignment",
        "free",
    ]);
    assert_eq!((code, &file["status"]), (2, &Value::from("infeasible")));
    let last = file["rejections"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["interval"], last.get("stages")), (&Value::from(2048), None), "for any number of stages");
    assert_eq!(last["conflict"]["minimal"], true);
    assert_eq!(members(last), ["dependence", "registers"]);
    let registers = &last["conflict"]["members"][1];
    let demand = &registers["demands"][0];
    assert_eq!(demand["quantity"], "registers_per_thread");
    assert_eq!((&demand["proved"], &demand["available"]), (&Value::from(true), &Value::from(255)));
    assert!(demand["required"].as_u64().unwrap() > 255, "{demand}");
    // Its replay says who holds them, and where those stand in the kernel.
    let holders = registers["breaches"][0]["operations"].as_array().unwrap();
    assert!(holders.iter().any(|o| o.as_str().unwrap().starts_with("acc.")), "{holders:?}");
    for operation in file["operations"].as_array().unwrap() {
        assert_eq!(operation["source"]["file"], "examples/attention_forward.py", "{operation}");
    }
    let two = what_if(&file, "compute_groups");
    assert_eq!((&two["groups"], &two["initiation_interval"]), (&Value::from(2), &Value::from(2048)));
    assert_eq!(what_if(&file, "shared_memory")["known_by"], "conflict");
}

#[test]
fn what_bounds_the_optimum_decides_without_search_what_cannot_help() {
    let (code, file) = explain(&["examples/attention_forward.ttir"]);
    assert_eq!((code, &file["initiation_interval"]), (0, &Value::from(2048)));
    assert_eq!(file["lower_bound"]["witness"]["unit"], "tensor");
    assert_eq!(file["rejections"], Value::Array(Vec::new()));
    for w in file["what_ifs"].as_array().unwrap() {
        match w["change"].as_str().unwrap() {
            "unit_twice_as_fast" if w["unit"] == "tensor" => {
                // 160 KB of operands at 128 bytes a cycle; exponentials would be 1024.
                assert_eq!(
                    (&w["lower_bound"]["kind"], &w["initiation_interval"]),
                    (&"shared_bandwidth".into(), &1280.into())
                );
            }
            "sub_tiles" => assert_eq!((&w["sub_tiles"], &w["known_by"]), (&Value::from(1), &Value::from("search"))),
            "compute_groups" if w["groups"] == 2 => assert_eq!(w["known_by"], "schedule"),
            _ => assert_eq!((&w["known_by"], &w["initiation_interval"]), (&"bound".into(), &2048.into()), "{w}"),
        }
    }
}

#[test]
fn two_groups_have_too_much_work_for_blackwell_attention_forward() {
    let (code, file) = explain(&["attention-forward-blackwell", "--compute-groups", "2"]);
    assert_eq!((code, &file["lower_bound"]["kind"]), (0, &Value::from("group_work")));
    let interval = file["initiation_interval"].as_i64().unwrap();
    assert_eq!(file["lower_bound"]["witness"]["work"].as_i64(), Some(2 * interval));
    assert_eq!(what_if(&file, "compute_groups")["initiation_interval"], 2064);
    let (code, below) = explain(&["attention-forward-blackwell", "--compute-groups", "2", "--max-interval", "2064"]);
    assert_eq!(code, 2);
    assert_eq!(members(&below["rejections"][0]), ["assignment", "exclusive"]);
    assert_eq!(below["rejections"][0]["conflict"]["minimal"], true);
}

#[test]
fn a_whole_tile_does_not_fit_the_registers_of_its_group() {
    let (code, file) = explain(&[
        "examples/attention_forward.ttir",
        "--sub-tiles",
        "1",
        "--what-if",
        "none",
        "--warp-assignment",
        "free",
    ]);
    assert_eq!(code, 0);
    let rejections = file["rejections"].as_array().unwrap();
    let last = rejections.last().unwrap();
    assert_eq!(last["interval"].as_i64().unwrap() + 1, file["initiation_interval"].as_i64().unwrap());
    assert!(members(last).contains(&"registers"), "{last}");
    assert_eq!(file["what_ifs"], Value::Array(Vec::new()));
    for rejection in rejections {
        assert_eq!(rejection["conflict"]["minimal"], true, "{rejection}");
        assert_eq!(rejection["smaller_too"], true);
    }
}

#[test]
fn the_text_fits_the_page_and_names_lines() {
    for width in [60, 80, 100] {
        let arguments =
            ["explain", "examples/attention_forward.ttir", "--compute-groups", "1", "--max-interval", "2048"];
        let output = twill(&[&arguments[..], &["--width", &width.to_string()]].concat());
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(2));
        assert!(text.lines().all(|l| l.chars().count() <= width), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["Why not I = 2048", "lines of attention_forward.py", "registers a thread needed, 255 at hand"] {
            assert!(words.contains(part), "{part}:\n{text}");
        }
        let kernel = std::fs::read_to_string(root().join("examples/attention_forward.py")).unwrap();
        let line = kernel.lines().position(|l| l.contains("qk = tl.dot")).unwrap() + 1;
        assert!(words.contains(&format!("qk.0 ({line})")), "{text}");
    }
}

#[test]
fn the_same_question_gets_the_same_answer() {
    let run = || stdout(&twill(&["explain", "toy-attention-blocking", "--compute-groups", "1", "--format", "json"]));
    let first = run();
    assert_eq!(first, run());
    let file: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(members(&file["rejections"][0]), ["resource", "concurrency"]);
}

#[test]
fn every_loop_of_a_kernel_is_explained() {
    let output = twill(&["explain", "examples/attention_forward_causal.ttir", "--format", "json", "--what-if", "none"]);
    let files: Vec<Value> = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(files.len(), 2);
    assert!(files.iter().all(|f| f["format"] == "twill-explanation" && f["lower_bound"]["kind"] == "resource"));
}
