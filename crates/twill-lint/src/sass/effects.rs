//! Which registers an instruction reads and writes.
//!
//! No table of NVIDIA's says so for machine code. The widths are those of the suffixes (CUDA Binary Utilities, "Instruction Set
//! Reference"; Jia et al., Dissecting the NVIDIA Volta GPU architecture via microbenchmarking, 2018), and those of MMAs follow
//! from the fragments of PTX ISA, "Matrix Fragments for mma". Where a width is unknown, it is the least.

use super::instruction::Instruction;
use super::registers::Registers;
use super::wgmma::Wgmma;

/// What an instruction does with registers at once, as opposed to what a `wgmma` does later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Registers whose old value it uses.
    pub reads: Registers,
    /// Registers that it may change.
    pub writes: Registers,
}

/// Those whose operands are all read: they store, branch, compare into predicates, or write uniform registers alone.
const NO_RESULT: [&str; 42] = [
    "STS",
    "STG",
    "ST",
    "STL",
    "STSM",
    "RED",
    "REDG",
    "REDAS",
    "BAR",
    "BRA",
    "BRX",
    "JMP",
    "JMX",
    "CALL",
    "RET",
    "EXIT",
    "ISETP",
    "FSETP",
    "DSETP",
    "HSETP2",
    "PSETP",
    "PLOP3",
    "FCHK",
    "R2P",
    "R2UR",
    "WARPSYNC",
    "NANOSLEEP",
    "BSSY",
    "BSYNC",
    "LDGSTS",
    "CCTL",
    "CCTLL",
    "UTMALDG",
    "UTMASTG",
    "UTMAREDG",
    "UBLKCP",
    "UBLKRED",
    "VOTEU",
    "REDUX",
    "SUST",
    "UTMAPF",
    "ARRIVES",
];

impl Effects {
    /// Those of an instruction; of a `wgmma` none, because it reads and writes later ([`Wgmma`]).
    pub fn of(instruction: &Instruction) -> Effects {
        if Wgmma::is_one(instruction) {
            return Effects::default();
        }
        let mut effects = Effects::default();
        let operands = &instruction.operands;
        let result = result_of(instruction);
        for (index, operand) in operands.iter().enumerate() {
            match register(operand) {
                Some(first) if Some(index) == result => {
                    effects.writes = Registers::range(first, result_width(instruction));
                }
                Some(first) => {
                    let width = operand_width(instruction, index, result);
                    effects.reads = effects.reads.union(Registers::range(first, width));
                }
                // The result of RZ is none, and addresses and constants name registers as well.
                None => effects.reads = effects.reads.union(named(operand)),
            }
        }
        effects
    }
}

/// The place of the register that it writes: the first operand after predicates.
fn result_of(instruction: &Instruction) -> Option<usize> {
    if instruction.is(&NO_RESULT) {
        return None;
    }
    let first = instruction.operands.iter().position(|operand| !is_predicate(operand))?;
    let operand = instruction.operand(first);
    (register(operand).is_some() || operand == "RZ").then_some(first)
}

fn is_predicate(operand: &str) -> bool {
    let name = operand.trim_start_matches('!');
    let name = name.strip_prefix('U').unwrap_or(name);
    name == "PT" || name.strip_prefix('P').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
}

/// The register that an operand is, with its sign and suffixes: `-R4.reuse` and `|R4|`, but not `[R4]`.
pub(crate) fn register(operand: &str) -> Option<u8> {
    let rest = operand.trim_start_matches(['-', '~', '|', '!', '+']).strip_prefix('R')?;
    let digits = rest.trim_end_matches('|').split(['.', '|']).next()?.split_whitespace().next()?;
    digits.parse().ok().filter(|register| *register < 255)
}

/// Registers that the text of an operand names, in pairs where it says `.64`.
fn named(operand: &str) -> Registers {
    let bytes = operand.as_bytes();
    let mut found = Registers::NONE;
    for (at, _) in operand.match_indices('R') {
        if at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_') {
            continue;
        }
        let rest = &operand[at + 1..];
        let end = rest.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
        if let Ok(first @ 0..=254) = rest[..end].parse::<u8>() {
            let width = if rest[end..].starts_with(".64") { 2 } else { 1 };
            found = found.union(Registers::range(first, width));
        }
    }
    found
}

/// Registers of a load or store: by its suffix.
fn memory_width(instruction: &Instruction) -> u32 {
    let widths =
        [("128", 4), ("64", 2), ("BF16x8", 4), ("F16x8", 4), ("BF16x4", 2), ("F16x4", 2), ("F32x4", 4), ("F32x2", 2)];
    widths.iter().find(|(suffix, _)| instruction.has(suffix)).map_or(1, |(_, width)| *width)
}

/// Matrices of 8 by 8 that LDSM and STSM move: `M88.4`, `MT88.2`.
fn matrices(instruction: &Instruction) -> u32 {
    instruction.name.last().and_then(|count| count.parse().ok()).filter(|count| matches!(count, 2 | 4)).unwrap_or(1)
}

fn result_width(instruction: &Instruction) -> u32 {
    let has = |suffix: &str| instruction.has(suffix);
    let is_f64 = || instruction.name.get(1).is_some_and(|to| to == "F64");
    match instruction.base() {
        "LDSM" => matrices(instruction),
        "LDS" | "LDG" | "LD" | "LDL" | "LDC" | "ATOMG" | "ATOMS" | "ATOM" | "SYNCS" => memory_width(instruction),
        "HMMA" if has("F32") => 4,
        "IMMA" | "DMMA" | "BMMA" => 4,
        "CS2R" if has("32") => 1,
        "HMMA" | "CS2R" | "DADD" | "DMUL" | "DFMA" | "DMNMX" | "LEPC" => 2,
        "IMAD" if has("WIDE") => 2,
        "I2F" if has("F64") => 2,
        "F2I" if has("S64") || has("U64") => 2,
        "F2F" | "FRND" if is_f64() => 2,
        _ => 1,
    }
}

/// Registers of an operand that is one, from its place among those that are read.
fn operand_width(instruction: &Instruction, index: usize, result: Option<usize>) -> u32 {
    let first = result.unwrap_or(0).min(index);
    let place = instruction.operands[first..index].iter().filter(|operand| !is_predicate(operand)).count();
    match instruction.base() {
        "STSM" => matrices(instruction),
        "STS" | "STG" | "ST" | "STL" | "RED" | "REDG" | "ATOMG" | "ATOMS" | "ATOM" => memory_width(instruction),
        "DADD" | "DMUL" | "DFMA" | "DMNMX" | "DSETP" => 2,
        "IMAD" if instruction.has("WIDE") && place == 3 => 2,
        "HMMA" if place == 1 => left_width(instruction),
        "HMMA" if place == 2 => left_width(instruction) / 2,
        "HMMA" => result_width(instruction),
        _ => 1,
    }
}

/// Registers of the left operand of an `mma`: twice those of the right one.
fn left_width(instruction: &Instruction) -> u32 {
    if instruction.has("1688") && !instruction.has("TF32") { 2 } else { 4 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (String, String) {
        let effects = Effects::of(&Instruction::read(0, text, None).unwrap());
        (effects.writes.to_string(), effects.reads.to_string())
    }

    #[test]
    fn results_and_operands_have_the_width_of_the_suffix() {
        let cases = [
            ("F2FP.F16.F32.PACK_AB R87, R87, R86", "R87", "R86..R87"),
            ("LDG.E.128 R4, desc[UR4][R2.64+0x10]", "R4..R7", "R2..R3"),
            ("LDSM.16.M88.4 R4, [R2+UR4]", "R4..R7", "R2"),
            ("STSM.16.M88.4 [R3], R84", "", "R3, R84..R87"),
            ("STG.E.EF.64 desc[UR4][R2.64], R10", "", "R2..R3, R10..R11"),
            ("CS2R R28, SRZ", "R28..R29", ""),
            ("IMAD.WIDE.U32 R4, P0, R2, 0x4, R6", "R4..R5", "R2, R6..R7"),
            ("SHFL.BFLY PT, R5, R4, 0x1, 0x1f", "R5", "R4"),
            ("LOP3.LUT P0, RZ, R4, 0x1, RZ, 0xc0, !PT", "", "R4"),
            ("ISETP.GE.AND P0, PT, R4, R5, PT", "", "R4..R5"),
            ("HMMA.1688.F32.TF32 R4, R8, R12, R4", "R4..R7", "R4..R13"),
            ("R2UR UR4, R9", "", "R9"),
            ("FADD.FTZ R4, -R5.reuse, |R6|", "R4", "R5..R6"),
            ("LDC.64 R2, c[0x0][R8+0x210]", "R2..R3", "R8"),
            ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR6], R12", "", "R12"),
            ("SYNCS.ARRIVE.TRANS64 RZ, [UR4+0x30028], R3", "", "R3"),
            ("RET.REL.NODEC R6 `(kernel)", "", "R6"),
            ("HGMMA.64x128x16.F32 R24, gdesc[UR8], R24", "", ""),
        ];
        for (text, writes, reads) in cases {
            assert_eq!(of(text), (writes.to_owned(), reads.to_owned()), "{text}");
        }
    }
}
