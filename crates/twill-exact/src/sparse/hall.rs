//! Checks that the slots that operations may still take suffice for all of them: a matching of operations to slots, and
//! where there is none, a set of operations with too few slots between them (Hall, 1935; Régin, "A filtering algorithm
//! for constraints of difference in CSPs", AAAI 1994).

use super::domains::Domain;
use batsat::Lit;
use std::cell::Cell;
use std::rc::Rc;

/// One cycle of a resource that an operation holds: slot `(t + offset) mod I`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    pub(crate) class: usize,
    pub(crate) offset: i64,
}

const NOWHERE: usize = usize::MAX;

/// The matching of one resource. It survives backtracking: what was possible remains so.
pub(crate) struct Matching {
    holds: Vec<Hold>,
    limit: usize,
    /// Row of each hold.
    at: Vec<usize>,
    /// Holds in each row.
    rows: Vec<Vec<usize>>,
    work: Rc<Cell<u64>>,
}

impl Matching {
    pub(crate) fn new(holds: Vec<Hold>, limit: usize, interval: usize, work: Rc<Cell<u64>>) -> Matching {
        Matching { at: vec![NOWHERE; holds.len()], rows: vec![Vec::new(); interval], holds, limit, work }
    }

    /// Literals that hold and leave no matching, if there is none.
    pub(crate) fn conflict(&mut self, domains: &[Domain], value: &impl Fn(Lit) -> Option<bool>) -> Option<Vec<Lit>> {
        for k in 0..self.holds.len() {
            let row = self.at[k];
            if row == NOWHERE {
                continue;
            }
            let Hold { class, offset } = self.holds[k];
            let literal = domains[class].slot(row as i64 - offset);
            if literal.is_none_or(|l| value(l) == Some(false)) {
                self.at[k] = NOWHERE;
                self.rows[row].retain(|&other| other != k);
            }
        }
        (0..self.holds.len()).find_map(|k| {
            let crowded = if self.at[k] == NOWHERE { self.place(k, domains, value) } else { None };
            crowded.map(|rows| self.reasons(k, &rows, domains, value))
        })
    }

    /// Finds a row for `hold`, moving others; or the rows that it and those in them cannot leave.
    fn place(&mut self, hold: usize, domains: &[Domain], value: &impl Fn(Lit) -> Option<bool>) -> Option<Vec<bool>> {
        let interval = self.rows.len() as i64;
        let mut by = vec![NOWHERE; self.rows.len()];
        let mut queue = vec![hold];
        let mut next = 0;
        while let Some(&one) = queue.get(next) {
            next += 1;
            self.work.set(self.work.get() + 1);
            let Hold { class, offset } = self.holds[one];
            for (slot, literal) in domains[class].slots() {
                let row = (slot + offset).rem_euclid(interval) as usize;
                if by[row] != NOWHERE || value(literal) == Some(false) {
                    continue;
                }
                by[row] = one;
                if self.rows[row].len() < self.limit {
                    self.shift(row, &by);
                    return None;
                }
                queue.extend(&self.rows[row]);
            }
        }
        Some(by.iter().map(|&b| b != NOWHERE).collect())
    }

    /// Moves along the path that ends in a row with room.
    fn shift(&mut self, mut row: usize, by: &[usize]) {
        loop {
            let one = by[row];
            let before = std::mem::replace(&mut self.at[one], row);
            self.rows[row].push(one);
            if before == NOWHERE {
                return;
            }
            self.rows[before].retain(|&other| other != one);
            row = before;
        }
    }

    /// Why the holds in `rows`, which are full, and `extra` have no other rows.
    fn reasons(
        &self,
        extra: usize,
        rows: &[bool],
        domains: &[Domain],
        value: &impl Fn(Lit) -> Option<bool>,
    ) -> Vec<Lit> {
        let interval = rows.len() as i64;
        let mut core = Vec::new();
        let inside = rows.iter().zip(&self.rows).filter(|(within, _)| **within).flat_map(|(_, holds)| holds);
        for &one in inside.chain([&extra]) {
            let Hold { class, offset } = self.holds[one];
            let domain = &domains[class];
            let crowded = |time: i64| rows[(time + offset).rem_euclid(interval) as usize];
            let (mut first, mut last) = domain.bounds(value);
            for hole in (first..=last.min(first + interval - 1)).filter(|&time| !crowded(time)) {
                core.extend(domain.slot(hole).map(|l| !l));
            }
            // The weakest bounds that keep it where the crowd is.
            while first > domain.least && crowded(first - 1) {
                first -= 1;
            }
            while last < domain.largest && crowded(last + 1) {
                last += 1;
            }
            core.extend([domain.at_least(first), !domain.at_least(last + 1)]);
        }
        core.sort_unstable();
        core.dedup();
        core
    }
}
