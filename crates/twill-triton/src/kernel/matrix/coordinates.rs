//! What is known of coordinates: whether they may be negative, and whether they have 32 bits.

use super::{Place, Recognizer};
use crate::kernel::natural::Natural;
use crate::mlir::Type;
use crate::polynomial::{Polynomial, Symbol};
use crate::tile::Amount;

impl Recognizer<'_> {
    /// What of the launch must not be negative so that no coordinate of a place is.
    pub(super) fn natural_place(&self, place: &Place) -> Option<Natural> {
        let mut natural = Natural::new();
        for start in place.origin.iter().chain(place.batches.iter().map(|batch| &batch.1)) {
            natural.extend(self.natural_if(start)?);
        }
        Some(natural)
    }

    /// What of the launch must not be negative so that a coordinate is not either. It has 32 bits.
    pub(super) fn natural_if(&self, start: &Polynomial) -> Option<Natural> {
        let least = self.in_last_iteration(start)?;
        let mut natural = Natural::new();
        for (product, coefficient) in least.terms() {
            for symbol in product {
                match symbol {
                    Symbol::Scalar(value) => {
                        let fits = || self.reader.most(*value).is_some_and(|most| most <= i128::from(i32::MAX));
                        if *self.module.type_of(*value) != Type::Integer(32) && !fits() {
                            return None;
                        }
                        natural.extend(self.reader.natural_if(*value)?);
                    }
                    Symbol::Iteration => {}
                    Symbol::Index(_) => return None,
                }
            }
            if coefficient < 0 {
                return None;
            }
        }
        Some(natural)
    }

    /// What a number is no less than in any iteration: where it goes down from one to the next, as in a loop from the end to the
    /// beginning, that of the last.
    fn in_last_iteration(&self, number: &Polynomial) -> Option<Polynomial> {
        let goes_down = |product: &[Symbol], coefficient: i128| coefficient < 0 && product.contains(&Symbol::Iteration);
        if !number.terms().any(|(product, coefficient)| goes_down(product, coefficient)) {
            return Some(number.clone());
        }
        let parts = self.reader.loop_parts()?;
        let step = self.module.integer_constant(parts.step).filter(|step| *step > 0)?;
        // Of the induction variable, from its first value to its last.
        let span = self.reader.offsets(parts.upper, &[])?.minus(&self.reader.offsets(parts.lower, &[])?)?;
        if !self.reader.take_wraps().is_empty() || !self.reader.take_assumed().is_empty() {
            return None;
        }
        let span = span.minus(&Polynomial::constant(1))?;
        let span = match span.number() {
            Some(constant) => Polynomial::constant(constant.max(0) / step * step),
            None => span,
        };
        let mut least = Polynomial::default();
        for (product, coefficient) in number.terms() {
            let others: Vec<Symbol> = product.iter().copied().filter(|symbol| *symbol != Symbol::Iteration).collect();
            let term = if goes_down(product, coefficient) {
                let is_one = others.len() + 1 == product.len() && others.iter().all(|symbol| self.is_natural(symbol));
                let each = Some(coefficient / step).filter(|_| is_one && coefficient % step == 0)?;
                Polynomial::product(others, each).times(&span)?
            } else {
                Polynomial::product(product.to_vec(), coefficient)
            };
            least = least.plus(&term)?;
        }
        Some(least)
    }

    /// Rows before a pointer that two offsets of 32 bits reach, one after the other, if their length is known and iterations
    /// lead to no more of them.
    pub(super) fn rows_before(&self, row: &Polynomial, stride: Amount) -> Option<u64> {
        let goes_on = |(product, coefficient): (&[Symbol], i128)| {
            !product.contains(&Symbol::Iteration)
                || coefficient > 0 && product.iter().all(|symbol| self.is_natural(symbol))
        };
        match stride {
            Amount::Constant(elements @ 1..) if row.terms().all(goes_on) => Some((1_u64 << 32).div_ceil(elements)),
            _ => None,
        }
    }

    /// Returns whether a number is positive in any launch.
    pub(super) fn is_positive(&self, number: &Polynomial) -> bool {
        let mut terms = number.terms();
        number.coefficient(&[]) > 0
            && terms
                .all(|(product, coefficient)| coefficient > 0 && product.iter().all(|symbol| self.is_natural(symbol)))
    }

    /// Returns whether a number is of 32 bits whatever the arguments, if it is not negative.
    pub(super) fn fits(&self, number: &Polynomial) -> bool {
        let most = |symbol: &Symbol| match symbol {
            Symbol::Scalar(value) => self.reader.most(*value),
            Symbol::Iteration | Symbol::Index(_) => None,
        };
        let term = |(product, coefficient): (&[Symbol], i128)| {
            product.iter().try_fold(coefficient, |so_far, symbol| so_far.checked_mul(most(symbol)?))
        };
        let sum = number.terms().map(term).try_fold(0_i128, |sum, term| sum.checked_add(term?));
        sum.is_some_and(|sum| sum <= i128::from(i32::MAX))
    }

    /// Returns whether a number is not negative in any launch.
    fn is_natural(&self, symbol: &Symbol) -> bool {
        match symbol {
            Symbol::Scalar(value) => self.reader.natural_if(*value).is_some_and(|natural| natural.is_empty()),
            Symbol::Iteration | Symbol::Index(_) => true,
        }
    }
}
