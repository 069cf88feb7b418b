//! Names from the source.

use twill_triton::mlir::{Module, OperationId, ValueId};

/// The Python variable behind a value, or what comes nearest to it.
pub(crate) fn of_value(module: &Module, value: ValueId) -> String {
    let python = module.defining_operation(value).and_then(|id| module.operation(id).location.as_ref()?.name.clone());
    python.unwrap_or_else(|| {
        let name = module.value(value).name.split('#').next().unwrap_or_default().to_owned();
        match name.rsplit_once('_') {
            Some((stem, number)) if !stem.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => stem.to_owned(),
            _ => name,
        }
    })
}

/// The line of the source that an operation comes from.
pub(crate) fn line(module: &Module, id: OperationId) -> Option<u32> {
    module.operation(id).location.as_deref().map(|location| location.in_kernel().line)
}
