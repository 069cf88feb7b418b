//! Cuts a loop along the rows of its tiles.
//!
//! Every operation whose result (or, without one, whose data) has the rows is made `count` operations on a part of them
//! each. The others stay whole and are shared; if they read a tile that was cut, they read all its parts.
//!
//! An MMA without the rows (dQ of attention backward, which sums over them) would burden one warp group with the whole
//! result. It is shared out: every sub-tile has its part of the columns, and of the arithmetic and the stores after it,
//! as in FlashAttention-3.

use std::collections::BTreeSet;

use crate::error::Error;
use crate::tile::{Operand, Origin, Role, Split, Tile, TileId, TileLoop, TileOpKind, TileOperation, ValueId};

/// The loop cut into `count` sub-tiles; the loop itself if `count` is 1.
///
/// # Errors
/// When the loop has no rows to cut along, is cut already, or `count` does not divide its rows.
pub fn sub_tile(tile_loop: &TileLoop, count: u32) -> Result<TileLoop, Error> {
    if count == 1 {
        return Ok(tile_loop.clone());
    }
    let no_rows = |why: String| Error::NoRows { name: tile_loop.name.clone(), why };
    if tile_loop.split != Split::Whole {
        return Err(no_rows(format!("it is {} already", tile_loop.split)));
    }
    let rows = tile_loop.rows.ok_or_else(|| no_rows("it has no tile of two dimensions".into()))?;
    if count == 0 || rows % u64::from(count) != 0 {
        return Err(Error::SubTilesUneven { name: tile_loop.name.clone(), rows, count });
    }
    if let Some(variable) = &tile_loop.ambiguous {
        return Err(no_rows(format!("the rows run along two dimensions of `{variable}`")));
    }
    Ok(Cutter::new(tile_loop, count).cut())
}

struct Cutter<'l> {
    whole: &'l TileLoop,
    count: u32,
    /// Operations that are cut along their columns.
    shared_out: BTreeSet<TileId>,
    /// New places of every operation's copies.
    operations: Vec<Vec<TileId>>,
    /// New places of every tile's parts.
    parts: Vec<Vec<ValueId>>,
    tiles: Vec<Tile>,
}

fn is_cut(l: &TileLoop, op: &TileOperation) -> bool {
    match op.result {
        Some(result) => l.tile(result).row_dimension.is_some(),
        None => op.operands.iter().any(|operand| operand.row_dimension.is_some()),
    }
}

/// MMAs without the rows, and in the order of the text what only goes on with their results.
fn shared_out(l: &TileLoop, count: u32) -> BTreeSet<TileId> {
    let mut found = BTreeSet::new();
    for (index, op) in l.operations.iter().enumerate().filter(|(_, op)| !is_cut(l, op)) {
        let shape = op.result.map(|result| &l.tile(result).shape);
        let divides = |shape: &[u64]| shape.last().is_some_and(|columns| columns % u64::from(count) == 0);
        let goes_on = |operand: &Operand| {
            let split = operand.tiles.iter().all(|value| l.producer(*value).is_some_and(|id| found.contains(&id)));
            split && is_whole(l, operand) && shape.is_none_or(|shape| *shape == operand.shape)
        };
        let can_be = match op.kind {
            TileOpKind::Dot { .. } => shape.is_some_and(|shape| divides(shape)),
            TileOpKind::Elementwise { .. }
            | TileOpKind::Convert
            | TileOpKind::Store(_)
            | TileOpKind::AtomicReduce(_) => {
                op.operands.iter().any(|operand| operand.role == Role::Input && goes_on(operand))
            }
            TileOpKind::Load(_) | TileOpKind::Reduce { .. } | TileOpKind::Opaque { .. } => false,
        };
        if can_be {
            found.insert(TileId::new(index));
        }
    }
    found
}

/// Returns whether an operand is a tile as it was computed.
fn is_whole(l: &TileLoop, operand: &Operand) -> bool {
    let [value] = operand.tiles.as_slice() else { return false };
    operand.shape == l.tile(*value).shape && !operand.is_transposed()
}

impl<'l> Cutter<'l> {
    fn new(whole: &'l TileLoop, count: u32) -> Self {
        let mut next = 0;
        let shared_out = shared_out(whole, count);
        let operations: Vec<Vec<TileId>> = whole
            .operations
            .iter()
            .enumerate()
            .map(|(index, op)| {
                let is_cut = is_cut(whole, op) || shared_out.contains(&TileId::new(index));
                let first = next;
                next += if is_cut { count as usize } else { 1 };
                (first..next).map(TileId::new).collect()
            })
            .collect();
        let mut cutter = Cutter { whole, count, shared_out, operations, parts: Vec::new(), tiles: Vec::new() };
        for tile in &whole.tiles {
            let parts = cutter.add_parts(tile);
            cutter.parts.push(parts);
        }
        cutter
    }

    fn add_parts(&mut self, tile: &Tile) -> Vec<ValueId> {
        let origins: Vec<Origin> = match &tile.origin {
            Origin::Operation(producer) => {
                self.operations[producer.index()].iter().map(|id| Origin::Operation(*id)).collect()
            }
            invariant @ Origin::Invariant { .. } => vec![invariant.clone()],
        };
        let cut = origins.len() > 1;
        let first = self.tiles.len();
        for (index, origin) in (0_u32..).zip(origins) {
            let mut part = Tile { origin, part: cut.then_some(index), ..tile.clone() };
            // An operation without rows was cut along its columns.
            let dimension = part.row_dimension.or(part.shape.len().checked_sub(1));
            if let (true, Some(dimension)) = (cut, dimension) {
                part.shape[dimension] /= u64::from(self.count);
            }
            self.tiles.push(part);
        }
        (first..self.tiles.len()).map(ValueId::new).collect()
    }

    fn cut(self) -> TileLoop {
        let mut operations = Vec::new();
        for (index, op) in self.whole.operations.iter().enumerate() {
            let copies = self.operations[index].len();
            for copy in 0..copies {
                let sub_tile = u32::try_from(copy).ok().filter(|_| copies > 1);
                let by_columns = self.shared_out.contains(&TileId::new(index));
                let operand = |operand: &Operand| match (by_columns, sub_tile) {
                    (true, Some(copy)) => self.columns(op, operand, copy),
                    _ => self.rows(operand, sub_tile),
                };
                operations.push(TileOperation {
                    operands: op.operands.iter().map(operand).collect(),
                    result: op.result.map(|result| self.parts[result.index()][copy]),
                    sub_tile,
                    ..op.clone()
                });
            }
        }
        TileLoop { operations, tiles: self.tiles, split: Split::Rows(self.count), ..self.whole.clone() }
    }

    /// The operands of a sub-tile of an operation that is split by columns: its columns, and all of an MMA's left
    /// operand.
    fn columns(&self, op: &TileOperation, operand: &Operand, copy: u32) -> Operand {
        let mut result = self.rows(operand, None);
        let inputs = op.operands.iter().filter(|operand| operand.role == Role::Input);
        let columns = match op.result {
            Some(tile) => self.whole.tile(tile).shape.last().copied(),
            None => inputs.filter_map(|operand| operand.shape.last().copied()).max(),
        };
        match result.shape.last_mut() {
            Some(extent) if operand.role != Role::Left && Some(*extent) == columns => *extent /= u64::from(self.count),
            _ => return result,
        }
        if let [value] = operand.tiles.as_slice() {
            let is_shared_out = self.whole.producer(*value).is_some_and(|id| self.shared_out.contains(&id));
            let part = self.parts[value.index()].get(copy as usize);
            if let (true, true, Some(part)) = (is_shared_out, is_whole(self.whole, operand), part) {
                result.tiles = vec![*part];
            }
        }
        result
    }

    /// The operands of a sub-tile: its rows.
    fn rows(&self, operand: &Operand, sub_tile: Option<u32>) -> Operand {
        let mut result = operand.clone();
        let along = sub_tile.zip(operand.row_dimension);
        if let Some((_, row)) = along {
            result.shape[row] /= u64::from(self.count);
        }
        result.tiles = operand
            .tiles
            .iter()
            .flat_map(|tile| match (along, self.parts[tile.index()].as_slice()) {
                (_, [whole]) => vec![*whole],
                (Some((copy, _)), parts) if self.whole.tile(*tile).row_dimension.is_some() => {
                    parts.get(copy as usize).copied().into_iter().collect()
                }
                (_, parts) => parts.to_vec(),
            })
            .collect();
        result
    }
}
