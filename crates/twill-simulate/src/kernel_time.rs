//! The time of a launch: tiles one after another, each some iterations and the code around them.

use crate::engine::{Stuck, simulate_tiles};
use crate::{Timing, simulate};
use twill_codegen::ir::WarpProgram;

/// Iterations of each loop that are simulated: enough for a steady state.
const ITERATIONS: u32 = 32;

/// Tiles that are simulated: the second and third begin while the one before ends.
const TILES: u32 = 3;

/// Cycles of a CTA: `start + tiles · (tile + Σ trips · iteration)`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelTime {
    /// An iteration in the steady state, by loop.
    pub iterations: Vec<f64>,
    /// A tile besides its iterations: what its prologue and epilogue take that does not overlap with the tiles around it.
    pub tile: f64,
    /// The first tile more than the others: barriers are set up, nothing is loaded yet.
    pub start: f64,
}

impl KernelTime {
    /// By simulation of three tiles of 32 iterations of each loop.
    ///
    /// # Errors
    /// See [`Stuck`].
    pub fn of(program: &WarpProgram, timing: &Timing) -> Result<KernelTime, Stuck> {
        let trips = vec![ITERATIONS; program.loops.len()];
        let first = simulate(program, timing, &trips)?;
        let several = simulate_tiles(program, timing, &trips, TILES)?.cycles;
        let iterations: Vec<f64> = first.loops.iter().map(|l| l.interval).collect();
        let each = (several - first.cycles) / f64::from(TILES - 1);
        let tile = each - f64::from(ITERATIONS) * iterations.iter().sum::<f64>();
        Ok(KernelTime { iterations, tile: tile.max(0.0), start: (first.cycles - each).max(0.0) })
    }

    /// Cycles of a CTA for N tiles with these trip counts, by loop.
    pub fn cycles(&self, tiles: u64, trips: &[u64]) -> f64 {
        let loops: f64 = self.iterations.iter().zip(trips).map(|(cycles, trips)| cycles * *trips as f64).sum();
        self.start + tiles as f64 * (self.tile + loops)
    }
}
