//! Cursors that advance over the slots of rings, and the slots at which a group signals.

use crate::builder::group::{SlotTrack, iterations_before};
use crate::error::Error;
use crate::ir::Op;
use crate::ir::{BufferId, CursorId};
use crate::passes::loops::LoopBuilder;
use crate::passes::steps::program::{Barrier, BufferId as LoopBufferId, BufferKind, Iteration};
use twill_graph::OpId;

impl LoopBuilder<'_, '_> {
    /// A barrier and the slot at which it is signalled.
    pub(crate) fn signal(
        &mut self,
        barrier: Barrier,
        iteration: Iteration,
    ) -> Result<Option<(crate::ir::BarrierId, CursorId)>, Error> {
        let Some(id) = self.reader.barrier(self.index, barrier) else { return Ok(None) };
        let (Barrier::Full { buffer, .. } | Barrier::Empty { buffer }) = barrier;
        let op = self.reader.lowering.loops[self.index].program.buffer(buffer).values[0].op;
        let value = match barrier {
            Barrier::Full { value, .. } => value,
            Barrier::Empty { .. } => op,
        };
        let kind = self.reader.lowering.loops[self.index].program.buffer(buffer).kind;
        let cursor = self.cursor_of(buffer, value, iteration, kind)?;
        Ok(Some((id, cursor)))
    }

    /// The cursor that stands at the slot of an iteration.
    fn cursor_of(
        &mut self,
        buffer: LoopBufferId,
        op: OpId,
        iteration: Iteration,
        kind: BufferKind,
    ) -> Result<CursorId, Error> {
        if let BufferKind::Order(_) = kind {
            let at = self.reader.lowering.storage.buffers[&(self.index, buffer)];
            let track = self.reader.group.slots.get(&at);
            let age = track.and_then(|t| iterations_before(iteration, t.latest?)).and_then(|a| usize::try_from(a).ok());
            if let Some(cursor) = track.zip(age).and_then(|(t, a)| t.at.get(a)) {
                return Ok(*cursor);
            }
        }
        let slot = self.reader.slot(self.index, op, iteration)?;
        let id = self.reader.lowering.loops[self.index].parts.operation;
        slot.at.ok_or_else(|| self.reader.lowering.defect(id, "a slot to arrive at"))
    }

    /// The cursors of a ring.
    pub(crate) fn begin_ring(&mut self, buffer: LoopBufferId) -> BufferId {
        let at = self.reader.lowering.storage.buffers[&(self.index, buffer)];
        let slots = self.reader.lowering.program.buffers[at.index()].slots;
        let stem = self.reader.lowering.program.buffers[at.index()].name.trim_end_matches("_buffer").to_owned();
        let mut track = match self.reader.group.slots.remove(&at) {
            Some(track) => track,
            None => {
                let next = self.reader.group.cursor(&format!("{stem}_next"), slots);
                SlotTrack { next, at: Vec::new(), latest: None }
            }
        };
        // Of loops that share a ring, a later one may have more slots open.
        let count = self.expansion.slots.get(&at).copied().unwrap_or(0) + 1;
        for age in track.at.len()..count {
            let name = if age == 0 { format!("{stem}_at") } else { format!("{stem}_at_before_{age}") };
            track.at.push(self.reader.group.cursor(&name, slots));
        }
        self.reader.group.slots.insert(at, track);
        at
    }

    /// Goes on to the next slot of a ring, which is that of an iteration.
    pub fn take_slot(&mut self, buffer: LoopBufferId, iteration: Iteration) {
        let at = self.begin_ring(buffer);
        let Some(track) = self.reader.group.slots.get_mut(&at) else { return };
        let had = track.latest.is_some();
        track.latest = Some(iteration);
        let (next, cursors) = (track.next, track.at.clone());
        let note = std::mem::take(&mut self.reader.group.note);
        if had {
            for age in (1..cursors.len()).rev() {
                self.reader.group.act(Op::CopyCursor { to: cursors[age], from: cursors[age - 1] });
            }
        }
        self.reader.group.act(Op::CopyCursor { to: cursors[0], from: next });
        self.reader.group.act(Op::AdvanceCursor(next));
        self.reader.group.note = note;
    }
}
