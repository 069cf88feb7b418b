//! The least latency: a schedule, and then one within less, until none is found.

use crate::control::Clock;
use crate::feasible::{Effort, feasible};
use crate::model::{GausError, Model};
use crate::options::Options;
use crate::{Mobility, Precedence};
use twill_graph::DataflowProblem;

/// A schedule and its latency.
#[derive(Clone, Debug)]
pub(crate) struct Short {
    pub steps: Vec<i64>,
    pub latency: u64,
}

/// The search within one interval, or without one.
pub(crate) struct Shrink<'s, 'c> {
    problem: &'s DataflowProblem,
    precedence: &'s Precedence,
    options: &'s Options,
    clock: Clock<'c>,
    seed: u64,
    pub gradients: u64,
}

/// A latency that leaves room for limits: that of dependences alone and, on top, two intervals and what the resource
/// that is used most for its limit needs.
pub(crate) fn roomy(problem: &DataflowProblem, least: u64) -> u64 {
    let held = |resource: usize, limit: u64| {
        let uses = problem.graph.operations().iter().flat_map(|op| &op.uses);
        let uses = uses.filter(|used| used.resource.index() == resource);
        uses.map(|used| u64::from(used.steps) * used.amount).sum::<u64>().div_ceil(limit.max(1))
    };
    let resources = problem.graph.resources().iter().enumerate();
    let most = resources.filter_map(|(resource, r)| r.limit.map(|limit| held(resource, limit))).max();
    let intervals = problem.interval.unwrap_or(0).saturating_mul(2);
    least.saturating_add(most.unwrap_or(0)).saturating_add(intervals)
}

impl<'s, 'c> Shrink<'s, 'c> {
    pub fn new(
        problem: &'s DataflowProblem,
        precedence: &'s Precedence,
        options: &'s Options,
        clock: Clock<'c>,
        seed: u64,
    ) -> Self {
        Self { problem, precedence, options, clock, seed, gradients: 0 }
    }

    fn within(&mut self, latency: u64, effort: Effort) -> Result<Option<Short>, GausError> {
        let model = Model::new(self.problem, self.precedence, latency)?;
        self.seed = self.seed.wrapping_add(1);
        let (steps, gradients) = feasible(&model, self.options, effort, self.seed, &self.clock);
        self.gradients += gradients;
        Ok(steps.map(|steps| {
            let finishes = steps.iter().zip(&model.latencies).map(|(s, latency)| s + latency);
            let latency = finishes.max().unwrap_or(0) as u64;
            Short { steps, latency }
        }))
    }

    /// Any schedule within the problem's bound, or within a roomy one.
    pub fn first(&mut self, effort: Effort) -> Result<Option<Short>, GausError> {
        let problem = self.problem;
        let least = Mobility::within(&problem.graph, self.precedence, None, problem.interval)?.latency;
        let wide = problem.latency_bound.unwrap_or_else(|| roomy(problem, least));
        let found = self.within(wide, effort)?;
        if found.is_some() || effort == Effort::Orders {
            return Ok(found);
        }
        // Narrow windows guide, wide ones allow: which is better is not known beforehand.
        let interval = problem.interval.unwrap_or(0);
        for bound in [least.saturating_add(interval / 4), least.saturating_add(interval)] {
            if bound < wide {
                let found = self.within(bound, effort)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    /// From a schedule to shorter ones: by halves while that works, then step by step.
    pub fn shrink(
        &mut self,
        mut best: Short,
        effort: Effort,
        report: &mut dyn FnMut(&Short),
    ) -> Result<Short, GausError> {
        report(&best);
        let problem = self.problem;
        let least = Mobility::within(&problem.graph, self.precedence, None, problem.interval)?.latency;
        let mut low = least;
        while low < best.latency && !self.clock.is_over() {
            let target = low + (best.latency - low) / 2;
            match self.within(target, effort)? {
                Some(shorter) => {
                    best = shorter;
                    report(&best);
                }
                None => low = target + 1,
            }
        }
        // A search that failed once need not fail again just below the best.
        let mut failed = 0;
        while best.latency > least && failed < self.options.patience && !self.clock.is_over() {
            match self.within(best.latency - 1, effort)? {
                Some(shorter) => {
                    best = shorter;
                    failed = 0;
                    report(&best);
                }
                None => failed += 1,
            }
        }
        Ok(best)
    }
}
