//! Of schedules with the same interval, those in which all sub-tiles have their MMAs in one order, and start together
//! what can start together.
//!
//! The model does not care in which order a sub-tile's independent MMAs come, nor what a group waits for between them. A
//! machine does: a group that waits for a result starts nothing meanwhile. On an H200 attention backward is 7 % faster in short
//! runs where both groups start S and dP, compute with them, and start dV, dQ and dK, than where one of them has dQ last
//! (`bench/results/variants.md`).
//!
//! An order falls into batches: an MMA begins one if it needs a result of the batch before it. Schedules with such MMA batches
//! are found as in [`latency_padding`](super::latency_padding), by asking for more than the machine does: dependences without a value say
//! that the results of a batch are used after the start of its last MMA (those that other groups read, of the next one),
//! and that an iteration's MMAs come before those of the next. What is feasible then is feasible on the machine, and no interval gets shorter by it.

use super::latency_padding::is_mma;
use super::thresholds::THRESHOLDS;
use crate::{LoopProblem, Loops};
use std::collections::BTreeMap;
use twill_graph::{Cycles, Dependence, LoopGraph, OpId, Operation, Problem};

/// An order of a sub-tile's MMAs, by their numbers among them.
pub(super) type Order = Vec<usize>;

/// All orders of a sub-tile's MMAs that dependences within an iteration leave; none where sub-tiles are not alike, where
/// there is but one order, where none uses results between MMAs, or where there are too many. With each, how many MMA batches
/// end with an MMA whose result another group reads: nothing runs during the handoff. The fewest first.
pub(super) fn orders(problem: &Problem) -> Vec<(usize, Order)> {
    let graph = problem.graph();
    let Some(tiles) = mmas(graph) else { return Vec::new() };
    let Some(first) = tiles.first() else { return Vec::new() };
    let before: Vec<Vec<usize>> = first
        .iter()
        .map(|to| (0..first.len()).filter(|from| first[*from] != *to && reaches(graph, first[*from], *to)).collect())
        .collect();
    let mut found = Vec::new();
    extend(&before, &mut Vec::new(), &mut found);
    if found.len() < 2 || found.len() > THRESHOLDS.batch_orders {
        return Vec::new();
    }
    let mut orders = Vec::new();
    for order in found {
        let in_order: Vec<OpId> = order.iter().filter_map(|k| first.get(*k).copied()).collect();
        let mma_batches = mma_batches(graph, &in_order);
        let exposed = mma_batches.iter().filter_map(|batch| batch.last()).filter(|op| is_handed_off(graph, **op));
        if mma_batches.len() > 1 {
            orders.push((exposed.count(), order));
        }
    }
    orders.sort();
    orders
}

/// Every way to go on with an order, as many as are looked at.
fn extend(before: &[Vec<usize>], order: &mut Order, found: &mut Vec<Order>) {
    if order.len() == before.len() {
        found.push(order.clone());
        return;
    }
    for next in 0..before.len() {
        let is_ready = !order.contains(&next) && before[next].iter().all(|one| order.contains(one));
        if is_ready && found.len() <= THRESHOLDS.batch_orders {
            order.push(next);
            extend(before, order, found);
            order.pop();
        }
    }
}

/// Each sub-tile's MMAs; `None` where sub-tiles have different numbers of them, or some belong to none.
fn mmas(graph: &LoopGraph) -> Option<Vec<Vec<OpId>>> {
    let mut tiles: BTreeMap<u32, Vec<OpId>> = BTreeMap::new();
    for op in graph.op_ids().filter(|op| is_mma(graph.operation(*op))) {
        tiles.entry(graph.operation(op).sub_tile?).or_default().push(op);
    }
    let tiles: Vec<Vec<OpId>> = tiles.into_values().collect();
    tiles.windows(2).all(|pair| pair[0].len() == pair[1].len()).then_some(tiles)
}

/// Whether one operation must come before another of the same iteration.
fn reaches(graph: &LoopGraph, from: OpId, to: OpId) -> bool {
    let mut reached = vec![false; graph.operations().len()];
    let mut next = vec![from];
    while let Some(op) = next.pop() {
        for dependence in graph.dependences().iter().filter(|d| d.from == op && d.distance == 0) {
            if !std::mem::replace(&mut reached[dependence.to.index()], true) {
                next.push(dependence.to);
            }
        }
    }
    reached[to.index()]
}

/// Cuts MMAs in their order where one needs a result of the batch before it.
fn mma_batches(graph: &LoopGraph, in_order: &[OpId]) -> Vec<Vec<OpId>> {
    let mut mma_batches: Vec<Vec<OpId>> = Vec::new();
    for &op in in_order {
        match mma_batches.last_mut() {
            Some(batch) if !batch.iter().any(|before| reaches(graph, *before, op)) => batch.push(op),
            _ => mma_batches.push(vec![op]),
        }
    }
    mma_batches
}

/// Whether something else than the group's own threads reads an MMA's result.
fn is_handed_off(graph: &LoopGraph, op: OpId) -> bool {
    graph.uses(op).any(|d| !d.tied && !graph.operation(d.to).is_synchronous())
}

/// The same loops, each with every sub-tile's MMAs in an order and in batches; `None` where the model does not take it.
pub(super) fn in_batches(
    problems: &Loops<LoopProblem>,
    order: &[usize],
    interval: Cycles,
) -> Option<Loops<LoopProblem>> {
    let mut problems = problems.clone();
    for one in &mut problems.loops {
        let graph = graph_in_batches(one.problem.graph(), order, interval)?;
        one.problem = Problem::new(graph, one.problem.resources().clone(), *one.problem.options()).ok()?;
        one.rolled = None;
    }
    Some(problems)
}

fn graph_in_batches(graph: &LoopGraph, order: &[usize], interval: Cycles) -> Option<LoopGraph> {
    let tiles = mmas(graph)?;
    let (mut operations, mut dependences) = (graph.operations().to_vec(), graph.dependences().to_vec());
    for tile in &tiles {
        let in_order: Vec<OpId> = order.iter().map(|k| tile.get(*k).copied()).collect::<Option<_>>()?;
        for pair in in_order.windows(2) {
            first(&mut dependences, pair[0], pair[1], 0, Cycles(1));
        }
        let last = *in_order.last()?;
        first(&mut dependences, last, *in_order.first()?, 1, graph.operation(last).completion() + Cycles(1));
        for batch in mma_batches(graph, &in_order) {
            for pair in batch.windows(2) {
                let (op, next) = (pair[0], pair[1]);
                let Some(&last) = batch.last() else { continue };
                for user in graph.uses(op).filter(|d| d.distance == 0 && graph.operation(d.to).is_synchronous()) {
                    first(&mut dependences, last, user.to, 0, Cycles(1));
                }
                // Meanwhile each sub-tile may have a turn.
                let longest = graph.operation(op).occupancy.max(graph.operation(next).occupancy);
                let turn = longest.0 * tiles.len() as i64;
                first(&mut dependences, next, op, 1, Cycles(interval.0 - turn));
                if is_handed_off(graph, op) {
                    give_later(&mut operations[op.index()], op, Cycles(turn + 1), &mut dependences);
                }
            }
        }
    }
    LoopGraph::new(graph.name(), operations, dependences, graph.reserved()).ok()
}

/// One operation starts ahead of another.
fn first(dependences: &mut Vec<Dependence>, from: OpId, to: OpId, distance: u32, delay: Cycles) {
    if dependences.iter().any(|d| (d.from, d.to, d.distance) == (from, to, distance)) {
        return;
    }
    let (blocking, carries_value, tied) = (false, false, false);
    dependences.push(Dependence { from, to, delay, distance, blocking, carries_value, tied, hold: Cycles(0) });
}

/// An MMA is over no sooner than this many cycles after its start: what it reads is given back then, and what another group
/// reads of it handed off. What it reads from registers counts as long as it reads it.
fn give_later(operation: &mut Operation, op: OpId, least: Cycles, dependences: &mut [Dependence]) {
    let before = operation.latency;
    operation.latency = before.max(least);
    for dependence in dependences.iter_mut().filter(|d| d.from == op && d.delay == before) {
        dependence.delay = operation.latency;
    }
}
