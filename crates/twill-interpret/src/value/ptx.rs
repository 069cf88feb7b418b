//! Inline PTX of one instruction on elements of f32 (PTX ISA, "Floating Point Instructions").

use super::number::Arithmetic;
use super::tile::{Data, Tile};
use crate::fault::Fault;
use std::rc::Rc;
use twill_triton::mlir::Type;

/// An operand.
enum Operand {
    /// `$1`, the first one of the operation.
    Given(usize),
    /// `0fBF800000`.
    Number(f64),
}

/// What `tt.elementwise_inline_asm` makes of its operands, tiles of one shape.
pub(crate) fn inline_ptx(
    text: &str,
    given: &[Rc<Tile>],
    element: &Type,
    arithmetic: Arithmetic,
) -> Result<Tile, Fault> {
    let unknown = || Fault::Unknown { what: format!("inline PTX `{text}`") };
    let (name, operands) = read(text).ok_or_else(unknown)?;
    let first = given.first().ok_or_else(unknown)?;
    let columns: Option<Vec<Vec<f64>>> = operands
        .iter()
        .map(|operand| match operand {
            Operand::Number(x) => Some(vec![*x; first.shape.iter().product()]),
            Operand::Given(index) => match &given.get(*index)?.data {
                Data::Floats(x) if given[*index].shape == first.shape => Some(x.clone()),
                _ => None,
            },
        })
        .collect();
    let of = |all: &[f64]| -> Option<f64> {
        Some(match (name, all) {
            ("max.f32", [a, b]) => a.max(*b),
            ("min.f32", [a, b]) => a.min(*b),
            ("add.f32" | "add.rn.f32", [a, b]) => a + b,
            ("sub.f32" | "sub.rn.f32", [a, b]) => a - b,
            ("mul.f32" | "mul.rn.f32", [a, b]) => a * b,
            ("fma.rn.f32", [a, b, c]) => a.mul_add(*b, *c),
            ("abs.f32", [a]) => a.abs(),
            ("neg.f32", [a]) => -a,
            ("mov.f32", [a]) => *a,
            _ => return None,
        })
    };
    let columns = columns.ok_or_else(unknown)?;
    let count = first.shape.iter().product::<usize>();
    let row = |at: usize| of(&columns.iter().map(|column| column[at]).collect::<Vec<_>>());
    let mut numbers = (0..count).map(row).collect::<Option<Vec<f64>>>().ok_or_else(unknown)?;
    arithmetic.round_all(&mut numbers, element);
    Ok(Tile { shape: first.shape.clone(), data: Data::Floats(numbers) })
}

/// An instruction that writes `$0`: its name and its operands.
fn read(text: &str) -> Option<(&str, Vec<Operand>)> {
    let (name, operands) = text.trim().strip_suffix(';')?.split_once(char::is_whitespace)?;
    let mut operands = operands.split(',').map(str::trim);
    if operands.next() != Some("$0") {
        return None;
    }
    let operand = |text: &str| match text.strip_prefix('$') {
        Some(index) => index.parse::<usize>().ok()?.checked_sub(1).map(Operand::Given),
        None => {
            let bits = u32::from_str_radix(text.strip_prefix("0f")?, 16).ok()?;
            Some(Operand::Number(f64::from(f32::from_bits(bits))))
        }
    };
    Some((name, operands.map(operand).collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use twill_triton::mlir::FloatKind;

    fn of(text: &str, given: &[f64]) -> Option<Vec<f64>> {
        let tile = Tile { shape: vec![given.len()], data: Data::Floats(given.to_vec()) };
        let result = inline_ptx(text, &[Rc::new(tile)], &Type::Float(FloatKind::F32), Arithmetic::Rounded).ok()?;
        match result.data {
            Data::Floats(x) => Some(x),
            _ => None,
        }
    }

    #[test]
    fn one_instruction_is_executed_and_others_are_unknown() {
        assert_eq!(of("max.f32 $0, $1, 0fBF800000;", &[-3.0, 2.0, f64::NAN]), Some(vec![-1.0, 2.0, -1.0]));
        assert_eq!(of("abs.f32 $0, $1;", &[-3.0]), Some(vec![3.0]));
        assert_eq!(of("fma.rn.f32 $0, $1, $1, 0f3F800000;", &[3.0]), Some(vec![10.0]));
        for text in ["max.f32 $0, $1, $2;", "{ mov.f32 $0, $1; }", "ex2.approx.f32 $0, $1;", "max.f32 $1, $0;"] {
            assert_eq!(of(text, &[1.0]), None, "{text}");
        }
    }
}
