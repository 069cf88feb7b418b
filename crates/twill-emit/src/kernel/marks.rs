//! Where an operation begins, ends and lands in its group's code: what a traced kernel records the time at.
//!
//! Marks are in every program, and are no synchronisation: nothing but an instrumented build looks at them.

use super::action::{Action, Node, Note, visit};
use super::expression::IterationNumber;
use super::loops::Adder;
use super::program::{KernelProgram, Parameter};
use crate::program::Iteration;
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
    /// A wait behind an asynchronous operation is over: it landed then, or before.
    Landed,
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
pub struct Mark {
    /// The loop.
    pub index: usize,
    /// The operation's name in the loop's graph.
    pub operation: String,
    /// The group that sees it.
    pub group: GroupId,
    /// Which moment.
    pub moment: Moment,
}

/// How closely the time is looked at. Nothing is moved over a mark, so that marks between operations which a compiler would have
/// mixed make them slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Each operation is between marks of its own.
    Operations,
    /// Operations that threads do one after the other, with no wait in between, are between the same two marks.
    Runs,
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
    /// The marks, in the order of their numbers.
    pub marks: Vec<Mark>,
}

impl Trace {
    /// Bytes of the buffer.
    pub fn bytes(&self) -> u64 {
        8 * u64::from(self.iterations) * self.marks.len() as u64
    }
}

impl KernelProgram {
    /// Gives it a buffer for the time of its marks.
    pub(super) fn record(&mut self, iterations: u32, detail: Detail) {
        let mut parameter = "trace_buffer".to_owned();
        while self.parameters.iter().any(|p| p.name == parameter) {
            parameter.push('_');
        }
        let kind = Type::Pointer { pointee: Box::new(Type::Integer(64)), address_space: 1 };
        self.parameters.push(Parameter { name: parameter.clone(), kind, divisible_by_16: false, at_least: None });
        for group in &mut self.groups {
            match detail {
                Detail::Operations => {}
                Detail::Runs => super::runs::join(&mut group.body),
                Detail::Iterations => keep_first(&mut group.body, &mut BTreeMap::new()),
            }
        }
        self.trace = Some(Trace { parameter, iterations, detail, marks: self.marks() });
    }

    /// The parameters of the source.
    pub fn source_parameters(&self) -> &[Parameter] {
        let own = usize::from(self.trace.is_some());
        self.parameters.get(..self.parameters.len().saturating_sub(own)).unwrap_or_default()
    }

    /// All marks, in the order of the groups' code.
    pub fn marks(&self) -> Vec<Mark> {
        let (mut marks, mut known) = (Vec::new(), BTreeSet::new());
        for group in &self.groups {
            visit(&group.body, &mut |action| {
                let Action::Mark(stamps) = action else { return };
                for stamp in stamps {
                    let mark = Mark::of(stamp, group.id);
                    if known.insert(mark.clone()) {
                        marks.push(mark);
                    }
                }
            });
        }
        marks
    }
}

/// Keeps of each loop the issue of the operation that comes first.
fn keep_first(nodes: &mut Vec<Node>, first: &mut BTreeMap<usize, String>) {
    for node in nodes.iter_mut() {
        match node {
            Node::Do(Action::Mark(stamps), _) => stamps.retain(|stamp| {
                let is_issue = stamp.moment == Moment::Issue;
                is_issue && *first.entry(stamp.at.index).or_insert_with(|| stamp.operation.clone()) == stamp.operation
            }),
            Node::Do(..) => {}
            Node::Loop { body, .. } => keep_first(body, first),
            Node::When { then, exactly, .. } => {
                keep_first(then, first);
                exactly.iter_mut().for_each(|(_, nodes)| keep_first(nodes, first));
            }
        }
    }
    nodes.retain(|node| !matches!(node, Node::Do(Action::Mark(stamps), _) if stamps.is_empty()));
}

impl Mark {
    /// The mark that a stamp in a group's code belongs to.
    pub fn of(stamp: &Stamp, group: GroupId) -> Mark {
        Mark { index: stamp.at.index, operation: stamp.operation.clone(), group, moment: stamp.moment }
    }
}

impl Adder<'_, '_> {
    /// Marks behind a wait what it was for, unless threads do that.
    pub(super) fn mark_landed(&mut self, op: OpId, iteration: Iteration) {
        let graph = self.reader.lowering.loops[self.index].problem.graph();
        if !graph.operation(op).is_synchronous() {
            self.mark(op, Moment::Landed, iteration);
        }
    }

    /// Marks a moment where code goes now; marks next to each other are one.
    pub(super) fn mark(&mut self, op: OpId, moment: Moment, iteration: Iteration) {
        let index = self.index;
        let operation = self.reader.lowering.loops[index].problem.graph().operation(op).name.clone();
        let stamp = Stamp { operation, moment, at: IterationNumber { index, iteration } };
        match self.reader.group.out.last_mut() {
            Some(Node::Do(Action::Mark(stamps), _)) => stamps.push(stamp),
            _ => self.reader.group.out.push(Node::Do(Action::Mark(vec![stamp]), Note::default())),
        }
    }
}
