//! The replay of a modulo schedule without warps: `dependence` and `resource` alone.
//!
//! All iterations are alike and `I` apart, so a dependence is checked once, from iteration 0 to iteration δ. A
//! resource is counted in every slot of the steady state: an operation that holds it for `b` cycles is there
//! `⌊b / I⌋` times in every slot, and once more in the `b mod I` slots from its own.

use crate::holders::{Held, Holder, Holders, Moment};
use crate::rejected::{Rejected, Violations};
use crate::verified::Verified;
use crate::violation::Violation;
use std::collections::BTreeMap;
use twill_graph::{Cycles, IssueTimes, ModuloOperation, ModuloProblem, ModuloResource, UnitId};

/// Most holders that a message names.
const NAMED_HOLDERS: usize = 16;

/// Replays `schedule` against `problem`.
///
/// # Errors
/// Every constraint that is broken, with the place (up to [`Rejected::LIMIT`]).
pub fn verify_modulo(problem: &ModuloProblem, schedule: IssueTimes) -> Result<Verified<IssueTimes>, Rejected> {
    let mut violations = Violations::default();
    let (required, given) = (problem.operations().len(), schedule.times.len());
    if schedule.interval < Cycles(1) {
        violations.push(Violation::Interval { interval: schedule.interval });
    } else if required != given {
        violations.push(Violation::PlacementCount { required, given });
    } else {
        check_operations(problem, &schedule, &mut violations);
        check_dependences(problem, &schedule, &mut violations);
        for (index, resource) in problem.resources().iter().enumerate() {
            check_resource(problem, UnitId::new(index), resource, &schedule, &mut violations);
        }
    }
    if violations.is_empty() { Ok(Verified::seal(schedule)) } else { Err(violations.into()) }
}

fn check_operations(problem: &ModuloProblem, schedule: &IssueTimes, violations: &mut Violations) {
    for (op, &cycle) in problem.operations().iter().zip(&schedule.times) {
        if cycle < Cycles::ZERO {
            violations.push(Violation::NegativeCycle { operation: op.name.clone(), cycle });
        }
    }
}

fn check_dependences(problem: &ModuloProblem, schedule: &IssueTimes, violations: &mut Violations) {
    let time = |index: usize| i128::from(schedule.times[index].0);
    let name = |index: usize| problem.operations()[index].name.clone();
    let narrow = |wide: i128| Cycles(wide.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
    for d in problem.dependences() {
        let issued = time(d.from.index());
        let required = issued + i128::from(d.delay.0);
        let given = time(d.to.index()) + i128::from(d.distance) * i128::from(schedule.interval.0);
        if given < required {
            violations.push(Violation::Dependence {
                from: name(d.from.index()),
                to: name(d.to.index()),
                distance: d.distance,
                issued: narrow(issued),
                required: narrow(required),
                given: narrow(given),
            });
        }
    }
}

fn check_resource(
    problem: &ModuloProblem,
    unit: UnitId,
    resource: &ModuloResource,
    schedule: &IssueTimes,
    violations: &mut Violations,
) {
    let Some(limit) = resource.limit else { return };
    let interval = schedule.interval.0;
    let (rounds, rest) = (i64::from(resource.blocking) / interval, i64::from(resource.blocking) % interval);
    let users = || problem.operations().iter().zip(&schedule.times).filter(|(op, _)| op.resource == unit);
    // The starts and ends in each slot, and the amount held in slot 0.
    let mut held: i64 = users().count() as i64 * rounds;
    let mut changes: BTreeMap<i64, i64> = BTreeMap::from([(0, 0)]);
    for (_, time) in users().filter(|_| rest > 0) {
        let slot = time.0.rem_euclid(interval);
        *changes.entry(slot).or_default() += 1;
        *changes.entry((slot + rest) % interval).or_default() -= 1;
        held += i64::from(slot + rest >= interval);
        // Ending exactly with the interval is ending in slot 0, where it is taken off below.
    }
    let mut worst = (i64::MIN, 0);
    for (slot, change) in changes {
        held += change;
        worst = worst.max((held, -slot));
    }
    let (most, slot) = (worst.0, -worst.1);
    if most <= i64::from(limit) {
        return;
    }
    let holds = |(op, time): (&ModuloOperation, &Cycles)| {
        let copies = rounds + i64::from((slot - time.0).rem_euclid(interval) < rest);
        let (copies, amount) = (copies as u64, copies as u64);
        (copies > 0).then(|| Holder { operation: op.name.clone(), held: Held::Unit, copies, amount })
    };
    let mut holders: Vec<Holder> = users().filter_map(holds).collect();
    holders.truncate(NAMED_HOLDERS);
    violations.push(Violation::Resource {
        unit: resource.name.clone(),
        available: limit.into(),
        required: most as u64,
        at: Moment { slot: Cycles(slot), cycle: None },
        holders: Holders(holders),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use twill_graph::{ModuloDependence, OpId};

    fn problem(limit: u32, blocking: u32, operations: usize, dependences: Vec<ModuloDependence>) -> ModuloProblem {
        let unit = |k: usize| ModuloOperation { name: format!("v{k}"), resource: UnitId::new(0) };
        let resource = ModuloResource { name: "port".into(), limit: Some(limit), blocking };
        ModuloProblem::new("test", (0..operations).map(unit).collect(), dependences, vec![resource]).unwrap()
    }

    fn times(interval: i64, times: &[i64]) -> IssueTimes {
        IssueTimes { interval: Cycles(interval), times: times.iter().map(|&t| Cycles(t)).collect() }
    }

    fn complaint(problem: &ModuloProblem, schedule: IssueTimes) -> String {
        verify_modulo(problem, schedule).unwrap_err().to_string()
    }

    #[test]
    fn slots_are_counted_around_the_interval() {
        let port = problem(1, 1, 2, vec![]);
        assert!(verify_modulo(&port, times(2, &[0, 3])).is_ok());
        assert!(complaint(&port, times(2, &[1, 3])).contains("unit `port` (capacity 1) is held 2 times at slot 1"));
        let long = problem(1, 3, 2, vec![]);
        assert!(verify_modulo(&long, times(6, &[4, 1])).is_ok());
        assert!(complaint(&long, times(6, &[4, 0])).contains("held 2 times at slot 0: `v0` 1, `v1` 1"));
        assert!(complaint(&long, times(5, &[0, 3])).contains("held 2 times at slot 0"));
        // Whose use ends where that of others begins holds nothing there.
        let after = complaint(&problem(1, 2, 3, vec![]), times(6, &[0, 2, 2]));
        assert!(after.contains("held 2 times at slot 2: `v1` 1, `v2` 1"), "{after}");
        // Five cycles every two: in each slot twice, and once more in one of them.
        let deep = problem(3, 5, 1, vec![]);
        assert!(verify_modulo(&deep, times(2, &[1])).is_ok());
        assert!(complaint(&problem(2, 5, 1, vec![]), times(2, &[1])).contains("held 3 times at slot 1: `v0` 3 in 3"));
    }

    #[test]
    fn dependences_reach_across_iterations() {
        let back = |delay| ModuloDependence { from: OpId::new(1), to: OpId::new(0), delay: Cycles(delay), distance: 2 };
        assert!(verify_modulo(&problem(2, 1, 2, vec![back(9)]), times(5, &[0, 1])).is_ok());
        let late = complaint(&problem(2, 1, 2, vec![back(10)]), times(5, &[0, 1]));
        assert!(late.contains("`v0` issues at cycle 10; `v1` at cycle 1 (distance 2) allows cycle 11"), "{late}");
        let extreme = times(i64::MAX, &[0, i64::MAX]);
        assert!(verify_modulo(&problem(2, 1, 2, vec![back(9)]), extreme).is_ok());
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        let one = problem(1, 1, 1, vec![]);
        assert!(complaint(&one, times(0, &[0])).contains("at least 1"));
        assert!(complaint(&one, times(1, &[])).contains("places 0 operations"));
        assert!(complaint(&one, times(1, &[-1])).contains("an iteration begins at cycle 0"));
    }
}
