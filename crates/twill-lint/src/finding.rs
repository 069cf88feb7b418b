//! What a rule has found, and where.

use crate::program::Program;
use serde::Serialize;

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A register of a left operand is written while a `wgmma` may still read it.
    WgmmaOperandWritten,
    /// An accumulator is read while a `wgmma` may still write it.
    WgmmaAccumulatorRead,
    /// An accumulator is written while a `wgmma` may still use it.
    WgmmaAccumulatorWritten,
    /// A `wgmma` reads a register that was written with no `wgmma.fence` since.
    WgmmaUnfenced,
    /// A `wgmma` without a result stands where the assembler lost one.
    WgmmaLost,
    /// A `wgmma` reads a descriptor that not every way to it computes.
    WgmmaDescriptor,
    /// The async proxy reads shared memory that was written with no proxy fence since.
    ProxyUnfenced,
    /// A barrier expects bytes that no copy can bring.
    BarrierBytes,
    /// A barrier's count of arrivals cannot be right.
    BarrierCount,
    /// A barrier is used that nothing initialises.
    BarrierUninitialised,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 10] = [
        Rule::WgmmaOperandWritten,
        Rule::WgmmaAccumulatorRead,
        Rule::WgmmaAccumulatorWritten,
        Rule::WgmmaUnfenced,
        Rule::WgmmaLost,
        Rule::WgmmaDescriptor,
        Rule::ProxyUnfenced,
        Rule::BarrierBytes,
        Rule::BarrierCount,
        Rule::BarrierUninitialised,
    ];

    /// What breaks it, in a sentence.
    pub const fn meaning(self) -> &'static str {
        match self {
            Rule::WgmmaOperandWritten => {
                "A register of a left operand is written before the wait that covers its wgmma."
            }
            Rule::WgmmaAccumulatorRead => "An accumulator is read before the wait that covers its wgmma.",
            Rule::WgmmaAccumulatorWritten => "An accumulator is written before the wait that covers its wgmma.",
            Rule::WgmmaUnfenced => "A wgmma reads a register that was written with no wgmma.fence since.",
            Rule::WgmmaLost => "A wgmma has no result: the assembler lost the one that was written.",
            Rule::WgmmaDescriptor => "A wgmma reads a descriptor that not every way to it computes.",
            Rule::ProxyUnfenced => "The async proxy reads shared memory that was written with no proxy fence since.",
            Rule::BarrierBytes => "A barrier expects bytes that no copy can bring.",
            Rule::BarrierCount => "A barrier's count of arrivals cannot be right.",
            Rule::BarrierUninitialised => "A barrier is used that nothing initialises.",
        }
    }

    /// Its name, as it is printed.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::WgmmaOperandWritten => "wgmma-operand-written",
            Rule::WgmmaAccumulatorRead => "wgmma-accumulator-read",
            Rule::WgmmaAccumulatorWritten => "wgmma-accumulator-written",
            Rule::WgmmaUnfenced => "wgmma-unfenced",
            Rule::WgmmaLost => "wgmma-lost",
            Rule::WgmmaDescriptor => "wgmma-descriptor",
            Rule::ProxyUnfenced => "proxy-unfenced",
            Rule::BarrierBytes => "barrier-bytes",
            Rule::BarrierCount => "barrier-count",
            Rule::BarrierUninitialised => "barrier-uninitialised",
        }
    }
}

/// An instruction, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Bytes from the beginning of the function.
    pub offset: u64,
    /// Its text.
    pub instruction: String,
    /// Its line in the listing, from 1 on.
    #[serde(skip)]
    pub listing_line: u32,
    /// The file that it comes from, where the cubin says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its line in that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Place {
    /// The instruction at a place of a program.
    pub fn of(program: &Program, at: usize) -> Place {
        let instruction = &program.listing.code[at];
        let line = instruction.line.as_ref();
        Place {
            offset: instruction.offset,
            instruction: instruction.text.clone(),
            listing_line: instruction.listing_line,
            file: line.map(|line| line.file.to_string()),
            line: line.map(|line| line.line),
        }
    }
}

/// Something that is wrong in the machine code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule that it breaks.
    pub rule: Rule,
    /// The function that it is in.
    pub function: String,
    /// The instruction that breaks it.
    pub at: Place,
    /// Why, in a sentence.
    pub why: String,
    /// The earlier instruction that it conflicts with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Place>,
    /// Offsets of the blocks from the earlier instruction to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<u64>,
    /// Later instructions that break the rule with the same earlier one.
    pub more: usize,
}

impl Finding {
    /// A finding at an instruction.
    pub fn new(program: &Program, rule: Rule, at: usize, why: String) -> Finding {
        let function = program.listing.function_of(at).map_or_else(String::new, |function| function.name.clone());
        Finding { rule, function, at: Place::of(program, at), why, earlier: None, path: Vec::new(), more: 0 }
    }

    /// The same, with the earlier instruction and the way from that.
    #[must_use]
    pub fn after(self, program: &Program, earlier: usize, path: &[usize]) -> Finding {
        let path = path.iter().map(|at| program.listing.code[*at].offset).collect();
        Finding { earlier: Some(Place::of(program, earlier)), path, ..self }
    }
}
