//! Floating-point numbers of the types that kernels use.

use twill_graph::saturate;
use twill_triton::mlir::{FloatKind, Type};

/// With how much accuracy numbers are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// Every result is rounded to the type of its elements, to nearest, ties to even. MMAs add in `f32`, one product
    /// after the other in the order of the depth.
    Rounded,
    /// Every result is an `f64`, whatever its type, so that two orders of operations agree to about 10⁻¹².
    Double,
}

/// A binary floating-point format.
struct Format {
    /// Bits of the significand, the leading one included.
    precision: i32,
    /// The exponent of the smallest normal number.
    least_exponent: i32,
    /// The largest finite number.
    largest: f64,
    /// True if larger numbers become infinite; otherwise they become NaN.
    has_infinity: bool,
}

/// The formats of less than 32 bits whose numbers are all `f64`s (IEEE 754, OCP OFP8).
fn format(kind: FloatKind) -> Option<Format> {
    let format = |precision, least_exponent, largest, has_infinity| {
        Some(Format { precision, least_exponent, largest, has_infinity })
    };
    match kind {
        FloatKind::F16 => format(11, -14, 65504.0, true),
        // (2 − 2⁻⁷) · 2¹²⁷
        FloatKind::BF16 => format(8, -126, f64::from_bits(0x47ef_e000_0000_0000), true),
        FloatKind::F8E4M3FN => format(4, -6, 448.0, false),
        FloatKind::F8E5M2 => format(3, -14, 57344.0, true),
        _ => None,
    }
}

/// The number that bits are; `None` of a type that is not known.
pub(super) fn from_bits(kind: FloatKind, bits: u64) -> Option<f64> {
    Some(match kind {
        FloatKind::F64 => f64::from_bits(bits),
        FloatKind::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => format(kind)?.decoded(bits, kind.bits()),
    })
}

/// The bits of a number, rounded to what a type can hold.
pub(super) fn to_bits(kind: FloatKind, x: f64) -> Option<u64> {
    Some(match kind {
        FloatKind::F64 => x.to_bits(),
        FloatKind::F32 => u64::from((x as f32).to_bits()),
        _ => {
            let format = format(kind)?;
            format.encoded(format.round(x), kind.bits())
        }
    })
}

impl Arithmetic {
    /// A number as elements of this type hold it.
    pub(crate) fn round(self, x: f64, element: &Type) -> f64 {
        match (self, element) {
            (Arithmetic::Rounded, Type::Float(FloatKind::F32)) => f64::from(x as f32),
            (Arithmetic::Rounded, Type::Float(kind)) => match format(*kind) {
                Some(format) => format.round(x),
                None => x,
            },
            _ => x,
        }
    }

    /// Rounds all numbers in place.
    pub(crate) fn round_all(self, numbers: &mut [f64], element: &Type) {
        if self == Arithmetic::Rounded {
            numbers.iter_mut().for_each(|x| *x = self.round(*x, element));
        }
    }
}

impl Format {
    /// Bits of the significand that are stored, and the exponent field of numbers that are infinite or none (or the largest).
    fn fields(&self, bits: u32) -> (u32, u64) {
        let stored = saturate::<u32>(self.precision - 1);
        (stored, (1 << (bits - 1 - stored)) - 1)
    }

    fn decoded(&self, pattern: u64, bits: u32) -> f64 {
        let (stored, last) = self.fields(bits);
        let significand = pattern & ((1 << stored) - 1);
        let exponent = (pattern >> stored) & last;
        let is_none = if self.has_infinity { significand != 0 } else { significand == (1 << stored) - 1 };
        let magnitude = match exponent {
            0 => significand as f64 * 2_f64.powi(self.least_exponent - self.precision + 1),
            _ if exponent == last && is_none => f64::NAN,
            _ if exponent == last && self.has_infinity => f64::INFINITY,
            _ => {
                let power = saturate::<i32>(exponent) - 1 + self.least_exponent - self.precision + 1;
                ((1 << stored) + significand) as f64 * 2_f64.powi(power)
            }
        };
        if pattern >> (bits - 1) & 1 == 1 { -magnitude } else { magnitude }
    }

    fn encoded(&self, x: f64, bits: u32) -> u64 {
        let (stored, last) = self.fields(bits);
        let sign = u64::from(x.is_sign_negative()) << (bits - 1);
        if x.is_nan() {
            return (last << stored) | ((1 << stored) - 1);
        }
        if x.is_infinite() {
            return sign | (last << stored);
        }
        // The exponent of f64, whose numbers below these formats' least exponent are none of theirs but for subnormal ones.
        let own = saturate::<i32>((x.to_bits() >> 52) & 0x7ff) - 1023;
        let exponent = own.max(self.least_exponent);
        let significand = (x.abs() * 2_f64.powi(self.precision - 1 - exponent)) as u64;
        let is_normal = significand >> stored == 1;
        let field = if is_normal { saturate::<u64>(exponent - self.least_exponent) + 1 } else { 0 };
        sign | (field << stored) | (significand & ((1 << stored) - 1))
    }

    /// To nearest, ties to even.
    fn round(&self, x: f64) -> f64 {
        if x.is_infinite() && !self.has_infinity {
            return f64::NAN;
        }
        if x == 0.0 || !x.is_finite() {
            return x;
        }
        let bits = saturate::<i32>((x.to_bits() >> 52) & 0x7ff);
        // The exponent of a subnormal f64 does not matter: it rounds to zero.
        let exponent = (bits - 1023).max(self.least_exponent);
        let quantum = f64::from(2.0_f32).powi(exponent - (self.precision - 1));
        let rounded = (x / quantum).round_ties_even() * quantum;
        match rounded.abs() > self.largest {
            false => rounded,
            true if self.has_infinity => f64::INFINITY.copysign(x),
            true => f64::NAN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(x: f64, kind: FloatKind) -> f64 {
        Arithmetic::Rounded.round(x, &Type::Float(kind))
    }

    #[test]
    fn bits_of_small_formats_are_their_numbers() {
        use FloatKind::{BF16, F8E4M3FN, F8E5M2, F16};
        let known = [(F16, 0x3c00, 1.0), (F16, 0x0001, 2_f64.powi(-24)), (F16, 0xfbff, -65504.0), (BF16, 0xc0a0, -5.0)];
        let small = [(F8E4M3FN, 0x7e, 448.0), (F8E4M3FN, 0x01, 2_f64.powi(-9)), (F8E5M2, 0x7b, 57344.0)];
        for (kind, bits, number) in known.into_iter().chain(small) {
            assert_eq!(from_bits(kind, bits), Some(number));
            assert_eq!(to_bits(kind, number), Some(bits));
        }
        assert!(from_bits(F8E4M3FN, 0x7f).unwrap().is_nan() && from_bits(F16, 0x7e00).unwrap().is_nan());
        for kind in [F8E4M3FN, F8E5M2, F16, BF16] {
            for bits in (0..1_u64 << kind.bits()).filter(|bits| !from_bits(kind, *bits).unwrap().is_nan()) {
                assert_eq!(to_bits(kind, from_bits(kind, bits).unwrap()), Some(bits), "{kind:?} {bits:#x}");
            }
        }
    }

    #[test]
    fn halves_are_rounded_to_nearest_even() {
        let half = |x| rounded(x, FloatKind::F16);
        assert_eq!(half(2049.0), 2048.0);
        assert_eq!(half(2051.0), 2052.0);
        assert_eq!(half(65519.0), 65504.0);
        assert_eq!(half(65520.0), f64::INFINITY);
        // The least number above zero is 2⁻²⁴; half of it goes to zero.
        assert_eq!(half(2_f64.powi(-25)), 0.0);
        assert_eq!(half(2_f64.powi(-25) * 1.5), 2_f64.powi(-24));
        assert!(half(-0.0).is_sign_negative());
    }

    #[test]
    fn other_formats_know_their_limits() {
        assert_eq!(rounded(257.0, FloatKind::BF16), 256.0);
        assert_eq!(rounded(3.389e38, FloatKind::BF16), 3.389_531_389_251_535_5e38);
        assert_eq!(rounded(3.4e38, FloatKind::BF16), f64::INFINITY);
        assert_eq!(rounded(450.0, FloatKind::F8E4M3FN), 448.0);
        assert!(rounded(500.0, FloatKind::F8E4M3FN).is_nan());
        assert_eq!(rounded(17.0, FloatKind::F8E5M2), 16.0);
        assert_eq!(rounded(0.1, FloatKind::F32), f64::from(0.1_f32));
        assert_eq!(Arithmetic::Double.round(0.1, &Type::Float(FloatKind::F16)), 0.1);
    }

    /// Every `f16` bit pattern, against the machine's own widening of the same value built from its fields.
    #[test]
    fn numbers_of_a_format_stay_what_they_are() {
        for bits in 0_u32..0x7c00 {
            let (exponent, fraction) = (bits >> 10, f64::from(bits & 0x3ff));
            let x = match exponent {
                0 => fraction * 2_f64.powi(-24),
                e => (1024.0 + fraction) * 2_f64.powi(i32::try_from(e).unwrap() - 25),
            };
            assert_eq!(rounded(x, FloatKind::F16), x, "{bits:#x}");
        }
    }
}
