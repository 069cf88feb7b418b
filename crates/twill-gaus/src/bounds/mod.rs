//! Lower bounds: values that no schedule can undercut.
//!
//! Objectives are bounded term by term, so that a sum is bounded by the sum of its terms' bounds.
//!
//! | objective | bound |
//! |---|---|
//! | A | `peak · Σ_r` energy or spaced steps within mobility windows `+ α ·` the least communication, a flow |
//! | B, C | the largest of operands, compulsory lives, cuts, energy of lives, and all lifetimes over all slots |
//! | latency | the longest path; the least at which no limited resource is overloaded by energy |
//! | C* | [`least_interval`] |
//!
//! Windows need a latency bound; without one, only what needs none is said. [`multipliers`] bound whole objectives,
//! better and at more cost.

mod communication;
mod cut;
mod energy;
mod flow;
mod interval;
mod lagrangian;
mod latency;
mod network;
mod resources;
mod spaced;
mod storage;
#[cfg(test)]
mod tests;
mod wavefront;

pub use interval::{IntervalBound, least_interval, least_interval_within};
pub(crate) use interval::{bounded, fits_alone};
pub use lagrangian::multipliers;
pub(crate) use network::{Budget, Network, SINK, SOURCE};
pub use wavefront::wavefront;

use crate::control::{Clock, Control};
use crate::{Mobility, MobilityError, Precedence};
use flow::{Arc, Cheapest};
use storage::Values;
use twill_graph::{Dataflow, DataflowObjective, DataflowProblem, UnitId};

/// Why a term cannot be smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Argument {
    /// Operations follow each other along a path.
    Path,
    /// The work that must lie between two steps, or cover one of several, divided by these steps.
    Energy,
    /// Each dependence is at least as long as its delay.
    Delays,
    /// The bound from dependences and windows is a flow of least cost.
    Flow,
    /// An operation's operands are live together.
    Operands,
    /// Values that are live at a step in every schedule.
    Compulsory,
    /// The live storage at a step, however operations are divided into those before and after it.
    Cut,
    /// All lifetimes together, divided by the slots.
    Lifetimes,
}

/// A quantity that objectives are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// The latest finish.
    Latency,
    /// The peak of a resource.
    Peak(UnitId),
    /// Communication.
    Communication,
    /// Peak storage.
    Storage,
}

/// A quantity and what it cannot be below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundedTerm {
    /// The quantity.
    pub term: Term,
    /// Its lower bound.
    pub least: i128,
    /// Why.
    pub argument: Argument,
}

/// No schedule has a smaller objective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerBound {
    /// The lower bound of the objective.
    pub value: i128,
    /// Its parts.
    pub terms: Vec<BoundedTerm>,
    /// The schedule of least communication, or of the least sum of lifetimes, within windows, where the bound came by
    /// it: the baseline `spans`. Limits of resources are not looked at.
    pub schedule: Option<Vec<u64>>,
    /// The flow of communication that it comes by.
    flow: Vec<(Arc, i64)>,
}

impl LowerBound {
    /// A bound, without reasons.
    pub fn known(value: i128) -> LowerBound {
        LowerBound { value, terms: Vec::new(), schedule: None, flow: Vec::new() }
    }
}

/// Latency bounds beyond all sums of delays say nothing.
const LARGEST_BOUND: u64 = 1 << 50;

/// A lower bound on the objective of `problem`. Deterministic; on the largest graphs it takes seconds, and gives up
/// strength rather than take longer.
///
/// # Errors
/// When dependences alone rule out every schedule.
pub fn lower_bound(problem: &DataflowProblem) -> Result<LowerBound, MobilityError> {
    lower_bound_within(problem, Control::default())
}

/// The same, as strong as it can be made within a budget.
///
/// # Errors
/// As [`lower_bound`].
pub fn lower_bound_within(problem: &DataflowProblem, control: Control<'_>) -> Result<LowerBound, MobilityError> {
    let clock = &Clock::start(control);
    let (graph, interval) = (&problem.graph, problem.interval);
    let precedence = Precedence::new(graph, interval);
    // Without a bound, the latest starts mean nothing.
    let mobility = Mobility::within(graph, &precedence, problem.latency_bound, interval)?;
    let windows = problem.latency_bound.filter(|&bound| bound < LARGEST_BOUND).map(|_| &mobility);
    let one = |term, (least, argument): (i128, Argument)| BoundedTerm { term, least, argument };
    Ok(match problem.objective {
        DataflowObjective::Resources { peak, communication } => {
            let (mut terms, mut schedule, mut flow) = (Vec::new(), None, Vec::new());
            for unit in (0..graph.resources().len()).map(UnitId::new) {
                let least = resources::peak(graph, windows, interval, unit, i128::MAX, clock);
                terms.push(one(Term::Peak(unit), (least, Argument::Energy)));
            }
            let peaks = terms.iter().map(|term| term.least).fold(0, i128::saturating_add);
            let mut value = i128::from(peak).saturating_mul(peaks);
            if communication > 0 {
                let (least, found) = communication::communication(graph, &precedence, windows, interval, clock);
                terms.push(one(Term::Communication, least));
                value = value.saturating_add(i128::from(communication).saturating_mul(least.0));
                (schedule, flow) = parts(found.filter(|_| windows.is_some()));
            }
            LowerBound { value, terms, schedule, flow }
        }
        DataflowObjective::Storage => {
            let values = Values { graph, precedence: &precedence, mobility: windows, interval };
            let (least, found) = values.peak(clock);
            let term = one(Term::Storage, least);
            let (schedule, _) = parts(found.filter(|_| windows.is_some()));
            LowerBound { value: term.least, terms: vec![term], schedule, flow: Vec::new() }
        }
        DataflowObjective::Latency => {
            let (least, path) = latency::latency(problem, &precedence, clock)?;
            let argument = if path { Argument::Path } else { Argument::Energy };
            LowerBound {
                value: least.into(),
                terms: vec![one(Term::Latency, (least.into(), argument))],
                schedule: None,
                flow: Vec::new(),
            }
        }
    })
}

/// The schedule and the flow of a solution.
fn parts(found: Option<Cheapest>) -> (Option<Vec<u64>>, Vec<(Arc, i64)>) {
    found.map_or((None, Vec::new()), |found| (found.solution.map(unsigned), found.flow))
}

/// A lower bound on the peak of a resource; `mobility` where latency is bounded.
pub(crate) fn peak_bound(
    graph: &Dataflow,
    mobility: Option<&Mobility>,
    interval: Option<u64>,
    unit: UnitId,
    clock: &Clock<'_>,
) -> i128 {
    resources::peak(graph, mobility, interval, unit, i128::MAX, clock)
}

/// The schedule within `mobility` of least communication or, for storage, of the least sum of lifetimes times storage;
/// limits are not looked at. `None` when that was too much work or took too long, or numbers are too large.
pub(crate) fn least_spans(
    graph: &Dataflow,
    precedence: &Precedence,
    mobility: &Mobility,
    interval: Option<u64>,
    storage: bool,
    clock: &Clock<'_>,
) -> Option<Vec<u64>> {
    let found = if storage {
        Values { graph, precedence, mobility: Some(mobility), interval }.lifetimes(clock)
    } else {
        communication::least(graph, precedence, Some(mobility), interval, clock)
    };
    found?.solution.map(unsigned)
}

fn unsigned(steps: Vec<i64>) -> Vec<u64> {
    steps.into_iter().map(i64::unsigned_abs).collect()
}

/// Windows for [`flow`]; without a latency bound, wide enough that they cost nothing. `None` when numbers are too
/// large.
fn flow_windows(
    graph: &Dataflow,
    precedence: &Precedence,
    mobility: Option<&Mobility>,
    interval: Option<u64>,
) -> Option<Vec<(i64, i64)>> {
    const LARGEST: i64 = 1 << 50;
    let lags = || (0..precedence.len()).flat_map(|v| precedence.successors(v)).map(|s| i128::from(s.lag.abs()));
    let apart = graph.dependences().iter().map(|d| i128::from(d.distance) * i128::from(interval.unwrap_or(0)));
    // Basic solutions are sums of lags around a tree, each once.
    let widest = lags().sum::<i128>() + apart.sum::<i128>();
    if widest > LARGEST.into() {
        return None;
    }
    let Some(m) = mobility else { return Some(vec![(0, widest as i64); precedence.len()]) };
    let fits = m.latency < LARGEST as u64;
    fits.then(|| m.earliest.iter().zip(&m.latest).map(|(&e, &l)| (e as i64, l as i64)).collect())
}
