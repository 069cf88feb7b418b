//! Tied operations as classes: the operations of a kernel that run on one group, whichever it is.

use crate::constraints::assignment;
use crate::constraints::symmetry::{self, Swap};
use std::collections::BTreeSet;
use twill_graph::{GroupId, LoopOperation, MultiLoopProblem, OpId, RejectionReason};

/// The partition of all operations that the ties make, coarsest last.
pub(super) struct Classes {
    /// `of[ℓ][v]`: the class of operation `v` of loop `ℓ`; `None` when it is alone.
    of: Vec<Vec<Option<usize>>>,
    /// The groups that may run each class.
    groups: Vec<Vec<GroupId>>,
    /// Two members of each class, for messages.
    named: Vec<(String, String)>,
}

impl Classes {
    pub(super) fn new(kernel: &MultiLoopProblem) -> Classes {
        let counts: Vec<usize> = kernel.loops().iter().map(|p| p.graph().operations().len()).collect();
        let first: Vec<usize> = (0..counts.len()).map(|k| counts[..k].iter().sum()).collect();
        let at = |o: LoopOperation| first[o.index] + o.op.index();
        let mut class: Vec<usize> = (0..counts.iter().sum()).collect();
        for tie in kernel.ties() {
            for pair in tie.operations.windows(2) {
                let (keep, gone) = (class[at(pair[0])], class[at(pair[1])]);
                class.iter_mut().filter(|c| **c == gone).for_each(|c| *c = keep);
            }
        }
        let members = |c: usize| class.iter().filter(|&&other| other == c).count();
        let shared: BTreeSet<usize> = class.iter().copied().filter(|&c| members(c) > 1).collect();
        let number = |c: usize| shared.iter().position(|&s| s == c);
        let of: Vec<Vec<Option<usize>>> =
            (0..counts.len()).map(|k| (0..counts[k]).map(|v| number(class[first[k] + v])).collect()).collect();
        let mut groups: Vec<Option<Vec<GroupId>>> = vec![None; shared.len()];
        let mut named = vec![(String::new(), String::new()); shared.len()];
        for (problem, row) in kernel.loops().iter().zip(&of) {
            for op in problem.graph().op_ids() {
                let Some(class) = row[op.index()] else { continue };
                let candidates = assignment::candidates(problem, op);
                let name = format!("`{}` of {}", problem.graph().operation(op).name, problem.graph().name());
                let Some(common) = &mut groups[class] else {
                    groups[class] = Some(candidates);
                    named[class].0 = name;
                    continue;
                };
                if !common.is_empty() {
                    named[class].1 = name;
                }
                common.retain(|g| candidates.contains(g));
            }
        }
        Classes { of, groups: groups.into_iter().map(Option::unwrap_or_default).collect(), named }
    }

    /// For each class the groups that may run it.
    pub(super) fn groups(&self) -> &[Vec<GroupId>] {
        &self.groups
    }

    /// The class of each operation of a loop.
    pub(super) fn of_loop(&self, index: usize) -> &[Option<usize>] {
        &self.of[index]
    }

    /// Why tied operations have no group in common, if some have none.
    pub(super) fn impossible(&self) -> Option<RejectionReason> {
        let class = self.groups.iter().position(Vec::is_empty)?;
        let (one, other) = &self.named[class];
        let why = format!("{one} and {other} are tied, and no group may run both");
        Some(RejectionReason::OtherLoops { why })
    }

    /// First operations, in the first loop, of neighbouring sub-tiles that can be swapped in all
    /// loops at once without changing a graph or a tie.
    pub(super) fn ordered(&self, kernel: &MultiLoopProblem) -> Vec<(OpId, OpId)> {
        let swaps: Vec<Vec<Swap>> = kernel.loops().iter().map(|p| symmetry::swaps(p.graph())).collect();
        let Some((first, others)) = swaps.split_first() else { return Vec::new() };
        let everywhere = |swap: &&Swap| {
            let with = |others: &[Swap]| others.iter().find(|o| o.tiles == swap.tiles).map(|o| o.map.clone());
            let rest: Option<Vec<Vec<OpId>>> = others.iter().map(|o| with(o)).collect();
            rest.is_some_and(|rest| {
                let maps: Vec<Vec<OpId>> = std::iter::once(swap.map.clone()).chain(rest).collect();
                self.survive(&maps)
            })
        };
        first.iter().filter(everywhere).map(|swap| swap.first).collect()
    }

    /// Returns whether operations of one class go to operations of one class.
    fn survive(&self, maps: &[Vec<OpId>]) -> bool {
        let mut image: Vec<Option<Option<usize>>> = vec![None; self.groups.len()];
        for (row, map) in self.of.iter().zip(maps) {
            for (class, to) in row.iter().zip(map) {
                let to = row[to.index()];
                match class {
                    None if to.is_some() => return false,
                    None => {}
                    Some(class) if *image[*class].get_or_insert(to) != to => return false,
                    Some(_) => {}
                }
            }
        }
        true
    }
}
