//! The role of TTIR operations in a loop of tiles.

use crate::mlir::{Module, OperationId, Type};
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
