//! The types of values.

use std::fmt;

/// One extent of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// A number known at compile time.
    Known(u64),
    /// `?`, known at run time only. TTIR has none; a later stage rejects it with the place.
    Dynamic,
}

/// The floating-point formats of MLIR, named as MLIR spells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the formats' own")]
pub enum FloatKind {
    F16,
    BF16,
    TF32,
    F32,
    F64,
    F80,
    F128,
    F8E4M3FN,
    F8E4M3,
    F8E4M3FNUZ,
    F8E4M3B11FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E3M4,
    F8E8M0FNU,
    F6E2M3FN,
    F6E3M2FN,
    F4E2M1FN,
}

impl FloatKind {
    const NAMES: [(Self, &'static str, u32); 18] = [
        (Self::F16, "f16", 16),
        (Self::BF16, "bf16", 16),
        (Self::TF32, "tf32", 19),
        (Self::F32, "f32", 32),
        (Self::F64, "f64", 64),
        (Self::F80, "f80", 80),
        (Self::F128, "f128", 128),
        (Self::F8E4M3FN, "f8E4M3FN", 8),
        (Self::F8E4M3, "f8E4M3", 8),
        (Self::F8E4M3FNUZ, "f8E4M3FNUZ", 8),
        (Self::F8E4M3B11FNUZ, "f8E4M3B11FNUZ", 8),
        (Self::F8E5M2, "f8E5M2", 8),
        (Self::F8E5M2FNUZ, "f8E5M2FNUZ", 8),
        (Self::F8E3M4, "f8E3M4", 8),
        (Self::F8E8M0FNU, "f8E8M0FNU", 8),
        (Self::F6E2M3FN, "f6E2M3FN", 6),
        (Self::F6E3M2FN, "f6E3M2FN", 6),
        (Self::F4E2M1FN, "f4E2M1FN", 4),
    ];

    /// The format MLIR spells so.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, text, _)| *text == name).map(|(kind, ..)| *kind)
    }

    /// How MLIR spells the format.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, text, _)| text)
    }

    /// Bits of one number.
    pub fn bits(self) -> u32 {
        Self::NAMES.iter().find(|(kind, ..)| *kind == self).map_or(0, |(.., bits)| *bits)
    }
}

/// The type of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// `i32`: a signless integer of N bits.
    Integer(u32),
    /// `index`.
    Index,
    /// `f16` and its kin.
    Float(FloatKind),
    /// `!tt.ptr<f16, 1>`; an address space that is not written is 1, global memory.
    Pointer {
        /// The type that it points to.
        pointee: Box<Type>,
        /// The address space.
        address_space: u32,
    },
    /// `tensor<128x64xf16, #blocked>`.
    Tensor {
        /// The extents.
        shape: Vec<Dimension>,
        /// The type of one element.
        element: Box<Type>,
        /// The layout as written, or its alias; TTIR has none.
        encoding: Option<String>,
    },
    /// `!tt.tensordesc<tensor<128x64xf16>>`: a descriptor of a tensor in global memory, moved in blocks of this type.
    TensorDescriptor(Box<Type>),
    /// `(i32) -> f32`.
    Function {
        /// Types of the arguments.
        inputs: Vec<Type>,
        /// Types of the results.
        results: Vec<Type>,
    },
    /// Any other type, as written.
    Opaque(String),
}

impl Type {
    /// The extents of a tensor.
    pub fn shape(&self) -> Option<&[Dimension]> {
        match self {
            Self::Tensor { shape, .. } => Some(shape),
            _ => None,
        }
    }

    /// The extents of a tensor whose extents are all known.
    pub fn known_shape(&self) -> Option<Vec<u64>> {
        let extent = |dimension: &Dimension| match dimension {
            Dimension::Known(extent) => Some(*extent),
            Dimension::Dynamic => None,
        };
        self.shape()?.iter().map(extent).collect()
    }

    /// The type of a tensor's element; any other type is its own element.
    pub fn element(&self) -> &Type {
        match self {
            Self::Tensor { element, .. } => element,
            other => other,
        }
    }

    /// Returns whether this is a tensor.
    pub fn is_tensor(&self) -> bool {
        matches!(self, Self::Tensor { .. })
    }

    /// The type that tensors a descriptor describes are moved as.
    pub fn block(&self) -> Option<&Type> {
        match self {
            Self::TensorDescriptor(block) => Some(block),
            _ => None,
        }
    }

    /// Bits of one scalar of this type; pointers have 64.
    pub fn scalar_bits(&self) -> Option<u32> {
        match self {
            Self::Integer(bits) => Some(*bits),
            Self::Float(kind) => Some(kind.bits()),
            Self::Index | Self::Pointer { .. } => Some(64),
            _ => None,
        }
    }

    /// The same tensor with another element; a scalar becomes the element.
    pub fn with_element(&self, new: Type) -> Type {
        match self {
            Self::Tensor { shape, encoding, .. } => {
                Self::Tensor { shape: shape.clone(), element: Box::new(new), encoding: encoding.clone() }
            }
            _ => new,
        }
    }

    /// The target of a pointer, or of a tensor of pointers: the type that a load through it has.
    pub fn pointed_to(&self) -> Option<Type> {
        match self.element() {
            Self::Pointer { pointee, .. } => Some(self.with_element((**pointee).clone())),
            _ => None,
        }
    }
}

/// Writes `items` with commas between them.
fn comma_separated<T: fmt::Display>(formatter: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(formatter, "{comma}{item}")?;
    }
    Ok(())
}

impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(bits) => write!(formatter, "i{bits}"),
            Self::Index => formatter.write_str("index"),
            Self::Float(kind) => formatter.write_str(kind.name()),
            Self::Pointer { pointee, address_space: 1 } => write!(formatter, "!tt.ptr<{pointee}>"),
            Self::Pointer { pointee, address_space } => write!(formatter, "!tt.ptr<{pointee}, {address_space}>"),
            Self::Tensor { shape, element, encoding } => {
                formatter.write_str("tensor<")?;
                for dimension in shape {
                    match dimension {
                        Dimension::Known(extent) => write!(formatter, "{extent}x")?,
                        Dimension::Dynamic => formatter.write_str("?x")?,
                    }
                }
                match encoding {
                    Some(encoding) => write!(formatter, "{element}, {encoding}>"),
                    None => write!(formatter, "{element}>"),
                }
            }
            Self::TensorDescriptor(block) => write!(formatter, "!tt.tensordesc<{block}>"),
            Self::Function { inputs, results } => {
                formatter.write_str("(")?;
                comma_separated(formatter, inputs)?;
                formatter.write_str(") -> (")?;
                comma_separated(formatter, results)?;
                formatter.write_str(")")
            }
            Self::Opaque(text) => formatter.write_str(text),
        }
    }
}
