//! Every small mistake is found, or harmless for a reason that is given here.

use crate::systems;
use Mutation::{BarrierSlots, BufferSlots, Drop, Duplicate, Edge, InFlight, OtherCursor, Swap};
use std::collections::BTreeMap;
use twill_check::protocol::{Limits, Mutation, ProtocolError, mutants, verify};

/// A kernel of one tile ends with arrivals that nobody waits for.
const END: &str = "after the last iteration nobody waits for the slots to be free";
/// Waiting again for what has happened.
const AGAIN: &str = "what has happened has happened";
/// Slots that no cursor stands at.
const UNUSED: &str = "a slot more is not used";
/// Nothing depends on the order.
const APART: &str = "the two have nothing to do with each other";
/// A stricter wait.
const STRICTER: &str = "waits for more than it must, earlier than it must, or nothing else is under way";
/// Two cursors at one place.
const SAME: &str = "the cursors stand at the same slot there";
/// The check is of order, not of work that is left out.
const NO_WORK: &str = "one tile less is worked on, or an empty part of a program is run";
/// In attention, K's slot is not loaded again before V's next one, which waits until both MMAs have ended.
const HELD_BY_V: &str = "V's ring holds the producer back until the MMA of K has ended, too";

/// The survivors: mutation, event, neighbour, count over all systems, and why the mutation is no mistake.
const HARMLESS: &[(Mutation, &str, &str, usize, &str)] = &[
    (BufferSlots, "", "", 13, UNUSED),
    (BarrierSlots, "", "", 20, UNUSED),
    (Drop, "Advance", "", 5, END),
    (Drop, "Arrive", "", 5, END),
    (Drop, "NamedBarrierSync", "", 1, "the last ping-pong barrier need not be waited for"),
    (Drop, "MmaWait", "", 2, HELD_BY_V),
    (
        Duplicate,
        "Advance",
        "",
        7,
        "at the end, or in a ring of 3, whose slots are then freed in another order, none too early",
    ),
    (Duplicate, "Arrive", "", 5, END),
    (Duplicate, "Fence", "", 3, AGAIN),
    (Duplicate, "CopyCursor", "", 2, AGAIN),
    (Duplicate, "Wait", "", 36, AGAIN),
    (Duplicate, "MmaWait", "", 22, AGAIN),
    (Duplicate, "StoreWait", "", 2, AGAIN),
    (Edge, "When", "", 10, NO_WORK),
    (InFlight, "MmaWait", "", 9, "a stricter wait; and 2 for 1 is no wait, as for Drop"),
    (InFlight, "StoreWait", "", 1, STRICTER),
    (OtherCursor, "Advance", "", 5, END),
    (OtherCursor, "Arrive", "", 9, "at the end; or the cursors stand at the same slot there"),
    (OtherCursor, "Wait", "", 7, SAME),
    (Swap, "Advance", "Advance", 5, APART),
    (Swap, "Advance", "Loop", 1, APART),
    (Swap, "Advance", "MmaWait", 4, APART),
    (Swap, "Advance", "When", 2, APART),
    (Swap, "Arrive", "Advance", 7, "at the end; or the ring has one slot and nobody looks at the phase of an arrival"),
    (Swap, "Load", "Advance", 1, "a ring of one slot: nobody looks at the phase of an arrival"),
    (Swap, "Load", "Wait", 2, "two rings: the load is sooner, or later, than the other one's wait"),
    (Swap, "Mma", "CopyCursor", 2, APART),
    (Swap, "Mma", "Wait", 2, "the wait is for the other ring"),
    (Swap, "Mma", "MmaWait", 2, STRICTER),
    (Swap, "Store", "MmaWait", 1, APART),
    (Swap, "MmaWait", "Arrive", 6, "at the end; or V's ring holds the producer back"),
    (Swap, "MmaWait", "Read", 2, "threads may read what an MMA reads"),
    (Swap, "MmaWait", "StoreWait", 2, APART),
    (Swap, "StoreWait", "Arrive", 1, END),
];

#[test]
fn mistakes_are_found_or_harmless() {
    let (mut all, mut malformed, mut survivors) = (0, 0, BTreeMap::<_, Vec<String>>::new());
    for (name, system) in systems::all() {
        for mutant in mutants(&system) {
            all += 1;
            let name = format!("{name}: {}", mutant.name);
            match verify(&mutant.system, &Limits::default()) {
                Ok(verified) => {
                    assert_eq!(*verified, mutant.system);
                    survivors.entry((mutant.mutation, mutant.event, mutant.neighbour)).or_default().push(name);
                }
                Err(ProtocolError::Violated(found)) => assert!(!found.fault.is_empty()),
                Err(ProtocolError::Malformed { .. }) => malformed += 1,
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
    let expected: BTreeMap<_, usize> =
        HARMLESS.iter().map(|&(m, event, next, count, _)| ((m, event, next), count)).collect();
    for (key, names) in &survivors {
        assert_eq!(expected.get(key), Some(&names.len()), "{key:?}:\n{}", names.join("\n"));
    }
    assert_eq!(survivors.len(), expected.len());
    let harmless: usize = HARMLESS.iter().map(|row| row.3).sum();
    // All others run into a fault.
    assert_eq!((all, malformed, harmless), (768, 56, 204));
}

/// Every removal of a wait for data is found.
#[test]
fn nothing_that_is_needed_can_go() {
    for (name, system) in systems::all() {
        for mutant in mutants(&system) {
            let needed = match mutant.mutation {
                Mutation::Drop => {
                    matches!(mutant.event, "Wait" | "Fence" | "NamedBarrierArrive" | "StoreWait" | "CopyCursor")
                }
                Mutation::Previous | Mutation::Arrivals | Mutation::Participants | Mutation::CursorSlots => true,
                _ => false,
            };
            if needed {
                assert!(verify(&mutant.system, &Limits::default()).is_err(), "{name}: {}", mutant.name);
            }
        }
    }
}
