//! The built-in files, and what is shown and written of them.

use crate::{Machine, Provenance, Reduction, TileWork, builtin_names, builtin_text, check};
use std::collections::HashSet;
use twill_graph::{Cycles, FixedGroup};

#[test]
fn every_builtin_is_sound() {
    assert_eq!(builtin_names().collect::<Vec<_>>(), ["a100", "h100", "h200", "b200", "b200-left-shared"]);
    for name in builtin_names() {
        let machine = Machine::load(name).unwrap();
        assert_eq!((machine.name(), machine.resources().name.as_str()), (name, name));
        assert!(machine.description().starts_with("NVIDIA"), "{name}");
        machine.resources().check().unwrap();
        let mut keys = HashSet::new();
        for row in machine.rows() {
            assert!(keys.insert(row.key.clone()), "{name}: {} twice", row.key);
            assert!(row.value.is_finite() && !row.source.is_empty() && !row.unit.is_empty(), "{name}: {}", row.key);
        }
        // `check` reads the same numbers from the file's text.
        let again = check(builtin_text(name).unwrap(), &format!("machines/{name}.toml")).unwrap();
        assert_eq!(machine, again);
    }
    assert_eq!(builtin_text("nothing"), None);
}

#[test]
fn groups_and_registers_of_the_builtins() {
    let resources = |name| Machine::builtin(name).unwrap().resources();
    let a100 = resources("a100");
    assert_eq!((a100.variable_latency_group, a100.issue_group), (None, None));
    let h100 = resources("h100");
    let producer = FixedGroup { warps: 1, allocated_warps: 4, registers_per_thread: 24 };
    assert_eq!((h100.variable_latency_group, h100.issue_group), (Some(producer), None));
    assert_eq!((h100.compute_groups.warps, h100.compute_groups.maximum), (4, 3));
    assert_eq!(h100.compute_register_budget(), 65536 - 24 * 128);
    // Three groups that hold a 128×128 tile and its row statistics each fit on Blackwell, with the two single warps.
    let b200 = resources("b200");
    assert!(b200.issue_group.is_some());
    let registers = b200.registers_for(131 * 128).unwrap();
    assert!(3 * b200.compute_group_cost(registers) <= b200.compute_register_budget());
}

#[test]
fn the_h200_is_an_h100_with_another_memory_and_costs_that_were_measured() {
    let (h100, h200) = (Machine::builtin("h100").unwrap(), Machine::builtin("h200").unwrap());
    assert_eq!(h200.architecture(), "sm_90a");
    assert_eq!(h200.chip().streaming_multiprocessors, 132);
    assert_eq!((h100.chip().memory_gb, h200.chip().memory_gb), (80.0, 141.0));
    let mut resources = h200.resources();
    resources.name = "h100".into();
    resources.registers.reserve_per_thread = h100.resources().registers.reserve_per_thread;
    assert_eq!(resources, h100.resources());
    let maxima = TileWork::Reduce { kind: Reduction::Maximum, rows: 64, columns: 128 };
    let cycles = |machine: &Machine| machine.cost(&maxima).unwrap().occupancy.0;
    assert_eq!((cycles(&h100), cycles(&h200)), (64, 139));
    let row = |key: &str| h200.rows().find(|r| r.key == key).unwrap();
    assert_eq!(row("chip.memory_gb").file.as_deref(), Some("machines/h200.toml"));
    assert_eq!(row("registers.words").file.as_deref(), Some("machines/h100.toml"));
    assert_eq!(row("costs.fma.additional_latency").file, None);
}

#[test]
fn a_written_machine_reads_as_the_same_and_stands_alone() {
    for name in builtin_names() {
        let machine = Machine::builtin(name).unwrap();
        let text = machine.to_toml();
        assert!(!text.contains("extends"));
        let again = check(&text, "again.toml").unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert_eq!(again.to_toml(), text);
        assert_eq!(again.resources(), machine.resources());
        assert_eq!((again.chip(), again.tensor_core()), (machine.chip(), machine.tensor_core()));
        assert_eq!(again.rules, machine.rules);
        assert_eq!(again.transfer_latency(), Cycles(machine.transfer_latency().0));
        let facts = |m: &Machine| -> Vec<_> {
            m.rows().map(|r| (r.key.clone(), r.number(), r.provenance, r.source.clone())).collect()
        };
        assert_eq!(facts(&again), facts(&machine));
    }
}

#[test]
fn strange_texts_survive_writing() {
    let text =
        "name = \"a\\\"b\\\\c d\"\nextends = \"h100\"\n[units]\n\"odd unit\" = { derived = 1, source = \"…\" }\n";
    let machine = check(text, "odd.toml").unwrap();
    let again = check(&machine.to_toml(), "odd.toml").unwrap();
    assert_eq!(again.name(), "a\"b\\c d");
    assert_eq!(again.resources(), machine.resources());
}

#[test]
fn shown_with_what_executes_what() {
    let b200 = Machine::builtin("b200").unwrap();
    let text = b200.summary();
    assert!(text.starts_with("b200 (sm_100a): NVIDIA B200 (Blackwell)\n"), "{text}");
    assert!(text.contains("MMAs hold `tc`, issued asynchronously by one warp:"), "{text}");
    assert!(text.contains("`mem_tensor` is held by tensor_load, tensor_store, issued and executed by a warp group."));
    let handoff = b200.rows().find(|r| r.key == "latency.handoff_per_kb").unwrap();
    assert_eq!(
        (handoff.number().as_str(), handoff.unit, handoff.provenance),
        ("16.1", "cycles/KB", Provenance::Measured)
    );
}

#[test]
fn the_example_of_the_documentation_is_a_machine() {
    let page = include_str!("../../../../docs/machines.md");
    let examples: Vec<&str> = page.split("```toml\n").skip(1).filter_map(|part| part.split("```").next()).collect();
    let machine = check(examples[1], "docs/machines.md").unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!((machine.chip().streaming_multiprocessors, machine.transfer_latency()), (114, Cycles(612)));
}
