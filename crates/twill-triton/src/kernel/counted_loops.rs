//! `scf.while` that counts, as `scf.for`.
//!
//! ```text
//! while start < end:
//!     …
//!     start += BLOCK
//! ```
//!
//! becomes `for start in range(start, end, BLOCK)`, as MLIR's `upliftWhileToForLoop` has it: the condition compares a carried value with
//! what does not change, and each iteration adds to it what is above 0. It is a loop that multiplies tiles, with no other in it.

use crate::mlir::{Attribute, BlockId, Definition, Module, NewOperation, OperationId, Type, ValueId};
use crate::operations::{Memory, is_pure, is_synchronization, memory};

/// The module with such loops of a function as `scf.for`.
pub(crate) fn counted(mut module: Module, function: OperationId) -> Module {
    let is_while = |id: &OperationId| module.operation(*id).name == "scf.while";
    let loops: Vec<OperationId> = module.walk(function).filter(is_while).collect();
    for id in loops {
        if let Some(counted) = Counted::of(&module, id) {
            counted.convert(&mut module);
            module.number_uses();
        }
    }
    module
}

/// What of a loop counts.
#[derive(Debug)]
struct Counted {
    id: OperationId,
    head: BlockId,
    tail: BlockId,
    /// Which of the carried values.
    counter: usize,
    bound: ValueId,
    /// It may also be the bound.
    inclusive: bool,
    step: ValueId,
    /// By argument of the body, which of the carried values it is.
    passed: Vec<usize>,
}

impl Counted {
    fn of(module: &Module, id: OperationId) -> Option<Counted> {
        let (head, tail) = module.while_blocks(id)?;
        let holds = |wanted: &dyn Fn(OperationId) -> bool| module.walk(id).skip(1).any(wanted);
        let name = |inner: OperationId| module.operation(inner).name.as_str();
        if !holds(&|inner| name(inner) == "tt.dot")
            || holds(&|inner| matches!(name(inner), "scf.for" | "scf.while"))
            || holds(&|inner| waits(module, inner))
        {
            return None;
        }
        let carried = &module.block(head).arguments;
        let place = |value: ValueId| carried.iter().position(|argument| *argument == value);
        let (condition, passed) = module.operation(module.terminator(head)?).operands.split_first()?;
        let passed: Vec<usize> = passed.iter().map(|value| place(*value)).collect::<Option<_>>()?;
        let comparison = module.operation(module.defining_operation(*condition)?);
        let &[left, right] = comparison.operands.as_slice() else { return None };
        let predicate = comparison.attributes.text("predicate").filter(|_| comparison.name == "arith.cmpi")?;
        let (counter, bound, inclusive) = match predicate {
            "slt" => (place(left)?, right, false),
            "sle" => (place(left)?, right, true),
            "sgt" => (place(right)?, left, false),
            "sge" => (place(right)?, left, true),
            _ => return None,
        };
        let yielded = *module.operation(module.terminator(tail)?).operands.get(counter)?;
        let sum = module.operation(module.defining_operation(yielded)?);
        let &[before, step] = sum.operands.as_slice() else { return None };
        let argument = |value: ValueId| module.block(tail).arguments.iter().position(|argument| *argument == value);
        let counts = sum.name == "arith.addi"
            && argument(before).is_some_and(|k| passed.get(k) == Some(&counter))
            && is_positive(module, step);
        let is_pure =
            |inner: &OperationId| is_pure(module.operation(*inner)) || Some(*inner) == module.terminator(head);
        let is_plain = module.block(head).operations.iter().all(is_pure);
        let found = Counted { id, head, tail, counter, bound, inclusive, step, passed };
        let is_range = counts && is_plain && found.is_fixed(module, bound) && found.is_fixed(module, step);
        (is_range && !found.never_runs(module)).then_some(found)
    }

    /// Whether it is known to run no iteration.
    fn never_runs(&self, module: &Module) -> bool {
        let first = module.operation(self.id).operands.get(self.counter).copied();
        let first = first.and_then(|value| module.integer_constant(value));
        let last = module.integer_constant(self.bound).map(|bound| bound + i128::from(self.inclusive));
        matches!((first, last), (Some(first), Some(last)) if first >= last)
    }

    /// Whether a value is the same in all iterations: of before the loop, or computed in the loop's head of such values.
    fn is_fixed(&self, module: &Module, value: ValueId) -> bool {
        match module.definition(value) {
            Definition::Argument { block, .. } => block != self.head && block != self.tail,
            Definition::Result { operation, .. } => {
                !module.is_nested_in(operation, self.id)
                    || module.operation(operation).block == Some(self.head)
                        && module.operation(operation).operands.iter().all(|operand| self.is_fixed(module, *operand))
                    || module.integer_constant(value).is_some()
            }
        }
    }

    /// Makes what is computed in the loop of what is fixed a value of before it.
    fn hoist(&self, module: &mut Module, value: ValueId) {
        let Some(operation) = module.defining_operation(value).filter(|id| module.is_nested_in(*id, self.id)) else {
            return;
        };
        for operand in module.operation(operation).operands.clone() {
            self.hoist(module, operand);
        }
        module.move_before(operation, self.id);
    }

    fn convert(self, module: &mut Module) {
        let id = self.id;
        self.hoist(module, self.bound);
        self.hoist(module, self.step);
        let initial = module.operation(id).operands.clone();
        let arguments = module.block(self.head).arguments.clone();
        let mut bound = self.bound;
        // The greatest number has none above it, and a loop that it bounds has no end.
        if self.inclusive {
            let kind = module.type_of(bound).clone();
            let one = Attribute::Integer { value: 1, kind: kind.clone() };
            let constant = NewOperation {
                name: "arith.constant",
                operands: Vec::new(),
                attributes: vec![("value", one)],
                result: (kind.clone(), "one"),
                like: id,
            };
            let one = module.insert_before(id, constant);
            let sum = NewOperation {
                name: "arith.addi",
                operands: vec![bound, one],
                attributes: Vec::new(),
                result: (kind, "end"),
                like: id,
            };
            bound = module.insert_before(id, sum);
        }
        let carried: Vec<(ValueId, ValueId)> = initial.iter().copied().zip(arguments).collect();
        let new = module.insert_loop(id, [initial[self.counter], bound, self.step], &carried, id);
        let body = module.block(self.tail).operations.clone();
        let yields = module.terminator(self.tail);
        let yielded = yields.map(|last| module.operation(last).operands.clone()).unwrap_or_default();
        for inner in body.into_iter().filter(|inner| Some(*inner) != yields) {
            module.move_before(inner, new.terminator);
        }
        module.replace_operands(new.terminator, yielded);
        let own = module.block(self.tail).arguments.clone();
        let results = module.operation(id).results.clone();
        for (k, of) in self.passed.iter().enumerate() {
            module.replace_uses(own[k], if *of == self.counter { new.induction } else { new.carried[*of] });
            module.replace_uses(results[k], new.results[*of]);
        }
        module.remove(id);
    }
}

/// Whether an operation may wait for other programs: what it reads is not to be read ahead.
fn waits(module: &Module, id: OperationId) -> bool {
    let operation = module.operation(id);
    let is_used = || operation.results.iter().any(|result| !module.uses(*result).is_empty());
    let is_atomic = matches!(memory(&operation.name), Some(Memory::Atomic { .. }));
    operation.attributes.get("isVolatile").is_some() || is_synchronization(&operation.name) || is_atomic && is_used()
}

/// Whether a number is above 0 in any launch.
fn is_positive(module: &Module, value: ValueId) -> bool {
    if let Some(number) = module.integer_constant(value) {
        return number > 0;
    }
    let Some(operation) = module.defining_operation(value).map(|id| module.operation(id)) else { return false };
    match operation.name.as_str() {
        "tt.get_num_programs" => true,
        // A bit is -1 as a number with a sign.
        "arith.extsi" | "arith.extui" => operation
            .operands
            .iter()
            .all(|operand| *module.type_of(*operand) != Type::Integer(1) && is_positive(module, *operand)),
        _ => false,
    }
}
