//! Compares the memory that two executions leave.

use crate::memory::Memory;
use crate::value::Data;
use std::fmt;
use twill_codegen::ir::WarpProgram;
use twill_codegen::ir::{Expression, ExpressionKind};
use twill_codegen::ir::{Node, Op};

/// How much two results may differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Not in a bit.
    Exact,
    /// By this part of the largest number of the array.
    Relative(f64),
}

/// An element in which two results differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The array.
    pub array: String,
    /// The element's position.
    pub element: usize,
    /// The expected value.
    pub expected: f64,
    /// The value found.
    pub found: f64,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { array, element, expected, found } = self;
        write!(f, "element {element} of {array} is {found:e} and should be {expected:e}")
    }
}

/// The first element in which what was found differs from what was expected.
pub fn difference(expected: &Memory, found: &Memory, tolerance: Tolerance) -> Option<Difference> {
    expected.arrays.iter().zip(&found.arrays).find_map(|(a, b)| {
        let (element, expected, found) = match (&a.data, &b.data) {
            (Data::Floats(x), Data::Floats(y)) => {
                let allowed = match tolerance {
                    Tolerance::Exact => 0.0,
                    Tolerance::Relative(part) => {
                        part * x.iter().filter(|x| x.is_finite()).fold(0.0, |m: f64, x| m.max(x.abs()))
                    }
                };
                let differs = |(x, y): (&f64, &f64)| match tolerance {
                    _ if x.is_nan() || y.is_nan() => x.is_nan() != y.is_nan(),
                    Tolerance::Exact => x.to_bits() != y.to_bits(),
                    Tolerance::Relative(_) => x != y && (x - y).abs() > allowed,
                };
                let place = x.iter().zip(y).position(differs)?;
                (place, x[place], y[place])
            }
            (Data::Integers(x), Data::Integers(y)) => {
                let place = x.iter().zip(y).position(|(x, y)| x != y)?;
                (place, x[place] as f64, y[place] as f64)
            }
            _ => return None,
        };
        Some(Difference { array: a.name.clone(), element, expected, found })
    })
}

/// The accuracy of a program's results: all bits, unless it adds row sums in another order than the source.
pub fn tolerance(program: &WarpProgram) -> Tolerance {
    let in_partials = program.groups.iter().flat_map(|g| &g.body).any(has_partials);
    if in_partials { Tolerance::Relative(1e-9) } else { Tolerance::Exact }
}

fn has_partials(node: &Node) -> bool {
    match node {
        Node::Op(Op::Let { value, .. }, _) => {
            let mut found = false;
            value.walk(&mut |e: &Expression| found |= matches!(e.kind, ExpressionKind::PartialSums(_)));
            found
        }
        _ => node.blocks().into_iter().flatten().any(has_partials),
    }
}
