//! Certificates: for every interval that a report rejects, its proof (docs/solvers.md).

use crate::bounds;
use crate::limits::{Budget, Meter};
use crate::query;
use thiserror::Error;
use twill_graph::proof::Certificate;
use twill_graph::{Cycles, Families, Liveness, Outcome, Problem, RejectionReason, Report, StageWindow};

/// Why there is no certificate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CertifyError {
    /// Nothing was proved.
    #[error("the search ended before its answer was proved; give it a larger budget, if one ended it")]
    NotProved,
    /// A model variant in which a proof for one number of stages says nothing of the others.
    #[error("certificates cover every number of stages at once, which `{option}` does not allow; leave it out")]
    Unsupported {
        /// The option.
        option: &'static str,
    },
    /// The budget ended while a proof was written.
    #[error("stopped while proving that there is no schedule at {interval} cycles; give it a larger budget")]
    Stopped {
        /// The interval.
        interval: Cycles,
    },
}

/// Proves what a report claims: that no schedule exists below its interval, or none at all.
///
/// Where feasibility is monotone in the interval, the proof at the largest rejected interval covers all
/// smaller ones; otherwise each has its own.
///
/// # Errors
/// When the report proves nothing, or the budget ends.
pub fn certify<S>(problem: &Problem, report: &Report<S>, budget: &Budget) -> Result<Certificate, CertifyError> {
    let options = problem.options();
    if options.liveness != Liveness::Folded {
        return Err(CertifyError::Unsupported { option: "--liveness paper" });
    }
    if options.stage_window != StageWindow::Complete {
        return Err(CertifyError::Unsupported { option: "--stage-window paper" });
    }
    let (below, infeasible) = match &report.outcome {
        Outcome::Optimal { .. } => (report.lower_bound.interval, false),
        Outcome::Infeasible { reason: RejectionReason::Exhausted { largest, .. } } => (*largest + Cycles(1), true),
        Outcome::Infeasible { .. } => (Cycles(bounds::largest_interval(problem).max(1) + 1), true),
        Outcome::Feasible { .. } | Outcome::Unknown { .. } => return Err(CertifyError::NotProved),
    };
    let meter = Meter::start(budget);
    let bound = bounds::lower_bound(problem, Families::ALL);
    let witness = bounds::witness(problem, &bound);
    let first = if bounds::is_monotone(problem) { bound.interval.0.max(below.0 - 1) } else { bound.interval.0 };
    let mut certificate = Certificate {
        below,
        infeasible,
        bound: bound.interval.min(below),
        witness,
        conflicts: Vec::new(),
        proofs: Vec::new(),
    };
    for interval in first..below.0 {
        let stopped = CertifyError::Stopped { interval: Cycles(interval) };
        if meter.stopped().is_some() {
            return Err(stopped);
        }
        if let Some((op, _)) = bounds::self_conflict(problem, interval, Families::ALL) {
            certificate.conflicts.push((Cycles(interval), op));
            continue;
        }
        meter.allow(None);
        certificate.proofs.push(query::prove(problem, interval, &meter).ok_or(stopped)?);
    }
    Ok(certificate)
}
