use crate::fixtures::{self, complete, hopper_forward, optimal, parse, toy, toy_attention};
use crate::ink::columns;
use crate::{TextOptions, render, text, words};
use insta::assert_snapshot;
use serde_json::json;
use twill_graph::{
    Bytes, Cycles, LowerBound, LowerBoundKind, ModuloSchedule, ObjectiveLevel, ObjectiveValue, Outcome, Phase, Problem,
    Rejection, RejectionReason, Report, Resources, Schedule,
};

fn plain(width: usize) -> TextOptions {
    TextOptions { width, color: false }
}

/// The report, after checking that it fits.
fn fitting(problem: &Problem, report: &Report<Schedule>, width: usize) -> String {
    let text = render(problem, report, plain(width));
    for line in text.lines() {
        assert!(columns(line) <= width.max(40), "{} > {width}: {line}", columns(line));
        assert_eq!(line, line.trim_end());
    }
    text
}

#[test]
fn attention_forward_on_hopper() {
    let (problem, schedule) = hopper_forward();
    let schedule = twill_check::verify(&problem, schedule).unwrap();
    let mut report = optimal(schedule, "tensor", &["S0", "O0", "S1", "O1"]);
    report.modulo =
        Some(ModuloSchedule { initiation_interval: Cycles(2048), length: Cycles(3072), length_proved: true });
    report.objectives = vec![
        ObjectiveValue { level: ObjectiveLevel::Stages, value: 2, proved: true },
        ObjectiveValue { level: ObjectiveLevel::ComputeGroups, value: 2, proved: true },
        ObjectiveValue { level: ObjectiveLevel::HandoffWords, value: 0, proved: true },
        ObjectiveValue { level: ObjectiveLevel::Channels, value: 4, proved: true },
        ObjectiveValue { level: ObjectiveLevel::Length, value: 3072, proved: false },
    ];
    report.phases = vec![
        Phase { name: "modulo".into(), seconds: 0.0021 },
        Phase { name: "joint".into(), seconds: 0.084 },
        Phase { name: "check".into(), seconds: 0.000_19 },
    ];
    assert_snapshot!(text(&problem, &report, plain(140)));
}

#[test]
fn shared_memory_stands_among_the_units_where_its_bandwidth_is_limited() {
    let (problem, schedule) = hopper_forward();
    let moving = problem.graph().map(|op| op.traffic.shared = Bytes(1000), |_| {}).unwrap();
    let with = |rate| Resources { shared_bytes_per_cycle: rate, ..problem.resources().clone() };
    let row = |rate| {
        let problem = fixtures::problem_of(moving.clone(), with(rate));
        let text = render(&problem, &optimal(schedule.clone(), "tensor", &["S0"]), plain(100));
        text.lines().find(|line| line.contains("smem")).map(|line| line.split_whitespace().take(5).collect::<String>())
    };
    // 20 operations move 20,000 bytes.
    let operations = moving.operations().len() as u64;
    assert_eq!((operations, row(None)), (20, None));
    assert_eq!(row(Some(Bytes(20))).as_deref(), Some("smem10002048148.8"));
    let bound = LowerBound {
        interval: Cycles(219),
        kind: LowerBoundKind::SharedBandwidth {
            bytes: Bytes(28_000),
            bytes_per_cycle: Bytes(128),
            operations: vec!["S0".into(), "S1".into()],
        },
    };
    let said = "I >= 219: shared memory moves 28,000 bytes an iteration at 128 a cycle, most for S0, S1";
    assert_eq!(words::bounded(&bound), said);
}

#[test]
fn attention_forward_on_blackwell() {
    let (problem, schedule) = fixtures::blackwell_forward();
    let schedule = twill_check::verify(&problem, schedule).unwrap();
    assert_snapshot!(text(&problem, &optimal(schedule, "xu", &["alpha0", "exp0", "alpha1", "exp1"]), plain(160)));
}

#[test]
fn toy_attention_in_two_cycles() {
    let (problem, schedule) = toy_attention();
    assert_snapshot!(fitting(&problem, &optimal(schedule, "tensor", &["S", "O"]), 80));
}

#[test]
fn blocking_gemms_on_two_groups() {
    let problem = toy("toy-attention-blocking");
    let schedule = complete(&problem, 2, &[0, 1, 3], &[1, 0, 1]);
    let mut report = optimal(schedule, "tensor", &["S", "O"]);
    report.lower_bound.kind = LowerBoundKind::Search { from: Cycles(1) };
    assert_snapshot!(fitting(&problem, &report, 72));
}

#[test]
fn narrow_pages() {
    let (problem, schedule) = hopper_forward();
    let report = optimal(schedule, "tensor", &["S0", "O0", "S1", "O1"]);
    assert_snapshot!(fitting(&problem, &report, 0));
    for width in 38..200 {
        fitting(&problem, &report, width);
    }
}

#[test]
fn colours_add_nothing_but_escapes() {
    let (problem, schedule) = hopper_forward();
    let report = optimal(schedule, "tensor", &["S0"]);
    let coloured = render(&problem, &report, TextOptions { width: 120, color: true });
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\x1b') {
        stripped.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    stripped.push_str(rest);
    assert!(coloured.contains("\x1b[1m"));
    assert_eq!(stripped, render(&problem, &report, plain(120)));
}

fn nothing(outcome: Outcome<Schedule>) -> Report<Schedule> {
    let operations = vec!["acc".to_owned(), "scale".into(), "acc".into()];
    Report {
        outcome,
        lower_bound: LowerBound {
            interval: Cycles(60),
            kind: LowerBoundKind::Recurrence { operations, delay: Cycles(120), distance: 2 },
        },
        modulo: None,
        rejections: vec![],
        objectives: vec![],
        wider_bound: None,
        simulated: None,
        phases: vec![Phase { name: "bounds".into(), seconds: 2.5 }],
    }
}

#[test]
fn infeasible() {
    let (problem, _) = hopper_forward();
    let reason = RejectionReason::Storage {
        memory: "shared memory".into(),
        required: 262_144,
        available: 232_448,
        values: vec!["ldK".into(), "ldV".into()],
    };
    assert_snapshot!(fitting(&problem, &nothing(Outcome::Infeasible { reason }), 80));
}

#[test]
fn unknown_with_many_rejections() {
    let (problem, _) = hopper_forward();
    let mut report = nothing(Outcome::Unknown { stopped_by: "the budget of 1000000 conflicts".into() });
    let mut reject = |interval, reason| {
        report.rejections.push(Rejection { interval: Cycles(interval), stages: (interval > 100).then_some(4), reason });
    };
    for interval in 60..100 {
        reject(interval, RejectionReason::Throughput { conflicts: 0 });
    }
    reject(100, RejectionReason::SelfConflict { operation: "exp0".into(), resource: "xu".into() });
    for interval in (101..2001).step_by(2) {
        reject(interval, RejectionReason::Search { conflicts: 17 });
    }
    assert_snapshot!(fitting(&problem, &report, 80));
}

#[test]
fn feasible_with_a_gap() {
    let (problem, schedule) = toy_attention();
    let slow = Schedule { interval: Cycles(3), ..schedule };
    let mut report = optimal(slow.clone(), "tensor", &["S", "O"]);
    report.outcome = Outcome::Feasible { schedule: slow };
    report.lower_bound.interval = Cycles(2);
    assert!(fitting(&problem, &report, 80).contains("I = 3 cycles (feasible: at least 2 is proved, gap 50.0 %)"));
}

fn single(cycles: i64, name: &str) -> Problem {
    let graph = json!({
        "format": "twill-graph", "version": 1, "name": "single",
        "operations": [{
            "name": name, "units": [{"unit": "xu", "cycles": cycles}], "result": {"registers": 128},
            "source": {"file": "/a/very/long/path/to/kernel.py", "line": 123}
        }],
        "dependences": [{"from": name, "to": name, "distance": 1}]
    });
    parse(&graph, fixtures::hopper())
}

#[test]
fn extreme_sizes_and_names() {
    let long = "an operation whose name is far longer than any page is wide, and goes on and on";
    for cycles in [1, 2, 3, 7, 1_000_000_000, 1 << 40] {
        for name in ["x", long, "寬寬寬寬寬", "e\u{301}", "a b\u{200b}c"] {
            let problem = single(cycles, name);
            for start in [0, cycles / 2, 3 * cycles] {
                let schedule = complete(&problem, cycles, &[start], &[1]);
                let report = optimal(schedule, "xu", &[name]);
                for width in [40, 57, 80, 300] {
                    fitting(&problem, &report, width);
                }
            }
        }
    }
    let problem = single(1_000_000_000, long);
    assert_snapshot!(fitting(&problem, &optimal(complete(&problem, 1_000_000_000, &[7], &[1]), "xu", &[long]), 60));
}

#[test]
fn many_groups_units_and_stages() {
    let units: Vec<_> = (0..20).map(|u| json!({"name": format!("unit{u}"), "capacity": u % 3 + 1})).collect();
    let operations: Vec<_> = (0..60)
        .map(|k| {
            json!({
                "name": format!("operation {k}"),
                "units": [{"unit": format!("unit{}", k % 20), "cycles": k % 5 + 1}],
                "execution": if k % 2 == 0 { "asynchronous" } else { "synchronous" },
                "sub_tile": k % 4
            })
        })
        .collect();
    let graph = json!({"format": "twill-graph", "version": 1, "name": "many", "operations": operations});
    let mut resources = fixtures::hopper();
    resources.units = units.into_iter().map(|u| serde_json::from_value(u).unwrap()).collect();
    resources.compute_groups.maximum = 16;
    let problem = parse(&graph, resources);
    let cycles: Vec<i64> = (0..60).map(|k| k * 37).collect();
    let groups: Vec<usize> = (0..60).map(|k| 1 + k % 16).collect();
    for interval in [1, 2, 3, 100, 2300] {
        let schedule = complete(&problem, interval, &cycles, &groups);
        for width in [40, 80, 200] {
            fitting(&problem, &optimal(schedule.clone(), "unit0", &["operation 0"]), width);
        }
    }
}
