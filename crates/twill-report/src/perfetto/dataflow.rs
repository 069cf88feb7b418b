//! A schedule of a dataflow graph as a trace: the users of each resource, with amounts.

use super::trace::{Builder, Label, Track, number, text};
use crate::run::first_fit;
use std::collections::BTreeMap;
use twill_graph::saturate;
use twill_graph::{Dataflow, OpId, StartSteps};

/// The part of a resource in use.
struct Use {
    op: OpId,
    iteration: u32,
    start: i64,
    end: i64,
    amount: u64,
}

/// A trace of a graph's schedule: of a loop, its first `iterations` iterations (at least one); else, one.
///
/// One step is one nanosecond. A track for each resource, with what uses it on as many lanes as that needs, a counter
/// of how much of it is in use, and a track for what uses none. The same arguments give the same bytes.
pub fn dataflow_perfetto(graph: &Dataflow, schedule: &StartSteps, iterations: u32) -> Vec<u8> {
    let iterations = if schedule.interval.is_some() { iterations.max(1) } else { 1 };
    let mut trace = Builder::new(graph.name().to_owned(), vec!["1 ns = 1 step".to_owned()]);
    let process = trace.process();
    for (index, resource) in graph.resources().iter().enumerate() {
        let uses = uses(graph, schedule, iterations, Some(index));
        let limit = resource.limit.map(|limit| format!("at most {limit} at once"));
        let counter = trace.counter(process, &format!("{} in use", resource.name), "units", limit);
        count(&mut trace, counter, &uses);
        let parent = trace.track(process, resource.name.clone(), None);
        write(&mut trace, parent, &resource.name, graph, schedule, uses);
    }
    let free = uses(graph, schedule, iterations, None);
    if !free.is_empty() {
        let parent = trace.track(process, "no resource", None);
        write(&mut trace, parent, "no resource", graph, schedule, free);
    }
    trace.finish()
}

/// Uses of one resource, or the latencies of operations that use none.
fn uses(graph: &Dataflow, schedule: &StartSteps, iterations: u32, resource: Option<usize>) -> Vec<Use> {
    let interval = schedule.interval.unwrap_or(0);
    let at = |step: u64| saturate::<i64>(step);
    let mut uses = Vec::new();
    for iteration in 0..iterations {
        for (index, (op, step)) in graph.operations().iter().zip(&schedule.steps).enumerate() {
            let from = step.saturating_add(interval.saturating_mul(iteration.into()));
            let mut add = |offset: u32, steps: u32, amount| {
                let start = from.saturating_add(offset.into());
                let end = start.saturating_add(steps.max(1).into());
                uses.push(Use { op: OpId::new(index), iteration, start: at(start), end: at(end), amount });
            };
            match resource {
                None if op.uses.is_empty() => add(0, op.latency, 0),
                None => {}
                Some(resource) => {
                    let here = op.uses.iter().filter(|used| used.resource.index() == resource);
                    here.for_each(|used| add(used.offset, used.steps, used.amount));
                }
            }
        }
    }
    uses
}

fn count(trace: &mut Builder, counter: Track, uses: &[Use]) {
    let mut changes: BTreeMap<i64, i128> = BTreeMap::from([(0, 0)]);
    for used in uses {
        *changes.entry(used.start).or_default() += i128::from(used.amount);
        *changes.entry(used.end).or_default() -= i128::from(used.amount);
    }
    let mut amount = 0_i128;
    for (step, change) in changes {
        amount += change;
        if change != 0 || step == 0 {
            trace.count(counter, step, saturate::<u64>(amount));
        }
    }
}

fn write(trace: &mut Builder, parent: Track, name: &str, graph: &Dataflow, schedule: &StartSteps, uses: Vec<Use>) {
    for lane in first_fit(uses, |used| (used.start, used.end)) {
        let track = trace.track(parent, name, None);
        for Use { op, iteration, start, end, amount } in lane {
            let operation = &graph.operations()[op.index()];
            let step = schedule.steps.get(op.index()).copied().unwrap_or_default();
            let mut annotations = vec![
                text("operation", operation.name.clone()),
                number("iteration", iteration.into()),
                number("step", saturate::<i64>(step)),
            ];
            if amount > 0 {
                annotations.push(number("amount", saturate::<i64>(amount)));
            }
            let label = Label { name: operation.name.clone(), category: "operation", annotations };
            trace.slice(track, (start, end), label);
        }
    }
}
