//! Executions that are likely to fail, where a proof has a gap, and their minimisation.
//!
//! A search through all states finds the shortest way to a fault, if there are few enough. These runs cost next to
//! nothing, and a fault that one of them has is as real; that none has one says nothing.

use super::fault::Fault;
use super::machine::{Machine, State, Transition};
use std::cell::Cell;

/// A run and its fault.
pub(super) type Witness = (Vec<Transition>, Fault);

/// Runs that begin with `first`, and runs that do not, in which one process or what it started is as slow as it can be.
pub(super) fn hunt(machine: &Machine<'_>, first: &[Transition]) -> Option<Witness> {
    let processes = machine.unrolled.ops.len();
    let mut found: Option<Witness> = None;
    for slow in 0..=processes {
        for pace in [Pace::Early, Pace::Late, Pace::OwnLast] {
            for first in [first, &[]] {
                let run = run(machine, first, |state, step| rank(machine, state, step, slow, pace));
                if run.as_ref().is_some_and(|(new, _)| found.as_ref().is_none_or(|(old, _)| new.len() < old.len())) {
                    found = run;
                }
            }
        }
    }
    found.map(|found| shorten(machine, found))
}

/// A run in which chance says who goes on.
pub(super) fn wander(machine: &Machine<'_>, seed: u64) -> Option<Witness> {
    let random = Cell::new(seed);
    run(machine, &[], |_, _| {
        // Knuth's MMIX generator.
        random.set(random.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        (random.get() >> 56) as u8
    })
}

/// When asynchronous operations finish.
#[derive(Clone, Copy)]
enum Pace {
    /// As soon as they can.
    Early,
    /// When no other process can go on.
    Late,
    /// Early, but for those of the slow process, which are last of all.
    OwnLast,
}

/// The priority: small numbers first.
fn rank(machine: &Machine<'_>, state: &State, step: Transition, slow: usize, pace: Pace) -> u8 {
    let owner = match step {
        Transition::Do(p) => return if p == slow { 3 } else { 1 },
        Transition::FinishLoad(slot) => machine.loading(state, slot).map(|(p, _)| p),
        Transition::FinishMma(p) | Transition::FinishStore(p) => Some(p),
    };
    match pace {
        Pace::Early => 0,
        Pace::Late => 2,
        Pace::OwnLast if owner == Some(slow) => 4,
        Pace::OwnLast => 0,
    }
}

/// Takes the `first` steps that can be taken, then always the one of the lowest rank.
fn run(machine: &Machine<'_>, first: &[Transition], rank: impl Fn(&State, Transition) -> u8) -> Option<Witness> {
    let mut state = machine.start();
    let mut taken = Vec::new();
    let mut first = first.iter().copied();
    loop {
        let given = first.find(|&step| machine.enabled(&state, step));
        let next = given.or_else(|| machine.steps(&state).into_iter().min_by_key(|&step| rank(&state, step)));
        let Some(step) = next else { return machine.stuck(&state).err().map(|fault| (taken, fault)) };
        taken.push(step);
        if let Err(fault) = machine.take(&mut state, step) {
            return Some((taken, fault));
        }
    }
}

/// Leaves steps out, many at once and then few, as long as there still is a fault.
pub(super) fn shorten(machine: &Machine<'_>, mut witness: Witness) -> Witness {
    let mut size = witness.0.len() / 2;
    while size > 0 {
        let mut end = witness.0.len();
        let mut shorter = false;
        while end > 0 {
            let begin = end.saturating_sub(size);
            let rest = [&witness.0[..begin], &witness.0[end.min(witness.0.len())..]].concat();
            if let Some(found) = follow(machine, &rest) {
                shorter = true;
                witness = found;
            }
            end = begin.min(witness.0.len());
        }
        if size > 1 || !shorter {
            size /= 2;
        }
    }
    witness
}

/// Takes those of the steps that can be taken, until there is a fault.
fn follow(machine: &Machine<'_>, steps: &[Transition]) -> Option<Witness> {
    let mut state = machine.start();
    let mut taken = Vec::new();
    for &step in steps {
        if machine.enabled(&state, step) {
            taken.push(step);
            if let Err(fault) = machine.take(&mut state, step) {
                return Some((taken, fault));
            }
        }
    }
    let ends = machine.steps(&state).is_empty();
    machine.stuck(&state).err().filter(|_| ends).map(|fault| (taken, fault))
}
