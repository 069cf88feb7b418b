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
    /// Sums of `wgmma` that nothing reads in the PTX, which ptxas leaves no register for.
    #[serde(default, skip_serializing)]
    pub unused_products: usize,
    /// What assembled it, with its version, and what there is to know of an old one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assembler: Option<String>,
    /// Where the machine code is not what the schedule was made for.
    pub findings: Vec<Finding>,
    /// What `twill lint` says of the machine code, where it has looked at it. Each finding is among the others as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lint: Option<Linted>,
    /// Code of the warp groups, where it was disassembled.
    #[serde(default, skip_serializing)]
    pub groups: Vec<AssembledGroup>,
}

/// Bytes of spills, stores and loads, that matter wherever they are: less is nothing next to a longer interval.
pub const MANY_SPILLED: u64 = 256;

/// What the checker of machine code has looked at, and what it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linted {
    /// Instructions.
    pub instructions: usize,
    /// Those that are a `wgmma`.
    pub wgmmas: usize,
    /// What it found.
    pub findings: usize,
}

/// What a finding of the checker of machine code is: a hazard, so that the kernel must not run.
pub const HAZARD: &str = "hazard";

/// Machine code of a warp group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct AssembledGroup {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Registers a thread that it uses, at most; 0 where it is not known.
    #[serde(default)]
    pub used_registers: u32,
    /// Instructions that read what was spilled, anywhere in it.
    #[serde(default)]
    pub local_loads: u32,
    /// Instructions that spill.
    #[serde(default)]
    pub local_stores: u32,
    /// Its innermost loops that load, issue MMAs or exponentiate, in the order of the code.
    #[serde(default)]
    pub loops: Vec<AssembledLoop>,
}

/// Machine code of a loop.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AssembledLoop {
    /// MMAs that it issues.
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

    /// The code of a loop of the kernel, of N, in each group that issues MMAs in it; empty where it is not known.
    pub fn code_of_loop(&self, index: usize, count: usize) -> Vec<&[String]> {
        let with_mmas = |g: &'_ AssembledGroup| -> Vec<usize> {
            (0..g.loops.len()).filter(|k| g.loops[*k].mma > 0 && !g.loops[*k].code.is_empty()).collect()
        };
        let groups: Vec<(&AssembledGroup, Vec<usize>)> =
            self.groups.iter().map(|g| (g, with_mmas(g))).filter(|(_, loops)| !loops.is_empty()).collect();
        // ptxas may unroll a loop or split it; then which is which is not known.
        if groups.iter().any(|(_, loops)| loops.len() != count) {
            return Vec::new();
        }
        groups.iter().filter_map(|(g, loops)| Some(g.loops[*loops.get(index)?].code.as_slice())).collect()
    }

    /// Instructions of the innermost loops that keep values in memory for want of registers; those outside of loops are
    /// counted too where the code is not known.
    pub fn spills_in_loops(&self) -> u64 {
        let codes: Vec<&[String]> = self.groups.iter().flat_map(|g| &g.loops).map(|l| l.code.as_slice()).collect();
        if codes.is_empty() || codes.iter().any(|code| code.is_empty()) {
            return self.spill_stores + self.spill_loads;
        }
        let local = |line: &&String| line.contains("LDL") || line.contains("STL");
        codes.iter().map(|code| code.iter().filter(local).count() as u64).sum()
    }

    /// Of a group, values that it keeps in memory for want of registers, at least; 0 where its code is not known.
    pub fn spilled_by(&self, group: &str) -> u32 {
        let of = self.groups.iter().find(|own| own.name == group);
        of.map_or(0, |own| own.local_stores.max(own.local_loads))
    }

    /// Whether no thread block has the shared memory that it takes.
    pub fn is_too_large(&self) -> bool {
        self.count("too_large") > 0
    }

    /// Why it must not run: it does not fit, ptxas reads results of MMAs before they are there, or it has another hazard.
    pub fn unusable(&self) -> Option<String> {
        let found =
            self.findings.iter().find(|found| matches!(found.kind.as_str(), "too_large" | "early_use" | HAZARD));
        found.map(|found| found.message.clone())
    }

    /// Whether it must not run ([`unusable`](Assembly::unusable)).
    pub fn is_unusable(&self) -> bool {
        self.unusable().is_some()
    }

    /// Whether registers did not suffice: MMAs run one by one, or values went to memory, in loops or that many of them
    /// that it matters outside as well.
    pub fn is_short_of_registers(&self) -> bool {
        let spills = self.spills_in_loops() > 0 || self.spill_stores + self.spill_loads >= MANY_SPILLED;
        spills || ["serialised", "registers_refused", "early_use", HAZARD].iter().any(|kind| self.count(kind) > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assembly(bytes: u64, code: &[&str]) -> Assembly {
        let code = code.iter().map(|line| (*line).to_owned()).collect();
        let groups = vec![AssembledGroup { loops: vec![AssembledLoop { mma: 8, code }], ..AssembledGroup::default() }];
        let finding = Finding { kind: "spilled".into(), message: String::new() };
        let findings = vec![finding];
        let (registers, shared_memory, barriers_at) = (168, 0, 0);
        Assembly {
            registers,
            spill_stores: bytes,
            spill_loads: bytes,
            shared_memory,
            barriers_at,
            unused_products: 0,
            assembler: None,
            findings,
            lint: None,
            groups,
        }
    }

    #[test]
    fn few_spills_outside_of_loops_are_no_want_of_registers() {
        let code = ["HGMMA.64x128x16.F32 R24, gdesc[UR12], RZ", "MUFU.EX2 R24, R24"];
        let outside = assembly(12, &code);
        assert_eq!((outside.spills_in_loops(), outside.is_short_of_registers()), (0, false));
        assert!(assembly(128, &code).is_short_of_registers(), "that many matter anywhere");
        let inside = assembly(12, &[code[0], "STL [R1+0x8], R3", "LDL R3, [R1+0x8]"]);
        assert_eq!((inside.spills_in_loops(), inside.is_short_of_registers()), (2, true));
        assert!(assembly(12, &[]).is_short_of_registers(), "nothing is known of the code");
    }

    #[test]
    fn spills_are_those_of_a_group() {
        let group = |name: &str, local_stores, local_loads| AssembledGroup {
            name: name.into(),
            local_stores,
            local_loads,
            used_registers: 0,
            loops: Vec::new(),
        };
        let assembly = Assembly { groups: vec![group("compute_0", 3, 0), group("load", 1, 4)], ..assembly(16, &[]) };
        assert_eq!(["compute_0", "load", "mma"].map(|name| assembly.spilled_by(name)), [3, 4, 0]);
    }

    #[test]
    fn what_no_thread_block_can_have_is_too_large() {
        let finding = Finding { kind: "too_large".into(), message: String::new() };
        let large = Assembly { findings: vec![finding], ..assembly(0, &["HGMMA"]) };
        assert!(large.is_too_large() && !assembly(0, &["HGMMA"]).is_too_large());
    }
}
