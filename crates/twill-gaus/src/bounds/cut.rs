//! The least live storage at one step: a minimum cut.
//!
//! At step `d` the operations are divided into those that have started, `S`, and the others. By windows, some are surely in
//! `S` and some surely not; who reads a value, without a negative delay, is not in `S` unless its producer is. A value is live
//! if its producer is in `S` and a reader is not. The least storage over all such `S` is a minimum cut (of nodes: Ford,
//! Fulkerson 1956, Menger 1927; found with Dinic's algorithm, 1970), and no schedule has less at `d`. With an interval,
//! the cuts of the steps of a slot add up, as they are of different iterations.

use super::network::{Budget, Network, SINK, SOURCE};
use super::storage::Values;
use crate::Mobility;
use crate::control::Clock;

/// Most steps looked at, and most arcs times these.
const STEPS: u64 = 128;
const WORK: u64 = 30_000_000;
/// The best bound among steps (slots) that are spread evenly, and those around the best of these.
pub(super) fn cut(values: &Values, mobility: &Mobility, clock: &Clock<'_>) -> i128 {
    let last = mobility.latency.max(1);
    let slots = values.interval.unwrap_or(last).min(last);
    let size = (values.precedence.len() + values.graph.dependences().len()) as u64 + 1;
    let most = STEPS.min(WORK / size).max(1);
    // Fewer cuts of a slot than there are bound it, too.
    let cuts_a_slot = last.div_ceil(slots).min(most);
    let tries = (most / cuts_a_slot).max(1).min(slots);
    let mut budget = Budget::new(clock);
    let mut at = |slot: u64| -> i128 {
        let steps = (slot..last).step_by(slots as usize).take(cuts_a_slot as usize);
        steps.map(|step| least(values, mobility, step as i64, &mut budget)).sum()
    };
    let coarse = (0..tries).map(|k| (k * 2 + 1) * slots / (tries * 2)).map(|slot| (at(slot), slot)).max();
    let Some((most, best)) = coarse else { return 0 };
    let around = (slots / tries / 4).max(1);
    let near = [best.checked_sub(around), best.checked_add(around)].into_iter().flatten();
    near.filter(|&slot| slot < slots).map(at).max().unwrap_or(0).max(most)
}

/// The least storage that is live at `step`.
fn least(values: &Values, mobility: &Mobility, step: i64, budget: &mut Budget<'_>) -> i128 {
    let (precedence, graph) = (values.precedence, values.graph);
    // Building the network takes as long as some visits of all arcs.
    if budget.visit(4 * (precedence.len() + graph.dependences().len()) as u64) {
        return 0;
    }
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
                    for &reader in readers {
                        network.arc(read, reader, i64::MAX);
                    }
                    read
                }
            }
        };
        network.arc(own, to, storage);
    }
    surely + network.flow(budget)
}
