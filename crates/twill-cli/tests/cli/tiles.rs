//! The tile scheduler: what is chosen, and what `kernel.json` says of it.

use crate::common::{root, stderr, twill};
use serde_json::{Value, json};
use std::fs;

/// The grid of a kernel that is compiled without an assembler.
fn grid(ttir: &str, options: &[&str]) -> Value {
    let place = tempfile::tempdir().unwrap();
    let (source, folder) = (place.path().join("kernel.ttir"), place.path().join("kernel"));
    fs::write(&source, ttir).unwrap();
    let paths = ["compile", source.to_str().unwrap(), "-o", folder.to_str().unwrap()];
    let done = twill(
        &[&paths, &["--machine", "h200", "--emit", "cuda", "--no-assemble", "--work-limit", "20000"][..], options]
            .concat(),
    );
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let signature: Value = serde_json::from_str(&fs::read_to_string(folder.join("kernel.json")).unwrap()).unwrap();
    let mut grid = signature["grid"].clone();
    grid.as_object_mut().unwrap().retain(|key, _| ["kind", "serpentine"].contains(&key.as_str()));
    grid
}

fn example(name: &str) -> String {
    fs::read_to_string(root().join("examples").join(name).with_extension("ttir")).unwrap()
}

#[test]
fn loops_that_get_shorter_are_assigned_in_serpentine_order() {
    let causal = example("attention_forward_causal");
    let back = |heads: u32| json!({"kind": "persistent", "serpentine": heads});
    assert_eq!(grid(&causal, &[]), back(2));
    assert_eq!(grid(&causal, &["--group-m", "4"]), back(4));
    assert_eq!(grid(&example("tutorial_attention_causal"), &[]), back(2));
    let one = json!({"kind": "one_per_program"});
    assert_eq!(grid(&causal, &["--persistent", "off"]), one);
    // In another order they do not come out even.
    assert_eq!(grid(&causal, &["--tile-order", "linear"]), one);
    assert_eq!(grid(&causal, &["--tile-order", "linear", "--persistent", "on"]), json!({"kind": "persistent"}));
}

#[test]
fn loops_of_one_length_are_assigned_in_linear_order() {
    let plain = json!({"kind": "persistent"});
    assert_eq!(grid(&example("attention_forward"), &["--tile-order", "lpt"]), plain);
    assert_eq!(grid(&example("gemm_tma"), &[]), plain);
}

#[test]
fn where_memory_says_how_long_loops_are_the_gpu_deals_them_out() {
    let text = example("gemm_tma").replace("%K: i32", "%K: !tt.ptr<i32>");
    let head = "%acc_14 = scf.for %k = %c0_i32 to %K step";
    let loaded = "%place = tt.addptr %K, %row : !tt.ptr<i32>, i32\n    %trips = tt.load %place : !tt.ptr<i32>\n    ";
    assert!(text.contains(head));
    let text = text.replace(head, &(loaded.to_owned() + &head.replace("%K", "%trips")));
    assert_eq!(grid(&text, &[]), json!({"kind": "one_per_program"}));
    assert_eq!(grid(&text, &["--persistent", "on"]), json!({"kind": "persistent"}));
}
