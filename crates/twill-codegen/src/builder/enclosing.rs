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
use twill_triton::mlir::{BlockId, ForLoop, OperationId, ValueId};

/// Where code goes that is being made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Into the body of the innermost loop around the pipelined ones; of the kernel, if there is none.
    #[default]
    Body,
    /// Before the enclosing loop of this number, counted from the outermost.
    Before(usize),
    /// After it.
    After(usize),
}

/// A group's code for an enclosing loop.
#[derive(Clone, Default)]
pub(crate) struct Around {
    before: Vec<Node>,
    after: Vec<Node>,
    /// Names of what is computed before and after the loop.
    known: [HashMap<OuterKey, VariableId>; 2],
    induction: Option<VariableId>,
    bounds: Option<[Expression; 3]>,
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

/// The `scf.for` operations from a block up to the kernel's body, the outermost first; `None` if something else stands around it.
pub(crate) fn loops_around<'m>(
    module: &'m twill_triton::mlir::Module,
    function: OperationId,
    of: OperationId,
) -> Option<Vec<ForLoop<'m>>> {
    let mut found = Vec::new();
    let mut id = of;
    loop {
        let parent = module.parent(id)?;
        if parent == function {
            found.reverse();
            return Some(found);
        }
        found.push(module.for_loop(parent)?);
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
        self.enclosing.iter().position(|l| Some(l.body) == block).map(|at| at + 1)
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
            let Some(([lower, upper, step], variable)) = around.bounds.clone().zip(around.induction) else { continue };
            body.extend(around.advanced());
            let mut outer = around.before.clone();
            outer.push(Node::For { variable, lower, upper, step, body });
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
            Scope::After(at) => self.around[at].known[1].get(key).or_else(|| before(at)),
        }
        .copied()
    }

    /// Remembers the name of a value in the scope.
    pub fn remember(&mut self, key: OuterKey, variable: VariableId) {
        match self.scope {
            Scope::Body => self.outer.insert(key, variable),
            Scope::Before(at) => self.around[at].known[0].insert(key, variable),
            Scope::After(at) => self.around[at].known[1].insert(key, variable),
        };
    }

    /// Adds code where the scope says, if it is not the body.
    pub fn place_around(&mut self, node: Node) -> Option<Node> {
        match self.scope {
            Scope::Body => return Some(node),
            Scope::Before(at) => self.around[at].before.push(node),
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
    pub fn depth(&self) -> usize {
        match self.group.scope {
            Scope::Body => self.lowering.enclosing.len(),
            Scope::Before(at) | Scope::After(at) => at,
        }
    }

    /// A value of an enclosing loop: what it counts, carries or results in. `None` for other values.
    pub fn of_enclosing(&mut self, value: ValueId, region: &Region) -> Option<Result<Expression, Error>> {
        let depth = self.depth();
        if let Some(at) = self.lowering.enclosing.iter().position(|l| l.induction == value) {
            return (at < depth).then(|| Ok(self.induction(at)));
        }
        if let Some((at, k)) = self.lowering.enclosing_carried(value) {
            return (at < depth).then(|| self.carried_around(at, k, region));
        }
        let (at, k) = self.lowering.enclosing_result(value)?;
        (self.group.scope == Scope::After(at)).then(|| self.carried_around(at, k, region))
    }

    fn induction(&mut self, at: usize) -> Expression {
        let id = match self.group.around[at].induction {
            Some(id) => id,
            None => {
                let value = self.lowering.enclosing[at].induction;
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
        let accumulator = self.lowering.loop_result(yielded).is_some_and(|(index, k)| {
            let facts = &self.lowering.loops[index];
            let producers = facts.producers.get(&facts.parts.yielded[k]).map(Vec::as_slice).unwrap_or_default();
            producers.iter().any(|p| p.region == *region && facts.is_wgmma(self.lowering.module, p.op))
        });
        match region.extents.last() {
            Some(columns) if accumulator => Form::Accumulator { columns: *columns },
            _ => Form::Any,
        }
    }

    /// Bounds of the enclosing loops, and what they carry on, for all that the group's code has asked for.
    pub fn close_enclosing(&mut self) -> Result<(), Error> {
        for at in 0..self.lowering.enclosing.len() {
            self.induction(at);
            let l = self.lowering.enclosing[at];
            let bounds = self.scoped(Scope::Before(at), |reader| {
                let [lower, upper, step] = [l.lower, l.upper, l.step].map(|v| reader.scalar(v, None, None));
                Ok([lower?, upper?, step?])
            })?;
            self.group.around[at].bounds = Some(bounds);
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
