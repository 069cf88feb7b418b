//! Derivations, and the places of what is wrong in them.

use crate::support::{OPEN, problem, said};

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let problem = problem();
    let said = |clauses: &[(&str, &str)], steps: &str| said(&problem, 10, &["used 1", "used 2"], clauses, steps);
    let right = ("1 -2 0", "used-order 2");
    assert!(said(&[right], "").ends_with(OPEN));
    let clause = |position: usize| format!("proof at 10 cycles: clause {position} does not follow from its reason");
    assert!(said(&[("1 2 0", "used-order 2")], "").starts_with(&clause(1)));
    assert!(said(&[right, right, ("-1 0", "used-order 2")], "").starts_with(&clause(3)));
    // A literal beyond the atoms, in either part.
    let unknown =
        |part: &str, at: usize| format!("proof at 10 cycles: {part} {at} speaks of an atom that does not exist");
    assert_eq!(said(&[right, ("1 -3 0", "used-order 2")], ""), unknown("clause", 2));
    assert_eq!(said(&[right, right, ("1 -2 3 0", "used-order 2")], ""), unknown("clause", 3));
    assert_eq!(said(&[right], "1 -2 0\n1 3 0\n"), unknown("step", 2));
    assert_eq!(said(&[right], "d 3 0\n"), unknown("step", 1));
    // A step that does not follow.
    let step =
        |at: usize| format!("proof at 10 cycles: step {at} of the derivation does not follow by unit propagation");
    assert_eq!(said(&[right], "1 0\n"), step(1));
    assert_eq!(said(&[right], "1 -2 0\n1 -2 0\n-1 0\n"), step(3));
    // A deleted clause is of no use.
    assert_eq!(said(&[right], "d 1 -2 0\n1 -2 0\n"), step(2));
    // Of two copies, one deletion leaves one.
    assert!(said(&[right, right], "d -2 1 0\n1 -2 0\n").ends_with(OPEN));
}
