//! Polynomials with whole coefficients over the numbers that an address is made of.

use std::collections::BTreeMap;

use crate::mlir::ValueId;

/// More terms than this are no address that anybody wrote.
const MOST_TERMS: usize = 64;

/// A number that is not known at compile time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Symbol {
    /// An element's index along a dimension of the tile.
    Index(usize),
    /// The number of the loop's iteration, from 0.
    Iteration,
    /// A scalar of the TTIR that is known before the loop.
    Scalar(ValueId),
}

/// A sum of products of symbols. Equal polynomials are equal numbers; what it is built by gives `None` where a coefficient
/// does not fit, or there are too many terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Polynomial {
    /// Coefficients, none of them 0, by the symbols that are multiplied, in order.
    terms: BTreeMap<Vec<Symbol>, i128>,
}

impl Polynomial {
    /// A number.
    pub fn constant(number: i128) -> Polynomial {
        Polynomial::term(Vec::new(), number)
    }

    /// A symbol.
    pub fn symbol(symbol: Symbol) -> Polynomial {
        Polynomial::term(vec![symbol], 1)
    }

    /// A product of symbols, in any order, and a coefficient.
    pub(super) fn product(mut symbols: Vec<Symbol>, coefficient: i128) -> Polynomial {
        symbols.sort_unstable();
        Polynomial::term(symbols, coefficient)
    }

    fn term(symbols: Vec<Symbol>, coefficient: i128) -> Polynomial {
        Polynomial { terms: BTreeMap::from_iter((coefficient != 0).then_some((symbols, coefficient))) }
    }

    /// The products, each with its coefficient.
    pub fn terms(&self) -> impl Iterator<Item = (&[Symbol], i128)> {
        self.terms.iter().map(|(symbols, coefficient)| (symbols.as_slice(), *coefficient))
    }

    /// The coefficient of a product, its symbols in order.
    pub fn coefficient(&self, product: &[Symbol]) -> i128 {
        self.terms.get(product).copied().unwrap_or(0)
    }

    /// Returns whether a symbol is in it.
    pub fn mentions(&self, symbol: Symbol) -> bool {
        self.terms.keys().any(|product| product.contains(&symbol))
    }

    /// The same with another symbol in the place of one that it does not mention yet.
    pub(super) fn renamed(&self, from: Symbol, to: Symbol) -> Polynomial {
        let renamed = |symbols: &Vec<Symbol>| {
            let mut symbols: Vec<Symbol> = symbols.iter().map(|s| if *s == from { to } else { *s }).collect();
            symbols.sort_unstable();
            symbols
        };
        Polynomial { terms: self.terms.iter().map(|(symbols, n)| (renamed(symbols), *n)).collect() }
    }

    /// The sum.
    pub fn plus(&self, other: &Polynomial) -> Option<Polynomial> {
        let mut sum = self.clone();
        for (symbols, coefficient) in &other.terms {
            sum.add(symbols.clone(), *coefficient)?;
        }
        sum.small()
    }

    /// The difference.
    pub fn minus(&self, other: &Polynomial) -> Option<Polynomial> {
        self.plus(&other.times(&Polynomial::constant(-1))?)
    }

    /// The product.
    pub fn times(&self, other: &Polynomial) -> Option<Polynomial> {
        let mut product = Polynomial::default();
        for (left, a) in &self.terms {
            for (right, b) in &other.terms {
                let mut symbols = [left.as_slice(), right.as_slice()].concat();
                symbols.sort_unstable();
                product.add(symbols, a.checked_mul(*b)?)?;
            }
        }
        product.small()
    }

    /// The quotient by a positive number, where that divides every coefficient.
    pub(super) fn over(&self, divisor: i128) -> Option<Polynomial> {
        let divides = divisor > 0 && self.terms.values().all(|coefficient| coefficient % divisor == 0);
        divides.then(|| Polynomial { terms: self.terms.iter().map(|(s, n)| (s.clone(), n / divisor)).collect() })
    }

    /// The number that it is, if no symbol is in it.
    pub(super) fn number(&self) -> Option<i128> {
        self.terms.keys().all(Vec::is_empty).then(|| self.coefficient(&[]))
    }

    fn add(&mut self, symbols: Vec<Symbol>, coefficient: i128) -> Option<()> {
        let sum = self.coefficient(&symbols).checked_add(coefficient)?;
        if sum == 0 {
            self.terms.remove(&symbols);
        } else {
            self.terms.insert(symbols, sum);
        }
        Some(())
    }

    fn small(self) -> Option<Polynomial> {
        (self.terms.len() <= MOST_TERMS).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::{Polynomial, Symbol};

    #[test]
    fn sums_and_products_of_the_same_numbers_are_equal() {
        let (x, k) = (Polynomial::symbol(Symbol::Index(0)), Polynomial::symbol(Symbol::Iteration));
        let eight = Polynomial::constant(8);
        let factored = x.plus(&k).and_then(|sum| sum.times(&eight)).and_then(|p| p.plus(&x));
        let expanded = x.times(&Polynomial::constant(9)).and_then(|p| p.plus(&k.times(&eight)?));
        assert_eq!(factored, expanded);
        assert_eq!(factored.as_ref().map(|p| p.coefficient(&[Symbol::Index(0)])), Some(9));
        assert_eq!(k.times(&x), x.times(&k));
        assert_eq!(x.minus(&x), Some(Polynomial::default()));
    }

    #[test]
    fn quotients_are_whole() {
        let eight_x = Polynomial::symbol(Symbol::Index(0)).times(&Polynomial::constant(8)).unwrap();
        assert_eq!(eight_x.over(8), Some(Polynomial::symbol(Symbol::Index(0))));
        assert_eq!(eight_x.plus(&Polynomial::constant(4)).and_then(|sum| sum.over(8)), None);
        let negative = eight_x.times(&Polynomial::constant(-1)).unwrap();
        assert_eq!(negative.over(8), Polynomial::default().minus(&Polynomial::symbol(Symbol::Index(0))));
        assert_eq!((eight_x.over(0), eight_x.over(-8)), (None, None));
        assert_eq!((eight_x.number(), eight_x.minus(&eight_x).and_then(|p| p.number())), (None, Some(0)));
    }

    #[test]
    fn what_does_not_fit_is_no_polynomial() {
        let large = Polynomial::constant(i128::MAX);
        assert_eq!(large.plus(&large), None);
        assert_eq!(large.times(&Polynomial::constant(2)), None);
        let mut sum = Some(Polynomial::default());
        for d in 0..=super::MOST_TERMS {
            sum = sum.and_then(|sum| sum.plus(&Polynomial::symbol(Symbol::Index(d))));
        }
        assert_eq!(sum, None);
    }
}
