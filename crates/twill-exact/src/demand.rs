//! Registers that every schedule needs, without search.
//!
//! A value that is carried from iteration to iteration is always alive, in one of the operations around its cycle, for the
//! life of each ends no earlier than the next begins. Just before an operation issues, all that it reads is alive; and when
//! it issues, its result, with the operands that it goes on reading. With operations on fixed groups this adds up for each
//! group and, with whole granules, for the file; where groups are chosen, for all of them together.

use crate::constraints::assignment;
use std::collections::BTreeMap;
use twill_graph::saturate;
use twill_graph::{Dependence, GroupId, GroupRole, Liveness, OpId, Problem, RejectionReason, Storage};

/// The registers that all compute groups, or one of them, hold at some time in every schedule.
#[derive(Default)]
struct Demand {
    words: u64,
    values: Vec<OpId>,
}

/// Why no schedule has enough registers, if that is plain.
pub(crate) fn impossible(problem: &Problem) -> Option<RejectionReason> {
    if problem.options().liveness != Liveness::Folded {
        return None;
    }
    let computes: Vec<OpId> =
        problem.graph().op_ids().filter(|&op| assignment::role(problem, op) == GroupRole::Compute).collect();
    if assignment::is_free(problem) {
        return together(problem, &computes);
    }
    let mut of_group: BTreeMap<GroupId, Vec<OpId>> = BTreeMap::new();
    for op in computes {
        if let [only] = assignment::candidates(problem, op).as_slice() {
            of_group.entry(*only).or_default().push(op);
        }
    }
    let demands: Vec<Demand> = of_group.values().map(|members| demand(problem, members)).collect();
    one_group(problem, &demands).or_else(|| file(problem, &demands))
}

/// Groups that are chosen: they cannot hold more than all registers.
fn together(problem: &Problem, computes: &[OpId]) -> Option<RejectionReason> {
    let resources = problem.resources();
    let budget = resources.compute_register_budget();
    let with = |groups: u32| {
        let threads = resources.compute_group_cost(1) * u64::from(groups);
        let each = saturate::<u32>(budget / threads.max(1));
        u64::from(groups) * resources.tile_words(resources.compute_groups.warps, each)
    };
    let available = (1..=resources.compute_groups.maximum).map(with).max().unwrap_or(0);
    let demand = demand(problem, computes);
    (demand.words > available).then(|| reason(problem, "register words of all warp groups", &demand, available))
}

fn one_group(problem: &Problem, demands: &[Demand]) -> Option<RejectionReason> {
    let resources = problem.resources();
    let most = resources.tile_words(resources.compute_groups.warps, resources.registers.maximum_per_thread);
    let too_many = demands.iter().find(|d| d.words > most)?;
    Some(reason(problem, "register words of one warp group", too_many, most))
}

/// Each group gets whole granules.
fn file(problem: &Problem, demands: &[Demand]) -> Option<RejectionReason> {
    let resources = problem.resources();
    let least = resources.registers.minimum_per_thread;
    let each = |d: &Demand| resources.registers_for(d.words).unwrap_or(least);
    let cost = |d: &Demand| resources.compute_group_cost(each(d));
    let (required, available) = (demands.iter().map(cost).sum::<u64>(), resources.compute_register_budget());
    let all = Demand { words: required, values: demands.iter().flat_map(|d| d.values.iter().copied()).collect() };
    (required > available).then(|| reason(problem, "registers of all warp groups", &all, available))
}

fn reason(problem: &Problem, memory: &str, demand: &Demand, available: u64) -> RejectionReason {
    let name = |op: &OpId| problem.graph().operation(*op).name.clone();
    let values = demand.values.iter().map(name).collect();
    RejectionReason::Storage { memory: memory.into(), required: demand.words, available, values }
}

fn words(problem: &Problem, op: OpId) -> u64 {
    problem.graph().operation(op).register_words().0
}

/// Words that these operations hold at some time in every schedule.
fn demand(problem: &Problem, members: &[OpId]) -> Demand {
    let graph = problem.graph();
    let mut always = always(problem, members);
    let other = |op: OpId| members.contains(&op) && !always.values.contains(&op) && words(problem, op) > 0;
    let mut most: Vec<OpId> = Vec::new();
    let sum = |ops: &[OpId]| ops.iter().map(|op| words(problem, *op)).sum::<u64>();
    for &op in members {
        let reads = || {
            let mut read: Vec<&Dependence> =
                graph.dependences().iter().filter(|d| d.to == op && d.carries_value && d.distance == 0).collect();
            read.retain(|d| other(d.from));
            read
        };
        let mut before: Vec<OpId> = reads().iter().filter(|d| d.delay.0 > 0).map(|d| d.from).collect();
        let mut during: Vec<OpId> =
            reads().iter().filter(|d| d.hold.0 > 0 && d.delay.0 >= 0 && !d.tied).map(|d| d.from).collect();
        let lives = |d: &Dependence| d.delay.0 > 0 || (d.delay.0 == 0 && d.hold.0 > 0);
        if other(op) && graph.uses(op).any(lives) {
            during.push(op);
        }
        for moment in [&mut before, &mut during] {
            moment.sort();
            moment.dedup();
            if sum(moment) > sum(&most) {
                most.clone_from(moment);
            }
        }
    }
    always.words += sum(&most);
    always.values.extend(most);
    always
}

/// Cycles of carried values that have no operation in common: of each, the least is always alive.
fn always(problem: &Problem, members: &[OpId]) -> Demand {
    let graph = problem.graph();
    let kept = |op: OpId| members.contains(&op) && matches!(graph.operation(op).storage, Storage::Registers(_));
    let values: Vec<&Dependence> =
        graph.dependences().iter().filter(|d| d.carries_value && kept(d.from) && kept(d.to)).collect();
    let mut carried: Vec<&Dependence> = values.iter().copied().filter(|d| d.distance > 0).collect();
    carried.sort_by_key(|d| std::cmp::Reverse(words(problem, d.from).min(words(problem, d.to))));
    let mut demand = Demand::default();
    for d in carried {
        if let Some(cycle) = path(problem, &values, d.to, d.from, &demand.values) {
            demand.words += cycle.iter().map(|op| words(problem, *op)).min().unwrap_or(0);
            demand.values.extend(cycle);
        }
    }
    demand
}

/// A way within an iteration from one value to another that avoids some: the one whose smallest value is largest.
fn path(problem: &Problem, values: &[&Dependence], from: OpId, to: OpId, avoid: &[OpId]) -> Option<Vec<OpId>> {
    let mut best: BTreeMap<OpId, (u64, Vec<OpId>)> = BTreeMap::new();
    if avoid.contains(&from) {
        return None;
    }
    best.insert(from, (words(problem, from), vec![from]));
    // Within an iteration there are no circles, so each round settles one operation more.
    let mut changed = true;
    while changed {
        changed = false;
        for d in values.iter().filter(|d| d.distance == 0 && !avoid.contains(&d.to)) {
            let Some((least, way)) = best.get(&d.from).cloned() else { continue };
            let least = least.min(words(problem, d.to));
            if best.get(&d.to).is_none_or(|(known, _)| least > *known) && !way.contains(&d.to) {
                let way = way.into_iter().chain([d.to]).collect();
                best.insert(d.to, (least, way));
                changed = true;
            }
        }
    }
    best.remove(&to).map(|(_, way)| way)
}

#[cfg(test)]
mod tests {
    use super::impossible;
    use crate::limits::{Budget, Meter};
    use crate::query::{self, Verdict};
    use crate::{bounds, naive, structure};
    use serde_json::{Value, json};
    use twill_graph::format::{GraphFile, MachineReference};
    use twill_graph::{Families, ModelOptions, Problem, SplitMix64, WarpAssignment};

    /// A loop of a few operations with results in registers, of which some are carried, on two groups with few registers.
    fn random(seed: u64, warp_assignment: WarpAssignment) -> Problem {
        let mut draw = SplitMix64::new(seed);
        let mut below = |n: u64| draw.below(n);
        let count = 2 + below(4);
        let operations: Vec<Value> = (0..count)
            .map(|k| {
                let words = 128 * (1 + below(24));
                let sub_tile = below(2);
                json!({"name": format!("v{k}"), "units": [{"unit": "alu", "cycles": 1 + below(3)}], "sub_tile": sub_tile,
                       "latency": 1 + below(3), "result": {"registers": words}, "handoff": 1})
            })
            .collect();
        let mut dependences = Vec::new();
        for from in 0..count {
            for to in 0..count {
                if from < to && below(2) == 0 {
                    dependences
                        .push(json!({"from": format!("v{from}"), "to": format!("v{to}"), "tied": below(3) == 0}));
                } else if from >= to && below(3) == 0 {
                    dependences.push(json!({"from": format!("v{from}"), "to": format!("v{to}"), "distance": 1}));
                }
            }
        }
        let machine = json!({
            "name": "few", "units": [{"name": "alu"}], "shared_memory": 1 << 20,
            "registers": {"words": 6144 + 1024 * below(6), "minimum_per_thread": 8, "maximum_per_thread": 40,
                          "granularity": 8, "reserve_per_thread": 8},
            "compute_groups": {"warps": 4, "maximum": 2}
        });
        let graph = json!({"format": "twill-graph", "version": 1, "name": "random", "machine": machine,
                           "operations": operations, "dependences": dependences});
        let file = GraphFile::from_json(&graph.to_string(), "random").unwrap();
        let Some(MachineReference::Resources(resources)) = file.machine.clone() else { unreachable!() };
        let options = ModelOptions { warp_assignment, ..ModelOptions::default() };
        Problem::new(file.graph().unwrap(), *resources, options).unwrap()
    }

    #[test]
    fn what_is_said_to_be_impossible_is_excluded_by_search() {
        for assignment in [WarpAssignment::BySubTile, WarpAssignment::Free] {
            let mut found = 0;
            for seed in 0..400 {
                let problem = random(seed, assignment);
                let Some(reason) = impossible(&problem) else { continue };
                found += 1;
                let meter = Meter::start(&Budget::default());
                // A feasible problem is feasible there.
                let largest = bounds::largest_interval(&problem);
                let verdict = query::exists(&problem, largest, Families::ALL, &meter);
                assert!(matches!(verdict, Verdict::Excluded { stages: None, .. }), "{seed} {assignment:?}: {reason:?}");
            }
            assert!(found > 20, "{assignment:?}: {found}");
        }
    }

    #[test]
    fn claims_that_the_checker_accepts_are_the_naive_schedule() {
        let mut found = 0;
        for seed in 0..200 {
            let problem = random(seed, WarpAssignment::BySubTile);
            let claimed =
                naive::unpipelined(&problem).find(|claim| twill_check::verify(&problem, claim.clone()).is_ok());
            let report =
                naive::naive(&problem, naive::Naive::NoPipelining, &crate::SearchOptions::default(), &mut |_| {});
            assert_eq!(claimed.as_ref(), report.outcome.schedule(), "{seed}");
            found += usize::from(claimed.is_some());
            assert!(claimed.is_none() || structure::impossible(&problem).is_none(), "{seed}");
        }
        assert!(found > 20, "{found}");
    }
}
