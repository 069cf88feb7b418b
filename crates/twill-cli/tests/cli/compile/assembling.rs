//! What is made of the assembler's report; scripts take Python's part.

use super::*;
use std::os::unix::fs::PermissionsExt;

/// A script next to the kernel, which runs in the folder that is prepared.
fn python(place: &TempDir, script: &str) -> String {
    let path = place.path().join("python3");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Prints a report.
fn report(registers: u32, spills: u32) -> String {
    let finding = if spills > 0 { r#"{"kind": "spilled", "message": "somewhere"}"# } else { "" };
    format!(
        r#"echo '{{"registers": {registers}, "spill_stores": {spills}, "spill_loads": {spills}, "shared_memory": 98304, "barriers_at": 98000, "assembler": "ptxas 13.4.59", "findings": [{finding}], "more": 1}}'"#
    )
}

#[test]
fn what_the_assembler_finds_is_written_down() {
    let place = tempfile::tempdir().unwrap();
    let python = python(
        &place,
        &format!(
            "test \"${{*% --seconds=*}}\" = '-B assemble.py --json --sass kernel.sass' || exit 7\n{}",
            report(168, 0)
        ),
    );
    let output = compile(&place, &[&example("gemm_tma"), "--python", &python]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let said = stdout(&output);
    assert!(said.contains("machine code: 168 registers a thread at entry, no spills, 98,304 bytes"), "{said}");
    assert!(said.contains("\nassembled by ptxas 13.4.59\n"), "{said}");
    let json = kernel_json(&place);
    assert_eq!((&json["barriers_at"], &json["assembly"]["registers"]), (&98000.into(), &168.into()));
    assert_eq!(json["assembly"]["assembler"], "ptxas 13.4.59");
    assert_entries(&place, &["kernel", "python3"]);
}

/// A script whose kernels have this many MMAs of 64×128×16 an iteration at its first run, its second and so on.
fn multiplying(place: &TempDir, counts: &[u32]) -> String {
    let encoded = "/* 0x01e0000898187df0 */ /* 0x000fc200008018ff */";
    let line = |k, count| {
        let commits = if k + 1 == count { ", gsb0" } else { "" };
        format!(r#""HGMMA.64x128x16.F32 R24, R152, gdesc[UR8], R24{commits} ; {encoded}""#)
    };
    let wait = format!(r#""WARPGROUP.DEPBAR.LE gsb0, 0x0 ; {encoded}""#);
    let one = |count: u32| {
        let code: Vec<String> = (0..count).map(|k| line(k, count)).chain([wait.clone()]).collect();
        let head =
            r#""registers": 168, "spill_stores": 0, "spill_loads": 0, "shared_memory": 98304, "barriers_at": 98000"#;
        let group = format!(r#"{{"loops": [{{"mma": {count}, "code": [{}]}}]}}"#, code.join(", "));
        format!(r#"{{{head}, "findings": [], "groups": [{group}]}}"#)
    };
    for (number, count) in (1..).zip(counts) {
        fs::write(place.path().join(format!("report.{number}")), one(*count)).unwrap();
    }
    // Those that are assembled side by side have folders `.0`, `.1` and so on in that of the first.
    let side = "folder=$(basename \"$PWD\"); case $folder in .[0-9]) n=$((${folder#.}+2)); up=../..;;";
    let first = "*) up=..; n=$(cat ../count 2>/dev/null || echo 0); n=$((n+1)); echo $n > ../count;; esac";
    python(place, &format!("{side} {first}\ncp schedule.json $up/schedule.$n\ncat $up/report.$n"))
}

#[test]
fn of_several_candidates_the_one_is_kept_whose_machine_code_takes_fewest_cycles() {
    let place = tempfile::tempdir().unwrap();
    let python = multiplying(&place, &[40, 30, 35]);
    let output = compile(&place, &[&example("gemm_tma"), "--python", &python, "--candidates", "3"]);
    let notes = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{notes}");
    assert!(notes.contains("schedule 2: ") && notes.contains("schedule 3: "), "{notes}");
    let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
    assert_ne!(read("schedule.1"), read("schedule.2"));
    assert_eq!(read("kernel/schedule.json"), read("schedule.2"));
    assert!(!place.path().join("kernel/.0").exists());
    // 64 cycles each, and the ways to the tensor core and back.
    let sass = kernel_json(&place)["simulated"]["sass"][0].as_u64().unwrap();
    assert!((30 * 64..30 * 64 + 100).contains(&sass), "{sass}");
    assert!(stdout(&output).contains(&format!(" simulated, {sass} cycles by SASS estimate\n")), "{}", stdout(&output));
}

/// With I = 512, 11 MMAs of 64 cycles are 1.5 times the interval with their ways, and 13 are 1.7 times.
#[test]
fn others_are_looked_at_unasked_where_the_first_takes_far_longer_than_its_interval() {
    for (counts, kept, others) in [([11, 8, 8, 8], 1, false), ([13, 13, 13, 9], 4, true), ([13, 14, 15, 16], 1, true)] {
        let place = tempfile::tempdir().unwrap();
        let python = multiplying(&place, &counts);
        let output = compile(&place, &[&example("gemm_tma"), "--python", &python]);
        let notes = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{notes}");
        assert_eq!(notes.contains("schedule 4: "), others, "{notes}");
        let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
        assert_eq!(read("kernel/schedule.json"), read(&format!("schedule.{kept}")));
        assert!(!place.path().join("schedule.5").exists());
    }
}

/// The first loop's machine code is what counts: the second runs once, so ptxas leaves none.
#[test]
fn candidates_of_several_loops_are_told_apart_by_those_that_repeat() {
    let place = tempfile::tempdir().unwrap();
    let python = multiplying(&place, &[60, 40, 50]);
    let output = compile(&place, &[&example("attention_forward_causal"), "--python", &python, "--candidates", "3"]);
    let notes = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{notes}");
    assert!(notes.contains("schedule 2: ") && notes.contains("schedule 3: "), "{notes}");
    let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
    assert_ne!(read("schedule.1"), read("schedule.2"));
    assert_eq!(read("kernel/schedule.json"), read("schedule.2"));
    let simulated = &kernel_json(&place)["simulated"];
    let sass = simulated["sass"][0].as_u64().unwrap();
    assert!((40 * 64..40 * 64 + 100).contains(&sass), "{sass}");
    assert_eq!(simulated["sass"][1], simulated["iterations"][1]);
}

#[test]
fn several_loops_that_spill_take_the_schedule_that_is_next_by_simulation() {
    for (second, kept) in [(0, 2), (900, 1)] {
        let place = tempfile::tempdir().unwrap();
        let python = spilling(&place, 600, second);
        let output = compile(&place, &[&example("attention_forward_causal"), "--python", &python, "--attempts=2"]);
        let notes = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{notes}");
        assert!(notes.contains("; attempt 2: the schedule that is next by simulation"), "{notes}");
        // What takes no search is not counted.
        assert_eq!(notes.contains("attempt 3: operands"), second > 0, "{notes}");
        assert!(!notes.contains("attempt 4"), "{notes}");
        let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
        assert_ne!(read("schedule.1"), read("schedule.2"));
        assert_eq!(read("kernel/schedule.json"), read(&format!("schedule.{kept}")));
    }
}

/// Runs of a script in which a kernel takes this many bytes beside its buffers, as long as it has as many buffers as the first.
fn oversized(place: &TempDir, always: bool) -> String {
    let report = |bytes: u32, findings: &str| {
        format!(
            r#"echo '{{"registers": 168, "spill_stores": 0, "spill_loads": 0, "shared_memory": {bytes}, "barriers_at": 98000, "findings": [{findings}]}}'"#
        )
    };
    let large = report(262_144, r#"{"kind": "too_large", "message": "no GPU has that"}"#);
    let script = [
        "n=$(cat ../count 2>/dev/null || echo 0); n=$((n+1)); echo $n > ../count".to_owned(),
        "cp kernel.py ../kernel.$n".to_owned(),
        format!("if [ $n = 1 ] || ({always} && grep -q warp_specialize kernel.py)"),
        format!("then {large}; else {}; fi", report(98_304, "")),
    ];
    python(place, &script.join("\n"))
}

#[test]
fn what_no_gpu_can_hold_gets_smaller_buffers_or_is_executed_in_order() {
    for (always, says) in [(false, "attempt 2 is better"), (true, "the kernel is executed in order instead")] {
        let place = tempfile::tempdir().unwrap();
        let python = oversized(&place, always);
        let output = compile(&place, &[&example("gemm_tma"), "--python", &python]);
        let notes = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{notes}");
        assert!(notes.contains(" bytes of shared memory for buffers\n") && notes.contains(says), "{notes}");
        assert!(!stdout(&output).contains("too_large"), "{}", stdout(&output));
        let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
        assert_ne!(read("kernel.1"), read("kernel/kernel.py"));
        assert_eq!(read("kernel/kernel.py").contains("warp_specialize"), !always);
    }
}

#[test]
fn a_schedule_to_compare_with_has_no_others() {
    for (requested, note) in
        [(&[][..], ""), (&["--candidates", "3"], "note: the schedule to compare with is the only one of its kind\n")]
    {
        let place = tempfile::tempdir().unwrap();
        let python = multiplying(&place, &[60, 10]);
        let output =
            compile(&place, &[&[&*example("gemm_tma"), "--python", &python, "--schedule=no-swp"], requested].concat());
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), note));
        assert!(!place.path().join("schedule.2").exists());
    }
}

#[test]
fn with_one_candidate_the_first_is_kept() {
    let place = tempfile::tempdir().unwrap();
    let python = multiplying(&place, &[40]);
    let output = compile(&place, &[&example("gemm_tma"), "--python", &python, "--candidates", "1"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let sass = kernel_json(&place)["simulated"]["sass"][0].as_u64().unwrap();
    assert!((40 * 64..40 * 64 + 100).contains(&sass), "{sass}");
    let both = compile(&place, &[&example("gemm_tma"), "--candidates", "2", "--top", "2"]);
    assert_eq!(both.status.code(), Some(1), "{}", stderr(&both));
}

/// A script that reports spills of this many bytes at its first run, and at its second.
fn spilling(place: &TempDir, first: u32, second: u32) -> String {
    let script = [
        "n=$(cat ../count 2>/dev/null || echo 0); n=$((n+1)); echo $n > ../count".to_owned(),
        "cp schedule.json ../schedule.$n".to_owned(),
        format!("if [ $n = 1 ]; then {}; else {}; fi", report(168, first), report(168, second)),
    ];
    python(place, &script.join("\n"))
}

#[test]
fn a_schedule_that_spills_is_made_again_with_fewer_registers_and_the_best_is_kept() {
    for (first, second, kept, says) in [(16, 0, 2, "attempt 2 is better"), (4, 8, 1, "attempt 2 is no better")] {
        let place = tempfile::tempdir().unwrap();
        let python = spilling(&place, first, second);
        let output = compile(
            &place,
            &[
                &example("attention_backward"),
                "--python",
                &python,
                "--attempts=2",
                "--persistent=off",
                "--mma-batches=off",
                "--work-limit=300000",
            ],
        );
        let notes = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{notes}");
        assert!(notes.contains("; attempt 2: "), "{notes}");
        assert!(notes.contains(says), "{notes}");
        assert_eq!(kernel_json(&place)["assembly"]["spill_stores"], first.min(second));
        let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
        assert_ne!(read("schedule.1"), read("schedule.2"));
        assert_eq!(read("kernel/schedule.json"), read(&format!("schedule.{kept}")));
    }
    let place = tempfile::tempdir().unwrap();
    let python = spilling(&place, 8, 8);
    let output = compile(
        &place,
        &[
            &example("attention_backward"),
            "--python",
            &python,
            "--attempts=1",
            "--mma-batches=off",
            "--work-limit=300000",
        ],
    );
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert!(stdout(&output).contains("  spilled: somewhere\n"), "{}", stdout(&output));
}

#[test]
fn bursts_are_given_up_for_many_bytes_alone() {
    for (first, kept, says) in [(600, 2, "attempt 2 is better"), (16, 1, "attempt 2 is no better")] {
        let place = tempfile::tempdir().unwrap();
        let python = spilling(&place, first, 0);
        let output = compile(&place, &[&example("attention_backward"), "--python", &python, "--attempts=1"]);
        let notes = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{notes}");
        assert!(notes.contains("attempt 2: the schedule that was found first"), "{notes}");
        assert!(notes.contains(says), "{notes}");
        let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
        assert_eq!(read("kernel/schedule.json"), read(&format!("schedule.{kept}")));
    }
}

#[test]
fn a_kernel_that_does_not_assemble_is_not_written() {
    let place = tempfile::tempdir().unwrap();
    let python = python(&place, "echo 'kernel.py does not compile: odd' >&2; exit 1");
    let output = compile(&place, &[&example("gemm_tma"), "--python", &python]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
    assert!(stderr(&output).contains("kernel.py does not compile: odd"), "{}", stderr(&output));
    assert!(stderr(&output).contains("--no-assemble writes it as it is"), "{}", stderr(&output));
    assert_entries(&place, &["python3"]);
    let output = compile(&place, &[&example("gemm_tma"), "--python", "./absent"]);
    assert_eq!(output.status.code(), Some(1));
    assert_entries(&place, &["python3"]);
}

#[test]
fn without_triton_the_kernel_is_written_as_it_is() {
    let place = tempfile::tempdir().unwrap();
    let missing = "echo \"ModuleNotFoundError: No module named 'triton'\" >&2; exit 1";
    let python = python(&place, missing);
    let by_default = |path: &str| {
        crate::common::command()
            .args(["compile", &example("gemm_tma"), "-o", "kernel"])
            .env("PATH", path)
            .current_dir(place.path())
            .output()
            .unwrap()
    };
    for (path, says) in
        [(place.path().to_str().unwrap(), "python3 has no Triton 3.6"), ("/nowhere", "there is no python3")]
    {
        let output = by_default(path);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).starts_with("note: the kernel is not assembled: "), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
        assert_eq!(kernel_json(&place)["barriers_at"], -1);
    }
    // Requested for, it has to be there.
    let output = compile(&place, &[&example("swiglu"), "--python", &python]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("it has no Triton 3.6"), "{}", stderr(&output));
    assert_eq!(kernel_json(&place)["name"], "gemm_tma");
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    for (script, code) in [
        ("kill -INT $PPID; sleep 0.2; exit 1", 3),
        ("kill -INT $PPID; sleep 0.2; kill -INT $PPID; sleep 0.5; exit 1", 130),
    ] {
        let place = tempfile::tempdir().unwrap();
        let python = python(&place, script);
        let output = compile(&place, &[&example("gemm_tma"), "--python", &python]);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(code), ""), "{script}");
        assert_entries(&place, &["python3"]);
    }
}
