//! Operations on elements, by the TTIR's names.

use super::convert;
use super::integers::{unsigned, wrapped};
use super::number::Arithmetic;
use super::tile::{Data, Pointer, Tile};
use crate::fault::Fault;
use std::rc::Rc;
use twill_graph::saturate;
use twill_triton::kernel::is_conversion;
use twill_triton::mlir::Type;

/// An operation on elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elementwise<'a> {
    /// Such as `arith.addf`.
    pub operation: &'a str,
    /// The predicate of a comparison; the symbol of `tt.extern_elementwise`; what `tt.clampf` does with what is not a number.
    pub predicate: Option<&'a str>,
    /// Extents of the result.
    pub shape: &'a [usize],
    /// Type of the result's elements.
    pub element: &'a Type,
    /// Type of the first operand's elements.
    pub from: &'a Type,
    /// How numbers are held.
    pub arithmetic: Arithmetic,
    /// A quotient by zero is what a GPU makes of it: all bits, or the dividend as remainder. Code may compute ahead what nobody uses.
    pub divides_by_zero: bool,
}

/// Its result for these operands, with scalars broadcast.
pub(crate) fn apply(one: Elementwise<'_>, operands: &[Rc<Tile>]) -> Result<Tile, Fault> {
    let spread: Result<Vec<Rc<Tile>>, Fault> = operands
        .iter()
        .map(|x| match x.shape == one.shape {
            true => Ok(x.clone()),
            false => x.broadcast(one.shape).map(Rc::new).ok_or_else(|| one.unfit()),
        })
        .collect();
    let spread = spread?;
    let data: Vec<&Data> = spread.iter().map(|x| &x.data).collect();
    Ok(Tile { shape: one.shape.to_vec(), data: one.data(&data)? })
}

impl Elementwise<'_> {
    pub(super) fn unfit(&self) -> Fault {
        Fault::Shapes { what: format!("`{}`", self.operation) }
    }

    pub(super) fn unknown(&self) -> Fault {
        let predicate = self.predicate.map(|p| format!(" ({p})")).unwrap_or_default();
        Fault::Unknown { what: format!("`{}`{predicate}", self.operation) }
    }

    fn data(&self, operands: &[&Data]) -> Result<Data, Fault> {
        match (self.operation, operands) {
            ("arith.select", [Data::Integers(c), a, b]) => Ok(select(c, a, b).ok_or_else(|| self.unfit())?),
            ("tt.addptr", [Data::Pointers(p), Data::Integers(n)]) => {
                let moved = |(p, n): (&Pointer, &i64)| Pointer { offset: p.offset.wrapping_add(*n), ..*p };
                Ok(Data::Pointers(p.iter().zip(n).map(moved).collect()))
            }
            ("arith.cmpf", [Data::Floats(a), Data::Floats(b)]) => self.compare_floats(a, b),
            ("arith.cmpi", [Data::Integers(a), Data::Integers(b)]) => self.compare_integers(a, b),
            ("arith.bitcast" | "tt.bitcast" | "tt.ptr_to_int" | "tt.int_to_ptr", [x]) => convert::convert(self, x),
            (_, [x]) if is_conversion(self.operation) => convert::convert(self, x),
            (_, [Data::Integers(a), Data::Integers(b)]) => self.integers(a, b),
            ("arith.cmpi", [a @ Data::Pointers(_), b @ Data::Pointers(_)]) => {
                let numbers = |x: &Data| convert::addresses(x, self.from).ok_or_else(|| self.unfit());
                self.compare_integers(&numbers(a)?, &numbers(b)?)
            }
            ("math.absi", [Data::Integers(a)]) => {
                Ok(Data::Integers(a.iter().map(|x| wrapped(x.wrapping_abs(), self.element)).collect()))
            }
            _ => {
                let floats: Option<Vec<&[f64]>> = operands
                    .iter()
                    .map(|x| match x {
                        Data::Floats(x) => Some(x.as_slice()),
                        _ => None,
                    })
                    .collect();
                self.floats(&floats.ok_or_else(|| self.unknown())?)
            }
        }
    }

    fn floats(&self, operands: &[&[f64]]) -> Result<Data, Fault> {
        let mut numbers: Vec<f64> = match operands {
            [a] => a.iter().copied().map(self.unary().ok_or_else(|| self.unknown())?).collect(),
            [a, b] => {
                let of = self.binary().ok_or_else(|| self.unknown())?;
                a.iter().zip(*b).map(|(a, b)| of(*a, *b)).collect()
            }
            [a, b, c, ..] => {
                let of: fn(f64, f64, f64) -> f64 = match self.operation {
                    "math.fma" => f64::mul_add,
                    "tt.extern_elementwise" if self.predicate == Some("__nv_fmaf") => f64::mul_add,
                    // What is not a number is kept, or becomes the lower bound.
                    "tt.clampf" if self.predicate.is_some_and(|word| !matches!(word, "none" | "0")) => {
                        |x, low, high| {
                            if x.is_nan() { x } else { x.max(low).min(high) }
                        }
                    }
                    "tt.clampf" => |x, low, high| x.max(low).min(high),
                    _ => return Err(self.unknown()),
                };
                a.iter().zip(*b).zip(*c).map(|((a, b), c)| of(*a, *b, *c)).collect()
            }
            [] => return Err(self.unknown()),
        };
        self.arithmetic.round_all(&mut numbers, self.element);
        Ok(Data::Floats(numbers))
    }

    fn unary(&self) -> Option<fn(f64) -> f64> {
        let name = match self.operation {
            "tt.extern_elementwise" => self.predicate?,
            name => name,
        };
        Some(match name {
            "arith.negf" => |x| -x,
            "math.exp" | "__nv_expf" | "__nv_fast_expf" => f64::exp,
            "math.exp2" | "__nv_exp2f" => f64::exp2,
            "math.log" | "__nv_logf" | "__nv_fast_logf" => f64::ln,
            "math.log2" | "__nv_log2f" | "__nv_fast_log2f" => f64::log2,
            "math.sqrt" | "tt.precise_sqrt" | "__nv_sqrtf" => f64::sqrt,
            "math.rsqrt" | "__nv_rsqrtf" => |x| x.sqrt().recip(),
            "math.sin" | "__nv_sinf" | "__nv_fast_sinf" => f64::sin,
            "math.cos" | "__nv_cosf" | "__nv_fast_cosf" => f64::cos,
            "math.tanh" | "__nv_tanhf" => f64::tanh,
            "math.erf" | "__nv_erff" => erf,
            "math.absf" | "__nv_fabsf" => f64::abs,
            "math.floor" | "__nv_floorf" => f64::floor,
            "math.ceil" | "__nv_ceilf" => f64::ceil,
            "__nv_rintf" | "__nv_nearbyintf" => f64::round_ties_even,
            "__nv_roundf" => f64::round,
            "__nv_truncf" => f64::trunc,
            "__nv_exp10f" => |x| 10_f64.powf(x),
            "__nv_expm1f" => f64::exp_m1,
            "__nv_log1pf" => f64::ln_1p,
            "__nv_log10f" => f64::log10,
            "__nv_sinhf" => f64::sinh,
            "__nv_coshf" => f64::cosh,
            "__nv_tanf" => f64::tan,
            "__nv_atanf" => f64::atan,
            "__nv_rcp_rn" | "__nv_frcp_rn" => f64::recip,
            _ => return None,
        })
    }

    fn binary(&self) -> Option<fn(f64, f64) -> f64> {
        Some(match (self.operation, self.predicate) {
            ("arith.addf", _) => |a, b| a + b,
            ("arith.subf", _) => |a, b| a - b,
            ("arith.remf", _) => |a, b| a % b,
            ("arith.mulf", _) => |a, b| a * b,
            ("arith.divf" | "tt.precise_divf", _) => |a, b| a / b,
            ("arith.maxnumf", _) => f64::max,
            ("arith.minnumf", _) => f64::min,
            ("arith.maximumf", _) => |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) },
            ("arith.minimumf", _) => |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) },
            ("tt.extern_elementwise", Some("__nv_powf" | "__nv_fast_powf")) => f64::powf,
            ("tt.extern_elementwise", Some("__nv_fmaxf")) => f64::max,
            ("tt.extern_elementwise", Some("__nv_fminf")) => f64::min,
            ("tt.extern_elementwise", Some("__nv_fdividef" | "__nv_fast_fdividef" | "__nv_fdiv_rn")) => |a, b| a / b,
            ("tt.extern_elementwise", Some("__nv_atan2f")) => f64::atan2,
            ("tt.extern_elementwise", Some("__nv_fmodf")) => |a, b| a % b,
            _ => return None,
        })
    }

    fn integers(&self, a: &[i64], b: &[i64]) -> Result<Data, Fault> {
        let divides = matches!(self.operation, "arith.divsi" | "arith.remsi" | "arith.divui" | "arith.remui");
        if divides && !self.divides_by_zero && b.contains(&0) {
            return Err(Fault::DivisionByZero { what: format!("`{}`", self.operation) });
        }
        let element = self.element;
        let natural = |x: i64| unsigned(x, element);
        let count = |n: i64| saturate::<u32>(natural(n));
        let of = |a: i64, b: i64| -> Option<i64> {
            Some(match self.operation {
                "arith.divsi" | "arith.divui" if b == 0 => -1,
                "arith.remsi" | "arith.remui" if b == 0 => a,
                "arith.addi" => a.wrapping_add(b),
                "arith.subi" => a.wrapping_sub(b),
                "arith.muli" => a.wrapping_mul(b),
                "arith.andi" => a & b,
                "arith.ori" => a | b,
                "arith.xori" => a ^ b,
                "arith.shli" => a.checked_shl(count(b)).unwrap_or(0),
                "arith.shrsi" => a >> count(b).min(63),
                "arith.shrui" => natural(a).checked_shr(count(b)).unwrap_or(0) as i64,
                "arith.divsi" => a.wrapping_div(b),
                "arith.remsi" => a.wrapping_rem(b),
                "arith.divui" => (natural(a) / natural(b)) as i64,
                "arith.remui" => (natural(a) % natural(b)) as i64,
                "arith.maxsi" => a.max(b),
                "arith.minsi" => a.min(b),
                "tt.mulhiui" => {
                    ((u128::from(natural(a)) * u128::from(natural(b))) >> super::integers::bits(element)) as i64
                }
                _ => return None,
            })
        };
        let made: Option<Vec<i64>> = a.iter().zip(b).map(|(a, b)| of(*a, *b).map(|x| wrapped(x, element))).collect();
        made.map(Data::Integers).ok_or_else(|| self.unknown())
    }

    fn compare_floats(&self, a: &[f64], b: &[f64]) -> Result<Data, Fault> {
        let of: fn(&f64, &f64) -> bool = match self.predicate.unwrap_or_default() {
            "oeq" => |a, b| a == b,
            "une" => |a, b| a != b,
            "olt" => |a, b| a < b,
            "ole" => |a, b| a <= b,
            "ogt" => |a, b| a > b,
            "oge" => |a, b| a >= b,
            _ => return Err(self.unknown()),
        };
        Ok(Data::Integers(a.iter().zip(b).map(|(a, b)| i64::from(of(a, b))).collect()))
    }

    fn compare_integers(&self, a: &[i64], b: &[i64]) -> Result<Data, Fault> {
        let predicate = self.predicate.unwrap_or_default();
        let order = |a: i64, b: i64| match predicate.starts_with('u') {
            true => unsigned(a, self.from).cmp(&unsigned(b, self.from)),
            false => a.cmp(&b),
        };
        let of: fn(std::cmp::Ordering) -> bool = match predicate {
            "eq" => std::cmp::Ordering::is_eq,
            "ne" => std::cmp::Ordering::is_ne,
            "slt" | "ult" => std::cmp::Ordering::is_lt,
            "sle" | "ule" => std::cmp::Ordering::is_le,
            "sgt" | "ugt" => std::cmp::Ordering::is_gt,
            "sge" | "uge" => std::cmp::Ordering::is_ge,
            _ => return Err(self.unknown()),
        };
        Ok(Data::Integers(a.iter().zip(b).map(|(a, b)| i64::from(of(order(*a, *b)))).collect()))
    }
}

fn select(condition: &[i64], a: &Data, b: &Data) -> Option<Data> {
    fn pick<T: Copy>(condition: &[i64], a: &[T], b: &[T]) -> Vec<T> {
        condition.iter().zip(a.iter().zip(b)).map(|(c, (a, b))| if *c != 0 { *a } else { *b }).collect()
    }
    Some(match (a, b) {
        (Data::Floats(a), Data::Floats(b)) => Data::Floats(pick(condition, a, b)),
        (Data::Integers(a), Data::Integers(b)) => Data::Integers(pick(condition, a, b)),
        (Data::Pointers(a), Data::Pointers(b)) => Data::Pointers(pick(condition, a, b)),
        _ => return None,
    })
}

/// The error function by its series `2 ∕ √π · e^(−x²) · Σ 2ⁿ x^(2n+1) ∕ (2n + 1)!!` (Abramowitz and Stegun, 7.1.6).
fn erf(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 6.0 {
        return if x.is_nan() { x } else { x.signum() };
    }
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while term.abs() > sum.abs() * 1e-17 {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use twill_triton::mlir::FloatKind;

    fn one(operation: &str, predicate: Option<&str>, element: Type, operands: &[Data]) -> Result<Data, Fault> {
        let from = element.clone();
        let shape = [operands[0].len()];
        let arithmetic = Arithmetic::Rounded;
        let (element, from, divides_by_zero) = (&element, &from, false);
        let one = Elementwise { operation, predicate, shape: &shape, element, from, arithmetic, divides_by_zero };
        let tiles: Vec<Rc<Tile>> =
            operands.iter().map(|d| Rc::new(Tile { shape: vec![d.len()], data: d.clone() })).collect();
        apply(one, &tiles).map(|tile| tile.data)
    }

    #[test]
    fn sums_are_rounded_to_their_type() {
        let half = Type::Float(FloatKind::F16);
        let sum = one("arith.addf", None, half, &[Data::Floats(vec![2048.0]), Data::Floats(vec![1.0])]).unwrap();
        assert!(sum.is_same(&Data::Floats(vec![2048.0])));
    }

    #[test]
    fn integers_wrap_and_divide_towards_zero() {
        let of = |operation: &str, a: i64, b: i64| {
            let made = one(operation, None, Type::Integer(32), &[Data::Integers(vec![a]), Data::Integers(vec![b])]);
            made.map(|d| Tile { shape: vec![], data: d }.as_integer().unwrap())
        };
        assert_eq!(of("arith.addi", i64::from(i32::MAX), 1), Ok(i64::from(i32::MIN)));
        assert_eq!(of("arith.divsi", -7, 2), Ok(-3));
        assert_eq!(of("arith.remsi", -7, 2), Ok(-1));
        assert_eq!(of("arith.shrui", -1, 28), Ok(15));
        assert_eq!(of("arith.divui", -1, 2), Ok(i64::from(i32::MAX)));
        assert_eq!(of("tt.mulhiui", -1, -1), Ok(-2));
        assert!(matches!(of("arith.divsi", 1, 0), Err(Fault::DivisionByZero { .. })));
    }

    #[test]
    fn comparisons_know_signs_and_what_is_no_number() {
        let integers = |p: &str| {
            one("arith.cmpi", Some(p), Type::Integer(32), &[Data::Integers(vec![-1]), Data::Integers(vec![1])]).unwrap()
        };
        assert!(integers("slt").is_same(&Data::Integers(vec![1])));
        assert!(integers("ult").is_same(&Data::Integers(vec![0])));
        let floats = |p: &str| {
            let operands = [Data::Floats(vec![f64::NAN]), Data::Floats(vec![1.0])];
            one("arith.cmpf", Some(p), Type::Float(FloatKind::F32), &operands).unwrap()
        };
        assert!(floats("une").is_same(&Data::Integers(vec![1])));
        assert!(floats("oge").is_same(&Data::Integers(vec![0])));
    }

    #[test]
    fn the_error_function_is_that_of_the_tables() {
        for (x, y) in [(0.5, 0.520_499_877_813_046_5), (2.0, 0.995_322_265_018_952_7), (-1.0, -0.842_700_792_949_714_9)]
        {
            assert!((erf(x) - y).abs() < 1e-14, "{x}");
        }
    }
}
