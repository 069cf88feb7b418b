//! Sums of live items, on both sides of the limit.

use crate::support::{changed, holds, holds_with_all, machine, problem, problem_on};
use serde_json::json;
use twill_graph::{Bytes, Columns, ModelOptions, Resources};

#[test]
fn sums_are_of_what_is_assumed() {
    let problem = problem();
    // The MMA's unit has one instance.
    let held = ["alive 0 0 3 1 0 1 3 1 0", "alive 0 0 3 1 0 2 3 1 0"];
    holds_with_all(&problem, &held, "-1 -2", "overfull 0 0 3 1 0");
    assert!(!holds(&problem, &held, "1 -2 0", "overfull 0 0 3 1 0"));
    assert!(!holds(&problem, &held, "-1 -2 0", "overfull 0 1 3 1 0"), "another unit");
    assert!(!holds(&problem, &held, "-1 -2 0", "overfull 0 3 3 1 0"), "no unit");
    // A group with fewer than 48 registers a thread has at most 40, 8 of them for tiles: the value takes 16.
    let below = |least: u32| ["group 1 1".to_owned(), format!("registers 1 {least}"), "alive 1 0 0 1 0 1 0 1 0".into()];
    let reason = |least: u32| format!("overfull-registers 0 1 0 2 1 {least}");
    for (least, fits) in [(40, false), (48, false), (49, true), (56, true), (8, false), (4, true)] {
        let atoms = below(least);
        let atoms: Vec<&str> = atoms.iter().map(String::as_str).collect();
        match fits {
            true => assert!(!holds(&problem, &atoms, "-1 2 -3 0", &reason(least)), "{least}"),
            false => holds_with_all(&problem, &atoms, "-1 2 -3", &reason(least)),
        }
    }
    // It says nothing of the group that loads.
    let atoms = ["group 1 0", "registers 0 48", "alive 1 0 0 1 0 1 0 1 0"];
    assert!(!holds(&problem, &atoms, "2 -3 0", "overfull-registers 0 1 0 2 0 48"));
    // Values of another operation count on its group only, and those read from another group only there.
    let atoms = ["same 1 2", "alive 1 0 0 1 0 1 0 2 0", "alive 1 0 0 2 0 1 0 2 0", "group 2 1", "registers 1 56"];
    holds_with_all(&problem, &atoms, "-1 -2 -3 -4 5", "overfull-registers 0 2 0 2 1 56");
    let atoms = ["same 1 2", "alive 1 0 1 1 0 1 0 2 0", "alive 1 0 0 2 0 1 0 2 0", "group 2 1", "registers 1 56"];
    holds_with_all(&problem, &atoms, "1 -2 -3 -4 5", "overfull-registers 0 2 0 2 1 56");
    // A thread addresses 255 registers: 223 for tiles, that is not quite fourteen values.
    let copies: Vec<String> = (1..=14).map(|copies| format!("alive 1 0 0 1 0 {copies} 0 1 0")).collect();
    let copies: Vec<&str> = copies.iter().map(String::as_str).collect();
    let all: Vec<String> = (1..=14).map(|atom| format!("-{atom}")).collect();
    holds_with_all(&problem, &copies, &all.join(" "), "overfull-registers 0 1 0 1 0 0");
    // A conjunction counts as its parts, each once.
    assert!(holds(&problem, &[held[0], held[1], "all 1 2"], "-3 0", "overfull 0 0 3 1 0"));
    assert!(!holds(&problem, &[held[0], held[0], "all 1 2"], "-3 0", "overfull 0 0 3 1 0"));
}

#[test]
fn memories_hold_rings_and_buffers() {
    let problem = problem();
    // Four slots of 1024 bytes fit, five do not.
    assert!(!holds(&problem, &["ring 0 4"], "-1 0", "overfull-rings"));
    holds_with_all(&problem, &["ring 0 5"], "-1", "overfull-rings");
    assert!(!holds(&problem, &["ring 0 5"], "1 0", "overfull-rings"));
    holds_with_all(&problem, &["ring 0 3", "ring 0 5", "ring 0 4"], "-2", "overfull-rings");
    // In ten cycles a slot is not free again: two are taken in every schedule (6 and 8 cycles), so 2048 bytes.
    let room = |bytes: u64| problem_on(Resources { shared_memory: Bytes(bytes), ..machine() });
    assert!(holds(&room(2047), &[], "0", "overfull-rings"));
    assert!(!holds(&room(2048), &[], "0", "overfull-rings"));
    // A handoff's buffer has four bytes for each of 2048 words.
    let buffer = ["alive 2 0 2 1 0 1 2 1 0"];
    holds_with_all(&room(2048 + 8191), &buffer, "-1", "overfull 2 0 2 1 0");
    assert!(!holds(&room(2048 + 8192), &buffer, "-1 0", "overfull 2 0 2 1 0"));
    assert!(!holds(&room(2048 + 8191), &buffer, "-1 0", "overfull-rings"));
}

#[test]
fn fixed_groups_hold_what_they_are_given() {
    // A load to registers: a warp with 40 registers a thread, 8 of them for tiles, holds 256 words.
    let with = |words: u64| {
        let mut machine = machine();
        machine.variable_latency_group.as_mut().unwrap().registers_per_thread = 40;
        changed(machine, ModelOptions::default(), |text| {
            text["operations"][0]["streaming"] = false.into();
            text["operations"][0]["result"] = json!({"registers": words});
        })
    };
    let alive = ["alive 1 0 0 0 0 1 0 0 0"];
    holds_with_all(&with(257), &alive, "-1", "overfull-registers 0 0 0 0 0 0");
    assert!(!holds(&with(256), &alive, "-1 0", "overfull-registers 0 0 0 0 0 0"));
    // It is not about other groups, nor of what is on another.
    assert!(!holds(&with(257), &alive, "-1 0", "overfull-registers 0 0 0 0 1 0"));
    assert!(!holds(&with(257), &alive, "-1 0", "overfull-registers 0 0 0 1 0 0"));
    assert!(!holds(&with(257), &["alive 1 0 0 1 0 1 0 1 0"], "-1 0", "overfull-registers 0 1 0 0 0 0"));
}

#[test]
fn register_files_hold_what_groups_are_given() {
    // 65536 registers, 128 · 24 of them for loads: 488 a thread for two groups, and each has at least 32.
    let problem = problem();
    for (one, other, fits) in [(248, 240, true), (248, 248, false), (455, 33, true), (456, 33, false)] {
        let atoms = [format!("registers 1 {one}"), format!("registers 2 {other}")];
        let atoms: Vec<&str> = atoms.iter().map(String::as_str).collect();
        match fits {
            true => assert!(!holds(&problem, &atoms, "-1 -2 0", "register-file"), "{one} and {other}"),
            false => holds_with_all(&problem, &atoms, "-1 -2", "register-file"),
        }
    }
    holds_with_all(&problem, &["registers 1 457", "used 2"], "-1 -2", "register-file");
    assert!(!holds(&problem, &["registers 1 456", "used 2"], "-1 -2 0", "register-file"));
    // The most counts for one group; nothing for the group that loads.
    assert!(!holds(
        &problem,
        &["registers 1 248", "registers 1 240", "registers 0 255"],
        "-1 -2 -3 0",
        "register-file"
    ));
    // More registers are fewer as well.
    let atoms = ["registers 1 48", "registers 1 40"];
    holds_with_all(&problem, &atoms, "-1 2", "register-order 1 48 40");
    assert!(!holds(&problem, &atoms, "1 -2 0", "register-order 1 40 48"));
    assert!(holds(&problem, &["registers 1 48"], "-1 1 0", "register-order 1 48 48"));
}

#[test]
fn tensor_memory_has_a_number_of_columns() {
    let with = |columns: u64, reserved: u64| {
        let blackwell = Resources { tensor_memory: Columns(columns), ..machine() };
        changed(blackwell, ModelOptions::default(), |text| {
            text["operations"][1]["result"] = json!({"tensor_memory": 2});
            text["reserved"] = json!({"tensor_memory": reserved});
        })
    };
    let atoms = ["alive 3 0 0 1 0 1 0 1 0", "alive 3 0 0 1 0 2 0 1 0"];
    holds_with_all(&with(3, 0), &atoms, "-1 -2", "overfull 3 0 0 1 0");
    holds_with_all(&with(4, 1), &atoms, "-1 -2", "overfull 3 0 0 1 0");
    assert!(!holds(&with(4, 0), &atoms, "-1 -2 0", "overfull 3 0 0 1 0"));
    assert!(!holds(&with(5, 1), &atoms, "-1 -2 0", "overfull 3 0 0 1 0"));
}
