//! Earliest and latest starts that limits of resources leave: what an operation waits for must have been run by then.
//!
//! For each operation, all that comes before it runs on one resource alone, in units of one step and one amount, each
//! released at its earliest start and followed by its longest path: the greatest tail first is the best that this
//! relaxation can do, and its end bounds the start from below, one operation after another in topological order (Langevin,
//! Cerny, "A recursive technique for computing lower-bound performance of schedules", 1996). Latest starts are the same,
//! mirrored.

use crate::model::Model;
use std::collections::BinaryHeap;

/// Most operations, whose pairs are all looked at.
const MOST_OPERATIONS: usize = 2000;
/// Most units of work on a resource.
const MOST_UNITS: i64 = 20_000;

/// Least and greatest steps of all operations where the usage of a resource is at most its cap; `None` where there is no
/// schedule. Without an interval, and where numbers are moderate; else the windows that are known.
pub(super) fn windows(model: &Model<'_>, caps: &[Option<i64>]) -> Option<Vec<(i64, i64)>> {
    let known = || model.earliest.iter().copied().zip(model.latest.iter().copied()).collect();
    if model.interval.is_some() || model.len() > MOST_OPERATIONS {
        return Some(known());
    }
    let mut line = Line::new(model);
    let caps: Vec<(usize, i64)> = caps.iter().enumerate().filter_map(|(r, cap)| Some((r, (*cap)?))).collect();
    let caps: Vec<(usize, i64)> = caps.into_iter().filter(|&(r, _)| line.units(r) <= MOST_UNITS).collect();
    let mut earliest = model.earliest.clone();
    line.raise(&mut earliest, &caps)?;
    line.mirror();
    let mut mirrored: Vec<i64> = model.latest.iter().map(|&latest| line.end - latest).collect();
    line.raise(&mut mirrored, &caps)?;
    let latest = mirrored.iter().map(|&step| line.end - step);
    let windows: Vec<(i64, i64)> = earliest.into_iter().zip(latest).collect();
    windows.iter().all(|(low, high)| low <= high).then_some(windows)
}

/// A stretch of a resource that an operation holds.
#[derive(Clone, Copy)]
struct Hold {
    resource: usize,
    offset: i64,
    steps: i64,
    amount: i64,
}

/// The graph, in one direction of time or in the other.
struct Line {
    order: Vec<usize>,
    /// Whom each waits for, and how long.
    before: Vec<Vec<(usize, i64)>>,
    after: Vec<Vec<(usize, i64)>>,
    holds: Vec<Vec<Hold>>,
    /// The origin from which mirrored steps count back.
    end: i64,
}

impl Line {
    fn new(model: &Model<'_>) -> Line {
        let hold = |used: &crate::model::Use| Hold {
            resource: used.resource,
            offset: used.offset,
            steps: used.steps,
            amount: used.amount,
        };
        let neighbours = |of: &dyn Fn(usize) -> Vec<(usize, i64)>| (0..model.len()).map(of).collect();
        Line {
            order: model.precedence.order().collect(),
            before: neighbours(&|v| model.precedence.predecessors(v).iter().map(|p| (p.op(), p.lag)).collect()),
            after: neighbours(&|v| model.precedence.successors(v).iter().map(|s| (s.op(), s.lag)).collect()),
            holds: (0..model.len()).map(|v| model.uses[v].iter().map(hold).collect()).collect(),
            end: model.length as i64,
        }
    }

    fn units(&self, resource: usize) -> i64 {
        let holds = self.holds.iter().flatten().filter(|hold| hold.resource == resource);
        holds.map(|hold| hold.steps.saturating_mul(hold.amount)).fold(0, i64::saturating_add)
    }

    /// Turns time around: a start at `s` becomes one at `end − s`.
    fn mirror(&mut self) {
        self.order.reverse();
        std::mem::swap(&mut self.before, &mut self.after);
        for hold in self.holds.iter_mut().flatten() {
            // Steps s + offset .. s + offset + steps − 1, counted back.
            hold.offset = 1 - hold.offset - hold.steps;
        }
    }

    /// Raises earliest starts; `None` where a resource has no capacity at all.
    fn raise(&self, earliest: &mut [i64], caps: &[(usize, i64)]) -> Option<()> {
        let count = self.order.len();
        let mut distance = vec![i64::MIN; count];
        for (at, &v) in self.order.iter().enumerate() {
            let needed = self.before[v].iter().map(|&(u, lag)| earliest[u] + lag).max();
            earliest[v] = earliest[v].max(needed.unwrap_or(i64::MIN));
            // Longest paths to `v` from all that come before it.
            distance.fill(i64::MIN);
            distance[v] = 0;
            let mut cone = Vec::new();
            for &u in self.order[..at].iter().rev() {
                let paths = self.after[u].iter().filter(|(w, _)| distance[*w] > i64::MIN);
                if let Some(longest) = paths.map(|&(w, lag)| lag + distance[w]).max() {
                    distance[u] = longest;
                    cone.push(u);
                }
            }
            for &(resource, cap) in caps {
                if cap < 1 {
                    return (self.units(resource) == 0).then_some(());
                }
                let end = self.run(&cone, resource, cap, earliest, &distance);
                earliest[v] = earliest[v].max(end);
            }
        }
        Some(())
    }

    /// The least step at which all of a cone can have been run, and the paths from there.
    fn run(&self, cone: &[usize], resource: usize, cap: i64, earliest: &[i64], distance: &[i64]) -> i64 {
        // Release, tail after the step, amount.
        let mut parts: Vec<(i64, i64, i64)> = Vec::new();
        for &u in cone {
            for hold in self.holds[u].iter().filter(|hold| hold.resource == resource) {
                let steps = hold.offset..hold.offset + hold.steps;
                parts.extend(steps.map(|at| (earliest[u] + at, distance[u] - at - 1, hold.amount)));
            }
        }
        parts.sort_unstable();
        let (mut ready, mut next, mut end) = (BinaryHeap::new(), 0, i64::MIN);
        let mut step = i64::MIN;
        while next < parts.len() || !ready.is_empty() {
            if ready.is_empty() {
                step = step.max(parts[next].0);
            }
            while next < parts.len() && parts[next].0 <= step {
                ready.push((parts[next].1, parts[next].2));
                next += 1;
            }
            let mut room = cap;
            while let Some((tail, amount)) = ready.pop() {
                end = end.max(step + 1 + tail);
                if amount > room {
                    ready.push((tail, amount - room));
                    break;
                }
                room -= amount;
                if room == 0 {
                    break;
                }
            }
            step += 1;
        }
        end
    }
}
