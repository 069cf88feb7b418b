//! Clauses that are instances of constraints: for each reason the clause is built anew from the problem, and
//! the one in the proof must say at least as much.

use super::atoms::{Atoms, Claim, is_register_value, later, not, ring_reaches, same, slots, stages};
use super::symmetry;
use twill_graph::proof::{Atom, Literal, Reason};
use twill_graph::{ConcurrencyWindow, GroupId, GroupRole, OpId, WarpAssignment};

/// Returns whether a clause of a proof holds for the reason given.
pub(super) fn is_instance(atoms: &Atoms, clause: &[Literal], reason: Reason) -> bool {
    if clause.iter().any(|&l| atoms.truth(l) == Some(true)) {
        return true;
    }
    match reason {
        Reason::Definition { atom } => defines(atoms, clause, atom),
        _ => derived(atoms, reason).iter().any(|d| atoms.covers(clause, d)),
    }
}

/// The clauses that a reason stands for; none when it speaks of what does not exist.
fn derived(atoms: &Atoms, reason: Reason) -> Vec<Vec<Claim>> {
    let problem = atoms.problem;
    let graph = problem.graph();
    let count = graph.operations().len();
    let known = |ops: &[OpId]| ops.iter().all(|v| v.index() < count);
    let on = |op: OpId, group: GroupId| (Atom::OnGroup { op, group }, true);
    match reason {
        // Neither groups nor sub-tiles are interchangeable where the one are assigned to the other.
        Reason::GroupOrder { .. } | Reason::UsedOrder { .. } | Reason::SubTileOrder { .. }
            if problem.options().warp_assignment == WarpAssignment::BySubTile =>
        {
            vec![]
        }
        Reason::Dependence { from, to, stages } if known(&[from, to]) => atoms.paths[from.index()][to.index()]
            .map(|p| at_most_stages(atoms, from, to, p, stages))
            .into_iter()
            .collect(),
        Reason::Resource { first: (u, r), second: (v, s), wrap } if known(&[u, v]) && u != v => {
            let (held, other) = (graph.operation(u).reservations.get(r), graph.operation(v).reservations.get(s));
            let units = (problem.units_of(u).get(r), problem.units_of(v).get(s));
            let (Some(held), Some(other), (Some(unit), Some(same_unit))) = (held, other, units) else { return vec![] };
            if unit != same_unit || problem.resources().units[unit.index()].capacity != 1 {
                return vec![];
            }
            let shift = held.start.0 - other.start.0;
            vec![apart_on_circle(atoms, vec![], (u, v), (shift - other.cycles.0 + 1, shift + held.cycles.0), wrap)]
        }
        Reason::Exclusive { first, second, wrap } if known(&[first, second]) && first != second => {
            let (a, b) = (graph.operation(first), graph.operation(second));
            let busy = a.is_synchronous() && b.is_synchronous() && a.occupancy.0 > 0 && b.occupancy.0 > 0;
            if !(problem.options().exclusive_issue && busy) {
                return vec![];
            }
            let offsets = (1 - b.occupancy.0, a.occupancy.0);
            vec![apart_on_circle(atoms, vec![same(first, second)], (first, second), offsets, wrap)]
        }
        Reason::Concurrency { waiting, other, wrap } if known(&[waiting, other]) && waiting != other => {
            let operation = graph.operation(other);
            let window = match problem.options().concurrency_window {
                ConcurrencyWindow::Issue if !operation.is_synchronous() => 1,
                ConcurrencyWindow::Issue | ConcurrencyWindow::Literal => operation.occupancy.0,
            };
            if window == 0 {
                return vec![];
            }
            let conditions = vec![(Atom::Waits { op: waiting }, true), same(waiting, other)];
            vec![apart_on_circle(atoms, conditions, (other, waiting), (0, window), wrap)]
        }
        Reason::Handoff { dependence } => {
            let Some(d) = graph.dependences().get(dependence.index()) else { return vec![] };
            if !is_register_value(problem, d) {
                return vec![];
            }
            let together = same(d.from, d.to);
            if d.distance > 0 || !problem.options().cross_group_registers {
                return vec![vec![together]];
            }
            vec![vec![together, later(d.from, d.to, (d.delay + graph.operation(d.from).handoff).0)]]
        }
        Reason::SomeGroup { op } if known(&[op]) => vec![problem.group_ids().map(|w| on(op, w)).collect()],
        Reason::OneGroup { op } if known(&[op]) => {
            let pairs = problem.group_ids().flat_map(|a| problem.group_ids().map(move |b| (a, b)));
            pairs.filter(|(a, b)| a < b).map(|(a, b)| vec![not(on(op, a)), not(on(op, b))]).collect()
        }
        Reason::GroupOrder { op, group } if known(&[op]) => {
            let Some(before) = compute_group_before(atoms, group) else { return vec![] };
            let earlier = graph.op_ids().take_while(|v| *v < op).map(|v| on(v, before));
            vec![earlier.chain([not(on(op, group))]).collect()]
        }
        Reason::UsedOrder { group } => {
            let used = |group| (Atom::Used { group }, true);
            compute_group_before(atoms, group).map(|b| vec![not(used(group)), used(b)]).into_iter().collect()
        }
        Reason::SubTileOrder { first, second } if symmetry::are_neighbours(graph, first, second) => {
            vec![vec![later(first, second, 0)]]
        }
        Reason::RegisterOrder { group, higher, lower } if higher >= lower => {
            let given = |least| (Atom::Registers { group, least }, true);
            vec![vec![not(given(higher)), given(lower)]]
        }
        _ => vec![],
    }
}

/// Compute groups are alike; the one before another in the pool.
fn compute_group_before(atoms: &Atoms, group: GroupId) -> Option<GroupId> {
    let groups = atoms.problem.groups();
    let is_compute = |w: &GroupId| groups.get(w.index()).is_some_and(|g| g.role == GroupRole::Compute);
    let before = GroupId::new(group.index().checked_sub(1)?);
    (is_compute(&group) && is_compute(&before)).then_some(before)
}

/// `t_to − t_from ≥ least`: if at most `c` stages lie between them, the slots make up for `least − cI`.
fn at_most_stages(atoms: &Atoms, from: OpId, to: OpId, least: i128, c: i64) -> Vec<Claim> {
    // Slots differ by less than an interval, so what is beyond two of them may as well be two.
    let far = 2 * i128::from(atoms.interval);
    let rest = (least - i128::from(c) * i128::from(atoms.interval)).clamp(-far, far);
    vec![stages(from, to, c.saturating_add(1)), slots(from, to, rest as i64)]
}

/// If all conditions hold, `(t_to − t_from) mod I` is not in `[first, end)`: the difference of slots lies
/// before that range or after it, `wrap` intervals on.
fn apart_on_circle(
    atoms: &Atoms,
    conditions: Vec<Claim>,
    (from, to): (OpId, OpId),
    (first, end): (i64, i64),
    wrap: i64,
) -> Vec<Claim> {
    let mut clause: Vec<Claim> = conditions.into_iter().map(not).collect();
    // A range as long as the interval leaves no offset at all.
    if end - first < atoms.interval {
        let shift = wrap.saturating_mul(atoms.interval);
        clause.push(slots(from, to, end.saturating_add(shift)));
        clause.push(slots(to, from, (1 - first).saturating_sub(shift)));
    }
    clause
}

/// Returns whether a clause is one direction of what an atom means.
fn defines(atoms: &Atoms, clause: &[Literal], number: Literal) -> bool {
    let exists = clause.contains(&number) || clause.contains(&-number);
    if number < 1 || !exists {
        return false;
    }
    let problem = atoms.problem;
    let graph = problem.graph();
    let (atom, _) = atoms.claim(number);
    let it = (atom.clone(), true);
    let any = |meanings: Vec<Vec<Claim>>| meanings.iter().any(|d| atoms.covers(clause, d));
    let on = |op: OpId, group: GroupId| (Atom::OnGroup { op, group }, true);
    match atom {
        Atom::All(parts) => {
            let given = |l: &Literal| clause.contains(&-l) || atoms.truth(*l) == Some(true);
            clause.contains(&number) && parts.iter().all(given)
        }
        Atom::Used { group } => any(graph.op_ids().map(|v| vec![not(on(v, *group)), it.clone()]).collect()),
        Atom::Same { a, b } => any(problem
            .group_ids()
            .flat_map(|w| {
                let (x, y) = (on(*a, w), on(*b, w));
                [
                    vec![not(x.clone()), not(y.clone()), it.clone()],
                    vec![not(it.clone()), not(x.clone()), y.clone()],
                    vec![not(it.clone()), x, not(y)],
                ]
            })
            .collect()),
        Atom::Waits { op } => {
            let incoming = graph.dependences().iter().filter(|d| d.to == *op && is_register_value(problem, d));
            any(incoming.map(|d| vec![same(d.from, d.to), it.clone()]).collect())
        }
        Atom::Later { stages: (a, b), slots: (c, d), least } => {
            let whole = least.div_euclid(atoms.interval);
            any((whole - 1..=whole + 2)
                .flat_map(|n| {
                    let rest = least - n * atoms.interval;
                    [
                        // With at most n stages between, the slots make up for the rest …
                        vec![not(it.clone()), stages(*a, *b, n + 1), slots(*c, *d, rest)],
                        // … and with at least n stages between, slots that do are enough.
                        vec![it.clone(), not(stages(*a, *b, n)), not(slots(*c, *d, rest))],
                    ]
                })
                .collect())
        }
        Atom::Ring { load, slots } => {
            let ways = ring_reaches(problem, *load, *slots, atoms.interval);
            let rings = graph.operation(*load).streaming;
            rings && any(ways.into_iter().map(|way| vec![not(way), it.clone()]).collect())
        }
        Atom::Alive { .. } => any(alive(atoms, &it)),
        Atom::Bound { .. } | Atom::OnGroup { .. } | Atom::Registers { .. } => false,
    }
}

/// When at least this many copies of an item are alive in the slot of an event. With `x` the way from the
/// item's slot to the event's, `fI ≤ x < (f + 1)I`, the youngest copy is `x − fI` old and the others one
/// interval more each: that many are alive iff the item's life exceeds `x − fI + (copies − 1) I`.
fn alive(atoms: &Atoms, it: &Claim) -> Vec<Vec<Claim>> {
    let (Atom::Alive { pool, item, copies, event }, _) = it else { return vec![] };
    let (Some(extent), Some(at)) = (atoms.extent(*pool, *item), atoms.extent(*pool, *event)) else { return vec![] };
    let interval = atoms.interval;
    let ((from, starts), (to, seen)) = (extent.start, at.start);
    let offset = seen - starts;
    let (low, high) = ((offset - interval).div_euclid(interval), (offset + interval).div_euclid(interval));
    let mut clauses = Vec::new();
    for wraps in low..=high {
        let reached = slots(from, to, wraps * interval - offset);
        let passed = slots(from, to, (wraps + 1) * interval - offset);
        for &(end, ends, when) in &extent.ends {
            // q_end − q_from stages and s_end − s_to slots, so that the life exceeds the oldest copy's age.
            let least = seen - ends + (copies - 1 - wraps) * interval + 1;
            let long = (Atom::Later { stages: (from, end), slots: (to, end), least }, true);
            let mut clause = vec![not(reached.clone()), passed.clone(), not(long), it.clone()];
            clause.extend(when.map(|(a, b)| same(a, b)));
            clauses.push(clause);
        }
    }
    clauses
}
