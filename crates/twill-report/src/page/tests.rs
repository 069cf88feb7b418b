mod size;

use super::*;
use crate::fixtures::{blackwell_forward, hopper, hopper_forward, optimal, parse, toy_attention};
use crate::liveness::{MemorySpace, peak};
use crate::{TextOptions, fixtures};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use twill_check::Verified;
use twill_graph::{
    Change, Conflict, Cycles, ExplainedRejection, Explanation, Family, GroupId, KnownBy, LowerBound, LowerBoundKind,
    Member, Outcome, Problem, Rejection, RejectionReason, Report, Schedule, Status, Storage, WhatIf,
};

fn page_of(problem: &Problem, report: &Report<Verified<Schedule>>, explanation: Option<&Explanation>) -> Page {
    let own = LoopReport::new(problem, report, None, explanation);
    Page::of_loops(problem.graph().name(), vec![(problem, report, own)])
}

fn verified((problem, schedule): (Problem, Schedule)) -> (Problem, Report<Verified<Schedule>>) {
    let schedule = twill_check::verify(&problem, schedule).unwrap();
    (problem, optimal(schedule, "tensor", &["S0"]))
}

/// The value of a step function.
fn at(steps: &[(i64, u64)], cycle: i64) -> u64 {
    assert_eq!(steps[0].0, 0);
    assert!(steps.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 != two[1].1), "{steps:?}");
    steps.iter().rev().find(|(from, _)| *from <= cycle).unwrap().1
}

/// The live amount in a cycle deep in the steady state, counted iteration by iteration as docs/model.md defines lives.
fn counted(problem: &Problem, schedule: &Schedule, space: MemorySpace, cycle: i64) -> u64 {
    let graph = problem.graph();
    let around = 8;
    let now = cycle;
    let mut sum = 0;
    for iteration in -around..=around {
        let issue = |op| schedule.placement(op).cycle.0 + iteration * schedule.interval.0;
        let read = |d: &twill_graph::Dependence| issue(d.to) + i64::from(d.distance) * schedule.interval.0;
        let is_live = |start: i64, end: Option<i64>| end.is_some_and(|end| start <= now && now < end);
        for op in graph.op_ids() {
            let operation = graph.operation(op);
            let home = schedule.placement(op).group;
            let last = graph.uses(op).map(|d| read(d) + d.hold.0).max();
            let foreign = || graph.uses(op).filter(|d| schedule.placement(d.to).group != home);
            sum += match (operation.storage, space) {
                (Storage::Registers(words), MemorySpace::Registers(group)) => {
                    let own = home == group && is_live(issue(op), last);
                    let operands = foreign().filter(|d| {
                        let consumer = graph.operation(d.to);
                        schedule.placement(d.to).group == group
                            && !consumer.variable_latency
                            && is_live(issue(d.to), Some(issue(d.to) + consumer.span().0))
                    });
                    (u64::from(own) + operands.count() as u64) * words.0
                }
                (Storage::Registers(words), MemorySpace::Shared) => {
                    let over = foreign().map(|d| read(d) + graph.operation(d.to).completion().0).max();
                    u64::from(is_live(issue(op), over)) * 4 * words.0
                }
                (Storage::Shared(bytes), MemorySpace::Shared) if !operation.streaming => {
                    u64::from(is_live(issue(op), last)) * bytes.0
                }
                (Storage::Tensor(columns), MemorySpace::Tensor) => u64::from(is_live(issue(op), last)) * columns.0,
                _ => 0,
            };
        }
    }
    sum
}

fn check_storage(fixture: (Problem, Schedule)) {
    let (problem, report) = verified(fixture);
    let schedule: &Schedule = report.outcome.schedule().unwrap();
    let page = page_of(&problem, &report, None);
    let own = &page.loops[0];
    assert_eq!(own.registers.len(), schedule.groups.len());
    for registers in &own.registers {
        let group = schedule.groups.iter().find(|g| g.id.index() == registers.group).unwrap();
        let threads = 32 * u64::from(group.warps);
        let space = MemorySpace::Registers(GroupId::new(registers.group));
        for cycle in 0..schedule.interval.0 {
            let words = counted(&problem, schedule, space, cycle);
            assert_eq!(at(&registers.live, cycle), words.div_ceil(threads), "group {} at {cycle}", registers.group);
        }
        let most = registers.live.iter().map(|(_, words)| *words).max().unwrap();
        assert_eq!(most, peak(&problem, schedule, space).div_ceil(threads));
        assert!(most + u64::from(registers.reserve) <= u64::from(registers.granted) || registers.reserve == 0);
        assert_eq!(registers.granted, group.registers_per_thread);
    }
    for memory in &own.memories {
        let space = match memory.memory {
            MemoryKind::SharedMemory => MemorySpace::Shared,
            MemoryKind::TensorMemory => MemorySpace::Tensor,
        };
        let rings: u64 = memory.buffers.iter().filter(|b| b.ring).map(|b| b.amount * b.slots).sum();
        for cycle in 0..schedule.interval.0 {
            let live = counted(&problem, schedule, space, cycle);
            assert_eq!(at(&memory.live, cycle), memory.reserved + rings + live, "{:?} at {cycle}", memory.memory);
            // The buffers say the same.
            let own = memory.buffers.iter().filter(|b| !b.ring).map(|b| b.amount * copies(b, cycle, schedule.interval));
            assert_eq!(own.sum::<u64>(), live);
        }
        assert!(memory.live.iter().all(|(_, amount)| *amount <= memory.capacity));
        for buffer in &memory.buffers {
            let most = (0..schedule.interval.0).map(|cycle| copies(buffer, cycle, schedule.interval)).max().unwrap();
            assert_eq!(most, buffer.slots, "{buffer:?}");
        }
    }
    let rings = own.memories.iter().flat_map(|m| &m.buffers).filter(|b| b.ring).count();
    assert_eq!(rings, schedule.rings.len());
}

/// Copies of a buffer that are taken in a cycle of the steady state.
fn copies(buffer: &Buffer, cycle: i64, interval: Cycles) -> u64 {
    let taken = |k: &i64| buffer.start + k * interval.0 <= cycle && cycle < buffer.end + k * interval.0;
    (-8..=8).filter(taken).count() as u64
}

#[test]
fn storage_is_what_a_count_of_every_cycle_finds() {
    check_storage(hopper_forward());
    check_storage(blackwell_forward());
    check_storage(toy_attention());
}

#[test]
fn a_page_of_attention_forward() {
    let (problem, report) = verified(hopper_forward());
    let page = page_of(&problem, &report, None);
    assert_eq!(
        page.headline,
        "I = 2048 cycles (optimal in the model of h100: proved), N = 2 overlapped iterations, L = 3072 cycles, 3 warp groups in use."
    );
    assert_eq!(page.loops[0].bound, "I >= 2048: unit tensor is busy 2048 cycles an iteration: S0");
    assert_eq!((page.machine.as_deref(), page.status()), (Some("h100"), Some(Status::Optimal)));
    assert_eq!(page.text, crate::text(&problem, &report, TextOptions::default()));
    let data: Value = serde_json::from_str(&page.to_json()).unwrap();
    assert_eq!((&data["format"], &data["version"]), (&json!("twill-report"), &json!(1)));
    assert_eq!(data["loops"][0]["schedule"]["operations"].as_array().unwrap().len(), 20);
    for absent in ["kernel", "dataflow", "code", "trace"] {
        assert!(data[absent].is_null() && data.get(absent).is_some(), "{absent}");
    }
    assert!(data.get("text").is_none());
}

/// A report on nothing found.
fn nothing(problem: &Problem, outcome: Outcome<Verified<Schedule>>) -> Page {
    let lower_bound = LowerBound { interval: Cycles(3), kind: LowerBoundKind::Search { from: Cycles(1) } };
    let rejection = |interval| Rejection {
        interval: Cycles(interval),
        stages: None,
        reason: RejectionReason::Search { conflicts: 2 },
    };
    let rejections = vec![rejection(1), rejection(2)];
    let report = Report {
        outcome,
        lower_bound,
        modulo: None,
        rejections,
        objectives: vec![],
        wider_bound: None,
        simulated: None,
        phases: vec![],
    };
    page_of(problem, &report, None)
}

#[test]
fn pages_of_what_was_not_found() {
    let (problem, _) = toy_attention();
    let infeasible = nothing(
        &problem,
        Outcome::Infeasible { reason: RejectionReason::Exhausted { largest: Cycles(2), all: false } },
    );
    assert!(infeasible.headline.starts_with("No schedule exists with I <= 2 (infeasible: proved). Reason: every"));
    let excluded =
        Excluded { intervals: "I = 1 to 2 (2)".into(), why: "joint search exhausted, after 4 conflicts".into() };
    assert_eq!(infeasible.loops[0].rejected, [excluded]);
    assert!(infeasible.loops[0].registers.is_empty() && infeasible.loops[0].memories.is_empty());
    let unknown = nothing(&problem, Outcome::Unknown { stopped_by: "the time limit".into() });
    assert_eq!(unknown.headline, "No schedule was found (unknown). The search was stopped by: the time limit.");
    assert_eq!(unknown.status(), Some(Status::Unknown));
}

#[test]
fn reasons_and_changes_are_those_of_the_text() {
    let (problem, report) = verified(hopper_forward());
    let member = |family| Member {
        family,
        unit: None,
        needed: true,
        suffices: Some(true),
        demands: vec![],
        breaches: vec![],
        witness: None,
    };
    let explained = |interval, members| ExplainedRejection {
        rejection: Rejection {
            interval: Cycles(interval),
            stages: None,
            reason: RejectionReason::Search { conflicts: 1 },
        },
        bound: None,
        conflict: Conflict { minimal: true, members },
        smaller_too: true,
    };
    let what_if = |change, status, interval: Option<i64>, percent, known_by| WhatIf {
        change,
        status,
        initiation_interval: interval.map(Cycles),
        percent,
        lower_bound: report.lower_bound.clone(),
        conflict: vec![],
        known_by,
    };
    let explanation = Explanation {
        status: Status::Optimal,
        infeasible: None,
        interval: Some(Cycles(2048)),
        lower_bound: report.lower_bound.clone(),
        rejections: vec![
            explained(2000, vec![member(Family::Registers)]),
            explained(2001, vec![member(Family::Registers)]),
            explained(2047, vec![member(Family::Dependence), member(Family::Registers)]),
        ],
        what_ifs: vec![
            what_if(Change::FreeHandoffs, Status::Optimal, Some(2048), Some(0.0), KnownBy::Conflict),
            what_if(Change::ComputeGroups { groups: 1 }, Status::Infeasible, None, None, KnownBy::Search),
            what_if(Change::SubTiles { sub_tiles: 1 }, Status::Feasible, Some(2100), Some(2.5), KnownBy::Search),
            what_if(Change::UnitTwiceAsFast { unit: "xu".into() }, Status::Unknown, None, None, KnownBy::Search),
        ],
    };
    let page = page_of(&problem, &report, Some(&explanation));
    let own = &page.loops[0];
    assert_eq!(own.rejected.len(), 2);
    assert_eq!(own.rejected[0].intervals, "2 of I = 2000 to 2001");
    assert_eq!(own.rejected[0].why, "registers");
    assert_eq!(own.rejected[1].intervals, "I = 2047");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(&crate::explanation(&problem, &explanation, TextOptions::default()));
    for excluded in &own.rejected {
        for line in excluded.why.lines() {
            assert!(text.contains(&words(line)), "{line}");
        }
    }
    let answers: Vec<(&str, &str)> = own.what_ifs.iter().map(|w| (w.change.as_str(), w.answer.as_str())).collect();
    assert_eq!(
        answers,
        [
            ("handoffs take no time", "I = 2048, no change: takes no part in the conflict"),
            ("1 compute group", "no schedule exists"),
            ("1 sub-tile", "I = 2048..2100, <= +2.5 %: not settled"),
            ("xu twice as fast", "I >= 2048: not settled"),
        ]
    );
    assert_eq!(own.explanation.as_ref().unwrap().rejections.len(), 3);
}

const HOSTILE: &str = "</script><script>alert(1)</script><!--\"'&amp;</title></noscript></pre>\u{2028}\\";

fn hostile() -> Page {
    let graph = json!({
        "format": "twill-graph", "version": 1, "name": HOSTILE,
        "operations": [{ "name": HOSTILE, "units": [{ "unit": "tensor", "cycles": 4 }], "kind": HOSTILE }]
    });
    let problem = parse(&graph, hopper());
    let schedule = fixtures::complete(&problem, 4, &[0], &[0]);
    let groups: Vec<usize> = problem.group_ids().map(GroupId::index).collect();
    let schedule = groups
        .iter()
        .find_map(|g| twill_check::verify(&problem, fixtures::complete(&problem, 4, &[0], &[*g])).ok())
        .unwrap_or_else(|| panic!("{schedule:?}"));
    let report = optimal(schedule, HOSTILE, &[HOSTILE]);
    page_of(&problem, &report, None)
}

/// The text between two marks.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let from = text.find(begin).unwrap() + begin.len();
    &text[from..from + text[from..].find(end).unwrap()]
}

/// The data in a file.
fn data_in(file: &str) -> Value {
    let packed = between(file, "<script type=\"application/zlib\" id=\"data\">", "</script");
    let json = miniz_oxide::inflate::decompress_to_vec_zlib(&STANDARD.decode(packed).unwrap()).unwrap();
    let data: Value = serde_json::from_slice(&json).unwrap();
    restored(&data["page"], &data["strings"])
}

/// With the texts of a list in the places of their numbers.
fn restored(value: &Value, strings: &Value) -> Value {
    match value {
        Value::String(number) => strings[number.parse::<usize>().unwrap()].clone(),
        Value::Array(all) => all.iter().map(|one| restored(one, strings)).collect(),
        Value::Object(fields) => fields.iter().map(|(name, one)| (name.clone(), restored(one, strings))).collect(),
        other => other.clone(),
    }
}

fn unescaped(text: &str) -> String {
    let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    pairs.iter().fold(text.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain))
}

#[test]
fn names_that_look_like_markup_are_text() {
    let page = hostile();
    let file = html(&page);
    let read = data_in(&file);
    assert_eq!(read, serde_json::from_str::<Value>(&page.to_json()).unwrap());
    assert_eq!(read["loops"][0]["schedule"]["operations"][0]["name"], HOSTILE);
    assert_eq!(unescaped(between(&file, "<title>", "</title")), format!("{HOSTILE} on h100 - Twill"));
    let fallback = between(&file, "<noscript>", "</noscript");
    assert_eq!(unescaped(between(fallback, "<h1>", "</h1")), HOSTILE);
    assert_eq!(unescaped(between(fallback, "<pre>\n", "</pre")), page.text);
    assert_eq!(unescaped(between(fallback, "<p>", "</p")), page.headline);
    assert!(!file.contains("<script>alert"));
}

#[test]
fn only_the_bundle_may_run() {
    let file = html(&hostile());
    let policy = between(&file, "<meta http-equiv=\"Content-Security-Policy\" content=\"", "\">");
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    let script = &file[file.rfind("\n<script>").unwrap() + 9..file.rfind("</script>").unwrap()];
    let style = between(&file, "<style>", "</style");
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    assert!(policy.contains(&format!("script-src 'sha256-{}';", hash(script))), "{policy}");
    assert!(policy.contains(&format!("style-src 'sha256-{}';", hash(style))), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    // Text that would end the elements that hold the bundle, or change how they are read.
    let (script, style) = (script.to_lowercase(), style.to_lowercase());
    assert!(!script.contains("</script") && !script.contains("<!--") && !style.contains("</style"));
    assert!(is_page(&file) && !is_page("<!doctype html><title>mine</title>"));
    assert!(file.len() < 1_000_000);
    assert!(file.starts_with("<!doctype html>\n<html lang=\"en\">"));
}
