//! Sums over what is alive at once: `Σ weight · #{copies alive} ≤ capacity` at every cycle.
//!
//! The sum can only rise where something starts, so it is enough to look there. Where a candidate
//! breaks it, the sum over all copies at that event becomes a constraint of the solver.

use crate::encoding::storage::{AnchoredTime, Item, Pool, Sum, When};
use crate::encoding::{Anchor, Candidate, Encoding, Stages};
use crate::proof_log::Log;
use batsat::Lit;
use std::collections::HashMap;
use twill_graph::OpId;
use twill_graph::proof::{Atom, Pool as Room, Reason, RegisterLimit};
use twill_graph::saturate;

/// This many copies of an item may be told apart whatever they weigh.
const FEW_COPIES: i64 = 64;

impl When {
    fn holds(self, candidate: &Candidate) -> bool {
        match self {
            When::Always => true,
            When::Apart(a, b) => candidate.groups[a.index()] != candidate.groups[b.index()],
        }
    }

    fn literal(self, e: &mut Encoding) -> Lit {
        match self {
            When::Always => e.engine.truth(),
            When::Apart(a, b) => !e.same_group(a, b),
        }
    }
}

impl AnchoredTime {
    fn at(self, candidate: &Candidate) -> i64 {
        self.offset
            + match self.anchor {
                Anchor::Issue(op) => candidate.times[op.index()],
                Anchor::Length => candidate.length,
            }
    }
}

impl Default for Pool {
    fn default() -> Self {
        Pool::new(Room::Registers, Vec::new(), 0)
    }
}

impl Pool {
    pub(crate) fn new(room: Room, items: Vec<Item>, capacity: u64) -> Pool {
        let items = items.into_iter().filter(|item| item.weight > 0).collect();
        Pool { room, items, capacity, alive: HashMap::new(), depth: HashMap::new(), sums: HashMap::new(), most: 0 }
    }

    /// Why the sum at an event holds.
    pub(crate) fn overfull_at(&self, event: usize) -> Reason {
        Reason::Overfull { pool: self.room, event: self.items[event].name }
    }

    /// The same for registers, of which there are several limits.
    pub(crate) fn overfull_registers(&self, event: usize, limit: RegisterLimit) -> Reason {
        Reason::OverfullRegisters { event: self.items[event].name, limit }
    }

    fn end(item: &Item, candidate: &Candidate) -> Option<i64> {
        item.ends.iter().filter(|(_, when)| when.holds(candidate)).map(|(p, _)| p.at(candidate)).max()
    }

    /// Items that exist in a candidate: index, start and end.
    fn present(&self, candidate: &Candidate, chosen: &impl Fn(OpId) -> bool) -> Vec<(usize, i64, i64)> {
        self.items
            .iter()
            .enumerate()
            .filter(|(_, item)| chosen(item.owner) && item.when.holds(candidate))
            .filter_map(|(i, item)| Some((i, item.start.at(candidate), Self::end(item, candidate)?)))
            .filter(|(_, start, end)| start < end)
            .collect()
    }

    /// Items alive at a time, with how many copies of each.
    fn alive_at(&self, present: &[(usize, i64, i64)], time: i64, interval: i64) -> Vec<(usize, i64)> {
        let copies = |&(i, start, end): &(usize, i64, i64)| match self.items[i].repeats {
            true => (i, (time - start).div_euclid(interval) - (time - end).div_euclid(interval)),
            false => (i, i64::from((start..end).contains(&time))),
        };
        present.iter().map(copies).collect()
    }

    fn weight(&self, members: &[(usize, i64)]) -> u64 {
        let each = members.iter().map(|&(i, copies)| self.items[i].weight.saturating_mul(copies.unsigned_abs()));
        each.fold(0, u64::saturating_add)
    }

    /// The largest sum over items whose owner is `chosen`.
    pub(crate) fn peak(&self, e: &Encoding, candidate: &Candidate, chosen: impl Fn(OpId) -> bool) -> u64 {
        let present = self.present(candidate, &chosen);
        let interval = e.question.interval;
        let at = |start| self.weight(&self.alive_at(&present, start, interval));
        present.iter().map(|&(_, start, _)| at(start)).max().unwrap_or(0)
    }

    /// Items at whose start the items of `chosen` owners, with `base`, exceed `capacity`.
    pub(crate) fn overfull(
        &mut self,
        e: &Encoding,
        candidate: &Candidate,
        chosen: impl Fn(OpId) -> bool,
        capacity: u64,
        base: u64,
    ) -> Vec<usize> {
        self.most = self.most.max(capacity);
        let present = self.present(candidate, &chosen);
        let interval = e.question.interval;
        let mut events = Vec::new();
        for &(event, start, _) in &present {
            let members = self.alive_at(&present, start, interval);
            if base.saturating_add(self.weight(&members)) <= capacity {
                continue;
            }
            events.push(event);
            if e.question.stages == Stages::Any {
                // The sums of this event must reach as deep as what is seen. Of one item, no more copies need be told apart
                // than are too many by themselves.
                let room = capacity.saturating_sub(base);
                let enough = |i: usize| saturate::<i64>(room / self.items[i].weight + 1).max(FEW_COPIES);
                let deepest = members.iter().map(|&(i, copies)| copies.min(enough(i))).max().unwrap_or(1);
                let depth = self.depth.entry(event).or_insert(1);
                *depth = (*depth).max(deepest);
            }
        }
        events
    }

    /// Every copy of every item with the literal that it is alive when item `event` starts; if
    /// `together`, and on the same group.
    pub(crate) fn terms(&mut self, e: &mut Encoding, event: usize, together: bool) -> Vec<(Lit, u64)> {
        let depth = self.depth.get(&event).copied().unwrap_or(1);
        let sum = Sum { event, together, depth, most: self.most };
        if let Some(known) = self.sums.get(&sum) {
            return known.clone();
        }
        let never = e.engine.constant(false);
        let owner = self.items[event].owner;
        let mut terms = Vec::new();
        for i in 0..self.items.len() {
            let (item, weight) = (self.items[i].owner, self.items[i].weight);
            let exists = self.items[i].when.literal(e);
            let here = if together { e.same_group(owner, item) } else { e.engine.truth() };
            if here == never || exists == never {
                continue;
            }
            for alive in self.copies(e, i, event, depth) {
                if e.engine.is_cut_off() {
                    return terms;
                }
                let conditions = alive.into_iter().chain([here, exists]).collect();
                let all = e.engine.all(conditions);
                if all != never {
                    terms.push((all, weight));
                }
            }
        }
        self.sums.insert(sum, terms.clone());
        terms
    }

    /// For every copy of item `i` that can be alive when item `event` starts: literals that together
    /// say it is.
    fn copies(&mut self, e: &mut Encoding, i: usize, event: usize, depth: i64) -> Vec<Vec<Lit>> {
        if e.question.stages == Stages::Any {
            let mut alive = Vec::new();
            for copies in 1..=depth {
                if e.is_spent_on(copies) {
                    break;
                }
                alive.push(vec![self.copies_alive(e, i, copies, event)]);
            }
            return alive;
        }
        let (start, at, repeats) = (self.items[i].start, self.items[event].start, self.items[i].repeats);
        let interval = e.question.interval;
        let never = e.engine.constant(false);
        // The youngest copy that can have started is as young as the latest event allows.
        let (_, latest) = e.range(start.anchor, at.anchor);
        let newest = if repeats { (latest + at.offset - start.offset).div_euclid(interval) } else { 0 };
        // Copies that have surely started die in their order: where an older one lives, all younger ones do, and more of
        // them than are too many by themselves need not be told apart.
        let enough = self.most / self.items[i].weight + 1;
        let mut certain = 0;
        let mut copies = Vec::new();
        let mut k = newest;
        loop {
            let alive = self.alive(e, i, k, event);
            if alive == never || e.is_spent_on(newest - k) {
                break;
            }
            let shift = start.offset + k * interval - at.offset;
            let started =
                if (i, k) == (event, 0) { e.engine.truth() } else { e.at_least(start.anchor, at.anchor, shift) };
            if started != never {
                copies.push(vec![started, alive]);
            }
            certain += u64::from(started == e.engine.truth());
            if !repeats || certain >= enough {
                break;
            }
            k -= 1;
        }
        copies
    }

    /// The literal that at least `copies` copies of item `i` are alive in the slot in which item
    /// `event` starts, whichever iterations they are of. Said of slots and of the item's own life
    /// only, so that it does not matter how many stages lie between unrelated operations.
    ///
    /// With `x` the way from the item's slot to the event's and `f = ⌊x / I⌋`, the youngest copy is
    /// `x − fI` old, so that many are alive iff `life > x − fI + (copies − 1) I`.
    fn copies_alive(&mut self, e: &mut Encoding, i: usize, copies: i64, event: usize) -> Lit {
        if let Some(&known) = self.alive.get(&(i, copies, event)) {
            return known;
        }
        let item = self.items[i].clone();
        let at = self.items[event].start;
        let interval = e.question.interval;
        // In this form everything hangs on operations: see `Anchor::Length`.
        let op = |place: AnchoredTime| match place.anchor {
            Anchor::Issue(op) => op,
            Anchor::Length => item.owner,
        };
        let (from, to) = (op(item.start), op(at));
        let offset = at.offset - item.start.offset;
        let event_name = self.items[event].name;
        let alive = e.engine.fresh(|| Atom::Alive { pool: self.room, item: item.name, copies, event: event_name });
        // Slots are less than an interval apart.
        let turns = offset.div_euclid(interval);
        for wraps in turns - 1..=turns + 1 {
            let reached = e.slot_at_least(from, to, wraps * interval - offset);
            if reached == e.engine.constant(false) {
                continue;
            }
            let passed = e.slot_at_least(from, to, (wraps + 1) * interval - offset);
            for &(end, when) in &item.ends {
                let least = 1 - end.offset + at.offset + (copies - 1 - wraps) * interval;
                let long = e.stages_and_slots((from, op(end)), (to, op(end)), least);
                let when = when.literal(e);
                e.engine.clause([!reached, passed, !long, !when, alive], Log::definition(alive));
            }
        }
        self.alive.insert((i, copies, event), alive);
        alive
    }

    /// The literal that copy `k` of item `i` has not ended when item `event` starts.
    fn alive(&mut self, e: &mut Encoding, i: usize, k: i64, event: usize) -> Lit {
        if let Some(&known) = self.alive.get(&(i, k, event)) {
            return known;
        }
        let item = self.items[i].clone();
        let at = self.items[event].start;
        let shift = k * e.question.interval;
        let mut ends = Vec::new();
        for &(end, when) in &item.ends {
            // end + shift > event, that is end.anchor − event.anchor ≥ event.offset − end.offset − shift + 1
            let later = e.at_least(at.anchor, end.anchor, at.offset - end.offset - shift + 1);
            ends.push([later, when.literal(e)]);
        }
        let alive = e.engine.any(ends, None);
        self.alive.insert((i, k, event), alive);
        alive
    }
}
