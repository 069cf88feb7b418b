//! Lemmas of difference logic: the negations of a clause's bounds, with the ranges of slots and stages,
//! add up to a cycle of positive length.

use super::atoms::Atoms;
use std::collections::BTreeMap;
use twill_graph::proof::{Atom, Literal, Point};

/// Returns whether the bounds of a clause cannot all be false.
pub(super) fn is_lemma(atoms: &Atoms, clause: &[Literal]) -> bool {
    let mut edges: Vec<(Point, Point, i64)> = Vec::new();
    for &l in clause {
        if let (&Atom::Bound { from, to, least }, holds) = atoms.claim(l) {
            // The literal is taken to be false.
            edges.push(if holds { (to, from, 1 - least) } else { (from, to, least) });
        }
    }
    let mut reach: BTreeMap<Point, i64> = edges.iter().flat_map(|e| [(e.0, 0), (e.1, 0)]).collect();
    reach.insert(Point::Origin, 0);
    for &point in reach.keys() {
        let (low, high) = atoms.range(point);
        edges.push((Point::Origin, point, low));
        edges.extend(high.map(|high| (point, Point::Origin, -high)));
    }
    // Bellman–Ford: lengths that still grow after as many rounds as there are points go round in a cycle.
    for _ in 0..=reach.len() {
        let mut grew = false;
        for (from, to, least) in &edges {
            let length = reach.get(from).copied().unwrap_or(0).saturating_add(*least);
            let known = reach.entry(*to).or_insert(0);
            if length > *known {
                *known = length;
                grew = true;
            }
        }
        if !grew {
            return false;
        }
    }
    true
}
