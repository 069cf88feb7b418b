//! One scheduler with a warp of each group, cycle by cycle.

use super::instruction::{Instruction, SCOREBOARDS, Work};
use super::rates::Rates;
use std::collections::{BTreeMap, VecDeque};

/// A warp of a group.
struct Warp<'a> {
    code: &'a [Instruction],
    at: usize,
    /// When it may issue its next instruction.
    ready: f64,
    scoreboards: [f64; SCOREBOARDS],
    /// When it sees the end of each of its groups of MMAs.
    mmas: Vec<f64>,
    /// True if an MMA is begun and not committed.
    is_issuing_mmas: bool,
    barrier: Barrier,
    /// When it computed last.
    computed: f64,
    /// When each iteration ended.
    ends: Vec<f64>,
}

/// Where a warp stands with the named barrier that is its next instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Barrier {
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
    local: f64,
    slot: f64,
    /// Ends of MMAs that are under way.
    queue: VecDeque<f64>,
    /// The warp whose MMAs are taken.
    owner: Option<usize>,
    /// When its last was.
    held: f64,
    /// Groups that have arrived at each named barrier.
    arrived: BTreeMap<u32, u32>,
    last: usize,
    /// The state of a generator of numbers that look random (Marsaglia, Xorshift RNGs, 2003).
    random: u64,
}

/// Iterations that are simulated.
const ITERATIONS: usize = 24;

/// Simulations whose mean counts. Groups fall into one of several rhythms, by how they began and by what delays them a little; a
/// GPU, whose delays change all the time, is in each of them for some time.
const RUNS: usize = 6;

/// Cycles over which the beginnings of groups are spread, from run to run.
const PHASES: usize = 2048;

/// The number of these before the steady state.
const BEFORE: usize = 8;

/// A warp that computed this many cycles ago still does.
const COMPUTING: f64 = 10.0;

/// Looks without anything issued after which nothing ever will be.
const PATIENCE: u32 = 1000;

/// Cycles from an iteration to the next in the steady state, of a loop's code in each warp group that has it. `None` where
/// the groups wait for each other without end, or there is nothing.
///
/// A copy from global memory is complete.
pub fn cycles_of_loop(groups: &[Vec<Instruction>], rates: &Rates) -> Option<f64> {
    if groups.is_empty() || groups.iter().any(Vec::is_empty) {
        return None;
    }
    let mut sum = 0.0;
    for run in 0..RUNS {
        let mut scheduler = Scheduler::new(groups, *rates, run);
        scheduler.run()?;
        let interval = |warp: &Warp| (warp.ends[ITERATIONS - 1] - warp.ends[BEFORE - 1]) / (ITERATIONS - BEFORE) as f64;
        sum += scheduler.warps.iter().map(interval).max_by(f64::total_cmp)?;
    }
    Some(sum / RUNS as f64)
}

impl<'a> Scheduler<'a> {
    fn new(groups: &'a [Vec<Instruction>], rates: Rates, run: usize) -> Scheduler<'a> {
        let phase = (PHASES * run) as f64 / (RUNS * groups.len()) as f64;
        let warp = |(index, code): (usize, &'a Vec<Instruction>)| Warp {
            code,
            at: 0,
            ready: phase * index as f64,
            scoreboards: [0.0; SCOREBOARDS],
            mmas: Vec::new(),
            is_issuing_mmas: false,
            barrier: Barrier::No,
            computed: f64::NEG_INFINITY,
            ends: Vec::new(),
        };
        Scheduler {
            rates,
            warps: groups.iter().enumerate().map(warp).collect(),
            now: 0.0,
            tensor: 0.0,
            fma: 0.0,
            alu: 0.0,
            special: 0.0,
            shared: 0.0,
            local: 0.0,
            slot: 0.0,
            queue: VecDeque::new(),
            owner: None,
            held: 0.0,
            arrived: BTreeMap::new(),
            last: 0,
            random: 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(run as u64 + 1),
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
                // The loop's first ping-pong slot was opened before it.
                None => self.open_slot()?,
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
        let overlap = |part: f64| 1.0 + if self.tensor > now { part } else { 0.0 };
        let (alu, special) = (overlap(rates.alu_overlap), overlap(rates.special_overlap));
        match instruction.work {
            Work::Mma { columns, from_registers, commits } => {
                // 32 bytes of each column, and of each of 64 rows.
                let rows = if from_registers { 0.0 } else { 64.0 };
                let reads = 32.0 * (f64::from(columns) + rows) / rates.shared_bytes;
                self.mma(index, f64::from(columns) / rates.columns, reads, commits).map(|()| 0.0)
            }
            Work::WaitMmas(left) => {
                let warp = &mut self.warps[index];
                let over = warp.mmas.len().checked_sub(left + 1).map_or(now, |last| warp.mmas[last]);
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
            Work::Local { words, is_load } => {
                let bytes = 4.0 * 128.0 * f64::from(words);
                self.local = self.local.max(now) + bytes / rates.local_bytes;
                Some(self.local - now + if is_load { rates.local_latency } else { 0.0 })
            }
            Work::Wait => Some(rates.wait + self.random() * rates.jitter),
            Work::NamedBarrier { barrier, groups, waits } => {
                self.named_barrier(index, barrier, groups, waits).then_some(0.0)
            }
            Work::Arrive | Work::Other => Some(0.0),
        }
    }

    /// MMAs are taken group by group: as long as a warp goes on with one that it has not committed, others stand at theirs.
    /// `cycles` of the tensor core, and of shared memory for the operands.
    fn mma(&mut self, index: usize, cycles: f64, reads: f64, commits: bool) -> Option<()> {
        if self.owner.is_some_and(|owner| owner != index) && self.now - self.held < self.rates.hold {
            return None;
        }
        (self.owner, self.held) = (Some(index), self.now);
        if self.queue.len() >= self.rates.queue {
            return None;
        }
        let computes = |(other, warp): (usize, &Warp)| other != index && self.now - warp.computed < COMPUTING;
        let is_slower = self.warps.iter().enumerate().any(computes);
        let cycles = cycles * if is_slower { 1.0 + self.rates.mma_overlap } else { 1.0 };
        let warp = &mut self.warps[index];
        let latency = if warp.is_issuing_mmas { 0.0 } else { self.rates.start };
        let begin = self.tensor.max(self.now + latency);
        self.shared = self.shared.max(begin) + reads;
        self.tensor = (begin + cycles).max(self.shared);
        self.queue.push_back(self.tensor);
        warp.is_issuing_mmas = !commits;
        if commits {
            warp.mmas.push(self.tensor + self.rates.seen);
            self.owner = None;
        }
        Some(())
    }

    /// Returns whether a warp at a named barrier goes on.
    fn named_barrier(&mut self, index: usize, barrier: u32, groups: u32, waits: bool) -> bool {
        match self.warps[index].barrier {
            Barrier::Waiting(_) => return false,
            Barrier::Over => {
                self.warps[index].barrier = Barrier::No;
                return true;
            }
            Barrier::No => {}
        }
        *self.arrived.entry(barrier).or_default() += 1;
        if self.arrived[&barrier] >= groups {
            self.arrived.remove(&barrier);
            self.release(barrier);
            if waits {
                self.warps[index].ready = self.now + self.rates.named_barrier;
                self.warps[index].barrier = Barrier::Over;
            }
            return !waits;
        }
        if waits {
            self.warps[index].barrier = Barrier::Waiting(barrier);
        }
        !waits
    }

    fn release(&mut self, barrier: u32) {
        for warp in self.warps.iter_mut().filter(|w| w.barrier == Barrier::Waiting(barrier)) {
            warp.barrier = Barrier::Over;
            warp.ready = warp.ready.max(self.now + self.rates.named_barrier);
        }
    }

    /// All wait at named barriers: the one that is least far goes on, by an arrival before the loop.
    fn open_slot(&mut self) -> Option<()> {
        let waiting = |warp: &&Warp| matches!(warp.barrier, Barrier::Waiting(_));
        let least = self.warps.iter().filter(waiting).min_by_key(|warp| warp.ends.len())?;
        if let Barrier::Waiting(barrier) = least.barrier {
            self.arrived.remove(&barrier);
            self.release(barrier);
        }
        Some(())
    }

    fn advance(&mut self, index: usize, instruction: Instruction, latency: f64) {
        let now = self.now;
        let overlap = if self.tensor > now { self.rates.issue_overlap } else { 0.0 };
        let operand = match instruction.work {
            Work::Mma { from_registers: true, .. } => self.rates.register_operand,
            _ => 0.0,
        };
        self.slot = self.slot.max(now - 1.0) + self.rates.issue * (1.0 + overlap) + operand;
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

    /// From 0 to 1.
    fn random(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// When something may change; `None` if all who are not done wait for each other.
    fn next(&self) -> Option<f64> {
        let warps = self.warps.iter().filter(|w| !w.is_done() && !matches!(w.barrier, Barrier::Waiting(_)));
        let own = warps.flat_map(|w| w.scoreboards.into_iter().chain([w.ready]));
        let held = self.owner.map(|_| self.held + self.rates.hold);
        let units =
            [self.slot, self.fma, self.alu, self.special].into_iter().chain(self.queue.front().copied()).chain(held);
        own.chain(units).filter(|time| *time > self.now).min_by(f64::total_cmp)
    }
}

/// Takes a unit for N cycles, if it is free.
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
