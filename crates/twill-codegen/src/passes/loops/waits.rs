//! Waits of a group: at barriers, and for its own MMAs and stores; and its arrivals.

use super::LoopBuilder;
use crate::builder::group::{InFlightMma, iterations_before};
use crate::error::Error;
use crate::ir::VariableId;
use crate::ir::{Expression, ExpressionKind};
use crate::ir::{Node, Op};
use crate::passes::steps::program::{Barrier, BufferId as LoopBufferId, Iteration};
use twill_graph::OpId;
use twill_graph::saturate;

impl LoopBuilder<'_, '_> {
    pub(super) fn wait(&mut self, barrier: Barrier, iteration: Iteration) -> Result<(), Error> {
        let Some(id) = self.reader.barrier(self.index, barrier) else { return Ok(()) };
        let (buffer, previous) = match barrier {
            Barrier::Full { buffer, .. } => (buffer, false),
            Barrier::Empty { buffer } => (buffer, true),
        };
        let at = self.begin_ring(buffer);
        let known = self.reader.group.slots.get(&at).and_then(|t| t.latest);
        if previous {
            let next = self.reader.group.slots[&at].next;
            self.reader.group.act(Op::MbarrierWait { barrier: id, at: next, previous });
            return Ok(());
        }
        match known.and_then(|latest| iterations_before(iteration, latest)) {
            // What stands where the next value will: the phase before that.
            Some(0) if self.is_single_in_tensor(buffer) => {
                let next = self.reader.group.slots[&at].next;
                self.reader.group.act(Op::MbarrierWait { barrier: id, at: next, previous: true });
            }
            // Another value of the same slot.
            Some(age) if age >= 0 => {
                let age = saturate::<usize>(age);
                let at = self.reader.group.slots[&at].at[age];
                self.reader.group.act(Op::MbarrierWait { barrier: id, at, previous });
            }
            _ => {
                let next = self.reader.group.slots[&at].next;
                self.reader.group.act(Op::MbarrierWait { barrier: id, at: next, previous });
                self.take_slot(buffer, iteration);
            }
        }
        let buffers = &self.reader.lowering.loops[self.index].program.buffers;
        let guarded = |k: &usize| buffers[*k].guarded_by == Some(buffer);
        let guarded: Vec<LoopBufferId> = (0..buffers.len()).filter(guarded).map(LoopBufferId).collect();
        if let Barrier::Full { value, .. } = barrier {
            self.stamp_completed(value, iteration);
            for other in &guarded {
                let op = self.reader.lowering.loops[self.index].program.buffer(*other).values[0].op;
                self.stamp_completed(op, iteration);
            }
        }
        if guarded.into_iter().chain([buffer]).any(|one| self.copied_by_threads(one)) {
            self.fence_what_was_copied();
        }
        Ok(())
    }

    /// One fence does for all that was waited for since the last MMA.
    fn fence_what_was_copied(&mut self) {
        let out = &mut self.reader.group.out;
        let is_passed = |node: &&Node| {
            use Op::{AdvanceCursor, CopyCursor, MbarrierWait, Timestamp};
            matches!(node, Node::Op(AdvanceCursor(_) | CopyCursor { .. } | MbarrierWait { .. } | Timestamp(_), _))
        };
        let passed = out.iter().rev().take_while(is_passed).count();
        let before = out.len() - passed;
        if let Some(Node::Op(Op::FenceProxyAsync, _)) = before.checked_sub(1).and_then(|k| out.get(k)) {
            out.remove(before - 1);
        }
        self.reader.group.act(Op::FenceProxyAsync);
    }

    pub(super) fn arrive(&mut self, barrier: Barrier, iteration: Iteration) -> Result<(), Error> {
        let Some((barrier, at)) = self.signal(barrier, iteration)? else { return Ok(()) };
        // Who starts MMAs does nothing else: the unit arrives when those so far are done.
        let is_issuer = self.reader.lowering.is_issuer(self.reader.group.id);
        self.reader.group.act(if is_issuer {
            Op::Tcgen05Commit(vec![(barrier, at)])
        } else {
            Op::MbarrierArrive { barrier, at }
        });
        Ok(())
    }

    /// Waits for an asynchronous operation of the group, if it may still run.
    pub(super) fn wait_for(&mut self, op: OpId, iteration: Iteration) {
        let same = |at: Iteration| iterations_before(at, iteration) == Some(0);
        if let Some(position) = self.reader.group.stores.iter().position(|(o, it)| *o == op && same(*it)) {
            let done: Vec<_> = self.reader.group.stores.drain(..=position).collect();
            let left = twill_graph::narrow(self.reader.group.stores.len());
            self.reader.group.act(Op::TmaStoreWait(left));
            done.into_iter().for_each(|(op, iteration)| self.stamp_completed(op, iteration));
            return;
        }
        if let Some(position) = self.reader.group.in_flight.iter().position(|f| f.op == op && same(f.iteration)) {
            self.wgmma_wait_up_to(position);
        }
    }

    /// Waits for the MMAs that a variable is the result of, before threads read it.
    pub(super) fn wait_for_value(&mut self, value: &Expression) {
        if let ExpressionKind::Variable(v) = value.kind
            && let Some(last) = self.reader.group.in_flight.iter().rposition(|f| f.result == v)
        {
            self.wgmma_wait_up_to(last);
        }
    }

    pub(super) fn wgmma_wait_up_to(&mut self, position: usize) {
        let done: Vec<InFlightMma> = self.reader.group.in_flight.drain(..=position).collect();
        let left = &self.reader.group.in_flight;
        let pending = left.iter().map(|f| f.weight).sum();
        let (mut completed, mut in_flight): (Vec<VariableId>, Vec<VariableId>) = (Vec::new(), Vec::new());
        for flight in &done {
            let named = newest(flight, &done, left);
            let goes_on = left.iter().any(|f| f.result == named);
            let list = if goes_on { &mut in_flight } else { &mut completed };
            if !list.contains(&named) {
                list.push(named);
            }
        }
        for operand in done.iter().flat_map(|f| &f.operands) {
            let in_use = left.iter().any(|f| f.operands.contains(operand));
            if !in_use && !completed.contains(operand) {
                completed.push(*operand);
            }
        }
        self.reader.group.act(Op::WgmmaWait { pending, completed, in_flight });
        done.into_iter().for_each(|flight| self.stamp_completed(flight.op, flight.iteration));
    }

    pub(super) fn wgmma_wait_all(&mut self) {
        if let Some(last) = self.reader.group.in_flight.len().checked_sub(1) {
            self.wgmma_wait_up_to(last);
        }
    }
}

/// The variable that the registers of an MMA's result have now: that of the last MMA which adds to it in place. To name another
/// while that one runs would read them.
fn newest(flight: &InFlightMma, done: &[InFlightMma], left: &[InFlightMma]) -> VariableId {
    let mut result = flight.result;
    for next in done.iter().chain(left).skip_while(|next| *next != flight).skip(1) {
        if next.accumulator == Some(result) {
            result = next.result;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_has_the_name_of_the_mma_that_adds_to_it_now() {
        let mma = |op: usize, result: usize, accumulator: Option<usize>| InFlightMma {
            op: OpId::new(op),
            iteration: Iteration::Current(0),
            result: VariableId::at(result),
            accumulator: accumulator.map(VariableId::at),
            operands: Vec::new(),
            weight: 1,
        };
        // The second adds to the first, the third is another, the fourth goes on from the second.
        let all = [mma(0, 0, None), mma(1, 1, Some(0)), mma(2, 2, None), mma(3, 3, Some(1))];
        assert_eq!(newest(&all[0], &all[..1], &all[1..2]), VariableId::at(1));
        assert_eq!(newest(&all[0], &all[..2], &all[2..]), VariableId::at(3));
        assert_eq!(newest(&all[1], &all[..3], &all[3..]), VariableId::at(3));
        assert_eq!(newest(&all[2], &all[..3], &all[3..]), VariableId::at(2));
    }
}
