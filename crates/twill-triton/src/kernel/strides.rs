//! Strides in the polynomial of an address.

use crate::polynomial::{Polynomial, Symbol};
use crate::tile::Amount;

/// The tile's dimensions along the matrix's rows and columns.
pub(super) fn order(transposed: bool) -> [usize; 2] {
    if transposed { [1, 0] } else { [0, 1] }
}

/// The stride of the index along the matrix's rows.
pub(super) fn stride(offset: &Polynomial, row: usize) -> Option<Amount> {
    let mut with_row = offset.terms().filter(|(product, _)| product.contains(&Symbol::Index(row)));
    let (Some(one), None) = (with_row.next(), with_row.next()) else { return None };
    match one {
        ([Symbol::Index(_)], elements) => Some(Amount::Constant(u64::try_from(elements).ok()?)),
        ([Symbol::Index(_), Symbol::Scalar(value)], 1) => Some(Amount::Argument(*value)),
        _ => None,
    }
}

/// The offset of the tile's element from the matrix's first one.
pub(super) fn offset_of(tile_origin: &[Polynomial; 2], stride: Amount, order: [usize; 2]) -> Option<Polynomial> {
    let [row, column] = [0, 1].map(|k| tile_origin[k].plus(&Polynomial::symbol(Symbol::Index(order[k]))));
    row?.times(&number_of(stride))?.plus(&column?)
}

pub(super) fn number_of(amount: Amount) -> Polynomial {
    match amount {
        Amount::Argument(value) => Polynomial::symbol(Symbol::Scalar(value)),
        Amount::Constant(elements) => Polynomial::constant(i128::from(elements)),
    }
}

/// What a stride is multiplied by in a number.
pub(super) fn quotient(number: &Polynomial, stride: Amount) -> Option<Polynomial> {
    let mut quotient = Polynomial::default();
    for (product, coefficient) in number.terms() {
        let mut symbols = product.to_vec();
        let term = match stride {
            Amount::Argument(value) => {
                let Some(at) = symbols.iter().position(|s| *s == Symbol::Scalar(value)) else { continue };
                symbols.remove(at);
                Polynomial::product(symbols, coefficient)
            }
            Amount::Constant(elements) if coefficient % i128::from(elements) == 0 => {
                Polynomial::product(symbols, coefficient / i128::from(elements))
            }
            Amount::Constant(_) => continue,
        };
        quotient = quotient.plus(&term)?;
    }
    Some(quotient)
}
