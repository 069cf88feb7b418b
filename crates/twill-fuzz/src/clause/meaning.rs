//! The meaning of the atoms of proofs (`twill_graph::proof`), for one schedule.

use twill_graph::proof::{Atom, Item, Literal, Point};
use twill_graph::{Dependence, GroupId, OpId, Problem, Schedule, Storage};

/// A schedule turned so that operation 0 stands in slot 0.
#[derive(Debug)]
pub(super) struct Meaning<'p> {
    problem: &'p Problem,
    interval: i64,
    cycles: Vec<i64>,
    groups: Vec<GroupId>,
    /// Registers a thread, of groups in use.
    registers: Vec<(GroupId, u32)>,
}

impl<'p> Meaning<'p> {
    pub(super) fn new(problem: &'p Problem, schedule: &Schedule) -> Meaning<'p> {
        let interval = schedule.interval.0;
        let slot = schedule.placements.first().map_or(0, |p| p.cycle.0.rem_euclid(interval));
        let turned = schedule.placements.iter().map(|p| p.cycle.0 + interval - slot);
        Meaning {
            problem,
            interval,
            cycles: turned.collect(),
            groups: schedule.placements.iter().map(|p| p.group).collect(),
            registers: schedule.groups.iter().map(|g| (g.id, g.registers_per_thread)).collect(),
        }
    }

    /// Returns whether a literal is true.
    pub(super) fn holds(&self, atoms: &[Atom], literal: Literal) -> bool {
        let atom = atoms.get(literal.unsigned_abs() as usize - 1);
        atom.is_some_and(|atom| self.is_true(atoms, atom)) == (literal > 0)
    }

    fn cycle(&self, v: OpId) -> i64 {
        self.cycles[v.index()]
    }

    fn point(&self, point: Point) -> i64 {
        match point {
            Point::Origin => 0,
            Point::Slot(v) => self.cycle(v).rem_euclid(self.interval),
            Point::Stage(v) => self.cycle(v).div_euclid(self.interval),
        }
    }

    fn same(&self, a: OpId, b: OpId) -> bool {
        self.groups[a.index()] == self.groups[b.index()]
    }

    fn is_true(&self, atoms: &[Atom], atom: &Atom) -> bool {
        let stage = |v: OpId| self.point(Point::Stage(v));
        let slot = |v: OpId| self.point(Point::Slot(v));
        match atom {
            Atom::Bound { from, to, least } => self.point(*to) - self.point(*from) >= *least,
            Atom::OnGroup { op, group } => self.groups[op.index()] == *group,
            Atom::Used { group } => self.groups.contains(group),
            Atom::Same { a, b } => self.same(*a, *b),
            Atom::Later { stages: (a, b), slots: (c, d), least } => {
                (stage(*b) - stage(*a)) * self.interval + slot(*d) - slot(*c) >= *least
            }
            Atom::Waits { op } => self.incoming(*op).any(|d| (d.blocking && d.from != d.to) || self.crosses(d)),
            Atom::Alive { item, copies, event, .. } => self.copies(*item, *event) >= *copies,
            Atom::Ring { load, slots } => self.ring(*load) >= *slots,
            Atom::Registers { group, least } => self.registers.iter().any(|(g, given)| g == group && given >= least),
            Atom::All(literals) => literals.iter().all(|&l| self.holds(atoms, l)),
        }
    }

    fn incoming(&self, v: OpId) -> impl Iterator<Item = &'p Dependence> {
        self.problem.graph().dependences().iter().filter(move |d| d.to == v)
    }

    fn uses(&self, v: OpId) -> impl Iterator<Item = &'p Dependence> {
        self.problem.graph().dependences().iter().filter(move |d| d.from == v && d.carries_value)
    }

    /// A register value that passes to another group.
    fn crosses(&self, d: &Dependence) -> bool {
        let registers = matches!(self.problem.graph().operation(d.from).storage, Storage::Registers(_));
        d.carries_value && registers && !self.same(d.from, d.to)
    }

    /// When a value is read.
    fn read(&self, d: &Dependence) -> i64 {
        self.cycle(d.to) + i64::from(d.distance) * self.interval
    }

    /// From when to when an item takes room.
    fn life(&self, item: Item) -> (i64, i64) {
        let graph = self.problem.graph();
        match item {
            Item::Value(v) => {
                let end = self.uses(v).map(|d| self.read(d) + d.hold.0).max();
                (self.cycle(v), end.unwrap_or(self.cycle(v)))
            }
            Item::Operand(id) => {
                let reader = graph.dependence(id).to;
                (self.cycle(reader), self.cycle(reader) + graph.operation(reader).span().0)
            }
            Item::Buffer(v) => {
                let away = self.uses(v).filter(|d| self.crosses(d));
                let end = away.map(|d| self.read(d) + graph.operation(d.to).completion().0).max();
                (self.cycle(v), end.unwrap_or(self.cycle(v)))
            }
            Item::Reservation(v, at) => {
                let held = &graph.operation(v).reservations[at];
                let start = self.cycle(v) + held.start.0;
                (start, start + held.cycles.0)
            }
        }
    }

    /// Copies of an item that are alive in the slot in which another starts.
    fn copies(&self, item: Item, event: Item) -> i64 {
        let ((start, end), (slot, _)) = (self.life(item), self.life(event));
        (start..end).filter(|cycle| (cycle - slot).rem_euclid(self.interval) == 0).count() as i64
    }

    /// Slots of a load's ring.
    fn ring(&self, load: OpId) -> i64 {
        let graph = self.problem.graph();
        let first = self.uses(load).map(|d| self.read(d)).min();
        let last = self.uses(load).map(|d| self.read(d) + graph.operation(d.to).completion().0).max();
        let lasts = first.zip(last).map_or(0, |(first, last)| graph.operation(load).transfer_latency.0 + last - first);
        let whole = lasts.div_euclid(self.interval);
        (whole + i64::from(lasts.rem_euclid(self.interval) > 0)).max(1)
    }
}
