//! Rows of docs/reports/paper-results.md that stand in no other test.

use crate::common::answers::{compute_groups, optimal, schedule, shape};
use crate::common::root;
use twill_graph::Status;

/// The published model variant of attention backward on Blackwell.
const AS_PUBLISHED: [&str; 4] = ["--machine", "bench/graphs/b200-as-published.toml", "--consumer-registers", "off"];

#[test]
fn attention_forward_without_ping_pong() {
    assert_eq!(shape(&optimal(&["attention-forward-hopper", "--compute-groups", "1"])), (3744, 3744, 1));
    assert_eq!(shape(&optimal(&["examples/attention_forward.ttir", "--machine", "b200"])), (1795, 3298, 2));
    assert_eq!(shape(&optimal(&["attention-forward-blackwell", "--compute-groups", "1"])), (4560, 5584, 2));
}

#[test]
fn attention_forward_with_measured_latencies_misses_the_bound() {
    let graph = "bench/graphs/attention-forward-blackwell-measured.json";
    let file = optimal(&[graph]);
    assert_eq!((shape(&file), compute_groups(&file)), ((2559, 5067, 2), 3));
    // The reference has 2400, in steps of 16 cycles.
    let file = optimal(&[&[graph, "--exclusive-issue", "off"], &AS_PUBLISHED[..]].concat());
    assert_eq!((shape(&file), compute_groups(&file)), ((2399, 6554, 3), 3));
}

#[test]
fn attention_backward_with_more_stages_than_the_paper_tries() {
    let graph = "attention-backward-blackwell";
    let two = [&[graph, "--compute-groups", "2"], &AS_PUBLISHED[..]].concat();
    assert_eq!(shape(&optimal(&two)), (2627, 8649, 4));
    let (code, file) = schedule(&[&two[..], &["--max-interval", "2560"]].concat());
    assert_eq!((code, file.status), (2, Status::Infeasible));
    assert_eq!(file.rejections[0].stages, None, "for every number of stages");
    let three = [graph, "--compute-groups", "3", "--registers-per-thread", "168"];
    assert_eq!(shape(&optimal(&[&three, &AS_PUBLISHED[..]].concat())), (2560, 8448, 4));
}

#[test]
fn what_two_groups_cannot_hand_off_they_cannot_schedule() {
    let two = ["attention-backward-blackwell", "--compute-groups", "2", "--cross-group-registers", "off"];
    let (code, file) = schedule(&[&two, &AS_PUBLISHED[..]].concat());
    assert_eq!((code, file.status), (2, Status::Infeasible));
}

#[test]
fn the_page_of_results_names_only_what_exists() {
    let page = std::fs::read_to_string(root().join("docs/reports/paper-results.md")).unwrap();
    let commands: Vec<&str> = page.lines().filter(|line| line.starts_with("twill schedule ")).collect();
    assert!(commands.len() > 40, "{}", commands.len());
    let files = commands.iter().flat_map(|c| c.split(' ')).filter(|word| word.contains('/') && word.contains('.'));
    for file in files {
        assert!(root().join(file).exists(), "{file}");
    }
}
