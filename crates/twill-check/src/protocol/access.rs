//! Faulty accesses to a slot.

use super::fault::{Fault, Use};
use super::machine::{Machine, State};
use super::unrolled::{ProtocolOp, SlotAccess};

impl Machine<'_> {
    /// Nothing is wrong with a read.
    pub(super) fn may_read(&self, s: &State, p: usize, op: &ProtocolOp, access: SlotAccess) -> Result<(), Fault> {
        let SlotAccess { slot, value } = access;
        self.unused(s, p, op, slot, false)?;
        let found = self.content(s, slot);
        if found != value {
            return Err(Fault::WrongValue { process: p, slot, wanted: value, found });
        }
        if let Some(writer) = self.unfenced(s, slot).filter(|_| !matches!(op, ProtocolOp::Read(_))) {
            return Err(Fault::Unfenced { process: p, slot, writer });
        }
        self.unraced(s, p, slot, false)
    }

    /// Nothing is wrong with a write.
    pub(super) fn may_write(&self, s: &State, p: usize, op: &ProtocolOp, access: SlotAccess) -> Result<(), Fault> {
        self.unused(s, p, op, access.slot, true)?;
        if let (Some(reader), ProtocolOp::Load { by_unit: true, .. }) = (self.unfenced_reader(s, access.slot), op) {
            return Err(Fault::UnfencedRead { process: p, slot: access.slot, reader });
        }
        self.unraced(s, p, access.slot, true)
    }

    /// No asynchronous unit uses the slot in a way that forbids this. MMAs of one process are in
    /// order and need not wait for each other.
    fn unused(&self, s: &State, p: usize, op: &ProtocolOp, slot: usize, write: bool) -> Result<(), Fault> {
        let fault = |by: Use| Err(Fault::InUse { process: p, slot, write, by });
        let touches = |accesses: &[SlotAccess]| accesses.iter().any(|access| access.slot == slot);
        if let Some((owner, _)) = self.loading(s, slot) {
            return fault(Use::Load(owner));
        }
        for q in 0..self.unrolled.ops.len() {
            let ops = &self.unrolled.ops[q];
            if !(q == p && matches!(op, ProtocolOp::Mma { .. })) {
                for &at in self.mmas_in_flight(s, q) {
                    if touches(ops[at].writes()) {
                        return fault(Use::MmaWrites(q));
                    }
                    if write && touches(ops[at].reads()) {
                        return fault(Use::MmaReads(q));
                    }
                }
            }
            if write && self.storing(s, q).iter().any(|&at| touches(ops[at].reads())) {
                return fault(Use::Store(q));
            }
        }
        Ok(())
    }

    /// No other process is about to use the slot in a way that forbids this: nothing holds it back.
    fn unraced(&self, s: &State, p: usize, slot: usize, write: bool) -> Result<(), Fault> {
        let touches = |accesses: &[SlotAccess]| accesses.iter().any(|access| access.slot == slot);
        for q in (0..self.unrolled.ops.len()).filter(|&q| q != p) {
            if let Some(op) = self.next(s, q) {
                let writes = touches(op.writes());
                if writes || write && touches(op.reads()) {
                    return Err(Fault::Race { process: p, write, other: q, other_writes: writes, slot });
                }
            }
        }
        Ok(())
    }
}
