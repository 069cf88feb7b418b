//! Values that change from iteration to iteration, and values that depend on tiles.

use crate::mlir::{Definition, ForLoop, Module, OperationId, ValueId};

use super::views::is_view;
use crate::operations::{is_tile, memory};

/// Facts about the values that one loop defines.
#[derive(Debug)]
pub(super) struct Facts {
    varies: Vec<bool>,
    from_tiles: Vec<bool>,
}

impl Facts {
    /// Returns whether a value may differ between iterations.
    pub fn varies(&self, value: ValueId) -> bool {
        self.varies[value.index()]
    }

    /// Returns whether a value depends on data that the loop loads or on results of MMAs.
    pub fn is_from_tiles(&self, value: ValueId) -> bool {
        self.from_tiles[value.index()]
    }

    pub fn new(module: &Module, parts: &ForLoop<'_>) -> Facts {
        let mut facts =
            Facts { varies: vec![false; module.value_count()], from_tiles: vec![false; module.value_count()] };
        facts.varies[parts.induction.index()] = true;
        for value in parts.carried {
            facts.varies[value.index()] = carried_changes(module, parts, *value);
        }
        loop {
            let mut changed = false;
            for id in &module.block(parts.body).operations {
                changed |= facts.update(module, *id);
            }
            for (carried, yielded) in parts.carried.iter().zip(parts.yielded) {
                if facts.is_from_tiles(*yielded) && !facts.is_from_tiles(*carried) {
                    facts.from_tiles[carried.index()] = true;
                    changed = true;
                }
            }
            if !changed {
                return facts;
            }
        }
    }

    fn update(&mut self, module: &Module, id: OperationId) -> bool {
        let operation = module.operation(id);
        let is_memory = memory(&operation.name).is_some();
        let moves_tiles = (is_memory && operation.operands.iter().any(|v| is_tile(module.type_of(*v))))
            || operation.name.starts_with("tt.descriptor_");
        // Nested operations count as its operands.
        let nested = || module.walk(id).flat_map(|inner| module.operation(inner).operands.iter());
        let varies = is_memory
            || !operation.regions.is_empty() && !matches!(operation.name.as_str(), "tt.reduce" | "tt.scan")
            || nested().any(|value| self.varies(*value));
        let from_tiles = moves_tiles
            || operation.name == "tt.load" && operation.results.iter().any(|v| module.type_of(*v).is_tensor())
            || operation.name == "tt.dot"
            || nested().any(|value| self.is_from_tiles(*value));
        let mut changed = false;
        for result in &operation.results {
            for (fact, now) in [(&mut self.varies, varies), (&mut self.from_tiles, from_tiles)] {
                changed |= now && !std::mem::replace(&mut fact[result.index()], now);
            }
        }
        changed
    }
}

/// Returns whether a carried value becomes something that the loop computes; otherwise it only moves from place to
/// place.
fn carried_changes(module: &Module, parts: &ForLoop<'_>, value: ValueId) -> bool {
    let mut at = value;
    for _ in 0..=parts.carried.len() {
        let Some(index) = parts.carried.iter().position(|carried| *carried == at) else { return true };
        at = parts.yielded[index];
        while let Some(view) = view_in_body(module, parts, at) {
            let Some(operand) = module.operation(view).operands.first() else { return true };
            at = *operand;
        }
        if !is_in_body(module, parts, at) {
            return false;
        }
    }
    false
}

fn view_in_body(module: &Module, parts: &ForLoop<'_>, value: ValueId) -> Option<OperationId> {
    let id = module.defining_operation(value)?;
    (module.operation(id).block == Some(parts.body) && is_view(&module.operation(id).name)).then_some(id)
}

/// Returns whether a value is defined by the body, at its top level.
pub(super) fn is_in_body(module: &Module, parts: &ForLoop<'_>, value: ValueId) -> bool {
    match module.definition(value) {
        Definition::Result { operation, .. } => module.operation(operation).block == Some(parts.body),
        Definition::Argument { block, .. } => block == parts.body,
    }
}
