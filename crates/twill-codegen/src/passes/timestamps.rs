//! Timestamps: where an operation begins, ends and completes in its group's code: what a traced kernel records the time at.
//!
//! They are in every program, and are no synchronisation: nothing but an instrumented build looks at them.

use crate::ir::{Detail, IterationNumber, Moment, Stamp, Timestamp, Trace};
use crate::ir::{Node, Note, Op, visit};
use crate::ir::{Parameter, WarpProgram};
use crate::passes::loops::LoopBuilder;
use crate::passes::steps::program::Iteration;
use std::collections::{BTreeMap, BTreeSet};
use twill_graph::OpId;
use twill_triton::mlir::Type;

impl WarpProgram {
    /// Gives it a buffer for the time of its timestamps.
    pub(crate) fn record(&mut self, iterations: u32, detail: Detail) {
        let mut parameter = "trace_buffer".to_owned();
        while self.parameters.iter().any(|p| p.name == parameter) {
            parameter.push('_');
        }
        let kind = Type::Pointer { pointee: Box::new(Type::Integer(64)), address_space: 1 };
        self.parameters.push(Parameter::new(parameter.clone(), kind));
        for group in &mut self.groups {
            match detail {
                Detail::Operations => {}
                Detail::Segments => crate::passes::segments::join(&mut group.body),
                Detail::Iterations => keep_first(&mut group.body, &mut BTreeMap::new()),
            }
        }
        self.trace = Some(Trace { parameter, iterations, detail, timestamps: self.timestamps() });
    }

    /// The parameters of the source.
    pub fn source_parameters(&self) -> &[Parameter] {
        let own = usize::from(self.trace.is_some());
        self.parameters.get(..self.parameters.len().saturating_sub(own)).unwrap_or_default()
    }

    /// All timestamps, in the order of the groups' code.
    pub fn timestamps(&self) -> Vec<Timestamp> {
        let (mut timestamps, mut known) = (Vec::new(), BTreeSet::new());
        for group in &self.groups {
            visit(&group.body, &mut |op| {
                let Op::Timestamp(stamps) = op else { return };
                for stamp in stamps {
                    let timestamp = Timestamp::of(stamp, group.id);
                    if known.insert(timestamp.clone()) {
                        timestamps.push(timestamp);
                    }
                }
            });
        }
        timestamps
    }
}

/// Keeps of each loop the issue of the operation that comes first.
fn keep_first(nodes: &mut Vec<Node>, first: &mut BTreeMap<usize, String>) {
    for node in nodes.iter_mut() {
        match node {
            Node::Op(Op::Timestamp(stamps), _) => stamps.retain(|stamp| {
                let is_issue = stamp.moment == Moment::Issue;
                is_issue && *first.entry(stamp.at.index).or_insert_with(|| stamp.operation.clone()) == stamp.operation
            }),
            _ => node.blocks_mut().into_iter().for_each(|block| keep_first(block, first)),
        }
    }
    nodes.retain(|node| !matches!(node, Node::Op(Op::Timestamp(stamps), _) if stamps.is_empty()));
}

impl LoopBuilder<'_, '_> {
    /// Timestamps after a wait what it was for, unless threads do that.
    pub(crate) fn stamp_completed(&mut self, op: OpId, iteration: Iteration) {
        let graph = self.reader.lowering.loops[self.index].problem.graph();
        if !graph.operation(op).is_synchronous() {
            self.timestamp(op, Moment::Completed, iteration);
        }
    }

    /// Timestamps a moment where code goes now; timestamps next to each other are one.
    pub(crate) fn timestamp(&mut self, op: OpId, moment: Moment, iteration: Iteration) {
        let index = self.index;
        let operation = self.reader.lowering.loops[index].problem.graph().operation(op).name.clone();
        let stamp = Stamp { operation, moment, at: IterationNumber { index, iteration } };
        match self.reader.group.out.last_mut() {
            Some(Node::Op(Op::Timestamp(stamps), _)) => stamps.push(stamp),
            _ => self.reader.group.out.push(Node::Op(Op::Timestamp(vec![stamp]), Note::default())),
        }
    }
}
