//! The role of TTIR operations in a loop of tiles.

use crate::mlir::{Module, Operation, OperationId, Type, ValueId};
use crate::tile::{Combine, Transfer};

/// An operation that touches global memory, and which of its operands are data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Reads it.
    Load { transfer: Transfer, other: Option<usize> },
    /// Writes it.
    Store { transfer: Transfer, data: usize },
    /// Combines something with it.
    Atomic { transfer: Transfer, data: usize },
}

/// The memory operation of this name. Operands stand in the order of the generic form.
pub(crate) fn memory(operation: &str) -> Option<Memory> {
    use Transfer::{Pointer, Tma};
    Some(match operation {
        "tt.load" => Memory::Load { transfer: Pointer, other: Some(2) },
        "tt.descriptor_load" | "tt.descriptor_gather" => Memory::Load { transfer: Tma, other: None },
        "tt.store" => Memory::Store { transfer: Pointer, data: 1 },
        "tt.descriptor_store" => Memory::Store { transfer: Tma, data: 1 },
        "tt.descriptor_scatter" => Memory::Store { transfer: Tma, data: 3 },
        "tt.descriptor_reduce" => Memory::Atomic { transfer: Tma, data: 1 },
        "tt.atomic_rmw" => Memory::Atomic { transfer: Pointer, data: 1 },
        "tt.atomic_cas" => Memory::Atomic { transfer: Pointer, data: 2 },
        _ => return None,
    })
}

/// Returns whether it waits for other programs, or lets them go on (Triton 3.9): nothing may be moved past it.
pub(crate) fn is_synchronization(operation: &str) -> bool {
    matches!(operation, "tt.atomic_load" | "tt.atomic_store" | "tt.atomic_poll")
}

/// Returns whether others see what it does: it writes memory, or orders programs.
pub(crate) fn has_effect(operation: &str) -> bool {
    matches!(memory(operation), Some(Memory::Store { .. } | Memory::Atomic { .. }))
        || is_synchronization(operation)
        || matches!(operation, "tt.print" | "tt.assert")
}

/// Returns whether it changes the type of elements and nothing else.
pub fn is_conversion(operation: &str) -> bool {
    matches!(
        operation,
        "arith.truncf"
            | "arith.extf"
            | "arith.sitofp"
            | "arith.uitofp"
            | "arith.fptosi"
            | "arith.fptoui"
            | "arith.trunci"
            | "arith.extsi"
            | "arith.extui"
            | "arith.index_cast"
            | "tt.fp_to_fp"
    )
}

/// Returns whether it only computes where data stands.
pub(super) fn is_addressing(operation: &str) -> bool {
    matches!(
        operation,
        "tt.addptr"
            | "tt.advance"
            | "tt.make_tensor_descriptor"
            | "tt.make_tensor_ptr"
            | "tt.int_to_ptr"
            | "tt.ptr_to_int"
    )
}

/// Returns whether it does nothing at run time.
pub(super) fn is_hint(operation: &str) -> bool {
    matches!(operation, "llvm.intr.assume")
}

/// Returns whether an operation only computes its results from its operands, whatever it is: then nobody has to know it.
pub fn is_pure(operation: &Operation) -> bool {
    let name = operation.name.as_str();
    let is_of_values = ["tt.", "arith.", "math.", "ub."].iter().any(|dialect| name.starts_with(dialect));
    let is_effect = memory(name).is_some() || is_synchronization(name) || matches!(name, "tt.call" | "tt.return");
    let is_known_region = operation.regions.is_empty() != matches!(name, "tt.reduce" | "tt.scan");
    let may_have_effects = matches!(name, "tt.extern_elementwise" | "tt.elementwise_inline_asm");
    let is_said_pure = !may_have_effects || operation.attributes.flag("pure");
    is_of_values && !operation.results.is_empty() && !is_effect && is_known_region && is_said_pure
}

/// The dimension that an operation works along, of its operand or its result, whichever has more; all others of its operands and its
/// result run along each other. One that there is not if it works on elements; `None` where nothing is known.
pub fn axis_of(module: &Module, id: OperationId) -> Option<usize> {
    let operation = module.operation(id);
    let rank = |value: &ValueId| module.type_of(*value).known_shape().unwrap_or_default().len();
    let rank = || operation.operands.first().map_or(0, rank);
    match operation.name.as_str() {
        name if name.starts_with("arith.") || name.starts_with("math.") => Some(rank()),
        "tt.reduce" | "tt.scan" | "tt.gather" => Some(operation.attributes.axis()),
        "tt.join" | "tt.elementwise_inline_asm" | "tt.extern_elementwise" => Some(rank()),
        "tt.bitcast" | "tt.int_to_ptr" | "tt.ptr_to_int" | "tt.fp_to_fp" => Some(rank()),
        "tt.split" => rank().checked_sub(1),
        _ => None,
    }
}

/// The dimension of the result that a dimension of an operand runs along, where the operation works along an axis ([`axis_of`]) which
/// one of them may lack; given how many dimensions both have.
pub fn along_axis(axis: usize, of_operand: usize, of_result: usize, dimension: usize) -> Option<usize> {
    if of_operand + 1 == of_result {
        return Some(if dimension < axis { dimension } else { dimension + 1 });
    }
    let kept = (dimension != axis).then_some(dimension)?;
    match of_operand.checked_sub(of_result) {
        Some(0) => Some(kept),
        Some(1) => Some(if kept < axis { kept } else { kept - 1 }),
        _ => None,
    }
}

/// Returns whether a value holds a tile: a tensor, or a pointer to one.
pub(super) fn is_tile(kind: &Type) -> bool {
    match kind {
        Type::Tensor { .. } => true,
        Type::Pointer { pointee, .. } => pointee.is_tensor(),
        _ => false,
    }
}

/// How a `tt.reduce` combines two elements.
pub(crate) fn combine(module: &Module, reduce: OperationId) -> Combine {
    let Some(body) = module.body(reduce) else { return Combine::Other };
    let mut names = module.block(body).operations.iter().map(|id| module.operation(*id).name.as_str());
    match (names.next(), names.next(), names.next()) {
        (Some(name), Some("tt.reduce.return"), None) => match name {
            "arith.addf" => Combine::Sum,
            "arith.mulf" => Combine::Product,
            "arith.maxnumf" | "arith.maximumf" | "arith.maxsi" | "arith.maxui" => Combine::Maximum,
            "arith.minnumf" | "arith.minimumf" | "arith.minsi" | "arith.minui" => Combine::Minimum,
            _ => Combine::Other,
        },
        _ => Combine::Other,
    }
}
