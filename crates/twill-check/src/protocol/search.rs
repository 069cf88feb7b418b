//! Breadth-first search through all states of one case, for the shortest way to a fault.
//!
//! Some steps are taken as soon as they can be, and not counted: satisfied waits for MMAs and stores, and arrivals.
//! This loses no fault. Let a run from some state have one, and let such a step be possible there; take it first instead of
//! where the run has it, or in addition. The first kind touches nothing but the place of its process. An arrival
//! commutes with all other steps but waits at its barrier; such a wait is possible afterwards as before, or is now at a
//! phase too late, which is a fault itself. No fault is defined by a process that stands at such a step. So the run still has a
//! fault, after no more steps that are counted.

use super::fault::Fault;
use super::machine::{Machine, State, Transition};
use super::unrolled::ProtocolOp;
use super::witness::{Witness, shorten};
use indexmap::IndexSet;

/// The result of a search.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The shortest way to a fault.
    Found(Vec<Transition>, Fault),
    /// There is none; this many states were seen.
    None(usize),
    /// There were more states than allowed.
    TooMany,
}

/// Looks at all interleavings.
pub(super) fn search(machine: &Machine<'_>, limit: usize) -> Outcome {
    let found = |(steps, fault): Witness| {
        let (steps, fault) = shorten(machine, (steps, fault));
        Outcome::Found(steps, fault)
    };
    let mut start = machine.start();
    if let Err(fault) = machine.look(&start) {
        return Outcome::Found(Vec::new(), fault);
    }
    let mut steps = Vec::new();
    if let Err(fault) = hurry(machine, &mut start, &mut steps) {
        return found((steps, fault));
    }
    let mut parents: Vec<(usize, Transition)> = vec![(0, Transition::Do(0))];
    let mut seen: IndexSet<State> = IndexSet::from([start]);
    let mut at = 0;
    while let Some(state) = seen.get_index(at).cloned() {
        let steps = machine.steps(&state);
        if steps.is_empty()
            && let Err(fault) = machine.stuck(&state)
        {
            return found((way(machine, &parents, at, None), fault));
        }
        for step in steps {
            let mut next = state.clone();
            if let Err(fault) = machine.take(&mut next, step).and_then(|()| hurry(machine, &mut next, &mut Vec::new()))
            {
                return found((way(machine, &parents, at, Some(step)), fault));
            }
            if seen.insert(next) {
                parents.push((at, step));
                if seen.len() > limit {
                    return Outcome::TooMany;
                }
            }
        }
        at += 1;
    }
    Outcome::None(seen.len())
}

/// Takes all steps that need not be counted, and notes them.
fn hurry(machine: &Machine<'_>, state: &mut State, taken: &mut Vec<Transition>) -> Result<(), Fault> {
    for p in 0..machine.unrolled.ops.len() {
        while let Some(ProtocolOp::MmaWait(_) | ProtocolOp::StoreWait(_) | ProtocolOp::Arrive { .. }) =
            machine.next(state, p)
            && machine.enabled(state, Transition::Do(p))
        {
            taken.push(Transition::Do(p));
            machine.take(state, Transition::Do(p))?;
        }
    }
    Ok(())
}

/// All steps from the start to a state, and one more.
fn way(
    machine: &Machine<'_>,
    parents: &[(usize, Transition)],
    mut at: usize,
    last: Option<Transition>,
) -> Vec<Transition> {
    let mut counted: Vec<Transition> = last.into_iter().collect();
    while at > 0 {
        counted.push(parents[at].1);
        at = parents[at].0;
    }
    let mut state = machine.start();
    let mut steps = Vec::new();
    let mut go = hurry(machine, &mut state, &mut steps);
    for &step in counted.iter().rev() {
        if go.is_ok() {
            steps.push(step);
            go = machine.take(&mut state, step).and_then(|()| hurry(machine, &mut state, &mut steps));
        }
    }
    steps
}
