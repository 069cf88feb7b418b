//! Lemmas of sums: if every literal of a clause were false, more would be alive at once than there is room for.

use super::atoms::{Assumed, Atoms, Claim, not, same};
use super::items::Apart;
use std::collections::{BTreeMap, BTreeSet};
use twill_graph::proof::{Atom, Item, Literal, Pool, Reason, RegisterLimit};
use twill_graph::{GroupRole, OpId, Problem, Storage};

/// Returns whether the literals of a clause cannot all be false, for this reason.
pub(super) fn is_lemma(atoms: &Atoms, clause: &[Literal], reason: Reason) -> bool {
    let assumed = atoms.refuted(clause);
    let problem = atoms.problem;
    let resources = problem.resources();
    match reason {
        Reason::Overfull { pool: Pool::Unit(unit), event } => {
            let Some(unit_of) = resources.units.get(unit.index()) else { return false };
            alive(atoms, &assumed, Pool::Unit(unit), event) > u128::from(unit_of.capacity)
        }
        Reason::Overfull { pool: Pool::Tensor, event } => {
            let base = u128::from(problem.graph().reserved().tensor.0);
            base + alive(atoms, &assumed, Pool::Tensor, event) > u128::from(resources.tensor_memory.0)
        }
        Reason::Overfull { pool: Pool::Shared, event } => {
            let used = rings(atoms, &assumed) + alive(atoms, &assumed, Pool::Shared, event);
            used > u128::from(resources.shared_memory.0)
        }
        Reason::OverfullRings => rings(atoms, &assumed) > u128::from(resources.shared_memory.0),
        Reason::OverfullRegisters { event, limit } => overfull_registers(atoms, &assumed, event, limit),
        Reason::RegisterFile => register_file(problem, &assumed),
        _ => false,
    }
}

fn apart((a, b): Apart) -> Claim {
    not(same(a, b))
}

/// Weight of what is assumed to be alive when `event` starts; on its group, for registers. "At least two
/// copies" counts one more than "at least one".
fn alive(atoms: &Atoms, assumed: &Assumed, pool: Pool, event: Item) -> u128 {
    let Some(start) = atoms.extent(pool, event) else { return 0 };
    let mut counted: BTreeSet<(Item, i64)> = BTreeSet::new();
    let mut sum = 0;
    for (atom, holds) in assumed.claims() {
        let &Atom::Alive { pool: of, item, copies, event: when } = atom else { continue };
        if !holds || (of, when) != (pool, event) {
            continue;
        }
        let Some(extent) = atoms.extent(pool, item) else { continue };
        let exists = extent.exists.is_none_or(|a| assumed.holds(&apart(a)));
        let here = pool != Pool::Registers || assumed.holds(&same(start.owner, extent.owner));
        if exists && here && counted.insert((item, copies)) {
            sum += u128::from(extent.weight);
        }
    }
    sum
}

/// Reserved bytes and those of all rings, as deep as assumed.
fn rings(atoms: &Atoms, assumed: &Assumed) -> u128 {
    let graph = atoms.problem.graph();
    let mut sum = u128::from(graph.reserved().shared.0);
    let mut deeper: BTreeMap<OpId, i64> = BTreeMap::new();
    for (atom, holds) in assumed.claims() {
        if let (&Atom::Ring { load, slots }, true) = (atom, holds) {
            let deepest = deeper.entry(load).or_insert(1);
            *deepest = slots.max(*deepest);
        }
    }
    for load in graph.op_ids() {
        let operation = graph.operation(load);
        let Storage::Shared(bytes) = operation.storage else { continue };
        if !operation.streaming || bytes.0 == 0 {
            continue;
        }
        let slots = deeper.get(&load).copied().unwrap_or(1).max(always(atoms, load));
        sum += u128::from(bytes.0) * u128::from(slots.unsigned_abs());
    }
    sum
}

/// Slots that a ring has in every schedule: where first and last use are one operation, their distance is known,
/// `transfer + completion + (δ_last − δ_first) I > (slots − 1) I`.
fn always(atoms: &Atoms, load: OpId) -> i64 {
    let graph = atoms.problem.graph();
    let transfer = graph.operation(load).transfer_latency.0;
    let mut slots = 1;
    for first in graph.uses(load) {
        for last in graph.uses(load).filter(|last| last.to == first.to) {
            let busy = transfer + graph.operation(last.to).completion().0;
            let iterations = i64::from(last.distance) - i64::from(first.distance);
            slots = slots.max(1 + iterations + (busy - 1).div_euclid(atoms.interval));
        }
    }
    slots
}

fn overfull_registers(atoms: &Atoms, assumed: &Assumed, event: Item, limit: RegisterLimit) -> bool {
    let problem = atoms.problem;
    let resources = problem.resources();
    let Some(start) = atoms.extent(Pool::Registers, event) else { return false };
    let on = |group| assumed.holds(&(Atom::OnGroup { op: start.owner, group }, true));
    let is_compute =
        |w: &twill_graph::GroupId| problem.groups().get(w.index()).is_some_and(|g| g.role == GroupRole::Compute);
    let warps = resources.compute_groups.warps;
    let granularity = resources.registers.granularity;
    let capacity = match limit {
        RegisterLimit::Fixed(group) => {
            let role = problem.groups().get(group.index()).map(|g| g.role);
            match role.and_then(|r| problem.fixed_group(r)) {
                Some(fixed) if on(group) => resources.tile_words(fixed.warps, fixed.registers_per_thread),
                _ => return false,
            }
        }
        RegisterLimit::Thread => {
            // The operation runs on a compute group, whichever.
            let elsewhere = |w| atoms.settled(&(Atom::OnGroup { op: start.owner, group: w }, true)) == Some(false);
            if problem.group_ids().any(|w| !is_compute(&w) && !elsewhere(w)) {
                return false;
            }
            resources.tile_words(warps, resources.registers.maximum_per_thread)
        }
        RegisterLimit::Below(group, registers) => {
            let fewer = assumed.holds(&(Atom::Registers { group, least: registers }, false));
            // Whole granules are allocated, so fewer means at least a granule fewer.
            let whole = registers >= granularity && registers.is_multiple_of(granularity);
            if !(is_compute(&group) && on(group) && fewer && whole) {
                return false;
            }
            resources.tile_words(warps, registers - granularity)
        }
    };
    alive(atoms, assumed, Pool::Registers, event) > u128::from(capacity)
}

/// The registers that the groups are assumed to have exceed the register file.
fn register_file(problem: &Problem, assumed: &Assumed) -> bool {
    let resources = problem.resources();
    let file = &resources.registers;
    // A group in use gets at least this.
    let least = file.minimum_per_thread.max(file.reserve_per_thread.next_multiple_of(file.granularity));
    let mut given: BTreeMap<usize, u32> = BTreeMap::new();
    for (atom, holds) in assumed.claims() {
        let (group, registers) = match atom {
            Atom::Used { group } => (group, least),
            Atom::Registers { group, least } => (group, *least),
            _ => continue,
        };
        let compute = problem.groups().get(group.index()).is_some_and(|g| g.role == GroupRole::Compute);
        if holds && compute {
            let most = given.entry(group.index()).or_insert(0);
            *most = registers.max(*most);
        }
    }
    let sum: u128 = given.values().map(|&r| u128::from(resources.compute_group_cost(r))).sum();
    sum > u128::from(resources.compute_register_budget())
}
