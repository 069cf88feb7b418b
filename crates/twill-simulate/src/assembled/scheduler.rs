//! One scheduler with a warp of each group, cycle by cycle.

use super::instruction::{Instruction, SCOREBOARDS, Work};
use crate::Timing;
use std::collections::{BTreeMap, VecDeque};
use twill_machine::Machine;

/// How long instructions keep a scheduler's units busy, in cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Columns of 64 rows that the tensor core multiplies by 32 bytes of depth in a cycle.
    pub columns: f64,
    /// Multiplies that may be under way; a warp stands at the next.
    pub queue: usize,
    /// Bytes of shared memory that one multiprocessor moves in a cycle.
    pub shared_bytes: f64,
    /// Of an issue slot.
    pub issue: f64,
    /// From the first instruction of a multiply until an idle tensor core begins.
    pub start: f64,
    /// From the end of a multiply until the warp that waits for it goes on.
    pub seen: f64,
    /// Of the unit that multiplies and adds.
    pub fma: f64,
    /// Of the unit that compares, selects, counts.
    pub alu: f64,
    /// Of the same unit, for a conversion.
    pub convert: f64,
    /// Of the special-function unit.
    pub special: f64,
    /// From an instruction of the special-function unit to its result.
    pub special_latency: f64,
    /// From an exchange between threads to its result.
    pub exchange_latency: f64,
    /// From an access to shared memory to its result.
    pub memory_latency: f64,
    /// Of a wait for a phase that is complete.
    pub wait: f64,
    /// From the last that comes to a named barrier until those that wait go on.
    pub meet: f64,
    /// How much longer, in part, the special-function unit takes while the tensor core multiplies.
    pub special_beside: f64,
    /// The same of the unit that compares.
    pub alu_beside: f64,
    /// The same of issue slots.
    pub issue_beside: f64,
    /// How much longer, in part, multiplies take while another warp computes.
    pub multiply_beside: f64,
}

impl Rates {
    /// Those of a machine whose warp groups start multiplies that leave their results in registers (Hopper); of others nothing
    /// is known. The tensor core's and shared memory's are the machine's, all else is an H200's.
    pub fn of(machine: &Machine) -> Option<Rates> {
        let timing = Timing::of(machine)?;
        let hopper = Rates::hopper();
        let columns = hopper.columns * timing.multiply_flop / Timing::hopper().multiply_flop;
        let shared_bytes = hopper.shared_bytes * timing.shared_bytes / Timing::hopper().shared_bytes;
        Some(Rates { columns, shared_bytes, ..hopper })
    }

    /// An H200: chosen so that 71 kernels come out, the eight schedules of five kernels among them
    /// (`bench/results/2026-11-22-assembled.md`); microbenchmarks give most of these numbers, but for one unit at a time.
    pub fn hopper() -> Rates {
        Rates {
            columns: 2.0,
            queue: 7,
            shared_bytes: 110.5,
            issue: 1.675,
            start: 12.5,
            seen: 35.8,
            fma: 1.749,
            alu: 1.526,
            convert: 1.131,
            special: 5.214,
            special_latency: 22.6,
            exchange_latency: 14.5,
            memory_latency: 32.7,
            wait: 31.2,
            meet: 14.5,
            special_beside: 0.422,
            alu_beside: 0.302,
            issue_beside: 0.142,
            multiply_beside: 0.15,
        }
    }
}

/// A warp of a group.
struct Warp<'a> {
    code: &'a [Instruction],
    at: usize,
    /// When it may issue its next instruction.
    ready: f64,
    scoreboards: [f64; SCOREBOARDS],
    /// When it sees the end of each of its groups of multiplies.
    multiplies: Vec<f64>,
    /// Whether a multiply is begun and not committed.
    is_multiplying: bool,
    meeting: Meeting,
    /// When it computed last.
    computed: f64,
    /// When each iteration ended.
    ends: Vec<f64>,
}

/// Where a warp stands with the named barrier that is its next instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meeting {
    No,
    Waiting(u32),
    Over,
}

struct Scheduler<'a> {
    rates: Rates,
    warps: Vec<Warp<'a>>,
    now: f64,
    /// Until when units are busy.
    tensor: f64,
    fma: f64,
    alu: f64,
    special: f64,
    shared: f64,
    slot: f64,
    /// Ends of multiplies that are under way.
    queue: VecDeque<f64>,
    /// The warp whose multiplies are taken.
    owner: Option<usize>,
    /// Groups that have come to each named barrier.
    came: BTreeMap<u32, u32>,
    last: usize,
}

/// Iterations that are simulated.
const ITERATIONS: usize = 24;

/// Of these, how many come before the steady state.
const BEFORE: usize = 8;

/// A warp that computed so many cycles ago still does.
const COMPUTING: f64 = 30.0;

/// Looks without anything issued after which nothing ever will be.
const PATIENCE: u32 = 1000;

/// Cycles from an iteration to the next in the steady state, of a loop's code in each warp group that has it. `None` where
/// the groups wait for each other without end, or there is nothing.
///
/// What is copied from global memory is there.
pub fn cycles_of_loop(groups: &[Vec<Instruction>], rates: &Rates) -> Option<f64> {
    if groups.is_empty() || groups.iter().any(Vec::is_empty) {
        return None;
    }
    let mut scheduler = Scheduler::new(groups, *rates);
    scheduler.run()?;
    let interval = |warp: &Warp| (warp.ends[ITERATIONS - 1] - warp.ends[BEFORE - 1]) / (ITERATIONS - BEFORE) as f64;
    scheduler.warps.iter().map(interval).max_by(f64::total_cmp)
}

impl<'a> Scheduler<'a> {
    fn new(groups: &'a [Vec<Instruction>], rates: Rates) -> Scheduler<'a> {
        let warp = |code: &'a Vec<Instruction>| Warp {
            code,
            at: 0,
            ready: 0.0,
            scoreboards: [0.0; SCOREBOARDS],
            multiplies: Vec::new(),
            is_multiplying: false,
            meeting: Meeting::No,
            computed: f64::NEG_INFINITY,
            ends: Vec::new(),
        };
        Scheduler {
            rates,
            warps: groups.iter().map(warp).collect(),
            now: 0.0,
            tensor: 0.0,
            fma: 0.0,
            alu: 0.0,
            special: 0.0,
            shared: 0.0,
            slot: 0.0,
            queue: VecDeque::new(),
            owner: None,
            came: BTreeMap::new(),
            last: 0,
        }
    }

    fn run(&mut self) -> Option<()> {
        let mut idle = 0;
        while self.warps.iter().any(|warp| !warp.is_done()) {
            while self.queue.front().is_some_and(|end| *end <= self.now) {
                self.queue.pop_front();
            }
            if self.issue() {
                (self.now, idle) = (self.now + 1.0, 0);
                continue;
            }
            idle += 1;
            match self.next() {
                Some(time) => self.now = time.ceil(),
                // The loop's first turns were given before it.
                None => self.give_turn()?,
            }
            if idle > PATIENCE {
                return None;
            }
        }
        Some(())
    }

    /// Issues one instruction, of the warp that issued last or else of those after it.
    fn issue(&mut self) -> bool {
        if self.slot > self.now {
            return false;
        }
        let (count, last) = (self.warps.len(), self.last);
        for index in (0..count).map(|step| (last + step) % count) {
            let warp = &self.warps[index];
            if warp.is_done() || warp.ready > self.now {
                continue;
            }
            let instruction = warp.code[warp.at];
            let waits = |(k, until): (usize, &f64)| instruction.waits >> k & 1 == 1 && *until > self.now;
            if warp.scoreboards.iter().enumerate().any(waits) {
                continue;
            }
            if let Some(latency) = self.take(index, instruction) {
                self.advance(index, instruction, latency);
                return true;
            }
        }
        false
    }

    /// Takes the unit that an instruction needs, and gives back when its result is there; `None` if it has to wait.
    fn take(&mut self, index: usize, instruction: Instruction) -> Option<f64> {
        let (now, rates) = (self.now, self.rates);
        let beside = |part: f64| 1.0 + if self.tensor > now { part } else { 0.0 };
        let (alu, special) = (beside(rates.alu_beside), beside(rates.special_beside));
        match instruction.work {
            Work::Multiply { columns, from_registers, commits } => {
                // 32 bytes of each column, and of each of 64 rows.
                let rows = if from_registers { 0.0 } else { 64.0 };
                let reads = 32.0 * (f64::from(columns) + rows) / rates.shared_bytes;
                self.multiply(index, f64::from(columns) / rates.columns, reads, commits).map(|()| 0.0)
            }
            Work::WaitMultiplies(left) => {
                let warp = &mut self.warps[index];
                let over = warp.multiplies.len().checked_sub(left + 1).map_or(now, |last| warp.multiplies[last]);
                if over > now {
                    warp.ready = over;
                    return None;
                }
                Some(0.0)
            }
            Work::Fma => busy(&mut self.fma, now, rates.fma).map(|()| 0.0),
            Work::Alu => busy(&mut self.alu, now, rates.alu * alu).map(|()| 0.0),
            Work::Convert => busy(&mut self.alu, now, rates.convert * alu).map(|()| 0.0),
            Work::Special => busy(&mut self.special, now, rates.special * special).map(|()| rates.special_latency),
            Work::Exchange => Some(rates.exchange_latency),
            Work::Memory { shared_bytes: 0 } => Some(rates.memory_latency),
            Work::Memory { shared_bytes } => {
                // All four schedulers do the same.
                let bytes = 4.0 * f64::from(shared_bytes);
                self.shared = self.shared.max(now) + bytes / rates.shared_bytes;
                Some(self.shared - now + rates.memory_latency)
            }
            Work::Wait => Some(rates.wait),
            Work::Meet { barrier, groups, waits } => self.meet(index, barrier, groups, waits).then_some(0.0),
            Work::Arrive | Work::Other => Some(0.0),
        }
    }

    /// Multiplies are taken group by group: as long as a warp has not committed, others stand at theirs. `cycles` of the
    /// tensor core, and of shared memory for the operands.
    fn multiply(&mut self, index: usize, cycles: f64, reads: f64, commits: bool) -> Option<()> {
        if self.owner.is_some_and(|owner| owner != index) {
            return None;
        }
        self.owner = Some(index);
        if self.queue.len() >= self.rates.queue {
            return None;
        }
        let computes = |(other, warp): (usize, &Warp)| other != index && self.now - warp.computed < COMPUTING;
        let is_slower = self.warps.iter().enumerate().any(computes);
        let cycles = cycles * if is_slower { 1.0 + self.rates.multiply_beside } else { 1.0 };
        let warp = &mut self.warps[index];
        let latency = if warp.is_multiplying { 0.0 } else { self.rates.start };
        let begin = self.tensor.max(self.now + latency);
        self.shared = self.shared.max(begin) + reads;
        self.tensor = (begin + cycles).max(self.shared);
        self.queue.push_back(self.tensor);
        warp.is_multiplying = !commits;
        if commits {
            warp.multiplies.push(self.tensor + self.rates.seen);
            self.owner = None;
        }
        Some(())
    }

    /// Whether a warp at a named barrier goes on.
    fn meet(&mut self, index: usize, barrier: u32, groups: u32, waits: bool) -> bool {
        match self.warps[index].meeting {
            Meeting::Waiting(_) => return false,
            Meeting::Over => {
                self.warps[index].meeting = Meeting::No;
                return true;
            }
            Meeting::No => {}
        }
        *self.came.entry(barrier).or_default() += 1;
        if self.came[&barrier] >= groups {
            self.came.remove(&barrier);
            self.release(barrier);
            if waits {
                self.warps[index].ready = self.now + self.rates.meet;
                self.warps[index].meeting = Meeting::Over;
            }
            return !waits;
        }
        if waits {
            self.warps[index].meeting = Meeting::Waiting(barrier);
        }
        !waits
    }

    fn release(&mut self, barrier: u32) {
        for warp in self.warps.iter_mut().filter(|w| w.meeting == Meeting::Waiting(barrier)) {
            warp.meeting = Meeting::Over;
            warp.ready = warp.ready.max(self.now + self.rates.meet);
        }
    }

    /// All wait at named barriers: the one that is least far goes on, by an arrival before the loop.
    fn give_turn(&mut self) -> Option<()> {
        let waiting = |warp: &&Warp| matches!(warp.meeting, Meeting::Waiting(_));
        let least = self.warps.iter().filter(waiting).min_by_key(|warp| warp.ends.len())?;
        if let Meeting::Waiting(barrier) = least.meeting {
            self.came.remove(&barrier);
            self.release(barrier);
        }
        Some(())
    }

    fn advance(&mut self, index: usize, instruction: Instruction, latency: f64) {
        let now = self.now;
        let beside = if self.tensor > now { self.rates.issue_beside } else { 0.0 };
        self.slot = self.slot.max(now - 1.0) + self.rates.issue * (1.0 + beside);
        self.last = index;
        let warp = &mut self.warps[index];
        for scoreboard in [instruction.writes, instruction.reads].into_iter().flatten() {
            let until = &mut warp.scoreboards[usize::from(scoreboard)];
            *until = until.max(now + latency);
        }
        warp.ready = now + f64::from(instruction.stall.max(1));
        if matches!(instruction.work, Work::Fma | Work::Alu | Work::Convert | Work::Special) {
            warp.computed = now;
        }
        warp.at += 1;
        if warp.at == warp.code.len() {
            warp.at = 0;
            warp.ends.push(now);
        }
    }

    /// When something may change; `None` if all who are not done wait for each other.
    fn next(&self) -> Option<f64> {
        let warps = self.warps.iter().filter(|w| !w.is_done() && !matches!(w.meeting, Meeting::Waiting(_)));
        let own = warps.flat_map(|w| w.scoreboards.into_iter().chain([w.ready]));
        let units = [self.slot, self.fma, self.alu, self.special].into_iter().chain(self.queue.front().copied());
        own.chain(units).filter(|time| *time > self.now).min_by(f64::total_cmp)
    }
}

/// Takes a unit for so many cycles, if it is free.
fn busy(unit: &mut f64, now: f64, cycles: f64) -> Option<()> {
    (*unit <= now).then(|| *unit = unit.max(now - 1.0) + cycles)
}

impl Warp<'_> {
    fn is_done(&self) -> bool {
        self.ends.len() >= ITERATIONS
    }
}

#[cfg(test)]
mod tests;
