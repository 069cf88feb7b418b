//! What a warp group does, one thing after another.

use super::{BarrierId, CursorId, NamedBarrierId, Opaque};
use crate::ir::Stamp;
use crate::ir::{DescriptorId, Operand, Slot, Tcgen05Mma, VariableId};
use crate::ir::{Expression, ExpressionKind};
use twill_graph::LoopOperation;

/// A part of a group's program.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "there are few of them, and nearly all are the large one")]
pub enum Node {
    /// One operation.
    Op(Op, Note),
    /// The steady state of a pipelined loop: `for i in first..trips`.
    PipelinedLoop {
        /// Which of the program's loops.
        index: usize,
        /// Its first iteration.
        first: u32,
        /// The body.
        body: Vec<Node>,
    },
    /// A branch on the trip count of a pipelined loop.
    TripSwitch {
        /// Which of the program's loops.
        index: usize,
        /// At least N trips.
        at_least: u32,
        /// The body.
        then: Vec<Node>,
        /// For fewer.
        fewer: FewTrips,
    },
    /// `for variable in lower..upper` in steps: any other loop (`scf.for`). What it carries are variables.
    For {
        /// The scalar that counts.
        variable: VariableId,
        /// The first number.
        lower: Expression,
        /// The number at which it ends.
        upper: Expression,
        /// What it goes on by, above 0.
        step: Expression,
        /// The body.
        body: Vec<Node>,
    },
    /// `scf.while`: before every iteration `before` runs, and the loop ends where the condition does not hold then.
    While {
        /// What the condition needs.
        before: Vec<Node>,
        /// A scalar of one bit, the same for all threads.
        condition: Expression,
        /// The body.
        body: Vec<Node>,
    },
    /// `scf.if`.
    If {
        /// A scalar of one bit, the same for all threads.
        condition: Expression,
        /// Where it holds.
        then: Vec<Node>,
        /// Where it does not.
        otherwise: Vec<Node>,
    },
    /// Ends the group's work on its tile (`tt.return` in a branch).
    Return,
}

/// What a group does where a loop has fewer trips than its pipeline has stages.
#[derive(Clone, Debug, PartialEq)]
pub enum FewTrips {
    /// Code of its own for exactly N trips; nothing for other numbers.
    Each(Vec<(u32, Vec<Node>)>),
    /// The same code for any number, as a shorter pipeline.
    Any(Vec<Node>),
}

impl FewTrips {
    /// What is done for so many trips.
    pub fn of(&self, trips: u64) -> &[Node] {
        match self {
            FewTrips::Each(each) => {
                each.iter().find(|(n, _)| u64::from(*n) == trips).map_or(&[], |(_, nodes)| nodes.as_slice())
            }
            FewTrips::Any(nodes) => nodes,
        }
    }
}

impl Node {
    /// What is done for so many trips by a branch on them; none of another node.
    pub fn of_trips(&self, trips: u64) -> Option<&[Node]> {
        match self {
            Node::TripSwitch { at_least, then, .. } if trips >= u64::from(*at_least) => Some(then),
            Node::TripSwitch { fewer, .. } => Some(fewer.of(trips)),
            _ => None,
        }
    }

    /// The lists of nodes within it, in the order of the text.
    pub fn blocks(&self) -> Vec<&Vec<Node>> {
        match self {
            Node::Op(..) | Node::Return => Vec::new(),
            Node::PipelinedLoop { body, .. } | Node::For { body, .. } => vec![body],
            Node::TripSwitch { then, fewer: FewTrips::Each(each), .. } => {
                std::iter::once(then).chain(each.iter().map(|(_, nodes)| nodes)).collect()
            }
            Node::TripSwitch { then, fewer: FewTrips::Any(nodes), .. } => vec![then, nodes],
            Node::While { before, body, .. } => vec![before, body],
            Node::If { then, otherwise, .. } => vec![then, otherwise],
        }
    }

    /// The same, to be changed.
    pub fn blocks_mut(&mut self) -> Vec<&mut Vec<Node>> {
        match self {
            Node::Op(..) | Node::Return => Vec::new(),
            Node::PipelinedLoop { body, .. } | Node::For { body, .. } => vec![body],
            Node::TripSwitch { then, fewer: FewTrips::Each(each), .. } => {
                std::iter::once(then).chain(each.iter_mut().map(|(_, nodes)| nodes)).collect()
            }
            Node::TripSwitch { then, fewer: FewTrips::Any(nodes), .. } => vec![then, nodes],
            Node::While { before, body, .. } => vec![before, body],
            Node::If { then, otherwise, .. } => vec![then, otherwise],
        }
    }

    /// What it computes itself, apart from its operation: bounds and conditions.
    pub fn expressions(&self) -> Vec<&Expression> {
        match self {
            Node::For { lower, upper, step, .. } => vec![lower, upper, step],
            Node::While { condition, .. } | Node::If { condition, .. } => vec![condition],
            _ => Vec::new(),
        }
    }
}

/// What is said about an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Cycle in its iteration, and stage, of the operation.
    pub scheduled: Option<(i64, u32)>,
    /// The line of the source.
    pub line: Option<u32>,
    /// The operation of a loop that it runs.
    pub operation: Option<LoopOperation>,
    /// In words.
    pub text: String,
}

/// One thing that a group does.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Computes.
    Let {
        /// What it is called.
        to: VariableId,
        /// What it is.
        value: Expression,
    },
    /// Gives a value another name.
    Copy {
        /// The new name.
        to: VariableId,
        /// The old one.
        from: VariableId,
    },
    /// Starts an MMA.
    Wgmma {
        /// The result.
        to: VariableId,
        /// Rows × depth.
        left: Operand,
        /// Depth × columns.
        right: Operand,
        /// What it adds to; none for zero.
        accumulator: Option<VariableId>,
    },
    /// Starts an MMA whose result stays in tensor memory.
    Tcgen05Mma(Box<Tcgen05Mma>),
    /// Barriers that are signalled when all MMAs so far are done.
    Tcgen05Commit(Vec<(BarrierId, CursorId)>),
    /// Makes a value one that an MMA may be adding to.
    WgmmaInit(VariableId),
    /// Waits for MMAs.
    WgmmaWait {
        /// At most this many may still run.
        pending: u32,
        /// Results that are there afterwards, and operands that are free.
        completed: Vec<VariableId>,
        /// Results that go on changing.
        in_flight: Vec<VariableId>,
    },
    /// Starts a copy from global to shared memory through a descriptor.
    TmaLoad {
        /// The descriptor.
        descriptor: DescriptorId,
        /// Of the block's first element.
        coordinates: Vec<Expression>,
        /// Where to.
        to: Slot,
        /// Signalled when it is there.
        full: BarrierId,
    },
    /// Starts a copy from global to shared memory through pointers.
    CpAsync {
        /// The pointers.
        pointers: Expression,
        /// Which to copy; elsewhere zeros are put.
        mask: Option<Expression>,
        /// Neighbours along the last dimension that a thread copies at once.
        elements: u64,
        /// What copies a tile that is to be copied as a whole in one instruction.
        whole: Option<Box<WholeCopy>>,
        /// Where to.
        to: Slot,
        /// Signalled when it is there; none for a copy of the group of copies that is committed next.
        full: Option<BarrierId>,
    },
    /// Ends a group of copies (PTX, `cp.async.commit_group`).
    CpAsyncCommit,
    /// Waits until at most this many groups of copies are under way (PTX, `cp.async.wait_group`).
    CpAsyncWait(u32),
    /// Writes a tile to shared or tensor memory.
    LocalStore {
        /// The tile.
        value: Expression,
        /// Where to.
        to: Slot,
    },
    /// Makes what threads wrote to shared memory visible to asynchronous units.
    FenceProxyAsync,
    /// A barrier of all threads of the group.
    GroupSync,
    /// Starts a copy from shared to global memory through a descriptor.
    TmaStore {
        /// The descriptor.
        descriptor: DescriptorId,
        /// Of the block's first element.
        coordinates: Vec<Expression>,
        /// Where from.
        from: Slot,
        /// How it is combined with what is there; `None` overwrites it.
        reduce: Option<AtomicOp>,
    },
    /// Waits until at most N of the group's stores still read shared memory.
    TmaStoreWait(u32),
    /// Writes through pointers.
    GlobalStore {
        /// The pointers.
        pointers: Expression,
        /// What.
        value: Expression,
        /// Where.
        mask: Option<Expression>,
    },
    /// Adds to memory through pointers, atomically.
    AtomicAdd {
        /// The pointers.
        pointers: Expression,
        /// What.
        value: Expression,
        /// Where.
        mask: Option<Expression>,
    },
    /// Waits for a phase.
    MbarrierWait {
        /// The barriers.
        barrier: BarrierId,
        /// Slot and phase.
        at: CursorId,
        /// For the phase before.
        previous: bool,
    },
    /// Arrives.
    MbarrierArrive {
        /// The barriers.
        barrier: BarrierId,
        /// The slot.
        at: CursorId,
    },
    /// The next slot.
    AdvanceCursor(CursorId),
    /// One cursor stands where another does.
    CopyCursor {
        /// The one that moves.
        to: CursorId,
        /// Where it moves to.
        from: CursorId,
    },
    /// Comes to a named barrier and waits.
    NamedBarrierSync(NamedBarrierId),
    /// Comes to a named barrier and goes on.
    NamedBarrierArrive(NamedBarrierId),
    /// An operation that no pass has a rule for: threads execute it as it is, and wait for it.
    Opaque {
        /// Which operation.
        operation: Box<Opaque>,
        /// What it reads.
        operands: Vec<Expression>,
        /// What it makes.
        results: Vec<VariableId>,
    },
    /// Moments of operations, which a traced kernel records the time of.
    Timestamp(Vec<Stamp>),
}

/// A copy through a descriptor that does the same as one through pointers where a condition holds.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeCopy {
    /// The condition: a number that is not 0, the same for all threads.
    pub condition: Expression,
    /// The descriptor.
    pub descriptor: DescriptorId,
    /// Of the block's first element.
    pub coordinates: Vec<Expression>,
}

impl WholeCopy {
    /// What it computes.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        std::iter::once(&self.condition).chain(&self.coordinates)
    }
}

/// How an atomic operation combines a value with what memory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    /// Their sum.
    Add,
}

impl Op {
    /// What it computes.
    pub fn expressions(&self) -> Vec<&Expression> {
        match self {
            Op::Let { value, .. } | Op::LocalStore { value, .. } => vec![value],
            Op::TmaLoad { coordinates, .. } | Op::TmaStore { coordinates, .. } => coordinates.iter().collect(),
            Op::CpAsync { pointers, mask, whole, .. } => {
                let whole = whole.iter().flat_map(|whole| whole.expressions());
                std::iter::once(pointers).chain(mask).chain(whole).collect()
            }
            Op::GlobalStore { pointers, value, mask } | Op::AtomicAdd { pointers, value, mask } => {
                [pointers, value].into_iter().chain(mask).collect()
            }
            Op::Opaque { operands, .. } => operands.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The tiles in shared memory that it reads.
    pub fn reads(&self) -> Vec<Slot> {
        let mut slots = Vec::new();
        let mut within = |expression: &Expression| {
            expression.walk(&mut |e| {
                if let ExpressionKind::FromShared(slot) = &e.kind {
                    slots.push(slot.clone());
                }
            });
        };
        self.expressions().into_iter().for_each(&mut within);
        match self {
            Op::TmaStore { from, .. } => slots.push(from.clone()),
            Op::Wgmma { left, right, .. } => {
                slots.extend([left, right].into_iter().filter_map(|o| match o {
                    Operand::Shared(slot) => Some(slot.clone()),
                    Operand::Registers(_) => None,
                }));
            }
            _ => {}
        }
        slots
    }
}

/// Changes the lists of nodes within nodes: bodies of loops, and branches.
pub(crate) fn within(nodes: &mut [Node], mut change: impl FnMut(&mut Vec<Node>)) {
    nodes.iter_mut().flat_map(Node::blocks_mut).for_each(&mut change);
}

/// Visits all operations of a program.
pub fn visit<'n>(nodes: &'n [Node], visitor: &mut impl FnMut(&'n Op)) {
    for node in nodes {
        match node {
            Node::Op(op, _) => visitor(op),
            _ => node.blocks().into_iter().for_each(|block| visit(block, visitor)),
        }
    }
}

/// Whether any operation of a program is one of these.
pub fn any(nodes: &[Node], is: impl Fn(&Op) -> bool) -> bool {
    let mut found = false;
    visit(nodes, &mut |op| found |= is(op));
    found
}
