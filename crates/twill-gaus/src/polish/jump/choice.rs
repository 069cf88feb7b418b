//! Which operations of a window move: a minimum cut.
//!
//! Each operation has a lower and a higher step, `k` apart, one of which it has now. Those on the side of the source are at
//! the higher. A dependence that needs its reader at the higher step once its producer is there is an arc without an
//! end. A value that lives on when one of several readers is at its higher step is one node more.

use super::landscape::Landscape;
use crate::bounds::{Budget, Network, SINK, SOURCE};
use std::ops::RangeInclusive;

/// What all prices of a network together come to, in whole numbers: coarse, so that flows are found soon.
const SCALE: f64 = (1_u64 << 24) as f64;

/// Operations without a node.
const FIXED: u32 = u32::MAX;

struct Choice<'l> {
    land: &'l Landscape<'l>,
    by: i64,
    network: Network,
    /// By operation.
    node: Vec<u32>,
    movable: Vec<u32>,
    scale: f64,
    /// Pairs of nodes of operations whose moves depend on each other.
    ties: Vec<(u32, u32)>,
}

/// Parts of the best set to move `by` steps, of operations that start in `window`; `None` when the budget is used up.
pub(super) fn choose(
    land: &Landscape<'_>,
    window: RangeInclusive<i64>,
    by: i64,
    budget: &mut Budget<'_>,
) -> Option<Vec<Vec<u32>>> {
    let model = land.model;
    let (mut network, mut node) = (Network::new(), vec![FIXED; model.len()]);
    let mut movable = Vec::new();
    for (v, own) in node.iter_mut().enumerate() {
        let other = land.steps[v] + by;
        if window.contains(&land.steps[v]) && (model.earliest[v]..=model.latest[v]).contains(&other) {
            *own = network.node();
            movable.push(v as u32);
        }
    }
    let mut choice = Choice { land, by, network, node, movable, scale: 1.0, ties: Vec::new() };
    choice.build();
    // Building takes as long as some visits of all arcs, and a round in which nothing can move is one as well.
    let built = 1 + model.len() / 4 + 4 * choice.ties.len() + 8 * choice.movable.len();
    if budget.visit(built as u64) {
        return None;
    }
    choice.network.flow(budget);
    (!budget.is_over()).then(|| choice.parts())
}

impl Choice<'_> {
    fn low(&self, v: usize) -> i64 {
        self.land.steps[v] + if self.node[v] == FIXED { 0 } else { self.by.min(0) }
    }

    fn high(&self, v: usize) -> i64 {
        self.land.steps[v] + if self.node[v] == FIXED { 0 } else { self.by.max(0) }
    }

    fn capacity(&self, cost: f64) -> i64 {
        (cost * self.scale) as i64
    }

    fn build(&mut self) {
        let (land, model) = (self.land, self.land.model);
        let movable = std::mem::take(&mut self.movable);
        let costs = movable.iter().map(|&v| land.start_cost(v as usize, self.low(v as usize), self.high(v as usize)));
        let costs: Vec<f64> = costs.collect();
        let all: f64 = costs.iter().map(|cost| cost.abs()).sum();
        self.scale = SCALE / all.max(f64::MIN_POSITIVE);
        if !self.scale.is_finite() {
            self.movable = movable;
            return;
        }
        let mut values: Vec<u32> = Vec::new();
        for (&v, &cost) in movable.iter().zip(&costs) {
            let v = v as usize;
            let own = self.node[v];
            match self.capacity(cost) {
                more @ 1.. => _ = self.network.arc(own, SINK, more),
                less @ ..0 => _ = self.network.arc(SOURCE, own, -less),
                0 => {}
            }
            for s in model.precedence.successors(v) {
                if self.low(s.op()) >= self.high(v) + s.lag {
                    continue;
                }
                match self.node[s.op()] {
                    FIXED => _ = self.network.arc(own, SINK, i64::MAX),
                    reader => {
                        self.network.arc(own, reader, i64::MAX);
                        self.ties.push((own, reader));
                    }
                }
            }
            for p in model.precedence.predecessors(v) {
                if self.node[p.op()] == FIXED && self.low(v) < land.steps[p.op()] + p.lag {
                    self.network.arc(SOURCE, own, i64::MAX);
                }
                if land.is_storage && model.storage[p.op()] > 0 {
                    values.push(p.op() as u32);
                }
            }
        }
        values.sort_unstable();
        values.dedup();
        let mut readers = Vec::new();
        for value in values {
            self.value(value as usize, &mut readers);
        }
        self.movable = movable;
    }

    /// What a value costs more when readers are at their higher steps.
    fn value(&mut self, v: usize, readers: &mut Vec<(i64, u32)>) {
        let model = self.land.model;
        let edges = &model.edges()[model.edges_of(v)];
        let mut end = edges.iter().map(|edge| self.low(edge.to)).max().unwrap_or(0);
        readers.clear();
        let open = edges.iter().filter(|edge| self.node[edge.to] != FIXED && self.high(edge.to) > end);
        readers.extend(open.map(|edge| (self.high(edge.to), self.node[edge.to])));
        readers.sort_unstable();
        readers.dedup();
        let mut first = 0;
        while let Some(&(high, reader)) = readers.get(first) {
            let cost = self.capacity(self.land.value_cost(v, end, high));
            let those = &readers[first..];
            if cost > 0 && those.len() == 1 {
                self.network.arc(reader, SINK, cost);
            } else if cost > 0 {
                let read = self.network.node();
                self.network.arc(read, SINK, cost);
                for &(_, other) in those {
                    self.network.arc(other, read, i64::MAX);
                    self.ties.push((reader, other));
                }
            }
            end = high;
            first += those.iter().take_while(|(at, _)| *at == high).count();
        }
    }

    /// The set that moves, in parts that are not tied to each other.
    fn parts(self) -> Vec<Vec<u32>> {
        // As few as there can be: those that the source reaches go up; those that reach the sink go down.
        let moved = self.network.side(if self.by > 0 { SOURCE } else { SINK });
        let mut root: Vec<u32> = (0..moved.len() as u32).collect();
        for &(a, b) in self.ties.iter().filter(|(a, b)| moved[*a as usize] && moved[*b as usize]) {
            let (a, b) = (find(&mut root, a), find(&mut root, b));
            root[a as usize] = b;
        }
        let moves = self.movable.iter().filter(|&&v| moved[self.node[v as usize] as usize]);
        let mut by_root: Vec<(u32, u32)> = moves.map(|&v| (find(&mut root, self.node[v as usize]), v)).collect();
        by_root.sort_unstable();
        by_root.chunk_by(|a, b| a.0 == b.0).map(|part| part.iter().map(|&(_, v)| v).collect()).collect()
    }
}

fn find(root: &mut [u32], mut node: u32) -> u32 {
    while root[node as usize] != node {
        root[node as usize] = root[root[node as usize] as usize];
        node = root[node as usize];
    }
    node
}
