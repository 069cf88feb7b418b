//! Numbers as MLIR writes them: `-64`, `1.0`, and `0xFF800000` for the bits of a float.

use super::attributes::{Attribute, FloatValue};
use super::error::{FileLineColumn, ParseError};
use super::lexer::TokenKind;
use super::parser::{Parsed, Parser};
use super::types::{FloatKind, Type};

/// A number before its type is known.
#[derive(Debug)]
pub(super) struct Literal<'text> {
    text: &'text str,
    negative: bool,
    /// True if it is written with a point.
    pointed: bool,
    place: FileLineColumn,
}

impl Literal<'_> {
    fn out_of_range(&self) -> ParseError {
        let sign = if self.negative { "-" } else { "" };
        ParseError::NumberOutOfRange { place: self.place.clone(), text: format!("{sign}{}", self.text) }
    }

    fn integer(&self) -> Option<i128> {
        let magnitude = match self.text.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16).ok()?,
            None => self.text.parse().ok()?,
        };
        Some(if self.negative { -magnitude } else { magnitude })
    }

    fn float(&self, kind: FloatKind) -> Option<f64> {
        if let Some(digits) = self.text.strip_prefix("0x") {
            return float_from_bits(u64::from_str_radix(digits, 16).ok()?, kind);
        }
        let magnitude: f64 = self.text.parse().ok()?;
        Some(if self.negative { -magnitude } else { magnitude })
    }

    /// The type of a number for which none is written.
    pub(super) fn default_type(&self) -> Type {
        if self.pointed { Type::Float(FloatKind::F64) } else { Type::Integer(64) }
    }

    /// The number as a constant of the type.
    pub(super) fn of_type(&self, kind: &Type) -> Parsed<Attribute> {
        match kind {
            Type::Float(float) => match self.float(*float) {
                Some(value) => Ok(Attribute::Float { value: FloatValue(value), kind: kind.clone() }),
                None => {
                    let sign = if self.negative { "-" } else { "" };
                    Ok(Attribute::Typed { text: format!("{sign}{}", self.text), kind: kind.clone() })
                }
            },
            _ if self.pointed => Err(self.out_of_range()),
            _ => {
                let value = self.integer().ok_or_else(|| self.out_of_range())?;
                Ok(Attribute::Integer { value, kind: kind.clone() })
            }
        }
    }
}

/// The number with these bits, for the formats that Triton writes so.
fn float_from_bits(bits: u64, kind: FloatKind) -> Option<f64> {
    match kind {
        FloatKind::F64 => Some(f64::from_bits(bits)),
        FloatKind::F32 => Some(f64::from(f32::from_bits(u32::try_from(bits).ok()?))),
        FloatKind::BF16 => Some(f64::from(f32::from_bits(u32::from(u16::try_from(bits).ok()?) << 16))),
        FloatKind::F16 => Some(half_from_bits(u16::try_from(bits).ok()?)),
        _ => None,
    }
}

/// IEEE binary16: a sign, five bits of exponent biased by 15, ten bits of mantissa.
fn half_from_bits(bits: u16) -> f64 {
    let mantissa = f64::from(bits & 0x3ff);
    let magnitude = match (bits >> 10) & 0x1f {
        0 => mantissa * 2f64.powi(-24),
        0x1f if mantissa == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        exponent => (1024.0 + mantissa) * 2f64.powi(i32::from(exponent) - 25),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

impl<'text> Parser<'text> {
    /// Returns whether a number is next.
    pub(super) fn at_number(&self) -> bool {
        matches!(self.token.kind, TokenKind::Integer | TokenKind::Float) || self.token.is('-')
    }

    /// A number without its type.
    pub(super) fn read_literal(&mut self) -> Parsed<Literal<'text>> {
        let place = self.here();
        let negative = self.accept('-');
        match self.token.kind {
            TokenKind::Integer | TokenKind::Float => {
                let token = self.advance();
                Ok(Literal { text: token.text, negative, pointed: token.kind == TokenKind::Float, place })
            }
            _ => Err(self.unexpected("a number")),
        }
    }

    /// An integer of any width that fits.
    pub(super) fn read_integer<T: TryFrom<i128>>(&mut self) -> Parsed<T> {
        let literal = self.read_literal()?;
        let value = if literal.pointed { None } else { literal.integer() };
        value.and_then(|value| T::try_from(value).ok()).ok_or_else(|| literal.out_of_range())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_have_their_values() {
        let cases =
            [(0x3c00, 1.0), (0xc000, -2.0), (0x7bff, 65504.0), (0x0001, 2f64.powi(-24)), (0xfc00, f64::NEG_INFINITY)];
        for (bits, value) in cases {
            assert_eq!(half_from_bits(bits), value);
        }
        assert!(half_from_bits(0x7e00).is_nan());
    }
}
