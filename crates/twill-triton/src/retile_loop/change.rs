//! Re-tiles a loop: changes its step size, when that is known to be possible.

use super::masks::{Mask, Neutral};
use super::{AT_LEAST, Bound, FIRST_ITERATION, Plan, SOURCE_STEP, extents};
use crate::mlir::{Attribute, Dimension, FloatValue, Module, NewOperation, OperationId, Type, ValueId};

impl Plan {
    pub(super) fn apply(&self, module: &mut Module) {
        for (id, index, dimensions) in &self.constants {
            self.copy_constant(module, *id, *index, dimensions);
        }
        for (value, dimensions) in &self.values {
            let kind = self.retyped(module.type_of(*value), dimensions);
            module.set_type(*value, kind);
            if let Some(id) = module.defining_operation(*value)
                && module.operation(id).name == "tt.make_range"
            {
                let start = module.operation(id).attributes.integer("start").unwrap_or(0);
                let end = i128::from(start) + i128::from(self.step);
                module.set_attribute(id, "end", Attribute::Integer { value: end, kind: Type::Integer(32) });
            }
        }
        let source = Attribute::Integer { value: i128::from(self.source), kind: Type::Integer(32) };
        module.set_attribute(self.loop_id, SOURCE_STEP, source);
        self.change_bounds(module);
        let least = (self.step.div_ceil(self.source) - 1) * self.source + 1;
        if let Bound::Parameter(function, index) = self.bound
            && least > 1
        {
            module.set_argument_attribute(function, index, AT_LEAST, i128::from(least));
        }
        module.number_uses();
    }

    fn retyped(&self, kind: &Type, dimensions: &[usize]) -> Type {
        match kind {
            Type::Tensor { shape, element, encoding } => {
                let mut shape = shape.clone();
                for d in dimensions {
                    shape[*d] = Dimension::Known(self.step);
                }
                Type::Tensor { shape, element: element.clone(), encoding: encoding.clone() }
            }
            Type::TensorDescriptor(block) => Type::TensorDescriptor(Box::new(self.retyped(block, dimensions))),
            other => other.clone(),
        }
    }

    /// A constant of the new size for one use.
    fn copy_constant(&self, module: &mut Module, id: OperationId, index: usize, dimensions: &[usize]) {
        let value = module.operation(id).operands[index];
        let Some(constant) = module.defining_operation(value) else { return };
        let Some((block, position)) = module.position(constant) else { return };
        let kind = self.retyped(module.type_of(value), dimensions);
        let Some(number) = module.operation(constant).attributes.get("value").and_then(Attribute::number) else {
            return;
        };
        let splat = Attribute::Splat { value: Box::new(number.clone()), kind: kind.clone() };
        let name = module.value(value).name.clone();
        let new = NewOperation {
            name: "arith.constant",
            operands: Vec::new(),
            attributes: vec![("value", splat)],
            result: (kind, &name),
            like: constant,
        };
        let copy = module.insert(block, position + 1, new);
        module.set_operand(id, index, copy);
    }

    /// New bounds, the element at which an iteration's tiles begin, and the masks of the first.
    fn change_bounds(&self, module: &mut Module) {
        let i32s = || Type::Integer(32);
        let Some(parts) = module.for_loop(self.loop_id) else { return };
        let (lower, upper, induction, body) = (parts.lower, parts.upper, parts.induction, parts.body);
        let carried: Vec<_> = self.followers.iter().map(|k| (parts.initial[*k], parts.carried[*k])).collect();
        let like = self.loop_id;
        let Some((block, _)) = module.position(like) else { return };
        let number = |module: &mut Module, n: u64| {
            let value = Attribute::Integer { value: i128::from(n), kind: i32s() };
            let attributes = vec![("value", value)];
            let new =
                NewOperation { name: "arith.constant", operands: Vec::new(), attributes, result: (i32s(), "c"), like };
            module.insert(block, 0, new)
        };
        let [source, below_source, step, below_step] =
            [self.source, self.source - 1, self.step, self.step - 1].map(|n| number(module, n));
        let before = |module: &mut Module, name: &str, a: ValueId, b: ValueId, called: &str| {
            let (operands, result) = (vec![a, b], (i32s(), called));
            let at = module.position(like).map_or(0, |(_, at)| at);
            module.insert(block, at, NewOperation { name, operands, attributes: Vec::new(), result, like })
        };
        // From 0 on: the source's span, and what whole steps cover.
        let up = before(module, "arith.addi", upper, below_source, "up");
        let times = before(module, "arith.divsi", up, source, "source_trips");
        let end = before(module, "arith.muli", times, source, "span");
        let up = before(module, "arith.addi", end, below_step, "up");
        let times = before(module, "arith.divsi", up, step, "steps");
        let covered = before(module, "arith.muli", times, step, "covered");
        let begin = before(module, "arith.subi", end, covered, "begin");
        for (index, value) in [begin, end, step].into_iter().enumerate() {
            module.set_operand(self.loop_id, index, value);
        }
        // Where the tiles of an iteration begin.
        let users: Vec<_> = module.uses(induction).to_vec();
        let inside = |module: &mut Module, at: usize, name: &str, operands: Vec<ValueId>, kind: Type, called: &str| {
            let new = NewOperation { name, operands, attributes: Vec::new(), result: (kind, called), like };
            module.insert(body, at, new)
        };
        let first = inside(module, 0, "arith.maxsi", vec![induction, lower], i32s(), "first");
        for user in users {
            module.set_operand(user.operation, user.index, first);
        }
        for (initial, carried) in carried {
            let name = module.value(carried).name.clone();
            let users: Vec<_> = module.uses(carried).to_vec();
            let value = inside(module, 1, "arith.addi", vec![initial, first], i32s(), &name);
            for user in users {
                module.set_operand(user.operation, user.index, value);
            }
        }
        if self.masks.is_empty() {
            return;
        }
        let at = self.followers.len() + 1;
        let next = inside(module, at, "arith.addi", vec![induction, step], i32s(), "next");
        let left = inside(module, at + 1, "arith.subi", vec![next, first], i32s(), "left");
        let row = |element: Type| Type::Tensor {
            shape: vec![Dimension::Known(self.step)],
            element: Box::new(element),
            encoding: None,
        };
        let integer = |n: u64| Attribute::Integer { value: i128::from(n), kind: Type::Integer(32) };
        let range = NewOperation {
            name: "tt.make_range",
            operands: Vec::new(),
            attributes: vec![("start", integer(0)), ("end", integer(self.step))],
            result: (row(i32s()), "columns"),
            like,
        };
        let range = module.insert(body, at + 2, range);
        let left = inside(module, at + 3, "tt.splat", vec![left], row(i32s()), "left");
        let predicate = vec![("predicate", Attribute::Enumeration("slt".into()))];
        let compare = NewOperation {
            name: "arith.cmpi",
            operands: vec![range, left],
            attributes: predicate,
            result: (row(Type::Integer(1)), "counts"),
            like,
        };
        let counts = module.insert(body, at + 4, compare);
        for mask in &self.masks {
            self.mask(module, mask, counts);
        }
    }

    /// Masks a value after the operation that makes it.
    fn mask(&self, module: &mut Module, mask: &Mask, counts: ValueId) {
        let Mask { value, neutral, dimension, only } = *mask;
        let Some(maker) = module.defining_operation(value) else { return };
        let Some((block, mut at)) = module.position(maker) else { return };
        let kind = module.type_of(value).clone();
        let name = module.value(value).name.clone();
        let users = only.map_or_else(|| self.users(module, value), |one| vec![one]);
        let mut insert = |module: &mut Module, new: NewOperation<'_>| {
            at += 1;
            module.insert(block, at, new)
        };
        let (mut condition, mut shape) = (counts, vec![self.step]);
        let rank = extents(module, value).len();
        let of = |shape: &[u64]| Type::Tensor {
            shape: shape.iter().map(|n| Dimension::Known(*n)).collect(),
            element: Box::new(Type::Integer(1)),
            encoding: None,
        };
        for axis in (0..rank).filter(|axis| *axis != dimension) {
            shape.insert(axis.min(shape.len()), 1);
            let axis = Attribute::Integer { value: axis as i128, kind: Type::Integer(32) };
            let new = NewOperation {
                name: "tt.expand_dims",
                operands: vec![condition],
                attributes: vec![("axis", axis)],
                result: (of(&shape), "counts"),
                like: maker,
            };
            condition = insert(module, new);
        }
        let whole = extents(module, value);
        let new = NewOperation {
            name: "tt.broadcast",
            operands: vec![condition],
            attributes: Vec::new(),
            result: (of(&whole), "counts"),
            like: maker,
        };
        condition = insert(module, new);
        let number = match neutral {
            Neutral::Zero => 0.0,
            Neutral::Least => f64::NEG_INFINITY,
            Neutral::Greatest => f64::INFINITY,
        };
        let element = Attribute::Float { value: FloatValue(number), kind: kind.element().clone() };
        let splat = Attribute::Splat { value: Box::new(element), kind: kind.clone() };
        let new = NewOperation {
            name: "arith.constant",
            operands: Vec::new(),
            attributes: vec![("value", splat)],
            result: (kind.clone(), "neutral"),
            like: maker,
        };
        let constant = insert(module, new);
        let new = NewOperation {
            name: "arith.select",
            operands: vec![condition, value, constant],
            attributes: vec![(FIRST_ITERATION, Attribute::Unit)],
            result: (kind, &name),
            like: maker,
        };
        let masked = insert(module, new);
        for (operation, index) in users {
            module.set_operand(operation, index, masked);
        }
    }

    fn users(&self, module: &Module, value: ValueId) -> Vec<(OperationId, usize)> {
        let inside = module.walk(self.loop_id);
        inside
            .flat_map(|id| module.operation(id).operands.iter().enumerate().map(move |(index, v)| (id, index, *v)))
            .filter(|(_, _, v)| *v == value)
            .map(|(id, index, _)| (id, index))
            .collect()
    }
}
