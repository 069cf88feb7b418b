//! Which operations a window lets move.

use super::encoding::Window;
use super::tracks::{Counted, spans};
use crate::model::Model;
use twill_graph::SplitMix64;

/// Ways to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowKind {
    /// Those that start nearest to a step.
    Stretch,
    /// Those that hold what is counted at a step, and their neighbours.
    Holders,
    /// One of them, its neighbours, theirs, and so on.
    Ball,
}

impl WindowKind {
    pub const ALL: [WindowKind; 3] = [WindowKind::Stretch, WindowKind::Holders, WindowKind::Ball];
}

/// Literals of order that a window may have, roughly.
const LITERALS: usize = 16_384;

/// The input for the choice of windows.
pub(super) struct Chooser<'a> {
    model: &'a Model<'a>,
    /// Operations that can move at all.
    pub movable: Vec<usize>,
    /// Position in topological order.
    rank: Vec<u32>,
}

impl<'a> Chooser<'a> {
    pub fn new(model: &'a Model<'a>) -> Self {
        let mut rank = vec![0; model.len()];
        for (position, v) in model.precedence.order().enumerate() {
            rank[v] = position as u32;
        }
        let mut movable: Vec<usize> = (0..model.len()).filter(|&v| model.width(v) > 0).collect();
        movable.sort_unstable_by_key(|&v| rank[v]);
        Self { model, movable, rank }
    }

    /// All that can move.
    pub fn whole(&self) -> Window {
        Window { ops: self.movable.clone(), reach: None }
    }

    /// About `size` operations around a slot.
    pub fn around(
        &self,
        kind: WindowKind,
        size: usize,
        steps: &[i64],
        counted: Option<Counted>,
        slot: usize,
        random: &mut SplitMix64,
    ) -> Window {
        let mut ops = match kind {
            WindowKind::Stretch => self.nearest(size, steps, slot, random),
            WindowKind::Holders | WindowKind::Ball => {
                let mut seeds = self.holders(steps, counted, slot);
                shuffle(&mut seeds, random);
                if kind == WindowKind::Ball {
                    seeds.truncate(1);
                }
                if seeds.is_empty() {
                    seeds = self.nearest(1, steps, slot, random);
                }
                self.grow(seeds, size, random)
            }
        };
        ops.sort_unstable_by_key(|&v| self.rank[v]);
        let reach = (LITERALS / (2 * ops.len().max(1))).max(4) as i64;
        Window { ops, reach: Some(reach) }
    }

    /// Operations that hold what is counted in a slot.
    fn holders(&self, steps: &[i64], counted: Option<Counted>, slot: usize) -> Vec<usize> {
        let Some(counted) = counted else { return Vec::new() };
        let (model, slot) = (self.model, slot as i64);
        let holds = |(start, length, _): (i64, i64, i64)| match model.interval {
            Some(ii) => (slot - start).rem_euclid(ii) < length,
            None => (start..start + length).contains(&slot),
        };
        (0..model.len()).filter(|&v| spans(model, counted, steps, v).any(holds)).collect()
    }

    fn nearest(&self, size: usize, steps: &[i64], slot: usize, random: &mut SplitMix64) -> Vec<usize> {
        let (model, slot) = (self.model, slot as i64);
        let distance = |v: usize| {
            let held = model.uses[v].iter().map(|used| used.offset + used.steps).max().unwrap_or(1).max(1);
            let (first, last) = (steps[v], steps[v] + held - 1);
            let line = if slot < first { first - slot } else { (slot - last).max(0) };
            let Some(ii) = model.interval else { return line };
            let since = (slot - first).rem_euclid(ii);
            if since < held { 0 } else { (since - held + 1).min(ii - since) }
        };
        let mut near: Vec<(i64, u64, usize)> =
            self.movable.iter().map(|&v| (distance(v), random.next_number(), v)).collect();
        if near.len() > size {
            near.select_nth_unstable(size);
            near.truncate(size);
        }
        near.into_iter().map(|(_, _, v)| v).collect()
    }

    /// The operations that can move among `seeds` and, breadth first, around them.
    fn grow(&self, seeds: Vec<usize>, size: usize, random: &mut SplitMix64) -> Vec<usize> {
        let model = self.model;
        let mut seen = vec![false; model.len()];
        seeds.iter().for_each(|&v| seen[v] = true);
        let (mut queue, mut ops, mut next) = (seeds, Vec::new(), 0);
        while let Some(&v) = queue.get(next) {
            next += 1;
            if model.width(v) > 0 {
                ops.push(v);
                if ops.len() >= size {
                    break;
                }
            }
            let around = model.precedence.predecessors(v).iter().chain(model.precedence.successors(v));
            let mut around: Vec<usize> = around.map(|n| n.op()).filter(|&op| !seen[op]).collect();
            shuffle(&mut around, random);
            for op in around {
                if !std::mem::replace(&mut seen[op], true) {
                    queue.push(op);
                }
            }
        }
        ops
    }
}

fn shuffle(list: &mut [usize], random: &mut SplitMix64) {
    for at in (1..list.len()).rev() {
        list.swap(at, random.index(at + 1));
    }
}
