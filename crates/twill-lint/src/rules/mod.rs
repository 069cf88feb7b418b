//! The rules.

mod barriers;
mod descriptor;
mod fence;
mod in_flight;
mod lost;
mod proxy;

use crate::finding::Finding;
use crate::program::Program;

pub use barriers::{Facts, Use, UseKind};

/// What all rules find, and what is known of barriers.
pub fn check(program: &Program) -> (Vec<Finding>, Facts) {
    let mut findings = in_flight::check(program);
    findings.extend(fence::check(program));
    findings.extend(lost::check(program));
    findings.extend(descriptor::check(program));
    findings.extend(proxy::check(program));
    let (found, facts) = barriers::check(program);
    findings.extend(found);
    (findings, facts)
}
