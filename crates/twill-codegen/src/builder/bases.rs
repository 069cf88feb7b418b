//! What addresses are counted from, so that it is known which accesses may be of the same memory. Different arguments are taken to be
//! different memory.

use std::collections::BTreeSet;
use twill_triton::mlir::{BlockId, Definition, Module, OperationId, ValueId};

/// What an address is counted from: an argument, after so many loads of addresses. What a table of addresses points to is taken to
/// be other memory than the table.
pub(crate) type Base = (ValueId, u32);

/// Most loads of an address after one another that are followed.
const LOADS: u32 = 8;

/// Whether two accesses may be of the same memory. An address that is counted from nothing known may be any.
pub(crate) fn may_meet(a: &BTreeSet<Base>, b: &BTreeSet<Base>) -> bool {
    a.is_empty() || b.is_empty() || !a.is_disjoint(b)
}

/// What an address may be counted from; nothing where that is not known.
pub(crate) fn bases(module: &Module, function: OperationId, address: ValueId) -> BTreeSet<Base> {
    let (mut found, mut seen, mut work) = (BTreeSet::new(), BTreeSet::new(), vec![(address, 0)]);
    while let Some((value, loads)) = work.pop() {
        if !seen.insert((value, loads)) {
            continue;
        }
        if module.arguments(function).contains(&value) {
            found.insert((value, loads));
            continue;
        }
        let sources = match module.definition(value) {
            Definition::Argument { block, index } => incoming(module, block, index),
            Definition::Result { operation: id, index } if module.operation(id).name.starts_with("scf.") => {
                outgoing(module, id, index)
            }
            Definition::Result { operation: id, .. } => {
                let operation = module.operation(id);
                let counted = match operation.name.as_str() {
                    "arith.select" => 1..3,
                    "arith.addi" | "tt.join" | "tt.cat" => 0..2,
                    "tt.load" if loads == LOADS => return BTreeSet::new(),
                    _ => 0..1,
                };
                let deeper = loads + u32::from(operation.name == "tt.load");
                let operands = operation.operands.get(counted).unwrap_or_default();
                work.extend(operands.iter().map(|operand| (*operand, deeper)));
                continue;
            }
        };
        let Some(sources) = sources else { return BTreeSet::new() };
        work.extend(sources.into_iter().map(|source| (source, loads)));
    }
    found
}

/// The values that an argument of a loop's block may be; `None` where that is not known.
fn incoming(module: &Module, block: BlockId, index: usize) -> Option<Vec<ValueId>> {
    let id = module.region(module.block(block).region).operation;
    let parts = module.for_loop(id)?;
    match index.checked_sub(1) {
        // The iteration is no address.
        None => Some(Vec::new()),
        Some(k) => Some(vec![*parts.initial.get(k)?, *parts.yielded.get(k)?]),
    }
}

/// The values that a result of a loop or a branch may be; `None` where that is not known.
fn outgoing(module: &Module, id: OperationId, index: usize) -> Option<Vec<ValueId>> {
    let operation = module.operation(id);
    if let Some(parts) = module.for_loop(id) {
        return Some(vec![*parts.initial.get(index)?, *parts.yielded.get(index)?]);
    }
    if operation.name != "scf.if" {
        return None;
    }
    let ways = operation.regions.iter().map(|region| {
        let last = module.region(*region).blocks.last().and_then(|block| module.terminator(*block))?;
        module.operation(last).operands.get(index).copied()
    });
    ways.collect()
}
