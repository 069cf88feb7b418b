//! How far a search is.

use std::fmt;
use twill_graph::{Change, Cycles};

/// The progress of the search, for people who wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The least interval without warps.
    Modulo {
        /// Interval.
        interval: Cycles,
        /// Length.
        length: Cycles,
    },
    /// An interval is being tried.
    Trying {
        /// Interval.
        interval: Cycles,
    },
    /// It was excluded.
    Rejected {
        /// Interval.
        interval: Cycles,
    },
    /// A schedule was found.
    Found {
        /// Interval.
        interval: Cycles,
        /// Stages.
        stages: u32,
    },
    /// The interval is settled; secondary objectives follow.
    Improving,
    /// Loops are tried together, at these intervals.
    Together {
        /// One a loop.
        intervals: Vec<Cycles>,
    },
    /// It is being found out why an interval was excluded.
    Explaining {
        /// Interval.
        interval: Cycles,
    },
    /// A changed problem is being solved.
    WhatIf {
        /// The difference.
        change: Change,
    },
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progress::Modulo { interval, length } => write!(f, "without warps: I = {interval}, L = {length}"),
            Progress::Trying { interval } => write!(f, "trying I = {interval}"),
            Progress::Rejected { interval } => write!(f, "I = {interval} is impossible"),
            Progress::Found { interval, stages } => {
                write!(f, "found I = {interval} with {stages} stage{}", if *stages == 1 { "" } else { "s" })
            }
            Progress::Together { intervals } => {
                let each: Vec<String> = intervals.iter().map(ToString::to_string).collect();
                write!(f, "trying all loops together, I = {}", each.join(", "))
            }
            Progress::Explaining { interval } => write!(f, "explaining I = {interval}"),
            Progress::WhatIf { .. } => f.write_str("trying changes"),
            Progress::Improving => f.write_str("improving what follows the interval"),
        }
    }
}
