//! Kernels of two loops so small that every assignment and every schedule can be looked at.
//!
//! All operations are synchronous, one group is one warp, a register a thread holds 32 words, and
//! shared memory is plentiful; what is left of docs/model.md is written down here once more.

use std::collections::BTreeSet;
use twill_graph::{
    Bytes, Columns, ComputePool, Cycles, Dependence, Execution, LoopGraph, LoopOperation, ModelOptions,
    MultiLoopProblem, OpId, Operation, Problem, RegisterFile, Reservation, Reserved, Resources, Storage, Tie,
    TieReason, Traffic, Unit, Words,
};

/// An operation: name (that of its unit), cycles, registers a thread of its result.
type Op = (&'static str, i64, u64);

#[derive(Clone, Debug)]
pub struct Loop {
    ops: Vec<Op>,
    handoff: i64,
    /// Cycles after its issue at which the first operation takes its unit; with any, feasibility is
    /// not monotone in the interval.
    late: i64,
    /// From, to, distance, whether the value is read.
    edges: Vec<(usize, usize, u32, bool)>,
}

#[derive(Clone, Debug)]
pub struct Kernel {
    pub loops: [Loop; 2],
    pub weights: [u64; 2],
    /// Operations of the first and the second loop.
    pub ties: Vec<(usize, usize)>,
    /// Registers a thread of both groups together, and of one at most.
    pub registers: u32,
    pub most: u32,
}

impl Loop {
    pub fn new(ops: &[Op]) -> Loop {
        Loop { ops: ops.to_vec(), handoff: 0, late: 0, edges: Vec::new() }
    }

    pub fn handoff(self, handoff: i64) -> Loop {
        Loop { handoff, ..self }
    }

    pub fn late(self, late: i64) -> Loop {
        Loop { late, ..self }
    }

    fn start(&self, op: usize) -> i64 {
        if op == 0 { self.late } else { 0 }
    }

    /// Cycles for which an operation keeps its group.
    fn span(&self, op: usize) -> i64 {
        self.start(op) + self.ops[op].1
    }

    /// `to` reads what `from` computed: of the last iteration, if it stands before it.
    pub fn reads(mut self, from: usize, to: usize) -> Loop {
        self.edges.push((from, to, u32::from(to <= from), true));
        self
    }

    /// An order only.
    pub fn follows(mut self, from: usize, to: usize, distance: u32) -> Loop {
        self.edges.push((from, to, distance, false));
        self
    }

    fn graph(&self, name: &str) -> LoopGraph {
        let operation = |(index, &(unit, cycles, registers)): (usize, &Op)| Operation {
            name: format!("{unit}{index}"),
            kind: unit.into(),
            source: None,
            reservations: vec![Reservation {
                unit: unit.into(),
                start: Cycles(self.start(index)),
                cycles: Cycles(cycles),
            }],
            occupancy: Cycles(self.span(index)),
            latency: Cycles(self.span(index)),
            execution: Execution::Synchronous,
            issue_width: 1,
            storage: if registers > 0 { Storage::Registers(Words(32 * registers)) } else { Storage::None },
            variable_latency: false,
            streaming: false,
            handoff: Cycles(self.handoff),
            transfer_latency: Cycles(self.span(index)),
            sub_tile: None,
            traffic: Traffic::default(),
        };
        let dependence = |&(from, to, distance, value): &(usize, usize, u32, bool)| Dependence {
            from: OpId::new(from),
            to: OpId::new(to),
            delay: Cycles(self.span(from)),
            distance,
            blocking: false,
            carries_value: value,
            tied: false,
            hold: Cycles(0),
        };
        let operations = self.ops.iter().enumerate().map(operation).collect();
        let dependences = self.edges.iter().map(dependence).collect();
        LoopGraph::new(name, operations, dependences, Reserved::default()).unwrap()
    }

    /// Registers a thread that groups 0 and 1 need at an interval, for every schedule with these
    /// groups; only those of which no other is better.
    fn needs(&self, groups: &[usize], interval: i64) -> BTreeSet<[u64; 2]> {
        let mut found = BTreeSet::new();
        if self.edges.iter().any(|&(u, v, distance, value)| value && distance > 0 && groups[u] != groups[v]) {
            return found;
        }
        let reach = (0..self.ops.len()).map(|op| self.span(op) + self.handoff).sum::<i64>() + 2 * interval;
        let mut times = vec![-reach; self.ops.len()];
        times[0] = 0;
        loop {
            if self.holds(groups, &times, interval) {
                let needs = [0, 1].map(|group| self.peak(groups, &times, interval, group));
                if !found.iter().any(|f: &[u64; 2]| f[0] <= needs[0] && f[1] <= needs[1]) {
                    found.retain(|f| !(needs[0] <= f[0] && needs[1] <= f[1]));
                    found.insert(needs);
                }
            }
            // The next of all vectors whose first operation is at 0.
            let Some(next) = (1..times.len()).find(|&i| times[i] < reach) else { return found };
            times[1..next].fill(-reach);
            times[next] += 1;
        }
    }

    fn holds(&self, groups: &[usize], times: &[i64], interval: i64) -> bool {
        let apart = |u: usize, v: usize| groups[u] != groups[v];
        let later = self.edges.iter().all(|&(u, v, distance, value)| {
            let handoff = if value && apart(u, v) { self.handoff } else { 0 };
            times[v] + i64::from(distance) * interval >= times[u] + self.span(u) + handoff
        });
        // Whether [t_u, t_u + a) and [t_v, t_v + b) are disjoint modulo the interval.
        let disjoint = |u: i64, a: i64, v: i64, b: i64| {
            let offset = (v - u).rem_euclid(interval);
            offset >= a && interval - offset >= b
        };
        let clear = |u: usize, v: usize| {
            let start = |op: usize| times[op] + self.start(op);
            let units = self.ops[u].0 != self.ops[v].0 || disjoint(start(u), self.ops[u].1, start(v), self.ops[v].1);
            units && (apart(u, v) || disjoint(times[u], self.span(u), times[v], self.span(v)))
        };
        let count = self.ops.len();
        later && (0..count).all(|op| self.span(op) <= interval) && (0..count).all(|u| (0..u).all(|v| clear(u, v)))
    }

    fn peak(&self, groups: &[usize], times: &[i64], interval: i64, group: usize) -> u64 {
        // Copies of [start, end) in a slot.
        let copies = |start: i64, end: i64, slot: i64| {
            let count = (slot - start).div_euclid(interval) - (slot - end).div_euclid(interval);
            u64::try_from(count.max(0)).unwrap()
        };
        let at = |slot: i64| {
            let mut sum = 0;
            for (u, &(_, _, registers)) in self.ops.iter().enumerate() {
                let reads = self.edges.iter().filter(|e| e.0 == u && e.3);
                let end = reads.clone().map(|e| times[e.1] + i64::from(e.2) * interval).max().unwrap_or(times[u]);
                if groups[u] == group && end > times[u] {
                    sum += registers * copies(times[u], end, slot);
                }
                for &(_, v, _, _) in reads.filter(|e| groups[e.1] == group && groups[u] != group) {
                    sum += registers * copies(times[v], times[v] + self.span(v), slot);
                }
            }
            sum
        };
        (0..interval).map(at).max().unwrap()
    }
}

impl Kernel {
    pub fn problem(&self) -> MultiLoopProblem {
        let machine = Resources {
            name: "tiny".into(),
            units: ["x", "y", "z"].map(|name| Unit { name: name.into(), capacity: 1 }).to_vec(),
            shared_memory: Bytes(1 << 20),
            tensor_memory: Columns(0),
            shared_bytes_per_cycle: None,
            registers: RegisterFile {
                words: 32 * u64::from(self.registers),
                minimum_per_thread: 1,
                maximum_per_thread: self.most,
                granularity: 1,
                reserve_per_thread: 0,
            },
            variable_latency_group: None,
            issue_group: None,
            compute_groups: ComputePool { warps: 1, maximum: 2 },
        };
        let problem = |(index, l): (usize, &Loop)| {
            Problem::new(l.graph(&format!("loop{index}")), machine.clone(), ModelOptions::default()).unwrap()
        };
        let loops = self.loops.iter().enumerate().map(problem).collect();
        let at = |index, op| LoopOperation { index, op: OpId::new(op) };
        let tie = |&(a, b): &(usize, usize)| Tie { reason: TieReason::Carried, operations: vec![at(0, a), at(1, b)] };
        MultiLoopProblem::new("tiny", loops, self.weights.to_vec(), self.ties.iter().map(tie).collect()).unwrap()
    }
}

/// The groups of all operations, and what each group then needs.
type Assigned = (Vec<usize>, BTreeSet<[u64; 2]>);

/// The least weighted sum of intervals up to `largest`, over all assignments and all schedules.
pub fn brute_force(kernel: &Kernel, largest: i64) -> Option<i64> {
    let assignments = |l: &Loop| -> Vec<Vec<usize>> {
        let count = l.ops.len();
        (0..1_usize << count).map(|bits| (0..count).map(|i| bits >> i & 1).collect()).collect()
    };
    // For every interval the assignments that work, with what they need.
    let needs = |l: &Loop| -> Vec<Vec<Assigned>> {
        let at = |interval| assignments(l).into_iter().map(|a| (a.clone(), l.needs(&a, interval))).collect();
        (1..=largest).map(at).collect()
    };
    let [first, second] = [&kernel.loops[0], &kernel.loops[1]].map(needs);
    let fits = |a: &[usize], b: &[usize], p: &[u64; 2], q: &[u64; 2]| {
        let used = |group: usize| a.contains(&group) || b.contains(&group);
        let given = [0, 1].map(|g| if used(g) { p[g].max(q[g]).max(1) } else { 0 });
        given.iter().all(|&r| r <= u64::from(kernel.most)) && given.iter().sum::<u64>() <= u64::from(kernel.registers)
    };
    let tied = |a: &[usize], b: &[usize]| kernel.ties.iter().all(|&(u, v)| a[u] == b[v]);
    let mut best = None;
    for (i, one) in first.iter().enumerate() {
        for (j, other) in second.iter().enumerate() {
            let weighted = |k: usize, interval: usize| kernel.weights[k] * (interval as u64 + 1);
            let sum = i64::try_from(weighted(0, i) + weighted(1, j)).unwrap();
            if best.is_some_and(|b| b <= sum) {
                continue;
            }
            let together = one.iter().any(|(a, ps)| {
                let matching = other.iter().filter(|(b, _)| tied(a, b));
                matching.into_iter().any(|(b, qs)| ps.iter().any(|p| qs.iter().any(|q| fits(a, b, p, q))))
            });
            if together {
                best = Some(sum);
            }
        }
    }
    best
}

/// A kernel of two loops with three operations each.
pub fn random(seed: u32) -> Kernel {
    let mut state = seed.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let mut below = |n: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % n
    };
    let mut one = || {
        let units = ["x", "y", "z"];
        let ops: Vec<Op> =
            (0..3).map(|_| (units[below(3) as usize], i64::from(1 + below(3)), u64::from(1 + below(4)))).collect();
        let mut l = Loop::new(&ops).handoff(i64::from(below(4))).late(i64::from(seed % 3 / 2));
        for (from, to) in [(0, 1), (1, 2), (0, 2)] {
            if below(3) > 0 {
                l = l.reads(from, to);
            }
        }
        match below(4) {
            0 => l.reads(2, 0),
            1 => l.follows(2, 0, 1),
            2 => l.reads(1, 1),
            _ => l,
        }
    };
    let loops = [one(), one()];
    let ties = (0..3).map(|i| (i, (i + below(2) as usize) % 3)).filter(|t| t.0 != 1 || t.1 == 1).collect();
    let registers = 5 + below(8);
    Kernel { loops, weights: [u64::from(1 + below(3)), u64::from(1 + below(3))], ties, registers, most: 3 + below(8) }
}
