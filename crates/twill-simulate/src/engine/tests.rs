//! The findings of microbenchmarks, in small.

use super::*;

const MMA: Step = Step::Mma { cycles: 512.0, instructions: 8.0, shared_bytes: 0.0 };

/// Runs groups that share no `mbarrier`.
fn run(lists: Vec<Vec<Step>>, participants: Vec<usize>) -> (f64, Vec<GroupTime>, Vec<(f64, f64)>) {
    let timing = Timing { threads_overlap: 1.0, ..Timing::hopper() };
    let mut engine = Engine::new(&timing, lists, Vec::new(), participants);
    assert_eq!(engine.run(), Ok(()));
    let times = engine.mmas.iter().map(|m| (m.began.unwrap_or(-1.0), m.ended.unwrap_or(-1.0)));
    (engine.now, engine.groups.iter().map(|g| g.time).collect(), times.collect())
}

#[test]
fn the_tensor_core_takes_mmas_in_their_order() {
    // As measured: a group that comes while another's first MMA runs is served after its second.
    let two = vec![MMA, MMA, Step::WaitMmas(0)];
    let late = [vec![Step::Delay(316.0)], two.clone()].concat();
    let (end, times, served) = run(vec![two, late], Vec::new());
    let began: Vec<f64> = served.iter().map(|s| s.0).collect();
    // Numbers are assigned in the order of issue: the second group's first MMA is the third.
    assert_eq!(began, [55.0, 567.0, 1079.0, 1591.0]);
    assert_eq!(end, 1591.0 + 512.0 + 56.0);
    // It stands at its first MMA until the tensor core takes it.
    assert!(times[1].starting > 1079.0 - 316.0, "{times:?}");
}

#[test]
fn threads_are_slower_while_another_group_waits_to_issue_an_mma() {
    let work = Work { other: 1000.0, ..Work::default() };
    let alone = run(vec![vec![Step::Compute(work)]], Vec::new()).0;
    assert_eq!(alone, 1000.0);
    let overlap = vec![MMA, MMA, MMA, MMA];
    let (_, times, _) = run(vec![vec![Step::Compute(work)], overlap], Vec::new());
    assert!(times[0].computing > 1400.0, "{times:?}");
}

#[test]
fn groups_share_the_special_function_unit() {
    let work = Work { special: 576.0, special_unit: 525.0, ..Work::default() };
    let two = run(vec![vec![Step::Compute(work)]; 2], Vec::new()).0;
    assert!((two - 1050.0).abs() < 1.0, "{two}");
    let max = Work { other: 576.0, ..Work::default() };
    assert_eq!(run(vec![vec![Step::Compute(work)], vec![Step::Compute(max)]], Vec::new()).0, 576.0);
}

#[test]
fn named_barriers_wait_for_the_last() {
    let first = vec![Step::Delay(100.0), Step::NamedBarrierArrive(0)];
    let second = vec![Step::NamedBarrierSync(0)];
    let (end, times, _) = run(vec![first, second], vec![2]);
    assert_eq!(end, 100.0 + Timing::hopper().named_barrier);
    assert_eq!(times[1].named, 100.0);
}

#[test]
fn what_nobody_completes_is_a_deadlock() {
    let timing = Timing::hopper();
    let mut engine = Engine::new(&timing, vec![vec![Step::Wait { barrier: 0, target: 1 }]], vec![1], Vec::new());
    assert_eq!(engine.run(), Err(Stuck::Deadlock));
}

#[test]
fn long_times_end_too() {
    // Where rounding is more than what counts as the same time on short ones.
    let work = Work { other: 1e15 / 3.0, ..Work::default() };
    let long = Step::Mma { cycles: 1e15 / 7.0, instructions: 8.0, shared_bytes: 0.0 };
    let (end, _, _) = run(vec![vec![Step::Compute(work)], vec![long.clone(), long, Step::WaitMmas(0)]], Vec::new());
    assert!(end >= 1e15 / 3.0, "{end}");
}
