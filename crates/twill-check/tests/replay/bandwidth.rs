//! `bandwidth`

use crate::support::{accepted, plain, problem, rejected, schedule};
use serde_json::json;
use twill_check::Constraint::Bandwidth;
use twill_check::{Rejected, verify, verify_pipeline};
use twill_graph::{Bytes, Cycles, Pipeline, Problem};

/// Two operations that move 301 bytes in all.
fn moving(bytes_per_cycle: Option<u64>) -> Problem {
    let mut machine = plain();
    machine.shared_bytes_per_cycle = bytes_per_cycle.map(Bytes);
    problem(
        machine,
        json!([
            {"name": "a", "units": [{"unit": "tensor", "cycles": 2}], "execution": "asynchronous",
             "traffic": {"shared": 200, "flop": 8}},
            {"name": "still", "units": [{"unit": "fma", "cycles": 1}], "traffic": {"global": 1000}},
            {"name": "b", "units": [{"unit": "fma", "cycles": 2}], "traffic": {"shared": 101}}
        ]),
        json!([]),
    )
}

const PLACES: [(i64, usize); 3] = [(0, 0), (2, 0), (0, 1)];

#[test]
fn an_interval_has_time_for_the_bytes_of_an_iteration() {
    let problem = moving(Some(100));
    accepted(&problem, schedule(&problem, 4, &PLACES));
    let message = "an iteration moves 301 bytes through shared memory, and an interval has time for 300";
    rejected(&problem, schedule(&problem, 3, &PLACES), Bandwidth, &[message]);
    let Rejected { violations, .. } = verify(&problem, schedule(&problem, 3, &PLACES)).unwrap_err();
    assert_eq!(violations[0].operations(), ["a", "b"]);
}

#[test]
fn where_the_machine_names_no_limit_there_is_none() {
    let problem = moving(None);
    accepted(&problem, schedule(&problem, 3, &PLACES));
}

#[test]
fn pipelines_without_warps_move_the_same_bytes() {
    let problem = moving(Some(100));
    let pipeline = |interval| Pipeline {
        interval: Cycles(interval),
        length: Cycles(3),
        cycles: PLACES.iter().map(|&(cycle, _)| Cycles(cycle)).collect(),
    };
    assert!(verify_pipeline(&problem, pipeline(4)).is_ok());
    let Rejected { violations, .. } = verify_pipeline(&problem, pipeline(3)).unwrap_err();
    assert_eq!(violations.iter().map(|v| v.constraint()).collect::<Vec<_>>(), [Bandwidth]);
}
