//! Legal with caps on resources, by a reservation table and bounded ejection.
//!
//! Rau's iterative modulo scheduling (MICRO 1994) with windows on both sides, so that it keeps a latency bound, and with
//! a wish for each operation, so that it stays near what the gradient found. Without an interval the table has a column
//! for every step, and the same is a list scheduler that may take back what it did.

use super::table::Table;
use crate::control::{Clock, Paced};
use crate::model::Model;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use twill_graph::SplitMix64;

/// Which of the steps that are free an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preference {
    /// The first.
    Earliest,
    /// The one nearest to its wish.
    Nearest,
    /// The first that leaves no room between it and another one, on resources of which nearly all is used: what is left
    /// between them would be too short for anybody. Else the first.
    Snug,
}

/// The part of a resource that is used from which on it is to be without gaps.
const NEARLY_ALL: f64 = 0.75;

/// The most users of such a resource: each placement looks at all of them.
const MOST_USERS: usize = 2000;

impl Preference {
    fn is_nearest(self) -> bool {
        self == Preference::Nearest
    }
}

/// How to eject.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ejection {
    pub preference: Preference,
    /// Placements, in multiples of the number of operations, before it is given up.
    pub budget: u32,
    pub seed: u64,
}

struct Placer<'m, 'c> {
    paced: Paced<'c>,
    model: &'m Model<'m>,
    caps: &'m [Option<i64>],
    table: Table,
    /// By resource with a cap and slot, who covers it.
    occupants: Vec<Vec<Vec<u32>>>,
    starts: Vec<Option<i64>>,
    last: Vec<Option<i64>>,
    rank: &'m [u32],
    waiting: BinaryHeap<Reverse<(u32, u32)>>,
    /// By resource: who uses it, where nearly all of it is used.
    crowded: Vec<Vec<u32>>,
    random: SplitMix64,
}

/// A schedule near `wishes` within `caps`, or `None` where none was found. Operations are placed by `rank`, least first.
pub(crate) fn eject(
    model: &Model<'_>,
    wishes: &[i64],
    rank: &[u32],
    caps: &[Option<i64>],
    how: Ejection,
    clock: &Clock<'_>,
) -> Option<Vec<i64>> {
    let occupants = caps.iter().map(|cap| vec![Vec::new(); if cap.is_some() { model.slots } else { 0 }]).collect();
    let mut placer = Placer {
        paced: Paced::new(clock),
        model,
        caps,
        table: Table::new(model),
        occupants,
        starts: vec![None; model.len()],
        last: vec![None; model.len()],
        rank,
        crowded: crowded(model, caps, how.preference),
        waiting: (0..model.len()).map(|v| Reverse((rank[v], v as u32))).collect(),
        random: SplitMix64::new(how.seed),
    };
    let mut budget = model.len() as u64 * u64::from(how.budget);
    while let Some(Reverse((_, v))) = placer.waiting.pop() {
        let v = v as usize;
        if budget == 0 || placer.paced.is_over_after(64) {
            return None;
        }
        budget -= 1;
        match placer.free(v, wishes[v], how.preference) {
            Some(step) => placer.place(v, step),
            None => {
                let step = placer.forced(v, wishes[v], how.preference);
                placer.force(v, step)?;
            }
        }
    }
    placer.starts.into_iter().collect()
}

/// By resource of which nearly all is used: its users. None without a preference for them.
fn crowded(model: &Model<'_>, caps: &[Option<i64>], preference: Preference) -> Vec<Vec<u32>> {
    let mut users = vec![Vec::new(); caps.len()];
    if preference != Preference::Snug {
        return users;
    }
    let mut held = vec![0_i64; caps.len()];
    for v in 0..model.len() {
        for used in &model.uses[v] {
            held[used.resource] += used.amount * used.steps;
            users[used.resource].push(v as u32);
        }
    }
    for ((users, held), cap) in users.iter_mut().zip(held).zip(caps) {
        let room = cap.map_or(f64::INFINITY, |cap| cap as f64 * model.slots as f64);
        if (held as f64) < NEARLY_ALL * room || users.len() > MOST_USERS {
            users.clear();
        }
    }
    users
}

impl Placer<'_, '_> {
    /// The steps that the window and those already placed leave to `v`.
    fn span(&self, v: usize) -> (i64, i64) {
        let (mut low, mut high) = (self.model.earliest[v], self.model.latest[v]);
        for p in self.model.precedence.predecessors(v) {
            if let Some(start) = self.starts[p.op()].filter(|_| p.op() != v) {
                low = low.max(start + p.lag);
            }
        }
        for edge in &self.model.edges()[self.model.edges_of(v)] {
            if let Some(start) = self.starts[edge.to].filter(|_| edge.to != v) {
                high = high.min(start - edge.lag);
            }
        }
        (low, high)
    }

    /// By how many steps `v` has to begin later or earlier than at `step` where others are in its way.
    fn in_the_way(&mut self, v: usize, step: i64) -> Option<(i64, i64)> {
        self.table.add(self.model, v, step, 1);
        let clear = self.table.clear(self.model, v, step, self.caps);
        self.table.add(self.model, v, step, -1);
        clear
    }

    /// The first step between `low` and `high` at which `v` follows another one, or is followed, without a gap.
    fn snug(&mut self, v: usize, low: i64, high: i64) -> Option<i64> {
        let model = self.model;
        let mut steps: Vec<i64> = Vec::new();
        let users: usize = model.uses[v].iter().map(|own| self.crowded[own.resource].len()).sum();
        if self.paced.is_over_after(users as u64) {
            return None;
        }
        for own in &model.uses[v] {
            for &w in &self.crowded[own.resource] {
                let Some(start) = self.starts[w as usize].filter(|_| w as usize != v) else { continue };
                for used in model.uses[w as usize].iter().filter(|used| used.resource == own.resource) {
                    let begin = start + used.offset;
                    steps.extend([begin + used.steps - own.offset, begin - own.steps - own.offset]);
                }
            }
        }
        if let Some(interval) = model.interval {
            steps.iter_mut().for_each(|step| *step = low + (*step - low).rem_euclid(interval));
        }
        steps.retain(|step| (low..=high).contains(step));
        steps.sort_unstable();
        steps.dedup();
        steps.into_iter().find(|&step| !self.paced.is_over_after(16) && self.in_the_way(v, step).is_none())
    }

    /// A step at which `v` is in nobody's way.
    fn free(&mut self, v: usize, wish: i64, preference: Preference) -> Option<i64> {
        let (low, high) = self.span(v);
        if low > high {
            return None;
        }
        let anywhere = self.model.uses[v].iter().all(|used| self.caps[used.resource].is_none());
        let from = if preference.is_nearest() { wish.clamp(low, high) } else { low };
        if anywhere {
            return Some(from);
        }
        if let Some(step) = self.snug(v, low, high) {
            return Some(step);
        }
        // Slots repeat after one interval; all between the two is taken.
        let most = self.model.interval.unwrap_or(i64::MAX);
        let (mut up, mut down) = (from, from - 1);
        while (up <= high || down >= low) && up - down - 1 < most {
            // Nearest first, the later of two as near: producers come first in the order.
            let rise = up <= high && (down < low || up - from <= from - down);
            let step = if rise { up } else { down };
            let Some((later, earlier)) = self.in_the_way(v, step) else { return Some(step) };
            if rise {
                up += later;
            } else {
                down -= earlier;
            }
            // The budget ends by it, soon.
            if self.paced.is_over_after(16) {
                return None;
            }
        }
        None
    }

    /// Where `v` goes although others are in the way; each time elsewhere.
    fn forced(&mut self, v: usize, wish: i64, preference: Preference) -> i64 {
        let (first, last) = (self.model.earliest[v], self.model.latest[v]);
        let (low, high) = self.span(v);
        let low = low.clamp(first, last);
        match (self.last[v], preference) {
            (None, Preference::Earliest | Preference::Snug) => low,
            (None, Preference::Nearest) => wish.clamp(low, high.clamp(low, last)),
            (Some(before), _) if before < last && before + 1 >= low && self.random.index(4) > 0 => before + 1,
            (Some(_), _) => {
                // A window of one interval has every slot.
                let width = (last - low + 1).min(self.model.interval.unwrap_or(i64::MAX));
                low + self.random.index(width as usize) as i64
            }
        }
    }

    fn place(&mut self, v: usize, step: i64) {
        self.table.add(self.model, v, step, 1);
        for &used in self.model.uses[v].iter().filter(|used| self.caps[used.resource].is_some()) {
            for slot in Table::slots(self.model, used, step) {
                self.occupants[used.resource][slot].push(v as u32);
            }
        }
        self.starts[v] = Some(step);
        self.last[v] = Some(step);
    }

    fn remove(&mut self, v: usize) {
        let Some(step) = self.starts[v].take() else { return };
        self.table.add(self.model, v, step, -1);
        for &used in self.model.uses[v].iter().filter(|used| self.caps[used.resource].is_some()) {
            for slot in Table::slots(self.model, used, step) {
                let occupants = &mut self.occupants[used.resource][slot];
                if let Some(at) = occupants.iter().position(|&op| op as usize == v) {
                    occupants.swap_remove(at);
                }
            }
        }
        self.waiting.push(Reverse((self.rank[v], v as u32)));
    }

    /// Places `v` and ejects who is in its way; `None` when it is in its own way.
    fn force(&mut self, v: usize, step: i64) -> Option<()> {
        let model = self.model;
        for p in model.precedence.predecessors(v) {
            if p.op() != v && self.starts[p.op()].is_some_and(|start| start + p.lag > step) {
                self.remove(p.op());
            }
        }
        for edge in &model.edges()[model.edges_of(v)] {
            if edge.to != v && self.starts[edge.to].is_some_and(|start| step + edge.lag > start) {
                self.remove(edge.to);
            }
        }
        self.place(v, step);
        while let Some((resource, slot)) = self.table.above(model, v, step, self.caps) {
            // The least urgent goes, or now and then a random one: or two could eject each other for ever.
            let others: Vec<u32> =
                self.occupants[resource][slot].iter().copied().filter(|&op| op as usize != v).collect();
            let anybody = self.random.index(4) == 0;
            let victim = if anybody && !others.is_empty() {
                others.get(self.random.index(others.len())).copied()
            } else {
                others.into_iter().max_by_key(|&op| self.rank[op as usize])
            };
            self.remove(victim? as usize);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precedence;
    use crate::control::Control;
    use crate::testing::operation;
    use twill_graph::UnitId;
    use twill_graph::{Dataflow, DataflowObjective, DataflowOperation, DataflowProblem, DataflowResource, ResourceUse};

    /// Operations without dependences, of one or two parts on two resources, some of which are longer than the interval.
    fn problem(random: &mut SplitMix64, interval: Option<u64>) -> DataflowProblem {
        let mut part = || {
            let resource = UnitId::new(random.index(2));
            let (offset, steps) = (random.index(3) as u32, 1 + random.index(9) as u32);
            ResourceUse { resource, offset, steps, amount: 1 + random.index(2) as u64 }
        };
        let operations = (0..12).map(|v| {
            let uses = if v % 3 == 0 { vec![part(), part()] } else { vec![part()] };
            DataflowOperation { uses, ..operation(v) }
        });
        let operations: Vec<_> = operations.collect();
        let resources = [2, 4].map(|limit| DataflowResource { name: format!("r{limit}"), limit: Some(limit) });
        let graph = Dataflow::new("parts", operations, Vec::new(), resources.to_vec()).unwrap();
        DataflowProblem { graph, latency_bound: Some(40), interval, objective: DataflowObjective::Latency }
    }

    #[test]
    fn the_nearest_free_step_is_found() {
        let mut random = SplitMix64::new(3);
        for round in 0..400 {
            let interval = [None, Some(7), Some(16)][round % 3];
            let problem = problem(&mut random, interval);
            let precedence = Precedence::new(&problem.graph, interval);
            let model = Model::new(&problem, &precedence, 40).unwrap();
            let clock = Clock::start(Control::default());
            let mut placer = Placer {
                paced: Paced::new(&clock),
                model: &model,
                caps: &model.limits,
                table: Table::new(&model),
                occupants: model.limits.iter().map(|_| vec![Vec::new(); model.slots]).collect(),
                starts: vec![None; model.len()],
                last: vec![None; model.len()],
                rank: &[],
                waiting: BinaryHeap::new(),
                crowded: vec![Vec::new(); model.limits.len()],
                random: SplitMix64::new(1),
            };
            for v in 0..model.len() {
                let (low, high) = (model.earliest[v], model.latest[v]);
                for preference in [Preference::Earliest, Preference::Nearest] {
                    let wish = random.index(45) as i64;
                    let from = if preference.is_nearest() { wish.clamp(low, high) } else { low };
                    let free: Vec<i64> = (low..=high).filter(|&step| placer.in_the_way(v, step).is_none()).collect();
                    let nearest = free.iter().map(|step| (step - from).abs()).min();
                    let found = placer.free(v, wish, preference).map(|step| (step - from).abs());
                    assert_eq!(found, nearest, "round {round}, operation {v}, {preference:?}, {interval:?}: {free:?}");
                }
                if let Some(step) = placer.free(v, random.index(45) as i64, Preference::Nearest) {
                    placer.place(v, step);
                }
            }
        }
    }
}
