//! CTA coarsening: a CTA runs consecutive programs of the grid.
//!
//! Every operation that differs between these programs, or stores, is made `count` operations, one for each program. The
//! others stay one and are shared: programs of attention forward that attend to the same keys load them once. Shapes stay
//! as they are.
//!
//! All programs run the same iterations, so bounds may not differ between them. If the grid's extent is no multiple of
//! `count`, the last CTA has programs to run that do not exist; the code generator keeps them from storing.
//!
//! A tile's extents are powers of two, but three warp groups of 64 query rows, 192 in all, are what fits Hopper best at
//! head dimension 64: measured on an H200, three programs of 64 rows a CTA are 10 % faster there than tiles of 128 rows
//! in two sub-tiles.

use crate::error::Error;
use crate::tile::{Axis, Operand, Origin, Split, Tile, TileId, TileLoop, TileOperation, ValueId};

/// Programs of the grid that share a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CtaCoarsening {
    /// How many, from 1 to [`CtaCoarsening::MOST`].
    pub count: u32,
    /// Along which axis of the grid they follow each other.
    pub axis: Axis,
}

impl CtaCoarsening {
    /// More programs than any CTA has warp groups for: it has at most eight of four warps, and each may have two programs.
    pub const MOST: u32 = 16;
}

/// The loop as it is for consecutive programs of the grid; the loop itself if there is one.
///
/// # Errors
/// When the programs do not run the loop equally often, do all the same in it, or it is split already.
pub fn coarsening(tile_loop: &TileLoop, programs: CtaCoarsening) -> Result<TileLoop, Error> {
    let CtaCoarsening { count, axis } = programs;
    let name = || tile_loop.name.clone();
    if !(1..=CtaCoarsening::MOST).contains(&count) {
        return Err(Error::ProgramsNumber { name: name(), count, most: CtaCoarsening::MOST });
    }
    if count == 1 {
        return Ok(tile_loop.clone());
    }
    if tile_loop.split != Split::Whole {
        return Err(Error::ProgramsOfParts { name: name(), split: tile_loop.split });
    }
    if tile_loop.trips.contains(axis) {
        return Err(Error::ProgramsPartWays { place: tile_loop.place.clone(), name: name(), axis });
    }
    if !tile_loop.tiles.iter().any(|tile| tile.differs.contains(axis)) {
        return Err(Error::ProgramsAlike { name: name(), axis });
    }
    Ok(Copier::new(tile_loop, programs).copy())
}

struct Copier<'l> {
    single: &'l TileLoop,
    programs: CtaCoarsening,
    /// New places of every operation's copies.
    operations: Vec<Vec<TileId>>,
    /// New places of every tile's copies.
    copies: Vec<Vec<ValueId>>,
    tiles: Vec<Tile>,
}

impl<'l> Copier<'l> {
    fn new(single: &'l TileLoop, programs: CtaCoarsening) -> Self {
        let mut next = 0;
        let operations = single.operations.iter().map(|op| {
            // Without a result it stores, each program for itself.
            let differs = op.result.is_none_or(|result| single.tile(result).differs.contains(programs.axis));
            let first = next;
            next += if differs { programs.count as usize } else { 1 };
            (first..next).map(TileId::new).collect()
        });
        let operations = operations.collect();
        let mut copier = Copier { single, programs, operations, copies: Vec::new(), tiles: Vec::new() };
        for tile in &single.tiles {
            let copies = copier.add_copies(tile);
            copier.copies.push(copies);
        }
        copier
    }

    fn add_copies(&mut self, tile: &Tile) -> Vec<ValueId> {
        let origins: Vec<Origin> = match &tile.origin {
            Origin::Operation(producer) => {
                self.operations[producer.index()].iter().map(|id| Origin::Operation(*id)).collect()
            }
            Origin::Invariant { .. } => {
                let copies = if tile.differs.contains(self.programs.axis) { self.programs.count as usize } else { 1 };
                vec![tile.origin.clone(); copies]
            }
        };
        let (first, several) = (self.tiles.len(), origins.len() > 1);
        self.tiles.extend((0_u32..).zip(origins).map(|(copy, origin)| Tile {
            origin,
            part: several.then_some(copy),
            ..tile.clone()
        }));
        (first..self.tiles.len()).map(ValueId::new).collect()
    }

    fn copy(self) -> TileLoop {
        let mut operations = Vec::new();
        for (op, copies) in self.single.operations.iter().zip(&self.operations) {
            let several = copies.len() > 1;
            operations.extend((0..copies.len()).map(|copy| TileOperation {
                operands: op.operands.iter().map(|operand| self.operand(operand, several.then_some(copy))).collect(),
                result: op.result.map(|result| self.copies[result.index()][copy]),
                sub_tile: u32::try_from(copy).ok().filter(|_| several),
                ..op.clone()
            }));
        }
        let CtaCoarsening { count, axis } = self.programs;
        TileLoop { operations, tiles: self.tiles, split: Split::Programs { count, axis }, ..self.single.clone() }
    }

    /// The tile that a program reads: its own copy, or the one that all share. A shared operation reads shared tiles
    /// alone.
    fn operand(&self, operand: &Operand, program: Option<usize>) -> Operand {
        let tiles = operand.tiles.iter().flat_map(|tile| {
            let copies = &self.copies[tile.index()];
            let own = program.and_then(|program| copies.get(program)).filter(|_| copies.len() > 1);
            own.map_or(copies.as_slice(), std::slice::from_ref).iter().copied()
        });
        Operand { tiles: tiles.collect(), ..operand.clone() }
    }
}
