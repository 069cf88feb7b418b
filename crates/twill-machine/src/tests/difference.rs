//! The differences between two machines.

use crate::{Difference, Machine, Provenance, check, differences};

fn changed(changes: &str) -> Machine {
    let text = format!("name = \"mine\"\ndescription = \"another\"\nextends = \"h100\"\n{changes}");
    check(&text, "mine.toml").unwrap_or_else(|e| panic!("{e:?}"))
}

fn found(changes: &str) -> Vec<Difference> {
    differences(&Machine::builtin("h100").unwrap(), &changed(changes))
}

#[test]
fn a_machine_is_like_itself_whatever_it_is_called() {
    let h100 = Machine::builtin("h100").unwrap();
    assert_eq!(differences(&h100, &h100), []);
    assert_eq!(found(""), []);
}

#[test]
fn a_number_with_its_change() {
    let all = found("[latency]\ntransfer = { measured = 910, source = \"mine\" }");
    let [Difference::Number { old: Some(old), new: Some(new) }] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((old.value, old.provenance), (650.0, Provenance::Derived));
    assert_eq!((new.value, new.provenance, new.source.as_str()), (910.0, Provenance::Measured, "mine"));
    assert_eq!((all[0].key(), all[0].percent()), ("latency.transfer", Some(40.0)));
    assert!(all[0].is_of_value());
}

#[test]
fn another_provenance_counts_and_another_source_does_not() {
    let same = found("[costs.fma]\nelements_per_cycle = { measured = 128, source = \"mine\" }");
    assert_eq!((same.len(), same[0].percent(), same[0].is_of_value()), (1, Some(0.0), false));
    assert_eq!(found("[costs.fma]\nelements_per_cycle = { specified = 128, source = \"another page\" }"), []);
}

#[test]
fn what_only_one_has() {
    let all = found("[synchronization]\narrive = { measured = 16, source = \"mine\" }\n[costs]\ntma_reduce = false");
    let keys: Vec<&str> = all.iter().map(Difference::key).collect();
    let gone = ["costs.tma_reduce.bytes_per_cycle", "costs.tma_reduce.additional_latency"];
    assert_eq!(keys[..3], [gone[0], gone[1], "synchronization.arrive"]);
    assert!(matches!(&all[0], Difference::Number { old: Some(_), new: None }));
    assert!(matches!(&all[2], Difference::Number { old: None, new: Some(_) }));
    assert!(all.iter().all(|one| one.percent().is_none()));
    // Words go with their tables.
    assert!(keys[3..].iter().all(|key| key.starts_with("costs.tma_reduce.")), "{keys:?}");
}

#[test]
fn words_and_lists() {
    let all = found("[tensor_core]\nsharing = \"in_order\"\nleft_operand = [\"shared_memory\"]");
    let words: Vec<_> = all
        .iter()
        .map(|one| match one {
            Difference::Words { key, old, new } => (key.as_str(), old.as_deref(), new.as_deref()),
            Difference::Number { .. } => panic!("{one:?}"),
        })
        .collect();
    let (both, one) = ("\"shared_memory\", \"registers\"", "\"shared_memory\"");
    assert_eq!(
        words,
        [("tensor_core.left_operand", Some(both), Some(one)), ("tensor_core.sharing", None, Some("in_order"))]
    );
}
