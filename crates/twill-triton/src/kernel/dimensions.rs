//! Finds the rows of a loop's tiles: the dimension that runs through most of its MMAs.
//!
//! Dimensions of tiles are put into classes by unification: element by element they are the same; `C[m, n] = A[m, k] ·
//! B[k, n]` shares `m`, `n` and `k`; views and reductions say which of their dimensions are which. A tile from before the
//! loop may be read in several ways and joins nothing.

use crate::operations::along_axis;
use crate::tile::{Operand, Origin, Role, TileLoop, TileOpKind, TileOperation};

/// Classes of dimensions: a forest whose roots stand for classes.
#[derive(Debug)]
struct Classes {
    parents: Vec<usize>,
    extents: Vec<u64>,
}

impl Classes {
    fn add(&mut self, shape: &[u64]) -> usize {
        let first = self.parents.len();
        self.parents.extend(first..first + shape.len());
        self.extents.extend(shape);
        first
    }

    fn root(&self, mut node: usize) -> usize {
        while self.parents[node] != node {
            node = self.parents[node];
        }
        node
    }

    /// Joins two dimensions, unless one of them is repeated along the other.
    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        if self.extents[a] == self.extents[b] && self.extents[a] > 1 {
            self.parents[a.max(b)] = a.min(b);
        }
    }
}

/// Nodes of a loop's dimensions: those of every tile, and those of every operand of every operation.
struct Nodes {
    tiles: Vec<usize>,
    operands: Vec<Vec<usize>>,
}

/// Sets the rows of the loop and what follows from them.
pub(super) fn find_rows(tile_loop: &mut TileLoop) {
    let mut classes = Classes { parents: Vec::new(), extents: Vec::new() };
    let tiles = tile_loop.tiles.iter().map(|tile| classes.add(&tile.shape)).collect();
    let operand = |operand: &Operand, classes: &mut Classes| classes.add(&operand.shape);
    let operands =
        tile_loop.operations.iter().map(|op| op.operands.iter().map(|o| operand(o, &mut classes)).collect()).collect();
    let nodes = Nodes { tiles, operands };
    for (op, places) in tile_loop.operations.iter().zip(&nodes.operands) {
        join_operation(tile_loop, op, places, &nodes.tiles, &mut classes);
    }
    let Some(first) = choose(tile_loop, &nodes, &classes) else { return };
    let rows = with_apart(tile_loop, &nodes, &classes, first);
    mark(tile_loop, &nodes, &classes, &rows);
}

fn join_operation(l: &TileLoop, op: &TileOperation, places: &[usize], tiles: &[usize], classes: &mut Classes) {
    for (operand, place) in op.operands.iter().zip(places) {
        for tile in operand.tiles.iter().filter(|tile| matches!(l.tile(**tile).origin, Origin::Operation(_))) {
            for (d, source) in operand.dimensions.iter().enumerate() {
                if let Some(source) = source {
                    classes.join(place + d, tiles[tile.index()] + source);
                }
            }
        }
    }
    let Some(result) = op.result else { return };
    let (result, rank) = (tiles[result.index()], l.tile(result).shape.len());
    let depth = |role: Role| {
        let at = op.operands.iter().position(|o| o.role == role)?;
        let rank = op.operands[at].shape.len();
        Some(places[at] + rank.checked_sub(if role == Role::Left { 1 } else { 2 })?)
    };
    if let (Some(left), Some(right)) = (depth(Role::Left), depth(Role::Right)) {
        classes.join(left, right);
    }
    for (operand, place) in op.operands.iter().zip(places) {
        for d in 0..operand.shape.len() {
            if let Some(of_result) = result_dimension(op, rank, operand, d).filter(|d| *d < rank) {
                classes.join(place + d, result + of_result);
            }
        }
    }
}

/// The dimension of an operation's result, which has so many, that a dimension of its operand runs along.
fn result_dimension(op: &TileOperation, of_result: usize, operand: &Operand, dimension: usize) -> Option<usize> {
    let rank = operand.shape.len();
    match (operand.role, op.kind) {
        (Role::Address, _) => None,
        (Role::Left, _) => (dimension + 1 < rank).then_some(dimension),
        (Role::Right, _) => (dimension + 2 != rank).then_some(dimension),
        (Role::Input, TileOpKind::Reduce { axis, .. }) => match dimension.cmp(&axis) {
            std::cmp::Ordering::Less => Some(dimension),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(dimension - 1),
        },
        (Role::Input, TileOpKind::Opaque { axis }) => along_axis(axis?, rank, of_result, dimension),
        (Role::Accumulator | Role::Input, _) => Some(dimension),
    }
}

/// The class that most MMAs have as rows of their result; among equals the one with more carried accumulators, then
/// the first. Without MMAs: the first dimension that survives a reduction, or that a tile of two dimensions has.
fn choose(l: &TileLoop, nodes: &Nodes, classes: &Classes) -> Option<usize> {
    let mut votes: Vec<(usize, u32, u32)> = Vec::new();
    for op in l.operations.iter().filter(|op| matches!(op.kind, TileOpKind::Dot { .. })) {
        let Some(result) = op.result else { continue };
        let Some(row) = l.tile(result).shape.len().checked_sub(2) else { continue };
        let class = classes.root(nodes.tiles[result.index()] + row);
        let carried = u32::from(op.operand(Role::Accumulator).is_some_and(|o| o.distance > 0));
        match votes.iter_mut().find(|(known, ..)| *known == class) {
            Some((_, dots, accumulators)) => (*dots, *accumulators) = (*dots + 1, *accumulators + carried),
            None => votes.push((class, 1, carried)),
        }
    }
    // `max_by_key` takes the last of equals.
    if let Some((class, ..)) = votes.iter().rev().max_by_key(|(_, dots, accumulators)| (*dots, *accumulators)) {
        return Some(*class);
    }
    let results = || l.operations.iter().filter_map(|op| op.result.map(|result| (op, result)));
    let survives = results().find(|(op, result)| {
        matches!(op.kind, TileOpKind::Reduce { .. }) && l.tile(*result).shape.iter().any(|extent| *extent > 1)
    });
    let is_plane = |shape: &[u64]| shape.iter().filter(|extent| **extent > 1).count() > 1;
    let plane = results().find(|(_, result)| is_plane(&l.tile(*result).shape));
    let (_, result) = survives.or(plane)?;
    let first = l.tile(result).shape.iter().position(|extent| *extent > 1)?;
    Some(classes.root(nodes.tiles[result.index()] + first))
}

/// The rows, and those of MMAs that have nothing to do with the loop's others, if they are as many: two sums of products
/// that only combine after the loop.
fn with_apart(l: &TileLoop, nodes: &Nodes, classes: &Classes, first: usize) -> Vec<usize> {
    let mut rows = vec![first];
    for (op, places) in l.operations.iter().zip(&nodes.operands) {
        let (TileOpKind::Dot { .. }, Some(result)) = (op.kind, op.result) else { continue };
        let of_result = nodes.tiles[result.index()];
        let rank = l.tile(result).shape.len();
        let Some(row) = rank.checked_sub(2).map(|row| classes.root(of_result + row)) else { continue };
        let operands = op.operands.iter().zip(places).flat_map(|(o, place)| *place..place + o.shape.len());
        let mut own = operands.chain(of_result..of_result + rank).map(|node| classes.root(node));
        if classes.extents[row] == classes.extents[first] && !own.any(|class| rows.contains(&class)) {
            rows.push(row);
        }
    }
    rows
}

/// Writes down where the rows are.
fn mark(l: &mut TileLoop, nodes: &Nodes, classes: &Classes, rows: &[usize]) {
    l.rows = rows.first().map(|class| classes.extents[*class]);
    let is_row = |first: usize, d: &usize| rows.contains(&classes.root(first + d));
    for (tile, first) in l.tiles.iter_mut().zip(&nodes.tiles) {
        let found: Vec<usize> = (0..tile.shape.len()).filter(|d| is_row(*first, d)).collect();
        tile.row_dimension = found.first().copied();
        if let (true, Origin::Operation(producer), None) = (found.len() > 1, &tile.origin, &l.ambiguous) {
            let operation = &l.operations[producer.index()];
            l.ambiguous = Some(operation.variable.clone());
        }
    }
    let tiles = &l.tiles;
    for (op, places) in l.operations.iter_mut().zip(&nodes.operands) {
        let of_result = op.result.map_or(0, |result| tiles[result.index()].shape.len());
        let found: Vec<Option<usize>> = op
            .operands
            .iter()
            .zip(places)
            .map(|(operand, first)| {
                let has_result = op.result.is_some();
                (0..operand.shape.len())
                    .filter(|d| !has_result || result_dimension(op, of_result, operand, *d).is_some())
                    .find(|d| operand.role != Role::Address && is_row(*first, d))
            })
            .collect();
        for (operand, row) in op.operands.iter_mut().zip(found) {
            operand.row_dimension = row;
        }
    }
}
