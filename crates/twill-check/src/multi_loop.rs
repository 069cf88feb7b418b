//! Kernels of several loops (docs/model.md): every loop holds by itself, tied operations run on one group, and
//! the groups, with what they are given, are the same in all loops and fit the register file.

use crate::{Rejected, Verified, verify};
use std::collections::BTreeSet;
use std::fmt;
use thiserror::Error;
use twill_graph::saturate;
use twill_graph::{GroupId, GroupRole, LoopOperation, MultiLoopProblem, Schedule, TieReason, WarpGroup};

/// A broken statement about the resources that loops share.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MultiLoopViolation {
    /// Not one schedule a loop.
    #[error("{schedules} schedules for {loops} loops")]
    Loops {
        /// How many schedules there are.
        schedules: usize,
        /// How many loops there are.
        loops: usize,
    },
    /// Tied operations run on different groups.
    #[error(
        "`{one}` of {one_loop} runs on group {one_group}, `{other}` of {other_loop} on group {other_group}; they are tied ({reason})",
        one_group = one_group.index(), other_group = other_group.index(), reason = why(*reason)
    )]
    Tie {
        /// An operation.
        one: String,
        /// Its loop.
        one_loop: String,
        /// Its group.
        one_group: GroupId,
        /// The operation that should run there too.
        other: String,
        /// Its loop.
        other_loop: String,
        /// Its group.
        other_group: GroupId,
        /// Why.
        reason: TieReason,
    },
    /// A loop uses a group that is not among the common ones.
    #[error("{graph} uses group {}, which is not among the common groups", group.index())]
    Unlisted {
        /// The loop.
        graph: String,
        /// The group.
        group: GroupId,
    },
    /// A loop describes a group otherwise than the kernel does.
    #[error(
        "group {}: {graph} has it as {} with {} warps and {} registers a thread, the kernel as {} with {} and {}",
        of_loop.id.index(), of_loop.role, of_loop.warps, of_loop.registers_per_thread,
        common.role, common.warps, common.registers_per_thread
    )]
    Differs {
        /// The loop.
        graph: String,
        /// As the loop has it.
        of_loop: WarpGroup,
        /// As the kernel has it.
        common: WarpGroup,
    },
    /// A common group that no loop uses.
    #[error("group {} is listed, and no loop uses it", group.index())]
    Idle {
        /// The group.
        group: GroupId,
    },
    /// Common groups are not listed by ascending id, once each.
    #[error("group {} is listed out of order or twice", group.index())]
    Order {
        /// The group.
        group: GroupId,
    },
    /// All common groups together exceed the register file.
    #[error("the common groups are given {required} registers; the register file has {available}")]
    RegisterFile {
        /// The registers that they have, with those of the machine's fixed groups.
        required: u64,
        /// The available amount.
        available: u64,
    },
}

fn why(reason: TieReason) -> &'static str {
    match reason {
        TieReason::Carried => "one loop hands the value on to the other",
        TieReason::Corresponding => "they are one operation of the source",
    }
}

/// Schedules of several loops that do not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Error)]
pub struct RejectedLoops {
    /// Loops whose schedules do not hold by themselves, by name.
    pub loops: Vec<(String, Rejected)>,
    /// The broken statements about shared resources.
    pub shared: Vec<MultiLoopViolation>,
}

impl fmt::Display for RejectedLoops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = self.loops.iter().map(|(name, rejected)| format!("{name}: {rejected}")).collect();
        if !self.shared.is_empty() {
            let lines: String = self.shared.iter().map(|v| format!("\n  {v}")).collect();
            parts.push(format!("the loops do not go together:{lines}"));
        }
        f.write_str(&parts.join("\n"))
    }
}

/// Replays every loop's schedule, and checks the resources that the loops share.
///
/// # Errors
/// Everything that is broken.
pub fn verify_multi_loop(
    kernel: &MultiLoopProblem,
    groups: &[WarpGroup],
    schedules: Vec<Schedule>,
) -> Result<Vec<Verified<Schedule>>, RejectedLoops> {
    let mut rejected = RejectedLoops::default();
    if schedules.len() != kernel.loops().len() {
        let (schedules, loops) = (schedules.len(), kernel.loops().len());
        rejected.shared.push(MultiLoopViolation::Loops { schedules, loops });
        return Err(rejected);
    }
    let mut verified = Vec::new();
    for (problem, schedule) in kernel.loops().iter().zip(schedules) {
        match verify(problem, schedule) {
            Ok(holds) => verified.push(holds),
            Err(error) => rejected.loops.push((problem.graph().name().to_owned(), error)),
        }
    }
    if !rejected.loops.is_empty() {
        return Err(rejected);
    }
    check_ties(kernel, &verified, &mut rejected.shared);
    check_groups(kernel, groups, &verified, &mut rejected.shared);
    check_file(kernel, groups, &mut rejected.shared);
    if rejected.shared.is_empty() { Ok(verified) } else { Err(rejected) }
}

fn check_ties(kernel: &MultiLoopProblem, schedules: &[Verified<Schedule>], broken: &mut Vec<MultiLoopViolation>) {
    let group = |o: LoopOperation| schedules[o.index].placement(o.op).group;
    let name = |o: LoopOperation| kernel.operation(o).name.clone();
    let title = |o: LoopOperation| kernel.loops()[o.index].graph().name().to_owned();
    for tie in kernel.ties() {
        let Some((&one, others)) = tie.operations.split_first() else { continue };
        for &other in others.iter().filter(|&&o| group(o) != group(one)) {
            broken.push(MultiLoopViolation::Tie {
                one: name(one),
                one_loop: title(one),
                one_group: group(one),
                other: name(other),
                other_loop: title(other),
                other_group: group(other),
                reason: tie.reason,
            });
        }
    }
}

fn check_groups(
    kernel: &MultiLoopProblem,
    groups: &[WarpGroup],
    schedules: &[Verified<Schedule>],
    broken: &mut Vec<MultiLoopViolation>,
) {
    let out_of_order = groups.windows(2).filter(|pair| pair[0].id >= pair[1].id);
    broken.extend(out_of_order.map(|pair| MultiLoopViolation::Order { group: pair[1].id }));
    let mut used = BTreeSet::new();
    for (problem, schedule) in kernel.loops().iter().zip(schedules) {
        let graph = || problem.graph().name().to_owned();
        for &of_loop in &schedule.groups {
            used.insert(of_loop.id);
            match groups.iter().find(|g| g.id == of_loop.id) {
                None => broken.push(MultiLoopViolation::Unlisted { graph: graph(), group: of_loop.id }),
                Some(&common) if common != of_loop => {
                    broken.push(MultiLoopViolation::Differs { graph: graph(), of_loop, common });
                }
                Some(_) => {}
            }
        }
    }
    broken.extend(groups.iter().filter(|g| !used.contains(&g.id)).map(|g| MultiLoopViolation::Idle { group: g.id }));
}

/// `Σ_g 32 · warps(g) · r_g` over the common groups. The machine pays for its fixed groups whether
/// they are used or not.
fn check_file(kernel: &MultiLoopProblem, groups: &[WarpGroup], broken: &mut Vec<MultiLoopViolation>) {
    let Some(resources) = kernel.loops().first().map(twill_graph::Problem::resources) else { return };
    let registers = |warps: u32, each: u32| 32 * u128::from(warps) * u128::from(each);
    let fixed = [resources.variable_latency_group, resources.issue_group];
    let fixed: u128 = fixed.iter().flatten().map(|g| registers(g.allocated_warps, g.registers_per_thread)).sum();
    let compute = groups.iter().filter(|g| g.role == GroupRole::Compute);
    let required = fixed + compute.map(|g| registers(g.warps, g.registers_per_thread)).sum::<u128>();
    let available = resources.registers.words;
    if required > u128::from(available) {
        let required = saturate::<u64>(required);
        broken.push(MultiLoopViolation::RegisterFile { required, available });
    }
}
