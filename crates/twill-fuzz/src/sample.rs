//! Random problems small enough for every schedule of theirs to be tried, but with everything that a problem may have.

use crate::tape::Tape;
use std::collections::BTreeSet;
use twill_graph::{
    Bytes, Columns, ComputePool, ConcurrencyWindow, Cycles, Dependence, Execution, FixedGroup, Liveness, LoopGraph,
    ModelOptions, OpId, Operation, Problem, RegisterFile, Reservation, Reserved, Resources, Storage, Traffic, Unit,
    WarpAssignment, Words,
};

/// Units of the random machines.
const UNITS: [&str; 2] = ["tensor", "fma"];

/// A problem, where the decisions make one: a graph may not fit its machine, or depend on itself.
pub(crate) fn problem(tape: &mut Tape) -> Option<Problem> {
    let shape = Shape::new(tape);
    let machine = machine(tape, shape);
    let graph = graph(tape, shape)?;
    Problem::new(graph, machine, options(tape)).ok()
}

/// The tight resource of a problem: with everything tight at once, nothing would ever fit.
#[derive(Clone, Copy)]
struct Shape {
    count: usize,
    /// Warps of a compute group.
    warps: u32,
    loads: bool,
    issue: bool,
    /// True if reservations may begin later than their operation.
    later: bool,
    tight_registers: bool,
    tight_memory: bool,
}

impl Shape {
    fn new(tape: &mut Tape) -> Shape {
        Shape {
            count: [3, 4, 2, 3, 4, 3, 4, 5][tape.index(8)],
            warps: if tape.one_in(3) { 1 } else { 4 },
            loads: tape.one_in(2),
            issue: tape.one_in(4),
            later: tape.one_in(4),
            tight_registers: tape.one_in(2),
            tight_memory: tape.one_in(2),
        }
    }
}

fn machine(tape: &mut Tape, shape: Shape) -> Resources {
    let fixed = |tape: &mut Tape, warps| FixedGroup {
        warps,
        allocated_warps: 4,
        registers_per_thread: if tape.one_in(6) { 40 } else { 24 },
    };
    let reserve_per_thread = if tape.one_in(4) { 39 } else { 32 };
    // With the most compute groups, one more granule than the reserve holds what one value needs.
    let granules = 1 + tape.below(if shape.tight_registers { 3 } else { 5 }) as u32;
    let maximum_per_thread = 40 + 8 * granules - u32::from(tape.one_in(3));
    let maximum = 1 + tape.below(3) as u32;
    let groups = if shape.tight_registers { 1 + tape.below(3) } else { 3 };
    let threads = 32 * u64::from(shape.warps);
    Resources {
        name: "random".into(),
        units: UNITS.map(|name| Unit { name: name.into(), capacity: 1 + u32::from(tape.one_in(5)) }).into(),
        shared_memory: Bytes(if shape.tight_memory { 256 + 32 * tape.below(38) + tape.below(2) } else { 1 << 14 }),
        tensor_memory: Columns(if shape.tight_memory { 2 + tape.below(5) } else { 64 }),
        shared_bytes_per_cycle: tape.one_in(4).then(|| Bytes(8 + tape.below(24))),
        registers: RegisterFile {
            words: 2 * 128 * 40 + groups * threads * u64::from(maximum_per_thread.next_multiple_of(8)),
            minimum_per_thread: if tape.one_in(3) { 40 } else { 24 },
            maximum_per_thread,
            granularity: 8,
            reserve_per_thread,
        },
        variable_latency_group: shape.loads.then(|| fixed(tape, 1)),
        issue_group: shape.issue.then(|| fixed(tape, 1)),
        compute_groups: ComputePool { warps: shape.warps, maximum },
    }
}

fn operation(tape: &mut Tape, index: usize, shape: Shape) -> Operation {
    let variable_latency = if shape.loads { tape.one_in(3) } else { tape.one_in(12) };
    let streaming = variable_latency && !tape.one_in(3);
    let asynchronous = if variable_latency { !tape.one_in(5) } else { tape.one_in(3) };
    let mut reservations = Vec::new();
    let mut end = 0;
    for _ in 0..[1, 1, 1, 2, 0][tape.index(5)] {
        let start = if shape.later && tape.one_in(2) { end + tape.between(0, 2) } else { 0 };
        let cycles = [1, 1, 2, 3][tape.index(4)];
        let unit = UNITS[tape.index(UNITS.len())];
        reservations.push(Reservation { unit: unit.into(), start: Cycles(start), cycles: Cycles(cycles) });
        end = end.max(start + cycles);
    }
    let occupancy = if tape.one_in(4) { end + tape.between(0, 2) } else { end };
    let latency = if tape.one_in(2) { tape.between(0, 5) } else { occupancy };
    let words = 32 * u64::from(shape.warps) * [1, 2, 4, 8][tape.index(4)];
    let storage = match (tape.below(8), streaming) {
        (0, _) => Storage::None,
        (6, false) => Storage::Tensor(Columns(1 + tape.below(3))),
        (7, _) | (_, true) => Storage::Shared(Bytes([64, 128, 192, 64, 128, 0][tape.index(6)])),
        _ => Storage::Registers(Words(words - if tape.one_in(8) { 8 } else { 0 })),
    };
    let narrow = variable_latency || shape.warps == 1 || (asynchronous && shape.issue) || tape.one_in(8);
    // The registers of a single warp that loads or issues rarely hold a tile.
    let elsewhere = (variable_latency && shape.loads) || (narrow && shape.issue);
    let storage = match storage {
        Storage::Registers(_) if elsewhere && !tape.one_in(4) => Storage::Shared(Bytes(64)),
        storage => storage,
    };
    Operation {
        name: format!("op {index}"),
        kind: "random".into(),
        source: None,
        reservations,
        occupancy: Cycles(occupancy),
        latency: Cycles(latency),
        execution: if asynchronous { Execution::Asynchronous } else { Execution::Synchronous },
        issue_width: if narrow { 1 } else { 4 },
        storage,
        variable_latency,
        streaming,
        handoff: Cycles(if tape.one_in(3) { tape.between(1, 3) } else { 0 }),
        transfer_latency: Cycles(if streaming { tape.between(0, 6) } else { 0 }),
        sub_tile: tape.one_in(3).then(|| tape.below(3) as u32),
        traffic: Traffic { shared: Bytes(if tape.one_in(3) { tape.below(64) } else { 0 }), ..Traffic::default() },
    }
}

fn graph(tape: &mut Tape, shape: Shape) -> Option<LoopGraph> {
    let operations: Vec<Operation> = (0..shape.count).map(|index| operation(tape, index, shape)).collect();
    let mut dependences = Vec::new();
    let mut seen = BTreeSet::new();
    for _ in 0..shape.count + tape.index(3) {
        let (a, b) = (tape.index(shape.count), tape.index(shape.count));
        let back = a == b || tape.one_in(4);
        let (from, to) = if back { (a.max(b), a.min(b)) } else { (a.min(b), a.max(b)) };
        let distance = if back { 1 + u32::from(tape.one_in(4)) } else { u32::from(tape.one_in(6)) };
        let (producer, consumer) = (&operations[from], &operations[to]);
        let carries_value = producer.storage != Storage::None && !consumer.streaming && !tape.one_in(5);
        let delay = if tape.one_in(3) { tape.between(0, producer.latency.0) } else { producer.latency.0 };
        let in_place = consumer.execution == Execution::Synchronous && !tape.one_in(4);
        let hold = if in_place { 0 } else { consumer.completion().0 };
        if seen.insert((from, to, distance)) {
            dependences.push(Dependence {
                from: OpId::new(from),
                to: OpId::new(to),
                delay: Cycles(if producer.streaming { 0 } else { delay }),
                distance,
                blocking: producer.streaming || (producer.execution == Execution::Asynchronous && !tape.one_in(3)),
                carries_value,
                tied: carries_value && tape.one_in(6),
                hold: Cycles(hold),
            });
        }
    }
    let reserved = Reserved { shared: Bytes(tape.below(2) * 32), tensor: Columns(tape.below(2)) };
    LoopGraph::new("random", operations, dependences, reserved).ok()
}

/// The same problem with the liveness of the paper, which is for comparison only.
pub(crate) fn with_the_papers_liveness(problem: &Problem) -> Option<Problem> {
    let options = ModelOptions { liveness: Liveness::Paper, ..*problem.options() };
    Problem::new(problem.graph().clone(), problem.resources().clone(), options).ok()
}

/// The model variants that brute force knows, but for the liveness.
fn options(tape: &mut Tape) -> ModelOptions {
    ModelOptions {
        exclusive_issue: !tape.one_in(6),
        concurrency_window: if tape.one_in(6) { ConcurrencyWindow::Literal } else { ConcurrencyWindow::Issue },
        consumer_registers: !tape.one_in(6),
        cross_group_registers: !tape.one_in(8),
        warp_assignment: if tape.one_in(6) { WarpAssignment::BySubTile } else { WarpAssignment::Free },
        ..ModelOptions::default()
    }
}
