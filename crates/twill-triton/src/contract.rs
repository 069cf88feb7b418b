//! Contraction of a multiply and the add or subtract that follows it into one multiply-add, as ptxas does it.

use std::collections::BTreeMap;

use crate::tile::{FUSED, Operand, Origin, Role, TileId, TileLoop, TileOpKind, TileOperation};

/// The loop with every floating-point multiply that feeds only one add or subtract of the same shape, in the same
/// iteration, made one operation with it. The new operation stands where the add stood and has its name.
pub fn contract(tile_loop: &TileLoop) -> TileLoop {
    let mut absorbed: BTreeMap<usize, usize> = BTreeMap::new();
    for (index, op) in tile_loop.operations.iter().enumerate() {
        let multiply = is_named(op, &["add", "subtract"])
            .then(|| op.operands.iter().find_map(|operand| absorbable(tile_loop, op, operand)))
            .flatten();
        if let Some(multiply) = multiply {
            absorbed.insert(multiply.index(), index);
        }
    }
    let mut result = tile_loop.clone();
    for (multiply, add) in &absorbed {
        let (name, recipe) = FUSED;
        let multiply = &tile_loop.operations[*multiply];
        let fused = &mut result.operations[*add];
        fused.kind = TileOpKind::Elementwise { name, recipe };
        fused.operands.retain(|operand| operand.tiles.first().copied() != multiply.result);
        fused.operands.splice(0..0, multiply.operands.iter().cloned());
        fused.statements.splice(0..0, multiply.statements.iter().copied());
    }
    remove(&mut result, |index| absorbed.contains_key(&index));
    result
}

fn is_named(op: &TileOperation, names: &[&str]) -> bool {
    matches!(op.kind, TileOpKind::Elementwise { name, recipe } if names.contains(&name) && recipe == FUSED.1)
}

/// The multiplication that gives an operand of an add, if it can be made one with it.
fn absorbable(l: &TileLoop, add: &TileOperation, operand: &Operand) -> Option<TileId> {
    let [value] = operand.tiles.as_slice() else { return None };
    let producer = l.producer(*value)?;
    let multiply = l.operation(producer);
    let shape = &l.tile(*value).shape;
    let plain = operand.distance == 0
        && operand.role == Role::Input
        && operand.shape == *shape
        && operand.dimensions.iter().enumerate().all(|(at, dimension)| *dimension == Some(at));
    let same_shape = add.result.is_some_and(|result| l.tile(result).shape == *shape);
    let uses = l.operations.iter().flat_map(|op| &op.operands).filter(|o| o.tiles.contains(value)).count();
    (is_named(multiply, &["multiply"]) && plain && same_shape && uses == 1).then_some(producer)
}

/// Takes operations and their results out.
fn remove(l: &mut TileLoop, is_gone: impl Fn(usize) -> bool) {
    let mut kept = 0;
    let new: Vec<Option<TileId>> = (0..l.operations.len())
        .map(|index| {
            (!is_gone(index)).then(|| {
                kept += 1;
                TileId::new(kept - 1)
            })
        })
        .collect();
    let mut values = Vec::with_capacity(l.tiles.len());
    let mut tiles = Vec::with_capacity(l.tiles.len());
    for tile in &l.tiles {
        let origin = match &tile.origin {
            Origin::Operation(producer) => new[producer.index()].map(Origin::Operation),
            invariant @ Origin::Invariant { .. } => Some(invariant.clone()),
        };
        values.push(crate::tile::ValueId::new(tiles.len()));
        if let Some(origin) = origin {
            tiles.push(crate::tile::Tile { origin, ..tile.clone() });
        }
    }
    l.tiles = tiles;
    let old = std::mem::take(&mut l.operations);
    l.operations = old.into_iter().zip(&new).filter(|(_, new)| new.is_some()).map(|(op, _)| op).collect();
    for op in &mut l.operations {
        op.result = op.result.map(|value| values[value.index()]);
        for tile in op.operands.iter_mut().flat_map(|operand| &mut operand.tiles) {
            *tile = values[tile.index()];
        }
    }
}
