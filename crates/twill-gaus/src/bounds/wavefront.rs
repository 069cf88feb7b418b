//! The least storage that is live when an operation starts, whenever that is: a minimum cut between those that must
//! have started and those that cannot have.
//!
//! Unlike [`cut`](super::cut), which looks at a step, this looks at an operation, so that room in the schedule does not
//! weaken it (Elango, Rastello, Pouchet, Ramanujam, Sadayappan, "On Characterizing the Data Movement Complexity of
//! Computational DAGs for Parallel Execution", SPAA 2014, section 4).

use super::network::{Budget, Network, SINK, SOURCE};
use crate::control::{Clock, Control};
use crate::{Mobility, Precedence};
use std::collections::HashSet;
use twill_graph::proof::Wavefront;
use twill_graph::{DataflowDependence, DataflowObjective, DataflowProblem, OpId};

/// Operations tried before the search goes on around the best.
const TRIES: usize = 48;
/// They are among this part of all, those with the least slack.
const CRITICAL: usize = 3;
/// Longest array of steps.
const LONGEST: u64 = 1 << 24;

/// A lower bound on the storage of `problem`, with its proof; `None` where storage is not the objective or nothing was
/// found in time. Deterministic without a limit of time.
pub fn wavefront(problem: &DataflowProblem, control: Control<'_>) -> Option<Wavefront> {
    if problem.objective != DataflowObjective::Storage {
        return None;
    }
    // Of one iteration: the others only add to it.
    let precedence = Precedence::new(&problem.graph, None);
    let mobility = Mobility::within(&problem.graph, &precedence, None, None).ok()?;
    if mobility.latency > LONGEST {
        return None;
    }
    let graph = Front { problem, precedence: &precedence };
    let mut budget = Budget::new(&Clock::start(control));
    // No more than what is live in any one schedule.
    let most: Vec<i128> = [&mobility.earliest, &mobility.latest]
        .map(|steps| graph.live(steps))
        .into_iter()
        .reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| a.min(b)).collect())?;
    // Those with little slack have most of the others before or after them.
    let mut slack: Vec<u64> = (0..precedence.len()).map(|v| mobility.width(v)).collect();
    slack.sort_unstable();
    let critical = slack[slack.len() / CRITICAL];
    let candidates: Vec<usize> = precedence.order().filter(|&v| mobility.width(v) <= critical).collect();
    let tries = TRIES.min(candidates.len());
    let mut seen = HashSet::new();
    let mut best: Option<Wavefront> = None;
    let least = |best: &Option<Wavefront>| best.as_ref().map_or(0, |best| best.least);
    for v in (0..tries).map(|k| candidates[(2 * k + 1) * candidates.len() / (2 * tries)]) {
        if seen.insert(v) && most[v] > least(&best) {
            let better = graph.prove(v, &mut budget).filter(|proof| proof.least > least(&best));
            best = better.or(best);
        }
    }
    // Uphill.
    while let Some(at) = best.as_ref().map(|best| best.op) {
        let around = precedence.predecessors(at.index()).iter().chain(precedence.successors(at.index()));
        let new: Vec<usize> = around.map(|n| n.op()).filter(|&w| seen.insert(w)).collect();
        for w in new {
            if most[w] > least(&best) {
                let better = graph.prove(w, &mut budget).filter(|proof| proof.least > least(&best));
                best = better.or(best);
            }
        }
        if best.as_ref().is_none_or(|best| best.op == at) || budget.is_over() {
            break;
        }
    }
    best
}

struct Front<'a> {
    problem: &'a DataflowProblem,
    precedence: &'a Precedence,
}

/// Whether an operation has started when another does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Started,
    Absent,
    Open,
}

impl Front<'_> {
    fn reads(&self, v: usize) -> impl Iterator<Item = (usize, u32, &DataflowDependence)> {
        let dependences = self.problem.graph.dependences();
        let successors = self.precedence.successors(v).iter();
        successors.map(move |s| (s.op(), s.dependence() as u32, &dependences[s.dependence()]))
    }

    /// By operation, what is live when it starts in a schedule.
    fn live(&self, steps: &[u64]) -> Vec<i128> {
        let last = steps.iter().max().map_or(0, |&last| last as usize);
        let mut live = vec![0_i128; last + 2];
        for (v, op) in self.problem.graph.operations().iter().enumerate() {
            let end = self.reads(v).map(|(w, ..)| steps[w]).max().unwrap_or(steps[v]).max(steps[v]);
            live[steps[v] as usize] += i128::from(op.storage);
            live[end as usize] -= i128::from(op.storage);
        }
        for step in 1..live.len() {
            live[step] += live[step - 1];
        }
        steps.iter().map(|&step| live[step as usize]).collect()
    }

    /// States of all when `op` has just started.
    fn states(&self, op: usize) -> Vec<State> {
        let mut states = vec![State::Open; self.precedence.len()];
        states[op] = State::Started;
        let mut stack = vec![op];
        while let Some(v) = stack.pop() {
            for p in self.precedence.predecessors(v).iter().filter(|p| p.lag >= 0) {
                if states[p.op()] == State::Open {
                    states[p.op()] = State::Started;
                    stack.push(p.op());
                }
            }
        }
        // At least a step later than `op`: those reached by way of a delay.
        let mut together = vec![false; states.len()];
        stack.push(op);
        together[op] = true;
        while let Some(v) = stack.pop() {
            let later = states[v] == State::Absent;
            for s in self.precedence.successors(v).iter().filter(|s| s.lag >= 0) {
                let w = s.op();
                if (later || s.lag > 0) && states[w] != State::Absent {
                    states[w] = State::Absent;
                    stack.push(w);
                } else if !later && s.lag == 0 && !together[w] {
                    together[w] = true;
                    stack.push(w);
                }
            }
        }
        states
    }

    /// The bound at `op`; `None` when there was no time for it.
    fn prove(&self, op: usize, budget: &mut Budget<'_>) -> Option<Wavefront> {
        let operations = self.problem.graph.operations();
        if budget.visit(4 * (operations.len() + self.problem.graph.dependences().len()) as u64) {
            return None;
        }
        let states = self.states(op);
        let mut network = Network::new();
        let node: Vec<u32> = states
            .iter()
            .map(|state| match state {
                State::Started => SOURCE,
                State::Absent => SINK,
                State::Open => network.node(),
            })
            .collect();
        let mut found = Wavefront { op: OpId::new(op), least: 0, dependences: Vec::new(), reads: Vec::new() };
        // Arcs with the dependence whose price is their flow, and whether it is a read.
        let mut priced: Vec<(usize, u32, bool)> = Vec::new();
        // Of a value: its arc, and the dependence of an open reader that the rest of its storage goes around by.
        let mut lives: Vec<(usize, i64, u32, bool)> = Vec::new();
        for v in (0..operations.len()).filter(|&v| states[v] != State::Absent) {
            for (w, k, d) in self.reads(v).filter(|(w, ..)| states[*w] == State::Open && states[v] == State::Open) {
                if d.delay >= 0 {
                    priced.push((network.arc(node[w], node[v], i64::MAX), k, false));
                }
            }
            let storage = operations[v].storage as i64;
            // A value may be read before it is there: what it takes then is not counted.
            let is_early = self.reads(v).any(|(_, _, d)| d.delay < 0);
            let Some((first, ..)) = self.reads(v).next().filter(|_| storage > 0 && !is_early) else { continue };
            let is_shared = self.reads(v).any(|(w, ..)| w != first);
            if self.reads(v).any(|(w, ..)| states[w] == State::Absent) {
                match node[v] {
                    SOURCE => found.least += i128::from(storage),
                    own => _ = network.arc(own, SINK, storage),
                }
                continue;
            }
            let open = || self.reads(v).filter(|(w, ..)| states[*w] == State::Open);
            // The rest of its storage goes around by one of them.
            let Some((_, around, _)) = open().next() else { continue };
            let read = network.node();
            lives.push((network.arc(node[v], read, storage), storage, around, is_shared));
            for (w, k, _) in open() {
                let arc = network.arc(read, node[w], i64::MAX);
                if is_shared {
                    priced.push((arc, k, true));
                }
            }
        }
        found.least += network.flow(budget);
        for (arc, dependence, is_read) in priced {
            let price = network.carried(arc).unsigned_abs();
            let of = if is_read { &mut found.reads } else { &mut found.dependences };
            of.extend((price > 0).then_some((dependence, price)));
        }
        for (arc, storage, around, is_shared) in lives {
            let rest = (storage - network.carried(arc)).unsigned_abs();
            if rest > 0 {
                found.dependences.push((around, rest));
                found.reads.extend(is_shared.then_some((around, rest)));
            }
        }
        Some(found)
    }
}
