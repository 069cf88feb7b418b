//! Where a tile of a matrix begins.

use crate::builder::reader::{LoopScope, Reader};
use crate::error::Error;
use crate::ir::Region;
use crate::ir::{Elementwise, IntegerPredicate};
use crate::ir::{Expression, ExpressionKind, IterationNumber};
use twill_triton::kernel::{MatrixTile, Polynomial, Symbol, WholeTile};
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

/// A scalar in 64 bits.
fn widen(scalar: Expression) -> Expression {
    match (&scalar.kind, &scalar.element) {
        (_, Type::Integer(64)) => scalar,
        (ExpressionKind::Integer(_), _) => Expression { element: Type::Integer(64), ..scalar },
        _ => Expression { element: Type::Integer(64), ..Expression::apply(Elementwise::ExtSI, vec![scalar]) },
    }
}

/// A coordinate is less, so that its tile's last is a number of 32 bits.
const MOST_COORDINATE: i128 = (1 << 31) - (1 << 12);

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
        let of_batch = tile.batch.iter().map(|number| (number, 0));
        let mut ahead = region.starts.clone();
        if let Some(row) = ahead.first_mut() {
            *row += tile.matrix.rows_before;
        }
        for (start, ahead) in of_batch.chain(tile.tile_origin.iter().zip(ahead)) {
            coordinates.push(self.sum(id, start, i128::from(ahead), narrow, program, at)?);
        }
        Ok(coordinates)
    }

    /// Whether the part of a tile that is `region` lies in its matrix as a whole, in an iteration of a loop.
    pub fn is_whole(
        &mut self,
        id: OperationId,
        whole: &WholeTile,
        region: &Region,
        program: Option<u32>,
        at: LoopScope,
    ) -> Result<Expression, Error> {
        let as_it_is = if whole.wide { widen } else { narrow };
        let mut all = Vec::new();
        let mut compare = |predicate: IntegerPredicate, number: &Expression, than: i128| {
            // What is known is true, or the tile is never whole.
            let is_known = matches!(number.kind, ExpressionKind::Integer(n) if match predicate {
                IntegerPredicate::Sgt => n > than,
                IntegerPredicate::Sge => n >= than,
                _ => n < than,
            });
            let than = Expression { element: number.element.clone(), ..Expression::integer(than) };
            let operation = Elementwise::CmpI(predicate);
            let comparison = Expression::apply(operation, vec![number.clone(), than]);
            all.extend((!is_known).then_some(Expression { element: Type::Integer(1), ..comparison }));
        };
        for positive in &whole.positive {
            // Where the element's indices make it least.
            let mut least = 0;
            for (dimension, (start, extent)) in region.starts.iter().zip(&region.extents).enumerate() {
                let coefficient = positive.coefficient(&[Symbol::Index(dimension)]);
                let index = if coefficient < 0 { start + extent.saturating_sub(1) } else { *start };
                least += coefficient * i128::from(index);
            }
            let number = self.sum(id, positive, least, as_it_is, program, at)?;
            compare(IntegerPredicate::Sgt, &number, 0);
        }
        let turned = region.before_transposition(&[1, 0]);
        let starts = if whole.tile.transposed { turned.starts } else { region.starts.clone() };
        let batches = whole.tile.batch.iter().map(|number| (number, 0));
        for (start, ahead) in batches.chain(whole.tile.tile_origin.iter().zip(starts)) {
            let number = self.sum(id, start, i128::from(ahead), as_it_is, program, at)?;
            if whole.wide {
                compare(IntegerPredicate::Slt, &number, MOST_COORDINATE);
            }
            if !whole.is_natural {
                compare(IntegerPredicate::Sge, &number, 0);
            }
        }
        let both = |a: Expression, b: Expression| Expression::apply(Elementwise::AndI, vec![a, b]);
        let always = Expression { element: Type::Integer(1), ..Expression::integer(1) };
        Ok(all.into_iter().reduce(both).unwrap_or(always))
    }

    /// A polynomial and a constant, without its terms in indices, made of scalars in the bits that `element` gives them.
    fn sum(
        &mut self,
        id: OperationId,
        polynomial: &Polynomial,
        constant: i128,
        element: fn(Expression) -> Expression,
        program: Option<u32>,
        at: LoopScope,
    ) -> Result<Expression, Error> {
        let mut sum = element(Expression::integer(0));
        for (symbols, coefficient) in polynomial.terms() {
            if !matches!(symbols, [Symbol::Index(_)]) {
                let product = self.product(id, symbols, coefficient, element, program, at)?;
                sum = element(Expression::scalar(Elementwise::AddI, sum, product));
            }
        }
        // What is folded is of 32 bits.
        Ok(element(Expression::scalar(Elementwise::AddI, sum, element(Expression::integer(constant)))))
    }

    fn product(
        &mut self,
        id: OperationId,
        symbols: &[Symbol],
        coefficient: i128,
        element: fn(Expression) -> Expression,
        program: Option<u32>,
        at: LoopScope,
    ) -> Result<Expression, Error> {
        let mut product: Option<Expression> = None;
        for symbol in symbols {
            let factor = match symbol {
                Symbol::Scalar(value) => element(self.scalar(*value, program, at)?),
                Symbol::Iteration | Symbol::Index(_) => match at {
                    Some((index, iteration)) if *symbol == Symbol::Iteration => {
                        // It has the type of the loop's bounds.
                        let lowering = &self.lowering;
                        let own = lowering.module.type_of(lowering.loops[index].parts.induction).clone();
                        let kind = ExpressionKind::Iteration(IterationNumber { index, iteration });
                        element(Expression { kind, shape: Vec::new(), element: own })
                    }
                    _ => return Err(self.lowering.defect(id, "where a tile of a matrix begins")),
                },
            };
            product = Some(match product {
                Some(product) => Expression::scalar(Elementwise::MulI, product, factor),
                None => factor,
            });
        }
        let coefficient = element(Expression::integer(coefficient));
        Ok(match product {
            Some(product) => Expression::scalar(Elementwise::MulI, product, coefficient),
            None => coefficient,
        })
    }
}
