//! What the assembler made of a kernel, as `assemble.py --json` reports it (docs/formats.md, "A report on machine code").

use serde::{Deserialize, Serialize};

/// A kernel's machine code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assembly {
    /// Registers a thread at the kernel's entry.
    pub registers: u32,
    /// Bytes of spill stores.
    pub spill_stores: u64,
    /// Bytes of spill loads.
    pub spill_loads: u64,
    /// Bytes of shared memory.
    pub shared_memory: u64,
    /// Where barriers begin in shared memory, in bytes; negative where the kernel leaves them to Gluon.
    #[serde(skip_serializing)]
    pub barriers_at: i64,
    /// Where the machine code is not what the schedule was made for.
    pub findings: Vec<Finding>,
    /// Code of the warp groups, where it was disassembled.
    #[serde(default, skip_serializing)]
    pub groups: Vec<AssembledGroup>,
}

/// Machine code of a warp group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AssembledGroup {
    /// Its innermost loops that load, multiply or exponentiate, in the order of the code.
    #[serde(default)]
    pub loops: Vec<AssembledLoop>,
}

/// Machine code of a loop.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AssembledLoop {
    /// Multiplies that it issues.
    #[serde(default)]
    pub mma: usize,
    /// Its instructions in order, each with its encoding.
    #[serde(default)]
    pub code: Vec<String>,
}

/// Something to know about machine code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Such as `spilled`, `serialised`.
    pub kind: String,
    /// In words.
    pub message: String,
}

impl Assembly {
    /// Findings of a kind.
    pub fn count(&self, kind: &str) -> usize {
        self.findings.iter().filter(|f| f.kind == kind).count()
    }

    /// The code of a loop of the kernel, of so many, in each group that multiplies in it; empty where it is not known.
    pub fn code_of_loop(&self, index: usize, count: usize) -> Vec<&[String]> {
        let multiplying = |g: &'_ AssembledGroup| -> Vec<usize> {
            (0..g.loops.len()).filter(|k| g.loops[*k].mma > 0 && !g.loops[*k].code.is_empty()).collect()
        };
        let groups: Vec<(&AssembledGroup, Vec<usize>)> =
            self.groups.iter().map(|g| (g, multiplying(g))).filter(|(_, loops)| !loops.is_empty()).collect();
        // ptxas may unroll a loop or split it; then which is which is not known.
        if groups.iter().any(|(_, loops)| loops.len() != count) {
            return Vec::new();
        }
        groups.iter().filter_map(|(g, loops)| Some(g.loops[*loops.get(index)?].code.as_slice())).collect()
    }

    /// Whether registers did not suffice: multiplies run one by one, or values went to memory.
    pub fn is_short_of_registers(&self) -> bool {
        ["serialised", "spilled", "registers_refused"].iter().any(|kind| self.count(kind) > 0)
    }
}
