//! Tiles that a loop carries and that an MMA of its next iteration reads from shared memory: they are copied where they are read.
//!
//! A tile is stored to shared memory in the iteration that makes it, and what the first iteration reads would be in no slot. A copy
//! belongs to the iteration that reads it, and that is where it is stored.

use crate::kernel::carried_loads::copied_before;
use crate::kernel::views;
use crate::mlir::{Module, OperationId, ValueId};

/// The module with every MMA in a loop of a function reading copies of the carried tiles that it needs in shared memory.
pub(crate) fn copied_where_read(mut module: Module, function: OperationId) -> Module {
    let mut reads: Vec<(OperationId, usize, ValueId)> = Vec::new();
    for parts in module.for_loops(function) {
        let changes = |k: &usize| parts.yielded[*k] != parts.carried[*k] && parts.yielded[*k] != parts.initial[*k];
        let carried: Vec<ValueId> = (0..parts.carried.len()).filter(changes).map(|k| parts.carried[k]).collect();
        let Some(body) = module.operation(parts.terminator).block else { continue };
        let all = module.block(body).operations.iter().copied();
        for mma in all.filter(|id| module.operation(*id).name == "tt.dot") {
            for k in [0, 1] {
                let Some((at, place, value)) = origin(&module, mma, k) else { continue };
                // A left operand may come from registers, unless it is transposed.
                let may_be_in_registers = k == 0 && at == mma;
                if carried.contains(&value) && !may_be_in_registers {
                    reads.push((at, place, value));
                }
            }
        }
    }
    // Two MMAs may read one transposition.
    reads.sort_unstable();
    reads.dedup();
    for (at, place, value) in &reads {
        let copy = copied_before(&mut module, *at, *value);
        module.set_operand(*at, *place, copy);
    }
    if !reads.is_empty() {
        module.number_uses();
    }
    module
}

/// Where the tile behind the views of an operand is read: by which operation, as which of its operands.
fn origin(module: &Module, mut at: OperationId, mut k: usize) -> Option<(OperationId, usize, ValueId)> {
    loop {
        let value = module.operation(at).operands.get(k).copied()?;
        let behind =
            module.defining_operation(value).filter(|id| module.operation(*id).block == module.operation(at).block);
        match behind.and_then(|id| Some((id, views::viewed(module.operation(id))?))) {
            Some(view) => (at, k) = view,
            None => return Some((at, k, value)),
        }
    }
}
