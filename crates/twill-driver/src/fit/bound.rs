//! The most that loops can achieve, without search.

use super::data::LoopBound;
use crate::{LoopProblem, Request, Source};
use twill_graph::Cycles;
use twill_triton::Lowered;
use twill_triton::tile::{Role, TileOpKind};

/// The bound of each loop.
pub(super) fn of(request: &Request, source: &Source, problems: &[LoopProblem], lowered: &[Lowered]) -> Vec<LoopBound> {
    let one = |(one, lowered): (&LoopProblem, &Lowered)| {
        let bound = twill_exact::lower_bound(&one.problem);
        let flop = flop(lowered) * u64::from(request.limits.unroll);
        let rate = throughput(source, flop, bound.interval).filter(|_| one.normalisation.is_none());
        LoopBound {
            name: one.problem.graph().name().to_owned(),
            bound,
            flop,
            traffic: one.problem.graph().traffic(),
            teraflops_per_multiprocessor: rate,
            teraflops: rate.map(|each| each * source.machine.chip().streaming_multiprocessors as f64),
        }
    };
    problems.iter().zip(lowered).map(one).collect()
}

/// Floating-point operations of the MMAs of an iteration, two a product.
fn flop(lowered: &Lowered) -> u64 {
    let tiles = &lowered.tiles;
    let dots = tiles.operations().iter().filter(|o| matches!(o.kind, TileOpKind::Dot { .. }));
    let one = |dot: &twill_triton::tile::TileOperation| {
        let elements = dot.result.map_or(0, |result| tiles.tile(result).shape.iter().product());
        let depth = dot.operand(Role::Left).and_then(|left| left.shape.last().copied()).unwrap_or(0);
        2 * elements * depth
    };
    dots.map(one).sum()
}

/// TFLOP/s of one multiprocessor.
fn throughput(source: &Source, flop: u64, interval: Cycles) -> Option<f64> {
    let cycles = interval.0 as f64;
    (flop > 0 && cycles > 0.0).then(|| flop as f64 / cycles * source.machine.chip().clock_mhz * 1e-6)
}
