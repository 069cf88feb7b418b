//! `wgmma.mma_async` in machine code: `HGMMA` (f16, bf16, tf32), `QGMMA` (f8), `IGMMA` (integers) and `BGMMA` (bits).
//!
//! PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions": a warp group of 128 threads computes 64 rows
//! and N columns, so that a thread holds N/2 elements of the accumulator, and of the left operand 32 bytes of each of its rows:
//! four registers.

use super::effects::register;
use super::instruction::Instruction;
use super::registers::Registers;

/// Registers that hold a thread's share of the left operand.
const LEFT: u32 = 4;
const NAMES: [&str; 4] = ["HGMMA", "QGMMA", "IGMMA", "BGMMA"];

/// What a `wgmma` reads and writes while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wgmma {
    /// Its accumulator.
    pub accumulator: Registers,
    /// The first register of the accumulator.
    pub first: Option<u8>,
    /// True if it adds to what the accumulator holds.
    pub accumulates: bool,
    /// The left operand and what describes it, as far as they are in registers.
    pub operands: Registers,
    /// The group that it ends, as in `gsb0`: `wgmma.commit_group`.
    pub commits: Option<String>,
}

impl Wgmma {
    /// True for its instructions.
    pub fn is_one(instruction: &Instruction) -> bool {
        instruction.is(&NAMES)
    }

    /// Reads one; none of another instruction, or if it has no shape.
    pub fn read(instruction: &Instruction) -> Option<Wgmma> {
        if !Wgmma::is_one(instruction) {
            return None;
        }
        let shape = instruction.name.iter().position(|part| columns(part).is_some())?;
        let columns = columns(&instruction.name[shape])?;
        let is_half = instruction.name.get(shape + 1).is_some_and(|element| element == "F16");
        let width = if is_half { columns / 4 } else { columns / 2 };
        let (mut operands, mut accumulates) = (Registers::NONE, false);
        let mut after_descriptor = None;
        for (index, operand) in instruction.operands.iter().enumerate().skip(1) {
            let found = register(operand);
            if operand.starts_with("gdesc") {
                after_descriptor = Some(index + 1);
            } else if after_descriptor.is_none() {
                operands = operands.union(found.map_or(Registers::NONE, |first| Registers::range(first, LEFT)));
            } else if after_descriptor == Some(index) {
                accumulates = found.is_some();
            } else if let Some(first) = found {
                // The metadata of a sparse operand.
                operands = operands.union(Registers::range(first, 1));
            }
        }
        let first = register(instruction.operand(0));
        Some(Wgmma {
            accumulator: first.map_or(Registers::NONE, |first| Registers::range(first, width)),
            first,
            // `!UPT` is a scale of zero; another predicate may be one.
            accumulates: accumulates && !instruction.operands.iter().any(|operand| operand == "!UPT"),
            operands,
            commits: instruction.operands.iter().find(|operand| operand.starts_with("gsb")).cloned(),
        })
    }
}

/// Columns of a shape such as `64x128x16`.
fn columns(part: &str) -> Option<u32> {
    let mut sizes = part.split('x').map(|size| size.parse::<u32>().ok());
    let (rows, columns, depth) = (sizes.next()??, sizes.next()??, sizes.next()??);
    (rows == 64 && depth > 0 && (8..=256).contains(&columns) && sizes.next().is_none()).then_some(columns)
}

/// The scoreboard and the most groups in flight that a wait leaves: `WARPGROUP.DEPBAR.LE gsb0, 0x1`, of `wgmma.wait_group`.
pub fn wait(instruction: &Instruction) -> Option<(&str, u32)> {
    if instruction.base() != "WARPGROUP" || !instruction.has("DEPBAR") {
        return None;
    }
    let pending = instruction.operands.get(1).and_then(|text| super::instruction::number(text));
    Some((instruction.operand(0), pending?))
}

/// True for `WARPGROUP.ARRIVE`, which is `wgmma.fence`.
pub fn is_fence(instruction: &Instruction) -> bool {
    instruction.base() == "WARPGROUP" && instruction.has("ARRIVE")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Wgmma {
        Wgmma::read(&Instruction::read(0, text, None).unwrap()).unwrap()
    }

    #[test]
    fn accumulators_and_operands_are_those_of_the_shape() {
        let mma = read("HGMMA.64x128x16.F32 R24, R180, gdesc[UR8].tnspB, R24, gsb0");
        assert_eq!((mma.accumulator.to_string(), mma.operands.to_string()), ("R24..R87".into(), "R180..R183".into()));
        assert_eq!((mma.accumulates, mma.commits.as_deref()), (true, Some("gsb0")));
        let first = read("HGMMA.64x64x16.F16 R24, gdesc[UR8], RZ, !UPT");
        assert_eq!((first.accumulator.to_string(), first.accumulates), ("R24..R39".into(), false));
        assert!(first.operands.is_empty() && first.commits.is_none());
        assert_eq!(read("QGMMA.64x32x32.F32.E4M3.E4M3 R8, gdesc[UR4], R8").accumulator.to_string(), "R8..R23");
        assert_eq!(read("IGMMA.64x16x32.S8.S8 R8, R4, gdesc[UR4], R8").accumulator.to_string(), "R8..R15");
    }
}
