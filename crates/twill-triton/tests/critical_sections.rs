//! What ends a kernel between taking a lock and giving it back is one operation; who waits for another program is left as it is.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use twill_triton::kernel::Kernel;
use twill_triton::mlir::parse;

const LOCKED: &str = include_str!("../../../examples/fixtures/loops/locked.ttir");
const TICKETED: &str = include_str!("../../../examples/fixtures/loops/ticketed.ttir");

/// The names of the operations in the kernel's critical section, in their order; `None` without one.
fn section(text: &str) -> Option<Vec<String>> {
    let kernel = Kernel::new(parse(text, "test.ttir").unwrap(), None).unwrap();
    let module = kernel.module();
    let section = kernel.critical_section()?;
    Some(module.walk(section).skip(1).map(|id| module.operation(id).name.clone()).collect())
}

/// A text with one change.
fn changed(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from}");
    text.replace(from, to)
}

/// The places of operations in a section.
fn places(of: &[String], name: &str) -> Vec<usize> {
    (0..of.len()).filter(|at| of[*at] == name).collect()
}

#[test]
fn stores_under_a_lock_come_before_it_is_free() {
    let section = section(LOCKED).unwrap();
    let [lock] = places(&section, "tt.atomic_cas")[..] else { panic!("{section:?}") };
    let [store] = places(&section, "tt.store")[..] else { panic!("{section:?}") };
    let [free] = places(&section, "tt.atomic_rmw")[..] else { panic!("{section:?}") };
    let barriers = places(&section, "gpu.barrier");
    assert!(lock < store && barriers.iter().any(|barrier| (store..free).contains(barrier)), "{section:?}");
}

#[test]
fn a_ticket_is_taken_after_what_is_stored_before_it() {
    let section = section(TICKETED).unwrap();
    let ticket = places(&section, "tt.atomic_rmw")[0];
    assert!(places(&section, "gpu.barrier").iter().any(|barrier| *barrier < ticket), "{section:?}");
    assert!(places(&section, "tt.load").iter().all(|load| *load > ticket), "{section:?}");
}

#[test]
fn a_lock_may_be_one_of_many() {
    // Its address is computed in the loop that acquires it, and again where it is released.
    let address = |name: &str| format!("    %{name} = tt.addptr %lock_ptr, %c1_i32 : !tt.ptr<i32>, i32\n");
    let of = |line: &str, name: &str| format!("{}{}", address(name), line.replace("%lock_ptr", &format!("%{name}")));
    let lines = ["tt.atomic_cas", "tt.atomic_rmw exch"].map(|name| LOCKED.lines().find(|l| l.contains(name)).unwrap());
    let text = changed(LOCKED, lines[0], &of(lines[0], "acquired"));
    assert!(section(&changed(&text, lines[1], &of(lines[1], "released"))).is_some());
    assert_eq!(section(&text), None, "it releases another one");
}

#[test]
fn a_loop_that_waits_for_another_program_is_left() {
    let compared = LOCKED.lines().find(|line| line.contains("tt.atomic_cas")).unwrap();
    let freed = LOCKED.lines().find(|line| line.contains("tt.atomic_rmw exch")).unwrap();
    let waits = compared.replace("%c0_i32, %c1_i32", "%c1_i32, %c1_i32");
    for (from, to) in [
        // A flag that somebody sets, a lock that is never free, and one that is waited for until it is taken.
        (compared, waits.as_str()),
        (freed, &freed.replace("%c0_i32", "%c1_i32")),
        (freed, ""),
        ("arith.cmpi ne,", "arith.cmpi eq,"),
        // It waits for what memory says.
        (compared, "      %9 = tt.load %lock_ptr {isVolatile = true} : !tt.ptr<i32>"),
    ] {
        assert_ne!(from, to);
        assert_eq!(section(&changed(LOCKED, from, to)), None, "{to}");
    }
}
