//! Checks a lower bound on storage: what is live when an operation starts.
//!
//! In the step in which `o` starts, `x_v = 1` for those that have started: surely those that `o` depends on, and
//! surely not those that must start after it. A value takes storage there if `x_v = 1` and `z_v = 0`, where `z_v = 1`
//! if all its readers have started, which is `x_w` if there is one reader `w`. So storage is at least `Σ storage_v ·
//! (x_v − z_v)`, to which `x_to − x_from ≤ 0` (of delays that are not negative) and `z_v − x_w ≤ 0` may be added at
//! their prices. The least of the sum over all other `x` and `z` in `{0, 1}`, each by itself, is a bound. Other
//! iterations of a loop only add to it, and values that may be read before they are there are not counted.

use thiserror::Error;
use twill_graph::proof::Wavefront;
use twill_graph::{Dataflow, DataflowDependence, DataflowObjective, DataflowProblem};

/// Why a wavefront proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WavefrontError {
    /// Another objective.
    #[error("wavefronts are for storage")]
    Unsupported,
    /// There is no such operation.
    #[error("there is no operation {index}")]
    Operation {
        /// Its index.
        index: usize,
    },
    /// A price of something that does not hold, or is not there.
    #[error("{what} {index} has a price, and there is no such thing")]
    Nothing {
        /// `dependence` or `read`.
        what: &'static str,
        /// Its position in the graph.
        index: u32,
    },
    /// The claim is more than what follows.
    #[error("the wavefront proves {proved}, not {claimed}")]
    Claim {
        /// The claim.
        claimed: i128,
        /// What follows.
        proved: i128,
    },
}

/// Checks that no schedule of `problem` has less storage than `claim.least`; the bound that the prices prove.
///
/// # Errors
/// The first thing that is wrong.
pub fn verify_wavefront(problem: &DataflowProblem, claim: &Wavefront) -> Result<i128, WavefrontError> {
    let (graph, operations) = (&problem.graph, problem.graph.operations().len());
    if problem.objective != DataflowObjective::Storage {
        return Err(WavefrontError::Unsupported);
    }
    if claim.op.index() >= operations {
        return Err(WavefrontError::Operation { index: claim.op.index() });
    }
    let mut states = states(graph, claim.op.index());
    // `z` of values of several readers come after `x`.
    let mut ends: Vec<Option<usize>> = vec![None; operations];
    for d in counted(graph) {
        let (from, to) = (d.from.index(), d.to.index());
        match ends[from] {
            None => ends[from] = Some(to),
            Some(end) if end != to && end < operations => {
                ends[from] = Some(states.len());
                states.push(None);
            }
            Some(_) => {}
        }
    }
    for d in counted(graph) {
        if let Some(end) = ends[d.from.index()].filter(|&end| end >= operations)
            && states[d.to.index()] == Some(false)
        {
            states[end] = Some(false);
        }
    }
    let mut costs = vec![0_i128; states.len()];
    let mut is_early = vec![false; operations];
    counted(graph).filter(|d| d.delay < 0).for_each(|d| is_early[d.from.index()] = true);
    for (v, op) in graph.operations().iter().enumerate() {
        if let Some(end) = ends[v].filter(|_| !is_early[v]) {
            costs[v] += i128::from(op.storage);
            costs[end] -= i128::from(op.storage);
        }
    }
    let dependence = |index: u32| graph.dependences().get(index as usize).filter(|d| d.distance == 0);
    for &(index, price) in &claim.dependences {
        let d = dependence(index).filter(|d| d.delay >= 0);
        let d = d.ok_or(WavefrontError::Nothing { what: "dependence", index })?;
        costs[d.to.index()] += i128::from(price);
        costs[d.from.index()] -= i128::from(price);
    }
    for &(index, price) in &claim.reads {
        let end = dependence(index).and_then(|d| Some((d, ends[d.from.index()]?)));
        let end = end.filter(|(_, end)| *end >= operations);
        let (d, end) = end.ok_or(WavefrontError::Nothing { what: "read", index })?;
        costs[end] += i128::from(price);
        costs[d.to.index()] -= i128::from(price);
    }
    let least = |(state, &cost): (&Option<bool>, &i128)| match state {
        Some(true) => cost,
        Some(false) => 0,
        None => cost.min(0),
    };
    let proved = states.iter().zip(&costs).map(least).sum();
    if claim.least > proved {
        return Err(WavefrontError::Claim { claimed: claim.least, proved });
    }
    Ok(proved)
}

fn counted(graph: &Dataflow) -> impl Iterator<Item = &DataflowDependence> {
    graph.dependences().iter().filter(|d| d.distance == 0)
}

/// By operation, whether it has started in the step in which `op` starts, where that is certain.
fn states(graph: &Dataflow, op: usize) -> Vec<Option<bool>> {
    let mut into = vec![Vec::new(); graph.operations().len()];
    let mut out = vec![Vec::new(); graph.operations().len()];
    for d in counted(graph).filter(|d| d.delay >= 0) {
        into[d.to.index()].push(d.from.index());
        out[d.from.index()].push((d.to.index(), d.delay > 0));
    }
    let mut states = vec![None; graph.operations().len()];
    let mut stack = vec![op];
    while let Some(v) = stack.pop() {
        if states[v].replace(true).is_none() {
            stack.extend(into[v].iter().filter(|&&u| states[u].is_none()));
        }
    }
    // At least as late as `op`, and later.
    let mut reached = vec![[false; 2]; states.len()];
    let mut stack = vec![(op, false)];
    while let Some((v, later)) = stack.pop() {
        if std::mem::replace(&mut reached[v][usize::from(later)], true) {
            continue;
        }
        if later {
            states[v] = Some(false);
        }
        stack.extend(out[v].iter().map(|&(w, delayed)| (w, later || delayed)));
    }
    states
}
