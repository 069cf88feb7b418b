//! From a loop of tile operations to the loop graph of a machine.
//!
//! - Loads are asynchronous and leave their tile in shared memory; its readers read it there. A load that depends on
//!   no tile is streaming.
//! - An MMA takes its left operand from registers if the machine lets it, the operand was computed by the loop
//!   and is neither transposed nor put together from several sub-tiles. Any other operand that was computed goes through
//!   shared memory: an operation of its own on the load/store unit stores it, once for all MMAs that read it.
//! - Where MMAs leave their results in tensor memory (Blackwell), the load of a result to registers, the store of a
//!   left operand and the store of what an MMA adds to are operations of their own (`lower/routes.rs` has the table).
//!   A sum that only MMAs add to stays where it is; each of them waits for the loads of the sum before it. The load
//!   of an earlier iteration's result stands before its reader, so that the result waits in tensor memory, not in registers.
//! - Where the tensor core reads no shared memory (Ampere), an MMA holds the load/store unit as well while it fetches
//!   its operands, each once: the least there can be.
//! - Loop-invariant tiles that MMAs read stay in shared memory. Others (a row of biases) are not counted.
//! - Row statistics are replicated over the threads that share a row; a single row (as opposed to a column) over those
//!   that share a column. Both are computed as often as they are kept.
//! - Order through global memory is not modelled: a load does not wait for a store of an earlier iteration.

mod amounts;
mod costs;
mod dependences;
mod operations;
mod routes;
mod staging;

use twill_graph::saturate;
use twill_graph::{Bytes, LoopGraph, Reserved};
use twill_machine::Machine;

use crate::contract::contract;
use crate::cta_coarsening::{CtaCoarsening, coarsening};
use crate::error::Error;
use crate::sub_tile::sub_tile;
use crate::tile::{Axis, Split, TileLoop, TileOpKind};

pub use staging::Stands;

/// How a loop is lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Sub-tiles to cut the loop into; `None` for as many as give one warp group its rows each, and 1 for a loop without
    /// MMAs. A loop that is split already is left as it is.
    pub sub_tiles: Option<u32>,
    /// Programs of the grid that share a CTA, instead of sub-tiles; `None` for one. Measured on an H200, three programs of
    /// 64 query rows along x are 10 % faster than one of 128 in attention forward with head dimension 64, so it is worth
    /// trying where tiles leave registers for a third warp group; it is never chosen by itself.
    pub programs: Option<CtaCoarsening>,
    /// True if a multiply and an add are made one multiply-add.
    pub contract: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { sub_tiles: None, programs: None, contract: true }
    }
}

impl Options {
    /// The loop as it will be lowered for a machine: contracted and split.
    ///
    /// # Errors
    /// When it cannot be split as asked for.
    pub fn prepare(&self, tile_loop: &TileLoop, machine: &Machine) -> Result<TileLoop, Error> {
        let contracted = if self.contract { contract(tile_loop) } else { tile_loop.clone() };
        match (self.programs, self.sub_tiles) {
            (Some(_), Some(_)) => return Err(Error::ProgramsAndSubTiles { name: contracted.name().to_owned() }),
            (Some(programs), None) => return coarsening(&contracted, programs),
            (None, None) if contracted.split() != Split::Whole => return Ok(contracted),
            (None, _) => {}
        }
        let count = self.sub_tiles.unwrap_or_else(|| usual_sub_tiles(&contracted, machine));
        check_size(&contracted, machine, count)?;
        sub_tile(&contracted, count)
    }
}

fn usual_sub_tiles(l: &TileLoop, machine: &Machine) -> u32 {
    let has_dots = l.operations().iter().any(|op| matches!(op.kind, TileOpKind::Dot { .. }));
    let rows = l.rows().filter(|_| has_dots).unwrap_or(0);
    saturate::<u32>(rows / machine.sub_tile_rows().max(1)).max(1)
}

fn check_size(l: &TileLoop, machine: &Machine, count: u32) -> Result<(), Error> {
    let (Some(rows), least) = (l.rows(), machine.sub_tile_rows()) else { return Ok(()) };
    let each = rows / u64::from(count.max(1));
    if count > 1 && rows % u64::from(count) == 0 && each < least {
        let (name, machine) = (l.name().to_owned(), machine.name().to_owned());
        return Err(Error::SubTilesSmall { name, machine, rows, count, each, least, most: (rows / least).max(1) });
    }
    Ok(())
}

/// A loop graph together with what it was made from.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The graph.
    pub graph: LoopGraph,
    /// The loop as it was lowered: contracted and split.
    pub tiles: TileLoop,
    /// For every operation of the graph, in order, what it stands for in `tiles`.
    pub stands_for: Vec<Stands>,
}

impl Lowered {
    /// The part of an iteration's loads from global memory that programs which follow each other along the first
    /// axis of the grid load alike. Such programs run at the same time on multiprocessors close to each other.
    pub fn common_bytes(&self) -> Bytes {
        let loads = self.stands_for.iter().zip(self.graph.operations()).filter_map(|(stands, priced)| {
            let Stands::Tile(id) = *stands else { return None };
            let operation = self.tiles.operation(id);
            let tile = self.tiles.tile(operation.result?);
            let alike = matches!(operation.kind, TileOpKind::Load(_)) && !tile.differs.contains(Axis::X);
            alike.then_some(priced.traffic.global)
        });
        loads.sum()
    }
}

/// The loop graph of a loop on a machine.
///
/// # Errors
/// When the loop cannot be split as asked for, or the machine cannot do one of its operations.
pub fn lower(tile_loop: &TileLoop, machine: &Machine, options: &Options) -> Result<LoopGraph, Error> {
    lower_parts(tile_loop, machine, options).map(|lowered| lowered.graph)
}

/// The loop graph of a loop on a machine, and what its operations stand for.
///
/// # Errors
/// As [`lower`].
pub fn lower_parts(tile_loop: &TileLoop, machine: &Machine, options: &Options) -> Result<Lowered, Error> {
    let prepared = options.prepare(tile_loop, machine)?;
    let lowering = LoopLowering { tile_loop: &prepared, machine, whole_vectors: !prepared.has_planes() };
    let staged = staging::stage(&lowering);
    let operations = staged.operations(&lowering)?;
    let dependences = dependences::all(&lowering, &staged, &operations);
    let reserved = Reserved { shared: lowering.reserved(), ..Reserved::default() };
    let graph = LoopGraph::new(prepared.name(), operations, dependences, reserved)
        .map_err(|error| Error::Graph { name: prepared.name().to_owned(), error: Box::new(error) })?;
    Ok(Lowered { graph, stands_for: staged.steps, tiles: prepared })
}

/// The input of every step of lowering.
pub(crate) struct LoopLowering<'a> {
    tile_loop: &'a TileLoop,
    machine: &'a Machine,
    /// The loop has no tile of two dimensions: vectors are spread over threads like tiles.
    whole_vectors: bool,
}
