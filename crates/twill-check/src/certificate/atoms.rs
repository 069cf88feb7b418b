//! The meaning of a proof's literals, and which are settled for every schedule.

use super::CertificateError;
use super::items::{self, Extent};
use std::collections::{HashMap, HashSet};
use twill_graph::proof::{Atom, Item, Literal, Point, Pool, Proof};
use twill_graph::{Dependence, GroupId, GroupRole, OpId, Problem, Storage, WarpAssignment};

/// The atoms of a proof, in the problem that it is about.
pub(super) struct Atoms<'p> {
    pub(super) problem: &'p Problem,
    pub(super) interval: i64,
    atoms: &'p [Atom],
    numbers: HashMap<Atom, Literal>,
    /// For each atom, whether it is settled for every schedule.
    truths: Vec<Option<bool>>,
    /// Groups that may run each operation.
    candidates: Vec<Vec<GroupId>>,
    /// `paths[u][v]`: longest path of dependences, where there is one.
    pub(super) paths: Vec<Vec<Option<i128>>>,
    extents: HashMap<(Pool, Item), Extent>,
}

/// An atom and whether it holds.
pub(super) type Claim = (Atom, bool);

/// One spelling for each meaning.
fn spelled(atom: Atom, holds: bool) -> Claim {
    match atom {
        Atom::Bound { from, to, least } if from > to => {
            (Atom::Bound { from: to, to: from, least: 1_i64.saturating_sub(least) }, !holds)
        }
        Atom::Same { a, b } if a > b => (Atom::Same { a: b, b: a }, holds),
        other => (other, holds),
    }
}

/// `to − from ≥ least` for slots.
pub(super) fn slots(from: OpId, to: OpId, least: i64) -> Claim {
    (Atom::Bound { from: Point::Slot(from), to: Point::Slot(to), least }, true)
}

/// `to − from ≥ least` for stages.
pub(super) fn stages(from: OpId, to: OpId, least: i64) -> Claim {
    (Atom::Bound { from: Point::Stage(from), to: Point::Stage(to), least }, true)
}

/// `t_to − t_from ≥ least`.
pub(super) fn later(from: OpId, to: OpId, least: i64) -> Claim {
    (Atom::Later { stages: (from, to), slots: (from, to), least }, true)
}

/// Both on one group.
pub(super) fn same(a: OpId, b: OpId) -> Claim {
    (Atom::Same { a, b }, true)
}

/// The opposite.
pub(super) fn not((atom, holds): Claim) -> Claim {
    (atom, !holds)
}

impl<'p> Atoms<'p> {
    /// Takes in the atoms of a proof.
    pub(super) fn new(problem: &'p Problem, proof: &'p Proof) -> Result<Atoms<'p>, CertificateError> {
        let mut atoms = Atoms {
            problem,
            interval: proof.interval,
            atoms: &proof.atoms,
            numbers: HashMap::new(),
            truths: Vec::with_capacity(proof.atoms.len()),
            candidates: problem.graph().op_ids().map(|op| candidates(problem, op)).collect(),
            paths: longest_paths(problem, proof.interval),
            extents: HashMap::new(),
        };
        for (i, atom) in proof.atoms.iter().enumerate() {
            let unknown = CertificateError::Atom { interval: proof.interval, atom: i + 1 };
            if !atoms.is_meaningful(atom, i) {
                return Err(unknown);
            }
            if let Atom::Alive { pool, item, event, .. } = *atom {
                for part in [item, event] {
                    let Some(extent) = items::extent(problem, proof.interval, pool, part) else { return Err(unknown) };
                    atoms.extents.insert((pool, part), extent);
                }
            }
            // Conjunctions are of earlier atoms, whose truth is known by now.
            let truth = atoms.settled_atom(atom);
            atoms.truths.push(truth);
            let number = i as Literal + 1;
            let (spelling, holds) = spelled(atom.clone(), true);
            atoms.numbers.entry(spelling).or_insert(if holds { number } else { -number });
        }
        Ok(atoms)
    }

    /// Returns whether everything that an atom speaks of exists, and a conjunction is one of earlier atoms.
    fn is_meaningful(&self, atom: &Atom, position: usize) -> bool {
        let operations = self.problem.graph().operations().len();
        let op = |v: &OpId| v.index() < operations;
        let group = |w: &GroupId| w.index() < self.problem.groups().len();
        // Far from where sums of a few could overflow.
        let modest = |n: &i64| n.unsigned_abs() < 1 << 60;
        match atom {
            Atom::Bound { from, to, least } => {
                let point = |p: &Point| match p {
                    Point::Origin => true,
                    Point::Slot(v) | Point::Stage(v) => op(v),
                };
                point(from) && point(to) && modest(least)
            }
            Atom::OnGroup { op: v, group: w } => op(v) && group(w),
            Atom::Used { group: w } | Atom::Registers { group: w, .. } => group(w),
            Atom::Same { a, b } => op(a) && op(b),
            Atom::Later { stages: (a, b), slots: (c, d), least } => [a, b, c, d].into_iter().all(op) && modest(least),
            Atom::Waits { op: v } => op(v),
            Atom::Alive { copies, .. } => (1..1 << 20).contains(copies),
            Atom::Ring { load, slots } => op(load) && (2..1 << 20).contains(slots),
            Atom::All(literals) => literals.iter().all(|l| *l != 0 && (l.unsigned_abs() as usize) <= position),
        }
    }

    /// The claim of a literal.
    pub(super) fn claim(&self, literal: Literal) -> (&Atom, bool) {
        (&self.atoms[literal.unsigned_abs() as usize - 1], literal > 0)
    }

    /// Returns whether a literal is true, or false, of every schedule.
    pub(super) fn truth(&self, literal: Literal) -> Option<bool> {
        let truth = self.truths.get(literal.unsigned_abs() as usize - 1).copied().flatten();
        truth.map(|t| t == (literal > 0))
    }

    /// The literal for a claim, if the proof has one.
    pub(super) fn literal(&self, claim: &Claim) -> Option<Literal> {
        let (atom, holds) = spelled(claim.0.clone(), claim.1);
        self.numbers.get(&atom).map(|&n| if holds { n } else { -n })
    }

    /// Where an item of the proof lies.
    pub(super) fn extent(&self, pool: Pool, item: Item) -> Option<&Extent> {
        self.extents.get(&(pool, item))
    }

    /// Least and greatest value of a point; no greatest for stages. Operation 0 stands in slot 0.
    pub(super) fn range(&self, point: Point) -> (i64, Option<i64>) {
        match point {
            Point::Origin => (0, Some(0)),
            Point::Slot(v) if v.index() == 0 => (0, Some(0)),
            Point::Slot(_) => (0, Some(self.interval - 1)),
            Point::Stage(_) => (0, None),
        }
    }

    /// Returns whether a claim is true, or false, of every schedule; `None` when that depends.
    pub(super) fn settled(&self, (atom, holds): &Claim) -> Option<bool> {
        self.settled_atom(atom).map(|truth| truth == *holds)
    }

    fn settled_atom(&self, atom: &Atom) -> Option<bool> {
        match atom {
            Atom::Bound { from, to, least } => self.settled_bound(*from, *to, *least),
            Atom::OnGroup { op, group } => match self.candidates[op.index()].as_slice() {
                [only] => Some(only == group),
                several => several.contains(group).then_some(()).map_or(Some(false), |()| None),
            },
            Atom::Same { a, b } => {
                let (x, y) = (&self.candidates[a.index()], &self.candidates[b.index()]);
                if a == b || (x.len() == 1 && x == y) {
                    Some(true)
                } else if x.iter().any(|w| y.contains(w)) {
                    None
                } else {
                    Some(false)
                }
            }
            Atom::Later { stages: (a, b), slots: (c, d), least } => {
                if a != b {
                    return None;
                }
                self.settled_bound(Point::Slot(*c), Point::Slot(*d), *least)
            }
            Atom::Waits { op } => {
                let dependences = self.problem.graph().dependences();
                dependences.iter().any(|d| d.to == *op && d.from != *op && d.blocking).then_some(true)
            }
            Atom::Ring { load, slots } => {
                let deep = ring_reaches(self.problem, *load, *slots, self.interval);
                deep.iter().any(|way| self.settled(way) == Some(true)).then_some(true)
            }
            Atom::All(literals) => {
                let truth = |l: &Literal| self.truth(*l);
                let parts: Vec<Option<bool>> = literals.iter().map(truth).collect();
                if parts.contains(&Some(false)) {
                    Some(false)
                } else {
                    parts.iter().all(|p| *p == Some(true)).then_some(true)
                }
            }
            Atom::Used { .. } | Atom::Alive { .. } | Atom::Registers { .. } => None,
        }
    }

    fn settled_bound(&self, from: Point, to: Point, least: i64) -> Option<bool> {
        if from == to {
            return Some(0 >= least);
        }
        let ((from_low, from_high), (to_low, to_high)) = (self.range(from), self.range(to));
        if from_high.is_some_and(|high| to_low - high >= least) {
            return Some(true);
        }
        if to_high.is_some_and(|high| high - from_low < least) { Some(false) } else { None }
    }

    /// Returns whether a clause says at least what `derived` says: every literal of `derived` that is not plainly
    /// false stands in it.
    pub(super) fn covers(&self, clause: &[Literal], derived: &[Claim]) -> bool {
        derived.iter().all(|claim| match self.settled(claim) {
            Some(truth) => !truth,
            None => self.literal(claim).is_some_and(|l| clause.contains(&l)),
        })
    }

    /// The assumptions that follow when every literal of a clause is false.
    pub(super) fn refuted(&self, clause: &[Literal]) -> Assumed<'_, 'p> {
        let mut open: Vec<Literal> = clause.iter().map(|l| -l).collect();
        let mut literals = HashSet::new();
        while let Some(l) = open.pop() {
            if literals.insert(l)
                && let (Atom::All(parts), true) = self.claim(l)
            {
                open.extend(parts);
            }
        }
        Assumed { atoms: self, literals }
    }
}

/// Literals taken to be true.
pub(super) struct Assumed<'a, 'p> {
    atoms: &'a Atoms<'p>,
    literals: HashSet<Literal>,
}

impl Assumed<'_, '_> {
    /// Returns whether a claim is among them, or always true.
    pub(super) fn holds(&self, claim: &Claim) -> bool {
        match self.atoms.settled(claim) {
            Some(truth) => truth,
            None => self.atoms.literal(claim).is_some_and(|l| self.literals.contains(&l)),
        }
    }

    /// All of them.
    pub(super) fn claims(&self) -> impl Iterator<Item = (&Atom, bool)> {
        self.literals.iter().map(|&l| self.atoms.claim(l))
    }
}

/// `assignment`: groups wide enough, of the role that the operation calls for; of compute groups, where the assignment
/// is fixed, the one of its sub-tile.
fn candidates(problem: &Problem, op: OpId) -> Vec<GroupId> {
    let operation = problem.graph().operation(op);
    let resources = problem.resources();
    let role = if operation.variable_latency && resources.variable_latency_group.is_some() {
        GroupRole::VariableLatency
    } else if operation.issue_width == 1 && resources.issue_group.is_some() {
        GroupRole::Issue
    } else {
        GroupRole::Compute
    };
    let of_role: Vec<_> = problem.group_ids().zip(problem.groups()).filter(|(_, g)| g.role == role).collect();
    let by_sub_tile = role == GroupRole::Compute && problem.options().warp_assignment == WarpAssignment::BySubTile;
    let turn = operation.sub_tile.unwrap_or(0) as usize % of_role.len().max(1);
    let admitted =
        of_role.iter().enumerate().filter(|(place, _)| !by_sub_tile || *place == turn).map(|(_, group)| group);
    admitted.filter(|(_, g)| g.warps >= operation.issue_width).map(|(id, _)| *id).collect()
}

/// The register dependences of `handoff`: values in registers, between two operations.
pub(super) fn is_register_value(problem: &Problem, d: &Dependence) -> bool {
    let registers = matches!(problem.graph().operation(d.from).storage, Storage::Registers(_));
    d.carries_value && d.from != d.to && registers
}

/// Ways in which a ring can come to have this many slots: some last use is late enough after some first
/// use, `transfer + (t_last + δI + completion) − (t_first + δI) > (slots − 1) I`.
pub(super) fn ring_reaches(problem: &Problem, load: OpId, slots: i64, interval: i64) -> Vec<Claim> {
    let graph = problem.graph();
    let transfer = graph.operation(load).transfer_latency.0;
    let mut ways = Vec::new();
    for first in graph.uses(load) {
        for last in graph.uses(load) {
            let iterations = i64::from(last.distance) - i64::from(first.distance);
            let least = (slots - 1 - iterations) * interval - transfer - graph.operation(last.to).completion().0 + 1;
            ways.push(later(first.to, last.to, least));
        }
    }
    ways
}

/// Longest paths of `d − δI` between operations (Floyd–Warshall). On a positive cycle lengths would grow
/// without end; they are cut off, which only weakens what follows from them.
fn longest_paths(problem: &Problem, interval: i64) -> Vec<Vec<Option<i128>>> {
    let graph = problem.graph();
    let count = graph.operations().len();
    let longest = 1_i128 << 80;
    let mut paths: Vec<Vec<Option<i128>>> = vec![vec![None; count]; count];
    for d in graph.dependences() {
        let delay = i128::from(d.delay.0) - i128::from(d.distance) * i128::from(interval);
        let path = &mut paths[d.from.index()][d.to.index()];
        *path = Some(path.map_or(delay, |p| p.max(delay)));
    }
    for k in 0..count {
        let through = paths[k].clone();
        for row in &mut paths {
            let Some(first) = row[k] else { continue };
            for (path, second) in row.iter_mut().zip(&through) {
                let Some(second) = second else { continue };
                let sum = (first + second).min(longest);
                *path = Some(path.map_or(sum, |p| p.max(sum)));
            }
        }
    }
    paths
}
