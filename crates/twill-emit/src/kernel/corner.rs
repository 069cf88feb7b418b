//! Where a tile of a matrix begins.

use super::expression::{Expression, ExpressionKind, IterationNumber};
use super::reader::Reader;
use super::region::Region;
use crate::error::Error;
use crate::program::Iteration;
use twill_triton::kernel::{Polynomial, Symbol};
use twill_triton::mlir::Type;

impl Reader<'_, '_> {
    /// The matrix's row and column of the part of a tile that is wanted, which is `region` of the matrix's tile, in an
    /// iteration of a loop.
    pub fn corner(
        &mut self,
        corner: &[Polynomial; 2],
        region: &Region,
        program: Option<u32>,
        at: (usize, Iteration),
    ) -> Result<Vec<Expression>, Error> {
        let mut coordinates = Vec::new();
        for (start, ahead) in corner.iter().zip(&region.starts) {
            let mut sum = Expression::integer(0);
            for (symbols, coefficient) in start.terms() {
                let product = self.product(symbols, coefficient, program, at)?;
                sum = Expression::scalar("arith.addi", sum, product);
            }
            coordinates.push(Expression::scalar("arith.addi", sum, Expression::integer(i128::from(*ahead))));
        }
        Ok(coordinates)
    }

    fn product(
        &mut self,
        symbols: &[Symbol],
        coefficient: i128,
        program: Option<u32>,
        (index, iteration): (usize, Iteration),
    ) -> Result<Expression, Error> {
        let mut product: Option<Expression> = None;
        for symbol in symbols {
            let factor = match symbol {
                Symbol::Scalar(value) => self.scalar(*value, program, None)?,
                Symbol::Iteration => Expression {
                    kind: ExpressionKind::Iteration(IterationNumber { index, iteration }),
                    shape: Vec::new(),
                    element: Type::Integer(32),
                },
                Symbol::Index(_) => {
                    let id = self.lowering.loops[index].parts.operation;
                    return Err(self.lowering.defect(id, "where a tile of a matrix begins"));
                }
            };
            product = Some(match product {
                Some(product) => Expression::scalar("arith.muli", product, factor),
                None => factor,
            });
        }
        let coefficient = Expression::integer(coefficient);
        Ok(match product {
            Some(product) => Expression::scalar("arith.muli", product, coefficient),
            None => coefficient,
        })
    }
}
