//! Loops around the pipelined ones: every group walks them, and carries what it needs of their values.
//!
//! The operations of the innermost of these loops, and what is computed around it for them, are made in its body, as for a tile of a
//! persistent CTA. Around the body stand the loops' bounds, the first values of what a group carries, and what is stored after a
//! loop.

use crate::builder::group::{GroupBuilder, OuterKey};
use crate::builder::kernel::KernelBuilder;
use crate::builder::reader::Reader;
use crate::error::Error;
use crate::ir::{Expression, ExpressionKind, Form, Node, Note, Op, Region, VariableId, names};
use std::collections::HashMap;
use twill_triton::mlir::{BlockId, Module, OperationId, ValueId};

/// Where code goes that is being made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Into the body of the innermost loop around the pipelined ones; of the kernel, if there is none.
    #[default]
    Body,
    /// Before the enclosing loop of this number, counted from the outermost.
    Before(usize),
    /// Where the enclosing `while` of this number decides whether it goes on.
    Condition(usize),
    /// After it.
    After(usize),
}

/// A loop around the pipelined ones.
#[derive(Clone, Copy)]
pub(crate) struct EnclosingLoop<'a> {
    pub operation: OperationId,
    /// The block that the loops in it stand in.
    pub body: BlockId,
    /// What it carries, as its first block names it.
    pub carried: &'a [ValueId],
    pub initial: &'a [ValueId],
    pub yielded: &'a [ValueId],
    pub results: &'a [ValueId],
    pub kind: Kind<'a>,
}

/// How often a loop runs.
#[derive(Clone, Copy)]
pub(crate) enum Kind<'a> {
    /// `scf.for`.
    For { induction: ValueId, bounds: [ValueId; 3] },
    /// `scf.while`: its head computes the condition, and what it passes to the body and to its results.
    While { head: BlockId, condition: ValueId, passed: &'a [ValueId], arguments: &'a [ValueId] },
}

impl<'a> EnclosingLoop<'a> {
    /// The operation as a loop around one of its blocks.
    fn new(module: &'a Module, operation: OperationId, body: BlockId) -> Option<EnclosingLoop<'a>> {
        if let Some(l) = module.for_loop(operation) {
            let kind = Kind::For { induction: l.induction, bounds: [l.lower, l.upper, l.step] };
            let (carried, initial, yielded, results) = (l.carried, l.initial, l.yielded, l.results);
            return Some(EnclosingLoop { operation, body, carried, initial, yielded, results, kind });
        }
        let whole = module.operation(operation);
        let blocks: Vec<BlockId> = whole.regions.iter().flat_map(|r| &module.region(*r).blocks).copied().collect();
        let &[head, tail] = blocks.as_slice() else { return None };
        let (condition, passed) = module.operation(module.terminator(head)?).operands.split_first()?;
        let arguments = module.block(tail).arguments.as_slice();
        let kind = Kind::While { head, condition: *condition, passed, arguments };
        (whole.name == "scf.while" && tail == body).then_some(EnclosingLoop {
            operation,
            body,
            carried: &module.block(head).arguments,
            initial: &whole.operands,
            yielded: &module.operation(module.terminator(tail)?).operands,
            results: &whole.results,
            kind,
        })
    }

    /// The head of an `scf.while`.
    pub fn head(&self) -> Option<BlockId> {
        match self.kind {
            Kind::For { .. } => None,
            Kind::While { head, .. } => Some(head),
        }
    }
}

/// A group's code for an enclosing loop.
#[derive(Clone, Default)]
pub(crate) struct Around {
    before: Vec<Node>,
    condition: Vec<Node>,
    after: Vec<Node>,
    /// Names of what is computed before the loop, for its condition and after it.
    known: [HashMap<OuterKey, VariableId>; 3],
    induction: Option<VariableId>,
    /// The bounds of a loop over a range, or the condition.
    bounds: Vec<Expression>,
    carried: Vec<Carried>,
}

/// A part of a value that a group carries from an iteration to the next.
#[derive(Clone)]
struct Carried {
    /// Which of the loop's carried values.
    k: usize,
    region: Region,
    variable: VariableId,
    /// What it is in the next iteration, once that is made.
    next: Option<Expression>,
}

/// The loops around an operation, the outermost first; `None` if something else stands around it.
pub(crate) fn loops_around(module: &Module, function: OperationId, of: OperationId) -> Option<Vec<EnclosingLoop<'_>>> {
    let mut found = Vec::new();
    let mut id = of;
    loop {
        let parent = module.parent(id)?;
        if parent == function {
            found.reverse();
            return Some(found);
        }
        found.push(EnclosingLoop::new(module, parent, module.operation(id).block?)?);
        id = parent;
    }
}

impl<'a> KernelBuilder<'a> {
    /// A group without code.
    pub fn new_group(&self, id: twill_graph::GroupId) -> GroupBuilder {
        let mut group = GroupBuilder::new(id, self.loops.len());
        group.around.resize(self.enclosing.len(), Around::default());
        group
    }

    /// Whether groups do the same again and again: for the tiles of a persistent CTA, or in a loop around the pipelined ones.
    pub fn repeats(&self) -> bool {
        self.options.persistent || !self.enclosing.is_empty()
    }

    /// How many enclosing loops a block stands in; `None` for other blocks.
    pub fn depth_of(&self, block: Option<BlockId>) -> Option<usize> {
        if block == self.module.body(self.kernel.function()) {
            return Some(0);
        }
        self.enclosing
            .iter()
            .position(|l| Some(l.body) == block || l.head() == block && block.is_some())
            .map(|at| at + 1)
    }

    /// The blocks around the pipelined loops, the kernel's first.
    pub fn blocks(&self) -> Vec<BlockId> {
        let function = self.module.body(self.kernel.function());
        function.into_iter().chain(self.enclosing.iter().map(|l| l.body)).collect()
    }

    /// The enclosing loop and the position of a value that is its result.
    pub fn enclosing_result(&self, value: ValueId) -> Option<(usize, usize)> {
        self.enclosing.iter().enumerate().find_map(|(i, l)| Some((i, l.results.iter().position(|r| *r == value)?)))
    }

    /// The enclosing loop and the position of a value that it carries.
    pub fn enclosing_carried(&self, value: ValueId) -> Option<(usize, usize)> {
        self.enclosing.iter().enumerate().find_map(|(i, l)| Some((i, l.carried.iter().position(|r| *r == value)?)))
    }

    /// A group's code with the loops around it.
    pub fn wrapped(&self, group: &GroupBuilder) -> Vec<Node> {
        let mut body: Vec<Node> = group.sections.iter().flatten().cloned().collect();
        for around in group.around.iter().rev() {
            body.extend(around.advanced());
            let mut outer = around.before.clone();
            outer.push(match (around.bounds.as_slice(), around.induction) {
                ([lower, upper, step], Some(variable)) => {
                    let [lower, upper, step] = [lower, upper, step].map(Expression::clone);
                    Node::For { variable, lower, upper, step, body }
                }
                ([condition], _) => {
                    Node::While { before: around.condition.clone(), condition: condition.clone(), body }
                }
                // Before the group's code is whole.
                _ => Node::While { before: Vec::new(), condition: Expression::integer(0), body },
            });
            outer.extend(around.after.iter().cloned());
            body = outer;
        }
        body
    }
}

impl Around {
    /// All carried values go on at once.
    fn advanced(&self) -> Vec<Node> {
        let known = |c: &Carried| Some((c.variable, c.next.clone()?));
        self.carried
            .iter()
            .filter_map(known)
            .map(|(to, value)| Node::Op(Op::Let { to, value }, Note::default()))
            .collect()
    }
}

impl GroupBuilder {
    /// The name of a value that the scope has.
    pub fn known(&self, key: &OuterKey) -> Option<VariableId> {
        let before = |at: usize| self.around[at].known[0].get(key);
        match self.scope {
            Scope::Body => self.outer.get(key),
            Scope::Before(at) => before(at),
            Scope::Condition(at) => self.around[at].known[1].get(key),
            Scope::After(at) => self.around[at].known[2].get(key).or_else(|| before(at)),
        }
        .copied()
    }

    /// Remembers the name of a value in the scope.
    pub fn remember(&mut self, key: OuterKey, variable: VariableId) {
        match self.scope {
            Scope::Body => self.outer.insert(key, variable),
            Scope::Before(at) => self.around[at].known[0].insert(key, variable),
            Scope::Condition(at) => self.around[at].known[1].insert(key, variable),
            Scope::After(at) => self.around[at].known[2].insert(key, variable),
        };
    }

    /// Adds code where the scope says, if it is not the body.
    pub fn place_around(&mut self, node: Node) -> Option<Node> {
        match self.scope {
            Scope::Body => return Some(node),
            Scope::Before(at) => self.around[at].before.push(node),
            Scope::Condition(at) => self.around[at].condition.push(node),
            Scope::After(at) => self.around[at].after.push(node),
        }
        None
    }
}

impl Reader<'_, '_> {
    /// Makes something in a scope.
    pub fn scoped<T>(&mut self, scope: Scope, make: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let before = std::mem::replace(&mut self.group.scope, scope);
        let made = make(self);
        self.group.scope = before;
        made
    }

    /// Enclosing loops around the code of the scope.
    fn depth(&self) -> usize {
        match self.group.scope {
            Scope::Body => self.lowering.enclosing.len(),
            Scope::Before(at) | Scope::After(at) => at,
            Scope::Condition(at) => at + 1,
        }
    }

    /// Whether the scope can compute what stands in a block.
    pub fn sees(&self, block: Option<BlockId>) -> bool {
        let is_head = |at: usize| block.is_some() && self.lowering.enclosing[at].head() == block;
        self.lowering.depth_of(block).is_some_and(|depth| depth <= self.depth())
            // What a loop has passed to its results, its head computes of what it carries.
            || matches!(self.group.scope, Scope::After(at) if is_head(at))
    }

    /// A value of an enclosing loop: what it counts, carries or results in. `None` for other values.
    pub fn of_enclosing(&mut self, value: ValueId, region: &Region) -> Option<Result<Expression, Error>> {
        let depth = self.depth();
        let scope = self.group.scope;
        for at in 0..self.lowering.enclosing.len() {
            match self.lowering.enclosing[at].kind {
                Kind::For { induction, .. } if induction == value && at < depth => {
                    return Some(Ok(self.induction(at, value)));
                }
                Kind::While { passed, arguments, .. } if at < depth => {
                    if let Some(k) = arguments.iter().position(|argument| *argument == value) {
                        return Some(self.value(passed[k], region, None, None));
                    }
                }
                _ => {}
            }
        }
        if let Some((at, k)) = self.lowering.enclosing_carried(value) {
            return (at < depth || scope == Scope::After(at)).then(|| self.carried_around(at, k, region));
        }
        let (at, k) = self.lowering.enclosing_result(value)?;
        (scope == Scope::After(at)).then(|| match self.lowering.enclosing[at].kind {
            Kind::For { .. } => self.carried_around(at, k, region),
            Kind::While { passed, .. } => self.value(passed[k], region, None, None),
        })
    }

    fn induction(&mut self, at: usize, value: ValueId) -> Expression {
        let id = match self.group.around[at].induction {
            Some(id) => id,
            None => {
                let element = self.lowering.element(value);
                let id = self.group.variable(&names::of_value(self.lowering.module, value), &[], element, Form::Any);
                self.group.around[at].induction = Some(id);
                id
            }
        };
        self.group.read(id)
    }

    fn carried_around(&mut self, at: usize, k: usize, region: &Region) -> Result<Expression, Error> {
        let l = self.lowering.enclosing[at];
        let (argument, first) = (l.carried[k], l.initial[k]);
        if l.yielded[k] == argument || l.yielded[k] == first {
            return self.value(first, region, None, None);
        }
        let same = |c: &&Carried| c.k == k && c.region == *region;
        if let Some(known) = self.group.around[at].carried.iter().find(same) {
            return Ok(self.group.read(known.variable));
        }
        let wish = names::of_value(self.lowering.module, argument);
        let (element, form) = (self.lowering.element(argument), self.form_of_carried(l.yielded[k], region));
        let variable = self.group.variable(&wish, &region.extents, element, form);
        self.group.around[at].carried.push(Carried { k, region: region.clone(), variable, next: None });
        self.scoped(Scope::Before(at), |reader| {
            let value = reader.value(first, region, None, None)?;
            let first = Node::Op(Op::Let { to: variable, value }, Note::default());
            reader.group.place_around(first);
            Ok(())
        })?;
        Ok(self.group.read(variable))
    }

    /// A result of `wgmma` is carried as it is.
    fn form_of_carried(&self, yielded: ValueId, region: &Region) -> Form {
        let of_mma = self.lowering.loop_result(yielded).and_then(|(index, k)| {
            let facts = &self.lowering.loops[index];
            let module = self.lowering.module;
            let producers = facts.producers.get(&facts.parts.yielded[k]).map(Vec::as_slice).unwrap_or_default();
            let mma = producers.iter().find(|p| p.region == *region && facts.is_wgmma(module, p.op))?;
            Some((*region.extents.last()?, facts.mma_bits(module, mma.op)))
        });
        of_mma.map_or(Form::Any, |(columns, bits)| Form::Accumulator { columns, bits })
    }

    /// Bounds of the enclosing loops, and what they carry on, for all that the group's code has asked for.
    pub fn close_enclosing(&mut self) -> Result<(), Error> {
        for at in 0..self.lowering.enclosing.len() {
            let l = self.lowering.enclosing[at];
            let bounds = match l.kind {
                Kind::For { induction, bounds } => {
                    self.induction(at, induction);
                    self.scoped(Scope::Before(at), |reader| {
                        bounds.iter().map(|bound| reader.scalar(*bound, None, None)).collect()
                    })?
                }
                Kind::While { condition, .. } => {
                    vec![self.scoped(Scope::Condition(at), |reader| reader.scalar(condition, None, None))?]
                }
            };
            self.group.around[at].bounds = bounds;
        }
        // What goes on may be made of what else is carried.
        while let Some((at, number)) = self.open_carried() {
            let Carried { k, region, .. } = self.group.around[at].carried[number].clone();
            let yielded = self.lowering.enclosing[at].yielded[k];
            let inner = at + 1;
            let scope = if inner == self.lowering.enclosing.len() { Scope::Body } else { Scope::After(inner) };
            let next = self.scoped(scope, |reader| {
                let value = reader.value(yielded, &region, None, None)?;
                Ok(reader.at_end(value))
            })?;
            self.group.around[at].carried[number].next = Some(next);
        }
        Ok(())
    }

    fn open_carried(&self) -> Option<(usize, usize)> {
        let open = |around: &Around| around.carried.iter().position(|c| c.next.is_none());
        self.group.around.iter().enumerate().rev().find_map(|(at, around)| Some((at, open(around)?)))
    }

    /// A value as it is at the end of a loop's body, whatever else goes on before it.
    fn at_end(&mut self, value: Expression) -> Expression {
        let mut reads_variables = false;
        value.walk(&mut |e| reads_variables |= matches!(e.kind, ExpressionKind::Variable(_)));
        let is_carried = |id: VariableId| self.group.around.iter().flat_map(|a| &a.carried).any(|c| c.variable == id);
        let plain = matches!(value.kind, ExpressionKind::Variable(id) if !is_carried(id));
        if plain || !reads_variables {
            return value;
        }
        let to = self.group.variable("next", &value.shape, value.element.clone(), Form::Any);
        let (shape, element) = (value.shape.clone(), value.element.clone());
        let section = self.group.last();
        self.group.define(to, section);
        self.group.place(section, Node::Op(Op::Let { to, value }, Note::default()));
        Expression { kind: ExpressionKind::Variable(to), shape, element }
    }
}
