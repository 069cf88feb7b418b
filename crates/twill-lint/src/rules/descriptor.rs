//! Descriptors of a `wgmma` in shared memory: each way to it has to compute them.
//!
//! `gdesc[UR8]` names four uniform registers: the descriptor of the left operand, low word first, and that of the right one (PTX
//! ISA, "Matrix descriptor"). Upper words are strides and a swizzle, constants in all code that is known. ptxas 12.8 moves the
//! computation of a descriptor from the head of a loop into its body, although the code after the loop reads it as well
//! (`bench.random_programs`, seed 2269); 12.9 does not. The `wgmma` after the loop then has the descriptor of an iteration before,
//! or where the loop has no iteration, whatever was in the register: an upper word that is a constant on one way, and something
//! else on another.

use crate::constants::{UNIFORM_REGISTERS, uniform_operand, uniform_results};
use crate::finding::{Finding, Rule};
use crate::flow::{Analysis, solve, visit};
use crate::program::Program;
use crate::sass::{Instruction, number};
use std::collections::BTreeMap;

/// What may have written a register last, on some way: a set of these bits.
type Writers = u8;
/// Nothing.
const NOTHING: Writers = 1;
/// A constant, or a computation with constants alone.
const CONSTANT: Writers = 2;
/// A move from an ordinary register, or what is not followed: it may be anything.
const ANYTHING: Writers = 4;
/// Another computation or load.
const OTHER: Writers = 8;

/// Of each uniform register.
type State = [Writers; UNIFORM_REGISTERS];

struct Descriptors<'a>(&'a Program);

/// Upper words of the descriptors that a `wgmma` reads. A left operand in registers has none.
fn upper_words(instruction: &Instruction) -> Vec<usize> {
    let descriptor = instruction.operands.iter().find_map(|operand| operand.strip_prefix("gdesc[")?.split(']').next());
    let Some(first) = descriptor.and_then(uniform_operand) else { return Vec::new() };
    let is_left_in_registers = !instruction.operand(1).starts_with("gdesc");
    let words = if is_left_in_registers { vec![first + 3] } else { vec![first + 1, first + 3] };
    words.into_iter().filter(|word| *word < UNIFORM_REGISTERS).collect()
}

/// What an instruction makes of its operands, in the word of its result that is `word` after the first.
fn writers(state: &State, instruction: &Instruction, word: usize) -> Writers {
    match instruction.base() {
        "R2UR" => return ANYTHING,
        "ULDC" | "S2UR" => return OTHER,
        _ => {}
    }
    let result = instruction.operands.iter().position(|operand| uniform_operand(operand).is_some());
    let read = instruction.operands.iter().skip(result.map_or(1, |result| result + 1));
    let of_operands = read.fold(CONSTANT, |known, operand| {
        known
            | match uniform_operand(operand) {
                Some(register) => state[(register + word).min(UNIFORM_REGISTERS - 1)],
                None if operand.contains('P') || operand == "URZ" || number(operand).is_some() => CONSTANT,
                None => OTHER,
            }
    });
    match of_operands {
        some if some & (NOTHING | OTHER) != 0 => OTHER,
        some if some & ANYTHING != 0 => ANYTHING,
        _ => CONSTANT,
    }
}

impl Analysis for Descriptors<'_> {
    type State = State;

    fn start(&self, at: usize) -> State {
        // What nothing known leads to may have had its registers written.
        let is_kernel = self.0.listing.functions.iter().any(|function| function.is_kernel && function.start == at);
        [if is_kernel { NOTHING } else { ANYTHING }; UNIFORM_REGISTERS]
    }

    fn join(&self, state: &mut State, other: &State) -> bool {
        let before = *state;
        state.iter_mut().zip(other).for_each(|(known, other)| *known |= other);
        *state != before
    }

    fn step(&self, state: &mut State, at: usize) {
        let instruction = &self.0.listing.code[at];
        let results = uniform_results(instruction);
        let new: Vec<Writers> = (0..results.len()).map(|word| writers(state, instruction, word)).collect();
        for (register, new) in results.zip(new) {
            let old = if instruction.guard.is_some() { state[register] } else { 0 };
            state[register] = old | new;
        }
    }
}

/// Finds each `wgmma` whose descriptors not every way computes.
pub fn check(program: &Program) -> Vec<Finding> {
    if program.wgmmas.iter().all(Option::is_none) {
        return Vec::new();
    }
    let analysis = Descriptors(program);
    let states = solve(&analysis, &program.graph);
    let mut found: BTreeMap<usize, usize> = BTreeMap::new();
    visit(&analysis, &program.graph, &states, |state, at| {
        if program.wgmmas[at].is_none() {
            return;
        }
        let is_mixed = |word: &usize| state[*word] & CONSTANT != 0 && state[*word] & (NOTHING | OTHER) != 0;
        if let Some(word) = upper_words(&program.listing.code[at]).into_iter().find(is_mixed) {
            found.insert(at, word);
        }
    });
    let show = |(at, word)| {
        let why = format!("UR{word} of its descriptor is a constant on one way and something else on another");
        Finding::new(program, Rule::WgmmaDescriptor, at, why)
    };
    found.into_iter().map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(code: &str) -> Vec<String> {
        let mut text =
            ".headerflags @\"EF_CUDA_SM90\"\n.section .text.k,\"ax\"\n.other k,@\"STO_CUDA_ENTRY\"\n".to_owned();
        for (at, line) in code.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
            text += &if line.ends_with(':') { format!("{line}\n") } else { format!("/*{:04x}*/ {line} ;\n", 16 * at) };
        }
        check(&Program::read(&text).unwrap()).into_iter().map(|finding| finding.why).collect()
    }

    /// A loop with two products and, after it, two more; `moved` is what stands in the loop and not in its head.
    fn looped(before: &str, head: &str, moved: &str) -> String {
        format!(
            "{before}\nUMOV UR13, 0x40000040\nUMOV UR15, 0x40000040\nUMOV UR19, 0x40000040
            .head:
            ULEA UR12, UR4, UR5, 0xc\nULEA UR14, UR4, UR6, 0xc\nUMOV UR18, UR14\n{head}
            @P0 BRA `(.end)\n{moved}
            HGMMA.64x64x16.F32 R24, gdesc[UR12], R24\nHGMMA.64x64x16.F32 R24, gdesc[UR16], R24, gsb0
            BRA `(.head)
            .end:
            HGMMA.64x64x16.F32 R24, gdesc[UR12], R24\nHGMMA.64x64x16.F32 R24, gdesc[UR16], R24, gsb0\nEXIT"
        )
    }

    const SUM: &str = "UIADD3 UR16, UP0, UR12, 0x80, URZ\nUIADD3.X UR17, URZ, 0x40000040, URZ, UP0, !UPT";

    #[test]
    fn a_descriptor_that_the_loop_alone_computes() {
        assert_eq!(found(&looped("ULDC.64 UR16, c[0x0][0x208]", SUM, "NOP")), [""; 0]);
        let [why] = &found(&looped("ULDC.64 UR16, c[0x0][0x208]", "NOP", SUM))[..] else { panic!("one") };
        assert!(why.starts_with("UR17 "), "{why}");
        // Nothing wrote it before.
        assert_eq!(found(&looped("NOP", "NOP", SUM)).len(), 1);
        // In a guarded way.
        let guarded = format!("@UP1 {}", SUM.replace('\n', "\n@UP1 "));
        assert_eq!(found(&looped("S2UR UR17, SR_CTAID.X", &guarded, "NOP")).len(), 2);
    }

    #[test]
    fn a_move_from_an_ordinary_register_may_be_anything() {
        assert_eq!(found(&looped("R2UR UR17, R3", "NOP", SUM)), [""; 0]);
        assert_eq!(found(&looped("S2UR UR17, SR_CTAID.X", "NOP", SUM)).len(), 1);
    }
}
