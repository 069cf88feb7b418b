//! For every group `g` with `r_g` registers a thread: live words + consumer words ≤
//! `32 · warps · (min(r_g, maximum) − reserve)`. Compute groups choose `r_g`, in whole granules, and
//! `Σ_g 32 · warps(g) · r_g` fits what the fixed groups leave of the file.

use crate::life::{Cells, End};
use crate::model::Model;
use crate::term::{Term, and, at_most, implies, not, or};
use twill_graph::{GroupId, Words};

/// Words that an operation's group holds, in the cells of a life, while `when` holds.
struct Held {
    words: Words,
    on: twill_graph::OpId,
    when: Term,
    cells: Cells,
}

pub(super) fn write(m: &mut Model) {
    m.script.comment(
        "\nregisters: words alive on a group are at most what its threads are given, in every slot.\n\
         live_v_c: the result of v is alive c cycles into the iteration; away_k_c: words of the\n\
         k-th dependence are in registers of the group that reads them; given_w_r: threads of compute\n\
         group w are given at least r registers; used_w: w runs something.",
    );
    let mut held = live_words(m);
    if m.problem.options().consumer_registers {
        held.extend(consumer_words(m));
    }
    for (w, group) in m.problem.group_ids().zip(m.problem.groups()) {
        let resources = m.problem.resources();
        match m.problem.fixed_group(group.role) {
            Some(fixed) => {
                let room = resources.tile_words(fixed.warps, fixed.registers_per_thread);
                let terms = sums(m, w, &held, &[], room);
                m.script.assert(format!("registers: group {}", w.index()), terms);
            }
            None => compute_group(m, w, &held),
        }
    }
    budget(m);
}

fn live_words(m: &mut Model) -> Vec<Held> {
    let graph = m.problem.graph();
    let mut held = Vec::new();
    for v in graph.op_ids() {
        let words = graph.operation(v).register_words();
        if words > Words(0) {
            held.push(Held { words, on: v, when: Term::Known(true), cells: m.live(v) });
        }
    }
    held
}

/// A value that another group made takes registers of its reader while that executes; TMA reads the
/// handoff buffer instead. Carried values stay on their group.
fn consumer_words(m: &mut Model) -> Vec<Held> {
    let graph = m.problem.graph();
    let mut held = Vec::new();
    for (k, d) in m.register_values().enumerate() {
        let (words, reader) = (graph.operation(d.from).register_words(), graph.operation(d.to));
        if words == Words(0) || d.from == d.to || reader.variable_latency {
            continue;
        }
        let end = End { op: d.to, distance: 0, offset: reader.span().0, when: Term::Known(true) };
        let cells = m.held(&format!("away_{k}"), d.to, &[end]);
        held.push(Held { words, on: d.to, when: m.apart(d.from, d.to), cells });
    }
    held
}

/// The register counts that a thread of a compute group can have.
fn choices(m: &Model) -> Vec<u32> {
    let file = m.problem.resources().registers;
    let granules = |r: u32| r.div_ceil(file.granularity);
    let least = granules(file.minimum_per_thread.max(file.reserve_per_thread));
    (least..=granules(file.maximum_per_thread).max(least)).map(|k| k * file.granularity).collect()
}

/// For every cell: words held on `w` + `missing` ≤ `room`.
fn sums(m: &Model, w: GroupId, held: &[Held], missing: &[(u64, Term)], room: u64) -> Vec<Term> {
    let mut cells: std::collections::BTreeMap<i64, Vec<(u64, Term)>> = std::collections::BTreeMap::new();
    for h in held {
        let here = and([m.warp(h.on, w), h.when.clone()]);
        for (cell, copies) in &h.cells {
            let terms = copies.iter().map(|alive| (h.words.0, and([here.clone(), alive.clone()])));
            cells.entry(*cell).or_default().extend(terms);
        }
    }
    cells
        .into_values()
        .flat_map(|mut terms| {
            terms.extend_from_slice(missing);
            at_most(&terms, room.into())
        })
        .collect()
}

fn compute_group(m: &mut Model, w: GroupId, held: &[Held]) {
    let (resources, choices) = (m.problem.resources(), choices(m));
    let room = |r: u32| resources.tile_words(resources.compute_groups.warps, r);
    let given: Vec<Term> = choices[1..].iter().map(|r| m.script.declare(format!("given_{}_{r}", w.index()))).collect();
    let used = or(m.problem.graph().op_ids().map(|v| m.warp(v, w)));
    m.script.define(format!("used_{}", w.index()), &used);
    let missing = choices.windows(2).zip(&given).map(|(pair, given)| (room(pair[1]) - room(pair[0]), not(given)));
    let missing: Vec<(u64, Term)> = missing.collect();
    let most = choices.last().map_or(0, |r| room(*r));
    let ladder = given.windows(2).map(|pair| implies(&[&pair[1]], pair[0].clone()));
    let terms: Vec<Term> = ladder.chain(sums(m, w, held, &missing, most)).collect();
    m.script.assert(format!("registers: group {}", w.index()), terms);
}

/// All groups together.
fn budget(m: &mut Model) {
    let (resources, choices) = (m.problem.resources(), choices(m));
    let mut terms = Vec::new();
    for w in m.compute_groups() {
        let used = Term::text(format!("used_{}", w.index()));
        terms.push((choices.first().map_or(0, |r| resources.compute_group_cost(*r)), used));
        let granule = resources.compute_group_cost(resources.registers.granularity);
        terms.extend(choices[1..].iter().map(|r| (granule, Term::text(format!("given_{}_{r}", w.index())))));
    }
    let terms = at_most(&terms, resources.compute_register_budget().into());
    m.script.assert("registers: all groups", terms);
}
