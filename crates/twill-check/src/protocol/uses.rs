//! The uses of each slot, in the run that stands for all.

use super::clock::Epoch;
use super::unrolled::ProtocolOp;

/// A use of a slot.
#[derive(Clone, Copy, Debug)]
struct Touch {
    end: Epoch,
    /// The process, if it was an MMA.
    mma: Option<usize>,
    /// The process, if it was its threads.
    threads: Option<usize>,
    /// When it was fenced from asynchronous units.
    fence: Option<Epoch>,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    write: Option<Touch>,
    /// Since then.
    reads: Vec<Touch>,
    loads: u32,
    /// The step that issued the last load.
    issued: usize,
}

/// An operation that touches slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access<'a> {
    pub(super) process: usize,
    /// Its place in the run.
    pub(super) step: usize,
    /// When it ends, but for loads.
    pub(super) end: Epoch,
    /// Its past.
    pub(super) clock: &'a [u32],
}

/// The last uses of all slots.
#[derive(Debug)]
pub(super) struct Uses {
    slots: Vec<Slot>,
    /// The first chain of loads; each slot has one.
    first_chain: usize,
}

impl Uses {
    pub(super) fn new(slots: usize, first_chain: usize) -> Uses {
        Uses { slots: vec![Slot::default(); slots], first_chain }
    }

    /// The end of the last load into a slot, and the step that issued it.
    pub(super) fn last_load(&self, slot: usize) -> (Epoch, usize) {
        let Slot { loads, issued, .. } = self.slots[slot];
        (Epoch { chain: self.first_chain + slot, index: loads }, issued)
    }

    /// Fences what a process's threads have written and read from asynchronous units.
    pub(super) fn fence(&mut self, process: usize, epoch: Epoch) {
        for slot in &mut self.slots {
            let uses = slot.write.iter_mut().chain(&mut slot.reads);
            for one in uses.filter(|one| one.threads == Some(process) && one.fence.is_none()) {
                one.fence = Some(epoch);
            }
        }
    }

    /// Notes the accesses of an operation. False if one is not after all those that it conflicts with.
    pub(super) fn touch(&mut self, op: &ProtocolOp, access: Access<'_>) -> bool {
        let Access { process, step, end, clock } = access;
        let mma = matches!(op, ProtocolOp::Mma { .. }).then_some(process);
        let unordered = |earlier: &Touch| {
            let in_order = mma.is_some() && earlier.mma == mma;
            !(in_order || earlier.end == end || earlier.end.before(clock))
        };
        let by_threads = matches!(op, ProtocolOp::Read(_));
        let unfenced = |w: &Touch| !by_threads && w.fence.is_some_and(|fence| !fence.before(clock));
        for access in op.reads() {
            let slot = &mut self.slots[access.slot];
            if slot.write.iter().any(|w| unordered(w) || unfenced(w)) {
                return false;
            }
            slot.reads.push(Touch { end, mma, threads: by_threads.then_some(process), fence: None });
        }
        for access in op.writes() {
            let slot = &mut self.slots[access.slot];
            if slot.write.iter().chain(&slot.reads).any(unordered) {
                return false;
            }
            let by_unit = matches!(op, ProtocolOp::Load { by_unit: true, .. });
            if by_unit && slot.reads.iter().any(|read| read.fence.is_some_and(|fence| !fence.before(clock))) {
                return false;
            }
            let mut end = end;
            if let ProtocolOp::Load { .. } = op {
                (slot.loads, slot.issued) = (slot.loads + 1, step);
                end = Epoch { chain: self.first_chain + access.slot, index: slot.loads };
            }
            let threads = matches!(op, ProtocolOp::Write(_)).then_some(process);
            (slot.write, slot.reads) = (Some(Touch { end, mma, threads, fence: None }), Vec::new());
        }
        true
    }
}
