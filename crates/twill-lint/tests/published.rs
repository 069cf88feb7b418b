//! The published miscompilation (Triton's pull request 11781): ptxas 12.9 writes the left operand of a wgmma in flight, and
//! ptxas 13.4 waits first. `listings/scaled_rows.py` is the kernel; both listings are of the same PTX.

use twill_lint::{Rule, lint};

#[test]
fn it_is_found_in_what_ptxas_12_9_makes_and_not_in_what_13_4_makes() {
    let old = lint(include_str!("listings/scaled_rows.ptxas-12.9.86.sass")).unwrap();
    let [found] = &old.findings[..] else { panic!("{:#?}", old.findings) };
    assert_eq!(found.rule, Rule::WgmmaOperandWritten);
    assert!(found.at.instruction.starts_with("LDSM.16.M88.4 R88"), "{}", found.at.instruction);
    let earlier = found.earlier.as_ref().unwrap();
    assert!(earlier.instruction.contains("R88, gdesc"), "{}", earlier.instruction);
    assert_eq!((earlier.file.as_deref(), earlier.line), (Some("scaled.py"), Some(16)));
    let new = lint(include_str!("listings/scaled_rows.ptxas-13.4.59.sass")).unwrap();
    assert_eq!(new.findings, []);
    assert_eq!(new.functions[0].wgmmas, 2);
}
