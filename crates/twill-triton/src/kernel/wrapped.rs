//! Rows beyond a matrix that a kernel reads elsewhere, `offsets % M` or `minimum(offsets, M - 1)`, and never writes.
//!
//! TMA fills such rows with zeros. That is another tile, but the same kernel, if what is computed from such a row goes into
//! that row of results alone, and stores leave that row out.

use std::collections::HashSet;

use crate::mlir::{BlockId, ForLoop, Module, OperationId, ValueId};
use crate::tile::elementwise;

use super::affine::Reader;
use crate::operations;
use crate::polynomial::{Polynomial, Symbol};

/// A dimension of a tile along which addresses begin again at the end of a matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrap {
    /// The dimension of the tile.
    pub dimension: usize,
    /// Positive before the end.
    pub before_end: Polynomial,
    /// What begins again; none where it is clamped.
    pub number: Option<Polynomial>,
}

/// Returns whether no store writes anything that depends on the elements of a loaded tile beyond the end.
pub(super) fn is_hidden(module: &Module, function: OperationId, loaded: ValueId, wrap: &Wrap) -> bool {
    let follower = Follower { module, function, wrap, around: blocks_around_loop(module, loaded) };
    let mut seen = HashSet::new();
    let mut next = vec![(loaded, wrap.dimension)];
    while let Some((value, dimension)) = next.pop() {
        if !seen.insert((value, dimension)) {
            continue;
        }
        for usage in module.uses(value) {
            match follower.follow(usage.operation, usage.index, dimension) {
                Some(found) => next.extend(found),
                None => return false,
            }
        }
    }
    true
}

/// The blocks around the loop that loads a tile.
fn blocks_around_loop(module: &Module, loaded: ValueId) -> Vec<BlockId> {
    let owner = |block: BlockId| module.region(module.block(block).region).operation;
    let inner = module.defining_operation(loaded).and_then(|load| module.operation(load).block);
    let outer = |block: &BlockId| module.operation(owner(*block)).block;
    std::iter::successors(inner, outer).skip(1).collect()
}

struct Follower<'m> {
    module: &'m Module,
    function: OperationId,
    wrap: &'m Wrap,
    /// Blocks in which a store has the rows that the load had.
    around: Vec<BlockId>,
}

impl Follower<'_> {
    /// Where a row goes on from the operand of an operation: values, and their dimension in which it is still one of the rows
    /// beyond the end. `None` where it may be mixed with others or written.
    fn follow(&self, id: OperationId, operand: usize, dimension: usize) -> Option<Vec<(ValueId, usize)>> {
        let operation = self.module.operation(id);
        let to = |dimension: usize| Some(operation.results.iter().map(|result| (*result, dimension)).collect());
        let name = operation.name.as_str();
        let axis = || usize::try_from(operation.attributes.integer("axis")?).ok();
        match name {
            "tt.dot" if self.rank(*operation.operands.first()?) == 2 => match (operand, dimension) {
                (0, 0) | (1, 1) | (2, _) => to(dimension),
                _ => None,
            },
            "tt.trans" => {
                let order = operation.attributes.integers("order")?;
                to(order.iter().position(|from| usize::try_from(*from) == Ok(dimension))?)
            }
            "tt.expand_dims" => {
                let axis = axis()?;
                to(if dimension >= axis { dimension + 1 } else { dimension })
            }
            "tt.broadcast" => to(dimension),
            "tt.reduce" => match dimension.cmp(&axis()?) {
                std::cmp::Ordering::Less => to(dimension),
                std::cmp::Ordering::Equal => None,
                std::cmp::Ordering::Greater => to(dimension - 1),
            },
            "tt.store" if operand == 1 => self.leaves_out(id, dimension).then(Vec::new),
            // What a loop around this one carries on meets masks of other iterations.
            "scf.yield" if operation.block.is_some_and(|block| self.around.contains(&block)) => None,
            "scf.yield" => {
                let parts = self.loop_of(id)?;
                Some(vec![(*parts.carried.get(operand)?, dimension), (*parts.results.get(operand)?, dimension)])
            }
            "scf.for" => {
                let parts = self.module.for_loop(id)?;
                let value = operation.operands.get(operand)?;
                let begins = (0..parts.initial.len()).filter(|k| parts.initial[*k] == *value);
                Some(begins.flat_map(|k| [(parts.carried[k], dimension), (parts.results[k], dimension)]).collect())
            }
            "tt.extern_elementwise" if operation.attributes.flag("pure") => to(dimension),
            _ if elementwise(name).is_some() || operations::is_conversion(name) => to(dimension),
            _ => None,
        }
    }

    fn rank(&self, value: ValueId) -> usize {
        self.module.type_of(value).known_shape().unwrap_or_default().len()
    }

    /// The loop whose body an operation ends.
    fn loop_of(&self, end: OperationId) -> Option<ForLoop<'_>> {
        let block = self.module.operation(end).block?;
        let parts = self.module.for_loop(self.module.region(self.module.block(block).region).operation)?;
        (parts.terminator == end).then_some(parts)
    }

    /// Returns whether a store's mask is false for the rows beyond the end.
    fn leaves_out(&self, store: OperationId, dimension: usize) -> bool {
        let operation = self.module.operation(store);
        let is_outside = operation.block.is_some_and(|block| self.around.contains(&block));
        let Some(mask) = operation.operands.get(2).filter(|_| is_outside) else { return false };
        let along: Vec<Option<usize>> = (0..self.rank(*mask)).map(Some).collect();
        let reader = Reader::new(self.module, self.function, None);
        let conditions = reader.conditions(*mask, &along).filter(|_| reader.take_wraps().is_empty());
        // Here the rows run along another dimension.
        let wanted = self.wrap.before_end.renamed(Symbol::Index(self.wrap.dimension), Symbol::Index(dimension));
        conditions.is_some_and(|conditions| conditions.contains(&wanted))
    }
}
