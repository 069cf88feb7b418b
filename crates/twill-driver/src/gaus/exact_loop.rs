//! Loops of a dataflow graph as the exact engine knows them.

use twill_graph::{
    Bytes, Columns, ComputePool, Cycles, Dataflow, DataflowOperation, Dependence, Execution, LoopGraph, ModelOptions,
    ModuloDependence, ModuloOperation, ModuloProblem, ModuloResource, Operation, Problem, RegisterFile, Reservation,
    Reserved, Resources, Storage, Traffic, Unit, UnitId, saturate,
};

/// Operations up to which a loop whose operations take several units is searched: each bound takes their number squared.
const TILES: usize = 512;

/// A loop as the exact engine knows them: an operation takes one unit of one resource, from its start, for as long as all
/// others of that resource.
pub(super) fn exact_loop(graph: &Dataflow) -> Option<ModuloProblem> {
    let mut blocking = vec![None; graph.resources().len()];
    let free = UnitId::new(graph.resources().len());
    let mut operations = Vec::new();
    for op in graph.operations() {
        let resource = match op.uses.as_slice() {
            [] => free,
            [used] if used.offset == 0 && used.amount == 1 => {
                let steps = blocking[used.resource.index()].get_or_insert(used.steps);
                if *steps != used.steps {
                    return None;
                }
                used.resource
            }
            _ => return None,
        };
        operations.push(ModuloOperation { name: op.name.clone(), resource });
    }
    let limit = |limit: Option<u64>| limit.map(saturate);
    let resource = |(r, steps): (&twill_graph::DataflowResource, &Option<u32>)| ModuloResource {
        name: r.name.clone(),
        limit: limit(r.limit),
        blocking: steps.unwrap_or(1),
    };
    let mut resources: Vec<ModuloResource> = graph.resources().iter().zip(&blocking).map(resource).collect();
    let unnamed = (0..).map(|k| format!("free{k}")).find(|name| resources.iter().all(|r| r.name != *name));
    resources.push(ModuloResource { name: unnamed?, limit: None, blocking: 1 });
    let dependence = |d: &twill_graph::DataflowDependence| ModuloDependence {
        from: d.from,
        to: d.to,
        delay: Cycles(d.delay),
        distance: d.distance,
    };
    let dependences = graph.dependences().iter().map(dependence).collect();
    ModuloProblem::new(graph.name(), operations, dependences, resources).ok()
}

/// A loop whose operations take several units, or hold one for different times, as a loop of tile operations without warps;
/// `None` where it is large, or an operation takes several instances of a unit.
pub(super) fn exact_tiles(graph: &Dataflow) -> Option<Problem> {
    if graph.operations().len() > TILES {
        return None;
    }
    let operations: Option<Vec<Operation>> = graph.operations().iter().map(|op| tile(op, graph)).collect();
    let dependence = |d: &twill_graph::DataflowDependence| Dependence {
        from: d.from,
        to: d.to,
        delay: Cycles(d.delay),
        distance: d.distance,
        blocking: false,
        carries_value: false,
        tied: false,
        hold: Cycles(0),
    };
    let dependences = graph.dependences().iter().map(dependence).collect();
    let units =
        graph.resources().iter().filter_map(|r| Some(Unit { name: r.name.clone(), capacity: saturate(r.limit?) }));
    let resources = Resources {
        name: "units".to_owned(),
        units: units.collect(),
        shared_memory: Bytes(1),
        tensor_memory: Columns(0),
        shared_bytes_per_cycle: None,
        registers: RegisterFile {
            words: 65_536,
            minimum_per_thread: 8,
            maximum_per_thread: 255,
            granularity: 8,
            reserve_per_thread: 0,
        },
        variable_latency_group: None,
        issue_group: None,
        compute_groups: ComputePool { warps: 4, maximum: 1 },
    };
    let graph = LoopGraph::new(graph.name(), operations?, dependences, Reserved::default()).ok()?;
    Problem::new(graph, resources, ModelOptions::default()).ok()
}

fn tile(op: &DataflowOperation, graph: &Dataflow) -> Option<Operation> {
    let mut reservations = Vec::new();
    for used in &op.uses {
        let resource = &graph.resources()[used.resource.index()];
        if resource.limit.is_none() || used.steps == 0 || used.amount == 0 {
            continue;
        }
        if used.amount > 1 {
            return None;
        }
        let (start, cycles) = (Cycles(used.offset.into()), Cycles(used.steps.into()));
        reservations.push(Reservation { unit: resource.name.clone(), start, cycles });
    }
    let end = reservations.iter().map(|one| one.start + one.cycles).max();
    Some(Operation {
        name: op.name.clone(),
        kind: "operation".to_owned(),
        source: None,
        reservations,
        occupancy: end.unwrap_or(Cycles(0)),
        latency: Cycles(op.latency.into()),
        execution: Execution::Asynchronous,
        issue_width: 4,
        storage: Storage::None,
        variable_latency: false,
        streaming: false,
        handoff: Cycles(0),
        transfer_latency: Cycles(0),
        sub_tile: None,
        traffic: Traffic::default(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::super::warm_start;
    use super::*;
    use twill_exact::{Budget, SearchOptions, pipeline};
    use twill_graph::format::loop_dataflow;
    use twill_graph::{Outcome, Pipeline, builtin};
    use twill_machine::Machine;

    /// A built-in loop, so many times over.
    fn problem(name: &str, copies: u32) -> Problem {
        let graph = builtin::find(name).unwrap().graph.unrolled(copies).unwrap();
        Problem::new(graph, Machine::load("h100").unwrap().resources(), ModelOptions::default()).unwrap()
    }

    fn solved(problem: &Problem, start: Option<Pipeline>) -> (Cycles, Cycles) {
        let options = SearchOptions { pipeline: start, ..SearchOptions::default() };
        let outcome = pipeline(problem, &options, &mut |_| ()).outcome;
        let Outcome::Optimal { schedule } = outcome else { unreachable!("{outcome:?}") };
        (schedule.interval, schedule.length)
    }

    #[test]
    fn loops_of_tiles_have_the_interval_and_the_length_of_what_they_were() {
        for (name, copies) in
            [("attention-forward-hopper", 1), ("attention-forward-hopper", 2), ("attention-backward-hopper", 1)]
        {
            let problem = problem(name, copies);
            let dataflow = loop_dataflow(problem.graph(), &problem.resources().units).unwrap();
            assert!(exact_loop(&dataflow).is_none(), "{name}");
            assert_eq!(solved(&exact_tiles(&dataflow).unwrap(), None), solved(&problem, None), "{name}");
        }
    }

    #[test]
    fn a_loop_that_repeats_a_body_has_its_interval_so_many_times() {
        let (body, _) = solved(&problem("attention-backward-hopper", 1), None);
        let whole = problem("attention-backward-hopper", 8);
        // Without the body's schedule this is not enough.
        let budget = Budget { work: Some(400_000), ..Budget::default() };
        let options = SearchOptions { budget, ..SearchOptions::default() };
        let outcome = pipeline(&whole, &options, &mut |_| ()).outcome;
        assert_eq!(outcome.schedule().map(|found| found.interval), Some(Cycles(8 * body.0)), "{outcome:?}");
    }

    #[test]
    fn large_loops_begin_with_the_schedule_of_gaus() {
        let options = SearchOptions::default();
        assert_eq!(warm_start(&problem("attention-forward-hopper", 2), &options), None);
        let problem = problem("attention-forward-hopper", 4);
        let start = warm_start(&problem, &options).unwrap();
        twill_check::verify_pipeline(&problem, start.clone()).unwrap();
        let (interval, length) = solved(&problem, Some(start.clone()));
        assert_eq!(interval, start.interval);
        assert!(length <= start.length);
    }
}
