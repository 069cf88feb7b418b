//! Values that advance with a loop, and their uses.

use std::collections::BTreeSet;

use super::classes::Node;
use super::{Refused, extents};
use crate::mlir::{Definition, ForLoop, Module, Type, ValueId};
use crate::operations::memory;

/// Carried values of 32 bits that go on by the loop's step in every iteration.
pub(super) fn carried(module: &Module, parts: &ForLoop<'_>, step: u64) -> Vec<usize> {
    let goes_on = |k: &usize| {
        let (carried, yielded) = (parts.carried[*k], parts.yielded[*k]);
        let Some(id) = module.defining_operation(yielded) else { return false };
        let operation = module.operation(id);
        let is_step = |value: ValueId| module.integer_constant(value) == Some(i128::from(step));
        let goes = match operation.operands.as_slice() {
            [a, b] => *a == carried && is_step(*b) || *b == carried && is_step(*a),
            _ => false,
        };
        goes && operation.name == "arith.addi" && *module.type_of(carried) == Type::Integer(32)
    };
    (0..parts.carried.len()).filter(goes_on).collect()
}

/// The dimensions of loaded tiles that begin at the induction variable, and why there are other addresses that follow it.
pub(super) fn tiles(
    module: &Module,
    parts: &ForLoop<'_>,
    follows: &[ValueId],
    step: u64,
) -> Result<Vec<Node>, Refused> {
    let mut found = Vec::new();
    for id in &module.block(parts.body).operations {
        let operation = module.operation(*id);
        let moves =
            operation.name.starts_with("tt.descriptor_") || matches!(operation.name.as_str(), "tt.load" | "tt.store");
        if !moves {
            continue;
        }
        let moves_on = |value: &ValueId| depends(module, parts, follows, *value);
        if operation.name != "tt.descriptor_load" {
            if operation.operands.iter().any(moves_on) && operation.name != "tt.descriptor_store" {
                return Err((*id, "tiles along it must be loaded through tensor descriptors".into()));
            }
            continue;
        }
        for (d, index) in operation.operands.iter().skip(1).enumerate() {
            if !depends(module, parts, follows, *index) {
                continue;
            }
            let Some(value) = operation.results.first() else { continue };
            if !is_ahead(module, parts, follows, *index) || extents(module, *value).get(d) != Some(&step) {
                return Err((*id, "a tile must begin at the loop's variable and be as long as its step".into()));
            }
            found.push(Node::Value(*value, d));
        }
    }
    Ok(found)
}

/// The values that advance with the loop say where tiles begin and which elements they have, and nothing else: as a
/// number of iterations, say, it would be another one.
pub(super) fn only_places(
    module: &Module,
    parts: &ForLoop<'_>,
    follows: &[ValueId],
    runs: &dyn Fn(Node) -> bool,
) -> Result<(), Refused> {
    let (mut seen, mut work) = (BTreeSet::new(), follows.to_vec());
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        for used in module.uses(value) {
            let operation = module.operation(used.operation);
            let is_range = |value: &ValueId| {
                let maker = module.defining_operation(*value);
                maker.is_some_and(|id| module.operation(id).name == "tt.make_range") && runs(Node::Value(*value, 0))
            };
            match operation.name.as_str() {
                "arith.addi" => {
                    let other = operation.operands.iter().enumerate().find(|(index, _)| *index != used.index);
                    let is_tile = module.type_of(value).is_tensor();
                    let fits = |v: &ValueId| if is_tile { is_range(v) } else { is_invariant(module, parts, *v) };
                    if !other.is_some_and(|(_, v)| fits(v)) {
                        let why = "its variable is added to something else than where tiles begin";
                        return Err((used.operation, why.into()));
                    }
                    if !is_tile {
                        work.extend(&operation.results);
                    }
                }
                "tt.splat" => work.extend(&operation.results),
                "tt.descriptor_load" | "scf.yield" => {}
                _ => {
                    return Err((
                        used.operation,
                        "its variable is used for something else than where tiles begin".into(),
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Returns whether a value is computed from what goes on with the loop.
fn depends(module: &Module, parts: &ForLoop<'_>, follows: &[ValueId], value: ValueId) -> bool {
    let (mut seen, mut work) = (BTreeSet::new(), vec![value]);
    while let Some(value) = work.pop() {
        if follows.contains(&value) {
            return true;
        }
        if let Definition::Result { operation, .. } = module.definition(value)
            && module.operation(operation).block == Some(parts.body)
            && seen.insert(value)
        {
            work.extend(&module.operation(operation).operands);
        }
    }
    false
}

/// Returns whether a value is what goes on with the loop and something that the loop does not change.
fn is_ahead(module: &Module, parts: &ForLoop<'_>, follows: &[ValueId], value: ValueId) -> bool {
    if follows.contains(&value) {
        return true;
    }
    let Some(id) = module.defining_operation(value) else { return false };
    match (module.operation(id).name.as_str(), module.operation(id).operands.as_slice()) {
        ("arith.addi", [a, b]) => {
            let begins =
                |at: ValueId, from: ValueId| is_ahead(module, parts, follows, at) && is_invariant(module, parts, from);
            begins(*a, *b) || begins(*b, *a)
        }
        _ => false,
    }
}

/// Returns whether a value is the same in all iterations.
fn is_invariant(module: &Module, parts: &ForLoop<'_>, value: ValueId) -> bool {
    let (mut seen, mut work) = (BTreeSet::new(), vec![value]);
    while let Some(value) = work.pop() {
        match module.definition(value) {
            Definition::Argument { block, .. } if block == parts.body => return false,
            Definition::Result { operation, .. } if module.operation(operation).block == Some(parts.body) => {
                if memory(&module.operation(operation).name).is_some() {
                    return false;
                }
                if seen.insert(value) {
                    work.extend(&module.operation(operation).operands);
                }
            }
            _ => {}
        }
    }
    true
}
