//! The types of the results of an operation in custom form.

use super::types::Type;

/// The types as they are written after the `:`.
#[derive(Debug, Default)]
pub(super) struct WrittenTypes {
    /// Those before an arrow, or all if there is none.
    pub(super) before: Vec<Type>,
    /// Those after `->` or `to`.
    pub(super) after: Option<Vec<Type>>,
}

/// The types of `count` results; `None` if they do not follow from what is written.
pub(super) fn result_types(name: &str, count: usize, written: WrittenTypes) -> Option<Vec<Type>> {
    let WrittenTypes { before, after } = written;
    if let Some(types) = after {
        return match (&types[..], name) {
            // Only the first of the two, which are the same.
            ([kind], "tt.split") => Some(vec![kind.clone(); 2]),
            _ => Some(types),
        };
    }
    let one = |kind: Option<Type>| kind.map(|kind| vec![kind]);
    match name {
        "arith.cmpi" | "arith.cmpf" => one(before.first().map(|kind| kind.with_element(Type::Integer(1)))),
        "tt.load" => one(before.first().and_then(Type::pointed_to)),
        "arith.select" | "tt.make_tensor_descriptor" => one(before.into_iter().next_back()),
        "arith.mulsi_extended" | "arith.mului_extended" => before.first().map(|kind| vec![kind.clone(); 2]),
        _ if before.len() == count => Some(before),
        // The type of the result, or of the first operand, which has the type of the result; others may follow.
        _ => one(before.into_iter().next()),
    }
}
