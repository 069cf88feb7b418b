//! The answer for a schedule that does not hold.

use crate::Violation;
use std::fmt;
use thiserror::Error;

/// A schedule that broke a constraint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Rejected {
    /// The violations, by constraint in the order of docs/model.md; never empty.
    pub violations: Vec<Violation>,
    /// True if there was more than is listed.
    pub truncated: bool,
}

impl Rejected {
    /// Most violations that are listed.
    pub const LIMIT: usize = 64;
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the schedule was replayed and does not hold:")?;
        for violation in &self.violations {
            write!(f, "\n  {violation}")?;
        }
        if self.truncated { f.write_str("\n  and more") } else { Ok(()) }
    }
}

/// Collects violations up to [`Rejected::LIMIT`].
#[derive(Default)]
pub(crate) struct Violations {
    list: Vec<Violation>,
    truncated: bool,
}

impl Violations {
    pub fn push(&mut self, violation: Violation) {
        if self.list.len() < Rejected::LIMIT {
            self.list.push(violation);
        } else {
            self.truncated = true;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl From<Violations> for Rejected {
    fn from(found: Violations) -> Rejected {
        Rejected { violations: found.list, truncated: found.truncated }
    }
}
