//! Correct systems are proved, by the order of events alone.

use crate::systems;
use twill_check::protocol::{Limits, Proof, ProtocolError, System, explore, mutants, try_at_random, verify};

fn proved(name: &str, system: &System) {
    let start = std::time::Instant::now();
    let verified = verify(system, &Limits::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let proof = verified.proof();
    eprintln!("{name}: {proof:?} in {:?}", start.elapsed());
    assert_eq!(proof.searched, 0, "{name}");
    assert!(proof.cases > 5, "{name}");
}

#[test]
fn correct_systems_hold() {
    for (name, system) in systems::all() {
        proved(name, &system);
    }
    proved("gemm with 4 slots", &systems::gemm(4));
    proved("attention with 1 slot", &systems::attention(1));
    proved("attention with 4 slots", &systems::attention(4));
    proved("handoff with 4 slots", &systems::handoff(4));
    proved("backward", &systems::backward());
}

#[test]
fn what_a_proof_says() {
    let limits = Limits::default();
    let gemm = systems::gemm(2);
    let verified = verify(&gemm, &limits).unwrap();
    assert_eq!(*verified, gemm);
    assert_eq!(verified.proof(), Proof { cases: 10, searched: 0, states: 0, events: 99 });
    assert_eq!(verified.into_inner(), gemm);
    // An arrival at the slot of another cursor that stands at the same one is found by a search.
    let (name, searched) = ("upper.2.1: OtherCursor", Proof { cases: 10, searched: 8, states: 3812, events: 99 });
    let other = mutants(&gemm).into_iter().find(|mutant| mutant.name.starts_with(name)).unwrap();
    assert_eq!(verify(&other.system, &limits).unwrap().proof(), searched);
}

#[test]
fn all_states_of_short_cases() {
    let limits = Limits::default();
    let gemm = systems::gemm(2);
    let explored = |events| explore(&gemm, &limits, events).unwrap();
    // Trip counts 0, 1 and 2.
    assert_eq!(explored(10), Proof { cases: 1, searched: 0, states: 1, events: 0 });
    assert_eq!(explored(11), Proof { cases: 2, searched: 0, states: 24, events: 11 });
    assert_eq!(explored(21), explored(11));
    assert_eq!(explored(22), Proof { cases: 3, searched: 0, states: 245, events: 22 });
    let few = |states| explore(&gemm, &Limits { states, ..limits }, 11);
    assert_eq!(few(23), Ok(explored(11)));
    let case = "trips of k: 1".to_owned();
    assert_eq!(few(22), Err(ProtocolError::Undecided { case, states: 22 }));
    assert_eq!(try_at_random(&gemm, &limits, 1), Ok(Proof { cases: 10, searched: 0, states: 0, events: 99 }));
}
