//! The values that are data.
//!
//! A value is *needed* if what the kernel stores depends on it other than through addresses, offsets, masks, bounds or
//! branches. Everything else is the arithmetic of addresses, which belongs to the unit that moves data.

use crate::mlir::{Definition, Module, OperationId, ValueId};

use crate::operations::{Memory, memory};

/// For every value of the module by its index: whether it is needed.
pub(super) fn values(module: &Module, function: OperationId) -> Vec<bool> {
    let mut needed = vec![false; module.value_count()];
    let mut work: Vec<ValueId> = module.walk(function).flat_map(|id| roots(module, id)).collect();
    while let Some(value) = work.pop() {
        if !std::mem::replace(&mut needed[value.index()], true) {
            work.extend(sources(module, value));
        }
    }
    needed
}

/// Data that an operation makes visible outside the kernel.
fn roots(module: &Module, id: OperationId) -> Vec<ValueId> {
    let operation = module.operation(id);
    let operands = &operation.operands;
    match memory(&operation.name) {
        Some(Memory::Load { .. }) => Vec::new(),
        Some(Memory::Store { data, .. } | Memory::Atomic { data, .. }) => {
            operands.get(data).copied().into_iter().collect()
        }
        None if !operation.results.is_empty() || !operation.regions.is_empty() => Vec::new(),
        None => match operation.name.as_str() {
            "scf.yield" | "scf.condition" | "tt.reduce.return" | "tt.scan.return" | "cf.br" | "cf.cond_br" => {
                Vec::new()
            }
            _ => operands.clone(),
        },
    }
}

/// The inputs of a needed value.
fn sources(module: &Module, value: ValueId) -> Vec<ValueId> {
    match module.definition(value) {
        Definition::Argument { block, index } => {
            let owner = module.region(module.block(block).region).operation;
            match module.for_loop(owner) {
                Some(parts) if index > 0 => vec![parts.initial[index - 1], parts.yielded[index - 1]],
                Some(_) => Vec::new(),
                None => every_source(module, owner),
            }
        }
        Definition::Result { operation: id, index } => {
            let operation = module.operation(id);
            if let Some(parts) = module.for_loop(id) {
                return vec![parts.initial[index], parts.yielded[index]];
            }
            match memory(&operation.name) {
                Some(Memory::Load { other, .. }) => {
                    other.and_then(|place| operation.operands.get(place)).copied().into_iter().collect()
                }
                Some(Memory::Store { .. } | Memory::Atomic { .. }) => Vec::new(),
                None if operation.name == "scf.if" => branches(module, id, index),
                None if operation.regions.is_empty() => operation.operands.clone(),
                None => every_source(module, id),
            }
        }
    }
}

/// The value that each branch of an `scf.if` gives.
fn branches(module: &Module, id: OperationId, index: usize) -> Vec<ValueId> {
    let blocks = module.operation(id).regions.iter().filter_map(|region| module.region(*region).blocks.first());
    let ends = blocks.filter_map(|block| module.terminator(*block));
    ends.filter_map(|end| module.operation(end).operands.get(index).copied()).collect()
}

/// Every operand of an operation with regions and of the ends of its blocks.
fn every_source(module: &Module, id: OperationId) -> Vec<ValueId> {
    let regions = module.operation(id).regions.iter();
    let blocks = regions.flat_map(|region| module.region(*region).blocks.iter());
    let ends = blocks.filter_map(|block| module.terminator(*block));
    std::iter::once(id).chain(ends).flat_map(|id| module.operation(id).operands.iter().copied()).collect()
}
