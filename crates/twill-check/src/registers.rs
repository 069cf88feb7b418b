//! `registers`: the tile words that a group holds at any time fit its registers,
//! `32 · warps · (min(r_g, maximum) − reserve)`, where `r_g` is what the schedule gives to a compute group and
//! what the machine gives to a fixed one; registers are allocated as the machine can; and all
//! groups together fit the register file.
//!
//! A group holds the results of its operations while they are live, and the operands that come
//! from the registers of another group while the operation that reads them has rows in the
//! schedule, unless that is of variable latency: TMA reads the handoff buffer (option
//! `consumer_registers` *off*: no operands).

use crate::lives::{self, Life};
use crate::placed::{Placed, amount};
use crate::rejected::Violations;
use crate::{Held, Violation};
use twill_graph::{GroupRole, Storage, WarpGroup};

/// Threads of a warp.
const THREADS: i128 = 32;

pub(crate) fn check(placed: &Placed, violations: &mut Violations) {
    check_file(placed, violations);
    if lives::replayable(placed).is_err() {
        return;
    }
    let mut lives = demands(placed);
    let pool = placed.problem.groups();
    let file = &placed.problem.resources().registers;
    for given in &placed.schedule.groups {
        let Some(group) = pool.get(given.id.index()) else { continue };
        let usable =
            i128::from(given.registers_per_thread.min(file.maximum_per_thread)) - i128::from(file.reserve_per_thread);
        let available = THREADS * i128::from(group.warps) * usable.max(0);
        let Some((peak, run)) = lives::most(placed, &std::mem::take(&mut lives[given.id.index()])) else { continue };
        if peak.total > available {
            violations.push(Violation::Registers {
                group: given.id,
                available: amount(available),
                required: amount(peak.total),
                at: run.moment(peak.cycle),
                holders: run.holders(placed, peak.cycle),
            });
        }
    }
}

/// The words that each group of the pool holds.
fn demands(placed: &Placed) -> Vec<Vec<Life>> {
    let mut lives: Vec<Vec<Life>> = placed.problem.groups().iter().map(|_| Vec::new()).collect();
    for (op, operation) in placed.operations() {
        let Storage::Registers(words) = operation.storage else { continue };
        lives[placed.group(op).index()].push(Life::of_result(placed, op, words.0));
        if !placed.problem.options().consumer_registers {
            continue;
        }
        for d in placed.readers(op).iter().filter(|d| placed.is_handoff(d)) {
            if !placed.graph().operation(d.to).variable_latency {
                lives[placed.group(d.to).index()].push(Life {
                    op,
                    held: Held::Operand,
                    start: placed.issue(d.to),
                    reads: vec![(placed.last_row(d.to), 0)],
                    amount: words.0,
                });
            }
        }
    }
    lives
}

fn check_file(placed: &Placed, violations: &mut Violations) {
    let resources = placed.problem.resources();
    let file = &resources.registers;
    let fixed = [resources.variable_latency_group, resources.issue_group];
    let mut required: i128 = fixed
        .iter()
        .flatten()
        .map(|g| THREADS * i128::from(g.allocated_warps) * i128::from(g.registers_per_thread))
        .sum();
    for given in &placed.schedule.groups {
        let Some(group) = placed.problem.groups().get(given.id.index()) else { continue };
        match (group.role, fixed) {
            (GroupRole::VariableLatency, [Some(fixed), _]) | (GroupRole::Issue, [_, Some(fixed)]) => {
                range(given, fixed.registers_per_thread, fixed.registers_per_thread, violations);
            }
            _ => {
                let granularity = file.granularity.max(1);
                if given.registers_per_thread % granularity != 0 {
                    violations.push(Violation::RegisterGranularity {
                        group: given.id,
                        given: given.registers_per_thread,
                        granularity,
                    });
                }
                // The last granule may go beyond what a thread can address.
                let maximum = file.maximum_per_thread.div_ceil(granularity) * granularity;
                // Even a group that holds nothing has addresses and temporaries: 0 words ≤ r_g − reserve.
                let minimum = file.minimum_per_thread.max(file.reserve_per_thread);
                range(given, minimum, maximum, violations);
                required += THREADS * i128::from(group.warps) * i128::from(given.registers_per_thread);
            }
        }
    }
    if required > i128::from(file.words) {
        violations.push(Violation::RegisterFile { required: amount(required), available: file.words });
    }
}

fn range(group: &WarpGroup, minimum: u32, maximum: u32, violations: &mut Violations) {
    let given = group.registers_per_thread;
    if !(minimum..=maximum).contains(&given) {
        violations.push(Violation::RegisterRange { group: group.id, given, minimum, maximum });
    }
}
