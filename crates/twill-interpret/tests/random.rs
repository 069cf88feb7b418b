//! Random kernels: their warp programs compute what their TTIR says, in every order; and programs with a mistake, of which the
//! checker and the executions say the same.

use twill_interpret::campaign::{Plan, run};
use twill_interpret::{Machines, Trial};

#[test]
fn random_kernels_agree() {
    let plan = Plan { seed: 0, programs: 20, seeds: 1, mutants: 0 };
    let report = run(plan, &Machines::load().unwrap(), &mut |_| ());
    assert_eq!(report.findings, Vec::<String>::new());
    assert!(report.kernels < 32, "too many are refused: {:?}", report.refused);
    assert!(report.interleavings == 400 && report.steps > 30_000 && report.events > 3_000, "{report:?}");
}

#[test]
fn mistakes_are_noticed() {
    let plan = Plan { seed: 100, programs: 3, seeds: 1, mutants: 4 };
    let report = run(plan, &Machines::load().unwrap(), &mut |_| ());
    assert_eq!(report.findings, Vec::<String>::new());
    let found = report.mutants;
    assert_eq!((found.all, found.execution_alone), (12, 0), "{report:?}");
    assert!(found.both >= 3 && found.checker_alone + found.harmless > 0, "{report:?}");
}

#[test]
fn any_bytes_are_a_kernel_that_is_read() {
    for bytes in [&[][..], &[0; 40], &[255; 300], b"twill"] {
        let trial = Trial::of_bytes(bytes).unwrap();
        let text = trial.recipe.text();
        twill_triton::read(&text, "random").unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}
