//! Timestamps of traced kernels: where they stand, and that nothing else knows of them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

#[allow(dead_code, reason = "each file of tests needs a part of it")]
mod common;

use common::Scheduled;
use twill_backend::cuda;
use twill_backend::package::{self, Signature};
use twill_backend::{Header, gluon};
use twill_codegen::ir::{Detail, Moment};
use twill_codegen::{Checked, check};
use twill_triton::Options;

fn checked(example: &str) -> Checked {
    let scheduled = Scheduled::new(example, "h200", &Options::default());
    check(scheduled.program(true, 2, true).unwrap()).unwrap()
}

fn header() -> Header {
    Header { machine: "h200".into(), architecture: "sm_90a".into(), ..Header::default() }
}

fn source(kernel: &Checked) -> String {
    cuda::source(kernel, &header()).unwrap()
}

/// The code of the first steady state of a group: calls without their arguments, timestamps with theirs.
fn steady(source: &str, group: &str) -> Vec<String> {
    let group = &source[source.find(&format!("void {group}(")).unwrap()..];
    let body = &group[group.find("// steady state").unwrap()..];
    let body = &body[..body.find("\n      }\n").unwrap()];
    let word = |line: &str| {
        let line = line.trim().split("  //").next().unwrap_or_default().to_owned();
        if line.starts_with("record_") { line } else { line.split(['(', '<']).next().unwrap_or_default().to_owned() }
    };
    body.lines().skip(1).map(word).collect()
}

#[test]
fn each_mma_is_marked_where_it_starts_and_behind_its_wait() {
    let traced = checked("attention_forward").traced(16, Detail::Operations);
    let group = traced.groups.iter().find(|g| g.name == "compute_1").unwrap().id;
    let code = steady(&source(&traced), "compute_1");
    let at = |operation: &str, moment: Moment| {
        let mut timestamps = traced.trace.as_ref().unwrap().timestamps.iter();
        let number =
            timestamps.position(|m| (m.operation.as_str(), m.group, m.moment) == (operation, group, moment)).unwrap();
        let has = |line: &String| {
            let numbers = line.strip_prefix("record_.at<").and_then(|rest| rest.split('>').next()).unwrap_or_default();
            numbers.split(", ").any(|n| n == number.to_string())
        };
        code.iter().position(has).unwrap_or_else(|| panic!("no {number} in {code:#?}"))
    };
    let line = |at: usize| code[at].as_str();
    let (issue, completed) = (at("qk.0", Moment::Issue), at("qk.0", Moment::Completed));
    assert_eq!(line(issue + 1), "wgmma", "{code:#?}");
    assert_eq!((line(completed - 1), line(completed + 1)), ("operand_fence", "mbarrier_arrive"), "{code:#?}");
    assert!(at("k", Moment::Completed) <= issue && issue < completed, "{code:#?}");
    // One operation ends where the next begins.
    assert_eq!(at("new_max.reduce_max.0", Moment::End), at("new_max.multiply.0", Moment::Issue), "{code:#?}");
    assert_eq!(
        line(at("new_max.reduce_max.0", Moment::End) - 1),
        "new_max_reduce_max_0 = quad_all_reduce",
        "{code:#?}"
    );
}

#[test]
fn segments_have_their_timestamps_at_their_ends() {
    let kernel = checked("attention_forward");
    let inner = |detail: Detail| {
        let code = steady(&source(&kernel.traced(16, detail)), "compute_1");
        // Timestamps in front of which, and after which, tiles are computed.
        let computes = |line: &String| {
            line.ends_with("each") || line.ends_with("quad_all_reduce") || line.ends_with("row_partials")
        };
        code.windows(3).filter(|w| computes(&w[0]) && w[1].starts_with("record_") && computes(&w[2])).count()
    };
    assert!(inner(Detail::Operations) > 4);
    assert_eq!(inner(Detail::Segments), 0);
    // The same is recorded.
    let timestamps = |detail: Detail| {
        let source = source(&kernel.traced(16, detail));
        let body = &source[source.find("void compute_1(").unwrap()..];
        let mut numbers: Vec<String> = body
            .match_indices("record_.at<")
            .map(|(at, m)| body[at + m.len()..].split('>').next().unwrap().to_owned())
            .collect();
        numbers = numbers.iter().flat_map(|n| n.split(", ")).map(str::to_owned).collect();
        numbers.sort();
        numbers
    };
    assert_eq!(timestamps(Detail::Operations), timestamps(Detail::Segments));
}

#[test]
fn one_thread_of_each_group_of_the_first_cta_records_its_first_tile() {
    let source = source(&checked("attention_forward").traced(5, Detail::Operations));
    assert!(source.contains("recorder_of_<58, 5>"), "{source}");
    let here = "{u64(trace_buffer), blockIdx.x == 0 && tile_at_ == 0";
    assert_eq!(source.matches(&format!("{here} && thread_of<4>() == 0}};")).count(), 2);
    // Who only loads is one thread, whichever that is.
    assert_eq!(source.matches(&format!("{here}}};")).count(), 1);
    assert!(source.contains("int length, void *trace_buffer, int programs_x"));
}

#[test]
fn nothing_of_it_is_in_a_kernel_that_is_not_traced() {
    for example in ["attention_forward", "gemm_tma", "swiglu"] {
        let kernel = checked(example);
        assert!(!kernel.timestamps().is_empty());
        let (in_cuda, gluon) = (source(&kernel), gluon::source(&kernel, &header()));
        for text in [in_cuda, gluon, Signature::new(&kernel, &header()).to_json(), package::test(&kernel)] {
            assert!(!text.contains("record") && !text.contains("trace"), "{text}");
        }
    }
}

#[test]
fn the_signature_says_what_is_recorded_where() {
    let traced = checked("gemm_tma").traced(16, Detail::Segments);
    let json: serde_json::Value =
        serde_json::from_str(&Signature::new(&traced, &header()).in_cuda(&cuda::launch(&traced).unwrap()).to_json())
            .unwrap();
    let trace = &json["trace"];
    let timestamps = trace["timestamps"].as_array().unwrap();
    assert_eq!((&trace["parameter"], &trace["detail"]), (&"trace_buffer".into(), &"segments".into()));
    assert_eq!(trace["bytes"], 8 * 16 * timestamps.len());
    assert!(timestamps.iter().enumerate().all(|(k, timestamp)| timestamp["id"] == k));
    // Each operation begins once, and is seen to end.
    for operation in ["a.0", "a.1", "b", "acc.0", "acc.1"] {
        let whats: Vec<&str> =
            timestamps.iter().filter(|m| m["operation"] == operation).map(|m| m["what"].as_str().unwrap()).collect();
        assert_eq!(whats.iter().filter(|w| **w == "issue").count(), 1, "{operation}: {whats:?}");
        assert!(whats.contains(&"completed"), "{operation}: {whats:?}");
    }
    let last = json["parameters"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["name"], &last["kind"], &last["element"]),
        (&"trace_buffer".into(), &"pointer".into(), &"i64".into())
    );
    assert_eq!(traced.source_parameters().len() + 1, traced.parameters.len());
}

#[test]
fn iterations_alone_are_a_mark_for_each_group() {
    let traced = checked("attention_forward").traced(16, Detail::Iterations);
    let timestamps: Vec<(usize, String)> =
        traced.trace.iter().flat_map(|t| &t.timestamps).map(|m| (m.group.index(), m.operation.clone())).collect();
    assert_eq!(timestamps, [(1, "qk.0".into()), (2, "qk.1".into()), (0, "k".into())]);
}
