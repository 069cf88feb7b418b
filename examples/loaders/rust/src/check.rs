//! Random matrices, and whether their product is right.

use crate::launch::Sizes;
use half::f16;

const SAMPLES: usize = 4096;

/// Random numbers ("splitmix64").
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// From -1 to 1, in steps that float16 has.
    fn number(&mut self) -> f16 {
        f16::from_f32((self.next() >> 53) as f32 / 1024.0 - 1.0)
    }

    fn below(&mut self, end: u32) -> usize {
        (self.next() % u64::from(end)) as usize
    }
}

/// A and B.
pub fn inputs(sizes: Sizes) -> (Vec<f16>, Vec<f16>) {
    let mut random = Random(1);
    let mut matrix = |rows: u32| (0..rows as usize * sizes.k as usize).map(|_| random.number()).collect();
    (matrix(sizes.m), matrix(sizes.n))
}

/// How far a result is off.
#[derive(Debug)]
pub struct Errors {
    /// The largest error of the elements that were looked at.
    pub largest: f64,
    /// The largest part of what is allowed that an error takes.
    pub part: f64,
    /// True if all are allowed, and every element was written.
    pub right: bool,
}

/// Compares some elements with float64: a float16 of the sum, and what float32 may lose on the way.
pub fn compare(a: &[f16], b: &[f16], c: &[f16], sizes: Sizes) -> Errors {
    let (n, k) = (sizes.n as usize, sizes.k as usize);
    let mut random = Random(2);
    let mut errors = Errors { largest: 0.0, part: 0.0, right: c.iter().all(|element| element.is_finite()) };
    for sample in 0..SAMPLES {
        let (row, column) = match sample {
            0 => (sizes.m as usize - 1, n - 1),
            _ => (random.below(sizes.m), random.below(sizes.n)),
        };
        let products = a[row * k..][..k].iter().zip(&b[column * k..][..k]).map(|(x, y)| x.to_f64() * y.to_f64());
        let (wanted, size) = products.fold((0.0, 0.0), |(sum, size), product| (sum + product, size + product.abs()));
        let error = (c[row * n + column].to_f64() - wanted).abs();
        let allowed = wanted.abs() * 2f64.powi(-10) + size * 2f64.powi(-16) + 2f64.powi(-24);
        errors.right &= error <= allowed;
        errors.largest = errors.largest.max(error);
        errors.part = errors.part.max(error / allowed);
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::{compare, inputs};
    use crate::launch::Sizes;
    use half::f16;

    const SIZES: Sizes = Sizes { m: 24, n: 16, k: 64 };

    fn product(a: &[f16], b: &[f16]) -> Vec<f16> {
        let dot = |x: &[f16], y: &[f16]| f16::from_f64(x.iter().zip(y).map(|(x, y)| x.to_f64() * y.to_f64()).sum());
        a.chunks(64).flat_map(|row| b.chunks(64).map(move |column| dot(row, column))).collect()
    }

    #[test]
    fn a_product_is_right_and_another_is_not() {
        let (a, b) = inputs(SIZES);
        let c = product(&a, &b);
        assert!(compare(&a, &b, &c, SIZES).right);
        // A tile of the sum is missing; an element was not written; rows and columns are exchanged.
        let short: Vec<f16> = a.iter().enumerate().map(|(i, x)| if i % 64 < 16 { f16::ZERO } else { *x }).collect();
        assert!(!compare(&a, &b, &product(&short, &b), SIZES).right);
        let mut unwritten = c.clone();
        unwritten[5] = f16::NAN;
        assert!(!compare(&a, &b, &unwritten, SIZES).right);
        let transposed: Vec<f16> = (0..c.len()).map(|i| c[i % 24 * 16 + i / 24]).collect();
        assert!(!compare(&a, &b, &transposed, SIZES).right);
    }
}
