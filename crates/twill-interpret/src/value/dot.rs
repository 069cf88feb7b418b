//! MMAs.

use super::number::Arithmetic;
use super::tile::{Data, Tile};
use crate::fault::Fault;
use twill_triton::mlir::{FloatKind, Type};

/// `sum + left · right`: products are added to the sum in the order of the depth, one after the other. Cutting rows, columns
/// or the depth into parts that follow each other changes no bit.
pub(crate) fn dot(
    left: &Tile,
    right: &Tile,
    sum: Option<&Tile>,
    element: &Type,
    arithmetic: Arithmetic,
) -> Result<Tile, Fault> {
    let unfit = || Fault::Shapes { what: "tt.dot".into() };
    let ([rows, depth], [inner, columns]) = (left.shape.as_slice(), right.shape.as_slice()) else {
        return Err(unfit());
    };
    if let (Data::Integers(a), Data::Integers(b)) = (&left.data, &right.data) {
        let start = match sum.map(|sum| &sum.data) {
            Some(Data::Integers(start)) if start.len() == rows * columns => Some(start.as_slice()),
            None => None,
            Some(_) => return Err(unfit()),
        };
        if depth != inner {
            return Err(unfit());
        }
        let numbers = integer_mma(a, b, start, *rows, *depth, *columns);
        return Ok(Tile { shape: vec![*rows, *columns], data: Data::Integers(numbers) });
    }
    let (Some(a), Some(b)) = (left.floats(), right.floats()) else { return Err(unfit()) };
    let shape = vec![*rows, *columns];
    let start = match sum {
        Some(sum) if sum.shape == shape => Some(sum.floats().ok_or_else(unfit)?),
        Some(_) => return Err(unfit()),
        None => None,
    };
    if depth != inner {
        return Err(unfit());
    }
    let numbers = match arithmetic {
        Arithmetic::Double => mma::<f64>(a, b, start, *rows, *depth, *columns),
        Arithmetic::Rounded if *element == Type::Float(FloatKind::F32) => {
            mma::<f32>(a, b, start, *rows, *depth, *columns)
        }
        Arithmetic::Rounded => {
            let mut numbers = mma::<f32>(a, b, start, *rows, *depth, *columns);
            arithmetic.round_all(&mut numbers, element);
            numbers
        }
    };
    Ok(Tile { shape, data: Data::Floats(numbers) })
}

/// Products of integers, summed in 32 bits.
fn integer_mma(a: &[i64], b: &[i64], start: Option<&[i64]>, rows: usize, depth: usize, columns: usize) -> Vec<i64> {
    let mut numbers = start.map_or_else(|| vec![0; rows * columns], <[i64]>::to_vec);
    for row in 0..rows {
        for k in 0..depth {
            let x = a[row * depth + k];
            for column in 0..columns {
                let sum = &mut numbers[row * columns + column];
                *sum = i64::from(sum.wrapping_add(x.wrapping_mul(b[k * columns + column])) as i32);
            }
        }
    }
    numbers
}

/// A number that sums are kept in.
trait Sum: Copy + std::ops::Mul<Output = Self> + std::ops::AddAssign {
    fn of(x: f64) -> Self;
    fn number(self) -> f64;
}

impl Sum for f32 {
    fn of(x: f64) -> f32 {
        x as f32
    }
    fn number(self) -> f64 {
        f64::from(self)
    }
}

impl Sum for f64 {
    fn of(x: f64) -> f64 {
        x
    }
    fn number(self) -> f64 {
        self
    }
}

fn mma<S: Sum>(a: &[f64], b: &[f64], start: Option<&[f64]>, rows: usize, depth: usize, columns: usize) -> Vec<f64> {
    let b: Vec<S> = b.iter().map(|x| S::of(*x)).collect();
    let mut result = Vec::with_capacity(rows * columns);
    let mut row = vec![S::of(0.0); columns];
    for i in 0..rows {
        for (j, sum) in row.iter_mut().enumerate() {
            *sum = S::of(start.map_or(0.0, |s| s[i * columns + j]));
        }
        for k in 0..depth {
            let factor = S::of(a[i * depth + k]);
            for (sum, other) in row.iter_mut().zip(&b[k * columns..(k + 1) * columns]) {
                *sum += factor * *other;
            }
        }
        result.extend(row.iter().map(|x| x.number()));
    }
    result
}
