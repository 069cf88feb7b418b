//! Promising assignments of operations to warp groups, for a schedule to be built on.
//!
//! Operations that must stay together (carried register values) move together. The clusters are given out by
//! sub-tile, or merged along the heaviest handoffs while the synchronous work of a part allows it.

use crate::constraints::assignment;
use std::collections::BTreeMap;
use twill_graph::saturate;
use twill_graph::{GroupId, GroupRole, OpId, Problem, Storage};

/// Assignments to try, the most promising first; none where some operation fits no group.
pub(super) fn assignments(problem: &Problem) -> Vec<Vec<GroupId>> {
    let graph = problem.graph();
    let choices: Vec<Vec<GroupId>> = graph.op_ids().map(|op| assignment::candidates(problem, op)).collect();
    let Some(fixed) = choices.iter().map(|c| c.first().copied()).collect::<Option<Vec<GroupId>>>() else {
        return Vec::new();
    };
    let compute: Vec<GroupId> =
        problem.group_ids().filter(|g| problem.groups()[g.index()].role == GroupRole::Compute).collect();
    let clusters = clusters(problem);
    let mut plans: Vec<Vec<GroupId>> = Vec::new();
    for parts in 1..=compute.len() {
        let splits = [by_sub_tile(problem, &clusters, parts, false), by_sub_tile(problem, &clusters, parts, true)];
        for part_of in splits.into_iter().flatten().chain([by_affinity(problem, &clusters, parts)]) {
            let place = |op: OpId| match clusters.of[op.index()] {
                Some(cluster) => compute[part_of[cluster]],
                None => fixed[op.index()],
            };
            let plan = in_order(problem, &compute, graph.op_ids().map(place).collect());
            if !plans.contains(&plan) {
                plans.push(plan);
            }
        }
    }
    plans
}

/// Interchangeable groups numbered in the order in which operations open them.
fn in_order(problem: &Problem, compute: &[GroupId], mut plan: Vec<GroupId>) -> Vec<GroupId> {
    let mut opened: Vec<GroupId> = Vec::new();
    for group in &mut plan {
        if problem.groups()[group.index()].role != GroupRole::Compute {
            continue;
        }
        let at = opened.iter().position(|g| g == group).unwrap_or_else(|| {
            opened.push(*group);
            opened.len() - 1
        });
        *group = compute[at];
    }
    plan
}

/// Operations of compute groups that must stay together.
struct Clusters {
    /// The cluster of each operation; `None` for those whose group is fixed.
    of: Vec<Option<usize>>,
    members: Vec<Vec<OpId>>,
}

fn clusters(problem: &Problem) -> Clusters {
    let graph = problem.graph();
    let computes = |op: OpId| assignment::role(problem, op) == GroupRole::Compute;
    let mut of: Vec<Option<usize>> = graph.op_ids().map(|op| computes(op).then_some(op.index())).collect();
    for (from, to, words, distance) in register_values(problem) {
        let together = words > 0 && (distance > 0 || !problem.options().cross_group_registers);
        if let (true, Some(a), Some(b)) = (together, of[from.index()], of[to.index()]) {
            of.iter_mut().filter(|c| **c == Some(b.max(a))).for_each(|c| *c = Some(a.min(b)));
        }
    }
    let mut members: BTreeMap<usize, Vec<OpId>> = BTreeMap::new();
    for op in graph.op_ids() {
        if let Some(cluster) = of[op.index()] {
            members.entry(cluster).or_default().push(op);
        }
    }
    for (number, name) in members.keys().enumerate() {
        of.iter_mut().filter(|c| **c == Some(*name)).for_each(|c| *c = Some(number));
    }
    Clusters { of, members: members.into_values().collect() }
}

/// Register values that one operation passes to another: words and distance.
fn register_values(problem: &Problem) -> Vec<(OpId, OpId, u64, u32)> {
    let graph = problem.graph();
    let values = graph.dependences().iter().filter(|d| d.carries_value && d.from != d.to);
    values
        .filter_map(|d| match graph.operation(d.from).storage {
            Storage::Registers(words) => Some((d.from, d.to, words.0.max(1), d.distance)),
            Storage::None | Storage::Shared(_) | Storage::Tensor(_) => None,
        })
        .collect()
}

/// Sub-tiles assigned round robin, or in blocks of neighbours; an operation without sub-tile goes where most of
/// the values it shares are.
fn by_sub_tile(problem: &Problem, clusters: &Clusters, parts: usize, blocks: bool) -> Option<Vec<usize>> {
    let graph = problem.graph();
    let tile = |op: OpId| graph.operation(op).sub_tile.map(|t| t as usize);
    let tiles = graph.op_ids().filter_map(tile).max()? + 1;
    let part = |t: usize| if blocks { t * parts / tiles } else { t % parts };
    let mut part_of: Vec<Option<usize>> =
        clusters.members.iter().map(|m| m.iter().find_map(|&op| tile(op)).map(part)).collect();
    let shared = shared_words(problem, clusters);
    loop {
        let mut best: Option<(u64, usize, usize)> = None;
        for (cluster, _) in part_of.iter().enumerate().filter(|(_, p)| p.is_none()) {
            for to in 0..parts {
                let near = part_of.iter().enumerate().filter(|(_, p)| **p == Some(to));
                let words: u64 = near.filter_map(|(other, _)| shared.get(&(cluster, other))).sum();
                if best.is_none_or(|b| words > b.0) {
                    best = Some((words, cluster, to));
                }
            }
        }
        let Some((_, cluster, to)) = best else { break };
        part_of[cluster] = Some(to);
    }
    part_of.into_iter().collect()
}

/// Words that pass between clusters, both ways round.
fn shared_words(problem: &Problem, clusters: &Clusters) -> BTreeMap<(usize, usize), u64> {
    let mut shared = BTreeMap::new();
    for (from, to, words, _) in register_values(problem) {
        if let (Some(a), Some(b)) = (clusters.of[from.index()], clusters.of[to.index()]) {
            *shared.entry((a, b)).or_insert(0) += words;
            *shared.entry((b, a)).or_insert(0) += words;
        }
    }
    shared
}

/// Merges the two parts that pass the most words while their work fits an equal share (or the largest
/// cluster), then gives the rest to the part with the least work, the heaviest first.
fn by_affinity(problem: &Problem, clusters: &Clusters, parts: usize) -> Vec<usize> {
    let graph = problem.graph();
    let work = |op: &OpId| Some(graph.operation(*op)).filter(|o| o.is_synchronous()).map_or(0, |o| o.occupancy.0);
    let mut loads: Vec<i64> = clusters.members.iter().map(|m| m.iter().map(work).sum()).collect();
    let total: i64 = loads.iter().sum();
    let share = (total / saturate::<i64>(parts)).max(loads.iter().copied().max().unwrap_or(0));
    let mut merged: Vec<usize> = (0..loads.len()).collect();
    let mut shared = shared_words(problem, clusters);
    loop {
        let fits = |&(&(a, b), _): &(&(usize, usize), &u64)| a < b && loads[a].saturating_add(loads[b]) <= share;
        let heaviest = shared.iter().filter(fits).max_by_key(|(pair, words)| (**words, std::cmp::Reverse(**pair)));
        let Some((&(a, b), _)) = heaviest else { break };
        loads[a] += loads[b];
        loads[b] = 0;
        merged.iter_mut().filter(|m| **m == b).for_each(|m| *m = a);
        let moved: Vec<((usize, usize), u64)> = shared.iter().map(|(pair, words)| (*pair, *words)).collect();
        shared.clear();
        let renamed = |x| if x == b { a } else { x };
        for ((x, y), words) in moved {
            let (x, y) = (renamed(x), renamed(y));
            if x != y {
                *shared.entry((x, y)).or_insert(0) += words;
            }
        }
    }
    let mut roots: Vec<usize> = merged.clone();
    roots.sort_unstable();
    roots.dedup();
    roots.sort_by_key(|&root| (std::cmp::Reverse(loads[root]), root));
    let mut given = vec![0_i64; parts];
    let mut part_of_root: BTreeMap<usize, usize> = BTreeMap::new();
    for root in roots {
        let near = |part: usize| -> u64 {
            let others = part_of_root.iter().filter(|(_, p)| **p == part);
            others.filter_map(|(other, _)| shared.get(&(root, *other))).sum()
        };
        let fits = |part: usize| given[part] + loads[root] <= share;
        let part = (0..parts)
            .max_by_key(|&p| (fits(p), if fits(p) { near(p) } else { 0 }, std::cmp::Reverse((given[p], p))))
            .unwrap_or(0);
        given[part] += loads[root];
        part_of_root.insert(root, part);
    }
    merged.iter().map(|root| part_of_root.get(root).copied().unwrap_or(0)).collect()
}
