//! Live tile words of every group fit the registers it is given, and all groups together the
//! register file.

use crate::encoding::storage::{AnchoredTime, Item, Pool, When};
use crate::encoding::{Anchor, Candidate, Encoding};
use batsat::Lit;
use twill_graph::proof::{Atom, Item as Name, Pool as Room, Reason, RegisterLimit};
use twill_graph::{Dependence, GroupId, Liveness, OpId, Resources, Storage};

/// Items for the live values of one kind of storage.
pub(super) fn values(e: &Encoding, amount: impl Fn(Storage) -> Option<u64>) -> Vec<Item> {
    let graph = e.problem.graph();
    let mut items = Vec::new();
    for v in graph.op_ids() {
        let Some(weight) = amount(graph.operation(v).storage) else { continue };
        let read = |d: &Dependence| Read { by: d.to, distance: d.distance, until: d.hold.0, when: When::Always };
        items.extend(kept(e, Name::Value(v), v, weight, &graph.uses(v).map(read).collect::<Vec<_>>()));
    }
    items
}

/// Someone who needs a value.
pub(super) struct Read {
    pub(super) by: OpId,
    /// Iterations later.
    pub(super) distance: u32,
    /// Cycles after its issue until it needs the value no more.
    pub(super) until: i64,
    pub(super) when: When,
}

/// The storage that `v` takes from its issue to the last of the reads, as the liveness option counts it; nothing
/// without reads.
pub(super) fn kept(e: &Encoding, name: Name, v: OpId, weight: u64, reads: &[Read]) -> Vec<Item> {
    if reads.is_empty() {
        return Vec::new();
    }
    let interval = e.question.interval;
    let start = AnchoredTime { anchor: Anchor::Issue(v), offset: 0 };
    let end = |read: &Read| {
        let offset = i64::from(read.distance) * interval + read.until;
        (AnchoredTime { anchor: Anchor::Issue(read.by), offset }, read.when)
    };
    let item = |start, ends, repeats| Item { name, owner: v, weight, start, ends, when: When::Always, repeats };
    if e.problem.options().liveness == Liveness::Folded {
        return vec![item(start, reads.iter().map(end).collect(), true)];
    }
    // The paper's straight line of N copies: uses beyond it do not count, but the last copy of a carried value lives to the
    // end.
    let stages = i64::from(e.question.stages.most().unwrap_or(1));
    let of_copy = |copy: i64| {
        let shifted = |place: AnchoredTime| AnchoredTime { offset: place.offset + copy * interval, ..place };
        let inside = reads.iter().filter(|read| copy + i64::from(read.distance) < stages);
        let mut ends: Vec<(AnchoredTime, When)> = inside.map(end).map(|(place, when)| (shifted(place), when)).collect();
        if copy == stages - 1 {
            let over = AnchoredTime { anchor: Anchor::Length, offset: copy * interval };
            ends.extend(reads.iter().filter(|read| read.distance > 0).map(|read| (over, read.when)));
        }
        (!ends.is_empty()).then(|| item(shifted(start), ends, false))
    };
    (0..stages).filter_map(of_copy).collect()
}

/// An item as the liveness option counts it: recurring, or as its copies in the straight line.
fn copies(e: &Encoding, item: Item) -> Vec<Item> {
    if e.problem.options().liveness == Liveness::Folded {
        return vec![item];
    }
    let shift = |p: AnchoredTime, copy: i64| AnchoredTime { offset: p.offset + copy * e.question.interval, ..p };
    (0..i64::from(e.question.stages.most().unwrap_or(1)))
        .map(|copy| Item {
            start: shift(item.start, copy),
            ends: item.ends.iter().map(|&(end, when)| (shift(end, copy), when)).collect(),
            repeats: false,
            ..item
        })
        .collect()
}

pub(super) fn prepare(e: &mut Encoding) {
    let graph = e.problem.graph();
    let mut items = values(e, |storage| match storage {
        Storage::Registers(words) => Some(words.0),
        Storage::None | Storage::Shared(_) | Storage::Tensor(_) => None,
    });
    if e.problem.options().consumer_registers {
        for (id, d) in e.handoffs() {
            let consumer = graph.operation(d.to);
            if consumer.variable_latency {
                continue; // TMA reads the buffer.
            }
            let item = Item {
                name: Name::Operand(id),
                owner: d.to,
                weight: graph.operation(d.from).register_words().0,
                start: AnchoredTime { anchor: Anchor::Issue(d.to), offset: 0 },
                ends: vec![(AnchoredTime { anchor: Anchor::Issue(d.to), offset: consumer.span().0 }, When::Always)],
                when: When::Apart(d.from, d.to),
                repeats: true,
            };
            items.extend(copies(e, item));
        }
    }
    e.storage.registers = Pool::new(Room::Registers, items, 0);
}

/// Registers a thread that each compute group in use needs; `None` for a group that needs more than
/// a thread can address.
pub(crate) fn needed(e: &Encoding, candidate: &Candidate) -> Vec<(GroupId, Option<u32>)> {
    let in_use = |g: &GroupId| candidate.groups.contains(g);
    let need = |g: GroupId| {
        let peak = e.storage.registers.peak(e, candidate, |op| candidate.groups[op.index()] == g);
        (g, e.problem.resources().registers_for(peak))
    };
    e.compute_groups().into_iter().filter(in_use).map(need).collect()
}

/// Tile words that the compute group with most of them holds at once.
pub(crate) fn most_words(e: &Encoding, candidate: &Candidate) -> u64 {
    let words = |group| e.storage.registers.peak(e, candidate, on(candidate, group));
    e.compute_groups().into_iter().map(words).max().unwrap_or(0)
}

pub(super) fn refine(e: &mut Encoding, candidate: &Candidate) -> bool {
    let mut pool = std::mem::take(&mut e.storage.registers);
    let broken = fixed_groups(e, candidate, &mut pool) | compute_groups(e, candidate, &mut pool);
    e.storage.registers = pool;
    // The pool must be in place: `needed` reads it.
    broken || register_file(e, candidate)
}

fn on(candidate: &Candidate, group: GroupId) -> impl Fn(OpId) -> bool + '_ {
    move |op| candidate.groups[op.index()] == group
}

/// Groups whose registers are given.
fn fixed_groups(e: &mut Encoding, candidate: &Candidate, pool: &mut Pool) -> bool {
    let resources = e.problem.resources();
    let mut broken = false;
    for (group, pooled) in e.problem.group_ids().zip(e.problem.groups()) {
        let fixed = e.problem.fixed_group(pooled.role);
        let Some(fixed) = fixed else { continue };
        let capacity = resources.tile_words(fixed.warps, fixed.registers_per_thread);
        for event in pool.overfull(e, candidate, on(candidate, group), capacity, 0) {
            let terms = pool.terms(e, event, true);
            let here = e.assigned[pool.items[event].owner.index()][group.index()];
            let reason = pool.overfull_registers(event, RegisterLimit::Fixed(group));
            e.engine.at_most(&[here], terms, capacity, reason);
            broken = true;
        }
    }
    broken
}

/// The limit of what a thread can address, and the cap on registers a thread where one is set.
fn compute_groups(e: &mut Encoding, candidate: &Candidate, pool: &mut Pool) -> bool {
    let resources = e.problem.resources();
    let warps = resources.compute_groups.warps;
    let words = |registers: u32| resources.tile_words(warps, registers);
    let mut limits = vec![(words(resources.registers.maximum_per_thread), e.engine.truth())];
    limits.extend(e.caps.registers_per_thread.map(|cap| (words(cap.most as u32), cap.active)));
    let mut broken = false;
    for group in e.compute_groups() {
        for &(capacity, condition) in &limits {
            for event in pool.overfull(e, candidate, on(candidate, group), capacity, 0) {
                let terms = pool.terms(e, event, true);
                let reason = pool.overfull_registers(event, RegisterLimit::Thread);
                e.engine.at_most(&[condition], terms, capacity, reason);
                broken = true;
            }
        }
    }
    broken
}

/// Returns whether all groups get what they need.
pub(crate) fn fit(e: &Encoding, candidate: &Candidate) -> bool {
    let resources = e.problem.resources();
    let fixed_fit = e.problem.group_ids().zip(e.problem.groups()).all(|(group, pooled)| {
        e.problem.fixed_group(pooled.role).is_none_or(|f| {
            let peak = e.storage.registers.peak(e, candidate, on(candidate, group));
            peak <= resources.tile_words(f.warps, f.registers_per_thread)
        })
    });
    let needed = needed(e, candidate);
    let cost: u64 = needed.iter().filter_map(|n| n.1).map(|r| resources.compute_group_cost(r)).sum();
    fixed_fit && needed.iter().all(|n| n.1.is_some()) && cost <= resources.compute_register_budget()
}

/// All groups together.
fn register_file(e: &mut Encoding, candidate: &Candidate) -> bool {
    let needed: Vec<(GroupId, u32)> = needed(e, candidate).into_iter().filter_map(|(g, r)| Some((g, r?))).collect();
    let Some(too_many) = over_file(e.problem.resources(), needed) else { return false };
    let clause = not_all(e, candidate, &too_many);
    e.engine.clause(clause, Reason::RegisterFile);
    true
}

/// Registers a thread of groups that together exceed the file, each as few as that allows: a clause
/// then excludes more. `None` when `needed` fits.
pub(crate) fn over_file(resources: &Resources, mut needed: Vec<(GroupId, u32)>) -> Option<Vec<(GroupId, u32)>> {
    let budget = resources.compute_register_budget();
    let file = resources.registers;
    let cost = |needed: &[(GroupId, u32)]| needed.iter().map(|n| resources.compute_group_cost(n.1)).sum::<u64>();
    if cost(&needed) <= budget {
        return None;
    }
    let least = fewest(resources);
    for i in 0..needed.len() {
        loop {
            let before = needed[i].1;
            let lower = before.saturating_sub(file.granularity).max(least);
            needed[i].1 = lower;
            if lower == before || cost(&needed) <= budget {
                needed[i].1 = before;
                break;
            }
        }
    }
    Some(needed)
}

/// Registers a thread of a group that holds nothing.
fn fewest(resources: &Resources) -> u32 {
    resources.registers_for(0).unwrap_or(resources.registers.minimum_per_thread)
}

/// Literals one of which holds if not all groups are given this many registers a thread; what `candidate`
/// holds on them is charged to those levels.
pub(crate) fn not_all(e: &mut Encoding, candidate: &Candidate, too_many: &[(GroupId, u32)]) -> Vec<Lit> {
    let resources = e.problem.resources();
    let mut over_file = Vec::new();
    let mut pool = std::mem::take(&mut e.storage.registers);
    for &(group, registers) in too_many {
        if registers <= fewest(resources) {
            over_file.push(!e.used[group.index()]);
            continue;
        }
        over_file.push(!level(e, group, registers));
        // More words than one granule fewer could hold.
        let capacity =
            resources.tile_words(resources.compute_groups.warps, registers - resources.registers.granularity);
        for event in pool.overfull(e, candidate, on(candidate, group), capacity, 0) {
            let terms = pool.terms(e, event, true);
            for any in e.compute_groups() {
                let here = e.assigned[pool.items[event].owner.index()][any.index()];
                let less = !level(e, any, registers);
                let reason = pool.overfull_registers(event, RegisterLimit::Below(any, registers));
                e.engine.at_most(&[here, less], terms.clone(), capacity, reason);
            }
        }
    }
    e.storage.registers = pool;
    over_file
}

/// The literal for "this group is given at least this many registers a thread".
pub(super) fn level(e: &mut Encoding, group: GroupId, registers: u32) -> Lit {
    if let Some(&known) = e.storage.levels.get(&(group.index(), registers)) {
        return known;
    }
    let literal = e.engine.fresh(|| Atom::Registers { group, least: registers });
    let others: Vec<(u32, Lit)> =
        e.storage.levels.iter().filter(|((g, _), _)| *g == group.index()).map(|((_, other), l)| (*other, *l)).collect();
    for (other, known) in others {
        let mut levels = [(registers, literal), (other, known)];
        levels.sort_unstable();
        let [(lower, least), (higher, more)] = levels;
        e.engine.clause([!more, least], Reason::RegisterOrder { group, higher, lower });
    }
    e.storage.levels.insert((group.index(), registers), literal);
    literal
}
