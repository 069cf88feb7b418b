//! The replay of a pipeline without warps: `dependence`, `resource` and `bandwidth` alone, and its length.

use crate::placed::{Placed, cycles};
use crate::rejected::{Rejected, Violations};
use crate::structure;
use crate::verified::Verified;
use crate::{Violation, bandwidth, dependence, resource};
use twill_graph::{Pipeline, Problem};

/// Replays `pipeline` against the graph and the units of `problem`.
///
/// # Errors
/// Every constraint that is broken, with the place (up to [`Rejected::LIMIT`]).
pub fn verify_pipeline(problem: &Problem, pipeline: Pipeline) -> Result<Verified<Pipeline>, Rejected> {
    let mut violations = Violations::default();
    let times = pipeline.times_alone();
    structure::check_shape(problem, &times, &mut violations);
    if violations.is_empty() {
        let placed = Placed::new(problem, &times);
        let (required, given) = (placed.length(), pipeline.length);
        if required != i128::from(given.0) {
            violations.push(Violation::Length { required: cycles(required), given });
        }
        dependence::check(&placed, &mut violations);
        resource::check(&placed, &mut violations);
        bandwidth::check(&placed, &mut violations);
    }
    if violations.is_empty() { Ok(Verified::seal(pipeline)) } else { Err(violations.into()) }
}
