//! Freedom that the objective leaves: operations are moved one at a time to shorten the lives of
//! values, then to issue as late as their readers allow (streaming loads as early as they may),
//! until no single move helps.
//!
//! Groups, length and every level of the objective stay as they are. Nothing is claimed about the
//! result but that it is a schedule; it makes timelines readable and the waits late.

use crate::constraints::{registers, resource, shared_memory, tensor_memory};
use crate::encoding::{Candidate, Encoding};
use crate::objective;
use twill_graph::{Cycles, Dependence, ObjectiveLevel, OpId, Storage};

/// Passes over all operations; each move lowers the cost, so this only bounds the effort.
const PASSES: usize = 20;

/// Moves single operations while that lowers the cost.
pub(crate) fn compact(e: &Encoding, candidate: Candidate) -> Candidate {
    compact_where(e, candidate, |_| true)
}

/// The same, to schedules that are `allowed` only.
pub(crate) fn compact_where(e: &Encoding, candidate: Candidate, allowed: impl Fn(&Candidate) -> bool) -> Candidate {
    let limits = Limits {
        registers: objective::measure(e, &candidate, ObjectiveLevel::RegistersPerThread),
        shared: shared_memory::peak(e, &candidate),
        length: candidate.length,
    };
    let mut best = candidate;
    for _ in 0..PASSES {
        let mut moved = false;
        for op in e.problem.graph().op_ids() {
            if let Some(better) = improve(e, &best, op, &limits, &allowed) {
                best = better;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    best
}

/// The quantities that must not grow.
struct Limits {
    registers: i64,
    shared: u64,
    length: i64,
}

/// The best cheaper place for one operation.
fn improve(
    e: &Encoding,
    candidate: &Candidate,
    op: OpId,
    limits: &Limits,
    allowed: &impl Fn(&Candidate) -> bool,
) -> Option<Candidate> {
    let now = cost(e, &candidate.times, op);
    let mut times = candidate.times.clone();
    let mut cheaper: Vec<((i128, i64), i64)> = Vec::new();
    for time in places(e, candidate, op, limits.length) {
        times[op.index()] = time;
        let cost = cost(e, &times, op);
        if cost < now {
            cheaper.push((cost, time));
        }
    }
    cheaper.sort_unstable();
    cheaper.dedup();
    cheaper.into_iter().find_map(|(_, time)| {
        let mut moved = candidate.clone();
        moved.times[op.index()] = time;
        moved.length = length(e, &moved.times);
        let holds = moved.length <= limits.length && offsets_hold(e, &moved, op) && storage_holds(e, &moved, limits);
        (holds && allowed(&moved)).then_some(moved)
    })
}

fn length(e: &Encoding, times: &[i64]) -> i64 {
    let graph = e.problem.graph();
    graph.op_ids().map(|v| times[v.index()] + graph.operation(v).span().0).max().unwrap_or(0)
}

/// Words times life of the values that an operation makes and reads, then how far its issue cycle is
/// from where it would rather be.
fn cost(e: &Encoding, times: &[i64], op: OpId) -> (i128, i64) {
    let graph = e.problem.graph();
    let mut values: Vec<OpId> = graph.dependences().iter().filter(|d| d.to == op).map(|d| d.from).collect();
    values.push(op);
    values.sort_unstable();
    values.dedup();
    let life = |v: OpId| -> i128 {
        let weight = match graph.operation(v).storage {
            Storage::Registers(words) => words.0,
            Storage::Shared(bytes) if !graph.operation(v).streaming => bytes.0 / 4,
            Storage::Tensor(columns) => columns.0,
            Storage::Shared(_) | Storage::None => 0,
        };
        let end = graph.uses(v).map(|d| times[d.to.index()] + i64::from(d.distance) * e.question.interval + d.hold.0);
        let life = end.max().map_or(0, |end| (end - times[v.index()]).max(0));
        i128::from(weight) * i128::from(life)
    };
    let time = times[op.index()];
    let preference = if graph.operation(op).streaming { time } else { -time };
    (values.into_iter().map(life).sum(), preference)
}

/// Places worth trying within what the dependences leave: both ends, and next to every operation that
/// it must keep away from.
fn places(e: &Encoding, candidate: &Candidate, op: OpId, length: i64) -> Vec<i64> {
    let graph = e.problem.graph();
    let interval = e.question.interval;
    let time = |v: OpId| candidate.times[v.index()];
    let (mut low, mut high) = (0, length - graph.operation(op).span().0);
    for d in graph.dependences().iter().filter(|d| d.from != d.to) {
        let gap = gap(e, candidate, d);
        if d.to == op {
            low = low.max(time(d.from) + gap);
        } else if d.from == op {
            high = high.min(time(d.to) - gap);
        }
    }
    let mut places = vec![low, high];
    for f in &e.forbidden {
        let edges = if f.to == op {
            [time(f.from) + f.end, time(f.from) + f.first - 1]
        } else if f.from == op {
            [time(f.to) - f.end, time(f.to) - f.first + 1]
        } else {
            continue;
        };
        for edge in edges {
            let first = low + (edge - low).rem_euclid(interval);
            let mut place = first;
            while place <= high && place < first + 4 * interval {
                places.push(place);
                place += interval;
            }
        }
    }
    places.retain(|p| (low..=high).contains(p));
    places.sort_unstable();
    places.dedup();
    places
}

/// Cycles from issue to issue that a dependence asks for, handoff and distance included.
fn gap(e: &Encoding, candidate: &Candidate, d: &Dependence) -> i64 {
    let graph = e.problem.graph();
    let in_registers = d.carries_value && matches!(graph.operation(d.from).storage, Storage::Registers(_));
    let apart = e.question.joint() && candidate.groups[d.from.index()] != candidate.groups[d.to.index()];
    let handoff = if in_registers && apart { graph.operation(d.from).handoff } else { Cycles::ZERO };
    (d.delay + handoff).0 - i64::from(d.distance) * e.question.interval
}

/// Returns whether everything that keeps an operation away from others at some offset still holds.
fn offsets_hold(e: &Encoding, candidate: &Candidate, op: OpId) -> bool {
    let time = |v: OpId| candidate.times[v.index()];
    e.forbidden.iter().filter(|f| f.from == op || f.to == op).all(|f| {
        let offset = (time(f.to) - time(f.from) - f.first).rem_euclid(e.question.interval);
        offset >= f.end - f.first || !f.conditions.iter().all(|&c| candidate.holds(c))
    })
}

fn storage_holds(e: &Encoding, candidate: &Candidate, limits: &Limits) -> bool {
    objective::measure(e, candidate, ObjectiveLevel::RegistersPerThread) <= limits.registers
        && registers::fit(e, candidate)
        && resource::fit(e, candidate)
        && shared_memory::peak(e, candidate) <= limits.shared
        && tensor_memory::peak(e, candidate) <= e.problem.resources().tensor_memory.0
}
