//! The seal: [`Verified`], which only a replay makes; and [`verify`], the replay of schedules with warps.

use crate::placed::Placed;
use crate::rejected::{Rejected, Violations};
use crate::{
    assignment, bandwidth, channels, concurrency, dependence, exclusive, handoff, registers, resource, rings,
    shared_memory, structure, tensor_memory,
};
use std::ops::Deref;
use twill_graph::{Problem, Schedule};

/// Something that was replayed and holds. Only [`verify`], [`verify_modulo`](crate::verify_modulo),
/// [`verify_pipeline`](crate::verify_pipeline) and [`verify_dataflow`](crate::verify_dataflow) make one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified<T>(T);

impl<T> Verified<T> {
    /// For what this crate has replayed.
    pub(crate) fn seal(value: T) -> Verified<T> {
        Verified(value)
    }

    /// Breaks the seal.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> AsRef<T> for Verified<T> {
    fn as_ref(&self) -> &T {
        &self.0
    }
}

/// Replays `schedule` against `problem`.
///
/// # Errors
/// Every constraint that is broken, with the place (up to [`Rejected::LIMIT`]).
pub fn verify(problem: &Problem, schedule: Schedule) -> Result<Verified<Schedule>, Rejected> {
    let mut violations = Violations::default();
    structure::check_shape(problem, &schedule, &mut violations);
    if !violations.is_empty() {
        // There is nothing that could be replayed.
        return Err(violations.into());
    }
    let placed = Placed::new(problem, &schedule);
    for check in [
        structure::check,
        dependence::check,
        resource::check,
        bandwidth::check,
        assignment::check,
        handoff::check,
        concurrency::check,
        exclusive::check,
        registers::check,
        shared_memory::check,
        tensor_memory::check,
        channels::check,
        rings::check,
    ] {
        check(&placed, &mut violations);
    }
    if violations.is_empty() { Ok(Verified(schedule)) } else { Err(violations.into()) }
}
