//! A warp group's program in the making: its names, what it holds, and where code goes.

use crate::builder::enclosing::{Around, Scope};
use crate::builder::recurrences::{Recurrence, RecurrenceKey};
use crate::ir::Region;
use crate::ir::names;
use crate::ir::{BufferId, CursorId};
use crate::ir::{Cursor, Form, Variable, VariableId};
use crate::ir::{Expression, ExpressionKind, IterationNumber};
use crate::ir::{Node, Note, Op};
use crate::passes::steps::program::Iteration;
use std::collections::HashMap;
use twill_graph::{GroupId, OpId};
use twill_triton::mlir::{Type, ValueId};

/// A value outside loops, and the part of it that is wanted.
pub(crate) type OuterKey = (ValueId, Region, Option<u32>);

/// What is known about the variables that an operation's results go through.
#[derive(Clone, Debug)]
pub(crate) struct Track {
    /// The newest value, then older ones.
    pub variables: Vec<VariableId>,
    /// Of which iteration the newest is.
    pub latest: Option<Iteration>,
    /// How many of the variables hold something wherever code goes on from here.
    pub defined: usize,
}

/// The slots of a ring that a group stands at.
#[derive(Clone, Debug)]
pub(crate) struct SlotTrack {
    /// The next slot.
    pub next: CursorId,
    /// The newest slot in use, then older ones.
    pub at: Vec<CursorId>,
    /// Of which iteration the newest is.
    pub latest: Option<Iteration>,
}

/// An MMA under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InFlightMma {
    pub op: OpId,
    pub iteration: Iteration,
    pub result: VariableId,
    /// The result of another MMA that it adds to in place.
    pub accumulator: Option<VariableId>,
    /// Operands in registers.
    pub operands: Vec<VariableId>,
    /// Commit groups.
    pub weight: u32,
}

/// Elements of a tile that takes at most 8 registers of each of 128 threads.
const SMALL: u64 = 1024;

/// A group's program in the making.
#[derive(Clone)]
pub(crate) struct GroupBuilder {
    pub id: GroupId,
    pub variables: Vec<Variable>,
    pub cursors: Vec<Cursor>,
    taken: HashMap<String, u32>,
    /// Code before the first loop, between loops and after the last.
    pub sections: Vec<Vec<Node>>,
    /// The section in which a variable is defined.
    defined: HashMap<VariableId, usize>,
    /// What variables of expressions outside loops are.
    bound: HashMap<VariableId, Expression>,
    pub outer: HashMap<OuterKey, VariableId>,
    /// Per loop.
    pub tracks: Vec<HashMap<OpId, Track>>,
    pub slots: HashMap<BufferId, SlotTrack>,
    pub in_flight: Vec<InFlightMma>,
    /// Stores under way.
    pub stores: Vec<(OpId, Iteration)>,
    pub out: Vec<Node>,
    /// Loop-invariant tiles that the group reads, with their cursors, in the order of the first read.
    pub invariant_tiles: Vec<(usize, CursorId)>,
    /// Results of loops that were in tensor memory or another group's registers: loop, operation, part.
    pub results: HashMap<(usize, OpId, Region), VariableId>,
    /// By loop, the phase of its results in tensor memory.
    pub done: HashMap<usize, CursorId>,
    /// Loops before which the group has waited until results of the tile before are read.
    pub drained: Vec<usize>,
    /// Stores after the loops read buffers that the loops write.
    pub stages_in_place: bool,
    /// Code of after the loops goes where it is needed.
    pub late: bool,
    /// What follows the loops is being made.
    pub ending: bool,
    pub note: Note,
    /// Left operands that are held in registers through the loops.
    pub held: HashMap<OuterKey, VariableId>,
    /// Left operands that are computed before the loops, for results with so many columns.
    pub left_operands: HashMap<(OuterKey, u64), VariableId>,
    /// Operands that are computed before the loops and stored for them.
    pub stored_operands: HashMap<OuterKey, BufferId>,
    /// Other names of operands that MMAs still read, the same in every iteration.
    pub in_use: HashMap<VariableId, Vec<VariableId>>,
    /// Storage of tiles of before the loops that results were put in.
    pub staged: Vec<BufferId>,
    /// By loop, its trip count.
    pub trips: Vec<Option<VariableId>>,
    /// Carried values that the group computes in every iteration.
    pub recurrences: Vec<Recurrence>,
    /// Those that it found to need while a loop was made; `None` while none is.
    pub missing: Option<Vec<RecurrenceKey>>,
    /// By enclosing loop, the outermost first.
    pub around: Vec<Around>,
    /// Where code goes now.
    pub scope: Scope,
}

impl GroupBuilder {
    pub fn new(id: GroupId, loops: usize) -> GroupBuilder {
        GroupBuilder {
            id,
            variables: Vec::new(),
            cursors: Vec::new(),
            taken: HashMap::new(),
            sections: vec![Vec::new(); loops + 1],
            defined: HashMap::new(),
            bound: HashMap::new(),
            outer: HashMap::new(),
            tracks: vec![HashMap::new(); loops],
            slots: HashMap::new(),
            in_flight: Vec::new(),
            stores: Vec::new(),
            out: Vec::new(),
            invariant_tiles: Vec::new(),
            results: HashMap::new(),
            done: HashMap::new(),
            drained: Vec::new(),
            stages_in_place: false,
            late: false,
            ending: false,
            note: Note::default(),
            held: HashMap::new(),
            left_operands: HashMap::new(),
            stored_operands: HashMap::new(),
            in_use: HashMap::new(),
            staged: Vec::new(),
            trips: vec![None; loops],
            recurrences: Vec::new(),
            missing: None,
            around: Vec::new(),
            scope: Scope::Body,
        }
    }

    /// A name that nothing else in the group has.
    fn name(&mut self, wish: &str) -> String {
        let name = names::identifier(wish);
        let count = self.taken.entry(name.clone()).or_insert(0);
        *count += 1;
        if *count == 1 {
            name
        } else {
            let n = *count;
            self.name(&format!("{name}_v{n}"))
        }
    }

    pub fn variable(&mut self, wish: &str, shape: &[u64], element: Type, form: Form) -> VariableId {
        let name = self.name(wish);
        let id = VariableId::at(self.variables.len());
        self.variables.push(Variable { name, shape: shape.to_vec(), element, form });
        id
    }

    /// Takes in a variable that has a name that nothing else has.
    pub fn adopt(&mut self, variable: Variable, section: usize) {
        self.taken.insert(variable.name.clone(), 1);
        self.define(VariableId::at(self.variables.len()), section);
        self.variables.push(variable);
    }

    pub fn cursor(&mut self, wish: &str, slots: u32) -> CursorId {
        let name = self.name(wish);
        let id = CursorId::at(self.cursors.len());
        self.cursors.push(Cursor { name, slots, phase: false });
        id
    }

    pub fn read(&self, id: VariableId) -> Expression {
        let variable = &self.variables[id.index()];
        Expression {
            kind: ExpressionKind::Variable(id),
            shape: variable.shape.clone(),
            element: variable.element.clone(),
        }
    }

    /// What a tile is made of that is computed of ranges and numbers alone, outside loops.
    pub fn computed(&self, id: VariableId) -> Option<Expression> {
        let value = self.bound.get(&id)?;
        let mut is_plain = !value.shape.is_empty();
        value.walk(&mut |x| {
            is_plain &= matches!(
                x.kind,
                ExpressionKind::Apply { .. }
                    | ExpressionKind::Range(..)
                    | ExpressionKind::Broadcast(_)
                    | ExpressionKind::ExpandDims(..)
                    | ExpressionKind::Variable(_)
                    | ExpressionKind::Parameter(_)
                    | ExpressionKind::ProgramId { .. }
                    | ExpressionKind::ProgramCount(_)
                    | ExpressionKind::Integer(_)
            );
        });
        is_plain.then(|| value.clone())
    }

    /// Adds an operation where code goes now.
    pub fn act(&mut self, op: Op) {
        if let Op::MbarrierWait { at, .. } = &op {
            self.cursors[at.index()].phase = true;
        }
        let note = std::mem::take(&mut self.note);
        self.out.push(Node::Op(op, note));
    }

    /// The section after the loops.
    pub fn last(&self) -> usize {
        self.sections.len() - 1
    }

    /// The first section in which an expression can be computed.
    pub fn section_of(&self, expression: &Expression) -> usize {
        let mut section = 0;
        expression.walk(&mut |e| match e.kind {
            ExpressionKind::Variable(id) => section = section.max(self.defined.get(&id).copied().unwrap_or(0)),
            ExpressionKind::Iteration(IterationNumber { index, .. }) => section = section.max(index + 1),
            _ => {}
        });
        section
    }

    pub fn define(&mut self, variable: VariableId, section: usize) {
        self.defined.insert(variable, section);
    }

    /// Gives an expression outside loops a name.
    pub fn bind(&mut self, key: OuterKey, wish: &str, value: Expression, line: Option<u32>) -> VariableId {
        // What is needed only after the loops takes no registers in them; what is small is loaded ahead of its use.
        let is_large = value.shape.iter().product::<u64>() > SMALL;
        let section = if self.late || (self.ending && is_large) { self.last() } else { self.section_of(&value) };
        let to = self.variable(wish, &value.shape, value.element.clone(), Form::Any);
        self.define(to, section);
        self.bound.insert(to, value.clone());
        let note = Note { line, ..Note::default() };
        self.place(section, Node::Op(Op::Let { to, value }, note));
        self.remember(key, to);
        to
    }
}

/// How many iterations an iteration is before another, if both are counted from the same.
pub(crate) fn iterations_before(earlier: Iteration, later: Iteration) -> Option<i64> {
    match (earlier, later) {
        (Iteration::Absolute(a), Iteration::Absolute(b))
        | (Iteration::Current(a), Iteration::Current(b))
        | (Iteration::End(a), Iteration::End(b)) => Some(b - a),
        _ => None,
    }
}

pub(crate) fn shifted(iteration: Iteration, by: i64) -> Iteration {
    match iteration {
        Iteration::Absolute(n) => Iteration::Absolute(n + by),
        Iteration::Current(n) => Iteration::Current(n + by),
        Iteration::End(n) => Iteration::End(n + by),
    }
}
