//! Buffers that a GPU might have written, of a loop of three operations.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use super::*;
use twill_graph::format::GraphFile;
use twill_graph::{Cycles, GroupId, Placement};

const TIMESTAMPS: usize = 6;
const ITERATIONS: usize = 8;

/// I = 200, two stages: a load on group 0 at cycle 0, an MMA at 50 and what follows it at 250 on group 1.
fn schedule() -> (Problem, Schedule) {
    let graph = r#"{
      "format": "twill-graph", "version": 1, "name": "loop",
      "operations": [
        { "name": "load", "units": [{ "unit": "tma", "cycles": 100 }], "execution": "asynchronous", "issue_width": 1,
          "result": { "shared_memory": 1024 }, "variable_latency": true, "streaming": true, "transfer_latency": 700 },
        { "name": "dot", "units": [{ "unit": "tensor", "cycles": 128 }], "execution": "asynchronous", "latency": 150,
          "result": { "registers": 4096 } },
        { "name": "scale", "units": [{ "unit": "fma", "cycles": 64 }], "result": { "registers": 4096 } }
      ],
      "dependences": [ { "from": "load", "to": "dot" }, { "from": "dot", "to": "scale" } ]
    }"#;
    let graph = GraphFile::from_json(graph, "loop.json").unwrap().graph().unwrap();
    let resources = twill_machine::Machine::builtin("h200").unwrap().resources().clone();
    let problem = Problem::new(graph, resources, twill_graph::ModelOptions::default()).unwrap();
    let at = |cycle, group| Placement { cycle: Cycles(cycle), group: GroupId::new(group) };
    let schedule = Schedule {
        interval: Cycles(200),
        length: Cycles(314),
        placements: vec![at(0, 0), at(50, 1), at(250, 1)],
        groups: Vec::new(),
        channels: Vec::new(),
        rings: Vec::new(),
    };
    (problem, schedule)
}

fn kernel() -> TracedKernel {
    let mark = |id: usize, operation: &str, what: &str| {
        format!(r#"{{ "id": {id}, "loop": 0, "operation": "{operation}", "group": 1, "what": "{what}" }}"#)
    };
    let timestamps = [
        mark(0, "load", "completed"),
        mark(1, "dot", "issue"),
        mark(2, "dot", "completed"),
        mark(3, "scale", "issue"),
        mark(4, "scale", "end"),
        mark(5, "load", "issue"),
    ];
    let text = format!(
        r#"{{ "format": "twill-kernel", "version": 1, "name": "loop",
             "trace": {{ "iterations": {ITERATIONS}, "detail": "segments", "timestamps": [{}] }} }}"#,
        timestamps.join(", ")
    );
    TracedKernel::from_json(&text, "kernel.json").unwrap()
}

fn run() -> TracedRun {
    TracedRun {
        file: "trace.bin".into(),
        gpu: "a GPU".into(),
        date: "2026-01-31".into(),
        revision: Some("a1b2c3".into()),
    }
}

/// A launch of this many iterations of 210 cycles, which begins at this time; the first two are slow. The last are recorded.
fn launch(begin: u64, trips: usize) -> Vec<u64> {
    let mut stamps = vec![0; TIMESTAMPS * ITERATIONS];
    for iteration in trips.saturating_sub(ITERATIONS)..trips {
        let late = if iteration < 2 { 5000 * iteration as u64 } else { 9000 };
        let issue = begin.wrapping_add(late + 210 * iteration as u64);
        let after = |cycles: u64| issue.wrapping_add(cycles);
        // The end of every third MMA is seen late.
        let completed = if iteration % 3 == 0 { 190 } else { 160 };
        let row = &mut stamps[iteration % ITERATIONS * TIMESTAMPS..][..TIMESTAMPS];
        row.copy_from_slice(&[
            issue.wrapping_sub(10),
            issue,
            after(completed),
            after(205),
            after(285),
            issue.wrapping_sub(900),
        ]);
    }
    stamps
}

/// What is made of a buffer.
fn traced(kernel: &TracedKernel, buffer: &[u8]) -> Result<TraceFile, TraceError> {
    let (problem, schedule) = schedule();
    compared(kernel, &[(&problem, &schedule)], buffer, run())
}

fn bytes(stamps: &[u64]) -> Vec<u8> {
    stamps.iter().flat_map(|stamp| stamp.to_le_bytes()).collect()
}

#[test]
fn medians_are_of_the_steady_state_and_aligned_with_the_first_operation() {
    let trace = traced(&kernel(), &bytes(&launch(1_000_000, 100))).unwrap();
    let [one] = trace.loops.as_slice() else { panic!("{trace:?}") };
    assert_eq!(one.initiation_interval, Compared { predicted: 200.0, measured: 210.0 });
    let measured: Vec<(&str, f64, f64)> =
        one.operations.iter().map(|o| (o.operation.as_str(), o.measured.start, o.measured.end)).collect();
    assert_eq!(measured, [("load", 50.0 - 900.0, 40.0), ("dot", 50.0, 210.0), ("scale", 255.0, 335.0)]);
    let predicted: Vec<(f64, f64)> = one.operations.iter().map(|o| (o.predicted.start, o.predicted.end)).collect();
    assert_eq!(predicted, [(0.0, 700.0), (50.0, 200.0), (250.0, 314.0)]);
    assert_eq!(trace.revision.as_deref(), Some("a1b2c3"));
    assert_eq!((trace.name.as_str(), trace.gpu.as_str(), trace.date.as_str()), ("loop", "a GPU", "2026-01-31"));
}

#[test]
fn events_are_of_steady_iterations_counted_from_the_first_of_them() {
    let trace = traced(&kernel(), &bytes(&launch(1_000_000, 100))).unwrap();
    let dots: Vec<(u32, f64, f64)> =
        trace.loops[0].events.iter().filter(|e| e.operation == "dot").map(|e| (e.iteration, e.start, e.end)).collect();
    assert_eq!(dots, [(0, 50.0, 210.0), (1, 260.0, 420.0), (2, 470.0, 660.0), (3, 680.0, 840.0)]);
}

#[test]
fn several_launches_count_together_and_a_clock_that_begins_anew_does_no_harm() {
    let mut stamps = launch(u64::MAX - 9600 - 210 * 92, 100);
    stamps.extend(launch(77, 100));
    let trace = traced(&kernel(), &bytes(&stamps)).unwrap();
    assert_eq!(trace.loops[0].initiation_interval.measured, 210.0);
    assert_eq!(trace.loops[0].operations[1].measured, Span { start: 50.0, end: 210.0 });
}

#[test]
fn iterations_of_the_epilogue_do_not_count() {
    let mut stamps = launch(1_000_000, 6);
    // The last iteration is in no hurry.
    stamps[5 * TIMESTAMPS + 4] += 100_000;
    let trace = traced(&kernel(), &bytes(&stamps)).unwrap();
    assert_eq!(trace.loops[0].events.iter().map(|e| e.iteration).max(), Some(2));
    assert!(trace.loops[0].events.iter().all(|e| e.end < 10_000.0));
}

#[test]
fn what_nobody_waits_for_ends_where_it_starts() {
    let mut stamps = launch(1_000_000, 100);
    stamps.iter_mut().skip(2).step_by(TIMESTAMPS).for_each(|stamp| *stamp = 0);
    let trace = traced(&kernel(), &bytes(&stamps)).unwrap();
    assert_eq!(trace.loops[0].operations[1].measured, Span { start: 50.0, end: 50.0 });
}

#[test]
fn what_says_nothing_is_an_error_that_says_why() {
    let kernel = kernel();
    let told = |buffer: &[u8]| traced(&kernel, buffer).unwrap_err().to_string();
    let each = 8 * TIMESTAMPS * ITERATIONS;
    assert!(
        told(&[]).starts_with(&format!("trace.bin: it has 0 bytes, and each launch of this kernel records {each}"))
    );
    assert!(told(&vec![1; each + 8]).contains(&format!("it has {} bytes", each + 8)));
    let nothing = told(&vec![0; each]);
    assert!(nothing.contains("the kernel did not run") && nothing.contains("fewer than 5 iterations"), "{nothing}");
    // One iteration in the steady state has none after it.
    assert_eq!(told(&bytes(&launch(1, 4))), nothing);
    assert!(traced(&kernel, &bytes(&launch(1, 5))).is_ok());
}

#[test]
fn kernels_that_record_nothing_or_something_else_are_refused() {
    let told = |text: &str| TracedKernel::from_json(text, "k/kernel.json").unwrap_err().to_string();
    let untraced = told(r#"{ "format": "twill-kernel", "version": 1, "name": "loop" }"#);
    assert_eq!(untraced, "k/kernel.json: the kernel records nothing; compile it with --emit cuda --trace");
    assert!(told(r#"{ "format": "twill-graph", "version": 1, "name": "loop" }"#).contains("no twill-kernel"));
    assert!(told("[").starts_with("k/kernel.json: "));
    let mut other = kernel();
    other.timestamps[0] = serde_json::from_str(r#"{ "id": 0, "loop": 0, "operation": "exp", "what": "end" }"#).unwrap();
    let unknown = traced(&other, &bytes(&launch(1, 100))).unwrap_err().to_string();
    assert!(
        unknown.contains("it timestamps `exp`, which loop 0 of the schedule next to it does not have"),
        "{unknown}"
    );
}
