//! The power limits of the clock under load: `[power]`, and `chip.l2_bytes_per_cycle`.

use crate::{Machine, Power, builtin_names, check};

const ALL: &str = "[chip]
l2_bytes_per_cycle = { measured = 36.8, source = \"me\" }
[power]
clock_mhz = { measured = 1800, source = \"me\" }
limit_watts = { specified = 350, source = \"me\" }
burst_watts = { measured = 400.5, source = \"me\" }
base_watts = { measured = 0, source = \"me\" }
tensor_pj_per_flop = { measured = 0.75, source = \"me\" }
l2_pj_per_byte = { measured = 20, source = \"me\" }
";

fn extended(changes: &str) -> Result<Machine, Vec<String>> {
    let text = format!("name = \"mine\"\nextends = \"h100\"\n{changes}");
    check(&text, "mine.toml").map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

#[test]
fn all_of_it_is_read_and_written() {
    let (h100, mine) = (Machine::builtin("h100").unwrap(), extended(ALL).unwrap());
    let expected = Power {
        clock_mhz: 1800.0,
        limit_watts: 350.0,
        burst_watts: 400.5,
        base_watts: 0.0,
        tensor_pj_per_flop: 0.75,
        l2_pj_per_byte: 20.0,
    };
    assert_eq!((mine.power(), mine.chip().l2_bytes_per_cycle), (Some(&expected), Some(36.8)));
    assert_eq!(mine.rows().count(), h100.rows().count() + 7);
    let again = check(&mine.to_toml(), "again.toml").unwrap();
    assert_eq!((again.power(), again.chip()), (Some(&expected), mine.chip()));
}

#[test]
fn built_in_machines_have_it_where_it_was_measured() {
    for name in builtin_names() {
        let machine = Machine::builtin(name).unwrap();
        let known = (machine.power().is_some(), machine.chip().l2_bytes_per_cycle.is_some());
        assert_eq!(known, (name == "h200", name == "h200"), "{name}");
    }
    let without = "name = \"mine\"\nextends = \"h200\"\npower = false\n[chip]\nl2_bytes_per_cycle = false\n";
    let without = check(without, "mine.toml").unwrap();
    assert_eq!((without.power(), without.chip().l2_bytes_per_cycle), (None, None));
}

#[test]
fn what_is_wrong_with_it() {
    let error = |changes: &str| extended(changes).unwrap_err();
    let missing = error("[power]\nclock_mhz = { measured = 1800, source = \"me\" }");
    assert_eq!(missing.len(), 5, "{missing:?}");
    assert!(missing.iter().all(|one| one.contains("power.")), "{missing:?}");
    let negative = error(&ALL.replace("measured = 0,", "measured = -1,"));
    assert_eq!(negative, ["mine.toml:9: `power.base_watts` is -1; it must be 0 or a greater number, and at most 1e15"]);
    let nothing = error(&ALL.replace("= 350,", "= 0,"));
    assert_eq!(
        nothing,
        ["mine.toml:7: `power.limit_watts` is 0; it must be a number greater than 0, and at most 1e15"]
    );
}
