//! A group's loop: what comes before the steady state, its body, what comes after, and the same for few trips.

use super::{LoopBuilder, buffers};
use crate::builder::group::{GroupBuilder, shifted};
use crate::error::Error;
use crate::ir::{Expression, FewTrips, Node, Note, Op, VariableId, any, visit};
use crate::passes::steps::program::{GroupSteps, Iteration};
use std::collections::{BTreeMap, BTreeSet};
use twill_graph::OpId;

impl LoopBuilder<'_, '_> {
    pub(super) fn nodes(&mut self, warp: &GroupSteps) -> Result<Vec<Node>, Error> {
        let out = std::mem::take(&mut self.reader.group.out);
        // All branches go on with the same slots and phases.
        for buffer in buffers(warp) {
            self.begin_ring(buffer);
        }
        let nodes = self.pipeline(warp)?;
        self.reader.group.out = out;
        Ok(nodes)
    }

    /// A pipeline, and what is done for fewer trips than it has stages.
    fn pipeline(&mut self, warp: &GroupSteps) -> Result<Vec<Node>, Error> {
        let first = i64::from(warp.first);
        let before = self.state();
        self.blocks(&warp.prologue)?;
        self.begin_recurrences(warp)?;
        self.renumber(|it| match it {
            Iteration::Absolute(n) => Iteration::Current(n - first),
            other => other,
        });
        let begun = self.reader.group.tracks[self.index].iter().filter(|(_, track)| track.latest.is_some());
        let mut begun: Vec<OpId> = begun.map(|(op, _)| *op).collect();
        begun.sort();
        begun.into_iter().for_each(|op| self.define_sources(op));
        let mut nodes = std::mem::take(&mut self.reader.group.out);
        let mut prepared = self.prepared.clone();
        let entry = self.state();
        let mut body = self.steady(warp)?;
        // An MMA that every iteration waits for is waited for before the first.
        let is_over = |op: OpId, group: &GroupBuilder| !group.in_flight.iter().any(|f| f.op == op);
        if let Some(last) = entry.in_flight.iter().rposition(|f| is_over(f.op, self.reader.group)) {
            self.restore(entry);
            self.wgmma_wait_up_to(last);
            nodes.append(&mut self.reader.group.out);
            prepared = self.prepared.clone();
            body = self.steady(warp)?;
        }
        // Each iteration prepares operands for the next; those of the first are what values begin with.
        let mut first_operands: Vec<_> = self.prepared.iter().filter(|(key, _)| !prepared.contains_key(key)).collect();
        first_operands.sort();
        nodes.extend(first_operands.into_iter().map(|((from, _), to)| {
            let value = self.reader.group.read(*from);
            Node::Op(Op::Let { to: *to, value }, Note::default())
        }));
        // What MMAs of the iteration before read, nobody reads in the first; but it must be something.
        let group = &self.reader.group;
        let read: BTreeSet<VariableId> = group.in_flight.iter().flat_map(|f| f.operands.iter().copied()).collect();
        let first: Vec<VariableId> = read.into_iter().filter(|v| makes(&body, *v) && !makes(&nodes, *v)).collect();
        nodes.extend(first.into_iter().map(|to| {
            let variable = &group.variables[to.index()];
            let value = Expression::zeros(&variable.shape, &variable.element);
            Node::Op(Op::Let { to, value }, Note::default())
        }));
        // Results are in flight before an iteration where they are after it; what an iteration makes anew is nothing before.
        let before_it = in_flight(&BTreeMap::new(), &nodes);
        // What is renamed from iteration to iteration is in flight some iterations later.
        let mut after = in_flight(&before_it, &body);
        for _ in 0..after.len() {
            let later = in_flight(&after, &body);
            if later == after {
                break;
            }
            after = later;
        }
        for (to, is) in after {
            let is_waited_for = self.reader.group.in_flight.iter().any(|f| f.result == to);
            let is_made_outside = self.reader.group.sections.iter().any(|section| makes(section, to));
            match (before_it.get(&to), is) {
                // It has begun further out, where no MMA of it is in flight.
                (None, true) if is_waited_for || is_made_outside => {
                    nodes.push(Node::Op(Op::WgmmaInit(to), Note::default()))
                }
                (Some(false), true) => nodes.push(Node::Op(Op::WgmmaInit(to), Note::default())),
                // Who is renamed first in every iteration is read by nobody before.
                (Some(true), false) if is_made_first(&body, to) && !is_waited_for => {
                    let variable = &self.reader.group.variables[to.index()];
                    let value = Expression::zeros(&variable.shape, &variable.element);
                    nodes.push(Node::Op(Op::Let { to, value }, Note::default()));
                }
                _ => {}
            }
        }
        nodes.push(Node::PipelinedLoop { index: self.index, first: warp.first, body });
        self.renumber(|it| match it {
            Iteration::Current(n) => Iteration::End(n),
            other => other,
        });
        self.blocks(&warp.epilogue)?;
        self.end_recurrences(Iteration::End(0))?;
        self.wgmma_wait_all();
        nodes.append(&mut self.reader.group.out);
        if warp.first > 0 {
            let fewer = if let Some(shorter) = &warp.shorter {
                self.restore(before);
                FewTrips::Any(self.pipeline(shorter)?)
            } else {
                let mut each = Vec::new();
                for trips in 1..warp.first {
                    self.restore(before.clone());
                    each.push((trips, self.few_trips(warp, i64::from(trips))?));
                }
                FewTrips::Each(each)
            };
            nodes = vec![Node::TripSwitch { index: self.index, at_least: warp.first, then: nodes, fewer }];
        }
        Ok(nodes)
    }

    /// What is done for exactly N trips, fewer than there are stages.
    fn few_trips(&mut self, warp: &GroupSteps, trips: i64) -> Result<Vec<Node>, Error> {
        self.trips = Some(trips);
        self.blocks(&warp.prologue)?;
        self.blocks(&warp.epilogue)?;
        self.end_recurrences(Iteration::Absolute(trips))?;
        self.wgmma_wait_all();
        self.trips = None;
        Ok(std::mem::take(&mut self.reader.group.out))
    }

    /// The body of a loop: what an iteration does that finds everything as the one before has left it.
    fn steady(&mut self, warp: &GroupSteps) -> Result<Vec<Node>, Error> {
        for _ in 0..2 {
            self.reader.group.out.clear();
            let begun = self.newest();
            self.steps(&warp.steady)?;
            if self.reader.lowering.options.shares.completed_iterations {
                self.wgmma_wait_all();
            }
            for (number, latest) in begun {
                self.reader.advance_to(number, shifted(latest, 1))?;
            }
            self.renumber(|it| shifted(it, -1));
        }
        Ok(std::mem::take(&mut self.reader.group.out))
    }
}

/// By variable, whether it is the result of an MMA that may run after these operations, given what was so before.
fn in_flight(before: &BTreeMap<VariableId, bool>, nodes: &[Node]) -> BTreeMap<VariableId, bool> {
    let mut states = before.clone();
    visit(nodes, &mut |op| match op {
        Op::Wgmma { to, .. } | Op::WgmmaInit(to) => {
            states.insert(*to, true);
        }
        Op::WgmmaWait { completed, in_flight, .. } => {
            states.extend(completed.iter().map(|v| (*v, false)));
            states.extend(in_flight.iter().map(|v| (*v, true)));
        }
        Op::Let { to, .. } => {
            states.insert(*to, false);
        }
        Op::Copy { to, from } => {
            let is = states.get(from).copied().unwrap_or(false);
            states.insert(*to, is);
        }
        _ => {}
    });
    states
}

/// Whether a name is given to another value before anything is computed.
fn is_made_first(nodes: &[Node], variable: VariableId) -> bool {
    let made = |node: &Node| match node {
        Node::Op(Op::Copy { to, .. }, _) if *to == variable => Some(true),
        Node::Op(Op::Copy { from, .. }, _) => (*from == variable).then_some(false),
        Node::Op(
            Op::MbarrierWait { .. }
            | Op::MbarrierArrive { .. }
            | Op::CopyCursor { .. }
            | Op::AdvanceCursor(_)
            | Op::NamedBarrierSync(_)
            | Op::NamedBarrierArrive(_)
            | Op::FenceProxyAsync
            | Op::Timestamp(_),
            _,
        ) => None,
        _ => Some(false),
    };
    nodes.iter().find_map(made) == Some(true)
}

/// Whether any of these operations makes a variable, or renames another to it.
fn makes(nodes: &[Node], variable: VariableId) -> bool {
    any(nodes, |op| matches!(op, Op::Let { to, .. } | Op::Copy { to, .. } if *to == variable))
}
