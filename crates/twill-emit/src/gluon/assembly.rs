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

    /// Whether registers did not suffice: multiplies run one by one, or values went to memory.
    pub fn is_short_of_registers(&self) -> bool {
        ["serialised", "spilled", "registers_refused"].iter().any(|kind| self.count(kind) > 0)
    }
}
