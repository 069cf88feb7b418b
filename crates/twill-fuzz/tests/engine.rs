//! The exact engine against brute force, and its certificates, on random small problems: with `TWILL_LONG` on thousands, as where
//! its constraints have defects (`cargo xtask trust --only mutants`).

use std::collections::BTreeMap;
use twill_fuzz::certificate::{self, Changed};
use twill_fuzz::input;
use twill_fuzz::optimum::{self, Compared};

fn count() -> u64 {
    if std::env::var_os("TWILL_LONG").is_some() { 4000 } else { 150 }
}

#[test]
fn the_engine_and_brute_force_give_the_same_answers_of_every_kind() {
    let mut answers = BTreeMap::new();
    for seed in 0..count() {
        *answers.entry(optimum::check(&input(seed, 240))).or_insert(0) += 1;
    }
    let most = answers.get(&Compared::Objectives).copied().unwrap_or(0);
    assert!(most > count() / 2 && answers.contains_key(&Compared::Infeasible), "{answers:?}");
}

#[test]
fn certificates_hold_and_most_changed_ones_are_rejected() {
    let mut answers = BTreeMap::new();
    for seed in 0..count() {
        *answers.entry(certificate::check(&input(seed, 320))).or_insert(0) += 1;
    }
    assert!([Changed::Rejected, Changed::True].iter().all(|kind| answers.contains_key(kind)), "{answers:?}");
}
