//! Mobility windows: the steps between which an operation can start, as dependences and the latency bound have it.

use crate::Precedence;
use thiserror::Error;
use twill_graph::saturate;
use twill_graph::{Dataflow, DataflowProblem};

/// `earliest ≤ s_v ≤ latest` in every schedule that keeps the dependences and the latency bound (ASAP and ALAP).
/// Resources are not looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mobility {
    /// First step at which an operation can start, by operation.
    pub earliest: Vec<u64>,
    /// Last step at which it can, by operation.
    pub latest: Vec<u64>,
    /// The latency that `latest` counts back from: the bound, or the least latency where there is none.
    pub latency: u64,
}

/// Why there are no windows, and so no schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MobilityError {
    /// A cycle of dependences takes longer than the interval gives it.
    #[error("no schedule has interval {interval}: operations wait for each other around a cycle; try a larger one")]
    Interval {
        /// `II`.
        interval: u64,
    },
    /// The longest path is longer than the latency bound.
    #[error("no schedule has latency {bound}: dependences alone need {least}")]
    Latency {
        /// `D`.
        bound: u64,
        /// The least that would do without resources.
        least: u64,
    },
}

impl Mobility {
    /// The windows of a problem.
    ///
    /// # Errors
    /// When the interval or the latency bound is too small for the dependences alone.
    pub fn new(problem: &DataflowProblem) -> Result<Mobility, MobilityError> {
        let precedence = Precedence::new(&problem.graph, problem.interval);
        Self::within(&problem.graph, &precedence, problem.latency_bound, problem.interval)
    }

    /// The windows, where the precedence of the graph at the interval is at hand.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn within(
        graph: &Dataflow,
        precedence: &Precedence,
        latency_bound: Option<u64>,
        interval: Option<u64>,
    ) -> Result<Mobility, MobilityError> {
        let too_small = MobilityError::Interval { interval: interval.unwrap_or(0) };
        let mut earliest = vec![0_i64; graph.operations().len()];
        if interval == Some(0) || !precedence.raise(&mut earliest) {
            return Err(too_small);
        }
        let finishes = earliest.iter().zip(graph.operations()).map(|(&s, op)| s + i64::from(op.latency));
        let least = finishes.max().unwrap_or(0) as u64;
        let latency = latency_bound.unwrap_or(least);
        if latency < least {
            return Err(MobilityError::Latency { bound: latency, least });
        }
        let end = saturate::<i64>(latency);
        let mut latest: Vec<i64> = graph.operations().iter().map(|op| end - i64::from(op.latency)).collect();
        if !precedence.lower(&mut latest) {
            return Err(too_small);
        }
        let unsigned = |steps: Vec<i64>| steps.into_iter().map(|s| s as u64).collect();
        Ok(Mobility { earliest: unsigned(earliest), latest: unsigned(latest), latency })
    }

    /// Steps that an operation can be moved by, `latest − earliest`.
    pub fn width(&self, op: usize) -> u64 {
        self.latest[op] - self.earliest[op]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chain, operation};
    use twill_graph::{DataflowDependence, DataflowObjective, OpId};

    fn problem(graph: Dataflow, latency_bound: Option<u64>, interval: Option<u64>) -> DataflowProblem {
        DataflowProblem { graph, latency_bound, interval, objective: DataflowObjective::Latency }
    }

    #[test]
    fn windows_of_a_chain_open_by_the_slack() {
        let mobility = Mobility::new(&problem(chain(3), Some(5), None)).unwrap();
        assert_eq!((mobility.earliest, mobility.latest), (vec![0, 1, 2], vec![2, 3, 4]));
        let error = Mobility::new(&problem(chain(3), Some(2), None));
        assert_eq!(error, Err(MobilityError::Latency { bound: 2, least: 3 }));
    }

    #[test]
    fn a_back_edge_pulls_its_source_forward_and_refuses_small_intervals() {
        // 0 → 1 → 2, and 2 must start before 0 of the iteration after next, and no earlier than 3 after.
        let edge = |from, to, delay, distance| DataflowDependence {
            from: OpId::new(from),
            to: OpId::new(to),
            delay,
            distance,
            communication: 0,
        };
        let edges = vec![edge(0, 1, 1, 0), edge(1, 2, 1, 0), edge(2, 0, 3, 2)];
        let graph = Dataflow::new("loop", (0..3).map(operation).collect(), edges, Vec::new()).unwrap();
        let at = |interval, bound| Mobility::new(&problem(graph.clone(), bound, Some(interval)));
        assert_eq!(at(2, None), Err(MobilityError::Interval { interval: 2 }));
        assert_eq!(at(0, None), Err(MobilityError::Interval { interval: 0 }));
        // Around the cycle there are 6 − 5 = 1 steps to spare, whatever the bound.
        let mobility = at(3, Some(10)).unwrap();
        assert_eq!((mobility.earliest, mobility.latest), (vec![0, 1, 2], vec![7, 8, 9]));
        let late = Dataflow::new(
            "late",
            (0..3).map(operation).collect(),
            vec![edge(0, 1, 5, 0), edge(1, 2, 1, 1)],
            Vec::new(),
        );
        let mobility = Mobility::new(&problem(late.unwrap(), None, Some(2))).unwrap();
        assert_eq!((mobility.earliest, mobility.latest), (vec![0, 5, 4], vec![0, 5, 5]));
    }
}
