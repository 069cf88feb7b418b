//! The Lagrangian bound: the best mean of a peak over steps, with all dependences.
//!
//! A peak is at least any weighted mean of usage (of live storage) over steps. For given weights the least mean over
//! all schedules is a minimum cut in the graph of (operation, step) (Möhring, Schulz, Stork, Uetz, "Solving Project
//! Scheduling Problems by Minimum Cut Computations", Management Science 49, 2003); the best weights give the bound of
//! the linear program over `x_v(t) = [s_v ≤ t]`:
//!
//! - B: `min m` with `m ≥ Σ_v storage_v · (x_v(t) − x_end(v)(t))` for all `t`;
//! - A: `min peak · Σ_r m_r + α · Σ communication · (s_to − s_from)` with `m_r ≥` the usage of `r` at each `t`, so
//!   that peaks and communication are bounded together.
//!
//! Weights and cuts go uphill together, by a first-order method ([`ascent`]) that may stop at any time: whatever its
//! multipliers are, they prove a bound, once they are whole numbers ([`round`]). `twill-check` adds them up again.

mod ascent;
mod program;
mod round;

use super::LowerBound;
use crate::control::{Clock, Control, Paced};
use crate::{Mobility, Precedence};
use ascent::Ascent;
use program::Program;
use twill_graph::DataflowProblem;
use twill_graph::proof::Multipliers;

/// Most steps of operations and dependences that one gradient goes over: some 30 bytes each.
const LARGEST: usize = 6_000_000;
/// Beyond, there are either few steps or too few gradients.
const MOST_OPERATIONS: usize = 20_000;
/// Steps times gradients, where there is no limit of time.
const WORK: usize = 2_000_000_000;
/// Gradients between two looks at what they prove.
const LOOK: usize = 50;
/// Most gradients; those after which nothing was gained, in looks; and what counts as a gain, in proportion.
const MOST_GRADIENTS: usize = 4000;
const STALE: usize = 20;
const GAIN: f64 = 2e-4;

/// A lower bound on resources or storage of `problem`, with the multipliers that prove it; `None` where there is
/// nothing to prove it for: loops, no latency bound, a bound on latency, or numbers that are too large. `known` is a
/// bound by terms, whose flow it begins with; the result may be weaker. Deterministic without a limit of time.
pub fn multipliers(problem: &DataflowProblem, known: &LowerBound, control: Control<'_>) -> Option<Multipliers> {
    let clock = &Clock::start(control);
    let precedence = Precedence::new(&problem.graph, None);
    let mobility = problem.latency_bound.filter(|_| problem.interval.is_none() && !clock.is_over());
    let mobility = Mobility::within(&problem.graph, &precedence, Some(mobility?), None).ok()?;
    let few = problem.graph.operations().len() <= MOST_OPERATIONS && program::size(problem, &mobility) <= LARGEST;
    let program = few.then(|| Program::new(problem, &mobility))??;
    let mut paced = Paced::new(clock);
    let mut ascent = Ascent::new(&program, problem, known);
    let most = (WORK / program.size().max(1)).clamp(LOOK, MOST_GRADIENTS);
    let (mut done, mut stale) = (0, 0);
    let mut best = (ascent.value(), Some(ascent.multipliers()));
    // The last gradients gain little: when they gain next to nothing, that is it.
    while done < most && stale < STALE && !paced.is_over_after(0) {
        for _ in 0..LOOK {
            ascent.step();
            if paced.is_over_after(program.size() as u64) {
                break;
            }
        }
        done += LOOK;
        let value = ascent.value();
        stale = if value > best.0 + GAIN * best.0.abs() { 0 } else { stale + 1 };
        if value > best.0 {
            best = (value, Some(ascent.multipliers()));
        }
    }
    round::round(&program, &best.1?)
}
