//! The steps of processes and asynchronous units, and the faults: the semantics of an unrolled system.

use super::fault::{Fault, Use};
use super::unrolled::{ProtocolOp, UnrolledSystem};
use twill_graph::saturate;

/// A step of a process or of an asynchronous unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transition {
    /// A process does what is next.
    Do(usize),
    /// The load into a slot arrives.
    FinishLoad(usize),
    /// A process's oldest MMA finishes.
    FinishMma(usize),
    /// A process's oldest store has read.
    FinishStore(usize),
}

/// Where everything stands, as a list of small numbers, whose places [`Machine`] knows.
pub(super) type State = Box<[u16]>;

/// Interprets an unrolled system.
#[derive(Debug)]
pub(super) struct Machine<'a> {
    pub(super) unrolled: &'a UnrolledSystem<'a>,
    slots: usize,
    barriers: usize,
    named: usize,
    size: usize,
    /// MMAs and stores that a process has issued when it stands at a position.
    issued: Vec<Vec<(u16, u16)>>,
}

impl<'a> Machine<'a> {
    pub(super) fn new(unrolled: &'a UnrolledSystem<'a>) -> Machine<'a> {
        let slots = 3 * unrolled.ops.len();
        let barriers = slots + 4 * unrolled.slots.len();
        let named = barriers + 2 * unrolled.barriers.len();
        let counted = |ops: &Vec<ProtocolOp>| {
            let mut count = (0, 0);
            let mut list = vec![count];
            for op in ops {
                match op {
                    ProtocolOp::Mma { .. } => count.0 += 1,
                    ProtocolOp::Store(_) => count.1 += 1,
                    _ => {}
                }
                list.push(count);
            }
            list
        };
        let issued = unrolled.ops.iter().map(counted).collect();
        Machine { unrolled, slots, barriers, named, size: named + 2 * unrolled.system.named_barriers.len(), issued }
    }

    pub(super) fn start(&self) -> State {
        vec![0; self.size].into()
    }

    pub(super) fn position(&self, s: &State, p: usize) -> usize {
        usize::from(s[3 * p])
    }

    /// The next operation of the process.
    pub(super) fn next(&self, s: &State, p: usize) -> Option<&'a ProtocolOp> {
        self.unrolled.ops[p].get(self.position(s, p))
    }

    /// Positions of the MMAs of a process that are under way.
    pub(super) fn mmas_in_flight(&self, s: &State, p: usize) -> &'a [usize] {
        let issued = self.issued[p][self.position(s, p)].0;
        &self.unrolled.mmas[p][usize::from(s[3 * p + 1])..usize::from(issued)]
    }

    /// Positions of the stores of a process that still read.
    pub(super) fn storing(&self, s: &State, p: usize) -> &'a [usize] {
        let issued = self.issued[p][self.position(s, p)].1;
        &self.unrolled.stores[p][usize::from(s[3 * p + 2])..usize::from(issued)]
    }

    /// The load into this slot that is under way.
    pub(super) fn loading(&self, s: &State, slot: usize) -> Option<(usize, usize)> {
        let id = usize::from(s[self.slots + 4 * slot + 1]);
        (id > 0).then(|| self.unrolled.loads[id - 1])
    }

    /// The value in a slot; 0 is none.
    pub(super) fn content(&self, s: &State, slot: usize) -> u16 {
        s[self.slots + 4 * slot]
    }

    /// The process whose threads wrote a slot and have not made that visible to asynchronous units.
    pub(super) fn unfenced(&self, s: &State, slot: usize) -> Option<usize> {
        usize::from(s[self.slots + 4 * slot + 2]).checked_sub(1)
    }

    /// A process whose threads have read a slot without a fence since.
    pub(super) fn unfenced_reader(&self, s: &State, slot: usize) -> Option<usize> {
        let readers = s[self.slots + 4 * slot + 3];
        (readers != 0).then(|| readers.trailing_zeros() as usize)
    }

    /// Phases of a barrier that are complete.
    pub(super) fn completed(&self, s: &State, barrier: usize) -> u32 {
        u32::from(s[self.barriers + 2 * barrier])
    }

    /// Arrivals in the phase that is not complete.
    pub(super) fn pending(&self, s: &State, barrier: usize) -> usize {
        usize::from(s[self.barriers + 2 * barrier + 1])
    }

    /// Processes that have arrived at a named barrier and count for the next time it opens, as bits.
    pub(super) fn arrived(&self, s: &State, named: usize) -> u16 {
        s[self.named + 2 * named]
    }

    /// Those of them that wait for it to open.
    pub(super) fn held(&self, s: &State, named: usize) -> u16 {
        s[self.named + 2 * named + 1]
    }

    pub(super) fn enabled(&self, s: &State, step: Transition) -> bool {
        match step {
            Transition::Do(p) => match self.next(s, p) {
                None => false,
                Some(ProtocolOp::Wait { barrier, target }) => self.completed(s, *barrier) % 2 == target % 2,
                Some(ProtocolOp::MmaWait(most)) => self.mmas_in_flight(s, p).len() <= *most as usize,
                Some(ProtocolOp::StoreWait(most)) => self.storing(s, p).len() <= *most as usize,
                Some(ProtocolOp::NamedBarrierSync(named)) => self.held(s, *named) & (1 << p) == 0,
                Some(_) => true,
            },
            Transition::FinishLoad(slot) => self.loading(s, slot).is_some(),
            Transition::FinishMma(p) => !self.mmas_in_flight(s, p).is_empty(),
            Transition::FinishStore(p) => !self.storing(s, p).is_empty(),
        }
    }

    /// Every step that can be taken.
    pub(super) fn steps(&self, s: &State) -> Vec<Transition> {
        let processes = 0..self.unrolled.ops.len();
        let all = processes
            .clone()
            .map(Transition::Do)
            .chain((0..self.unrolled.slots.len()).map(Transition::FinishLoad))
            .chain(processes.clone().map(Transition::FinishMma))
            .chain(processes.map(Transition::FinishStore));
        all.filter(|&step| self.enabled(s, step)).collect()
    }

    /// Takes a step that is enabled.
    ///
    /// # Errors
    /// The fault in it, or in the state to which it leads.
    pub(super) fn take(&self, s: &mut State, step: Transition) -> Result<(), Fault> {
        match step {
            Transition::Do(p) => self.perform(s, p)?,
            Transition::FinishLoad(slot) => {
                let load = self.loading(s, slot);
                s[self.slots + 4 * slot + 1] = 0;
                if let Some(ProtocolOp::Load { barrier, .. }) = load.map(|(p, at)| &self.unrolled.ops[p][at]) {
                    self.arrive(s, *barrier);
                }
            }
            Transition::FinishMma(p) => {
                let mma = self.mmas_in_flight(s, p).first();
                s[3 * p + 1] += 1;
                if let Some(ProtocolOp::Mma { signals, .. }) = mma.map(|&at| &self.unrolled.ops[p][at]) {
                    signals.iter().for_each(|&barrier| self.arrive(s, barrier));
                }
            }
            Transition::FinishStore(p) => s[3 * p + 2] += 1,
        }
        self.look(s)
    }

    fn perform(&self, s: &mut State, p: usize) -> Result<(), Fault> {
        let Some(op) = self.next(s, p) else { return Ok(()) };
        for access in op.reads() {
            self.may_read(s, p, op, *access)?;
        }
        for access in op.writes() {
            self.may_write(s, p, op, *access)?;
        }
        for access in op.writes() {
            let slot = self.slots + 4 * access.slot;
            s[slot] = access.value;
            s[slot + 1] = if let ProtocolOp::Load { id, .. } = op { id + 1 } else { 0 };
            s[slot + 2] = if let ProtocolOp::Write(_) = op { as_number(p) + 1 } else { 0 };
            s[slot + 3] = 0;
        }
        if let ProtocolOp::Read(access) = op {
            s[self.slots + 4 * access.slot + 3] |= 1 << p;
        }
        match op {
            ProtocolOp::Arrive { barrier } => self.arrive(s, *barrier),
            ProtocolOp::Fence => {
                for slot in 0..self.unrolled.slots.len() {
                    let unfenced = &mut s[self.slots + 4 * slot + 2];
                    *unfenced = if *unfenced == as_number(p) + 1 { 0 } else { *unfenced };
                    s[self.slots + 4 * slot + 3] &= !(1 << p);
                }
            }
            ProtocolOp::NamedBarrierSync(named) | ProtocolOp::NamedBarrierArrive(named) => {
                let before = self.arrived(s, *named);
                if before & (1 << p) != 0 {
                    return Err(Fault::TwiceAtNamed { process: p, named: *named });
                }
                let now = before | 1 << p;
                if now.count_ones() < self.unrolled.system.named_barriers[*named].participants {
                    s[self.named + 2 * named] = now;
                    if matches!(op, ProtocolOp::NamedBarrierSync(_)) {
                        s[self.named + 2 * named + 1] |= 1 << p;
                        return Ok(());
                    }
                } else {
                    let held = self.held(s, *named);
                    for other in (0..self.unrolled.ops.len()).filter(|&q| held & (1 << q) != 0) {
                        s[3 * other] += 1;
                    }
                    (s[self.named + 2 * named], s[self.named + 2 * named + 1]) = (0, 0);
                }
            }
            _ => {}
        }
        s[3 * p] += 1;
        Ok(())
    }

    fn arrive(&self, s: &mut State, barrier: usize) {
        let at = self.barriers + 2 * barrier;
        s[at + 1] += 1;
        if usize::from(s[at + 1]) == self.unrolled.arrivals(barrier) {
            (s[at], s[at + 1]) = (s[at] + 1, 0);
        }
    }

    /// Nobody stands at a wait whose barrier is not in the phase before or after, and the end is quiet.
    pub(super) fn look(&self, s: &State) -> Result<(), Fault> {
        let mut ended = true;
        for p in 0..self.unrolled.ops.len() {
            let next = self.next(s, p);
            ended &= next.is_none();
            if let Some(&ProtocolOp::Wait { barrier, target }) = next {
                let completed = self.completed(s, barrier);
                if completed > target || completed + 1 < target {
                    return Err(Fault::PhaseSlip { process: p, barrier, target, completed });
                }
            }
        }
        if ended {
            for slot in 0..self.unrolled.slots.len() {
                if let Some((owner, _)) = self.loading(s, slot) {
                    return Err(Fault::Unfinished { by: Use::Load(owner) });
                }
            }
            for p in 0..self.unrolled.ops.len() {
                if !self.mmas_in_flight(s, p).is_empty() {
                    return Err(Fault::Unfinished { by: Use::MmaReads(p) });
                }
                if !self.storing(s, p).is_empty() {
                    return Err(Fault::Unfinished { by: Use::Store(p) });
                }
            }
        }
        Ok(())
    }

    /// Nobody can take a step: all is done, or nobody will ever be.
    pub(super) fn stuck(&self, s: &State) -> Result<(), Fault> {
        let waiting: Vec<usize> = (0..self.unrolled.ops.len()).filter(|&p| self.next(s, p).is_some()).collect();
        if waiting.is_empty() { Ok(()) } else { Err(Fault::Deadlock { processes: waiting }) }
    }
}

fn as_number(p: usize) -> u16 {
    saturate::<u16>(p)
}
