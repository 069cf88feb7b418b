//! Operands with scales (`tl.dot_scaled`; OCP Microscaling Formats 1.0, 5).

use super::number::Arithmetic;
use super::tile::{Data, Tile, row_major};
use twill_triton::mlir::Type;

/// What numbers an operand's bits are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scaled {
    /// Rows and depth, or depth and columns.
    pub is_left: bool,
    /// Two floats in a byte, of one sign, two bits of the exponent and one of the mantissa; otherwise floats of a type.
    pub is_e2m1: bool,
    /// The two follow each other along the depth.
    pub along_depth: bool,
}

impl Scaled {
    /// The numbers, as a product's operands have them. Scales are exponents of two by row (or column) and block of the depth,
    /// 127 for 1; 0 is 0, and of 255 all numbers of a block are NaN.
    pub(crate) fn numbers(
        self,
        operand: &Tile,
        scale: Option<&Tile>,
        product: &Type,
        arithmetic: Arithmetic,
    ) -> Option<Tile> {
        let rank = operand.shape.len();
        let last_but_one = rank.checked_sub(2)?;
        let (depth, other) = if self.is_left { (rank - 1, last_but_one) } else { (last_but_one, rank - 1) };
        let mut shape = operand.shape.clone();
        let packed = if self.along_depth { depth } else { other };
        let elements: Vec<f64> = match (&operand.data, self.is_e2m1) {
            (Data::Integers(bytes), true) => {
                shape[packed] *= 2;
                let (from, to) = (row_major(&operand.shape), row_major(&shape));
                let one = |place: usize| {
                    let index: Vec<usize> = (0..rank).map(|d| place / to[d] % shape[d]).collect();
                    let of = |d: usize| from[d] * if d == packed { index[d] / 2 } else { index[d] };
                    e2m1(bytes[(0..rank).map(of).sum::<usize>()] >> (4 * (index[packed] % 2)))
                };
                (0..shape.iter().product()).map(one).collect()
            }
            (Data::Floats(all), false) => all.clone(),
            _ => return None,
        };
        let Some(scale) = scale else { return Some(Tile { shape, data: Data::Floats(elements) }) };
        let (Data::Integers(exponents), Some(blocks)) = (&scale.data, scale.shape.last().copied()) else { return None };
        let each = shape[depth].checked_div(blocks).filter(|each| each * blocks == shape[depth])?;
        let strides = row_major(&shape);
        let batches = if rank > 2 { strides[0] } else { usize::MAX };
        let scaled = |(place, x): (usize, f64)| {
            let at = |d: usize| place / strides[d] % shape[d];
            let line = if rank > 2 { place / batches * shape[other] + at(other) } else { at(other) };
            let exponent = exponents.get(line * blocks + at(depth) / each).map(|e| *e & 0xff)?;
            let factor = match exponent {
                // As Triton's conversion to bf16 has it, which moves the exponent's bits.
                0 => 0.0,
                255 => f64::NAN,
                _ => 2_f64.powi(exponent as i32 - 127),
            };
            Some(arithmetic.round(x * arithmetic.round(factor, product), product))
        };
        let data = elements.into_iter().enumerate().map(scaled).collect::<Option<Vec<f64>>>()?;
        Some(Tile { shape, data: Data::Floats(data) })
    }
}

/// The number that four bits are.
fn e2m1(bits: i64) -> f64 {
    let magnitude = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][(bits & 7) as usize];
    if bits & 8 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twill_triton::mlir::FloatKind;

    #[test]
    fn bytes_are_two_floats_and_blocks_have_scales() {
        let product = Type::Float(FloatKind::BF16);
        let numbers = |one: Scaled, shape: [usize; 2], bytes: &[i64], of: [usize; 2], scale: &[i64]| {
            let operand = Tile { shape: shape.to_vec(), data: Data::Integers(bytes.to_vec()) };
            let scale = Tile { shape: of.to_vec(), data: Data::Integers(scale.to_vec()) };
            one.numbers(&operand, Some(&scale), &product, Arithmetic::Rounded)
        };
        let left = Scaled { is_left: true, is_e2m1: true, along_depth: true };
        let found = numbers(left, [2, 2], &[0x21, 0x7f, -1, 0], [2, 2], &[127, 128, 126, 255]).unwrap();
        assert_eq!(found.shape, [2, 4]);
        let expected = [0.5, 1.0, -12.0, 12.0, -3.0, -3.0, f64::NAN, f64::NAN];
        assert!(found.data.is_same(&Data::Floats(expected.to_vec())));
        // Of a right operand, scales have columns before blocks.
        let right = Scaled { is_left: false, ..left };
        let found = numbers(right, [1, 2], &[0x21, 0x43], [2, 1], &[127, 128]).unwrap();
        assert!(found.data.is_same(&Data::Floats(vec![0.5, 3.0, 1.0, 4.0])));
        assert!(numbers(left, [1, 2], &[0, 0], [1, 3], &[0, 0, 0]).is_none());
    }
}
