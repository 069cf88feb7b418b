//! Instructions of machine code, as nvdisasm prints them.

use thiserror::Error;

/// The units that an instruction keeps busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// `HGMMA` and the like: an MMA of 64 rows and N columns.
    Mma {
        /// Columns of the result.
        columns: u32,
        /// True if the left operand is in registers.
        from_registers: bool,
        /// True if it ends a group of MMAs that can be waited for.
        commits: bool,
    },
    /// `WARPGROUP.DEPBAR`: waits until at most N groups of MMAs run.
    WaitMmas(usize),
    /// Floating-point multiplication and addition.
    Fma,
    /// Comparison, selection, integers, moves.
    Alu,
    /// Conversion, two elements at a time.
    Convert,
    /// `MUFU`: exponentials and the like.
    Special,
    /// `SHFL`: an exchange between threads.
    Exchange,
    /// Shared or global memory, and the bytes that a warp moves to or from shared memory.
    Memory {
        /// 0 for global memory.
        shared_bytes: u32,
    },
    /// `LDL` and `STL`: a value that has no register, and the words of four bytes that each thread moves.
    Local {
        /// 1, 2 or 4.
        words: u32,
        /// True if it comes back.
        is_load: bool,
    },
    /// A look at the phase of an `mbarrier`.
    Wait,
    /// An arrival at an `mbarrier`.
    Arrive,
    /// A named barrier.
    NamedBarrier {
        /// Its number.
        barrier: u32,
        /// Warp groups that must arrive.
        groups: u32,
        /// True if it waits for them.
        waits: bool,
    },
    /// All else: an issue slot.
    Other,
}

/// An instruction of a warp.
///
/// The control bits are those of compute capability 7.0 and later (Jia et al., Dissecting the NVIDIA Volta GPU architecture
/// via microbenchmarking, 2018, section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The units that it keeps busy.
    pub work: Work,
    /// Cycles until the warp issues its next instruction.
    pub stall: u8,
    /// The scoreboard that tells when its result is there.
    pub writes: Option<u8>,
    /// The scoreboard that tells when its operands have been read.
    pub reads: Option<u8>,
    /// Scoreboards it waits for, a bit each.
    pub waits: u8,
}

/// Scoreboards of a warp.
pub const SCOREBOARDS: usize = 6;

/// A line that is no instruction with its encoding.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no instruction as `nvdisasm -hex` prints them: {0:?}")]
pub struct NoInstruction(pub String);

impl Instruction {
    /// Reads `HGMMA.64x128x16.F32 R24, R152, gdesc[UR8], RZ, !UPT ; /* 0x01e0… */ /* 0x000f… */`: text, then both halves of
    /// the encoding.
    ///
    /// # Errors
    /// [`NoInstruction`] if there is no encoding.
    pub fn read(line: &str) -> Result<Instruction, NoInstruction> {
        let none = || NoInstruction(line.chars().take(100).collect());
        let (text, encoding) = line.split_once(';').ok_or_else(none)?;
        let high = encoding.rsplit("0x").next().unwrap_or_default();
        let digits: String = high.chars().take_while(char::is_ascii_hexdigit).collect();
        let control = u64::from_str_radix(&digits, 16).map_err(|_| none())? >> 41;
        let scoreboard = |bits: u64| Some((bits & 7) as u8).filter(|index| usize::from(*index) < SCOREBOARDS);
        Ok(Instruction {
            work: work(text),
            stall: (control & 15) as u8,
            writes: scoreboard(control >> 5),
            reads: scoreboard(control >> 8),
            waits: (control >> 11 & 63) as u8,
        })
    }
}

/// The units that an instruction without its predicate keeps busy.
fn work(text: &str) -> Work {
    let text = text.trim();
    let text = text.strip_prefix('@').map_or(text, |rest| rest.split_once(' ').map_or("", |(_, rest)| rest)).trim();
    let (name, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
    let base = name.split('.').next().unwrap_or_default();
    match base {
        "HGMMA" | "QGMMA" | "IGMMA" => Work::Mma {
            columns: name.split('.').find_map(|part| part.split('x').nth(1)?.parse().ok()).unwrap_or(0),
            from_registers: operands.get(1).is_some_and(|left| left.starts_with('R')),
            commits: operands.contains(&"gsb0"),
        },
        "WARPGROUP" if name.contains("DEPBAR") => Work::WaitMmas(number(operands.last()) as usize),
        "FFMA" | "FMUL" | "FADD" | "IMAD" | "HFMA2" | "HMUL2" | "HADD2" => Work::Fma,
        "FMNMX" | "FSETP" | "FSEL" | "FCHK" | "ISETP" | "IADD3" | "IABS" | "IMNMX" | "LOP3" | "SEL" | "SHF" | "LEA"
        | "MOV" | "PRMT" | "PLOP3" | "VOTE" | "ELECT" | "I2FP" => Work::Alu,
        "F2FP" | "F2F" | "F2I" | "I2F" => Work::Convert,
        "MUFU" => Work::Special,
        "SHFL" => Work::Exchange,
        "LDS" | "STS" => Work::Memory { shared_bytes: 128 * width(name, &[("128", 4), ("64", 2)]) },
        "LDSM" | "STSM" => Work::Memory { shared_bytes: 128 * width(name, &[("4", 4), ("2", 2)]) },
        "LDG" | "STG" | "LDC" | "ULDC" | "RED" | "REDG" | "ATOMG" | "LDGSTS" | "S2R" | "S2UR" => {
            Work::Memory { shared_bytes: 0 }
        }
        "LDL" | "STL" => Work::Local { words: width(name, &[("128", 4), ("64", 2)]), is_load: base == "LDL" },
        "SYNCS" if name.contains("TRYWAIT") => Work::Wait,
        "SYNCS" => Work::Arrive,
        "BAR" => {
            let barrier = number(operands.first());
            Work::NamedBarrier { barrier, groups: number(operands.get(1)) / 128, waits: !name.contains("ARV") }
        }
        _ => Work::Other,
    }
}

/// Words of 4 bytes that each thread moves: those of the first suffix that the name has; 1 where it has none.
fn width(name: &str, suffixes: &[(&str, u32)]) -> u32 {
    let has = |suffix: &str| name.split('.').any(|part| part == suffix);
    suffixes.iter().find(|(suffix, _)| has(suffix)).map_or(1, |(_, words)| *words)
}

/// A number in hexadecimal or decimal; 0 for anything else.
fn number(text: Option<&&str>) -> u32 {
    let text = text.copied().unwrap_or_default();
    text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u32::from_str_radix(digits, 16)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As CUDA 13.0's nvdisasm printed them.
    #[test]
    fn instructions_of_hopper_are_read() {
        let read = |text: &str| Instruction::read(text).unwrap();
        let mma = read(
            "HGMMA.64x128x16.F32 R24, R180, gdesc[UR8], R24, gsb0 ; /* 0x01e00008b4187df0 */ /* 0x000fe20008000818 */",
        );
        assert_eq!(mma.work, Work::Mma { columns: 128, from_registers: true, commits: true });
        assert_eq!((mma.stall, mma.writes, mma.reads, mma.waits), (1, None, None, 0));
        let arrive = read("BAR.ARV 0x8, 0x100 ; /* 0x0204000000007b1d */ /* 0x000fec0000002000 */");
        assert_eq!(arrive.work, Work::NamedBarrier { barrier: 8, groups: 2, waits: false });
        assert_eq!(arrive.stall, 6);
        assert_eq!(read("@!P0 BRA `(.L_x_19) ; /* 0x1 */ /* 0x002fea0000000000 */").waits, 2);
        assert!(Instruction::read("BRA `(.L_x_19)").is_err());
        let spilled = |text: &str| read(&format!("{text} ; /* 0x1 */ /* 0x002fea0000000000 */")).work;
        assert_eq!(spilled("LDL.64 R20, [R1+0x8]"), Work::Local { words: 2, is_load: true });
        assert_eq!(spilled("STL [R1], R20"), Work::Local { words: 1, is_load: false });
    }
}
