//! The argument from the order of events and the search through all states say the same.

use crate::systems;
use twill_check::protocol::{Limits, ProtocolError, System, explore, mutants, try_at_random, verify};

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
        ("gemm", systems::gemm(2), 60),
        ("handoff", systems::handoff(2), 60),
        ("attention", systems::attention(1), 50),
        ("ping-pong", systems::ping_pong(), 50),
        ("tensor memory", systems::tensor_memory(2), 40),
        ("two loops", systems::two_loops(2), 45),
    ] {
        let all = mutants(&system).len();
        let compared = agree(name, &system, events);
        eprintln!("{name}: {compared} of {all} compared");
        assert!(compared * 10 >= all * 9, "{name}: {compared} of {all}");
    }
}

/// Mistakes of mistakes, some of which make up for each other.
#[test]
fn two_mistakes_at_once() {
    let mut random = 1_u64;
    let mut choose = |count: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % count
    };
    let limits = Limits { states: 50_000, ..Limits::default() };
    let (mut held, mut failed) = (0, 0);
    for (name, system) in systems::all() {
        let single = mutants(&system);
        for _ in 0..200 {
            let one = &single[choose(single.len())];
            let both = mutants(&one.system);
            let two = &both[choose(both.len())];
            let name = format!("{name}, {}, {}", one.name, two.name);
            match (verify(&two.system, &limits), explore(&two.system, &limits, 40)) {
                (Ok(_), Ok(_)) => held += 1,
                (Ok(_), Err(ProtocolError::Violated(found))) => panic!("{name}: proved, but\n{found}"),
                (Err(_), _) => failed += 1,
                (Ok(_), Err(_)) => {}
            }
        }
    }
    eprintln!("{held} pairs of mistakes hold, {failed} do not");
    assert!(held > 100 && failed > 500, "{held} {failed}");
}

/// Trip counts beyond those that stand for all change no verdict.
#[test]
fn longer_loops_find_nothing_new() {
    let (limits, more) = (Limits::default(), Limits { further: 5, ..Limits::default() });
    let mut compared = 0;
    for (name, system) in systems::all() {
        for mutant in mutants(&system) {
            let Ok(verified) = verify(&mutant.system, &limits) else { continue };
            match verify(&mutant.system, &more) {
                Ok(longer) => assert!(longer.proof().cases > verified.proof().cases),
                Err(ProtocolError::Undecided { .. }) => continue,
                Err(error) => panic!("{name}, {}: {error}", mutant.name),
            }
            compared += 1;
        }
    }
    eprintln!("{compared} compared");
    assert!(compared > 150, "{compared}");
}

/// Random runs of what is proved have no fault, in the longest cases, too; of what is not, some have.
#[test]
fn random_runs_agree() {
    let limits = Limits { states: 10_000, ..Limits::default() };
    let (mut held, mut met, mut missed) = (0, 0, 0);
    for (name, system) in systems::all().into_iter().chain([("backward", systems::backward())]) {
        for (seed, mutant) in mutants(&system).iter().enumerate() {
            let random = try_at_random(&mutant.system, &limits, seed as u64);
            match (verify(&mutant.system, &limits), random) {
                (Ok(_), Ok(_)) => held += 1,
                (Ok(_), Err(error)) => panic!("{name}, {}: {error}", mutant.name),
                (Err(_), Err(_)) => met += 1,
                (Err(_), Ok(_)) => missed += 1,
            }
        }
    }
    eprintln!("{held} hold, {met} faults met by chance, {missed} missed");
    assert!(held > 280 && met > 600, "{held} {met} {missed}");
}
