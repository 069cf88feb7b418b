//! Traces an operand through views and carried values to the tile that it is.

use std::collections::{HashMap, HashSet};

use crate::error::{Error, OperationLocation};
use crate::mlir::{Definition, ForLoop, Module, OperationId, Type, ValueId};
use crate::tile::{self, Element, Origin, Tile, TileId};

use super::grid::Differences;
use super::varies::{Facts, is_in_body};
use super::views::{self, Mapping};
use super::{constant, names};

/// Elements of the largest tile: Triton's own limit, which also keeps all products here small.
const LARGEST_TILE: u64 = 1 << 20;

/// A tile as an operand sees it.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub tile: tile::ValueId,
    pub distance: u32,
    pub shape: Vec<u64>,
    pub element: Element,
    pub dimensions: Mapping,
}

/// The kind of an operand.
#[derive(Clone, Debug)]
pub(super) enum Resolved {
    /// A scalar, or something computed from scalars alone: it costs nothing to have.
    Scalar,
    /// A constant; as an accumulator it is a fresh one.
    Constant,
    /// A tile.
    Tile(View),
}

/// Resolves values of one loop; it knows the tiles that the loop's operations compute.
pub(super) struct Resolver<'m> {
    pub module: &'m Module,
    pub parts: ForLoop<'m>,
    pub facts: Facts,
    differences: &'m Differences,
    pub tiles: Vec<Tile>,
    computed: HashMap<ValueId, tile::ValueId>,
    invariant: HashMap<ValueId, tile::ValueId>,
}

impl<'m> Resolver<'m> {
    pub fn new(module: &'m Module, parts: ForLoop<'m>, facts: Facts, differences: &'m Differences) -> Self {
        Resolver {
            module,
            parts,
            facts,
            differences,
            tiles: Vec::new(),
            computed: HashMap::new(),
            invariant: HashMap::new(),
        }
    }

    /// Adds the tile that an operation of the loop computes.
    pub fn add_computed(
        &mut self,
        value: ValueId,
        producer: TileId,
        user: OperationId,
    ) -> Result<tile::ValueId, Error> {
        let tile = self.add(value, Origin::Operation(producer), user)?;
        self.computed.insert(value, tile);
        Ok(tile)
    }

    fn add(&mut self, value: ValueId, origin: Origin, user: OperationId) -> Result<tile::ValueId, Error> {
        let kind = self.module.type_of(value);
        let (shape, element) = (self.shape(kind, user)?, self.element(kind, user)?);
        let differs = self.differences.of(value);
        self.tiles.push(Tile { shape, element, origin, row_dimension: None, differs, part: None });
        Ok(tile::ValueId::new(self.tiles.len() - 1))
    }

    fn shape(&self, kind: &Type, user: OperationId) -> Result<Vec<u64>, Error> {
        if !kind.is_tensor() {
            return Ok(Vec::new());
        }
        let place = || OperationLocation::of(self.module, user);
        let shape = kind.known_shape().ok_or_else(|| Error::DynamicShape { place: place(), kind: kind.to_string() })?;
        let elements = shape.iter().try_fold(1_u64, |product, extent| product.checked_mul(*extent));
        match elements {
            Some(elements) if elements <= LARGEST_TILE => Ok(shape),
            _ => Err(Error::TileTooLarge { place: place(), kind: kind.to_string(), limit: LARGEST_TILE }),
        }
    }

    fn element(&self, kind: &Type, user: OperationId) -> Result<Element, Error> {
        Element::of(kind).ok_or_else(|| Error::ElementType {
            place: OperationLocation::of(self.module, user),
            element: kind.element().to_string(),
        })
    }

    /// The kind of operand that `value` is for the operation `user`.
    pub fn resolve(&mut self, value: ValueId, user: OperationId) -> Result<Resolved, Error> {
        // A chain of views and carried values: collected from the operand to its origin, composed backwards.
        let (mut at, mut distance) = (value, 0_u32);
        let mut path = Vec::new();
        let mut passed = HashSet::new();
        let tile = loop {
            if let Some(tile) = self.computed.get(&at) {
                break *tile;
            }
            match self.module.definition(at) {
                Definition::Argument { block, index } if block == self.parts.body => {
                    if index == 0 {
                        return Ok(Resolved::Scalar);
                    }
                    if !self.facts.varies(at) || !passed.insert(at) {
                        break match self.before_loop(at, user)? {
                            Ok(tile) => tile,
                            Err(resolved) => return Ok(resolved),
                        };
                    }
                    at = self.parts.yielded[index - 1];
                    distance = distance.saturating_add(1);
                }
                Definition::Result { operation, .. } if self.is_traced(operation) => {
                    let viewed = self.module.operation(operation);
                    let Some(operand) = views::viewed(viewed).and_then(|k| viewed.operands.get(k)) else {
                        return Ok(Resolved::Scalar);
                    };
                    path.push((operation, at));
                    at = *operand;
                }
                _ if is_in_body(self.module, &self.parts, at) && self.facts.varies(at) => return Ok(Resolved::Scalar),
                _ => {
                    break match self.before_loop(at, user)? {
                        Ok(tile) => tile,
                        Err(resolved) => return Ok(resolved),
                    };
                }
            }
        };
        let Tile { shape, element, .. } = &self.tiles[tile.index()];
        let (mut shape, mut element) = (shape.clone(), *element);
        let mut dimensions: Mapping = (0..shape.len()).map(Some).collect();
        for (view, result) in path.into_iter().rev() {
            let kind = self.module.type_of(result);
            let to = self.shape(kind, user)?;
            let mapping = views::mapping(self.module, view, &shape, &to);
            dimensions = mapping.into_iter().map(|d| d.and_then(|d| dimensions.get(d).copied().flatten())).collect();
            element = self.element(kind, user)?;
            shape = to;
        }
        Ok(Resolved::Tile(View { tile, distance, shape, element, dimensions }))
    }

    /// Returns whether the operation is a view that operands are traced through.
    fn is_traced(&self, operation: OperationId) -> bool {
        views::viewed(self.module.operation(operation)).is_some()
    }

    /// A value that does not change: `Err` if it is no tile.
    fn before_loop(&mut self, value: ValueId, user: OperationId) -> Result<Result<tile::ValueId, Resolved>, Error> {
        if let Some(tile) = self.invariant.get(&value) {
            return Ok(Ok(*tile));
        }
        if constant(self.module, value).is_some() {
            return Ok(Err(Resolved::Constant));
        }
        let is_range =
            self.module.defining_operation(value).is_some_and(|id| views::is_constant(&self.module.operation(id).name));
        if is_range || !self.module.type_of(value).is_tensor() {
            return Ok(Err(Resolved::Scalar));
        }
        let name = names::of_value(self.module, value);
        let tile = self.add(value, Origin::Invariant { name, value }, user)?;
        self.invariant.insert(value, tile);
        Ok(Ok(tile))
    }

    /// A tile from before the loop that stands for a constant operand of an MMA.
    pub fn constant_tile(&mut self, value: ValueId, user: OperationId) -> Result<View, Error> {
        let tile = match self.invariant.get(&value) {
            Some(tile) => *tile,
            None => {
                let name = names::of_value(self.module, value);
                let tile = self.add(value, Origin::Invariant { name, value }, user)?;
                self.invariant.insert(value, tile);
                tile
            }
        };
        let Tile { shape, element, .. } = self.tiles[tile.index()].clone();
        Ok(View { tile, distance: 0, dimensions: (0..shape.len()).map(Some).collect(), shape, element })
    }

    /// The tiles that values depend on through arithmetic that is no tile operation, and from how many iterations ago.
    pub fn tiles_of(&self, values: &[ValueId]) -> Vec<(tile::ValueId, u32)> {
        let mut found = Vec::new();
        let mut passed = HashSet::new();
        let mut work: Vec<(ValueId, u32)> = values.iter().map(|value| (*value, 0)).collect();
        while let Some((at, distance)) = work.pop() {
            let relevant = self.facts.is_from_tiles(at) && is_in_body(self.module, &self.parts, at);
            if !relevant || !passed.insert((at, distance.min(1))) {
                continue;
            }
            if let Some(tile) = self.computed.get(&at) {
                found.push((*tile, distance));
                continue;
            }
            match self.module.definition(at) {
                Definition::Argument { index, .. } if index > 0 => {
                    work.push((self.parts.yielded[index - 1], distance + 1));
                }
                Definition::Argument { .. } => {}
                Definition::Result { operation, .. } => {
                    work.extend(self.module.operation(operation).operands.iter().map(|value| (*value, distance)));
                }
            }
        }
        found.sort_unstable();
        found.dedup_by_key(|(tile, _)| *tile);
        found
    }
}
