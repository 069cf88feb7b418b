//! Replays the steps of loop programs side by side, in any interleaving, and asks of each whether its operands are there (tests
//! only). Operations are names here, so that loops that compute nothing can be tried; what computes is `twill-interpret`.
//!
//! Barriers are modelled as `mbarrier`s: phases that flip after a number of arrivals, waits that see
//! only the parity. Asynchronous operations end some time after their issue, in the order of
//! issue within a queue. Every buffer slot remembers which value of which iteration it holds.

use crate::passes::steps::program::{Barrier, Buffer, BufferKind, GroupSteps, LoopProgram, Step};
use crate::passes::steps::scheduled_graph::ScheduledGraph;
use crate::passes::steps::storage::LastRead;
use std::collections::{HashMap, HashSet, VecDeque};
use twill_graph::{GroupId, OpId, Problem, Schedule, Storage};

type Instance = (OpId, i64);

/// The steps of a group, with numbers for iterations.
pub(crate) fn flatten(warp: &GroupSteps, trip_count: i64) -> Vec<(Step, i64)> {
    if let Some(shorter) = warp.shorter.as_ref().filter(|_| trip_count < i64::from(warp.first)) {
        return flatten(shorter, trip_count);
    }
    let mut steps = Vec::new();
    let blocks = |steps: &mut Vec<(Step, i64)>, blocks: &[crate::passes::steps::program::Block]| {
        for block in blocks.iter().filter(|b| trip_count > i64::from(b.trip_count_above)) {
            steps.extend(block.steps.iter().map(|s| (s.clone(), 0)));
        }
    };
    blocks(&mut steps, &warp.prologue);
    for i in i64::from(warp.first)..trip_count {
        steps.extend(warp.steady.iter().map(|s| (s.clone(), i)));
    }
    blocks(&mut steps, &warp.epilogue);
    steps
}

/// An operation under way, with the barriers that it will signal.
type InFlightMma = (Instance, Vec<(Barrier, i64)>);
type Queue<'a> = (GroupId, Option<&'a str>);

#[derive(Default)]
struct Phases {
    completed: i64,
    pending: usize,
}

struct Machine<'a> {
    problem: &'a Problem,
    scheduled: ScheduledGraph<'a>,
    program: &'a LoopProgram,
    trip_count: i64,
    /// By buffer, value (none: empty) and slot.
    barriers: HashMap<(usize, Option<OpId>, i64), Phases>,
    issued: HashSet<Instance>,
    done: HashSet<Instance>,
    queues: HashMap<Queue<'a>, VecDeque<InFlightMma>>,
    slots: HashMap<(usize, i64), Instance>,
    stored: HashSet<(usize, Instance)>,
}

/// Runs all programs; `choose(n)` picks one of `n` things that could happen next.
pub(crate) fn run(
    problem: &Problem,
    schedule: &Schedule,
    program: &LoopProgram,
    trip_count: i64,
    mut choose: impl FnMut(usize) -> usize,
) {
    let scheduled = ScheduledGraph::new(problem, schedule);
    let mut machine = Machine {
        problem,
        scheduled,
        program,
        trip_count,
        barriers: HashMap::new(),
        issued: HashSet::new(),
        done: HashSet::new(),
        queues: HashMap::new(),
        slots: HashMap::new(),
        stored: HashSet::new(),
    };
    let programs: Vec<Vec<(Step, i64)>> = program.warps.iter().map(|w| flatten(w, trip_count)).collect();
    let mut at = vec![0_usize; programs.len()];
    let mut last = vec![i64::MIN; programs.len()];
    loop {
        let mut possible: Vec<Result<usize, (GroupId, Option<&str>)>> = Vec::new();
        for (k, steps) in programs.iter().enumerate() {
            if at[k] < steps.len() && machine.can(program.warps[k].group, &steps[at[k]]) {
                possible.push(Ok(k));
            }
        }
        let mut queues: Vec<_> = machine.queues.iter().filter(|(_, q)| !q.is_empty()).map(|(k, _)| *k).collect();
        queues.sort();
        possible.extend(queues.into_iter().map(Err));
        if possible.is_empty() {
            break;
        }
        match possible[choose(possible.len())] {
            Ok(k) => {
                let (step, i) = &programs[k][at[k]];
                if let Step::Issue { op, iteration, .. } = step {
                    let time = scheduled.time(*op) + iteration.number(*i, trip_count) * scheduled.interval();
                    assert!(time >= last[k], "group {} issues out of order", program.warps[k].group.index());
                    last[k] = time;
                }
                machine.perform(program.warps[k].group, step, *i);
                at[k] += 1;
            }
            Err(queue) => machine.complete(queue),
        }
    }
    for (k, steps) in programs.iter().enumerate() {
        assert_eq!(at[k], steps.len(), "deadlock: T = {trip_count}, next is {:?} of {:?}", steps.get(at[k]), at);
    }
    let expected: HashSet<Instance> =
        problem.graph().op_ids().flat_map(|op| (0..trip_count).map(move |i| (op, i))).collect();
    assert_eq!(machine.issued, expected);
    assert_eq!(machine.done, expected);
}

impl<'a> Machine<'a> {
    fn key(&self, barrier: Barrier, iteration: i64) -> ((usize, Option<OpId>, i64), i64) {
        let (buffer, value) = match barrier {
            Barrier::Full { buffer, value } => (buffer, Some(value)),
            Barrier::Empty { buffer } => (buffer, None),
        };
        let depth = i64::from(self.program.buffer(buffer).depth);
        // A wait for a free slot is for the release of its last use.
        let phase = if value.is_none() { iteration - depth } else { iteration };
        ((buffer.index(), value, iteration.rem_euclid(depth)), phase.div_euclid(depth))
    }

    fn can(&self, group: GroupId, (step, i): &(Step, i64)) -> bool {
        match step {
            Step::MbarrierWait { barrier, iteration } => {
                let number = iteration.number(*i, self.trip_count);
                let (key, phase) = self.key(*barrier, number);
                let completed = self.barriers.get(&key).map_or(0, |p| p.completed);
                if matches!(barrier, Barrier::Full { .. }) && number < 0 {
                    return true;
                }
                // Parity cannot tell a phase from the one after the next.
                assert!(completed <= phase.max(-1) + 1, "a wait lags: {barrier:?} {number}");
                completed > phase
            }
            Step::WaitAsync { op, newer_in_flight, .. } => {
                assert_eq!(self.scheduled.group(*op), group, "a group waits for another's operation");
                let in_flight = self.queues.get(&self.scheduled.queue(*op)).map_or(0, VecDeque::len);
                in_flight <= *newer_in_flight as usize
            }
            Step::Issue { .. } | Step::Store { .. } | Step::MbarrierArrive { .. } => true,
        }
    }

    fn perform(&mut self, group: GroupId, step: &Step, i: i64) {
        match step {
            Step::MbarrierWait { .. } => {}
            Step::WaitAsync { op, iteration, .. } => {
                let number = iteration.number(i, self.trip_count);
                let exists = (0..self.trip_count).contains(&number);
                assert!(!exists || self.done.contains(&(*op, number)), "a wait did not wait for its operation");
            }
            Step::MbarrierArrive { barrier, iteration } => {
                self.arrive(*barrier, iteration.number(i, self.trip_count));
            }
            Step::Store { op, iteration, buffer } => {
                let instance = (*op, iteration.number(i, self.trip_count));
                assert!(self.done.contains(&instance), "stored before it is there");
                assert!(matches!(self.program.buffer(*buffer).kind, BufferKind::Handoff(_)));
                self.write(buffer.index(), instance);
                assert!(self.stored.insert((buffer.index(), instance)));
            }
            Step::Issue { op, iteration, signals } => {
                let instance = (*op, iteration.number(i, self.trip_count));
                assert_eq!(self.scheduled.group(*op), group);
                assert!((0..self.trip_count).contains(&instance.1), "issued an iteration that is none");
                assert!(self.issued.insert(instance), "issued twice");
                let signals: Vec<(Barrier, i64)> =
                    signals.iter().map(|(b, at)| (*b, at.number(i, self.trip_count))).collect();
                self.check_operands(instance);
                self.check_reuse(instance);
                if !matches!(self.scheduled.operation(*op).storage, Storage::Registers(_)) {
                    for k in 0..self.program.buffers.len() {
                        let buffer = &self.program.buffers[k];
                        let orders = matches!(buffer.kind, BufferKind::Order(_));
                        if buffer.values.iter().any(|v| v.op == *op) && !orders {
                            self.write(k, instance);
                        }
                    }
                }
                if self.scheduled.is_asynchronous(*op) {
                    self.queues.entry(self.scheduled.queue(*op)).or_default().push_back((instance, signals));
                } else {
                    assert!(signals.is_empty());
                    self.done.insert(instance);
                }
            }
        }
    }

    /// Everything that an instance depends on, when it issues.
    fn check_operands(&self, (op, i): Instance) {
        for d in self.problem.graph().dependences().iter().filter(|d| d.to == op) {
            let from = (d.from, i - i64::from(d.distance));
            if from.1 < 0 {
                continue;
            }
            assert!(self.issued.contains(&from), "{} reads what is not issued", self.scheduled.operation(op).name);
            let ordered = d.carries_value || d.delay >= self.scheduled.operation(d.from).latency;
            let apart = self.scheduled.crosses(d) || d.blocking || self.scheduled.operation(d.from).streaming;
            if d.from != op && apart && ordered {
                let names = (&self.scheduled.operation(d.from).name, &self.scheduled.operation(op).name);
                assert!(self.done.contains(&from), "{names:?} of {i}: read before it is there");
            }
            if d.carries_value {
                self.check_held(op, from);
            }
        }
    }

    /// The group's own asynchronous readers of the storage that an instance takes are over.
    fn check_reuse(&self, (op, i): Instance) {
        for storing in crate::passes::steps::storage::storings(&self.scheduled, &HashSet::new()) {
            if !storing.renewed || storing.members[0].0 != op {
                continue;
            }
            let resident =
                |b: &&Buffer| b.values[0].op == op && matches!(b.kind, BufferKind::Shared(_) | BufferKind::Tensor(_));
            let depth = self.program.buffers.iter().find(resident).map_or(storing.depth, |b| b.depth);
            let own = |r: &&LastRead| r.lasting && self.scheduled.group(r.op) == self.scheduled.group(op);
            for read in storing.reads.iter().filter(own) {
                let reader = (read.op, i - i64::from(depth) + read.lag);
                if reader == (op, i) {
                    continue;
                }
                assert!(
                    !(0..self.trip_count).contains(&reader.1) || self.done.contains(&reader),
                    "storage is taken while it is read"
                );
            }
        }
    }

    /// The buffer slot from which `reader` reads `value` still holds it.
    fn check_held(&self, reader: OpId, value: Instance) {
        for (k, buffer) in self.program.buffers.iter().enumerate() {
            let handoff = matches!(buffer.kind, BufferKind::Handoff(_));
            let local = self.scheduled.group(reader) == self.scheduled.group(value.0);
            let orders = matches!(buffer.kind, BufferKind::Order(_));
            if orders || (handoff && local) || !buffer.values.iter().any(|v| v.op == value.0) {
                continue;
            }
            let slot = (k, buffer.slot(value.0, value.1));
            let name = &self.scheduled.operation(value.0).name;
            assert_eq!(self.slots.get(&slot), Some(&value), "{name} was overwritten");
        }
    }

    fn write(&mut self, k: usize, instance: Instance) {
        let buffer = &self.program.buffers[k];
        let slot = buffer.slot(instance.0, instance.1);
        // Nobody who reads what was there may still be at it, or still come.
        let first = buffer.values[0].op;
        if instance.0 == first
            && let Some(&(old, iteration)) = self.slots.get(&(k, slot))
        {
            let root = iteration - buffer.values.iter().find(|v| v.op == old).unwrap().lag;
            let handoff = matches!(buffer.kind, BufferKind::Handoff(_));
            for v in &buffer.values {
                let value = root + v.lag;
                for d in self.scheduled.uses(v.op).filter(|d| !handoff || self.scheduled.crosses(d)) {
                    let reader = (d.to, value + i64::from(d.distance));
                    // It may itself be the next to write, in place.
                    if reader.1 < self.trip_count && reader != instance {
                        assert!(self.done.contains(&reader), "{:?} is overwritten while it is read", (v.op, value));
                    }
                }
            }
        }
        self.slots.insert((k, slot), instance);
    }

    fn complete(&mut self, queue: Queue<'a>) {
        let (instance, signals) = self.queues.get_mut(&queue).unwrap().pop_front().unwrap();
        // It read its operands until now.
        for d in self.problem.graph().dependences().iter().filter(|d| d.to == instance.0 && d.carries_value) {
            let value = (d.from, instance.1 - i64::from(d.distance));
            if value.1 >= 0 && !d.tied && value.0 != instance.0 {
                self.check_held(instance.0, value);
            }
        }
        self.done.insert(instance);
        for (barrier, iteration) in signals {
            self.arrive(barrier, iteration);
        }
    }

    fn arrive(&mut self, barrier: Barrier, iteration: i64) {
        let (needed, phase) = match barrier {
            Barrier::Full { buffer, value } => {
                if !matches!(self.program.buffer(buffer).kind, BufferKind::Order(_)) {
                    assert!(self.done.contains(&(value, iteration)), "full before it is there");
                }
                (1, 0)
            }
            Barrier::Empty { buffer } => (self.program.buffer(buffer).released_by.len(), 1),
        };
        let (key, number) = self.key(barrier, iteration);
        let phases = self.barriers.entry(key).or_default();
        assert_eq!(phases.completed, number + phase, "an arrival in the wrong phase: {barrier:?} {iteration}");
        phases.pending += 1;
        if phases.pending == needed {
            phases.pending = 0;
            phases.completed += 1;
        }
    }
}
