//! Kernels of the examples, generated without an assembler.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use twill_driver::tune::{CompileOptions, Compiled, GeneratedKernel, compile};
use twill_driver::{Content, Error, Input, Limits, LoweringParameters, Request, Session, SiblingOptions, Silent};
use twill_exact::{Budget, SearchOptions};
use twill_machine::Machine;

/// The kernel of an example, for an H200.
pub fn generated(example: &str, options: &CompileOptions) -> GeneratedKernel {
    match compiled(example, options).unwrap() {
        Compiled::Kernel(kernel) => *kernel,
        other => panic!("{other:?}"),
    }
}

/// What becomes of an example.
pub fn compiled(example: &str, options: &CompileOptions) -> Result<Compiled, Error> {
    compiled_text(example, text_of(example), options)
}

/// The TTIR of an example.
pub fn text_of(example: &str) -> String {
    std::fs::read_to_string(format!("{}/../../examples/{example}.ttir", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// What becomes of a kernel, for an H200.
pub fn compiled_text(name: &str, text: String, options: &CompileOptions) -> Result<Compiled, Error> {
    compiled_on("h200", name, text, options)
}

/// What becomes of a kernel on a machine.
pub fn compiled_on(machine: &str, name: &str, text: String, options: &CompileOptions) -> Result<Compiled, Error> {
    let lowering =
        LoweringParameters { machine: Some(Machine::load(machine).unwrap()), ..LoweringParameters::default() };
    let request = Request {
        input: Input { name: name.to_owned(), content: Content::Kernel(text) },
        lowering,
        limits: Limits::default(),
        siblings: SiblingOptions::default(),
    };
    let mut nobody = Silent;
    // Proofs of what comes after the interval, which take minutes, are not the matter here.
    let budget = Budget { work: Some(300_000), ..Budget::default() };
    let mut session = Session::new(SearchOptions { budget, ..SearchOptions::default() }, &mut nobody);
    compile(&request, options, None, &mut session)
}
