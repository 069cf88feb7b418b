//! A schedule of another solver: attention forward on Hopper by the CP-SAT prototype.

use crate::support::{accepted, hopper, rejected, schedule_with};
use serde::Deserialize;
use std::collections::BTreeSet;
use twill_check::Constraint::Registers;
use twill_check::verify;
use twill_graph::{ConcurrencyWindow, Liveness, ModelOptions, Problem, builtin};
use twill_reference::broken;

#[derive(Deserialize)]
struct Reference {
    clocks: i64,
    interval: i64,
    operations: Vec<Placed>,
}

#[derive(Deserialize)]
struct Placed {
    name: String,
    cycle: i64,
    group: usize,
}

/// The times and groups found, in clocks.
fn reference() -> (Problem, i64, Vec<(i64, usize)>) {
    let graph = builtin::find("attention-forward-hopper").unwrap().graph;
    let problem = Problem::new(graph, hopper(), ModelOptions::default()).unwrap();
    let found: Reference = serde_json::from_str(include_str!("fixtures/attention-forward-hopper.json")).unwrap();
    let find = |name: &str| found.operations.iter().find(|p| p.name == name).unwrap();
    let operations = problem.graph().operations().iter();
    let placements = operations.map(|op| (find(&op.name).cycle * found.clocks, find(&op.name).group)).collect();
    (problem, found.interval * found.clocks, placements)
}

#[test]
fn it_holds_under_every_reading() {
    let (problem, interval, placements) = reference();
    let schedule = schedule_with(&problem, interval, &placements, 240);
    assert_eq!((schedule.interval.0, schedule.length.0, schedule.stages()), (2048, 3072, 2));
    // Two slots for each load, and each is read by both compute groups.
    assert_eq!(schedule.rings.iter().map(|r| r.depth).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(schedule.channels.len(), 4);
    let concurrency_window = ConcurrencyWindow::Literal;
    for options in [
        ModelOptions::default(),
        ModelOptions::paper(),
        ModelOptions { liveness: Liveness::Paper, ..ModelOptions::default() },
        ModelOptions { cross_group_registers: false, ..ModelOptions::default() },
        ModelOptions { concurrency_window, ..ModelOptions::default() },
    ] {
        accepted(&problem.with_options(options), schedule.clone());
    }
}

#[test]
fn it_needs_as_many_registers_as_its_tiles() {
    let (problem, interval, placements) = reference();
    let with = |registers| schedule_with(&problem, interval, &placements, registers);
    // 17152 / 128 = 134 tile words a thread and 32 for the rest: 166, allocated in eights.
    accepted(&problem, with(168));
    let messages = [
        "group 1 has registers for 16,384 tile words; at cycle 3584 (slot 1536) it needs 17,152: `S0` 8192, `O0` 8192, `max0` 512 in 2 copies, `sum0` 256",
        "group 2 has registers for 16,384 tile words; at cycle 2560 (slot 512) it needs 17,152: `S1` 8192, `O1` 8192, `max1` 512 in 2 copies, `sum1` 256",
    ];
    rejected(&problem, with(160), Registers, &messages);
}

#[test]
fn its_neighbours_are_judged_as_the_model_says() {
    let (problem, interval, placements) = reference();
    let (mut hold, mut broke) = (0, 0);
    for v in 0..placements.len() {
        let moves = [-512, -64, -16, -1, 1, 16, 64, 512, 2048].map(|by| (by, placements[v].1));
        for (by, group) in moves.into_iter().chain((0..4).map(|group| (0, group))) {
            let mut placements = placements.clone();
            placements[v] = (placements[v].0 + by, group);
            let schedule = schedule_with(&problem, interval, &placements, 168);
            let expected = broken(&problem, &schedule);
            let found: BTreeSet<_> = match verify(&problem, schedule) {
                Ok(_) => BTreeSet::new(),
                Err(rejected) => rejected.violations.iter().map(|v| v.constraint()).collect(),
            };
            assert_eq!(found, expected, "{} by {by} to group {group}", problem.graph().operations()[v].name);
            *(if expected.is_empty() { &mut hold } else { &mut broke }) += 1;
        }
    }
    assert_eq!((hold, broke), (30, 230));
}
