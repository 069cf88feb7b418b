//! A kernel without a pipeline: one warp group executes the operations of the TTIR in their order, with the source's loops and
//! branches.
//!
//! It is what remains where no schedule is found, or no pass lowers the schedule: every operation has a rule here, and what
//! no rule knows more about is an [`Opaque`](crate::ir::Opaque) operation, which the back end writes by its counterpart. There is
//! nothing to prove of its barriers: all threads meet at each.

mod combine;
mod control_flow;
mod memory_order;
mod multistage;
mod operation;
mod rings;
mod runs_ahead;

use crate::builder::declarations::parameters;
use crate::error::Error;
use crate::ir::names;
use crate::ir::{
    Buffer, Cursor, Expression, ExpressionKind, Form, Group, Node, Note, Op, Variable, VariableId, WarpProgram,
};
pub(crate) use combine::combine_region;
pub(crate) use operation::{elementwise, keeps_nan, opaque};
use std::collections::{BTreeSet, HashMap, HashSet};
use twill_graph::GroupId;
use twill_triton::mlir::{FloatKind, Module, OperationId, Type, ValueId};
use twill_triton::{AxisInfos, OperationLocation};

/// Registers a thread of the only group: as many as its threads find.
const REGISTERS: u32 = 255;

/// Bytes of what a loop carries up to which four warps hold it: 128 registers a thread.
const HELD_BYTES: u64 = 4 * 128 * 32 * 4;

/// How far loads of loops run ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunsAhead {
    /// Shared memory of all rings, in bytes.
    pub ring_bytes: u64,
    /// Stages of a loop, as Triton's `num_stages`; none: as many as let several CTAs share a multiprocessor.
    pub stages: Option<u32>,
}

/// A kernel's warp program of one group of so many warps, or of as many as hold what its loops carry, which executes one operation
/// after the other. `ahead`: how far loads of loops run ahead, if they do.
///
/// # Errors
/// [`Error::Unsupported`] for calls of functions that are not inlined, constants of several numbers, and branches that are not
/// structured.
pub fn lower(
    module: &Module,
    function: OperationId,
    warps: Option<u32>,
    ahead: Option<RunsAhead>,
) -> Result<WarpProgram, Error> {
    let body = module
        .body(function)
        .ok_or_else(|| Error::Defect { place: OperationLocation::of(module, function), what: "a body".into() })?;
    let warps = warps.unwrap_or_else(|| usual_warps(module, function));
    let mut builder = Builder {
        module,
        function,
        axis_infos: AxisInfos::new(module, function),
        variables: Vec::new(),
        taken: parameters(module, function).into_iter().map(|parameter| parameter.name).collect(),
        values: HashMap::new(),
        blocks: 0,
        barriers: memory_order::barriers(module, function),
        ahead: ahead.map(|ahead| Ahead { warps, ring_bytes: ahead.ring_bytes, stages: ahead.stages }),
        buffers: Vec::new(),
        cursors: Vec::new(),
    };
    let mut nodes = Vec::new();
    builder.blocks(body, &mut nodes)?;
    let group = Group {
        id: GroupId::new(0),
        name: "in_order".into(),
        warps,
        registers: REGISTERS,
        variables: builder.variables,
        cursors: builder.cursors,
        trips: Vec::new(),
        begin: Vec::new(),
        body: nodes,
        end: Vec::new(),
    };
    let mut program = WarpProgram {
        parameters: parameters(module, function),
        descriptors: crate::builder::descriptors::of_parameters(module, function),
        groups: vec![group],
        buffers: builder.buffers,
        ..WarpProgram::empty(names::identifier(module.function_name(function).unwrap_or("kernel")))
    };
    if let Some((name, why)) =
        program.parameters.iter().find_map(|p| Some((p.name.clone(), names::refused(&program, &p.name)?)))
    {
        return Err(Error::Unsupported {
            place: OperationLocation::of(module, function),
            what: format!("a parameter named `{name}`, {why}"),
            way_out: "rename it",
        });
    }
    names::settle(&mut program);
    Ok(program)
}

/// A loop or a branch, executed as it stands.
pub(crate) struct Transcribed {
    pub nodes: Vec<Node>,
    /// What is new besides the variables that were there.
    pub variables: Vec<Variable>,
    /// The names of its results.
    pub results: Vec<VariableId>,
}

/// A loop or a branch for a group that has some variables already, and the values of outside that are read in it.
///
/// # Errors
/// As [`lower`].
pub(crate) fn transcribe(
    module: &Module,
    function: OperationId,
    id: OperationId,
    values: HashMap<ValueId, Expression>,
    known: &[Variable],
) -> Result<Transcribed, Error> {
    let mut builder = Builder {
        module,
        function,
        axis_infos: AxisInfos::new(module, function),
        variables: known.to_vec(),
        taken: known.iter().map(|variable| variable.name.clone()).collect(),
        values,
        blocks: 0,
        barriers: memory_order::barriers_within(module, function, id),
        ahead: None,
        buffers: Vec::new(),
        cursors: Vec::new(),
    };
    let mut nodes = Vec::new();
    builder.operation(id, &mut nodes)?;
    let result = |value: &ValueId| match builder.value(*value)?.kind {
        ExpressionKind::Variable(id) => Ok(id),
        _ => Err(Error::Defect { place: OperationLocation::of(module, id), what: "the variable of a result".into() }),
    };
    let results = module.operation(id).results.iter().map(result).collect::<Result<_, _>>()?;
    Ok(Transcribed { nodes, results, variables: builder.variables.split_off(known.len()) })
}

/// Four warps, or eight where what a loop carries, or the largest result of a multiplication, is more than four hold well.
fn usual_warps(module: &Module, function: OperationId) -> u32 {
    let bytes = |value: &ValueId| {
        let kind = module.type_of(*value);
        let elements: u64 = kind.known_shape()?.iter().product();
        Some(elements * u64::from(kind.element().scalar_bits()?) / 8)
    };
    let is_held = |value: &&ValueId| {
        let kind = module.type_of(**value);
        let is_pointer = matches!(kind.element(), Type::Pointer { .. });
        !is_pointer && kind.known_shape().is_some_and(|shape| shape.len() > 1)
    };
    let held = |id: OperationId| match module.operation(id) {
        operation if operation.name.starts_with("tt.dot") => operation.results.first().and_then(bytes).unwrap_or(0),
        operation if operation.name == "scf.for" => operation.results.iter().filter(is_held).filter_map(bytes).sum(),
        _ => 0,
    };
    if module.walk(function).map(held).max().unwrap_or(0) > HELD_BYTES { 8 } else { 4 }
}

/// How far loads may run ahead.
#[derive(Clone, Copy)]
struct Ahead {
    /// Warps of the group.
    warps: u32,
    /// Shared memory of all rings, in bytes.
    ring_bytes: u64,
    /// As in [`RunsAhead`].
    stages: Option<u32>,
}

/// The group's program in the making.
struct Builder<'m> {
    module: &'m Module,
    function: OperationId,
    axis_infos: AxisInfos<'m>,
    variables: Vec<Variable>,
    taken: BTreeSet<String>,
    values: HashMap<ValueId, Expression>,
    /// Blocks of the function so far, each as often as it is written.
    blocks: usize,
    /// Operations before which the group's threads wait for each other, as one loads what another has stored.
    barriers: HashSet<OperationId>,
    /// How far loads may run ahead, if they may.
    ahead: Option<Ahead>,
    /// Their rings, and the slots that are filled and read next.
    buffers: Vec<Buffer>,
    cursors: Vec<Cursor>,
}

impl Builder<'_> {
    /// A variable of the type of a value.
    fn variable_of(&mut self, value: ValueId) -> VariableId {
        let kind = self.module.type_of(value);
        let shape = kind.known_shape().unwrap_or_default();
        let stem = names::of_value(self.module, value);
        let form = match kind.element() {
            Type::Pointer { .. } if kind.is_tensor() => {
                self.axis_infos.order(value).first().map_or(Form::Any, |d| Form::Pointers { dimension: *d })
            }
            _ => Form::Any,
        };
        let id = self.variable(&stem, shape, kind.element().clone());
        self.variables[id.index()].form = form;
        id
    }

    fn variable(&mut self, stem: &str, shape: Vec<u64>, element: Type) -> VariableId {
        let name = names::unique(stem, |name| self.taken.contains(name));
        self.taken.insert(name.clone());
        let id = VariableId::at(self.variables.len());
        self.variables.push(Variable { name, shape, element, form: Form::Any });
        id
    }

    fn read(&self, id: VariableId) -> Expression {
        let Variable { shape, element, .. } = self.variables[id.index()].clone();
        Expression { kind: ExpressionKind::Variable(id), shape, element }
    }

    /// A value where it is used.
    fn value(&self, value: ValueId) -> Result<Expression, Error> {
        if let Some(known) = self.values.get(&value) {
            return Ok(known.clone());
        }
        let kind = self.module.type_of(value);
        let (shape, element) = (kind.known_shape().unwrap_or_default(), kind.element().clone());
        if self.module.arguments(self.function).contains(&value) {
            let name = self.module.value(value).name.clone();
            let name = match kind {
                Type::TensorDescriptor(block) => {
                    crate::builder::descriptors::name(&name, &block.known_shape().unwrap_or_default())
                }
                _ => name,
            };
            return Ok(Expression { kind: ExpressionKind::Parameter(name), shape, element });
        }
        let place = self.module.defining_operation(value).unwrap_or(self.function);
        Err(Error::Defect { place: OperationLocation::of(self.module, place), what: "a value before its use".into() })
    }

    fn values(&self, all: &[ValueId]) -> Result<Vec<Expression>, Error> {
        all.iter().map(|value| self.value(*value)).collect()
    }

    /// Gives a value a variable of its own.
    fn bind(&mut self, value: ValueId, expression: Expression, line: Option<u32>, nodes: &mut Vec<Node>) {
        let to = self.variable_of(value);
        nodes.push(Node::Op(Op::Let { to, value: expression }, Note { line, ..Note::default() }));
        let read = self.read(to);
        self.values.insert(value, read);
    }

    fn unsupported(&self, id: OperationId, what: impl Into<String>, way_out: &'static str) -> Error {
        Error::Unsupported { place: OperationLocation::of(self.module, id), what: what.into(), way_out }
    }
}

/// A constant of the TTIR: one number in all elements.
fn constant(module: &Module, value: ValueId) -> Option<Expression> {
    let kind = module.type_of(value);
    let (shape, element) = (kind.known_shape().unwrap_or_default(), kind.element().clone());
    let kind = match (&element, module.float_constant(value), module.integer_constant(value)) {
        (Type::Float(FloatKind::F64), Some(x), _) | (Type::Float(_), Some(x), _) => ExpressionKind::Float(x),
        (_, _, Some(n)) => ExpressionKind::Integer(n),
        _ => return None,
    };
    Some(Expression { kind, shape, element })
}
