//! Items held from an issue until the last of several uses, cycle by cycle: live values, handoff
//! buffers, consumer registers (docs/model.md, "Live values, folded", and the option *paper*).

use crate::model::Model;
use crate::term::{Term, and, not, or};
use std::collections::BTreeMap;
use twill_graph::{Dependence, Liveness, OpId};

/// It lasts at least until `t_op + distance · I + offset`, provided `when` holds.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) op: OpId,
    pub(crate) distance: i64,
    pub(crate) offset: i64,
    pub(crate) when: Term,
}

/// For every cell, a slot or under the paper's liveness a cycle of the straight-line program, the
/// terms that hold for each copy alive there.
pub(crate) type Cells = BTreeMap<i64, Vec<Term>>;

impl Model<'_> {
    /// The life of the result of `v`.
    pub(crate) fn live(&mut self, v: OpId) -> Cells {
        let end =
            |d: &Dependence| End { op: d.to, distance: d.distance.into(), offset: d.hold.0, when: Term::Known(true) };
        let ends: Vec<End> = self.problem.graph().uses(v).map(end).collect();
        self.held(&format!("live_{}", v.index()), v, &ends)
    }

    /// An item held in `[t_v, max over ends)`. Terms are named after `name`.
    pub(crate) fn held(&mut self, name: &str, v: OpId, ends: &[End]) -> Cells {
        let folded = self.problem.options().liveness == Liveness::Folded;
        let mut cells = Cells::new();
        for copy in 0..if folded { 1 } else { self.stages } {
            let counts = |e: &&End| folded || copy + e.distance < self.stages;
            let counted: Vec<&End> = ends.iter().filter(counts).collect();
            // The last copy of a value with a carried use lives to the end of the program.
            let carried = !folded && copy == self.stages - 1;
            let to_end = or(ends.iter().filter(|e| carried && e.distance > 0).map(|e| e.when.clone()));
            let reach = |e: &&End| self.latest(e.op) + e.distance * self.interval + e.offset;
            let mut stop = counted.iter().map(reach).max().unwrap_or(0);
            if !folded {
                let program = (self.stages - 1) * self.interval + self.horizon() - copy * self.interval;
                stop = if to_end.is(false) { stop.min(program) } else { program };
            }
            for cycle in 0..stop {
                let lasts = |e: &&End| {
                    let over = self.issued(e.op, cycle - e.distance * self.interval - e.offset);
                    and([e.when.clone(), not(&over)])
                };
                let lasts = or(counted.iter().map(lasts).chain([to_end.clone()]));
                let at = cycle + copy * self.interval;
                let inside = if folded { Term::Known(true) } else { self.inside(at) };
                let term = and([self.issued(v, cycle), lasts, inside]);
                let term_name = if folded { format!("{name}_{cycle}") } else { format!("{name}_{copy}_{cycle}") };
                let term = self.script.define(term_name, &term);
                if !term.is(false) {
                    cells.entry(if folded { at % self.interval } else { at }).or_default().push(term);
                }
            }
        }
        cells
    }

    /// Returns whether a cycle lies before the end of the straight-line program, `(N − 1) · I + L`.
    fn inside(&self, cycle: i64) -> Term {
        let rest = cycle - (self.stages - 1) * self.interval;
        if rest < 0 { Term::Known(true) } else { Term::text(format!("inside_{rest}")) }
    }

    /// Defines what [`Model::inside`] names: some operation ends after that cycle of its iteration.
    pub(crate) fn define_inside(&mut self) {
        let graph = self.problem.graph();
        for rest in 0..self.horizon() {
            let late = graph.op_ids().map(|v| not(&self.issued(v, rest - graph.operation(v).span().0)));
            let text = match or(late) {
                Term::Known(value) => value.to_string(),
                Term::Text(text) => text.to_string(),
            };
            self.script.command(&format!("(define-fun inside_{rest} () Bool {text})"));
        }
    }
}
