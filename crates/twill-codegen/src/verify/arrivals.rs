//! That operations arrive at barriers as the barriers count them: a unit or a group once, threads that copy each for itself (PTX,
//! `mbarrier.arrive`, `cp.async.mbarrier.arrive.noinc`). The protocol checker takes each of these for one arrival.

use crate::error::Error;
use crate::ir::{Arrival, BarrierId, Group, Op, WarpProgram, visit};

/// Checks all groups.
///
/// # Errors
/// [`Error::Protocol`] with the first arrival that its barrier does not count.
pub(super) fn check(program: &WarpProgram) -> Result<(), Error> {
    for group in &program.groups {
        for part in [&group.begin, &group.body, &group.end] {
            let mut found = Ok(());
            visit(part, &mut |op| {
                if found.is_ok() {
                    found = counted(program, group, op);
                }
            });
            found?;
        }
    }
    Ok(())
}

fn counted(program: &WarpProgram, group: &Group, op: &Op) -> Result<(), Error> {
    let warps = group.warps;
    let (barrier, arrival): (BarrierId, Arrival) = match op {
        Op::TmaLoad { full, .. } => (*full, Arrival::Unit),
        Op::CpAsync { full: Some(full), .. } => (*full, Arrival::EachThread { warps }),
        _ => return Ok(()),
    };
    let barrier = &program.barriers[barrier.index()];
    if barrier.arrivals.contains(&arrival) {
        return Ok(());
    }
    let counterexample = format!(
        "{}: a copy arrives at `{}` as {arrival:?}, and the barrier counts {:?}",
        group.name, barrier.name, barrier.arrivals
    );
    Err(Error::Protocol { counterexample })
}
