//! The proof for one case: one run, in which the order that matters is forced, stands for all runs.
//!
//! The program is run once, in any order, with vector clocks. Event `a` is *before* `b` if it is so
//! by program order, by the order in which asynchronous units work, or by a chain of waits, each after
//! all arrivals of the phase that it waits for. Demanded are
//!
//! 1. every arrival of a phase is before every one of the next phase of the same barrier (`mbarrier`
//!    and named barrier alike);
//! 2. what precedes a wait for `n` complete phases is after all arrivals of phase `n - 2` (the first is
//!    phase 0), and the wait is before some arrival of phase `n`, if there is one;
//! 3. of two accesses to a slot, one a write, the one that came first ends before the other starts, and
//!    a fence that is needed lies between them; MMAs of one process are in order anyhow;
//! 4. everything asynchronous ends before the end of some process;
//! 5. this run has no fault.
//!
//! Then no run has one. Take another run, and in it the first event `e` that does not have all events
//! after it that are before it. By what was done earlier, the set `D`, closed towards the past, and by 1
//! the complete phases of a barrier in `D` are the same ones as here. If `e` is a wait for `n` phases, 2 says
//! that `n - 1` or `n` are complete, and of these the parity admits `n`: all arrivals are after it. Other
//! events are not even enabled sooner. So there is no such `e`, every prefix of every run is closed towards the past,
//! and an event whose past is complete can always be taken: no run gets stuck. By 3 every slot sees
//! the same accesses in the same order, so reads find what they find here.
//!
//! Loads into one slot are one chain of the clocks, since 3 orders them (the first pair that is not ordered
//! is found while the chain is one).

use super::clock::{Clock, Epoch, join};
use super::fault::Fault;
use super::machine::{Machine, State, Transition};
use super::unrolled::ProtocolOp;
use super::uses::{Access, Uses};
use twill_graph::saturate;

/// Why this run does not stand for all.
#[derive(Debug)]
pub(super) enum Doubt {
    /// It is wrong itself.
    Fault(Vec<Transition>, Fault),
    /// Something may come sooner or later than it did. These steps, taken first, should show it.
    Unordered(Vec<Transition>),
}

struct Run<'m, 'a> {
    machine: &'m Machine<'a>,
    state: State,
    /// Steps with their epochs and clocks.
    steps: Vec<(Transition, Epoch)>,
    clocks: Vec<Clock>,
    /// The past of each process's next event.
    now: Vec<Clock>,
    uses: Uses,
    /// Steps that arrived at each barrier.
    arrivals: Vec<Vec<usize>>,
    /// Waits at each barrier: phases and epoch.
    waits: Vec<Vec<(u32, Epoch)>>,
    /// Steps that came to each named barrier.
    named: Vec<Vec<usize>>,
    /// Steps that issued each process's MMAs and stores, and those that finished them.
    issued: [Vec<Vec<usize>>; 2],
    finished: [Vec<Vec<usize>>; 2],
}

/// Runs the program once, and says why that is not enough, if it is not.
pub(super) fn prove(machine: &Machine<'_>) -> Result<(), Doubt> {
    let unrolled = machine.unrolled;
    let (processes, slots) = (unrolled.ops.len(), unrolled.slots.len());
    let lists = |count: usize| vec![Vec::new(); count];
    let mut run = Run {
        machine,
        state: machine.start(),
        steps: Vec::new(),
        clocks: Vec::new(),
        now: vec![vec![0; 3 * processes + slots]; processes],
        uses: Uses::new(slots, 3 * processes),
        arrivals: lists(unrolled.barriers.len()),
        waits: vec![Vec::new(); unrolled.barriers.len()],
        named: lists(unrolled.system.named_barriers.len()),
        issued: [lists(processes), lists(processes)],
        finished: [lists(processes), lists(processes)],
    };
    machine.look(&run.state).map_err(|fault| Doubt::Fault(Vec::new(), fault))?;
    while run.round()? {}
    if let Err(fault) = machine.stuck(&run.state) {
        return Err(Doubt::Fault(run.taken(), fault));
    }
    run.ends()
}

impl Run<'_, '_> {
    /// Every process goes as far as it can, then everything asynchronous ends. False if nothing happened.
    fn round(&mut self) -> Result<bool, Doubt> {
        let before = self.steps.len();
        let unrolled = self.machine.unrolled;
        for p in 0..unrolled.ops.len() {
            while self.machine.enabled(&self.state, Transition::Do(p)) {
                self.perform(p)?;
            }
        }
        for slot in 0..unrolled.slots.len() {
            if let Some((p, at)) = self.machine.loading(&self.state, slot) {
                let (epoch, issued) = self.uses.last_load(slot);
                let clock = self.clocks[issued].clone();
                let barriers: &[usize] = match &unrolled.ops[p][at] {
                    ProtocolOp::Load { barrier, .. } => std::slice::from_ref(barrier),
                    _ => &[],
                };
                self.finish(Transition::FinishLoad(slot), epoch, clock, barriers)?;
            }
        }
        for p in 0..unrolled.ops.len() {
            while let Some(&at) = self.machine.mmas_in_flight(&self.state, p).first() {
                let signals: &[usize] = match &unrolled.ops[p][at] {
                    ProtocolOp::Mma { signals, .. } => signals,
                    _ => &[],
                };
                self.finish_in_order(0, p, Transition::FinishMma(p), signals)?;
            }
            while !self.machine.storing(&self.state, p).is_empty() {
                self.finish_in_order(1, p, Transition::FinishStore(p), &[])?;
            }
        }
        Ok(self.steps.len() > before)
    }

    fn finish_in_order(&mut self, unit: usize, p: usize, step: Transition, signals: &[usize]) -> Result<(), Doubt> {
        let done = self.finished[unit][p].len();
        let mut clock = self.clocks[self.issued[unit][p][done]].clone();
        if let Some(&last) = self.finished[unit][p].last() {
            join(&mut clock, &self.clocks[last]);
        }
        let epoch = self.asynchronous(unit, p, done + 1);
        self.finished[unit][p].push(self.steps.len());
        self.finish(step, epoch, clock, signals)
    }

    fn asynchronous(&self, unit: usize, p: usize, count: usize) -> Epoch {
        Epoch { chain: (1 + unit) * self.now.len() + p, index: index(count) }
    }

    fn finish(&mut self, step: Transition, epoch: Epoch, mut clock: Clock, signals: &[usize]) -> Result<(), Doubt> {
        clock[epoch.chain] = epoch.index;
        let at = self.push(step, epoch, clock);
        for &barrier in signals {
            self.arrive(barrier, at)?;
        }
        self.take(step)
    }

    fn perform(&mut self, p: usize) -> Result<(), Doubt> {
        let Some(op) = self.machine.next(&self.state, p) else { return Ok(()) };
        match op {
            ProtocolOp::Wait { barrier, target } => self.wait(p, *barrier, *target)?,
            ProtocolOp::MmaWait(most) => self.wait_until_finished(0, p, *most),
            ProtocolOp::StoreWait(most) => self.wait_until_finished(1, p, *most),
            _ => {}
        }
        let epoch = Epoch { chain: p, index: self.now[p][p] + 1 };
        self.now[p][p] += 1;
        let at = self.push(Transition::Do(p), epoch, self.now[p].clone());
        match op {
            ProtocolOp::Wait { barrier, target } => self.waits[*barrier].push((*target, epoch)),
            ProtocolOp::Arrive { barrier } => self.arrive(*barrier, at)?,
            ProtocolOp::Fence => self.uses.fence(p, epoch),
            ProtocolOp::Mma { .. } => self.issued[0][p].push(at),
            ProtocolOp::Store(_) => self.issued[1][p].push(at),
            ProtocolOp::NamedBarrierSync(named) | ProtocolOp::NamedBarrierArrive(named) => {
                self.arrive_at_named_barrier(*named, at)?
            }
            _ => {}
        }
        self.touch(p, op, epoch, at)?;
        self.take(Transition::Do(p))
    }

    /// Lets the machine take the step, which has been pushed.
    fn take(&mut self, step: Transition) -> Result<(), Doubt> {
        self.machine.take(&mut self.state, step).map_err(|fault| Doubt::Fault(self.taken(), fault))
    }

    fn push(&mut self, step: Transition, epoch: Epoch, clock: Clock) -> usize {
        self.steps.push((step, epoch));
        self.clocks.push(clock);
        self.steps.len() - 1
    }

    fn taken(&self) -> Vec<Transition> {
        self.steps.iter().map(|&(step, _)| step).collect()
    }

    /// The past of an event may happen without the rest.
    fn doubt(&self, clock: &[u32]) -> Doubt {
        Doubt::Unordered(self.steps.iter().filter(|(_, epoch)| epoch.before(clock)).map(|&(step, _)| step).collect())
    }

    fn all_before(&self, steps: &[usize], clock: &[u32]) -> bool {
        steps.iter().all(|&step| self.steps[step].1.before(clock))
    }

    fn phase(&self, barrier: usize, phase: usize) -> &[usize] {
        let arrivals = self.machine.unrolled.arrivals(barrier);
        &self.arrivals[barrier][phase * arrivals..(phase + 1) * arrivals]
    }

    fn wait(&mut self, p: usize, barrier: usize, target: u32) -> Result<(), Doubt> {
        let target = target as usize;
        if target >= 2 && !self.all_before(self.phase(barrier, target - 2), &self.now[p]) {
            return Err(self.doubt(&self.now[p]));
        }
        if target >= 1 {
            for arrival in self.phase(barrier, target - 1).to_vec() {
                join(&mut self.now[p], &self.clocks[arrival]);
            }
        }
        Ok(())
    }

    fn wait_until_finished(&mut self, unit: usize, p: usize, most: u32) {
        let issued = self.issued[unit][p].len();
        if let Some(last) = issued.checked_sub(most as usize).and_then(|count| count.checked_sub(1)) {
            join(&mut self.now[p], &self.clocks[self.finished[unit][p][last]]);
        }
    }

    fn arrive(&mut self, barrier: usize, at: usize) -> Result<(), Doubt> {
        let count = self.machine.unrolled.arrivals(barrier);
        let phase = self.arrivals[barrier].len() / count;
        if phase > 0 && !self.all_before(self.phase(barrier, phase - 1), &self.clocks[at]) {
            return Err(self.doubt(&self.clocks[at]));
        }
        self.arrivals[barrier].push(at);
        if self.arrivals[barrier].len() == (phase + 1) * count {
            let arrivals = self.phase(barrier, phase);
            let held_back = |epoch: Epoch| arrivals.iter().any(|&a| epoch.before(&self.clocks[a]));
            let passed = |&(target, epoch): &(u32, Epoch)| target as usize != phase || held_back(epoch);
            if !self.waits[barrier].iter().all(passed) {
                let mut clock = self.clocks[at].clone();
                arrivals.iter().for_each(|&a| join(&mut clock, &self.clocks[a]));
                return Err(self.doubt(&clock));
            }
            self.waits[barrier].retain(|&(target, _)| target as usize > phase);
        }
        Ok(())
    }

    fn arrive_at_named_barrier(&mut self, named: usize, at: usize) -> Result<(), Doubt> {
        let participants = self.machine.unrolled.system.named_barriers[named].participants as usize;
        let opened = self.named[named].len() / participants * participants;
        if opened > 0 && !self.all_before(&self.named[named][opened - participants..opened], &self.clocks[at]) {
            return Err(self.doubt(&self.clocks[at]));
        }
        self.named[named].push(at);
        if self.named[named].len() == opened + participants {
            let together = self.named[named][opened..].to_vec();
            for &one in &together {
                let Transition::Do(p) = self.steps[one].0 else { continue };
                if one == at || self.machine.held(&self.state, named) & (1 << p) != 0 {
                    let waits = matches!(self.machine.next(&self.state, p), Some(ProtocolOp::NamedBarrierSync(_)));
                    for &other in together.iter().filter(|_| waits) {
                        join(&mut self.now[p], &self.clocks[other]);
                    }
                }
            }
        }
        Ok(())
    }

    /// Accesses are after those that they must be after.
    fn touch(&mut self, p: usize, op: &ProtocolOp, epoch: Epoch, at: usize) -> Result<(), Doubt> {
        let end = match op {
            ProtocolOp::Mma { .. } => self.asynchronous(0, p, self.issued[0][p].len()),
            ProtocolOp::Store(_) => self.asynchronous(1, p, self.issued[1][p].len()),
            _ => epoch,
        };
        let ordered = self.uses.touch(op, Access { process: p, step: at, end, clock: &self.clocks[at] });
        if ordered { Ok(()) } else { Err(self.doubt(&self.clocks[at])) }
    }

    /// Everything asynchronous has ended when the last process does.
    fn ends(&self) -> Result<(), Doubt> {
        let mut end = vec![0; self.now.first().map_or(0, Vec::len)];
        self.now.iter().for_each(|clock| join(&mut end, clock));
        let all = self.steps.iter().all(|(_, epoch)| epoch.before(&end));
        if all { Ok(()) } else { Err(self.doubt(&end)) }
    }
}

fn index(count: usize) -> u32 {
    saturate::<u32>(count)
}
