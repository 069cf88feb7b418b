//! The argument from the order of events and the search through all states say the same.

use crate::systems;
use twill_check::protocol::{Limits, ProtocolError, System, explore, mutants, verify};

/// Both verdicts on every small mistake in a system; how many were compared.
fn agree(name: &str, system: &System, events: usize) -> usize {
    let limits = Limits { states: 400_000, ..Limits::default() };
    let mut compared = 0;
    for mutant in mutants(system) {
        let name = format!("{name}, {}", mutant.name);
        match (verify(&mutant.system, &limits), explore(&mutant.system, &limits, events)) {
            (Ok(_), Ok(proof)) => assert!(proof.cases > 1, "{name}"),
            (Ok(_), Err(ProtocolError::Violated(found))) => panic!("{name}: proved, but\n{found}"),
            (Err(ProtocolError::Violated(one)), Err(ProtocolError::Violated(other))) => {
                assert_eq!(one.case, other.case, "{name}: {one}");
                assert!(!one.shortest || one == other, "{name}: {one}{other}");
            }
            // Too long a case for the search.
            (Err(ProtocolError::Violated(_)), Ok(_)) | (_, Err(ProtocolError::Undecided { .. })) => continue,
            (Err(ProtocolError::Malformed { .. }), Err(ProtocolError::Malformed { .. })) => {}
            (one, other) => panic!("{name}: {one:?} {other:?}"),
        }
        compared += 1;
    }
    compared
}

#[test]
fn order_and_search_agree() {
    for (name, system, events) in [
        ("gemm", systems::gemm(2), 50),
        ("hand-off", systems::handoff(2), 50),
        ("attention", systems::attention(1), 50),
        ("ping-pong", systems::ping_pong(), 45),
    ] {
        let all = mutants(&system).len();
        let start = std::time::Instant::now();
        let compared = agree(name, &system, events);
        eprintln!("{name}: {compared} of {all} compared in {:?}", start.elapsed());
        assert!(compared * 10 >= all * 9, "{name}: {compared} of {all}");
    }
}
