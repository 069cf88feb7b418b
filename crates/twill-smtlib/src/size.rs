//! The size of the text, before any of it is made: literals, estimated from above.

use crate::question::{FormulationError, Question};
use twill_graph::{Liveness, Problem, Storage};

/// About 400 MB of text.
pub(crate) const LARGEST: u64 = 20_000_000;

pub(crate) fn check(problem: &Problem, question: &Question) -> Result<(), FormulationError> {
    let literals = estimate(problem, question);
    if literals <= LARGEST {
        return Ok(());
    }
    let Question { interval, stages, .. } = *question;
    Err(FormulationError::TooLarge { interval, stages, literals, limit: LARGEST })
}

/// Literals of all constraints. Family by family what `constraints` writes: `T = N · I` cycles for what
/// speaks of an iteration, `I` slots for what is folded.
pub(crate) fn estimate(problem: &Problem, question: &Question) -> u64 {
    let (graph, resources) = (problem.graph(), problem.resources());
    let count = |n: usize| n as f64;
    let (interval, stages) = (question.interval.0 as f64, f64::from(question.stages));
    let horizon = interval * stages;
    let (operations, groups) = (count(graph.operations().len()), count(problem.groups().len()));
    let paper = problem.options().liveness == Liveness::Paper;

    let mut total = operations * horizon * 8.0;
    total += operations * operations * (3.0 * groups + 4.0 * interval);
    total += count(graph.dependences().len()) * horizon * 5.0;
    let held: f64 = graph.operations().iter().map(|op| count(op.reservations.len())).sum();
    total += (held + 3.0 * operations) * 2.0 * (horizon + interval);
    total += held * held * interval;
    if problem.options().exclusive_issue {
        let synchronous = count(graph.operations().iter().filter(|op| op.is_synchronous()).count());
        total += synchronous * synchronous * 1.5 * interval;
    }
    let file = resources.registers;
    let choices = f64::from(file.maximum_per_thread / file.granularity + 1);
    let cells = if paper { 2.0 * horizon } else { interval };
    let mut storage = groups * choices * cells;
    for v in graph.op_ids() {
        let op = graph.operation(v);
        let uses = count(graph.uses(v).count());
        let reach = |d: &twill_graph::Dependence| {
            let over = d.hold.max(graph.operation(d.to).completion()).max(graph.operation(d.to).span());
            horizon + f64::from(d.distance) * interval + over.0 as f64
        };
        let longest = graph.uses(v).map(reach).fold(0.0, f64::max);
        let copies = if paper { stages } else { 1.0 };
        storage += match op.storage {
            Storage::None => 0.0,
            Storage::Shared(bytes) if op.streaming => {
                let slots = ((longest + op.transfer_latency.0 as f64) / interval)
                    .min(resources.shared_memory.0 as f64 / (bytes.0.max(1) as f64));
                slots * (uses * uses * horizon * 3.0 + cells)
            }
            Storage::Shared(_) | Storage::Tensor(_) => copies * longest * (uses + 2.0),
            // The value, its buffer, and the registers of its readers.
            Storage::Registers(_) => copies * longest * (3.0 * uses + 3.0 + 3.0 * groups * (1.0 + uses)),
        };
    }
    // Saturates.
    (total + storage) as u64
}
