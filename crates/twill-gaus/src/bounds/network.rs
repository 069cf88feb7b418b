//! Greatest flows in networks with capacities (Dinic, "Algorithm for Solution of a Problem of Maximum Flow in Networks
//! with Power Estimation", Soviet Mathematics Doklady 11, 1970).

use crate::control::{Clock, Paced};
use std::collections::VecDeque;

/// Most arcs visited by all cuts together; a flow that is not yet the greatest is a bound, too.
const VISITS: u64 = 200_000_000;

/// Arcs that may still be visited.
pub(crate) struct Budget<'c> {
    all: u64,
    visits: u64,
    paced: Paced<'c>,
}

impl<'c> Budget<'c> {
    pub fn new(clock: &Clock<'c>) -> Self {
        Self::within(clock, VISITS)
    }

    /// Of so many arcs.
    pub fn within(clock: &Clock<'c>, visits: u64) -> Self {
        Self { all: visits, visits, paced: Paced::new(clock) }
    }

    /// How much of it is used up, from 0 to 1.
    pub fn gone(&self) -> f64 {
        1.0 - self.visits as f64 / self.all.max(1) as f64
    }

    /// Counts arcs; whether these were the last.
    pub fn visit(&mut self, arcs: u64) -> bool {
        self.visits = if self.paced.is_over_after(arcs) { 0 } else { self.visits.saturating_sub(arcs) };
        self.visits == 0
    }

    pub fn is_over(&self) -> bool {
        self.visits == 0
    }
}

pub(crate) const SOURCE: u32 = 0;
pub(crate) const SINK: u32 = 1;

/// A network with capacities; each arc is followed by its reverse.
pub(crate) struct Network {
    /// By node, the first of its arcs; by arc, the next.
    first: Vec<u32>,
    next: Vec<u32>,
    to: Vec<u32>,
    left: Vec<i64>,
}

impl Network {
    pub fn new() -> Network {
        Network { first: vec![u32::MAX; 2], next: Vec::new(), to: Vec::new(), left: Vec::new() }
    }

    pub fn node(&mut self) -> u32 {
        self.first.push(u32::MAX);
        self.first.len() as u32 - 1
    }

    /// Its position.
    pub fn arc(&mut self, from: u32, to: u32, capacity: i64) -> usize {
        let position = self.to.len();
        for (from, to, capacity) in [(from, to, capacity), (to, from, 0)] {
            self.next.push(self.first[from as usize]);
            self.first[from as usize] = self.to.len() as u32;
            self.to.push(to);
            self.left.push(capacity);
        }
        position
    }

    /// The flow over an arc, by its position.
    pub fn carried(&self, arc: usize) -> i64 {
        self.left[arc + 1]
    }

    /// By node, after a greatest flow: whether the source still reaches it, or whether it still reaches the sink.
    pub fn side(&self, end: u32) -> Vec<bool> {
        let mut found = vec![false; self.first.len()];
        found[end as usize] = true;
        let mut stack = vec![end];
        while let Some(v) = stack.pop() {
            let mut arc = self.first[v as usize];
            while arc != u32::MAX {
                let along = if end == SOURCE { arc } else { arc ^ 1 };
                let w = self.to[arc as usize];
                if self.left[along as usize] > 0 && !std::mem::replace(&mut found[w as usize], true) {
                    stack.push(w);
                }
                arc = self.next[arc as usize];
            }
        }
        found
    }

    /// The greatest flow, or what there is of it when the budget is over.
    pub fn flow(&mut self, budget: &mut Budget<'_>) -> i128 {
        let mut total = 0_i128;
        let mut level = vec![u32::MAX; self.first.len()];
        loop {
            level.fill(u32::MAX);
            level[SOURCE as usize] = 0;
            let mut queue = VecDeque::from([SOURCE]);
            while let Some(v) = queue.pop_front() {
                let mut arc = self.first[v as usize];
                while arc != u32::MAX {
                    budget.visit(1);
                    let w = self.to[arc as usize] as usize;
                    if self.left[arc as usize] > 0 && level[w] == u32::MAX {
                        level[w] = level[v as usize] + 1;
                        queue.push_back(w as u32);
                    }
                    arc = self.next[arc as usize];
                }
            }
            if level[SINK as usize] == u32::MAX || budget.is_over() {
                return total;
            }
            let mut at = self.first.clone();
            loop {
                let pushed = self.push(&level, &mut at, budget);
                if pushed == 0 {
                    break;
                }
                total += i128::from(pushed);
            }
        }
    }

    /// Along one shortest path; 0 when there is none left.
    fn push(&mut self, level: &[u32], at: &mut [u32], budget: &mut Budget<'_>) -> i64 {
        let (mut path, mut v): (Vec<u32>, u32) = (Vec::new(), SOURCE);
        loop {
            if v == SINK {
                let least = path.iter().map(|&arc| self.left[arc as usize]).min().unwrap_or(0);
                for &arc in &path {
                    // A life without an end stays so.
                    if self.left[arc as usize] != i64::MAX {
                        self.left[arc as usize] -= least;
                    }
                    let reverse = &mut self.left[(arc ^ 1) as usize];
                    *reverse = reverse.saturating_add(least);
                }
                return least;
            }
            if budget.is_over() {
                return 0;
            }
            let arc = at[v as usize];
            if arc == u32::MAX {
                // A dead end: back, and past the arc that led here.
                let Some(arc) = path.pop() else { return 0 };
                v = self.to[(arc ^ 1) as usize];
                at[v as usize] = self.next[arc as usize];
                continue;
            }
            budget.visit(1);
            let w = self.to[arc as usize];
            if self.left[arc as usize] > 0 && level[w as usize] == level[v as usize] + 1 {
                path.push(arc);
                v = w;
            } else {
                at[v as usize] = self.next[arc as usize];
            }
        }
    }
}
