//! Reductions along an axis.

use super::number::Arithmetic;
use super::tile::{Data, Tile};
use crate::fault::Fault;
use twill_triton::mlir::Type;

/// How two elements become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    Sum,
    Maximum,
    Minimum,
}

impl Combine {
    /// From the TTIR's name of an operation.
    pub fn of(name: &str) -> Option<Combine> {
        Some(match name {
            "arith.addf" | "arith.addi" => Combine::Sum,
            "arith.maxnumf" | "arith.maxsi" => Combine::Maximum,
            "arith.minnumf" | "arith.minsi" => Combine::Minimum,
            _ => return None,
        })
    }
}

/// The elements along an axis combined, the first with the second, the result with the third and so on.
pub(crate) fn reduce(
    tile: &Tile,
    axis: usize,
    combine: Combine,
    element: &Type,
    arithmetic: Arithmetic,
) -> Result<Tile, Fault> {
    let unfit = || Fault::Shapes { what: "tt.reduce".into() };
    let extent = tile.shape.get(axis).copied().filter(|e| *e > 0).ok_or_else(unfit)?;
    let inner: usize = tile.shape[axis + 1..].iter().product();
    let outer: usize = tile.shape[..axis].iter().product();
    let mut shape = tile.shape.clone();
    shape.remove(axis);
    let along = |o: usize, i: usize| (0..extent).map(move |k| (o * extent + k) * inner + i);
    let places = (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i)));
    let data = match &tile.data {
        Data::Floats(x) => {
            let of = |(o, i)| {
                let mut rest = along(o, i).map(|k| x[k]);
                let first = rest.next().unwrap_or_default();
                rest.fold(first, |a, b| match combine {
                    Combine::Sum => arithmetic.round(a + b, element),
                    Combine::Maximum => a.max(b),
                    Combine::Minimum => a.min(b),
                })
            };
            Data::Floats(places.map(of).collect())
        }
        Data::Integers(x) => {
            let of = |(o, i)| {
                let mut rest = along(o, i).map(|k| x[k]);
                let first = rest.next().unwrap_or_default();
                rest.fold(first, |a, b| match combine {
                    Combine::Sum => super::integers::wrapped(a.wrapping_add(b), element),
                    Combine::Maximum => a.max(b),
                    Combine::Minimum => a.min(b),
                })
            };
            Data::Integers(places.map(of).collect())
        }
        Data::Pointers(_) => return Err(unfit()),
    };
    Ok(Tile { shape, data })
}

/// The row sums of a tile as four per-thread partials: that of thread `t` has the columns `8k + 2t` and `8k + 2t + 1`.
pub(crate) fn partials(tile: &Tile, element: &Type, arithmetic: Arithmetic) -> Result<Tile, Fault> {
    let unfit = || Fault::Shapes { what: "row sums as per-thread partials".into() };
    let [rows, columns] = tile.shape.as_slice() else { return Err(unfit()) };
    if columns % 8 != 0 {
        return Err(unfit());
    }
    let pairs = tile.reshape(vec![*rows, columns / 8, 4, 2]).ok_or_else(unfit)?;
    let singles = reduce(&pairs, 3, Combine::Sum, element, arithmetic)?;
    reduce(&singles, 1, Combine::Sum, element, arithmetic)
}
