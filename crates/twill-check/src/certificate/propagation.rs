//! Unit propagation: whether a clause follows from others because its negation leads to a contradiction by
//! unit clauses alone (reverse unit propagation; Goldberg & Novikov, "Verification of Proofs of Unsatisfiability
//! for CNF Formulas", DATE 2003). Two literals of each clause are watched (Moskewicz et al., DAC 2001).

use std::collections::HashMap;
use twill_graph::proof::Literal;

/// Clauses, and what follows from them by unit propagation.
pub(super) struct Propagation {
    clauses: Vec<Vec<Literal>>,
    /// Clauses that watch a literal, by its code.
    watches: Vec<Vec<usize>>,
    /// Value of each literal, by its code.
    values: Vec<Option<bool>>,
    trail: Vec<Literal>,
    seen: usize,
    contradiction: bool,
    /// Clauses in force by their sorted literals.
    positions: HashMap<Vec<Literal>, Vec<usize>>,
}

fn code(literal: Literal) -> usize {
    2 * literal.unsigned_abs() as usize + usize::from(literal < 0)
}

fn sorted(clause: &[Literal]) -> Vec<Literal> {
    let mut sorted = clause.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}

impl Propagation {
    /// No clauses over this many atoms.
    pub(super) fn new(atoms: usize) -> Propagation {
        let codes = 2 * atoms + 2;
        Propagation {
            clauses: Vec::new(),
            watches: vec![Vec::new(); codes],
            values: vec![None; codes],
            trail: Vec::new(),
            seen: 0,
            contradiction: false,
            positions: HashMap::new(),
        }
    }

    /// Returns whether the clauses contradict each other.
    pub(super) fn is_contradictory(&self) -> bool {
        self.contradiction
    }

    /// Adds a clause that holds.
    pub(super) fn add(&mut self, clause: &[Literal]) {
        if self.contradiction {
            return;
        }
        let mut literals = sorted(clause);
        let position = self.clauses.len();
        self.positions.entry(literals.clone()).or_default().push(position);
        // Literals that are not false come first, to be watched.
        literals.sort_by_key(|&l| self.values[code(l)] == Some(false));
        let open = literals.iter().filter(|&&l| self.values[code(l)] != Some(false)).count();
        match (open, literals.as_slice()) {
            (0, _) => self.contradiction = true,
            (1, &[unit, ..]) => {
                if self.values[code(unit)].is_none() {
                    self.assign(unit);
                    self.contradiction = !self.propagate();
                }
            }
            _ => {
                self.watches[code(literals[0])].push(position);
                self.watches[code(literals[1])].push(position);
            }
        }
        self.clauses.push(literals);
    }

    /// Forgets a clause. What followed from it stays: it was proved.
    pub(super) fn delete(&mut self, clause: &[Literal]) {
        let Some(positions) = self.positions.get_mut(&sorted(clause)) else { return };
        let Some(position) = positions.pop() else { return };
        for at in [0, 1] {
            let Some(&l) = self.clauses[position].get(at) else { continue };
            self.watches[code(l)].retain(|&p| p != position);
        }
        self.clauses[position] = Vec::new();
    }

    /// Returns whether a clause follows by unit propagation.
    pub(super) fn follows(&mut self, clause: &[Literal]) -> bool {
        if self.contradiction {
            return true;
        }
        let kept = self.trail.len();
        let mut conflict = false;
        for &l in clause {
            match self.values[code(-l)] {
                Some(true) => {}
                Some(false) => {
                    conflict = true;
                    break;
                }
                None => self.assign(-l),
            }
        }
        let follows = conflict || !self.propagate();
        for l in self.trail.drain(kept..) {
            self.values[code(l)] = None;
            self.values[code(-l)] = None;
        }
        self.seen = kept;
        follows
    }

    fn assign(&mut self, literal: Literal) {
        self.values[code(literal)] = Some(true);
        self.values[code(-literal)] = Some(false);
        self.trail.push(literal);
    }

    /// `false` on a contradiction.
    fn propagate(&mut self) -> bool {
        while let Some(&literal) = self.trail.get(self.seen) {
            self.seen += 1;
            let denied = -literal;
            let mut watching = std::mem::take(&mut self.watches[code(denied)]);
            let mut kept = 0;
            let mut consistent = true;
            for at in 0..watching.len() {
                let position = watching[at];
                if consistent && self.moves_on(position, denied) {
                    continue;
                }
                watching[kept] = position;
                kept += 1;
                if consistent {
                    let first = self.clauses[position][0];
                    match self.values[code(first)] {
                        Some(true) => {}
                        Some(false) => consistent = false,
                        None => self.assign(first),
                    }
                }
            }
            watching.truncate(kept);
            // Other clauses may have come to watch it meanwhile; a clause never watches what it just left.
            watching.append(&mut self.watches[code(denied)]);
            self.watches[code(denied)] = watching;
            if !consistent {
                return false;
            }
        }
        true
    }

    /// Finds a clause something else to watch than `denied`, which stands second from now on; `false` when
    /// there is nothing else.
    fn moves_on(&mut self, position: usize, denied: Literal) -> bool {
        let clause = &mut self.clauses[position];
        if clause[0] == denied {
            clause.swap(0, 1);
        }
        if self.values[code(clause[0])] == Some(true) {
            return false;
        }
        let other = (2..clause.len()).find(|&i| self.values[code(clause[i])] != Some(false));
        let Some(other) = other else { return false };
        clause.swap(1, other);
        self.watches[code(clause[1])].push(position);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_by_units_follows_and_nothing_else() {
        let mut p = Propagation::new(4);
        p.add(&[1, 2]);
        p.add(&[-1, 3]);
        p.add(&[-2, 3]);
        assert!(!p.follows(&[4]));
        assert!(p.follows(&[3]));
        // Reasoning by cases is not unit propagation.
        assert!(!p.follows(&[-1]));
        p.add(&[-3, -1]);
        assert!(p.follows(&[-1]), "1 gives 3, which denies 1");
        p.add(&[3]);
        p.add(&[-2, -3]);
        assert!(p.is_contradictory());
        assert!(p.follows(&[]));
    }

    #[test]
    fn a_clause_with_two_ways_left_says_nothing() {
        let mut p = Propagation::new(4);
        p.add(&[1, 2, 3]);
        p.add(&[-2, 4]);
        p.add(&[-2, -4]);
        // 2 is impossible, but that is found by cases; without 1, either 2 or 3 is left.
        assert!(!p.follows(&[1]));
        assert!(p.follows(&[-2]));
        assert!(p.follows(&[1, 3]));
        p.add(&[-2]);
        assert!(!p.follows(&[1]) && !p.follows(&[3]));
        p.add(&[-3]);
        assert!(p.follows(&[1]) && !p.is_contradictory());
    }

    #[test]
    fn deleted_clauses_are_not_used() {
        let mut p = Propagation::new(3);
        p.add(&[1, 2, 3]);
        p.add(&[-3, 1]);
        assert!(p.follows(&[1, 2]));
        p.delete(&[3, 2, 1]);
        assert!(!p.follows(&[1, 2]));
    }
}
