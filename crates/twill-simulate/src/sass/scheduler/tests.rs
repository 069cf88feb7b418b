use super::*;

fn one(work: Work) -> Instruction {
    Instruction { work, stall: 1, writes: None, reads: None, waits: 0 }
}

/// N MMAs of 128 columns, from registers, that are waited for.
fn mmas(count: usize) -> Vec<Instruction> {
    let each = |k| one(Work::Mma { columns: 128, from_registers: true, commits: k + 1 == count });
    (0..count).map(each).chain([one(Work::WaitMmas(0))]).collect()
}

fn many(work: Work, count: usize) -> Vec<Instruction> {
    vec![one(work); count]
}

fn cycles(groups: &[Vec<Instruction>]) -> f64 {
    cycles_of_loop(groups, &Rates::hopper()).unwrap()
}

#[test]
fn an_mma_alone_takes_its_time_and_the_ways_to_the_tensor_core_and_back() {
    let rates = Rates::hopper();
    let wanted = 8.0 * 64.0 + rates.start + rates.seen;
    assert!((cycles(&[mmas(8)]) - wanted).abs() < 5.0, "{} {wanted}", cycles(&[mmas(8)]));
}

#[test]
fn two_groups_keep_the_tensor_core_busy() {
    assert!((cycles(&[mmas(8), mmas(8)]) - 1024.0).abs() < 5.0);
    // Work between MMAs is hidden by those of the other group, but for what it costs them.
    let both = [mmas(8), many(Work::Fma, 100)].concat();
    let hidden = cycles(&[both.clone(), both]);
    assert!((1024.0..1024.0 * 1.25).contains(&hidden), "{hidden}");
}

#[test]
fn exponentials_between_mmas_hide_and_after_them_do_not() {
    let special = many(Work::Special, 64);
    let between = [&mmas(8)[..8], &special, &[one(Work::WaitMmas(0))]].concat();
    let after = [mmas(8), special].concat();
    assert!(cycles(&[between]) < 620.0);
    assert!(cycles(&[after]) > 850.0);
}

#[test]
fn operands_in_shared_memory_are_read_through_it() {
    // 64 columns and 64 rows of 32 bytes take longer to read than the MMA takes.
    let small = |from_registers| {
        let mma = |k| one(Work::Mma { columns: 64, from_registers, commits: k == 31 });
        (0..32).map(mma).collect::<Vec<_>>()
    };
    assert!(cycles(&[small(false)]) > 1.1 * cycles(&[small(true)]));
}

#[test]
fn a_result_that_is_waited_for_takes_its_latency() {
    let produce = Instruction { writes: Some(0), ..one(Work::Exchange) };
    let consume = Instruction { waits: 1, ..one(Work::Fma) };
    let chain = [produce, consume].repeat(10);
    assert!(cycles(&[chain]) > 10.0 * Rates::hopper().exchange_latency);
}

#[test]
fn values_without_a_register_go_through_a_narrow_way() {
    let spilled = |is_load| many(Work::Local { words: 1, is_load }, 64);
    let last = Instruction { writes: Some(0), ..one(Work::Local { words: 1, is_load: true }) };
    let used = Instruction { waits: 1, ..one(Work::Fma) };
    let found = cycles(&[[spilled(false), spilled(true), vec![last, used]].concat()]);
    let rates = Rates::hopper();
    let wanted = 129.0 * 512.0 / rates.local_bytes + rates.local_latency;
    assert!((found - wanted).abs() < 0.02 * wanted, "{found} {wanted}");
}

#[test]
fn an_mma_that_is_long_in_coming_lets_others_in() {
    let part = |commits| one(Work::Mma { columns: 128, from_registers: true, commits });
    let open = [vec![part(false)], many(Work::Fma, 1000), vec![part(true), one(Work::WaitMmas(0))]].concat();
    let other = mmas(8);
    let with = |hold| cycles_of_loop(&[open.clone(), other.clone()], &Rates { hold, ..Rates::hopper() }).unwrap();
    // The other group cannot use a unit that a group keeps while it computes.
    assert!(with(Rates::hopper().hold) < 0.95 * with(1e9), "{} {}", with(Rates::hopper().hold), with(1e9));
}

#[test]
fn the_same_loops_take_the_same_cycles() {
    let wait = [mmas(4), vec![one(Work::Wait)], many(Work::Special, 30)].concat();
    let twice = [(); 2].map(|()| cycles(&[wait.clone(), wait.clone()]).to_bits());
    assert_eq!(twice[0], twice[1]);
}

#[test]
fn groups_alternate_at_named_barriers() {
    let slot = |own, other| {
        let named_barrier = |barrier, waits| one(Work::NamedBarrier { barrier, groups: 2, waits });
        [vec![named_barrier(own, true)], mmas(4), vec![named_barrier(other, false)], many(Work::Fma, 10)].concat()
    };
    let both = cycles(&[slot(1, 2), slot(2, 1)]);
    assert!(both >= 512.0, "{both}");
}

#[test]
fn what_never_comes_is_no_time() {
    let alone = vec![one(Work::NamedBarrier { barrier: 1, groups: 3, waits: true })];
    assert!(cycles_of_loop(&[alone], &Rates::hopper()).is_some(), "the first slot is opened before the loop");
    assert_eq!(cycles_of_loop(&[], &Rates::hopper()), None);
    assert_eq!(cycles_of_loop(&[Vec::new()], &Rates::hopper()), None);
}
