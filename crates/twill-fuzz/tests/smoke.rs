//! Every target on a few fixed inputs, so that each is known to work and some are known to find what they look for.
//! For longer: `cargo xtask trust`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use twill_fuzz::{clause, input, replay, target};

fn run(name: &str, count: u64) {
    let target = target(name).unwrap();
    (0..count).for_each(|seed| target.run(&input(seed, target.bytes)));
    // libFuzzer begins with nothing.
    target.run(&[]);
}

#[test]
fn kernels_are_read() {
    run("ttir", 150);
}

#[test]
fn graphs_schedules_and_certificates_are_read() {
    run("graph_file", 300);
}

#[test]
fn machines_are_read() {
    run("machine_file", 300);
}

#[test]
fn benchmarks_are_read() {
    run("benchmark_file", 2000);
}

#[test]
fn large_graphs_are_scheduled_legally() {
    run("gaus", 100);
}

#[test]
fn warp_programs_compute_what_their_kernels_say() {
    run("warp_programs", 4);
}

#[test]
fn clauses_that_are_accepted_are_true() {
    let judged = (0..150).map(|seed| clause::check(&input(seed, 480)));
    let (accepted, rejected) = judged.fold((0, 0), |(a, r), one| (a + one.accepted, r + one.rejected));
    assert!(accepted > 100 && rejected > 100, "{accepted} {rejected}");
}

#[test]
fn every_constraint_is_seen_broken() {
    let (mut whole, mut broken, mut holding) = (0, BTreeMap::new(), 0);
    for seed in 0..200 {
        let replayed = replay::check(&input(seed, 320));
        whole += replayed.whole;
        holding += replayed.holding;
        for constraint in replayed.broken.into_iter().flatten() {
            *broken.entry(constraint).or_insert(0) += 1;
        }
    }
    assert!(whole > 100 && holding > 100, "{whole} {holding}");
    assert!(broken.len() == 13, "{broken:?}");
}
