//! Graphs for tests.

use crate::model::Model;
use crate::relax::Gaussian;
use crate::{Mobility, Precedence};
use twill_graph::{
    Dataflow, DataflowDependence, DataflowObjective, DataflowOperation, DataflowProblem, DataflowResource, OpId,
    ResourceUse, UnitId,
};
use twill_graph::{Random, SplitMix64};

/// Takes one step, one unit of nothing, and stores 1.
pub fn operation(index: usize) -> DataflowOperation {
    DataflowOperation { name: format!("v{index}"), latency: 1, uses: Vec::new(), storage: 1 }
}

/// One use from the first step on.
pub fn uses(resource: usize, steps: u32) -> ResourceUse {
    ResourceUse { resource: UnitId::new(resource), offset: 0, steps, amount: 1 }
}

/// A dependence of `delay` steps within an iteration, whose communication costs 1.
pub fn after(from: usize, to: usize, delay: i64) -> DataflowDependence {
    DataflowDependence { from: OpId::new(from), to: OpId::new(to), delay, distance: 0, communication: 1 }
}

/// Resources without limits.
pub fn resources(count: usize) -> Vec<DataflowResource> {
    (0..count).map(|index| DataflowResource { name: format!("r{index}"), limit: None }).collect()
}

/// `count` operations one after another, on one resource.
pub fn chain(count: usize) -> Dataflow {
    let operations = (0..count).map(|v| DataflowOperation { uses: vec![uses(0, 1)], ..operation(v) }).collect();
    let edges = (1..count).map(|v| after(v - 1, v, 1)).collect();
    Dataflow::new("chain", operations, edges, resources(1)).unwrap()
}

/// Features that random graphs lack: delays of 0 and below, uses that begin later, take more or come twice.
pub fn varied(graph: &Dataflow) -> Dataflow {
    let mut dependences = graph.dependences().to_vec();
    for (k, d) in dependences.iter_mut().enumerate().filter(|(k, d)| k % 3 == 0 && d.distance == 0) {
        d.delay = 1 - (k as i64 / 3 + d.delay) % 3;
        d.communication = k as u64 % 4;
    }
    let mut operations = graph.operations().to_vec();
    for (k, op) in operations.iter_mut().enumerate() {
        let Some(&used) = op.uses.first() else { continue };
        let limit = graph.resources()[used.resource.index()].limit.unwrap_or(3);
        op.uses[0].amount = limit.min(1 + k as u64 % 2);
        op.uses[0].offset = k as u32 % 3 / 2;
        if k % 4 == 3 {
            op.uses.push(ResourceUse { offset: used.steps + 1, steps: 1, ..used });
        }
    }
    Dataflow::new(graph.name(), operations, dependences, graph.resources().to_vec()).unwrap()
}

/// Nodes, density, reach, back edges and their distance.
pub type Shape = (u32, f64, u32, u32, u32);
/// Latency, resources, limit, storage, seed.
pub type Costs = (u32, u32, u64, u32, u64);

/// A random graph, its back edges as chance has them, and its longest path.
pub fn random((nodes, density, reach, back_edges, distance): Shape, costs: Costs, vary: bool) -> (Dataflow, u64) {
    let (latency, resources, limit, storage, seed) = costs;
    let random =
        Random { nodes, density, reach, back_edges, distance, recurrence: 0, latency, resources, limit, storage, seed };
    let graph = random.graph().unwrap();
    let graph = if vary { varied(&graph) } else { graph };
    let path = Mobility::within(&graph, &Precedence::new(&graph, None), None, None).unwrap().latency;
    (graph, path)
}

/// A random loop of 30 operations with all that there is: two resources, one with a limit, uses of several steps with
/// offsets, delays of 0 and above the latency, back edges.
pub fn everything(objective: DataflowObjective, interval: Option<u64>) -> DataflowProblem {
    let mut random = SplitMix64::new(7);
    let mut below = |bound: usize| random.index(bound);
    let operations = (0..30)
        .map(|v| DataflowOperation {
            latency: 1 + below(3) as u32,
            uses: (0..below(3))
                .map(|_| ResourceUse {
                    resource: UnitId::new(below(2)),
                    offset: below(2) as u32,
                    steps: 1 + below(3) as u32,
                    amount: 1 + below(2) as u64,
                })
                .collect(),
            storage: below(4) as u64,
            ..operation(v)
        })
        .collect();
    let mut edges = Vec::new();
    for to in 1..30 {
        for _ in 0..2 {
            let (from, delay) = (below(to), below(4) as i64);
            edges.push(DataflowDependence {
                from: OpId::new(from),
                to: OpId::new(to),
                delay,
                distance: 0,
                communication: below(3) as u64,
            });
        }
    }
    edges.push(DataflowDependence { from: OpId::new(29), to: OpId::new(0), delay: 2, distance: 3, communication: 1 });
    edges.push(DataflowDependence { from: OpId::new(20), to: OpId::new(9), delay: 1, distance: 2, communication: 1 });
    let mut resources = resources(2);
    resources[1] = DataflowResource { limit: Some(4), ..resources[1].clone() };
    let graph = Dataflow::new("random", operations, edges, resources).unwrap();
    DataflowProblem { graph, latency_bound: None, interval, objective }
}

/// Calls `test` with a model of [`everything`], within 60 steps more than it needs, and distributions anywhere in its windows.
pub fn with_model(objective: DataflowObjective, interval: Option<u64>, test: impl Fn(&Model<'_>, Vec<Gaussian>)) {
    let mut problem = everything(objective, interval);
    let latency = Mobility::new(&problem).unwrap().latency + 60;
    problem.latency_bound = Some(latency);
    let precedence = Precedence::new(&problem.graph, interval);
    let model = Model::new(&problem, &precedence, latency).unwrap();
    let mut random = SplitMix64::new(3);
    let mut unit = || random.unit();
    let at = (0..model.len()).map(|v| [model.earliest[v] as f64 + unit() * model.width(v) as f64, 0.6 + 2.0 * unit()]);
    test(&model, at.collect());
}
