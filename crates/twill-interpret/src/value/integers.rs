//! Integers of a number of bits, held with their signs.

use twill_triton::mlir::Type;

/// Bits of an integer type.
pub(crate) fn bits(element: &Type) -> u32 {
    element.scalar_bits().unwrap_or(64).clamp(1, 64)
}

/// An integer truncated to this type; a truth value is 0 or 1.
pub(crate) fn wrapped(x: i64, element: &Type) -> i64 {
    match bits(element) {
        1 => x & 1,
        bits => x << (64 - bits) >> (64 - bits),
    }
}

/// The same bits as an integer without a sign.
pub(crate) fn unsigned(x: i64, element: &Type) -> u64 {
    x as u64 & (u64::MAX >> (64 - bits(element)))
}
