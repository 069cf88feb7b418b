//! Operations of several results, such as `tt.split` and `tt.reduce` with indices: one for each result that is read.
//!
//! A tile operation has one result. What reads another result reads that of a copy; where the copies stay next to each other the
//! compiler finds that they are the same and does the work once.

use crate::mlir::{Module, OperationId};
use crate::operations::is_pure;
use std::collections::HashMap;

/// The module with at most one result read of each pure operation of a function.
pub(crate) fn split(mut module: Module, function: OperationId) -> Module {
    let several: Vec<OperationId> = module
        .walk(function)
        .filter(|id| module.operation(*id).results.len() > 1 && is_pure(module.operation(*id)))
        .collect();
    for id in &several {
        let results = module.operation(*id).results.clone();
        let read = results.iter().copied().filter(|value| !module.uses(*value).is_empty());
        for value in read.skip(1).collect::<Vec<_>>() {
            let mut copies = HashMap::new();
            let place = results.iter().position(|other| *other == value).unwrap_or(0);
            module.clone_before(*id, *id, &mut copies, &format!("_{place}"));
            if let Some(copy) = copies.get(&value) {
                module.replace_uses(value, *copy);
            }
        }
    }
    if !several.is_empty() {
        module.number_uses();
    }
    module
}
