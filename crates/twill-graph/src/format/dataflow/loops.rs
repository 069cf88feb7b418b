//! Loops in the vocabulary of the other schedulers, as graphs of operations.

use crate::{
    Cycles, Dataflow, DataflowDependence, DataflowError, DataflowOperation, DataflowResource, LoopGraph, ModuloProblem,
    OpId, Operation, ResourceUse, Storage, Unit, UnitId,
};

/// Bytes of a column of tensor memory: 128 lanes of 4 bytes.
const COLUMN: u64 = 512;

/// A modulo scheduling problem. It does not say when an operation is finished: `latency` does. Every value takes 1 of storage,
/// every dependence 1 of communication a step. A resource without limit that blocks for one step is of no use to anybody
/// and is left out.
///
/// # Errors
/// When numbers do not fit.
pub fn modulo_dataflow(
    problem: &ModuloProblem,
    mut latency: impl FnMut(OpId) -> u32,
) -> Result<Dataflow, DataflowError> {
    // There are hundreds of kinds of operations and a handful of limits.
    let mut resources = Vec::new();
    let mut number = vec![None; problem.resources().len()];
    for (slot, resource) in number.iter_mut().zip(problem.resources()).filter(|(_, r)| r.limit.is_some()) {
        *slot = Some(UnitId::new(resources.len()));
        resources.push(DataflowResource { name: resource.name.clone(), limit: resource.limit.map(u64::from) });
    }
    let operations = problem.operations().iter().enumerate().map(|(index, op)| {
        let steps = problem.resources()[op.resource.index()].blocking;
        let used = number[op.resource.index()].map(|resource| ResourceUse { resource, offset: 0, steps, amount: 1 });
        let latency = latency(OpId::new(index));
        DataflowOperation { name: op.name.clone(), latency, uses: used.into_iter().collect(), storage: 1 }
    });
    let operations = operations.collect();
    let dependence = |d: &crate::ModuloDependence| DataflowDependence {
        from: d.from,
        to: d.to,
        delay: d.delay.0,
        distance: d.distance,
        communication: 1,
    };
    let dependences = problem.dependences().iter().map(dependence).collect();
    Dataflow::new(problem.name(), operations, dependences, resources)
}

/// A loop of tile operations on the `units` of a machine, without warps: reservations become uses, results bytes, whatever
/// memory they are in. What warps do (who is busy, handoffs, rings, how long an asynchronous reader holds a value) is
/// left out.
///
/// # Errors
/// When an operation reserves a unit that is not among `units`, or numbers do not fit.
pub fn loop_dataflow(graph: &LoopGraph, units: &[Unit]) -> Result<Dataflow, DataflowError> {
    let operations: Result<Vec<_>, _> = graph.operations().iter().map(|op| operation(op, units)).collect();
    let dependence = |d: &crate::Dependence| DataflowDependence {
        from: d.from,
        to: d.to,
        delay: d.delay.0,
        distance: d.distance,
        communication: u64::from(d.carries_value),
    };
    let dependences = graph.dependences().iter().map(dependence).collect();
    let resource = |unit: &Unit| DataflowResource { name: unit.name.clone(), limit: Some(unit.capacity.into()) };
    Dataflow::new(graph.name(), operations?, dependences, units.iter().map(resource).collect())
}

fn operation(op: &Operation, units: &[Unit]) -> Result<DataflowOperation, DataflowError> {
    let narrow = |cycles: Cycles, what| u32::try_from(cycles.0).map_err(|_| DataflowError::TooLarge { what });
    let used = |r: &crate::Reservation| {
        let resource = units.iter().position(|unit| unit.name == r.unit).map(UnitId::new);
        let missing = || DataflowError::UnknownResource { operation: op.name.clone(), resource: r.unit.clone() };
        Ok(ResourceUse {
            resource: resource.ok_or_else(missing)?,
            offset: narrow(r.start, "uses")?,
            steps: narrow(r.cycles, "uses")?,
            amount: 1,
        })
    };
    let uses: Result<Vec<_>, DataflowError> = op.reservations.iter().map(used).collect();
    let storage = match op.storage {
        Storage::None => 0,
        Storage::Registers(words) => words.0.saturating_mul(4),
        Storage::Shared(bytes) => bytes.0,
        Storage::Tensor(columns) => columns.0.saturating_mul(COLUMN),
    };
    Ok(DataflowOperation {
        name: op.name.clone(),
        latency: narrow(op.completion(), "latencies")?,
        uses: uses?,
        storage,
    })
}
