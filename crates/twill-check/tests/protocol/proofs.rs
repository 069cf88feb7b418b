//! Correct systems are proved, by the order of events alone.

use crate::systems;
use twill_check::protocol::{Limits, System, verify};

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
    proved("hand-off with 4 slots", &systems::handoff(4));
    proved("backward", &systems::backward());
}
