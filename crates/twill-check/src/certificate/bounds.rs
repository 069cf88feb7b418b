//! Bounds that need no search, from their witnesses; and the two theorems of docs/model.md that carry a
//! rejection from one interval to others.

use super::CertificateError;
use twill_graph::proof::BoundWitness;
use twill_graph::saturate;
use twill_graph::{ConcurrencyWindow, Cycles, GroupRole, OpId, Problem, WarpAssignment};

/// Returns whether the witness proves that every interval below `bound` is impossible.
pub(super) fn check(problem: &Problem, bound: Cycles, witness: &BoundWitness) -> Result<(), CertificateError> {
    let wrong = |why: String| Err(CertificateError::Bound { bound, why });
    let graph = problem.graph();
    let proves = match witness {
        BoundWitness::Trivial => 1,
        BoundWitness::Resource(unit) => {
            let Some(declared) = problem.resources().units.get(unit.index()) else {
                return wrong("it names a unit that does not exist".into());
            };
            let held = |v: OpId| -> i128 {
                let reservations = graph.operation(v).reservations.iter().zip(problem.units_of(v));
                reservations.filter(|(_, u)| *u == unit).map(|(r, _)| i128::from(r.cycles.0)).sum()
            };
            ceiling(graph.op_ids().map(held).sum(), i128::from(declared.capacity))
        }
        BoundWitness::SharedBandwidth => {
            let Some(rate) = problem.resources().shared_bytes_per_cycle else {
                return wrong("the machine does not limit what shared memory moves".into());
            };
            ceiling(shared_bytes(problem), i128::from(rate.0))
        }
        BoundWitness::Recurrence(cycle) => {
            let known: Option<Vec<_>> = cycle.iter().map(|id| graph.dependences().get(id.index())).collect();
            let Some(known) = known.filter(|k| !k.is_empty()) else {
                return wrong("it names a dependence that does not exist".into());
            };
            let closed = known.iter().zip(known.iter().cycle().skip(1)).all(|(d, next)| d.to == next.from);
            if !closed {
                return wrong("its dependences form no cycle".into());
            }
            let delay = known.iter().map(|d| i128::from(d.delay.0)).sum();
            // A cycle within one iteration has no distance, and is refused with the graph.
            ceiling(delay, known.iter().map(|d| i128::from(d.distance)).sum::<i128>().max(1))
        }
        BoundWitness::GroupWork | BoundWitness::Operation(_) if !problem.options().exclusive_issue => {
            return wrong("synchronous operations may overlap".into());
        }
        BoundWitness::GroupWork => {
            let fixed = problem.resources();
            let on_compute = |v: &OpId| {
                let op = graph.operation(*v);
                let taken = (op.variable_latency && fixed.variable_latency_group.is_some())
                    || (op.issue_width == 1 && fixed.issue_group.is_some());
                !taken
            };
            let groups = problem.groups().iter().filter(|g| g.role == GroupRole::Compute).count().max(1);
            // An operation that waits and runs by itself is issued while no synchronous operation runs, and nothing
            // else that waits is issued.
            let busy = |v: OpId| {
                let op = graph.operation(v);
                let waits = || graph.dependences().iter().any(|d| d.blocking && d.to == v && d.from != v);
                match (op.is_synchronous(), problem.options().concurrency_window) {
                    (true, _) => i128::from(op.occupancy.0),
                    (false, ConcurrencyWindow::Literal) if op.occupancy.0 == 0 => 0,
                    (false, _) => i128::from(waits()),
                }
            };
            match problem.options().warp_assignment {
                WarpAssignment::Free => ceiling(graph.op_ids().filter(on_compute).map(busy).sum(), groups as i128),
                // The group of the `turn`-th sub-tiles has their work alone.
                WarpAssignment::BySubTile => {
                    let turn_of = |v: &OpId| graph.operation(*v).sub_tile.unwrap_or(0) as usize % groups;
                    let on =
                        |turn| graph.op_ids().filter(on_compute).filter(move |v| turn_of(v) == turn).map(busy).sum();
                    (0..groups).map(on).max().unwrap_or(0)
                }
            }
        }
        BoundWitness::Operation(v) => match graph.operations().get(v.index()) {
            Some(op) if op.is_synchronous() => i128::from(op.occupancy.0),
            _ => return wrong("it names no synchronous operation".into()),
        },
    };
    if proves >= i128::from(bound.0) { Ok(()) } else { wrong(format!("it proves {proves}")) }
}

/// Bytes that one iteration moves through shared memory.
fn shared_bytes(problem: &Problem) -> i128 {
    problem.graph().operations().iter().map(|op| i128::from(op.traffic.shared.0)).sum()
}

fn ceiling(sum: i128, by: i128) -> i128 {
    if by == 0 { i128::MAX } else { (sum + by - 1).div_euclid(by) }
}

/// Returns whether an operation overlaps its own next iteration: on a unit, or in its group's issue slots.
pub(super) fn is_out_of_reach(problem: &Problem, v: OpId, interval: i64) -> bool {
    let Some(op) = problem.graph().operations().get(v.index()) else { return false };
    if problem.options().exclusive_issue && op.is_synchronous() && op.occupancy.0 > interval {
        return true;
    }
    problem.resources().units.iter().enumerate().any(|(index, unit)| {
        let held: Vec<(i64, i64)> = op
            .reservations
            .iter()
            .zip(problem.units_of(v))
            .filter(|(_, u)| u.index() == index)
            .map(|(r, _)| (r.start.0, r.cycles.0))
            .collect();
        // Copies that hold the unit in the slot in which a reservation starts, where the load can rise.
        let load = |slot: i64| -> i64 {
            held.iter().map(|(s, c)| (slot - s).div_euclid(interval) - (slot - s - c).div_euclid(interval)).sum()
        };
        held.iter().any(|(start, _)| load(*start) > i64::from(unit.capacity))
    })
}

/// Returns whether a schedule at one interval gives one at every larger interval ("Why one proof rejects every
/// smaller interval"). Options that break it are refused before.
pub(super) fn is_monotone(problem: &Problem) -> bool {
    problem.graph().operations().iter().all(|op| op.reservations.iter().all(|r| r.start == Cycles::ZERO))
}

/// `S`: whatever is feasible above it is feasible at it. No interval that bandwidth excludes is above it.
pub(super) fn largest_interval(problem: &Problem) -> i64 {
    let graph = problem.graph();
    let operations = graph.operations().iter().map(|op| 2 * op.span().max(op.completion()).0 + op.transfer_latency.0);
    let dependences = graph.dependences().iter().map(|d| d.delay.0 + graph.operation(d.from).handoff.0 + d.hold.0);
    let rigid = operations.chain(dependences).fold(0_i64, i64::saturating_add);
    let rate = problem.resources().shared_bytes_per_cycle;
    let bandwidth = rate.map_or(0, |rate| ceiling(shared_bytes(problem), i128::from(rate.0)));
    rigid.max(saturate::<i64>(bandwidth))
}
