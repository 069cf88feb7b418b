//! The question, and why it may be unanswerable.

use thiserror::Error;
use twill_graph::{Cycles, Liveness, Problem};

/// Is there a schedule with this initiation interval and number of stages?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Initiation interval `I`.
    pub interval: Cycles,
    /// Stages: the length is at most `stages · I`. Under the paper's liveness, which depends on their
    /// number, there are exactly that many.
    pub stages: u32,
    /// The status that is claimed, if one is; written as the script's `:status`.
    pub expected_status: Option<ExpectedStatus>,
    /// Further lines for the head of the script.
    pub notes: Vec<String>,
}

/// The expected answer of a solver: `:status` in SMT-LIB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedStatus {
    /// There is such a schedule.
    Sat,
    /// There is none.
    Unsat,
}

impl Question {
    /// The question without a claim.
    pub fn new(interval: Cycles, stages: u32) -> Question {
        Question { interval, stages, expected_status: None, notes: Vec::new() }
    }

    /// `at most 2 stages`, `exactly 1 stage`.
    pub(crate) fn stages_in_words(&self, problem: &Problem) -> String {
        let how = if problem.options().liveness == Liveness::Paper { "exactly" } else { "at most" };
        format!("{how} {} stage{}", self.stages, if self.stages == 1 { "" } else { "s" })
    }

    pub(crate) fn check(&self) -> Result<(), FormulationError> {
        if self.interval < Cycles(1) {
            return Err(FormulationError::Interval { interval: self.interval });
        }
        if self.stages == 0 {
            return Err(FormulationError::Stages);
        }
        Ok(())
    }
}

/// Why there is no text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FormulationError {
    /// Not an interval.
    #[error("there is no initiation interval of {interval} cycles; the least is 1")]
    Interval {
        /// The request.
        interval: Cycles,
    },
    /// Not a number of stages.
    #[error("a schedule has at least 1 stage")]
    Stages,
    /// A Boolean for every cycle is too many.
    #[error(
        "the time-indexed formulation at I = {interval} with {stages} stages has about {literals} literals, and at most {limit} are written: it has Booleans for every cycle; normalise the costs (--normalise 300) or allow fewer stages"
    )]
    TooLarge {
        /// `I`.
        interval: Cycles,
        /// Stages.
        stages: u32,
        /// Estimate of its size.
        literals: u64,
        /// Largest size.
        limit: u64,
    },
}
