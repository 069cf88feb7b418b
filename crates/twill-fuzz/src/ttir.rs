//! Target: texts of kernels, in the custom and the generic form, up to the loop graph.

mod generic;

use crate::change::changed;
use crate::tape::Tape;
use twill_machine::Machine;
use twill_triton::mlir::{Module, parse};
use twill_triton::{Kernel, Options, lower, sub_tile};

const FILE: &str = "fuzz.ttir";

/// Real kernels, as Triton prints them.
const KERNELS: [&str; 9] = [
    include_str!("../../../examples/gemm_tma.ttir"),
    include_str!("../../../examples/swiglu.ttir"),
    include_str!("../../../examples/attention_forward.ttir"),
    include_str!("../../../examples/gemm_pointers.ttir"),
    include_str!("../../../examples/fixtures/nested_loops.ttir"),
    include_str!("../../../examples/fixtures/attention_forward_generic.ttir"),
    include_str!("../../twill-triton/tests/mlir/control.ttir"),
    include_str!("../../twill-triton/tests/mlir/control.generic.ttir"),
    include_str!("../../twill-triton/tests/mlir/scaled.generic.ttir"),
];

const WORDS: [&str; 48] = [
    "%",
    "#",
    "!",
    "^",
    "@",
    "{",
    "}",
    "(",
    ")",
    "<",
    ">",
    "[",
    "]",
    ",",
    ":",
    "=",
    "->",
    "-",
    "loc(",
    "#loc",
    "%0",
    "%0#1",
    ":2",
    "0x",
    "?x",
    "dense<",
    "array<i32",
    "tensor<",
    "x64xf16>",
    "!tt.ptr<",
    "scf.for ",
    "scf.yield ",
    "\"tt.reduce\"(",
    "({",
    "})",
    "^bb0:",
    "cf.br ^bb0",
    "module {",
    "tt.func @f(",
    "tt.dot ",
    "arith.addf ",
    "f32",
    "i1",
    "index",
    "true",
    "callsite(",
    "fused[",
    "tt.descriptor_load ",
];

/// Reads what the bytes make of a kernel's text; what is a module is written and read again, and lowered as far as it goes.
///
/// # Panics
/// When the text written says something else.
pub fn check(bytes: &[u8]) {
    let mut tape = Tape::new(bytes);
    if tape.one_in(8) {
        return read(&String::from_utf8_lossy(tape.rest()));
    }
    let Some(kernel) = tape.pick(&KERNELS) else { return };
    // The whole of a large kernel is rarely needed to see what a change of one line does.
    let text = if tape.one_in(4) { some_lines(&mut tape, kernel) } else { (*kernel).to_owned() };
    read(&changed(&mut tape, &text, &WORDS));
}

/// The text without a stretch of its lines.
fn some_lines(tape: &mut Tape, text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let from = tape.index(lines.len());
    let to = (from + 1 + tape.index(40)).min(lines.len());
    [&lines[..from], &lines[to..]].concat().join("\n")
}

fn read(text: &str) {
    let module = match parse(text, FILE) {
        Ok(module) => module,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    says_the_same(&module);
    let machines = ["h100", "b200", "a100"].map(Machine::load);
    for step in [None, Some(48)] {
        let kernel = match Kernel::with_step(module.clone(), None, step) {
            Ok(kernel) => kernel,
            Err(error) => return assert!(!error.to_string().is_empty()),
        };
        for machine in machines.iter().flatten() {
            for tile_loop in kernel.loops() {
                let _ = lower(tile_loop, machine, &Options::default());
                let _ = sub_tile(tile_loop, 3);
            }
        }
    }
}

/// The module, written in the generic form and read again, is the same.
fn says_the_same(module: &Module) {
    let Some(written) = generic::written(module) else { return };
    match parse(&written, FILE) {
        Ok(again) => assert_eq!(again.to_string(), module.to_string(), "{written}"),
        Err(error) => assert!(error.to_string().is_empty(), "{error}: {written}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_can_be_written() {
        for text in KERNELS {
            let module = parse(text, FILE);
            assert!(module.is_ok_and(|module| generic::written(&module).is_some()), "{text}");
        }
    }
}
