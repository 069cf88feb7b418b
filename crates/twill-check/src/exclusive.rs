//! `exclusive`: a group executes one synchronous operation at a time, of whichever iteration
//! (option *off*: the paper).

use crate::placed::Placed;
use crate::rejected::Violations;
use crate::unroll::{Run, Span};
use crate::{Held, Violation};
use std::collections::HashSet;
use twill_graph::GroupId;

pub(crate) fn check(placed: &Placed, violations: &mut Violations) {
    if !placed.problem.options().exclusive_issue {
        return;
    }
    let mut work: Vec<Vec<Span>> = vec![Vec::new(); placed.problem.groups().len()];
    for (op, operation) in placed.operations().filter(|(_, o)| o.is_synchronous() && o.occupancy.0 > 0) {
        let start = placed.issue(op);
        let end = start + i128::from(operation.occupancy.0);
        work[placed.group(op).index()].push(Span { op, held: Held::Warps, start, end, amount: 1 });
    }
    for (group, work) in work.into_iter().enumerate() {
        check_group(placed, GroupId::new(group), work, violations);
    }
}

fn check_group(placed: &Placed, group: GroupId, work: Vec<Span>, violations: &mut Violations) {
    let mut run = Run::unroll(work, placed.interval);
    run.instances.sort_unstable_by_key(|i| (i.start, i.end, i.span));
    let mut said = HashSet::new();
    // The one that ends last among those that have begun: if a newcomer overlaps anything, it overlaps this.
    let mut longest: Option<usize> = None;
    for (next, instance) in run.instances.iter().enumerate() {
        let Some(before) = longest.map(|i| run.instances[i]) else {
            longest = Some(next);
            continue;
        };
        let (first, second) = (run.span(&before).op, run.span(instance).op);
        if before.end > instance.start && said.insert((first, second)) {
            violations.push(Violation::Exclusive {
                first: placed.name(first),
                second: placed.name(second),
                group,
                at: run.moment(instance.start),
            });
        }
        if instance.end > before.end {
            longest = Some(next);
        }
    }
}
