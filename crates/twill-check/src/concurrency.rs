//! `concurrency`: no operation waits while another one of its group must not be held up.
//!
//! An operation waits if it has an incoming blocking dependence from another operation, or reads
//! a register value of another group. A warp issues in order, so a wait stalls whatever of its
//! group has begun: a synchronous operation for all its cycles, an asynchronous one in the cycle in
//! which it issues (option *literal*: for all its cycles too).

use crate::placed::Placed;
use crate::rejected::Violations;
use crate::unroll::{Run, Span};
use crate::{Held, Violation};
use std::collections::{BTreeMap, HashSet};
use twill_graph::{ConcurrencyWindow, GroupId, OpId, Operation};

/// Most operations that are named for one wait.
const NAMED: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Close,
    Open,
    Wait,
}

pub(crate) fn check(placed: &Placed, violations: &mut Violations) {
    let mut waits = vec![false; placed.graph().operations().len()];
    for d in placed.graph().dependences() {
        waits[d.to.index()] |= (d.blocking && d.from != d.to) || placed.is_handoff(d);
    }
    let mut members: Vec<Vec<OpId>> = vec![Vec::new(); placed.problem.groups().len()];
    for (op, _) in placed.operations() {
        members[placed.group(op).index()].push(op);
    }
    for (group, members) in members.iter().enumerate() {
        if members.iter().any(|op| waits[op.index()]) {
            check_group(placed, GroupId::new(group), members, &waits, violations);
        }
    }
}

fn window(placed: &Placed, operation: &Operation) -> i128 {
    match placed.problem.options().concurrency_window {
        ConcurrencyWindow::Issue if !operation.is_synchronous() => 1,
        ConcurrencyWindow::Issue | ConcurrencyWindow::Literal => operation.occupancy.0.into(),
    }
}

fn check_group(placed: &Placed, group: GroupId, members: &[OpId], waits: &[bool], violations: &mut Violations) {
    let spans = members.iter().map(|&op| {
        let start = placed.issue(op);
        Span { op, held: Held::Warps, start, end: start + window(placed, placed.graph().operation(op)), amount: 1 }
    });
    let run = Run::unroll(spans.collect(), placed.interval);
    let mut events: Vec<(i128, Event, OpId)> = Vec::with_capacity(3 * run.instances.len());
    for i in &run.instances {
        let op = run.span(i).op;
        if i.start < i.end {
            events.extend([(i.start, Event::Open, op), (i.end, Event::Close, op)]);
        }
        if waits[op.index()] {
            events.push((i.start, Event::Wait, op));
        }
    }
    events.sort_unstable();
    // Operations in progress, with how many copies of each.
    let mut open: BTreeMap<OpId, u32> = BTreeMap::new();
    let mut said = HashSet::new();
    for (cycle, event, op) in events {
        match event {
            Event::Open => *open.entry(op).or_default() += 1,
            Event::Close => {
                if let Some(count) = open.get_mut(&op) {
                    *count -= 1;
                    if *count == 0 {
                        open.remove(&op);
                    }
                }
            }
            Event::Wait => {
                for stalled in open.keys().copied().filter(|o| *o != op).take(NAMED) {
                    if said.insert((op, stalled)) {
                        violations.push(Violation::Concurrency {
                            waiting: placed.name(op),
                            stalled: placed.name(stalled),
                            group,
                            at: run.moment(cycle),
                        });
                    }
                }
            }
        }
    }
}
