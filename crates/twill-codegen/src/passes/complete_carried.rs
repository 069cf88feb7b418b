//! Results of MMAs of the iteration before.
//!
//! ptxas does not see that what was waited for in one iteration is there in the next: where threads read it while another MMA runs
//! (the compiler moves reads under MMAs), it adds a wait for that one (C7517), or has all MMAs run one by one (C7514). A wait at the
//! beginning of an iteration, when nothing runs, takes no time and tells it.

use crate::builder::kernel::KernelBuilder;
use crate::error::Error;
use crate::ir::{Expression, ExpressionKind, Node, Note, Op, VariableId, within};

/// The pass.
///
/// Before: the groups are complete. After: where it is asked for and no MMA runs from one iteration to the next, an iteration begins
/// with a wait that names the results of the one before that threads read.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    if builder.options.shares.completed_carried {
        builder.program.groups.iter_mut().for_each(|group| complete(&mut group.body));
    }
    Ok(())
}

fn complete(nodes: &mut [Node]) {
    within(nodes, |nodes| complete(nodes));
    for node in nodes {
        if let Node::PipelinedLoop { body, .. } = node {
            let completed = carried(body);
            if !completed.is_empty() {
                let wait = Op::WgmmaWait { pending: 0, completed, in_flight: Vec::new() };
                body.insert(0, Node::Op(wait, Note::default()));
            }
        }
    }
}

/// Results of the iteration before that threads read in this one; none where MMAs run on at its end.
fn carried(body: &[Node]) -> Vec<VariableId> {
    let ops = || body.iter().filter_map(|node| if let Node::Op(op, _) = node { Some(op) } else { None });
    let results: Vec<VariableId> =
        ops().filter_map(|op| if let Op::Wgmma { to, .. } = op { Some(*to) } else { None }).collect();
    let is_over = ops().rev().find_map(|op| match op {
        Op::Wgmma { .. } => Some(false),
        Op::WgmmaWait { pending: 0, .. } => Some(true),
        _ => None,
    });
    let mut carried: Vec<VariableId> = Vec::new();
    let mut made = Vec::new();
    for op in ops().filter(|_| is_over == Some(true)) {
        let mut reads = |e: &Expression| {
            e.walk(&mut |e| {
                if let ExpressionKind::Variable(id) = e.kind
                    && results.contains(&id)
                    && !made.contains(&id)
                    && !carried.contains(&id)
                {
                    carried.push(id);
                }
            });
        };
        match op {
            Op::Let { to, value } => {
                reads(value);
                made.push(*to);
            }
            Op::LocalStore { value, .. } => reads(value),
            Op::Wgmma { to, .. } | Op::Copy { to, .. } => made.push(*to),
            _ => {}
        }
    }
    carried
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{BufferId, MemoryValue, Operand, Slot, SlotValue};
    use twill_triton::mlir::{FloatKind, Type};

    fn variable(number: usize) -> Expression {
        let kind = ExpressionKind::Variable(VariableId::at(number));
        Expression { kind, shape: vec![64, 64], element: Type::Float(FloatKind::F32) }
    }

    fn mma(to: usize) -> Node {
        let value = SlotValue::outside(MemoryValue::Staged(0));
        let slot = Slot { buffer: BufferId::at(0), at: None, slice: None, transposed: false, value };
        let (left, right) = (Operand::Shared(slot.clone()), Operand::Shared(slot));
        Node::Op(Op::Wgmma { to: VariableId::at(to), left, right, accumulator: None }, Note::default())
    }

    fn set(to: usize, from: usize) -> Node {
        Node::Op(Op::Let { to: VariableId::at(to), value: variable(from) }, Note::default())
    }

    fn wait(pending: u32) -> Node {
        Node::Op(Op::WgmmaWait { pending, completed: Vec::new(), in_flight: Vec::new() }, Note::default())
    }

    #[test]
    fn what_threads_read_of_the_iteration_before_is_named() {
        // The second result is read before it is made again; the first after that.
        let body = [mma(0), set(5, 1), wait(0), set(6, 0), mma(1), wait(0)];
        assert_eq!(carried(&body), [VariableId::at(1)]);
        // Nothing of it: what this one makes, and what MMAs alone add to.
        assert_eq!(carried(&[mma(0), wait(0), set(5, 0), mma(1), wait(0)]), []);
        // The last MMA runs on: a wait would take time.
        assert_eq!(carried(&[mma(0), set(5, 1), wait(0), mma(1), wait(1)]), []);
    }
}
