//! What a traced kernel recorded, compared with what its schedule says.

mod kernel;
mod medians;
mod stamps;
#[cfg(test)]
mod tests;

pub use kernel::TracedKernel;

use medians::median;
use stamps::Stamps;
use thiserror::Error;
use twill_check::Verified;
use twill_graph::format::{Compared, Span, TraceEvent, TraceFile, TracedLoop, TracedOperation};
use twill_graph::{OpId, Problem, Schedule};

/// Iterations that are listed one by one.
const LISTED: usize = 4;

/// Why a recording says nothing.
#[derive(Debug, Error)]
pub enum TraceError {
    /// It records nothing.
    #[error("{file}: the kernel records nothing; compile it with --emit cuda --trace")]
    NotTraced {
        /// Its `kernel.json`.
        file: String,
    },
    /// Its description is none.
    #[error("{file}: {why}; write the folder again with twill compile")]
    Kernel {
        /// Its `kernel.json`.
        file: String,
        /// What is wrong.
        why: String,
    },
    /// A buffer of another size.
    #[error(
        "{file}: it has {} bytes, and each launch of this kernel records {}; run the kernel of this folder again (bench/gpu/trace.py)",
        twill_graph::grouped(*.found as u64), twill_graph::grouped(*.each as u64)
    )]
    Size {
        /// The buffer's file.
        file: String,
        /// Bytes in it.
        found: usize,
        /// Bytes of a launch.
        each: usize,
    },
    /// Nothing of use in the buffer.
    #[error(
        "{file}: nothing was recorded of an iteration in the steady state: the kernel did not run, or its loops have fewer than {least} iterations, or too few are recorded; run it with longer loops, or compile it with --trace {least} or more"
    )]
    Nothing {
        /// The buffer's file.
        file: String,
        /// Iterations of the shortest loop that would do.
        least: usize,
    },
}

/// What is known of a run besides its buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedRun {
    /// The buffer's file, for errors.
    pub file: String,
    /// The GPU.
    pub gpu: String,
    /// When: `YYYY-MM-DD`.
    pub date: String,
    /// The revision of the code that was measured, where that is known.
    pub revision: Option<String>,
}

/// What a kernel recorded in one or more launches, compared with the replayed schedules of its loops. A loop of which nothing steady was
/// recorded is left out.
///
/// # Errors
/// When the buffer is not of this kernel, or says nothing of any loop.
pub fn trace(
    kernel: &TracedKernel,
    loops: &[(Problem, Verified<Schedule>)],
    buffer: &[u8],
    run: TracedRun,
) -> Result<TraceFile, TraceError> {
    let loops: Vec<(&Problem, &Schedule)> = loops.iter().map(|(problem, schedule)| (problem, &**schedule)).collect();
    compared(kernel, &loops, buffer, run)
}

fn compared(
    kernel: &TracedKernel,
    loops: &[(&Problem, &Schedule)],
    buffer: &[u8],
    run: TracedRun,
) -> Result<TraceFile, TraceError> {
    let stamps = Stamps::new(kernel, buffer, &run.file)?;
    let mut traced = Vec::new();
    for (index, (problem, schedule)) in loops.iter().enumerate() {
        let one = Measured::new(kernel, index, problem, schedule)?;
        traced.extend(one.and_then(|one| one.traced(&stamps)));
    }
    if traced.is_empty() {
        let least = loops.iter().map(|(_, s)| 2 * s.stages() as usize + 1).min().unwrap_or(1);
        return Err(TraceError::Nothing { file: run.file, least });
    }
    let machine = loops.first().map(|(p, _)| p.resources().name.clone()).unwrap_or_default();
    let trace = TraceFile::new(kernel.name.clone(), machine, [run.gpu, run.date], kernel.detail.clone(), traced);
    Ok(TraceFile { revision: run.revision, ..trace })
}

/// A loop whose timestamps are known.
struct Measured<'a> {
    index: usize,
    problem: &'a Problem,
    schedule: &'a Schedule,
    /// Timestamps of the operations that have one for their issue, in the order of the schedule.
    operations: Vec<OperationMarks>,
    /// Which of these the others are aligned with.
    first: usize,
}

/// The timestamps of an operation, by their places in a row of the buffer.
struct OperationMarks {
    op: OpId,
    issue: usize,
    /// Its end, or what groups see of its completion.
    ends: Vec<usize>,
}

impl<'a> Measured<'a> {
    fn new(
        kernel: &TracedKernel,
        index: usize,
        problem: &'a Problem,
        schedule: &'a Schedule,
    ) -> Result<Option<Measured<'a>>, TraceError> {
        let graph = problem.graph();
        kernel.check_names(index, graph)?;
        let mut order: Vec<OpId> = graph.op_ids().collect();
        order.sort_by_key(|op| schedule.placement(*op).cycle);
        let timestamps = |op: OpId| {
            let (issue, ends) = kernel.marks_of(index, &graph.operation(op).name);
            Some(OperationMarks { op, issue: issue?, ends })
        };
        let operations: Vec<OperationMarks> = order.into_iter().filter_map(timestamps).collect();
        if operations.is_empty() {
            return Ok(None);
        }
        // Loads run ahead of their iteration, as far as their rings go.
        let first = operations.iter().position(|o| !graph.operation(o.op).streaming).unwrap_or(0);
        Ok(Some(Measured { index, problem, schedule, operations, first }))
    }

    fn traced(&self, stamps: &Stamps<'_>) -> Option<TracedLoop> {
        let stages = self.schedule.stages() as usize;
        let aligned = self.operations.get(self.first)?;
        let steady: Vec<_> = stamps.launches().map(|launch| launch.steady(aligned.issue, stages)).collect();
        let mut intervals = Vec::new();
        for (launch, rows) in stamps.launches().zip(&steady) {
            for step in rows.windows(2) {
                let each = self.operations.iter();
                intervals.extend(each.filter_map(|o| launch.between((step[0], o.issue), (step[1], o.issue))));
            }
        }
        let measured = median(intervals)?;
        let start = self.cycle(aligned.op);
        let operations = self.operations.iter().filter_map(|o| {
            let (mut starts, mut ends) = (Vec::new(), Vec::new());
            for (launch, rows) in stamps.launches().zip(&steady) {
                for &row in rows {
                    let Some((from, to)) = launch.span(row, aligned.issue, (row, o)) else { continue };
                    starts.push(from);
                    ends.push(to);
                }
            }
            let graph = self.problem.graph();
            Some(TracedOperation {
                operation: graph.operation(o.op).name.clone(),
                group: self.schedule.placement(o.op).group.index(),
                predicted: Span { start: self.cycle(o.op), end: self.cycle(o.op) + self.duration(o.op) },
                measured: Span { start: start + median(starts)?, end: start + median(ends)? },
            })
        });
        let predicted = as_float(self.schedule.interval.0);
        Some(TracedLoop {
            index: self.index,
            initiation_interval: Compared { predicted, measured },
            operations: operations.collect(),
            events: self.events(stamps, &steady),
        })
    }

    /// Steady iterations of the last launch that has some.
    fn events(&self, stamps: &Stamps<'_>, steady: &[Vec<usize>]) -> Vec<TraceEvent> {
        let last = stamps.launches().zip(steady).filter(|(_, rows)| !rows.is_empty()).last();
        let (Some((launch, rows)), Some(aligned)) = (last, self.operations.get(self.first)) else { return Vec::new() };
        let start = self.cycle(aligned.op);
        let mut events = Vec::new();
        let Some(&since) = rows.first() else { return Vec::new() };
        for (iteration, &row) in (0_u32..).zip(rows.iter().take(LISTED)) {
            for o in &self.operations {
                let Some((from, to)) = launch.span(since, aligned.issue, (row, o)) else { continue };
                events.push(TraceEvent {
                    operation: self.problem.graph().operation(o.op).name.clone(),
                    group: self.schedule.placement(o.op).group.index(),
                    iteration,
                    start: start + as_float(from),
                    end: start + as_float(to),
                });
            }
        }
        events.sort_by(|a, b| a.start.total_cmp(&b.start));
        events
    }

    fn cycle(&self, op: OpId) -> f64 {
        as_float(self.schedule.placement(op).cycle.0)
    }

    /// From issue until it is over, by the schedule; of a load until it has arrived.
    fn duration(&self, op: OpId) -> f64 {
        let operation = self.problem.graph().operation(op);
        let completion = operation.completion();
        as_float(if operation.streaming { completion.max(operation.transfer_latency) } else { completion }.0)
    }
}

/// Cycles, of which a loop has fewer than a float counts exactly.
#[allow(clippy::cast_precision_loss, reason = "no loop runs for 2^53 cycles")]
fn as_float(cycles: i64) -> f64 {
    cycles as f64
}
