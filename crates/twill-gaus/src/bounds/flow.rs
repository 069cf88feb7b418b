//! The cheapest solution of difference constraints: `min Σ w_v s_v` subject to `s_to ≥ s_from + lag`.
//!
//! Its dual is a transshipment without capacities, `max Σ lag · f` where each `f ≥ 0` and what flows into `v` exceeds what
//! flows out of it by `w_v`. Every such flow is a lower bound, so the network simplex method below may stop at any time
//! (Ahuja, Magnanti, Orlin, "Network Flows", 1993, ch. 11: strongly feasible spanning trees; pricing by blocks).

use crate::control::{Clock, Paced};

/// `s_to ≥ s_from + lag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Arc {
    pub from: u32,
    pub to: u32,
    pub lag: i64,
}

/// The result.
#[derive(Debug)]
pub(crate) struct Cheapest {
    /// No solution is cheaper.
    pub bound: i128,
    /// A solution of that cost; `None` when the work was over before it was found.
    pub solution: Option<Vec<i64>>,
    /// The flow over given arcs, where there is any.
    pub flow: Vec<(Arc, i64)>,
}

/// Most nodes and arcs visited.
const WORK: u64 = 3_000_000_000;

/// Solves it. `window[v]`: least and greatest `s_v`; there must be a solution within. `weights` sum up to 0, and
/// solutions and sums of weights fit 2^60. Stops when the time is over, with the bound that it has by then.
pub(crate) fn cheapest(weights: &[i64], window: &[(i64, i64)], arcs: &[Arc], clock: &Clock<'_>) -> Cheapest {
    Tree::new(weights, window, arcs).run(clock)
}

const NONE: u32 = u32::MAX;

struct Tree {
    /// Those given, then for each node one from or to the root, which keeps it in its window.
    arcs: Vec<Arc>,
    /// The other arc of each node and the root, by node.
    evaders: Vec<Arc>,
    /// By node, the root last: how it hangs in the tree.
    parent: Vec<u32>,
    /// The arc to or from its parent.
    arc: Vec<Arc>,
    flow: Vec<i64>,
    depth: Vec<u32>,
    child: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// `s`.
    steps: Vec<i64>,
    work: u64,
}

impl Tree {
    fn new(weights: &[i64], window: &[(i64, i64)], arcs: &[Arc]) -> Tree {
        let (count, root) = (weights.len(), weights.len() as u32);
        let mut tree = Tree {
            arcs: arcs.to_vec(),
            evaders: Vec::with_capacity(count),
            parent: vec![root; count + 1],
            arc: vec![Arc { from: root, to: root, lag: 0 }; count + 1],
            flow: vec![0; count + 1],
            depth: vec![1; count + 1],
            child: vec![NONE; count + 1],
            next: vec![NONE; count + 1],
            previous: vec![NONE; count + 1],
            steps: vec![0; count + 1],
            work: 0,
        };
        tree.parent[count] = NONE;
        tree.depth[count] = 0;
        for v in 0..count {
            let (least, greatest) = window[v];
            let down = Arc { from: root, to: v as u32, lag: least };
            let up = Arc { from: v as u32, to: root, lag: -greatest };
            // An arc without flow points to the root: the tree is strongly feasible.
            let (hangs, other) = if weights[v] > 0 { (down, up) } else { (up, down) };
            tree.evaders.push(other);
            (tree.arc[v], tree.flow[v]) = (hangs, weights[v].abs());
            tree.steps[v] = if weights[v] > 0 { least } else { greatest };
            tree.adopt(root, v as u32);
        }
        tree
    }

    fn run(mut self, clock: &Clock<'_>) -> Cheapest {
        let mut paced = Paced::new(clock);
        // Windows are as good as arcs, and enter by the same rule.
        let own: Vec<Arc> = self.arc[..self.arc.len() - 1].to_vec();
        let mut arcs = std::mem::take(&mut self.arcs);
        arcs.extend(std::mem::take(&mut self.evaders));
        arcs.extend(own);
        let block = ((arcs.len() as f64).sqrt() as usize).max(64);
        let (mut at, mut idle) = (0, 0);
        while idle < arcs.len() && self.work < WORK {
            let before = self.work;
            // The arc of the block that is broken most.
            let (mut worst, mut entering) = (0, None);
            for _ in 0..block {
                let arc = arcs[at];
                let broken = self.steps[arc.from as usize] + arc.lag - self.steps[arc.to as usize];
                if broken > worst {
                    (worst, entering) = (broken, Some(arc));
                }
                at = if at + 1 == arcs.len() { 0 } else { at + 1 };
            }
            self.work += block as u64;
            match entering {
                Some(arc) => {
                    idle = 0;
                    self.pivot(arc, worst);
                }
                None => idle += block,
            }
            if paced.is_over_after(self.work - before) {
                break;
            }
        }
        let carried = self.arc.iter().zip(&self.flow).map(|(arc, &flow)| i128::from(arc.lag) * i128::from(flow));
        let bound = carried.sum();
        let solved = idle >= arcs.len();
        self.steps.pop();
        let (root, carried) = (self.steps.len() as u32, self.arc.iter().copied().zip(self.flow));
        let flow = carried.filter(|(arc, flow)| *flow > 0 && arc.from != root && arc.to != root).collect();
        Cheapest { bound, flow, solution: solved.then_some(self.steps) }
    }

    /// Sends as much as possible around the cycle that `entering` closes, and hangs the tree anew.
    fn pivot(&mut self, entering: Arc, broken: i64) {
        let (mut u, mut v) = (entering.from, entering.to);
        // Flow goes down to `from`, over the arc, and up from `to`; it takes from arcs the other way.
        let (mut least, mut leaving, mut under_from) = (i64::MAX, NONE, true);
        while u != v {
            if self.depth[u as usize] >= self.depth[v as usize] {
                let node = u as usize;
                if self.arc[node].from == u && self.flow[node] < least {
                    (least, leaving, under_from) = (self.flow[node], u, true);
                }
                u = self.parent[node];
            } else {
                let node = v as usize;
                if self.arc[node].to == v && self.flow[node] <= least {
                    (least, leaving, under_from) = (self.flow[node], v, false);
                }
                v = self.parent[node];
            }
            self.work += 1;
        }
        let join = u;
        if leaving == NONE {
            // A cycle of positive lag; callers rule it out. Nothing sensible can follow.
            self.work = WORK;
            return;
        }
        for (end, along) in [(entering.from, false), (entering.to, true)] {
            let mut node = end;
            while node != join {
                let index = node as usize;
                let up = self.arc[index].from == node;
                self.flow[index] += if up == along { least } else { -least };
                node = self.parent[index];
            }
        }
        // The part below the leaving arc hangs on the entering one now, by the end that it holds.
        let (low, high) = if under_from { (entering.from, entering.to) } else { (entering.to, entering.from) };
        self.rehang(low, high, leaving, entering, least);
        let shift = if under_from { -broken } else { broken };
        self.shift(low, shift);
    }

    /// Reverses the path from `low` up to `leaving`, and hangs `low` on `high` by `entering`.
    fn rehang(&mut self, low: u32, high: u32, leaving: u32, entering: Arc, flow: i64) {
        let (mut node, mut parent, mut arc, mut flow) = (low, high, entering, flow);
        loop {
            let index = node as usize;
            let (above, own_arc, own_flow) = (self.parent[index], self.arc[index], self.flow[index]);
            self.abandon(node);
            (self.arc[index], self.flow[index]) = (arc, flow);
            self.adopt(parent, node);
            if node == leaving {
                return;
            }
            (parent, node, arc, flow) = (node, above, own_arc, own_flow);
        }
    }

    /// Moves the steps below and at `top`, and counts their depths anew.
    fn shift(&mut self, top: u32, shift: i64) {
        let mut node = top;
        loop {
            let index = node as usize;
            self.steps[index] += shift;
            self.depth[index] = self.depth[self.parent[index] as usize] + 1;
            self.work += 1;
            if self.child[index] != NONE {
                node = self.child[index];
                continue;
            }
            while node != top && self.next[node as usize] == NONE {
                node = self.parent[node as usize];
            }
            if node == top {
                return;
            }
            node = self.next[node as usize];
        }
    }

    fn adopt(&mut self, parent: u32, node: u32) {
        let first = self.child[parent as usize];
        (self.parent[node as usize], self.next[node as usize]) = (parent, first);
        self.previous[node as usize] = NONE;
        if first != NONE {
            self.previous[first as usize] = node;
        }
        self.child[parent as usize] = node;
    }

    fn abandon(&mut self, node: u32) {
        let (previous, next) = (self.previous[node as usize], self.next[node as usize]);
        match previous {
            NONE => self.child[self.parent[node as usize] as usize] = next,
            _ => self.next[previous as usize] = next,
        }
        if next != NONE {
            self.previous[next as usize] = previous;
        }
    }
}
