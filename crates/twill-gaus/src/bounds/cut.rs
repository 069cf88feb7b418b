//! The least live storage at one step: a minimum cut.
//!
//! At step `d` the operations are divided into those that have started, `S`, and the others. By windows, some are surely in
//! `S` and some surely not; who reads a value, without a negative delay, is not in `S` unless its producer is. A value is live
//! if its producer is in `S` and a reader is not. The least storage over all such `S` is a minimum cut (of nodes: Ford,
//! Fulkerson 1956, Menger 1927; found with Dinic's algorithm, 1970), and no schedule has less at `d`. With an interval,
//! the cuts of the steps of a slot add up, as they are of different iterations.

use super::storage::Values;
use crate::Mobility;
use std::collections::VecDeque;

/// Most steps looked at, and most arcs times these.
const STEPS: u64 = 128;
const WORK: u64 = 30_000_000;
/// Most arcs visited by all cuts together; a flow that is not yet the greatest is a bound, too.
const VISITS: u64 = 200_000_000;

/// The best bound among steps (slots) that are spread evenly, and those around the best of these.
pub(super) fn cut(values: &Values, mobility: &Mobility) -> i128 {
    let last = mobility.latency.max(1);
    let slots = values.interval.unwrap_or(last).min(last);
    let size = (values.precedence.len() + values.graph.dependences().len()) as u64 + 1;
    let most = STEPS.min(WORK / size).max(1);
    // Fewer cuts of a slot than there are bound it, too.
    let cuts_a_slot = last.div_ceil(slots).min(most);
    let tries = (most / cuts_a_slot).max(1).min(slots);
    let mut visits = VISITS;
    let mut at = |slot: u64| -> i128 {
        let steps = (slot..last).step_by(slots as usize).take(cuts_a_slot as usize);
        steps.map(|step| least(values, mobility, step as i64, &mut visits)).sum()
    };
    let coarse = (0..tries).map(|k| (k * 2 + 1) * slots / (tries * 2)).map(|slot| (at(slot), slot)).max();
    let Some((most, best)) = coarse else { return 0 };
    let around = (slots / tries / 4).max(1);
    let near = [best.checked_sub(around), best.checked_add(around)].into_iter().flatten();
    near.filter(|&slot| slot < slots).map(at).max().unwrap_or(0).max(most)
}

/// The least storage that is live at `step`.
fn least(values: &Values, mobility: &Mobility, step: i64, visits: &mut u64) -> i128 {
    let (precedence, graph) = (values.precedence, values.graph);
    let started = |v: usize| mobility.latest[v] as i64 <= step;
    let absent = |v: usize| mobility.earliest[v] as i64 > step;
    let mut network = Network::new();
    let mut node = vec![u32::MAX; precedence.len()];
    for v in (0..precedence.len()).filter(|&v| !started(v) && !absent(v)) {
        node[v] = network.node();
    }
    let mut surely = 0_i128;
    for v in (0..precedence.len()).filter(|&v| !absent(v)) {
        let storage = graph.operations()[v].storage as i64;
        let own = if started(v) { SOURCE } else { node[v] };
        for p in precedence.predecessors(v) {
            let d = &graph.dependences()[p.dependence()];
            // `v` has started, so `p` has; where that is not known of `p` anyway.
            if d.delay >= 0 && d.distance == 0 && node[p.op()] != u32::MAX && own != SOURCE {
                network.arc(own, node[p.op()], i64::MAX);
            }
        }
        if storage == 0 {
            continue;
        }
        let later =
            |(w, d): (usize, &twill_graph::DataflowDependence)| mobility.earliest[w] as i64 + values.apart(d) > step;
        let to = if values.reads(v).any(later) {
            if own == SOURCE {
                surely += i128::from(storage);
                continue;
            }
            SINK
        } else {
            // Readers of other iterations are at other steps: only those of this one tell.
            let open: Vec<u32> = values
                .reads(v)
                .filter(|(w, d)| d.distance == 0 && node[*w] != u32::MAX)
                .map(|(w, _)| node[w])
                .collect();
            match open.as_slice() {
                [] => continue,
                &[one] => one,
                readers => {
                    let read = network.node();
                    readers.iter().for_each(|&reader| network.arc(read, reader, i64::MAX));
                    read
                }
            }
        };
        network.arc(own, to, storage);
    }
    surely + network.flow(visits)
}

const SOURCE: u32 = 0;
const SINK: u32 = 1;

/// A network with capacities; each arc is followed by its reverse.
struct Network {
    /// By node, the first of its arcs; by arc, the next.
    first: Vec<u32>,
    next: Vec<u32>,
    to: Vec<u32>,
    left: Vec<i64>,
}

impl Network {
    fn new() -> Network {
        Network { first: vec![u32::MAX; 2], next: Vec::new(), to: Vec::new(), left: Vec::new() }
    }

    fn node(&mut self) -> u32 {
        self.first.push(u32::MAX);
        self.first.len() as u32 - 1
    }

    fn arc(&mut self, from: u32, to: u32, capacity: i64) {
        for (from, to, capacity) in [(from, to, capacity), (to, from, 0)] {
            self.next.push(self.first[from as usize]);
            self.first[from as usize] = self.to.len() as u32;
            self.to.push(to);
            self.left.push(capacity);
        }
    }

    /// The greatest flow, or what there is of it when `visits` are over.
    fn flow(mut self, visits: &mut u64) -> i128 {
        let mut total = 0_i128;
        let mut level = vec![u32::MAX; self.first.len()];
        loop {
            level.fill(u32::MAX);
            level[SOURCE as usize] = 0;
            let mut queue = VecDeque::from([SOURCE]);
            while let Some(v) = queue.pop_front() {
                let mut arc = self.first[v as usize];
                while arc != u32::MAX {
                    *visits = visits.saturating_sub(1);
                    let w = self.to[arc as usize] as usize;
                    if self.left[arc as usize] > 0 && level[w] == u32::MAX {
                        level[w] = level[v as usize] + 1;
                        queue.push_back(w as u32);
                    }
                    arc = self.next[arc as usize];
                }
            }
            if level[SINK as usize] == u32::MAX || *visits == 0 {
                return total;
            }
            let mut at = self.first.clone();
            loop {
                let pushed = self.push(&level, &mut at, visits);
                if pushed == 0 {
                    break;
                }
                total += i128::from(pushed);
            }
        }
    }

    /// Along one shortest path; 0 when there is none left.
    fn push(&mut self, level: &[u32], at: &mut [u32], visits: &mut u64) -> i64 {
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
            if *visits == 0 {
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
            *visits = visits.saturating_sub(1);
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
