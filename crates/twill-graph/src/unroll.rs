//! Unrolling: several iterations as one.

use crate::saturate;
use crate::{Cycles, Dependence, GraphError, LoopGraph, OpId, Operation, Placement, Schedule};

impl LoopGraph {
    /// The loop whose iteration is `copies` iterations of this one. Operation `v` of copy `k` is named `v@k` and
    /// stands at `k · |V| + v`; an interval `I` of the result is `I / copies` of this loop.
    ///
    /// A dependence `(u, v, δ)` leads to copy `k` of `v` from copy `(k − δ) mod copies` of `u`, `⌈(δ − k) / copies⌉`
    /// iterations back (Lam, "Software Pipelining", PLDI 1988, section 4).
    ///
    /// # Errors
    /// When the result is larger than a graph may be.
    pub fn unrolled(&self, copies: u32) -> Result<LoopGraph, GraphError> {
        if copies <= 1 {
            return Ok(self.clone());
        }
        let count = self.operations().len();
        let copies_of = |op: &Operation, k: u32| Operation { name: format!("{}@{k}", op.name), ..op.clone() };
        let operations = (0..copies).flat_map(|k| self.operations().iter().map(move |op| copies_of(op, k))).collect();
        let place = |v: OpId, k: i64| OpId::new(k.unsigned_abs() as usize * count + v.index());
        let of_copy = |k: i64| {
            self.dependences().iter().map(move |d| {
                let n = i64::from(copies);
                let source = k - i64::from(d.distance);
                let back = saturate::<u32>(-source.div_euclid(n));
                Dependence {
                    from: place(d.from, source.rem_euclid(n)),
                    to: place(d.to, k),
                    distance: back,
                    ..d.clone()
                }
            })
        };
        let dependences = (0..i64::from(copies)).flat_map(of_copy).collect();
        LoopGraph::new(format!("{} × {copies}", self.name()), operations, dependences, self.reserved())
    }
}

impl Schedule {
    /// The same schedule of the loop unrolled `copies` times: interval, and where each operation goes. Copy `k`
    /// issues `k` intervals later. Rings may need more room than before, for each copy of a load has its own.
    pub fn unrolled(&self, copies: u32) -> (Cycles, Vec<Placement>) {
        let placed = |k: u32| {
            let shift = self.interval.0 * i64::from(k);
            self.placements.iter().map(move |p| Placement { cycle: Cycles(p.cycle.0 + shift), ..*p })
        };
        (Cycles(self.interval.0 * i64::from(copies)), (0..copies).flat_map(placed).collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::builtin;

    /// Edges as `(from, to, distance)`.
    fn edges(copies: u32) -> Vec<(String, String, u32)> {
        let toy = builtin::find("toy-attention").unwrap().graph.unrolled(copies).unwrap();
        let name = |v| toy.operation(v).name.clone();
        toy.dependences().iter().map(|d| (name(d.from), name(d.to), d.distance)).collect()
    }

    #[test]
    fn carried_values_pass_from_copy_to_copy() {
        let edge = |a: &str, b: &str, d| (a.to_owned(), b.to_owned(), d);
        assert_eq!(
            edges(2),
            [
                edge("S@0", "P@0", 0),
                edge("P@0", "O@0", 0),
                edge("O@1", "O@0", 1),
                edge("S@1", "P@1", 0),
                edge("P@1", "O@1", 0),
                edge("O@0", "O@1", 0),
            ]
        );
        assert_eq!(edges(1).len(), 3);
    }
}
