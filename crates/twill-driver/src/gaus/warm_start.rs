//! GauS's modulo schedule of a kernel's loop, for the exact engine to start from: on large loops it takes seconds to find one
//! itself.

use std::ops::RangeInclusive;
use twill_exact::SearchOptions;
use twill_gaus::Control;
use twill_graph::format::loop_dataflow;
use twill_graph::{Cycles, Pipeline, Problem, StartSteps};

/// Operations from which on GauS is asked, and up to which: it takes a second then.
const LARGE: RangeInclusive<usize> = 64..=512;

/// GauS's modulo schedule, where the loop is large and it has one; the exact engine replays it before it goes on from there.
pub(crate) fn warm_start(problem: &Problem, search: &SearchOptions) -> Option<Pipeline> {
    let graph = problem.graph();
    let is_over = search.budget.until.is_some_and(|until| search.budget.clock.now() >= until);
    if is_over || !LARGE.contains(&graph.operations().len()) {
        return None;
    }
    let dataflow = loop_dataflow(graph, &problem.resources().units).ok()?;
    let budget = &search.budget;
    let control = Control {
        // Its effort ends it before, but for limits of a second or two.
        time: budget.time.map(|time| time / 8),
        interrupt: budget.interrupt.as_deref(),
        enough: None,
        memory: budget.memory,
    };
    let found = twill_gaus::at_least_interval(&dataflow, control).ok()??;
    pipeline(problem, &found)
}

/// A schedule in steps as one in cycles of a loop's operations; `None` without an interval.
pub(super) fn pipeline(problem: &Problem, found: &StartSteps) -> Option<Pipeline> {
    let cycle = |step: u64| i64::try_from(step).ok().map(Cycles);
    let cycles: Option<Vec<Cycles>> = found.steps.iter().map(|step| cycle(*step)).collect();
    Pipeline::of(problem.graph(), cycle(found.interval?)?, cycles?)
}
