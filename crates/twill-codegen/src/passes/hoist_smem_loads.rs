//! Small tiles that threads read from a ring for the result of an MMA, read while the MMA runs.
//!
//! Otherwise the group waits for the result first, and then for shared memory. Of a batch's results what is needed is read
//! after the batch's first MMA, as the group stands at the next one until the tensor core takes it; of its last one's,
//! ahead of the wait and of the last value made before it. (Attention backward on an H200: 2 %.)

use crate::builder::group::GroupBuilder;
use crate::builder::kernel::KernelBuilder;
use crate::error::Error;
use crate::ir::{Expression, ExpressionKind};
use crate::ir::{Form, Slot, VariableId};
use crate::ir::{Node, Note, Op, within};

/// The pass.
///
/// Before: the groups are complete. After: with the option, such reads and the waits for them stand under MMAs.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    if !builder.options.early_reads {
        return Ok(());
    }
    for number in 0..builder.groups.len() {
        let mut body = std::mem::take(&mut builder.program.groups[number].body);
        let placeholder = builder.new_group(builder.groups[number].id);
        let mut group = std::mem::replace(&mut builder.groups[number], placeholder);
        read_early(builder, &mut group, &mut body);
        builder.program.groups[number].variables.clone_from(&group.variables);
        builder.program.groups[number].body = body;
        builder.groups[number] = group;
    }
    Ok(())
}

/// Moves such reads, with the waits for what they read.
fn read_early(lowering: &KernelBuilder<'_>, builder: &mut GroupBuilder, nodes: &mut Vec<Node>) {
    within(nodes, |nodes| read_early(lowering, builder, nodes));
    let mut at = 0;
    while at < nodes.len() {
        if let Some((waits, completes)) = waits_before(nodes, at)
            && let Some(to) = early_place(nodes, waits)
            && let (before, [computes, ..]) = nodes.split_at_mut(at)
            && let Some(read) = take_read(lowering, builder, &before[waits..completes], computes)
        {
            nodes.insert(completes, read);
            nodes[to..=completes].rotate_right(completes + 1 - waits);
            at += 1;
        }
        at += 1;
    }
}

/// The wait for a ring, with what follows of it, and the wait for an MMA that stand right before a computation: where the
/// two begin.
fn waits_before(nodes: &[Node], computes: usize) -> Option<(usize, usize)> {
    let passed = |end: usize, may_be: &dyn Fn(&Op) -> bool| {
        end - nodes[..end].iter().rev().take_while(|n| matches!(n, Node::Op(op, _) if may_be(op))).count()
    };
    let is_timestamp = |op: &Op| matches!(op, Op::Timestamp(_));
    let completes = passed(computes, &is_timestamp).checked_sub(1)?;
    let follows = |op: &Op| matches!(op, Op::CopyCursor { .. } | Op::AdvanceCursor(_) | Op::Timestamp(_));
    let waits = passed(completes, &follows).checked_sub(1)?;
    let ([Node::Op(Op::MbarrierWait { previous: false, .. }, _), ..], Node::Op(Op::WgmmaWait { .. }, _)) =
        (&nodes[waits..completes], &nodes[completes])
    else {
        return None;
    };
    Some((waits, completes))
}

/// Where a read may go whose wait is here now: after the MMA before the last one, if only waits for what the last one
/// reads stand between, or ahead of the last computation.
fn early_place(nodes: &[Node], waits: usize) -> Option<usize> {
    let op = |at: usize| match &nodes[at] {
        Node::Op(op, _) => Some(op),
        _ => None,
    };
    let is_mma = |at: usize| matches!(op(at), Some(Op::Wgmma { .. }));
    let ends = |at: usize| is_mma(at) || matches!(op(at), Some(Op::Let { .. }) | None);
    let last = (0..waits).rev().find(|at| ends(*at))?;
    match op(last)? {
        Op::Let { .. } => Some(last),
        _ => {
            let before = (0..last).rev().find(|at| {
                !matches!(
                    op(*at),
                    Some(Op::MbarrierWait { .. } | Op::CopyCursor { .. } | Op::AdvanceCursor(_) | Op::Timestamp(_))
                )
            })?;
            is_mma(before).then_some(before + 1)
        }
    }
}

/// A computation's read of a tile of one dimension that these nodes wait for; it becomes a variable.
fn take_read(
    lowering: &KernelBuilder<'_>,
    builder: &mut GroupBuilder,
    waits: &[Node],
    node: &mut Node,
) -> Option<Node> {
    let Node::Op(Op::Let { value, .. }, _) = node else { return None };
    let (slot, expression) = find(value)?;
    let own = slot.at;
    let is_awaited = waits.iter().any(|node| match node {
        Node::Op(Op::MbarrierWait { at, .. } | Op::CopyCursor { to: at, .. }, _) => own == Some(*at),
        _ => false,
    });
    if !is_awaited {
        return None;
    }
    let ring = lowering.program.buffers[slot.buffer.index()].name.trim_end_matches("_buffer");
    let to = builder.variable(&format!("{ring}_read"), &expression.shape, expression.element.clone(), Form::Any);
    replace(value, &slot, to);
    Some(Node::Op(Op::Let { to, value: expression }, Note::default()))
}

fn find(value: &Expression) -> Option<(Slot, Expression)> {
    let mut found = None;
    value.walk(&mut |e| {
        if let ExpressionKind::FromShared(slot) = &e.kind
            && e.shape.len() == 1
            && found.is_none()
        {
            found = Some((slot.clone(), e.clone()));
        }
    });
    found
}

fn replace(value: &mut Expression, slot: &Slot, to: VariableId) {
    match &mut value.kind {
        ExpressionKind::FromShared(own) if own == slot => value.kind = ExpressionKind::Variable(to),
        ExpressionKind::Apply { operands, .. } => operands.iter_mut().for_each(|one| replace(one, slot, to)),
        ExpressionKind::Broadcast(one)
        | ExpressionKind::ExpandDims(_, one)
        | ExpressionKind::Transpose(_, one)
        | ExpressionKind::Columns(_, one)
        | ExpressionKind::PartialSums(one) => replace(one, slot, to),
        ExpressionKind::Reduce { operand, .. } => replace(operand, slot, to),
        _ => {}
    }
}
