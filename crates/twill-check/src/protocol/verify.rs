//! The check itself, and its seal.

use super::cases::{Named, cases};
use super::counterexample::Counterexample;
use super::error::ProtocolError;
use super::limits::Limits;
use super::machine::Machine;
use super::order::{Doubt, prove};
use super::replay::counterexample;
use super::search::{Outcome, search};
use super::structure;
use super::system::System;
use super::unrolled::UnrolledSystem;
use super::witness::{hunt, shorten, wander};
use std::ops::Deref;

/// A system in which nothing can go wrong. Only [`verify`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedSystem {
    system: System,
    proof: Proof,
}

/// The extent of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Combinations of trip counts and tiles.
    pub cases: usize,
    /// Those of them that took a search through all states, because the order of events alone was not enough.
    pub searched: usize,
    /// States that these searches visited.
    pub states: usize,
    /// Events of the longest case.
    pub events: usize,
}

impl VerifiedSystem {
    /// The extent of the check.
    pub fn proof(&self) -> Proof {
        self.proof
    }

    /// Breaks the seal.
    pub fn into_inner(self) -> System {
        self.system
    }
}

impl Deref for VerifiedSystem {
    type Target = System;

    fn deref(&self) -> &System {
        &self.system
    }
}

/// Shows that nothing can go wrong in `system`, whatever the order in which its processes and asynchronous units
/// work, or how something does.
///
/// # Errors
/// A [`Counterexample`], with the smallest trip counts that have one; or that `system` makes no sense, or that `limits`
/// do not suffice.
pub fn verify(system: &System, limits: &Limits) -> Result<VerifiedSystem, ProtocolError> {
    structure::check(system)?;
    let mut proof = Proof::default();
    let mut left = limits.states;
    let mut undecided = None;
    for case in cases(system, limits)? {
        let unrolled = UnrolledSystem::new(system, &case, limits.events)?;
        let machine = Machine::new(&unrolled);
        proof.cases += 1;
        proof.events = proof.events.max(unrolled.length());
        let Err(doubt) = prove(&machine) else { continue };
        match decide(&machine, doubt, &mut left) {
            Decision::Violated(found) => return Err(ProtocolError::Violated(found)),
            Decision::Holds(states) => {
                proof.searched += 1;
                proof.states += states;
            }
            // A longer case may have a fault that is easier to find.
            Decision::Unknown if undecided.is_none() => undecided = Some(Named(system, &case).to_string()),
            Decision::Unknown => {}
        }
    }
    match undecided {
        Some(case) => Err(ProtocolError::Undecided { case, states: limits.states }),
        None => Ok(VerifiedSystem { system: system.clone(), proof }),
    }
}

/// The outcome of a case that the order of events does not prove.
enum Decision {
    Violated(Box<Counterexample>),
    Holds(usize),
    Unknown,
}

fn decide(machine: &Machine<'_>, doubt: Doubt, left: &mut usize) -> Decision {
    let violated = |steps: &[_], fault: &_, shortest| {
        Decision::Violated(Box::new(counterexample(machine, steps, fault, shortest)))
    };
    let found = match doubt {
        Doubt::Fault(steps, fault) => Some(shorten(machine, (steps, fault))),
        Doubt::Unordered(steps) => hunt(machine, &steps),
    };
    match (search(machine, *left), found) {
        (Outcome::Found(steps, fault), _) => violated(&steps, &fault, true),
        (_, Some((steps, fault))) => violated(&steps, &fault, false),
        (Outcome::None(states), None) => {
            *left = left.saturating_sub(states);
            Decision::Holds(states)
        }
        (Outcome::TooMany, None) => {
            *left = 0;
            Decision::Unknown
        }
    }
}

/// The verdict of a search through all states, without the argument from the order of events, for the cases of at most
/// `events` events. It is there to test the one against the other.
///
/// # Errors
/// As [`verify`].
#[doc(hidden)]
pub fn explore(system: &System, limits: &Limits, events: usize) -> Result<Proof, ProtocolError> {
    structure::check(system)?;
    let mut proof = Proof::default();
    for case in cases(system, limits)? {
        let unrolled = UnrolledSystem::new(system, &case, limits.events)?;
        let machine = Machine::new(&unrolled);
        if unrolled.length() > events {
            continue;
        }
        proof.cases += 1;
        proof.events = proof.events.max(unrolled.length());
        match search(&machine, limits.states) {
            Outcome::None(states) => proof.states += states,
            Outcome::Found(steps, fault) => {
                return Err(ProtocolError::Violated(Box::new(counterexample(&machine, &steps, &fault, true))));
            }
            Outcome::TooMany => {
                return Err(ProtocolError::Undecided { case: Named(system, &case).to_string(), states: limits.states });
            }
        }
    }
    Ok(proof)
}

/// The verdict of one random run of each case.
///
/// # Errors
/// As [`verify`].
#[doc(hidden)]
pub fn try_at_random(system: &System, limits: &Limits, seed: u64) -> Result<Proof, ProtocolError> {
    structure::check(system)?;
    let mut proof = Proof::default();
    for case in cases(system, limits)? {
        let unrolled = UnrolledSystem::new(system, &case, limits.events)?;
        let machine = Machine::new(&unrolled);
        proof.cases += 1;
        proof.events = proof.events.max(unrolled.length());
        if let Some((steps, fault)) = wander(&machine, seed.wrapping_add(proof.cases as u64)) {
            return Err(ProtocolError::Violated(Box::new(counterexample(&machine, &steps, &fault, false))));
        }
    }
    Ok(proof)
}
