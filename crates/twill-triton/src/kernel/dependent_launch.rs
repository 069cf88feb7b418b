//! Programmatic dependent launch (PTX ISA, `griddepcontrol`): a grid may start before those that it depends on have ended.

use crate::mlir::{Attribute, Module, Operation, OperationId};

/// Waits until the grids before it have ended and what they wrote can be read.
const WAIT: &str = "griddepcontrol.wait";
/// Lets the grids after it start; each CTA that ends does so too.
const TRIGGER: &str = "griddepcontrol.launch_dependents";

/// The module without a function's waits and triggers, and whether there was a wait.
///
/// A program that waits before it does anything else is as right as one that waits later. One that triggers only as it ends is as
/// right as one that triggers earlier, since grids that read what it writes wait for its end all the same.
pub(crate) fn taken_out(mut module: Module, function: OperationId) -> (Module, bool) {
    let is_read = |id: OperationId| module.operation(id).results.iter().any(|value| !module.uses(*value).is_empty());
    let controls = module.walk(function).filter(|id| !is_read(*id));
    let found: Vec<(OperationId, bool)> =
        controls.filter_map(|id| Some((id, grid_control(module.operation(id))?))).collect();
    for (id, _) in &found {
        module.remove(*id);
    }
    if !found.is_empty() {
        module.number_uses();
    }
    (module, found.iter().any(|(_, waits)| *waits))
}

/// Of an operation of Triton 3.9, or inline assembly, that is nothing but `griddepcontrol`, whether it waits.
pub fn grid_control(operation: &Operation) -> Option<bool> {
    match operation.name.as_str() {
        "tt.grid_dependency_wait" => return Some(true),
        "tt.grid_dependency_launch_dependents" => return Some(false),
        _ => {}
    }
    if operation.name != "tt.elementwise_inline_asm" || !operation.operands.is_empty() {
        return None;
    }
    let Some(Attribute::String(text)) = operation.attributes.get("asm_string") else { return None };
    let lines = text.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code));
    let instructions: Vec<&str> =
        lines.flat_map(|line| line.split(';')).map(str::trim).filter(|one| !one.is_empty()).collect();
    let all_known = instructions.iter().all(|one| matches!(*one, WAIT | TRIGGER));
    (all_known && !instructions.is_empty()).then(|| instructions.contains(&WAIT))
}
