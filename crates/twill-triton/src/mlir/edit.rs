//! Changes a module that was read: new operations in the middle of blocks, other types, other operands.
//!
//! Uses are in the order of the text again after [`Module::number_uses`].

use super::ast::{BlockId, Module, Operation, OperationId, Use, ValueId};
use super::attributes::{Attribute, Attributes};
use super::types::Type;

/// An operation that is to be added.
pub(crate) struct NewOperation<'a> {
    pub name: &'a str,
    pub operands: Vec<ValueId>,
    pub attributes: Vec<(&'a str, Attribute)>,
    /// Type and name of its result.
    pub result: (Type, &'a str),
    /// The operation whose place in the text it has; it comes from no line of Python.
    pub like: OperationId,
}

/// An `scf.for` that was added.
pub(crate) struct NewLoop {
    pub induction: ValueId,
    pub carried: Vec<ValueId>,
    pub results: Vec<ValueId>,
    /// Its `scf.yield`, without operands.
    pub terminator: OperationId,
}

impl Module {
    /// Adds an empty `scf.for` before an operation, with bounds, a step, and values that are carried, of the names of others; it has the
    /// attributes and the place in the text of `like`.
    pub(crate) fn insert_loop(
        &mut self,
        before: OperationId,
        bounds: [ValueId; 3],
        carried: &[(ValueId, ValueId)],
        like: OperationId,
    ) -> NewLoop {
        let Operation { line, column, attributes, location, .. } = self.operation(like).clone();
        let id = self.add_operation(self.operation(before).block, line, column);
        self.move_before(id, before);
        let operation = &mut self.operations[id.index()];
        (operation.attributes, operation.location) = (attributes, location);
        "scf.for".clone_into(&mut operation.name);
        self.set_operands(id, bounds.into_iter().chain(carried.iter().map(|(initial, _)| *initial)).collect());
        let region = self.add_region(id);
        let body = self.add_block(region);
        self.regions[region.index()].blocks.push(body);
        let kind = self.type_of(bounds[0]).clone();
        let induction = self.add_argument(body, kind, "trip");
        let (mut arguments, mut results) = (Vec::new(), Vec::new());
        for (initial, named) in carried {
            let (kind, name) = (self.type_of(*initial).clone(), self.value(*named).name.clone());
            arguments.push(self.add_argument(body, kind.clone(), &name));
            results.push(self.add_result(id, kind, &name));
        }
        let terminator = self.add_operation(Some(body), line, column);
        "scf.yield".clone_into(&mut self.operations[terminator.index()].name);
        NewLoop { induction, carried: arguments, results, terminator }
    }

    /// Adds an operation at a position of a block, and gives back its result.
    pub(crate) fn insert(&mut self, block: BlockId, position: usize, new: NewOperation<'_>) -> ValueId {
        let like = self.operation(new.like);
        let (line, column) = (like.line, like.column);
        let id = self.add_operation(Some(block), line, column);
        let order = &mut self.blocks[block.index()].operations;
        order.pop();
        order.insert(position.min(order.len()), id);
        let mut attributes = Attributes::default();
        for (name, attribute) in new.attributes {
            attributes.insert(name.to_owned(), attribute);
        }
        let operation = &mut self.operations[id.index()];
        (operation.name, operation.attributes) = (new.name.to_owned(), attributes);
        self.set_operands(id, new.operands);
        self.add_result(id, new.result.0, new.result.1)
    }

    /// Adds an operation before another, and gives back its result.
    pub(crate) fn insert_before(&mut self, before: OperationId, new: NewOperation<'_>) -> ValueId {
        let block = self.operation(before).block.unwrap_or(BlockId(0));
        let order = &self.block(block).operations;
        let position = order.iter().position(|other| *other == before).unwrap_or(order.len());
        self.insert(block, position, new)
    }

    /// Moves an operation to the place before another.
    pub(crate) fn move_before(&mut self, id: OperationId, before: OperationId) {
        self.remove(id);
        let Some((block, position)) = self.position(before) else { return };
        self.blocks[block.index()].operations.insert(position, id);
        self.operations[id.index()].block = Some(block);
    }

    /// Moves all operations of a block to the end of another.
    pub(crate) fn append_operations(&mut self, to: BlockId, from: BlockId) {
        let moved = std::mem::take(&mut self.blocks[from.index()].operations);
        moved.iter().for_each(|id| self.operations[id.index()].block = Some(to));
        self.blocks[to.index()].operations.extend(moved);
    }

    /// Gives an operation another name, and neither successors nor regions.
    pub(crate) fn rename(&mut self, id: OperationId, name: &str) {
        let operation = &mut self.operations[id.index()];
        name.clone_into(&mut operation.name);
        operation.successors.clear();
        operation.regions.clear();
        operation.attributes.forget("operandSegmentSizes");
    }

    /// Makes a branch to two blocks, both of which return, an `scf.if` of them before one return.
    pub(crate) fn branch_to_if(&mut self, id: OperationId) {
        let operation = self.operation(id);
        let (ways, block, line, column) =
            (operation.successors.clone(), operation.block, operation.line, operation.column);
        self.rename(id, "scf.if");
        for way in ways {
            let outer = self.block(way).region;
            self.regions[outer.index()].blocks.retain(|other| *other != way);
            let region = self.add_region(id);
            self.regions[region.index()].blocks.push(way);
            self.blocks[way.index()].region = region;
            if let Some(end) = self.terminator(way) {
                self.rename(end, "scf.yield");
            }
        }
        let end = self.add_operation(block, line, column);
        "tt.return".clone_into(&mut self.operations[end.index()].name);
    }

    /// Adds an operation without operands and results before another.
    pub(crate) fn insert_plain(&mut self, before: OperationId, name: &str) {
        let Operation { block, line, column, .. } = *self.operation(before);
        let id = self.add_operation(block, line, column);
        name.clone_into(&mut self.operations[id.index()].name);
        self.move_before(id, before);
    }

    /// Adds a bit that is always set before an operation.
    pub(crate) fn insert_true(&mut self, before: OperationId) -> ValueId {
        let bit = NewOperation {
            name: "arith.constant",
            operands: Vec::new(),
            attributes: vec![("value", Attribute::Bool(true))],
            result: (Type::Integer(1), "always"),
            like: before,
        };
        self.insert_before(before, bit)
    }

    /// Makes operations that follow each other in a block those of an `scf.if` at their place, which is always taken. Nothing after
    /// them reads what they make.
    pub(crate) fn enclose(&mut self, operations: &[OperationId]) -> OperationId {
        let like = operations.first().copied().unwrap_or(self.top());
        let always = self.insert_true(like);
        let Operation { block, line, column, .. } = *self.operation(like);
        let id = self.add_operation(block, line, column);
        "scf.if".clone_into(&mut self.operations[id.index()].name);
        self.set_operands(id, vec![always]);
        self.move_before(id, like);
        let region = self.add_region(id);
        let body = self.add_block(region);
        self.regions[region.index()].blocks.push(body);
        let end = self.add_operation(Some(body), line, column);
        "scf.yield".clone_into(&mut self.operations[end.index()].name);
        for inner in operations {
            self.move_before(*inner, end);
        }
        id
    }

    /// Makes a block the only one of its operation's first region.
    pub(crate) fn keep_only(&mut self, id: OperationId, block: BlockId) {
        if let Some(region) = self.operation(id).regions.first().copied() {
            self.regions[region.index()].blocks = vec![block];
        }
    }

    /// Takes an operation out of its block.
    pub(crate) fn remove(&mut self, id: OperationId) {
        if let Some(block) = self.operations[id.index()].block.take() {
            self.blocks[block.index()].operations.retain(|other| *other != id);
        }
    }

    /// Makes another value every operand that is this one; uses are not kept up.
    pub(crate) fn replace_uses(&mut self, from: ValueId, to: ValueId) {
        let operands = self.operations.iter_mut().flat_map(|operation| &mut operation.operands);
        operands.filter(|operand| **operand == from).for_each(|operand| *operand = to);
    }

    /// Gives an operation other operands; uses are not kept up.
    pub(crate) fn replace_operands(&mut self, id: OperationId, operands: Vec<ValueId>) {
        self.operations[id.index()].operands = operands;
    }

    /// Where in its block an operation stands.
    pub(crate) fn position(&self, id: OperationId) -> Option<(BlockId, usize)> {
        let block = self.operation(id).block?;
        Some((block, self.block(block).operations.iter().position(|other| *other == id)?))
    }

    pub(crate) fn set_type(&mut self, value: ValueId, kind: Type) {
        self.values[value.index()].kind = kind;
    }

    pub(crate) fn set_attribute(&mut self, id: OperationId, name: &str, attribute: Attribute) {
        self.operations[id.index()].attributes.insert(name.to_owned(), attribute);
    }

    pub(crate) fn take_attribute(&mut self, id: OperationId, name: &str) {
        self.operations[id.index()].attributes.remove(name);
    }

    /// Takes away all attributes whose names begin so, also those of arguments.
    pub(crate) fn forget(&mut self, prefix: &str) {
        for operation in &mut self.operations {
            operation.attributes.forget(prefix);
            let Some(Attribute::Array(arguments)) = operation.attributes.get_mut("arg_attrs") else { continue };
            for argument in arguments {
                if let Attribute::Dictionary(own) = argument {
                    own.forget(prefix);
                }
            }
        }
    }

    /// Gives an argument of a function an attribute that is a number.
    pub(crate) fn set_argument_attribute(&mut self, function: OperationId, index: usize, name: &str, number: i128) {
        let count = self.arguments(function).len();
        let attributes = &mut self.operations[function.index()].attributes;
        if !matches!(attributes.get("arg_attrs"), Some(Attribute::Array(_))) {
            attributes.insert("arg_attrs".into(), Attribute::Array(Vec::new()));
        }
        let Some(Attribute::Array(all)) = attributes.get_mut("arg_attrs") else { return };
        all.resize(count.max(all.len()), Attribute::Dictionary(Attributes::default()));
        if let Some(Attribute::Dictionary(own)) = all.get_mut(index) {
            own.insert(name.to_owned(), Attribute::Integer { value: number, kind: Type::Integer(32) });
        }
    }

    /// Makes another value the operand at a place; uses are not kept up.
    pub(crate) fn set_operand(&mut self, id: OperationId, index: usize, value: ValueId) {
        if let Some(operand) = self.operations[id.index()].operands.get_mut(index) {
            *operand = value;
        }
    }

    /// Writes down anew who uses which value, in the order of the text.
    pub(crate) fn number_uses(&mut self) {
        let order: Vec<OperationId> = self.walk(self.top()).collect();
        self.values.iter_mut().for_each(|value| value.uses.clear());
        for operation in order {
            for (index, value) in self.operations[operation.index()].operands.iter().enumerate() {
                self.values[value.index()].uses.push(Use { operation, index });
            }
        }
    }
}
