//! One question: is there a schedule at this interval? An order encoding of the classes' times, clauses for the bounds
//! between them, and [`SlotTheory`] for the resources.

use super::domains::Domain;
use super::hall::{Hold, Matching};
use super::net::Net;
use super::reduce::{self, Class, Reduced};
use super::theory::SlotTheory;
use crate::limits::{Meter, SolverCallbacks};
use crate::proof_log::Log;
use batsat::{Lit, Solver, SolverInterface, SolverOpts, lbool};
use twill_graph::{OpId, UnitId};

/// The answer.
pub(crate) enum Verdict {
    /// Times of the limited operations; of a component, up to a common multiple of the interval.
    Found(Slots),
    /// There is none.
    Excluded { conflicts: u64 },
    /// The meter stopped the search.
    Stopped,
    /// Too many times to tell apart.
    TooLarge,
}

/// When the limited operations start.
pub(crate) struct Slots {
    /// Operations with their times, within a component relative to each other.
    pub(crate) times: Vec<(usize, i64)>,
    /// Operations that may start in any slot with room.
    pub(crate) free: Vec<usize>,
}

/// Largest encoding, which takes about a gigabyte.
const LARGEST: i64 = 8_000_000;

/// Asks for a schedule at `interval`, which must not be below the recurrence bound.
pub(crate) fn ask(net: &Net, interval: i64, meter: &Meter) -> Verdict {
    let Ok(potentials) = net.potentials(interval) else { return Verdict::Excluded { conflicts: 0 } };
    let reduced = match reduce::reduce(net, interval, &potentials, meter) {
        Ok(reduced) => reduced,
        Err(verdict) => return verdict,
    };
    if size(net, interval, &reduced) > LARGEST {
        return Verdict::TooLarge;
    }
    Encoding::new(net, interval, reduced, meter).solve()
}

/// Literals, binary clauses and entries of the reservation table, roughly.
fn size(net: &Net, interval: i64, reduced: &Reduced) -> i64 {
    let width = |class: &Class| class.largest - class.least + 1;
    let times = reduced.classes.iter().map(|c| width(c).saturating_mul(3));
    let clauses = reduced.bounds.iter().map(|b| width(&reduced.classes[b.0]));
    let members = reduced.classes.iter().flat_map(|c| c.members.iter().map(move |&(v, _)| (v, width(c).min(interval))));
    let holds = members.map(|(v, width)| width.saturating_mul(net.problem.resource_of(OpId::new(v)).blocking.into()));
    let rows = if reduced.classes.is_empty() { 0 } else { interval };
    times.chain(clauses).chain(holds).fold(rows, i64::saturating_add)
}

struct Encoding {
    solver: Solver<SolverCallbacks>,
    theory: SlotTheory,
    truth: Lit,
    reduced: Reduced,
}

impl Encoding {
    fn new(net: &Net, interval: i64, reduced: Reduced, meter: &Meter) -> Encoding {
        let callbacks = SolverCallbacks { meter: meter.clone(), conflicts: 0, log: Log::default() };
        let mut solver = Solver::new(SolverOpts::default(), callbacks);
        let truth = Lit::new(solver.new_var_default(), true);
        solver.add_clause_reuse(&mut vec![truth]);
        let theory = SlotTheory::new(truth, meter.counter());
        let mut encoding = Encoding { solver, theory, truth, reduced };
        for class in 0..encoding.reduced.classes.len() {
            encoding.add_class(class, interval);
        }
        encoding.add_bounds();
        encoding.add_resources(net, interval, meter);
        encoding
    }

    fn fresh(&mut self) -> Lit {
        Lit::new(self.solver.new_var_default(), true)
    }

    fn clause(&mut self, literals: &[Lit]) {
        if !literals.contains(&self.truth) {
            let mut clause = literals.iter().copied().filter(|&l| l != !self.truth).collect();
            self.solver.add_clause_reuse(&mut clause);
        }
    }

    fn add_class(&mut self, class: usize, interval: i64) {
        let Class { least, largest, .. } = self.reduced.classes[class];
        let order: Vec<Lit> = (least..largest).map(|_| self.fresh()).collect();
        for pair in order.windows(2) {
            self.clause(&[pair[0], !pair[1]]);
        }
        let slots: Vec<Lit> = match largest - least {
            0 => vec![self.truth],
            width => (0..=width.min(interval - 1)).map(|_| self.fresh()).collect(),
        };
        let domain = Domain::new(interval, least, self.truth, order, slots);
        // The times that make each slot: one, unless the slot comes again within the window.
        let mut ways: Vec<Vec<Lit>> = domain.slots().map(|(_, slot)| vec![!slot]).collect();
        for (time, way) in (least..=largest).zip((0..ways.len()).cycle()) {
            let slot = !ways[way][0];
            let (from, after) = (domain.at_least(time), domain.at_least(time + 1));
            self.clause(&[!from, after, slot]);
            let exactly = if largest - least < interval { slot } else { self.fresh() };
            self.clause(&[!exactly, from]);
            self.clause(&[!exactly, !after]);
            ways[way].push(exactly);
        }
        ways.iter().for_each(|way| self.clause(way));
        self.theory.domains.push(domain);
    }

    fn add_bounds(&mut self) {
        for k in 0..self.reduced.bounds.len() {
            let (u, v, distance) = self.reduced.bounds[k];
            let (from, to) = (&self.theory.domains[u], &self.theory.domains[v]);
            let clauses: Vec<[Lit; 2]> =
                (from.least..=from.largest).map(|t| [!from.at_least(t), to.at_least(t + distance)]).collect();
            clauses.iter().for_each(|c| self.clause(c));
        }
    }

    fn add_resources(&mut self, net: &Net, interval: i64, meter: &Meter) {
        for (index, resource) in net.problem.resources().iter().enumerate() {
            let Some(limit) = resource.limit else { continue };
            let mut holds = Vec::new();
            for (class, Class { members, .. }) in self.reduced.classes.iter().enumerate() {
                let users = members.iter().filter(|(v, _)| net.problem.operations()[*v].resource == UnitId::new(index));
                for (_, offset) in users {
                    holds.extend((0..i64::from(resource.blocking)).map(|k| Hold { class, offset: offset + k }));
                }
            }
            if holds.len() <= limit as usize {
                continue;
            }
            let mut rows: Vec<Vec<Lit>> = vec![Vec::new(); interval as usize];
            for Hold { class, offset } in &holds {
                for (slot, literal) in self.theory.domains[*class].slots() {
                    rows[(slot + offset).rem_euclid(interval) as usize].push(literal);
                }
            }
            rows.into_iter().for_each(|row| self.add_row(row, limit.into()));
            self.theory.matchings.push(Matching::new(holds, limit as usize, interval as usize, meter.counter()));
        }
    }

    /// At most `limit` of these literals, which may repeat.
    fn add_row(&mut self, mut row: Vec<Lit>, limit: u64) {
        let truth = self.truth;
        row.sort_unstable();
        let mut terms: Vec<(Lit, u64)> = Vec::new();
        for same in row.chunk_by(|a, b| a == b) {
            terms.push((same[0], same.len() as u64));
        }
        let fixed: u64 = terms.iter().filter(|t| t.0 == truth).map(|t| t.1).sum();
        let Some(limit) = limit.checked_sub(fixed) else {
            self.clause(&[!truth]);
            return;
        };
        for &(literal, _) in terms.iter().filter(|t| t.0 != truth && t.1 > limit) {
            self.clause(&[!literal]);
        }
        terms.retain(|t| t.0 != truth && t.1 <= limit);
        if terms.iter().map(|t| t.1).sum::<u64>() > limit {
            self.theory.sums.add(terms, limit, None);
        }
    }

    fn solve(mut self) -> Verdict {
        let result = self.solver.solve_limited_preserving_trail_th(&mut self.theory, &[]);
        if result == lbool::FALSE {
            return Verdict::Excluded { conflicts: self.solver.cb().conflicts };
        }
        if result != lbool::TRUE {
            return Verdict::Stopped;
        }
        let model = self.solver.get_model();
        let value = |l: Lit| {
            let value = model.get(l.var().idx() as usize).copied().unwrap_or(lbool::FALSE);
            Some((value == lbool::TRUE) == l.sign())
        };
        let starts = self.theory.domains.iter().map(|domain| domain.bounds(value).0);
        let members = starts.zip(&self.reduced.classes);
        let times = members.flat_map(|(start, class)| class.members.iter().map(move |&(v, at)| (v, start + at)));
        Verdict::Found(Slots { times: times.collect(), free: self.reduced.free })
    }
}
