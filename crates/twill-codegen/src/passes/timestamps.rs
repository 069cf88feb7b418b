//! Where an operation begins, ends and lands in its group's code: what a traced kernel records the time at.
//!
//! Marks are in every program, and are no synchronisation: nothing but an instrumented build looks at them.

use crate::ir::IterationNumber;
use crate::ir::{Node, Note, Op, visit};
use crate::ir::{Parameter, WarpProgram};
use crate::passes::loops::Adder;
use crate::passes::steps::program::Iteration;
use std::collections::{BTreeMap, BTreeSet};
use twill_graph::{GroupId, OpId};
use twill_triton::mlir::Type;

/// What a mark is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// The group is about to start the operation.
    Issue,
    /// The group has done it, of an operation that its own threads do.
    End,
    /// A wait behind an asynchronous operation is over: it completed then, or before.
    Completed,
}

/// A moment of an operation of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The operation's name in the loop's graph.
    pub operation: String,
    /// Which moment.
    pub moment: Moment,
    /// The loop, and the operation's iteration of it.
    pub at: IterationNumber,
}

/// A mark of a kernel: the same moment of an operation in all iterations, seen by one group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// The loop.
    pub index: usize,
    /// The operation's name in the loop's graph.
    pub operation: String,
    /// The group that sees it.
    pub group: GroupId,
    /// Which moment.
    pub moment: Moment,
}

/// How closely the time is looked at. Nothing is moved over a mark, so that timestamps between operations which a compiler would have
/// mixed make them slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Each operation is between timestamps of its own.
    Operations,
    /// Operations that threads do one after the other, with no wait in between, are between the same two timestamps.
    Segments,
    /// Each group's first operation of an iteration, when it begins: how long iterations take, and little else.
    Iterations,
}

/// What a traced kernel records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The parameter, a pointer behind those of the source: to a row of 64-bit numbers for each iteration, which has one for
    /// each mark.
    pub parameter: String,
    /// Rows: the last iterations of the first tile, iteration `i` in row `i` modulo their number.
    pub iterations: u32,
    /// How closely.
    pub detail: Detail,
    /// The timestamps, in the order of their numbers.
    pub timestamps: Vec<Timestamp>,
}

impl Trace {
    /// Bytes of the buffer.
    pub fn bytes(&self) -> u64 {
        8 * u64::from(self.iterations) * self.timestamps.len() as u64
    }
}

impl WarpProgram {
    /// Gives it a buffer for the time of its timestamps.
    pub(crate) fn record(&mut self, iterations: u32, detail: Detail) {
        let mut parameter = "trace_buffer".to_owned();
        while self.parameters.iter().any(|p| p.name == parameter) {
            parameter.push('_');
        }
        let kind = Type::Pointer { pointee: Box::new(Type::Integer(64)), address_space: 1 };
        self.parameters.push(Parameter { name: parameter.clone(), kind, divisible_by_16: false, at_least: None });
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
            visit(&group.body, &mut |action| {
                let Op::Timestamp(stamps) = action else { return };
                for stamp in stamps {
                    let mark = Timestamp::of(stamp, group.id);
                    if known.insert(mark.clone()) {
                        timestamps.push(mark);
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

impl Timestamp {
    /// The mark that a stamp in a group's code belongs to.
    pub fn of(stamp: &Stamp, group: GroupId) -> Timestamp {
        Timestamp { index: stamp.at.index, operation: stamp.operation.clone(), group, moment: stamp.moment }
    }
}

impl Adder<'_, '_> {
    /// Marks behind a wait what it was for, unless threads do that.
    pub(crate) fn stamp_completed(&mut self, op: OpId, iteration: Iteration) {
        let graph = self.reader.lowering.loops[self.index].problem.graph();
        if !graph.operation(op).is_synchronous() {
            self.mark(op, Moment::Completed, iteration);
        }
    }

    /// Marks a moment where code goes now; timestamps next to each other are one.
    pub(crate) fn mark(&mut self, op: OpId, moment: Moment, iteration: Iteration) {
        let index = self.index;
        let operation = self.reader.lowering.loops[index].problem.graph().operation(op).name.clone();
        let stamp = Stamp { operation, moment, at: IterationNumber { index, iteration } };
        match self.reader.group.out.last_mut() {
            Some(Node::Op(Op::Timestamp(stamps), _)) => stamps.push(stamp),
            _ => self.reader.group.out.push(Node::Op(Op::Timestamp(vec![stamp]), Note::default())),
        }
    }
}
