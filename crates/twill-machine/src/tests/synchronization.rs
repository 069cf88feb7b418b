//! The costs between operations: `[synchronization]`, and the tensor core's `wait_latency` and `sharing`.

use crate::{Element, Machine, Sharing, Synchronization, TileWork, builtin_names, check};
use twill_graph::Cycles;

const ALL: &str = "[synchronization]
arrive = { measured = 16, source = \"me\" }
wait = { measured = 48, source = \"me\" }
handoff = { measured = 77, source = \"me\" }
named_barrier = { measured = 31, source = \"me\" }
fence = { measured = 17, source = \"me\" }
set_registers = { measured = 53, source = \"me\" }
[tensor_core]
wait_latency = { measured = 54, source = \"me\" }
sharing = \"in_order\"
";

fn extended(changes: &str) -> Result<Machine, Vec<String>> {
    let text = format!("name = \"mine\"\nextends = \"h100\"\n{changes}");
    check(&text, "mine.toml").map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

#[test]
fn all_of_it_is_read_and_written_and_costs_stay_what_they_are() {
    let (h100, mine) = (Machine::builtin("h100").unwrap(), extended(ALL).unwrap());
    let expected = Synchronization {
        arrive: Some(Cycles(16)),
        wait: Some(Cycles(48)),
        handoff: Some(Cycles(77)),
        named_barrier: Some(Cycles(31)),
        fence: Some(Cycles(17)),
        set_registers: Some(Cycles(53)),
    };
    assert_eq!(*mine.synchronization(), expected);
    let core = mine.tensor_core();
    assert_eq!((core.wait_latency, core.sharing), (Some(Cycles(54)), Some(Sharing::InOrder)));
    assert_eq!(mine.rows().count(), h100.rows().count() + 7);
    let gemm = TileWork::Mma { rows: 64, columns: 128, depth: 64, element: Element::F16 };
    assert_eq!(mine.cost(&gemm).unwrap(), h100.cost(&gemm).unwrap());
    let again = check(&mine.to_toml(), "again.toml").unwrap();
    assert_eq!((again.synchronization(), again.tensor_core()), (&expected, core));
}

#[test]
fn any_of_it_may_be_absent() {
    // An H200 was calibrated.
    for name in builtin_names().filter(|name| *name != "h200") {
        let machine = Machine::builtin(name).unwrap();
        assert_eq!(*machine.synchronization(), Synchronization::default(), "{name}");
        assert_eq!((machine.tensor_core().wait_latency, machine.tensor_core().sharing), (None, None), "{name}");
    }
    let one = extended("[synchronization]\nfence = { measured = 17, source = \"me\" }").unwrap();
    assert_eq!((one.synchronization().fence, one.synchronization().arrive), (Some(Cycles(17)), None));
}

#[test]
fn what_is_wrong_with_it() {
    let error = |changes: &str| extended(changes).unwrap_err();
    assert_eq!(
        error("[synchronization]\nhand_off = { measured = 77, source = \"me\" }"),
        [
            "mine.toml:4: `synchronization.hand_off` is not a key of a machine file (did you mean `handoff`?); here are arrive, wait, handoff, named_barrier, fence, set_registers"
        ]
    );
    assert_eq!(
        error("[synchronization]\nwait = { measured = 48.25, source = \"me\" }"),
        ["mine.toml:4: `synchronization.wait` is 48.25; it must be a whole number from 0 to 1099511627776"]
    );
    assert_eq!(
        error("[tensor_core]\nsharing = \"fair\""),
        ["mine.toml:4: `tensor_core.sharing` is \"fair\"; expected \"in_order\" or \"interleaved\""]
    );
    assert_eq!(
        error("synchronization = 3"),
        ["mine.toml:3: `synchronization` is 3; expected a table [synchronization]"]
    );
}
