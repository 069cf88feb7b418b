//! Cuts a loop along the rows of its tiles.
//!
//! Every operation whose result (or, without one, whose data) has the rows is made `count` operations on a part of them
//! each. The others stay whole and are shared; if they read a tile that was cut, they read all its parts.

use crate::error::Error;
use crate::tile::{Operand, Origin, Tile, TileId, TileLoop, TileOperation, ValueId};

/// The loop cut into `count` sub-tiles; the loop itself if `count` is 1.
///
/// # Errors
/// When the loop has no rows to cut along, is cut already, or `count` does not divide its rows.
pub fn sub_tile(tile_loop: &TileLoop, count: u32) -> Result<TileLoop, Error> {
    if count == 1 {
        return Ok(tile_loop.clone());
    }
    let no_rows = |why: String| Error::NoRows { name: tile_loop.name.clone(), why };
    if tile_loop.sub_tiles > 1 {
        return Err(no_rows(format!("it is cut into {} sub-tiles already", tile_loop.sub_tiles)));
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

impl<'l> Cutter<'l> {
    fn new(whole: &'l TileLoop, count: u32) -> Self {
        let mut next = 0;
        let copies = |op: &TileOperation| if is_cut(whole, op) { count } else { 1 };
        let operations: Vec<Vec<TileId>> = whole
            .operations
            .iter()
            .map(|op| {
                let first = next;
                next += copies(op) as usize;
                (first..next).map(TileId::new).collect()
            })
            .collect();
        let mut cutter = Cutter { whole, count, operations, parts: Vec::new(), tiles: Vec::new() };
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
        for origin in origins {
            let mut part = Tile { origin, ..tile.clone() };
            if let (true, Some(row)) = (cut, part.row_dimension) {
                part.shape[row] /= u64::from(self.count);
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
                operations.push(TileOperation {
                    operands: op.operands.iter().map(|operand| self.operand(operand, sub_tile)).collect(),
                    result: op.result.map(|result| self.parts[result.index()][copy]),
                    sub_tile,
                    ..op.clone()
                });
            }
        }
        TileLoop { operations, tiles: self.tiles, sub_tiles: self.count, ..self.whole.clone() }
    }

    fn operand(&self, operand: &Operand, sub_tile: Option<u32>) -> Operand {
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
                (Some((copy, _)), parts) => parts.get(copy as usize).copied().into_iter().collect(),
                (None, parts) => parts.to_vec(),
            })
            .collect();
        result
    }
}
