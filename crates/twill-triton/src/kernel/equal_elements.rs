//! Tiles of which a loop loads one element many times: the scale of a block of columns, the zero of a group of rows. What is equal
//! is loaded once, and broadcast.
//!
//! Along a dimension the pointers are equal by [axis information](crate::axis_info) (Triton's *constancy*), where
//! `offsets % extent` may be taken for `offsets`: it is the same before the end, and what is computed of elements beyond it is
//! never written ([`super::wrapped`]). The element that is loaded is the first, which the kernel itself loads too.

use super::affine::Reader;
use super::wrapped;
use crate::axis_info::AxisInfos;
use crate::mlir::{Attribute, Dimension, ForLoop, Module, NewOperation, OperationId, Type, ValueId};
use crate::operations;
use crate::tile::elementwise;
use std::collections::{HashMap, HashSet};

/// The module with loads in loops of a function that read each element once.
pub(crate) fn loaded_once(mut module: Module, function: OperationId) -> Module {
    let mut changed = false;
    for (load, dimension) in found(&module, function) {
        changed |= load_first(&mut module, load, dimension);
    }
    if changed {
        module.number_uses();
    }
    module
}

/// Loads of loops, with a dimension along which all that they read is equal.
fn found(module: &Module, function: OperationId) -> Vec<(OperationId, usize)> {
    let in_body = |parts: &ForLoop<'_>| {
        let body = module.block(parts.body).operations.iter().copied();
        body.filter(|id| is_tile(module, *id)).collect::<Vec<_>>()
    };
    let loops: Vec<(ForLoop<'_>, Vec<OperationId>)> =
        module.for_loops(function).map(|parts| (parts, in_body(&parts))).collect();
    if loops.iter().all(|(_, loads)| loads.is_empty()) {
        return Vec::new();
    }
    let unwrapped = without_wraps(module, function);
    let (own, through) = (AxisInfos::new(module, function), AxisInfos::new(&unwrapped, function));
    let mut all = Vec::new();
    for (parts, loads) in &loops {
        for load in loads {
            let operands = &module.operation(*load).operands;
            let shape = module.type_of(operands[0]).known_shape().unwrap_or_default();
            for (dimension, extent) in shape.iter().enumerate().filter(|(_, extent)| **extent > 1) {
                let are_equal = |infos: &AxisInfos<'_>| {
                    operands.iter().all(|v| infos.of(*v).get(dimension).is_some_and(|axis| axis.constancy >= *extent))
                };
                let is_hidden = || are_hidden(module, function, parts, *load, dimension);
                if are_equal(&own) || are_equal(&through) && is_hidden() {
                    all.push((*load, dimension));
                    // Of what is left of such a tile nothing is known here.
                    break;
                }
            }
        }
    }
    all
}

/// Whether an operation loads a tile through pointers, and nothing says that each of its elements is to be read.
fn is_tile(module: &Module, id: OperationId) -> bool {
    let operation = module.operation(id);
    operation.name == "tt.load"
        && !operation.attributes.flag("isVolatile")
        && operation.results.first().is_some_and(|tile| module.type_of(*tile).is_tensor())
}

/// The module in which no offsets of tiles begin again.
fn without_wraps(module: &Module, function: OperationId) -> Module {
    let mut changed = module.clone();
    for id in module.walk(function) {
        if let Some((x, value)) = wrapped_offsets(module, id) {
            changed.replace_uses(value, x);
        }
    }
    changed
}

/// The offsets of `offsets % extent`, and its result.
fn wrapped_offsets(module: &Module, id: OperationId) -> Option<(ValueId, ValueId)> {
    let operation = module.operation(id);
    match (operation.name.as_str(), operation.operands.as_slice(), operation.results.as_slice()) {
        ("arith.remsi", [x, _], [value]) if module.type_of(*value).is_tensor() => Some((*x, *value)),
        _ => None,
    }
}

/// Whether nothing is written of elements whose offsets along a dimension begin again, wherever they do in a load's operands.
fn are_hidden(
    module: &Module,
    function: OperationId,
    parts: &ForLoop<'_>,
    load: OperationId,
    dimension: usize,
) -> bool {
    let Some(loaded) = module.operation(load).results.first().copied() else { return false };
    let rank = module.type_of(loaded).known_shape().unwrap_or_default().len();
    let identity: Vec<Option<usize>> = (0..rank).map(Some).collect();
    let mut next: Vec<(ValueId, Vec<Option<usize>>)> =
        module.operation(load).operands.iter().map(|value| (*value, identity.clone())).collect();
    let mut seen = HashSet::new();
    while let Some((value, along)) = next.pop() {
        if !along.contains(&Some(dimension)) || !seen.insert((value, along.clone())) {
            continue;
        }
        if let Some(k) = parts.carried.iter().position(|v| *v == value) {
            next.extend([(parts.initial[k], along.clone()), (parts.yielded[k], along)]);
            continue;
        }
        let Some(id) = module.defining_operation(value) else {
            if module.type_of(value).is_tensor() {
                return false;
            }
            continue;
        };
        let operation = module.operation(id);
        if wrapped_offsets(module, id).is_some() {
            let reader = Reader::new(module, function, Some(parts));
            if reader.offsets(value, &along).is_none() {
                return false;
            }
            let wraps = reader.take_wraps();
            if !wraps
                .iter()
                .all(|wrap| wrap.dimension != dimension || wrapped::is_hidden(module, function, loaded, wrap))
            {
                return false;
            }
            continue;
        }
        match operation.name.as_str() {
            // All its elements are equal.
            "tt.splat" | "arith.constant" | "tt.make_range" => {}
            "tt.broadcast" => next.push((operation.operands[0], along)),
            "tt.expand_dims" => {
                let mut inner = along;
                let axis = operation.attributes.axis();
                if axis >= inner.len() {
                    return false;
                }
                inner.remove(axis);
                next.push((operation.operands[0], inner));
            }
            _ if is_by_elements(&operation.name) => {
                next.extend(operation.operands.iter().map(|operand| (*operand, along.clone())));
            }
            _ => return false,
        }
    }
    true
}

/// Whether an element of the result depends on the operands' elements in its place alone.
fn is_by_elements(name: &str) -> bool {
    name == "tt.addptr" || elementwise(name).is_some() || operations::is_conversion(name)
}

/// Has a load read its first elements along a dimension alone. `false` where its operands cannot be made so.
fn load_first(module: &mut Module, load: OperationId, dimension: usize) -> bool {
    let operands = module.operation(load).operands.clone();
    let mut first = First { can: HashMap::new(), made: HashMap::new() };
    let moving = moving_pointers(module, load);
    let step = moving.as_ref().map(|moving| [moving.initial, moving.amount]);
    let fixed = operands.iter().skip(usize::from(moving.is_some())).chain(step.iter().flatten());
    if !fixed.into_iter().all(|value| first.is_possible(module, *value, dimension)) {
        return false;
    }
    let Some(whole) = module.operation(load).results.first().copied() else { return false };
    if let Some(moving) = &moving {
        let [initial, amount] = [moving.initial, moving.amount].map(|value| first.of(module, value, dimension));
        module.set_operand(moving.around, moving.place, initial);
        module.set_operand(moving.step, 1, amount);
        for value in moving.values {
            let kind = with_one(module.type_of(value), dimension);
            module.set_type(value, kind);
        }
    }
    let parts: Vec<ValueId> = operands.iter().map(|value| first.of(module, *value, dimension)).collect();
    let kind = module.type_of(whole).clone();
    let mut copies = HashMap::new();
    module.clone_before(load, load, &mut copies, "_one");
    let Some(one) = copies.get(&whole).copied() else { return false };
    if let Some(id) = module.defining_operation(one) {
        module.replace_operands(id, parts);
    }
    module.set_type(one, with_one(&kind, dimension));
    let name = module.value(whole).name.clone();
    let broadcast = NewOperation {
        name: "tt.broadcast",
        operands: vec![one],
        attributes: vec![],
        result: (kind, &name),
        like: load,
    };
    let all = module.insert_before(load, broadcast);
    module.replace_uses(whole, all);
    module.remove(load);
    true
}

/// Pointers that a loop carries for one load, and moves on in each iteration.
struct MovingPointers {
    initial: ValueId,
    /// What they are moved by, and where.
    amount: ValueId,
    step: OperationId,
    /// The loop, and which of its operands they begin as.
    around: OperationId,
    place: usize,
    /// In the body, after the step, after the loop.
    values: [ValueId; 3],
}

/// The pointers of a load, if a loop carries them for it alone.
fn moving_pointers(module: &Module, load: OperationId) -> Option<MovingPointers> {
    let pointers = *module.operation(load).operands.first()?;
    let block = module.operation(load).block?;
    let around = module.region(module.block(block).region).operation;
    let parts = module.for_loop(around)?;
    let k = parts.carried.iter().position(|value| *value == pointers)?;
    let moved = parts.yielded[k];
    let step = module.defining_operation(moved)?;
    let &[from, amount] = module.operation(step).operands.as_slice() else { return None };
    let by = |value: ValueId| module.uses(value).iter().map(|usage| usage.operation).collect::<Vec<_>>();
    let is_alone = by(pointers).iter().all(|id| *id == load || *id == step)
        && by(moved) == [parts.terminator]
        && by(parts.results[k]).is_empty();
    let is_step = module.operation(step).name == "tt.addptr" && from == pointers;
    // Lower bound, upper bound and step come first.
    (is_alone && is_step).then(|| MovingPointers {
        initial: parts.initial[k],
        amount,
        step,
        around,
        place: 3 + k,
        values: [pointers, moved, parts.results[k]],
    })
}

/// A tile's type with one element along a dimension.
fn with_one(kind: &Type, dimension: usize) -> Type {
    let mut kind = kind.clone();
    if let Type::Tensor { shape, .. } = &mut kind
        && let Some(extent) = shape.get_mut(dimension)
    {
        *extent = Dimension::Known(1);
    }
    kind
}

/// The first elements of tiles along a dimension, made anew from what they are computed of.
struct First {
    can: HashMap<(ValueId, usize), bool>,
    made: HashMap<(ValueId, usize), ValueId>,
}

impl First {
    fn is_possible(&mut self, module: &Module, value: ValueId, dimension: usize) -> bool {
        if let Some(known) = self.can.get(&(value, dimension)) {
            return *known;
        }
        let found = self.find(module, value, dimension);
        self.can.insert((value, dimension), found);
        found
    }

    fn find(&mut self, module: &Module, value: ValueId, dimension: usize) -> bool {
        let extent = module.type_of(value).known_shape().and_then(|shape| shape.get(dimension).copied());
        if extent == Some(1) {
            return true;
        }
        let Some(id) = module.defining_operation(value).filter(|_| extent.is_some()) else { return false };
        let operation = module.operation(id);
        match operation.name.as_str() {
            "tt.splat" | "tt.make_range" => true,
            "arith.constant" => operation.attributes.get("value").and_then(Attribute::number).is_some(),
            "tt.broadcast" => self.is_possible(module, operation.operands[0], dimension),
            "tt.expand_dims" => {
                let axis = operation.attributes.axis();
                axis != dimension
                    && self.is_possible(module, operation.operands[0], dimension - usize::from(axis < dimension))
            }
            name if is_by_elements(name) && operation.results.len() == 1 => {
                let operands = operation.operands.clone();
                operands.iter().all(|v| !module.type_of(*v).is_tensor() || self.is_possible(module, *v, dimension))
            }
            _ => false,
        }
    }

    /// Of a value of which it is possible.
    fn of(&mut self, module: &mut Module, value: ValueId, dimension: usize) -> ValueId {
        if let Some(made) = self.made.get(&(value, dimension)) {
            return *made;
        }
        let made = self.make(module, value, dimension);
        self.made.insert((value, dimension), made);
        made
    }

    fn make(&mut self, module: &mut Module, value: ValueId, dimension: usize) -> ValueId {
        let kind = module.type_of(value).clone();
        if !kind.is_tensor() || kind.known_shape().and_then(|shape| shape.get(dimension).copied()) == Some(1) {
            return value;
        }
        let Some(id) = module.defining_operation(value) else { return value };
        let (name, axis) = (module.operation(id).name.clone(), module.operation(id).attributes.axis());
        let inner = if name == "tt.expand_dims" { dimension - usize::from(axis < dimension) } else { dimension };
        let operands: Vec<ValueId> = match name.as_str() {
            "tt.splat" | "tt.make_range" | "arith.constant" => module.operation(id).operands.clone(),
            _ => module.operation(id).operands.clone().into_iter().map(|v| self.of(module, v, inner)).collect(),
        };
        let to = with_one(&kind, dimension);
        if let ("tt.broadcast", [operand]) = (name.as_str(), operands.as_slice())
            && *module.type_of(*operand) == to
        {
            return *operand;
        }
        let mut copies = HashMap::new();
        module.clone_before(id, id, &mut copies, "_one");
        let Some(made) = copies.get(&value).copied() else { return value };
        if let Some(copy) = module.defining_operation(made) {
            module.replace_operands(copy, operands);
            let attributes = &module.operation(copy).attributes;
            if name == "tt.make_range" {
                let end = i128::from(attributes.integer("start").unwrap_or(0)) + 1;
                module.set_attribute(copy, "end", Attribute::Integer { value: end, kind: Type::Integer(32) });
            } else if let Some(number) = attributes.get("value").and_then(Attribute::number).cloned() {
                // A constant says its type, too.
                module.set_attribute(copy, "value", Attribute::Splat { value: Box::new(number), kind: to.clone() });
            }
        }
        module.set_type(made, to);
        made
    }
}
