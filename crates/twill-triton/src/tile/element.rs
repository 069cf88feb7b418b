//! Types of the elements of tiles.

use std::fmt;

use crate::mlir::{FloatKind, Type};

/// The type of an element of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// A floating-point number.
    Float(FloatKind),
    /// An integer of N bits.
    Integer(u32),
}

impl Element {
    /// The element type of a value, if it is one that tiles can have.
    pub fn of(kind: &Type) -> Option<Element> {
        match kind.element() {
            Type::Integer(bits @ (1 | 8 | 16 | 32 | 64)) => Some(Element::Integer(*bits)),
            Type::Float(kind) if matches!(kind.bits(), 8 | 16 | 32 | 64) => Some(Element::Float(*kind)),
            _ => None,
        }
    }

    /// Bits of one element.
    pub fn bits(self) -> u32 {
        match self {
            Element::Float(kind) => kind.bits(),
            Element::Integer(bits) => bits,
        }
    }

    /// Returns whether it is an integer or a truth value.
    pub fn is_integer(self) -> bool {
        matches!(self, Element::Integer(_))
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Float(kind) => f.write_str(kind.name()),
            Element::Integer(bits) => write!(f, "i{bits}"),
        }
    }
}
