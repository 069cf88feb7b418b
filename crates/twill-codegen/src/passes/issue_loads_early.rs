//! Loads through registers are issued before tiles that were loaded before them are stored.
//!
//! A group that loads through registers waits for each tile where it stores it to shared memory. Its loads of an iteration are issued
//! together, ahead of those stores and of the waits for empty slots, so that it waits for memory once.

use crate::builder::kernel::KernelBuilder;
use crate::error::Error;
use crate::ir::{Expression, ExpressionKind, Node, Op, VariableId, within};
use twill_graph::GroupRole;

/// Registers of a thread that hold what was loaded and not stored, at most. With one group that computes, the group that loads has as
/// many registers as that; else it has what the others can spare.
const HELD: [u64; 2] = [64, 24];

/// The pass.
///
/// Before: the groups are complete. After: a group that loads has loaded up to so many registers before it stores the first.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    // Several CTAs wait for memory at the same time, and have no registers to spare.
    if builder.options.shares.ctas_per_sm.is_some_and(|ctas| ctas > 1) {
        return Ok(());
    }
    let computing: u32 = builder.compute_groups().iter().map(|group| builder.warps(*group)).sum();
    let most = HELD[usize::from(computing > 4)];
    let roles: Vec<GroupRole> = builder.program.groups.iter().map(|group| builder.role(group.id)).collect();
    for (group, role) in builder.program.groups.iter_mut().zip(roles) {
        if role != GroupRole::Compute {
            issue_early(&mut group.body, u64::from(group.warps) * 32, most);
        }
    }
    Ok(())
}

fn issue_early(nodes: &mut Vec<Node>, threads: u64, most: u64) {
    within(nodes, |nodes| issue_early(nodes, threads, most));
    // Where the last load stands, and what is held there.
    let mut last: Option<(usize, u64)> = None;
    for at in 0..nodes.len() {
        let Node::Op(op, _) = &nodes[at] else {
            last = None;
            continue;
        };
        let Some((to, value)) = load(op) else {
            if !is_passed(op) {
                last = None;
            }
            continue;
        };
        let registers = held(value, threads);
        match last {
            Some((place, before)) if before + registers <= most && !makes_any(&nodes[place + 1..at], value, to) => {
                nodes[place + 1..=at].rotate_right(1);
                last = Some((place + 1, before + registers));
            }
            // Ahead of the wait for its slot.
            _ => {
                let passed = (0..at).rev().take_while(|k| may_pass(&nodes[*k], value)).count();
                nodes[at - passed..=at].rotate_right(1);
                last = Some((at - passed, registers));
            }
        }
    }
}

/// What a load through registers makes, and what it reads.
fn load(op: &Op) -> Option<(VariableId, &Expression)> {
    match op {
        Op::Let { to, value } if matches!(value.kind, ExpressionKind::Load { .. }) && op.reads().is_empty() => {
            Some((*to, value))
        }
        _ => None,
    }
}

/// Registers of a thread for a tile.
fn held(value: &Expression, threads: u64) -> u64 {
    let bits = u64::from(value.element.scalar_bits().unwrap_or(32));
    (value.shape.iter().product::<u64>() * bits).div_ceil(32 * threads)
}

/// Whether an operation neither makes what loads read nor writes what they load.
fn is_passed(op: &Op) -> bool {
    matches!(
        op,
        Op::Let { .. }
            | Op::LocalStore { .. }
            | Op::FenceProxyAsync
            | Op::MbarrierWait { .. }
            | Op::MbarrierArrive { .. }
            | Op::AdvanceCursor(_)
            | Op::CopyCursor { .. }
            | Op::TmaLoad { .. }
            | Op::CpAsync { .. }
            | Op::Timestamp(_)
    )
}

/// Whether a load may be issued ahead of a wait, and of what stands around it.
fn may_pass(node: &Node, value: &Expression) -> bool {
    let Node::Op(op, _) = node else { return false };
    let is_around =
        matches!(op, Op::MbarrierWait { .. } | Op::AdvanceCursor(_) | Op::CopyCursor { .. } | Op::Timestamp(_));
    is_around || matches!(op, Op::Let { to, .. } if load(op).is_none() && !names(value, *to))
}

/// Whether any of these makes what a load reads, or holds what it makes.
fn makes_any(nodes: &[Node], value: &Expression, own: VariableId) -> bool {
    nodes.iter().any(|node| match node {
        Node::Op(Op::Let { to, .. } | Op::Copy { to, .. }, _) => names(value, *to) || *to == own,
        Node::Op(Op::LocalStore { value, .. }, _) => names(value, own),
        _ => false,
    })
}

fn names(value: &Expression, variable: VariableId) -> bool {
    let mut found = false;
    value.walk(&mut |e| found |= matches!(e.kind, ExpressionKind::Variable(id) if id == variable));
    found
}
