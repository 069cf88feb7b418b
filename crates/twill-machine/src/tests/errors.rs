//! Every error with its message.

use crate::{Machine, MachineError, check};

/// The errors of a file that changes a built-in machine.
fn errors(base: &str, changes: &str) -> Vec<String> {
    let text = format!("name = \"mine\"\nextends = \"{base}\"\n{changes}");
    match check(&text, "mine.toml") {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

#[track_caller]
fn only_error(base: &str, changes: &str, expected: &str) {
    assert_eq!(errors(base, changes), [expected]);
}

/// A number in the third and fourth line.
#[track_caller]
fn number(value: &str, expected: &str) {
    let changes = format!("[costs.fma]\nelements_per_cycle = {{ measured = {value}, source = \"me\" }}");
    only_error("h100", &changes, expected);
}

#[test]
fn unknown_machines_are_answered_with_those_known() {
    assert_eq!(
        Machine::load("h10").unwrap_err().to_string(),
        "there is no machine `h10`; built in are a100, h100, h200, b200, b200-left-shared (did you mean `h100`?); a file of your own is given by its path, such as ./h10.toml"
    );
    assert_eq!(
        Machine::builtin("mi300x").unwrap_err().to_string(),
        "there is no machine `mi300x`; built in are a100, h100, h200, b200, b200-left-shared; a file of your own is given by its path, such as ./mi300x.toml"
    );
}

#[test]
fn unreadable_files() {
    assert_eq!(
        Machine::load("./no/such.toml").unwrap_err().to_string(),
        "cannot read the machine file ./no/such.toml: entity not found"
    );
}

#[test]
fn text_that_is_not_toml() {
    let errors = check("name = \"a\"\narchitecture = \n[chip\n", "x.toml").unwrap_err();
    assert!(errors.len() >= 2, "{errors:?}");
    assert!(errors.iter().all(|e| matches!(e, MachineError::Syntax { .. })));
    assert_eq!(errors[0].place().map(|p| p.line), Some(2));
    let twice = check("name = \"a\"\nname = \"b\"", "x.toml").unwrap_err();
    assert_eq!(twice[0].to_string(), "x.toml:2: not valid TOML: duplicate key");
}

#[test]
fn missing_numbers_tables_and_words() {
    let complete = Machine::builtin("h100").unwrap().to_toml();
    let without = |line: &str| {
        let shorter = complete.replacen(line, "", 1);
        assert_ne!(shorter, complete, "{line}");
        check(&shorter, "x.toml").unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let line = |start: &str| complete.lines().find(|l| l.starts_with(start)).unwrap_or("?").to_owned();
    let at = |header: &str| complete.lines().position(|l| l == header).unwrap_or(0) + 1;
    assert_eq!(
        without(&line("transfer =")),
        [format!(
            "x.toml:{}: `latency.transfer` is missing; expected a number of cycles: {{ measured = …, source = \"…\" }}",
            at("[latency]")
        )]
    );
    assert_eq!(without(&line("architecture =")), ["x.toml:1: `architecture` is missing; expected a text in quotes"]);
    assert_eq!(
        without(&line("accumulator =")),
        [format!(
            "x.toml:{}: `tensor_core.accumulator` is missing; expected \"registers\" or \"shared_memory\" or \"tensor_memory\"",
            at("[tensor_core]")
        )]
    );
    only_error("h100", "[costs]\nfma = false", "mine.toml:3: `costs.fma` is missing; expected a table [costs.fma]");
    only_error(
        "h100",
        "[memory]\ntensor_columns = { derived = 512, source = \"x\" }",
        "mine.toml:3: `memory.tensor_lanes` is missing; expected a number of lanes: { measured = …, source = \"…\" }",
    );
    // All of them are reported, each once.
    let empty = check("", "empty.toml").unwrap_err();
    assert!(empty.iter().all(|e| matches!(e, MachineError::Missing { .. })), "{empty:?}");
    assert_eq!(empty.len(), 11);
    // The name is not inherited.
    let errors = check("extends = \"h100\"", "x.toml").unwrap_err();
    assert_eq!(errors[0].to_string(), "x.toml:1: `name` is missing; expected a text in quotes");
}

#[test]
fn numbers_out_of_range() {
    let expected = |value: &str| {
        format!(
            "mine.toml:4: `costs.fma.elements_per_cycle` is {value}; it must be a number greater than 0, and at most 1e15"
        )
    };
    for value in ["0", "0.0", "-128", "nan", "inf", "-inf", "1e400", "1e16", "99999999999999999999999999"] {
        number(value, &expected(value));
    }
    only_error(
        "h100",
        "[registers]\nwords = { specified = 65536.5, source = \"me\" }",
        "mine.toml:4: `registers.words` is 65536.5; it must be a whole number from 1 to 1099511627776",
    );
    only_error(
        "h100",
        "[units]\nxu = { derived = 0, source = \"me\" }",
        "mine.toml:4: `units.xu` is 0; it must be a whole number from 1 to 65536",
    );
}

#[test]
fn numbers_in_every_notation() {
    for value in ["128", "128.0", "0x80", "0b1000_0000", "1_28", "1.28e2", "+128"] {
        let text = format!(
            "name = \"x\"\nextends = \"h100\"\n[costs.fma]\nelements_per_cycle = {{ measured = {value}, source = \"me\" }}"
        );
        let machine = check(&text, "x.toml").unwrap_or_else(|e| panic!("{value}: {e:?}"));
        let row = machine.rows().find(|r| r.key == "costs.fma.elements_per_cycle").unwrap();
        assert_eq!(row.number(), "128", "{value}");
    }
}

#[test]
fn numbers_without_provenance() {
    let fma = |number: &str| errors("h100", &format!("[costs.fma]\nelements_per_cycle = {number}"));
    let says = |fault: &str, value: &str| {
        [format!(
            "mine.toml:4: `costs.fma.elements_per_cycle` {fault}; write {{ measured = {value}, source = \"…\" }}, or `specified` or `derived` instead of `measured`"
        )]
    };
    assert_eq!(fma("128"), says("does not say where it comes from", "128"));
    assert_eq!(fma("{ measured = 128 }"), says("does not say its source", "128"));
    assert_eq!(fma("{ measured = 128, source = \" \" }"), says("does not say its source", "128"));
    assert_eq!(fma("{ source = \"me\" }"), says("has no number", "…"));
    assert_eq!(fma("{ measured = 1, derived = 2, source = \"me\" }"), says("has several numbers", "…"));
}

#[test]
fn values_of_the_wrong_kind() {
    only_error(
        "h100",
        "[costs.fma]\nelements_per_cycle = \"many\"",
        "mine.toml:4: `costs.fma.elements_per_cycle` is \"many\"; expected a number: { measured = …, source = \"…\" }",
    );
    only_error(
        "h100",
        "[costs.fma]\nelements_per_cycle = { measured = \"128\", source = \"me\" }",
        "mine.toml:4: `costs.fma.elements_per_cycle.measured` is \"128\"; expected a number",
    );
    only_error("h100", "architecture = 90", "mine.toml:3: `architecture` is 90; expected a text in quotes, not empty");
    only_error(
        "h100",
        "architecture = \"sm_90\\u001b[2J\"",
        "mine.toml:3: `architecture` is \"sm_90_[2J\"; expected a text without control characters",
    );
    only_error("h100", "chip = []", "mine.toml:3: `chip` is a list; expected a table [chip]");
    only_error(
        "h100",
        "[tensor_core]\nexecution = \"async\"",
        "mine.toml:4: `tensor_core.execution` is \"async\"; expected \"synchronous\" or \"asynchronous\"",
    );
    only_error(
        "h100",
        "[tensor_core]\nleft_operand = \"registers\"",
        "mine.toml:4: `tensor_core.left_operand` is \"registers\"; expected a list of \"registers\" or \"shared_memory\" or \"tensor_memory\"",
    );
    only_error(
        "h100",
        "[tensor_core]\nright_operand = [\"smem\"]",
        "mine.toml:4: `tensor_core.right_operand` is \"smem\"; expected \"registers\" or \"shared_memory\" or \"tensor_memory\"",
    );
    only_error(
        "h100",
        "[latency]\nhandoff = 1979-05-27",
        "mine.toml:4: `latency.handoff` is 1979-05-27; expected a number: { measured = …, source = \"…\" }",
    );
}

#[test]
fn unknown_keys() {
    only_error(
        "h100",
        "[costs.tma_load]\nbytes_per_cycles = { measured = 1, source = \"me\" }",
        "mine.toml:4: `costs.tma_load.bytes_per_cycles` is not a key of a machine file (did you mean `bytes_per_cycle`?); here are unit, bytes_per_cycle, additional_latency, execution, issue",
    );
    only_error(
        "h100",
        "[latency]\ntransfer = { measured = 1, sourse = \"me\" }",
        "mine.toml:4: `latency.transfer.sourse` is not a key of a machine file (did you mean `source`?); here are measured, specified, derived, source",
    );
    let top = errors("h100", "[cost]\n[tensor_core.flop_per_cycle]\nf4 = { derived = 1, source = \"me\" }");
    assert_eq!(top.len(), 2, "{top:?}");
    assert!(
        top[0].starts_with("mine.toml:3: `cost` is not a key of a machine file (did you mean `costs`?)"),
        "{top:?}"
    );
    assert_eq!(
        top[1],
        "mine.toml:5: `tensor_core.flop_per_cycle.f4` is not a key of a machine file (did you mean `f8`?); here are f16, bf16, tf32, f8, i8"
    );
}

#[test]
fn units_that_are_used_but_not_declared() {
    only_error(
        "h100",
        "[costs.convert]\nunit = \"xuu\"",
        "mine.toml:4: `costs.convert.unit` is the unit `xuu`, which [units] does not declare (did you mean `xu`?); it declares tensor, tma, xu, fma, alu, lsu",
    );
    only_error(
        "a100",
        "[units]\ntensor = false",
        "machines/a100.toml:41: `tensor_core.unit` is the unit `tensor`, which [units] does not declare; it declares xu, fma, alu, lsu",
    );
}

#[test]
fn memory_traffic_that_no_group_can_issue() {
    only_error(
        "h100",
        "[costs.pointer_load]\nissue = \"warp_group\"",
        "mine.toml:4: `costs.pointer_load.issue` is \"warp_group\", but the variable-latency group, which issues all global memory traffic, has 1 of its 4 warps; write \"warp\" or enlarge [groups.variable_latency]",
    );
    let wide = "[groups.variable_latency]\nwarps = { derived = 4, source = \"me\" }\n[costs.pointer_load]\nissue = \"warp_group\"";
    assert_eq!(errors("h100", wide), [""; 0]);
}

#[test]
fn numbers_that_do_not_go_together() {
    only_error(
        "h100",
        "[registers]\nminimum_per_thread = { derived = 300, source = \"me\" }",
        "mine.toml: machine `mine`: `registers.minimum_per_thread` is 300; it must be at most registers.maximum_per_thread in whole granules",
    );
    only_error(
        "h100",
        "[registers]\nwords = { derived = 3000, source = \"me\" }",
        "mine.toml: machine `mine`: `registers.words` is 3000; it must be at least 3072, 32 · allocated_warps · registers_per_thread of variable_latency_group and issue_group together",
    );
}

#[test]
fn many_errors_are_reported_in_the_order_of_the_file() {
    let found = errors(
        "h100",
        "[chip]\nclock_mhz = 1\nsms = 2\n[costs.fma]\nunit = \"fmaa\"\nelements_per_cycle = { measured = 0, source = \"me\" }",
    );
    let lines: Vec<&str> = found.iter().filter_map(|e| e.split(':').nth(1)).collect();
    assert_eq!(lines, ["4", "5", "7", "8"], "{found:?}");
    // `load` gives the first of them.
    let errors = check("name = \"x\"\nextends = \"h100\"\nsm = 1\nsms = 2", "x.toml").unwrap_err();
    assert_eq!(errors[0].place().map(ToString::to_string).as_deref(), Some("x.toml:3"));
}
