//! Where a tile of a matrix begins.

use crate::builder::reader::{LoopScope, Reader};
use crate::error::Error;
use crate::ir::Elementwise;
use crate::ir::Region;
use crate::ir::{Expression, ExpressionKind, IterationNumber};
use twill_triton::kernel::{MatrixTile, Symbol};
use twill_triton::mlir::{OperationId, Type};

/// A scalar as a coordinate has it, in 32 bits; it fits.
fn narrow(scalar: Expression) -> Expression {
    match scalar.element {
        Type::Integer(64) => {
            Expression { element: Type::Integer(32), ..Expression::apply(Elementwise::TruncI, vec![scalar]) }
        }
        _ => scalar,
    }
}

impl Reader<'_, '_> {
    /// The coordinates of the part of a tile that `id` reads or writes, which is `region` of the matrix's tile, in an iteration
    /// of a loop or outside of loops: which matrix it is, row, and column.
    pub fn tile_origin(
        &mut self,
        id: OperationId,
        tile: &MatrixTile,
        region: &Region,
        program: Option<u32>,
        at: LoopScope,
    ) -> Result<Vec<Expression>, Error> {
        let mut coordinates = Vec::new();
        let of_batch = tile.batch.iter().map(|number| (number, &0));
        for (start, ahead) in of_batch.chain(tile.tile_origin.iter().zip(&region.starts)) {
            let mut sum = Expression::integer(0);
            for (symbols, coefficient) in start.terms() {
                let product = self.product(id, symbols, coefficient, program, at)?;
                sum = Expression::scalar(Elementwise::AddI, sum, product);
            }
            coordinates.push(Expression::scalar(Elementwise::AddI, sum, Expression::integer(i128::from(*ahead))));
        }
        Ok(coordinates)
    }

    fn product(
        &mut self,
        id: OperationId,
        symbols: &[Symbol],
        coefficient: i128,
        program: Option<u32>,
        at: LoopScope,
    ) -> Result<Expression, Error> {
        let mut product: Option<Expression> = None;
        for symbol in symbols {
            let factor = match symbol {
                Symbol::Scalar(value) => narrow(self.scalar(*value, program, None)?),
                Symbol::Iteration | Symbol::Index(_) => match at {
                    Some((index, iteration)) if *symbol == Symbol::Iteration => {
                        // It has the type of the loop's bounds.
                        let lowering = &self.lowering;
                        let element = lowering.module.type_of(lowering.loops[index].parts.induction).clone();
                        let kind = ExpressionKind::Iteration(IterationNumber { index, iteration });
                        narrow(Expression { kind, shape: Vec::new(), element })
                    }
                    _ => return Err(self.lowering.defect(id, "where a tile of a matrix begins")),
                },
            };
            product = Some(match product {
                Some(product) => Expression::scalar(Elementwise::MulI, product, factor),
                None => factor,
            });
        }
        let coefficient = Expression::integer(coefficient);
        Ok(match product {
            Some(product) => Expression::scalar(Elementwise::MulI, product, coefficient),
            None => coefficient,
        })
    }
}
