//! What is known of a register.

/// Bytes of the longest ring of barriers.
const LONGEST: u32 = 256;

/// What a value is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// Zero: it is a number.
    Zero,
    /// The number of the CTA in its cluster.
    CtaId,
    /// The beginning of the CTA's shared memory in the window of its cluster.
    Shared,
    /// A word of a constant bank, by its address: a parameter of the kernel.
    Constant(u32),
}

/// A value, as far as the text says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// It may be anything.
    #[default]
    Unknown,
    /// An origin and a distance from it.
    Known(Origin, u32),
    /// One of the places at this distance from the beginning of shared memory and every 8 bytes after it: a slot of a ring of
    /// barriers.
    Slot(u32),
}

impl Value {
    /// A number.
    pub fn number(value: u32) -> Value {
        Value::Known(Origin::Zero, value)
    }

    /// The number, if it is one.
    pub fn as_number(self) -> Option<u32> {
        match self {
            Value::Known(Origin::Zero, value) => Some(value),
            _ => None,
        }
    }

    /// What both of two ways say: the same value, or a slot of a ring that the other names as well.
    #[must_use]
    pub fn joined(self, other: Value) -> Value {
        match (self, other) {
            _ if self == other => self,
            (Value::Slot(ring), Value::Known(Origin::Shared, at))
            | (Value::Known(Origin::Shared, at), Value::Slot(ring))
                if at >= ring && (at - ring).is_multiple_of(8) && at - ring < LONGEST =>
            {
                Value::Slot(ring)
            }
            _ => Value::Unknown,
        }
    }

    /// Their sum.
    pub fn plus(self, other: Value) -> Value {
        match (self, other) {
            (Value::Known(origin, a), Value::Known(Origin::Zero, b))
            | (Value::Known(Origin::Zero, b), Value::Known(origin, a)) => Value::Known(origin, a.wrapping_add(b)),
            (Value::Slot(a), Value::Known(Origin::Zero, b)) | (Value::Known(Origin::Zero, b), Value::Slot(a)) => {
                Value::Slot(a.wrapping_add(b))
            }
            _ => Value::Unknown,
        }
    }

    /// Zero minus it.
    #[must_use]
    pub fn negated(self) -> Value {
        self.as_number().map_or(Value::Unknown, |value| Value::number(value.wrapping_neg()))
    }

    /// Their product.
    pub fn times(self, other: Value) -> Value {
        match (self.as_number(), other.as_number()) {
            (Some(0), _) | (_, Some(0)) => Value::number(0),
            (Some(1), _) => other,
            (_, Some(1)) => self,
            (Some(a), Some(b)) => Value::number(a.wrapping_mul(b)),
            _ => Value::Unknown,
        }
    }

    /// It, shifted to the left by some bits, plus an address: a slot if nothing but its pitch of 8 bytes is known.
    pub fn scaled_plus(self, bits: u32, base: Value) -> Value {
        match (self, base) {
            (Value::Known(Origin::CtaId, 0), Value::Known(Origin::Zero, offset)) if bits == 24 => {
                Value::Known(Origin::Shared, offset)
            }
            (Value::Unknown, Value::Known(Origin::Shared, offset)) if bits == 3 => Value::Slot(offset),
            _ => self.times(Value::number(1u32.checked_shl(bits).unwrap_or(0))).plus(base),
        }
    }
}
