//! Runs the groups' steps side by side.
//!
//! Time goes from event to event. Between two events every group that computes, and the tensor core, go on at a rate that
//! depends on who else uses the special-function unit, the issue slots and shared memory.

use crate::Timing;
use crate::steps::{Step, steps};
use crate::work::Work;
use std::collections::VecDeque;
use thiserror::Error;
use twill_codegen::ir::WarpProgram;

/// How long a CTA takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    /// By loop of the kernel.
    pub loops: Vec<LoopTime>,
    /// Cycles from the first instruction of a group to the last.
    pub cycles: f64,
    /// The cycles of each warp group, by activity.
    pub groups: Vec<GroupTime>,
}

/// The cycles of a warp group, by activity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupTime {
    /// Its threads computed.
    pub computing: f64,
    /// It stood at an MMA that it started.
    pub starting: f64,
    /// It waited for MMAs.
    pub mmas: f64,
    /// It waited for a phase of an `mbarrier`.
    pub phases: f64,
    /// It waited at a named barrier.
    pub named: f64,
    /// It waited until its stores had read shared memory.
    pub stores: f64,
}

/// A loop in its steady state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopTime {
    /// Cycles from an iteration to the next, in the second half of the iterations; 0 for fewer than four.
    pub interval: f64,
    /// The part of these in which the tensor core was busy.
    pub tensor: f64,
}

/// Why there is no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Stuck {
    /// Programs that use tensor memory are not simulated.
    #[error("programs whose MMAs work in tensor memory are not simulated")]
    TensorMemory,
    /// Groups wait for each other. The protocol checker refuses such programs.
    #[error("the warp groups wait for each other")]
    Deadlock,
}

/// Runs one tile of a kernel with these trip counts, by loop.
///
/// # Errors
/// See [`Stuck`].
pub fn simulate(program: &WarpProgram, timing: &Timing, trips: &[u32]) -> Result<Simulation, Stuck> {
    simulate_tiles(program, timing, trips, 1)
}

/// The same for several tiles, one after another.
pub(crate) fn simulate_tiles(
    program: &WarpProgram,
    timing: &Timing,
    trips: &[u32],
    tiles: u32,
) -> Result<Simulation, Stuck> {
    let of = |g| steps(program, g, timing, trips, tiles);
    let lists: Option<Vec<Vec<Step>>> = program.groups.iter().map(of).collect();
    let arrivals = program.barriers.iter().flat_map(|b| vec![b.arrivals.len(); b.slots as usize]).collect();
    let participants = program.named_barriers.iter().map(|(_, count)| *count as usize).collect();
    let mut engine = Engine::new(timing, lists.ok_or(Stuck::TensorMemory)?, arrivals, participants);
    engine.run()?;
    Ok(Simulation {
        loops: (0..program.loops.len()).map(|k| engine.interval(k)).collect(),
        cycles: engine.now,
        groups: engine.groups.iter().map(|g| g.time).collect(),
    })
}

/// The state of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Ready,
    /// Cycles left, as if alone.
    Computing(f64),
    Until(f64),
    /// At the MMA of this number.
    Issuing(usize),
    Phase {
        barrier: usize,
        target: u32,
    },
    Mmas(u32),
    Stores(u32),
    Named,
    Done,
}

#[derive(Debug)]
struct Group {
    steps: Vec<Step>,
    at: usize,
    state: State,
    work: Work,
    alone: f64,
    /// Its MMAs, oldest first.
    mmas: Vec<usize>,
    /// When its copies from shared memory have read it.
    stores: VecDeque<f64>,
    /// Loop, time, and for how long the tensor core had been busy, of every iteration.
    timestamps: Vec<(usize, f64, f64)>,
    time: GroupTime,
}

#[derive(Debug)]
struct Mma {
    cycles: f64,
    instructions: f64,
    shared_bytes: f64,
    arrived: f64,
    began: Option<f64>,
    ended: Option<f64>,
}

#[derive(Clone, Debug, Default)]
struct Barrier {
    arrivals: usize,
    pending: usize,
    /// When each phase was complete.
    complete: Vec<f64>,
}

/// A named barrier.
#[derive(Debug)]
struct Named {
    /// Groups that must arrive.
    count: usize,
    arrived: usize,
    waiting: Vec<usize>,
}

struct Engine<'a> {
    timing: &'a Timing,
    now: f64,
    groups: Vec<Group>,
    mmas: Vec<Mma>,
    queue: VecDeque<usize>,
    /// The MMA that the tensor core works on, and cycles left.
    running: Option<(usize, f64)>,
    busy: f64,
    barriers: Vec<Barrier>,
    /// When copies are there, and at which barrier.
    copies: Vec<(f64, usize)>,
    copies_until: f64,
    named: Vec<Named>,
}

/// Two times that are the same but for rounding: this many cycles, and such a part of the time that has passed.
const SAME: (f64, f64) = (1e-6, 1e-12);

impl<'a> Engine<'a> {
    /// Groups by their steps; arrivals that complete a phase, by `mbarrier`; groups that must arrive, by named barrier.
    fn new(timing: &'a Timing, lists: Vec<Vec<Step>>, arrivals: Vec<usize>, participants: Vec<usize>) -> Engine<'a> {
        let group = |steps| Group {
            steps,
            at: 0,
            state: State::Ready,
            work: Work::default(),
            alone: 0.0,
            mmas: Vec::new(),
            stores: VecDeque::new(),
            timestamps: Vec::new(),
            time: GroupTime::default(),
        };
        let barrier = |arrivals| Barrier { arrivals, ..Barrier::default() };
        Engine {
            timing,
            now: 0.0,
            groups: lists.into_iter().map(group).collect(),
            mmas: Vec::new(),
            queue: VecDeque::new(),
            running: None,
            busy: 0.0,
            barriers: arrivals.into_iter().map(barrier).collect(),
            copies: Vec::new(),
            copies_until: 0.0,
            named: participants.into_iter().map(|count| Named { count, arrived: 0, waiting: Vec::new() }).collect(),
        }
    }

    fn run(&mut self) -> Result<(), Stuck> {
        loop {
            self.settle();
            if self.groups.iter().all(|g| g.state == State::Done) {
                return Ok(());
            }
            let (threads, tensor) = self.rates();
            let next = self.next(&threads, tensor).ok_or(Stuck::Deadlock)?;
            let passed = next - self.now;
            for (group, rate) in self.groups.iter_mut().zip(&threads) {
                let time = &mut group.time;
                match &mut group.state {
                    State::Computing(left) => {
                        *left -= passed * rate;
                        time.computing += passed;
                    }
                    State::Issuing(_) => time.starting += passed,
                    State::Mmas(_) => time.mmas += passed,
                    State::Phase { .. } => time.phases += passed,
                    State::Named => time.named += passed,
                    State::Stores(_) => time.stores += passed,
                    State::Ready | State::Until(_) | State::Done => {}
                }
            }
            if let Some((_, left)) = &mut self.running {
                *left -= passed * tensor;
                self.busy += passed;
            }
            self.now = next;
        }
    }

    /// How far apart times of this moment may be.
    fn same(&self) -> f64 {
        SAME.0.max(self.now * SAME.1)
    }

    /// Everything that happens at this moment.
    fn settle(&mut self) {
        loop {
            let mut changed = false;
            let same = self.same();
            let now = self.now + same;
            if let Some((mma, left)) = self.running
                && left <= same
            {
                self.mmas[mma].ended = Some(self.now);
                self.running = None;
                changed = true;
            }
            if self.running.is_none()
                && let Some(&first) = self.queue.front()
                && self.mmas[first].arrived + self.timing.mma_start <= now
            {
                self.queue.pop_front();
                self.mmas[first].began = Some(self.now);
                self.running = Some((first, self.mmas[first].cycles));
                changed = true;
            }
            while let Some(k) = self.copies.iter().position(|(time, _)| *time <= now) {
                let (_, barrier) = self.copies.swap_remove(k);
                self.arrive(barrier);
                changed = true;
            }
            for group in 0..self.groups.len() {
                changed |= self.act(group);
            }
            if !changed {
                return;
            }
        }
    }

    fn arrive(&mut self, barrier: usize) {
        let barrier = &mut self.barriers[barrier];
        barrier.pending += 1;
        if barrier.pending >= barrier.arrivals {
            barrier.pending = 0;
            barrier.complete.push(self.now);
        }
    }

    /// Returns whether a group gets further.
    fn act(&mut self, index: usize) -> bool {
        let (now, same) = (self.now, self.same());
        match self.groups[index].state {
            State::Done | State::Named => false,
            State::Computing(left) if left > same => false,
            State::Until(time) if time > now + same => false,
            State::Issuing(mma) => match self.released(mma) {
                Some(time) => self.go_at(index, time),
                None => false,
            },
            State::Phase { barrier, target } => match self.phase(barrier, target) {
                Some(time) => self.go_at(index, (time + self.timing.handoff).max(now)),
                None => false,
            },
            State::Mmas(left) => match self.seen(index, left) {
                Some(time) => self.go_at(index, time),
                None => false,
            },
            State::Stores(left) => match self.stored(index, left) {
                Some(time) => self.go_at(index, time),
                None => false,
            },
            State::Ready | State::Computing(_) | State::Until(_) => self.step(index),
        }
    }

    fn go_at(&mut self, index: usize, time: f64) -> bool {
        self.groups[index].state = if time > self.now + self.same() { State::Until(time) } else { State::Ready };
        true
    }

    /// When a group goes on after an MMA that it starts.
    fn released(&self, mma: usize) -> Option<f64> {
        let mma = &self.mmas[mma];
        let least = mma.arrived + mma.instructions * self.timing.instruction_issue;
        mma.began.map(|began| (began + self.timing.mma_issue).max(least))
    }

    /// When a phase was complete.
    fn phase(&self, barrier: usize, target: u32) -> Option<f64> {
        match target {
            0 => Some(f64::MIN / 2.0),
            target => self.barriers[barrier].complete.get(target as usize - 1).copied(),
        }
    }

    /// When a group sees that at most N of its MMAs run.
    fn seen(&self, index: usize, left: u32) -> Option<f64> {
        let own = &self.groups[index].mmas;
        match own.len().checked_sub(left as usize + 1) {
            None => Some(self.now),
            Some(last) => self.mmas[own[last]].ended.map(|ended| ended + self.timing.mma_seen),
        }
    }

    fn stored(&mut self, index: usize, left: u32) -> Option<f64> {
        let stores = &self.groups[index].stores;
        let last = stores.len().checked_sub(left as usize + 1);
        Some(last.map_or(self.now, |last| stores[last]))
    }

    /// The next step of a group that is ready.
    fn step(&mut self, index: usize) -> bool {
        let (now, timing) = (self.now, self.timing);
        let at = self.groups[index].at;
        let Some(step) = self.groups[index].steps.get(at).cloned() else {
            self.groups[index].state = State::Done;
            return true;
        };
        self.groups[index].at += 1;
        let state = match step {
            Step::Compute(work) => {
                let group = &mut self.groups[index];
                (group.work, group.alone) = (work, work.cycles(timing));
                State::Computing(group.alone)
            }
            Step::Mma { cycles, instructions, shared_bytes } => {
                let mma = self.mmas.len();
                let (began, ended) = (None, None);
                self.mmas.push(Mma { cycles, instructions, shared_bytes, arrived: now, began, ended });
                self.queue.push_back(mma);
                self.groups[index].mmas.push(mma);
                State::Issuing(mma)
            }
            Step::WaitMmas(left) => State::Mmas(left),
            Step::Load { bytes, barrier } => {
                self.copies_until = self.copies_until.max(now + timing.transfer) + bytes / timing.transfer_bytes;
                self.copies.push((self.copies_until, barrier));
                State::Until(now + timing.arrive)
            }
            Step::Arrive { barrier } => {
                self.arrive(barrier);
                State::Until(now + timing.arrive)
            }
            Step::Wait { barrier, target } => match self.phase(barrier, target) {
                Some(time) => State::Until((time + timing.handoff).max(now + timing.wait)),
                None => State::Phase { barrier, target },
            },
            Step::NamedBarrierSync(id) => self.sync(index, id, true),
            Step::NamedBarrierArrive(id) => self.sync(index, id, false),
            Step::Store { bytes } => {
                let stores = &mut self.groups[index].stores;
                let free = stores.back().copied().unwrap_or(now).max(now + timing.transfer / 2.0);
                stores.push_back(free + bytes / timing.transfer_bytes);
                State::Until(now + timing.arrive)
            }
            Step::WaitStores(left) => State::Stores(left),
            Step::Delay(cycles) => State::Until(now + cycles),
            Step::Iteration { index: of } => {
                let mark = (of, now, self.busy);
                self.groups[index].timestamps.push(mark);
                State::Ready
            }
        };
        self.groups[index].state = state;
        true
    }

    /// The state of a group that arrives at a named barrier.
    fn sync(&mut self, index: usize, id: usize, waits: bool) -> State {
        let (now, latency) = (self.now, self.timing.named_barrier);
        let named = &mut self.named[id];
        named.arrived += 1;
        if named.arrived < named.count {
            if waits {
                named.waiting.push(index);
                return State::Named;
            }
            return State::Until(now + self.timing.arrive);
        }
        named.arrived = 0;
        for group in std::mem::take(&mut named.waiting) {
            self.groups[group].state = State::Until(now + latency);
        }
        State::Until(now + if waits { latency } else { self.timing.arrive })
    }

    /// Speeds of groups and of the tensor core, versus alone.
    fn rates(&self) -> (Vec<f64>, f64) {
        let timing = self.timing;
        let computing = |g: &Group| matches!(g.state, State::Computing(_));
        let of = |g: &Group, amount: f64| if computing(g) && g.alone > 0.0 { amount / g.alone } else { 0.0 };
        let special: f64 = self.groups.iter().map(|g| of(g, g.work.special_unit)).sum();
        let issue: f64 = self.groups.iter().map(|g| of(g, g.work.issue * timing.issue)).sum();
        let mma = self.running.map(|(m, _)| &self.mmas[m]);
        let read = mma.map_or(0.0, |m| m.shared_bytes / m.cycles);
        let shared: f64 =
            (read + self.groups.iter().map(|g| of(g, g.work.shared_bytes)).sum::<f64>()) / timing.shared_bytes;
        let stands = |g: &Group| match g.state {
            State::Issuing(m) => self.mmas[m].began.is_none() && self.running.is_some(),
            _ => false,
        };
        let rate = |(index, g): (usize, &Group)| {
            if !computing(g) {
                return 0.0;
            }
            let uses = [(g.work.special_unit, special), (g.work.issue, issue), (g.work.shared_bytes, shared)];
            let load = uses.into_iter().filter(|(own, _)| *own > 0.0).map(|(_, load)| load).fold(1.0, f64::max);
            let is_blocked = self.groups.iter().enumerate().any(|(k, g)| k != index && stands(g));
            1.0 / (load * if is_blocked { timing.blocked_issue } else { 1.0 })
        };
        let threads: Vec<f64> = self.groups.iter().enumerate().map(rate).collect();
        let overlap = if threads.iter().any(|r| *r > 0.0) { timing.threads_overlap } else { 1.0 };
        (threads, 1.0 / shared.max(1.0) / overlap)
    }

    /// When something happens next.
    fn next(&self, threads: &[f64], tensor: f64) -> Option<f64> {
        let groups = self.groups.iter().zip(threads).filter_map(|(g, rate)| match g.state {
            State::Computing(left) => Some(self.now + left.max(0.0) / rate),
            State::Until(time) => Some(time),
            _ => None,
        });
        let running = self.running.map(|(_, left)| self.now + left.max(0.0) / tensor);
        let start = match (self.running, self.queue.front()) {
            (None, Some(&first)) => Some(self.mmas[first].arrived + self.timing.mma_start),
            _ => None,
        };
        let copies = self.copies.iter().map(|(time, _)| *time);
        groups.chain(running).chain(start).chain(copies).min_by(f64::total_cmp).map(|time| time.max(self.now))
    }

    fn interval(&self, index: usize) -> LoopTime {
        let timestamps = |g: &Group| -> Vec<(f64, f64)> {
            g.timestamps.iter().filter(|m| m.0 == index).map(|m| (m.1, m.2)).collect()
        };
        let longest = self.groups.iter().map(timestamps).max_by_key(Vec::len).unwrap_or_default();
        let half = longest.len() / 2;
        match (longest.get(half), longest.last()) {
            (Some((from, before)), Some((to, after))) if half >= 2 => {
                let count = (longest.len() - 1 - half) as f64;
                LoopTime { interval: (to - from) / count, tensor: (after - before) / count }
            }
            _ => LoopTime::default(),
        }
    }
}

#[cfg(test)]
mod tests;
