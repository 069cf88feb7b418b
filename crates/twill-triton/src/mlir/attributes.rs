//! The constants that operations carry.

use std::collections::BTreeMap;
use std::fmt;
use twill_graph::saturate;

use super::types::Type;

/// A floating-point constant. Two are equal if their bits are, so that a constant is equal to itself even if it is no
/// number.
#[derive(Debug, Clone, Copy)]
pub struct FloatValue(pub f64);

impl PartialEq for FloatValue {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for FloatValue {}

/// A constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribute {
    /// Present, and nothing more.
    Unit,
    /// `true` or `false`.
    Bool(bool),
    /// `64 : i32`; without a type it is an `i64`.
    Integer {
        /// The number.
        value: i128,
        /// Its type.
        kind: Type,
    },
    /// `1.0 : f32`; without a type it is an `f64`.
    Float {
        /// The number, as the nearest double.
        value: FloatValue,
        /// Its type.
        kind: Type,
    },
    /// `dense<1.0> : tensor<128xf32>`: one number in every element.
    Splat {
        /// The element: `Bool`, `Integer` or `Float`.
        value: Box<Attribute>,
        /// The type of the tensor.
        kind: Type,
    },
    /// A constant of a known type whose value is kept as text: `dense<[1, 2]> : tensor<2xi32>`.
    Typed {
        /// The value as written.
        text: String,
        /// Its type.
        kind: Type,
    },
    /// `"text"`, unescaped.
    String(String),
    /// A case of an enumeration by its name, such as `slt`, `tf32` or `evict_last`.
    Enumeration(String),
    /// `@name`.
    Symbol(String),
    /// A type.
    Type(Type),
    /// `array<i32: 1, 0>`.
    Integers(Vec<i64>),
    /// `[a, b]`.
    Array(Vec<Attribute>),
    /// `{a = b}`.
    Dictionary(Attributes),
    /// Any other attribute, as written, with white space made single blanks.
    Other(String),
}

impl Attribute {
    /// The type of a constant: what an `arith.constant` of it defines.
    pub fn constant_type(&self) -> Option<Type> {
        match self {
            Self::Bool(_) => Some(Type::Integer(1)),
            Self::Integer { kind, .. }
            | Self::Float { kind, .. }
            | Self::Splat { kind, .. }
            | Self::Typed { kind, .. } => Some(kind.clone()),
            _ => None,
        }
    }

    /// The one number in a constant: the constant itself, or the element of a splat.
    pub fn number(&self) -> Option<&Attribute> {
        match self {
            Self::Bool(_) | Self::Integer { .. } | Self::Float { .. } => Some(self),
            Self::Splat { value, .. } => Some(value),
            _ => None,
        }
    }
}

/// A dictionary of attributes, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes(BTreeMap<String, Attribute>);

impl Attributes {
    /// The attribute of this name.
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        self.0.get(name)
    }

    /// All attributes in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Attribute)> {
        self.0.iter().map(|(name, attribute)| (name.as_str(), attribute))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The attribute as an integer, if it is one that fits.
    pub fn integer(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Attribute::Integer { value, .. } => i64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// The dimension that `axis` names, as reductions and `tt.expand_dims` have it; the first where there is none.
    pub fn axis(&self) -> usize {
        self.integer("axis").map_or(0, saturate)
    }

    /// The attribute as a list of integers.
    pub fn integers(&self, name: &str) -> Option<&[i64]> {
        match self.get(name)? {
            Attribute::Integers(values) => Some(values),
            _ => None,
        }
    }

    /// The attribute as text: a string, a symbol, or the case of an enumeration.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Attribute::String(text) | Attribute::Enumeration(text) | Attribute::Symbol(text) => Some(text),
            _ => None,
        }
    }

    /// Returns whether the attribute is present as a unit or as `true`.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Attribute::Unit | Attribute::Bool(true)))
    }

    /// Sets an attribute, and gives back the one it replaces.
    pub(super) fn insert(&mut self, name: String, attribute: Attribute) -> Option<Attribute> {
        self.0.insert(name, attribute)
    }

    pub(super) fn forget(&mut self, prefix: &str) {
        self.0.retain(|name, _| !name.starts_with(prefix));
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Attribute> {
        self.0.remove(name)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Attribute> {
        self.0.get_mut(name)
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit => formatter.write_str("unit"),
            Self::Bool(value) => write!(formatter, "{value}"),
            Self::Integer { value, kind } => write!(formatter, "{value} : {kind}"),
            Self::Float { value, kind } => write!(formatter, "{:?} : {kind}", value.0),
            Self::Splat { value, kind } => write!(formatter, "dense<{value}> : {kind}"),
            Self::Typed { text, kind } => write!(formatter, "{text} : {kind}"),
            Self::String(text) => write!(formatter, "{text:?}"),
            Self::Enumeration(text) | Self::Other(text) => formatter.write_str(text),
            Self::Symbol(text) => write!(formatter, "@{text:?}"),
            Self::Type(kind) => write!(formatter, "{kind}"),
            Self::Integers(values) => write!(formatter, "array{values:?}"),
            Self::Array(items) => {
                formatter.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(formatter, "{comma}{item}")?;
                }
                formatter.write_str("]")
            }
            Self::Dictionary(attributes) => write!(formatter, "{attributes}"),
        }
    }
}

impl fmt::Display for Attributes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("{")?;
        for (index, (name, attribute)) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(formatter, "{comma}{name} = {attribute}")?;
        }
        formatter.write_str("}")
    }
}
