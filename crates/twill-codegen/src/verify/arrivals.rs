//! That operations arrive at barriers as the barriers count them: a unit or a group once, threads that copy each for itself (PTX,
//! `mbarrier.arrive`, `cp.async.mbarrier.arrive.noinc`). The protocol checker takes each of these for one arrival.

use crate::error::Error;
use crate::ir::{Arrival, Group, Op, WarpProgram, visit};

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
    let (barrier, arrivals) = match op {
        Op::TmaLoad { full, .. } => (*full, vec![Arrival::Unit]),
        Op::CpAsync { full: Some(full), .. } => (*full, vec![Arrival::EachThread { warps }]),
        // One warp that issues for a unit arrives in its stead.
        Op::MbarrierArrive { barrier, .. } if warps == 1 => (*barrier, vec![Arrival::Threads { warps }, Arrival::Unit]),
        Op::MbarrierArrive { barrier, .. } => (*barrier, vec![Arrival::Threads { warps }]),
        _ => return Ok(()),
    };
    let barrier = &program.barriers[barrier.index()];
    if arrivals.iter().any(|arrival| barrier.arrivals.contains(arrival)) {
        return Ok(());
    }
    let counterexample = format!(
        "{}: it arrives at `{}` as {:?}, and the barrier counts {:?}",
        group.name, barrier.name, arrivals[0], barrier.arrivals
    );
    Err(Error::Protocol { counterexample })
}
