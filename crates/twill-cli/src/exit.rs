//! What the exit code says.

use twill_graph::Status;

/// What the exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Proved optimal, or the command did what it was asked to.
    Done = 0,
    /// An error.
    Error = 1,
    /// Proved infeasible.
    Infeasible = 2,
    /// Stopped by a budget, or scheduled with more registers than the machine's groups have; the best known was printed with its bound.
    Stopped = 3,
}

impl Exit {
    /// `twill check-perf` found a kernel that got worse.
    pub(crate) const WORSE: Exit = Exit::Infeasible;
    /// `twill lint` has findings.
    pub(crate) const FINDINGS: Exit = Exit::Error;
    /// `twill lint` cannot check an input.
    pub(crate) const BAD_INPUT: Exit = Exit::Infeasible;

    /// What a status says.
    pub(crate) fn of(status: Status) -> Exit {
        match status {
            Status::Optimal => Exit::Done,
            Status::Infeasible => Exit::Infeasible,
            Status::Feasible | Status::Unknown => Exit::Stopped,
        }
    }
}
