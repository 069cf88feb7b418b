//! Random loops, random schedules: the replay and a literal implementation of docs/model.md agree on
//! which constraints hold.
//!
//! Each case walks from a schedule that holds to its neighbours: one operation issues elsewhere or
//! on another group, the interval changes, or the schedule says something wrong about itself. A
//! neighbour that holds is walked on from, so that the walk stays where both answers are near.

use crate::support::schedule_with;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use twill_check::{Constraint, verify};
use twill_graph::{
    Bytes, ChannelStorage, Columns, ComputePool, ConcurrencyWindow, Cycles, Dependence, Execution, FixedGroup,
    Liveness, LoopGraph, ModelOptions, OpId, Operation, Problem, RegisterFile, Reservation, Reserved, Resources,
    Schedule, StageWindow, Storage, Traffic, Unit, Words,
};
use twill_reference::broken;

/// Random decisions, read one after the other; zeros, the simplest of all, after the last.
struct Tape<'a>(std::slice::Iter<'a, u32>);

impl Tape<'_> {
    fn below(&mut self, bound: i64) -> i64 {
        i64::from(self.0.next().copied().unwrap_or(0)) % bound.max(1)
    }
    fn one_in(&mut self, chances: i64) -> bool {
        self.below(chances) == chances - 1
    }
}

fn machine(tape: &mut Tape) -> Resources {
    let registers_per_thread = 24 + 16 * tape.below(2) as u32;
    let fixed = |warps| FixedGroup { warps, allocated_warps: 4, registers_per_thread };
    Resources {
        name: "random".into(),
        units: ["tensor", "fma"].map(|name| Unit { name: name.into(), capacity: 1 + u32::from(tape.one_in(4)) }).into(),
        shared_memory: Bytes(400 + tape.below(1200) as u64),
        tensor_memory: Columns(100 + tape.below(400) as u64),
        shared_bytes_per_cycle: tape.one_in(2).then(|| Bytes(1 + tape.below(16) as u64)),
        registers: RegisterFile {
            words: 128 * (2 * 24 + 40 * (1 + tape.below(4) as u64)),
            minimum_per_thread: 24,
            maximum_per_thread: 47,
            granularity: 8,
            reserve_per_thread: 39,
        },
        variable_latency_group: (!tape.one_in(3)).then(|| fixed(1)),
        issue_group: tape.one_in(3).then(|| fixed(if tape.one_in(4) { 4 } else { 1 })),
        compute_groups: ComputePool { warps: if tape.one_in(10) { 2 } else { 4 }, maximum: 1 + tape.below(3) as u32 },
    }
}

fn operation(tape: &mut Tape, index: usize) -> Operation {
    let occupancy = tape.below(5);
    let reservations = if occupancy == 0 || tape.one_in(6) {
        Vec::new()
    } else {
        let start = tape.below(occupancy);
        let cycles = 1 + tape.below(occupancy - start);
        let unit = if tape.one_in(3) { "tensor" } else { "fma" };
        vec![Reservation { unit: unit.into(), start: Cycles(start), cycles: Cycles(cycles) }]
    };
    let variable_latency = tape.one_in(4);
    let streaming = variable_latency && tape.one_in(2);
    let storage = match (tape.below(6), streaming) {
        (0, _) => Storage::None,
        (1 | 2, false) => Storage::Registers(Words(tape.below(100) as u64)),
        (3, false) => Storage::Registers(Words(tape.below(600) as u64)),
        (4, false) => Storage::Tensor(Columns(tape.below(200) as u64)),
        _ => Storage::Shared(Bytes(tape.below(300) as u64)),
    };
    Operation {
        name: format!("op {index}"),
        kind: "random".into(),
        source: None,
        reservations,
        occupancy: Cycles(occupancy),
        latency: Cycles(tape.below(7)),
        execution: if tape.one_in(3) { Execution::Asynchronous } else { Execution::Synchronous },
        issue_width: if variable_latency || tape.one_in(4) { 1 } else { 4 },
        storage,
        variable_latency,
        streaming,
        handoff: Cycles(tape.below(4)),
        transfer_latency: Cycles(tape.below(30)),
        sub_tile: None,
        traffic: Traffic {
            shared: Bytes(if tape.one_in(2) { tape.below(60) as u64 } else { 0 }),
            ..Traffic::default()
        },
    }
}

fn graph(tape: &mut Tape) -> LoopGraph {
    let count = 2 + tape.below(5) as usize;
    let operations: Vec<Operation> = (0..count).map(|i| operation(tape, i)).collect();
    let mut dependences = Vec::new();
    let mut seen = BTreeSet::new();
    for _ in 0..tape.below(2 * count as i64 + 1) {
        let (from, to) = (tape.below(count as i64) as usize, tape.below(count as i64) as usize);
        let distance = if from < to && !tape.one_in(4) { 0 } else { 1 + tape.below(2) as u32 };
        let (producer, consumer) = (&operations[from], &operations[to]);
        let carries_value = producer.storage != Storage::None && !consumer.streaming && !tape.one_in(5);
        if seen.insert((from, to, distance)) {
            dependences.push(Dependence {
                from: OpId::new(from),
                to: OpId::new(to),
                delay: Cycles(tape.below(producer.latency.0 + 1)),
                distance,
                blocking: tape.one_in(3),
                carries_value,
                tied: false,
                hold: Cycles(tape.below(6)),
            });
        }
    }
    let reserved = Reserved { shared: Bytes(tape.below(300) as u64), tensor: Columns(tape.below(100) as u64) };
    LoopGraph::new("random", operations, dependences, reserved).unwrap()
}

fn options(tape: &mut Tape) -> ModelOptions {
    ModelOptions {
        exclusive_issue: !tape.one_in(3),
        concurrency_window: if tape.one_in(3) { ConcurrencyWindow::Literal } else { ConcurrencyWindow::Issue },
        consumer_registers: !tape.one_in(3),
        liveness: if tape.one_in(3) { Liveness::Paper } else { Liveness::Folded },
        stage_window: StageWindow::Complete,
        cross_group_registers: !tape.one_in(8),
        ..ModelOptions::default()
    }
}

struct Point {
    interval: i64,
    placements: Vec<(i64, usize)>,
    registers: u32,
}

/// One after the other, each where it belongs if that is anywhere.
fn sequential(problem: &Problem) -> Point {
    let (mut cycle, mut placements) = (0, Vec::new());
    let pool = problem.groups();
    let find = |role| pool.iter().position(|g| g.role == role);
    for op in problem.graph().operations() {
        let compute = find(twill_graph::GroupRole::Compute).unwrap();
        let group = match (op.variable_latency, op.issue_width) {
            (true, _) if problem.resources().variable_latency_group.is_some() => 0,
            (_, 1) => find(twill_graph::GroupRole::Issue).unwrap_or(compute),
            _ => compute,
        };
        placements.push((cycle, group));
        cycle += 12;
    }
    Point { interval: cycle + 12, placements, registers: 48 }
}

fn neighbour(tape: &mut Tape, problem: &Problem, from: &Point) -> Point {
    let mut to = Point { placements: from.placements.clone(), ..*from };
    let which = tape.below(to.placements.len() as i64) as usize;
    match tape.below(9) {
        0 => to.interval = (to.interval - 1 - tape.below(12)).max(1),
        1 => to.interval += 1 + tape.below(2),
        // More copies than are laid out one by one.
        8 if to.placements.iter().all(|p| p.0 < 50 * to.interval) => {
            to.placements[which..].iter_mut().for_each(|p| p.0 += 100 * to.interval);
        }
        2 | 3 => to.placements[which].1 = tape.below(problem.groups().len() as i64) as usize,
        4 => to.placements[which].0 = tape.below(3 * to.interval + 2) - 1,
        _ => to.placements[which].0 = (to.placements[which].0 + tape.below(7) - 3).max(0),
    }
    if tape.one_in(8) {
        to.registers = [24, 40, 44, 48, 56][tape.below(5) as usize];
    }
    to
}

/// Something that the schedule says about itself and that may not be so.
fn mutter(tape: &mut Tape, schedule: &mut Schedule) {
    let (channels, rings, groups) = (schedule.channels.len(), schedule.rings.len(), schedule.groups.len());
    let pick = |tape: &mut Tape, count: usize| tape.below(count as i64) as usize;
    match tape.below(8) {
        0 => schedule.length = Cycles(schedule.length.0 + tape.below(3) - 1),
        1 if channels > 0 => schedule.channels[pick(tape, channels)].depth ^= 1,
        2 if channels > 0 => {
            schedule.channels.remove(pick(tape, channels));
        }
        3 if channels > 0 => schedule.channels[pick(tape, channels)].storage = ChannelStorage::Shared(Bytes(7)),
        4 if rings > 0 => schedule.rings[pick(tape, rings)].depth ^= 1,
        5 if rings > 0 => {
            schedule.rings.remove(pick(tape, rings));
        }
        6 => {
            schedule.groups.remove(pick(tape, groups));
        }
        7 => schedule.groups[pick(tape, groups)].warps ^= 2,
        _ => {}
    }
}

/// The answers given; a walk that only ever sees some of them tests little.
fn walk(choices: &[u32]) -> Result<Vec<BTreeSet<Constraint>>, TestCaseError> {
    let mut tape = Tape(choices.iter());
    let Ok(problem) = Problem::new(graph(&mut tape), machine(&mut tape), options(&mut tape)) else {
        return Ok(Vec::new());
    };
    let mut at = sequential(&problem);
    let mut answers = Vec::new();
    for _ in 0..40 {
        let next = neighbour(&mut tape, &problem, &at);
        let mut schedule = schedule_with(&problem, next.interval, &next.placements, next.registers);
        let muttered = tape.one_in(8);
        if muttered {
            mutter(&mut tape, &mut schedule);
        }
        let expected = broken(&problem, &schedule);
        let found: BTreeSet<_> = match verify(&problem, schedule.clone()) {
            Ok(_) => BTreeSet::new(),
            Err(rejected) => rejected.violations.iter().map(|v| v.constraint()).collect(),
        };
        prop_assert_eq!(&found, &expected, "{:#?}\n{:#?}", schedule, problem);
        if expected.is_empty() && !muttered {
            at = next;
        }
        answers.push(expected);
    }
    Ok(answers)
}

proptest! {
    #[test]
    fn the_replay_agrees_with_the_literal_reading(choices in proptest::collection::vec(any::<u32>(), 500)) {
        walk(&choices)?;
    }
}

#[test]
fn walks_see_schedules_that_hold_and_every_constraint_broken() {
    let (mut hold, mut seen) = (0, BTreeMap::new());
    let mut state = 1u64;
    for _ in 0..300 {
        let choices = (0..500).map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as u32
        });
        let answers = walk(&choices.collect::<Vec<_>>()).unwrap();
        hold += answers.iter().filter(|broken| broken.is_empty()).count();
        // Broken alone: the other constraints hold.
        for constraint in answers.iter().filter(|broken| broken.len() == 1).flatten() {
            *seen.entry(*constraint).or_insert(0) += 1;
        }
    }
    assert!(hold > 1000, "{hold}");
    assert!(seen.len() == 13 && seen.values().all(|times| *times >= 10), "{seen:?}");
}
