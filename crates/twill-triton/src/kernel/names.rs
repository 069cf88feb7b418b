//! Names that people know.

use crate::mlir::{Module, OperationId, ValueId};

/// The Python variable that an operation's result is assigned to; for a result that goes straight into an expression, its
/// name in the TTIR if it has one that is more than a number, without the number that Triton appends.
pub(super) fn of_operation(module: &Module, id: OperationId) -> Option<String> {
    let operation = module.operation(id);
    let python = operation.location.as_ref().and_then(|location| location.name.clone());
    python.or_else(|| operation.results.first().and_then(|value| plain(module, *value)))
}

/// The name of a value from before the loop.
pub(super) fn of_value(module: &Module, value: ValueId) -> String {
    let named = module.defining_operation(value).and_then(|id| of_operation(module, id));
    named.or_else(|| plain(module, value)).unwrap_or_else(|| format!("%{}", module.value(value).name))
}

fn plain(module: &Module, value: ValueId) -> Option<String> {
    let name = module.value(value).name.split('#').next()?;
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    match name.rsplit_once('_') {
        Some((stem, number)) if !stem.is_empty() && is_number(number) => Some(stem.to_owned()),
        _ if is_number(name) => None,
        _ => Some(name.to_owned()),
    }
}
