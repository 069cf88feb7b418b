//! List scheduling: step by step, the most urgent of the operations that are ready, as long as there are units.
//!
//! Urgent is who has the least latest start. Three ways: within limits; with as few units as a latency bound allows
//! (minimum-resource, latency-constrained list scheduling: De Micheli, "Synthesis and Optimization of Digital Circuits",
//! 1994, section 5.4), where units are added only for operations whose latest start has come; and with little storage, where an
//! operation starts early only if it frees at least what it makes live.
//!
//! An operation is looked at once all its producers have started, even where a negative delay would let it start before.

use super::table::Table;
use super::{BaselineError, Task};
use crate::Mobility;
use crate::bounds::peak_bound;
use crate::control::Paced;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use twill_graph::UnitId;
use twill_graph::saturate;

/// Reads left at which a value's readers are looked at again.
const FEW: usize = 4;

/// Within the limits of resources.
pub(super) fn within_limits(task: &Task) -> Result<Vec<u64>, BaselineError> {
    let caps = task.graph.resources().iter().map(|r| r.limit).collect();
    List::new(task, caps).run(false)
}

/// With as few units as it can. It starts with the lower bound on each resource.
pub(super) fn fewest_units(task: &Task) -> Result<Vec<u64>, BaselineError> {
    // A weaker bound costs little: units are added where they are needed.
    let clock = task.clock.share(0.05);
    let least = |(r, resource): (usize, &twill_graph::DataflowResource)| {
        let bound = peak_bound(task.graph, Some(task.mobility), None, UnitId::new(r), &clock);
        let bound = saturate::<u64>(bound);
        Some(resource.limit.map_or(bound, |limit| limit.min(bound)))
    };
    let caps = task.graph.resources().iter().enumerate().map(least).collect();
    List::new(task, caps).run(true)
}

struct List<'a> {
    task: &'a Task<'a>,
    mobility: &'a Mobility,
    caps: Vec<Option<u64>>,
    table: Table,
    steps: Vec<u64>,
    /// Producers that have not started yet.
    missing: Vec<usize>,
    /// Those that will be ready: the step, the operation.
    coming: BinaryHeap<Reverse<(u64, u32)>>,
    /// Those that are ready, by what they take: latest start, operation.
    ready: Vec<BinaryHeap<Reverse<(u64, u32)>>>,
    kind: Vec<usize>,
}

impl<'a> List<'a> {
    fn new(task: &'a Task<'a>, caps: Vec<Option<u64>>) -> List<'a> {
        let count = task.precedence.len();
        let mut kinds = BTreeMap::new();
        let kind = task.graph.operations().iter().map(|op| {
            let next = kinds.len();
            let taken: Vec<_> = op.uses.iter().map(|u| (u.resource, u.offset, u.steps, u.amount)).collect();
            *kinds.entry(taken).or_insert(next)
        });
        let kind: Vec<usize> = kind.collect();
        let missing: Vec<usize> = (0..count).map(|v| task.precedence.predecessors(v).len()).collect();
        let coming = (0..count).filter(|&v| missing[v] == 0).map(|v| Reverse((0, v as u32))).collect();
        List {
            task,
            mobility: task.mobility,
            caps,
            table: Table::new(task.graph, None),
            steps: vec![0; count],
            missing,
            coming,
            ready: vec![BinaryHeap::new(); kinds.len()],
            kind,
        }
    }

    /// `grow`: adds units rather than let an operation's latest start pass.
    fn run(mut self, grow: bool) -> Result<Vec<u64>, BaselineError> {
        let (mut left, mut step) = (self.steps.len(), 0);
        // The largest that all can take until they are done one by one.
        let longest = |op: &twill_graph::DataflowOperation| {
            op.uses.iter().map(|u| u64::from(u.offset) + u64::from(u.steps)).max().unwrap_or(0)
        };
        let serial: u64 = self.task.graph.operations().iter().map(longest).sum();
        let end = self.mobility.latency.saturating_add(serial);
        self.task.table_of(end)?;
        let mut paced = Paced::new(&self.task.clock);
        // Kinds with somebody ready; those that a step is done with carry its stamp.
        let mut waiting: Vec<u32> = Vec::new();
        let mut is_waiting = vec![false; self.ready.len()];
        let mut full = vec![u64::MAX; self.ready.len()];
        let mut heads: BinaryHeap<Reverse<(u64, u32, u32)>> = BinaryHeap::new();
        while left > 0 {
            waiting.retain(|&kind| {
                is_waiting[kind as usize] = !self.ready[kind as usize].is_empty();
                is_waiting[kind as usize]
            });
            heads.clear();
            heads.extend(waiting.iter().filter_map(|&kind| self.head(kind)));
            if paced.is_over_after(8 * (waiting.len() as u64 + 1)) {
                return Err(self.task.out_of_time());
            }
            loop {
                while let Some(&Reverse((_, v))) = self.coming.peek().filter(|entry| entry.0.0 <= step) {
                    self.coming.pop();
                    let kind = self.kind[v as usize];
                    if !std::mem::replace(&mut is_waiting[kind], true) {
                        waiting.push(kind as u32);
                    }
                    self.ready[kind].push(Reverse((self.mobility.latest[v as usize], v)));
                    // Somebody more urgent than all of the kind before may be started by force.
                    if self.ready[kind].peek().is_some_and(|head| head.0.1 == v) {
                        heads.extend(self.head(kind as u32));
                    }
                }
                // The most urgent of the kinds that still fit; what is in use only grows within a step.
                let Some(Reverse((latest, v, kind))) = heads.pop() else { break };
                let kind = kind as usize;
                if self.ready[kind].peek() != Some(&Reverse((latest, v))) {
                    continue;
                }
                let is_forced = grow && latest <= step;
                if full[kind] == step && !is_forced {
                    continue;
                }
                if paced.is_over_after(64) {
                    return Err(self.task.out_of_time());
                }
                let op = &self.task.graph.operations()[v as usize];
                if self.table.fits(op, step, &self.caps) {
                    self.table.add(op, step);
                } else if is_forced {
                    self.make_room(v as usize, step)?;
                } else {
                    // Until somebody more urgent of its kind comes.
                    full[kind] = step;
                    continue;
                }
                self.ready[kind].pop();
                heads.extend(self.head(kind as u32));
                self.start(v as usize, step);
                left -= 1;
            }
            // On to the next step at which something can change.
            let is_idle = waiting.iter().all(|&kind| self.ready[kind as usize].is_empty());
            step = match self.coming.peek() {
                Some(&Reverse((next, _))) if is_idle => next,
                _ => step + 1,
            };
            if step > end.saturating_mul(2).saturating_add(2) {
                return Err(self.task.not_found("an operation takes more than there ever is"));
            }
        }
        Ok(self.steps)
    }

    /// The most urgent of a kind: its latest start, itself, the kind.
    fn head(&self, kind: u32) -> Option<Reverse<(u64, u32, u32)>> {
        self.ready[kind as usize].peek().map(|&Reverse((latest, v))| Reverse((latest, v, kind)))
    }

    /// Raises caps until `v` fits, up to the limits.
    fn make_room(&mut self, v: usize, step: u64) -> Result<(), BaselineError> {
        let op = &self.task.graph.operations()[v];
        self.table.add(op, step);
        for used in &op.uses {
            let index = used.resource.index();
            let resource = &self.task.graph.resources()[index];
            let needed = self.table.most(op, step, index);
            if let Some(limit) = resource.limit.filter(|&limit| needed > limit) {
                let why = format!("at step {step} it needs {needed} of `{}`, and there are {limit}", resource.name);
                return Err(self.task.not_found(why));
            }
            if let Some(cap) = &mut self.caps[index] {
                *cap = needed.max(*cap);
            }
        }
        Ok(())
    }

    fn start(&mut self, v: usize, step: u64) {
        self.steps[v] = step;
        for s in self.task.precedence.successors(v) {
            let reader = s.op();
            self.missing[reader] -= 1;
            if self.missing[reader] == 0 {
                let producers = self.task.precedence.predecessors(reader).iter();
                let soonest = producers.map(|p| self.steps[p.op()] as i64 + p.lag).max().unwrap_or(0).max(0);
                self.coming.push(Reverse((soonest as u64, reader as u32)));
            }
        }
    }
}

/// With little storage: an operation starts before its latest start only if its operands that die with it take at least
/// what its value will.
pub(super) fn least_storage(task: &Task) -> Result<Vec<u64>, BaselineError> {
    let (graph, precedence, mobility) = (task.graph, task.precedence, task.mobility);
    let count = precedence.len();
    let mut steps = vec![0_u64; count];
    let mut missing: Vec<usize> = (0..count).map(|v| precedence.predecessors(v).len()).collect();
    let mut unread: Vec<usize> = (0..count).map(|v| precedence.successors(v).len()).collect();
    let storage = |v: usize| if precedence.successors(v).is_empty() { 0 } else { graph.operations()[v].storage };
    // By when they are ready; those that can wait, by when they no longer can.
    let mut coming: BinaryHeap<Reverse<(u64, usize)>> =
        (0..count).filter(|&v| missing[v] == 0).map(|v| Reverse((0, v))).collect();
    let mut urgent: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let (mut started, mut is_ready) = (vec![false; count], vec![false; count]);
    // An operand that is read several times by the same operation has as many unread edges.
    let frees = |v: usize, unread: &[usize]| {
        let mut operands: Vec<usize> = precedence.predecessors(v).iter().map(|p| p.op()).collect();
        operands.sort_unstable();
        let dies = operands.chunk_by(|a, b| a == b).filter(|same| unread[same[0]] == same.len());
        dies.map(|same| storage(same[0])).sum::<u64>()
    };
    let mut paced = Paced::new(&task.clock);
    let mut step = 0;
    loop {
        let mut willing = Vec::new();
        while let Some(&Reverse((at, v))) = coming.peek()
            && at <= step
        {
            coming.pop();
            is_ready[v] = true;
            urgent.push(Reverse((mobility.latest[v], v)));
            if frees(v, &unread) >= storage(v) {
                willing.push(v);
            }
        }
        while let Some(&Reverse((latest, v))) = urgent.peek()
            && latest <= step
        {
            urgent.pop();
            willing.push(v);
        }
        for v in willing.iter().copied().filter(|&v| !std::mem::replace(&mut started[v], true)) {
            steps[v] = step;
            for p in precedence.predecessors(v) {
                unread[p.op()] -= 1;
            }
            for s in precedence.successors(v) {
                missing[s.op()] -= 1;
                if missing[s.op()] == 0 {
                    let producers = precedence.predecessors(s.op()).iter();
                    let soonest = producers.map(|p| steps[p.op()] as i64 + p.lag).max().unwrap_or(0);
                    coming.push(Reverse((soonest.max(step as i64) as u64, s.op())));
                }
            }
        }
        // Waiting operations may start now: the last readers of these values.
        let mut again = Vec::new();
        for &v in &willing {
            // Few of its reads are left, or it would not die with one reader.
            for p in precedence.predecessors(v).iter().filter(|p| unread[p.op()] <= FEW) {
                let readers = precedence.successors(p.op()).iter().map(|s| s.op());
                if paced.is_over_after(32 * readers.len() as u64 + 32) {
                    return Err(task.out_of_time());
                }
                again.extend(readers.filter(|&r| is_ready[r] && !started[r] && frees(r, &unread) >= storage(r)));
            }
        }
        for v in again {
            is_ready[v] = false;
            coming.push(Reverse((step, v)));
        }
        let next = [coming.peek(), urgent.peek()].into_iter().flatten().map(|entry| entry.0.0).min();
        match next {
            Some(next) => step = next.max(step),
            None => return Ok(steps),
        }
    }
}
