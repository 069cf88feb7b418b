//! Hazards that are planted in real machine code: each is found, and without it nothing is.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use twill_lint::{Finding, Rule, lint};

/// A kernel of Triton 3.6 with the left operand of its MMAs in registers, as ptxas 13.4 assembles it.
const REGISTERS: &str = include_str!("listings/scaled_rows.ptxas-13.4.59.sass");
/// A matrix multiplication that Twill generated: TMA, rings of barriers, warp groups, a result that is copied by TMA.
const GEMM: &str = include_str!("listings/gemm_tma.sass");

/// The listing with another instruction at an offset.
fn with(listing: &str, offset: &str, new: &str) -> String {
    let marker = format!("/*{offset}*/");
    assert_eq!(listing.matches(&marker).count(), 1, "{offset}");
    let line = |line: &str| if line.contains(&marker) { format!("        {marker} {new} ;") } else { line.to_owned() };
    listing.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The listing with a label behind the instruction at an offset.
fn labelled(listing: &str, offset: &str, label: &str) -> String {
    let line = |line: &str| match line.contains(&format!("/*{offset}*/")) {
        true => format!("{line}\n{label}:"),
        false => line.to_owned(),
    };
    listing.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn findings(listing: &str) -> Vec<Finding> {
    lint(listing).unwrap().findings
}

/// What a rule finds first in a planted listing, after the unplanted one has shown to be clean.
fn planted(clean: &str, planted: &str, rule: Rule) -> Finding {
    assert_eq!(findings(clean), [], "the unplanted listing is clean");
    let found = findings(planted);
    found.iter().find(|finding| finding.rule == rule).unwrap_or_else(|| panic!("{rule:?}: {found:#?}")).clone()
}

#[test]
fn a_wait_that_is_dropped() {
    let found = planted(GEMM, &with(GEMM, "1100", "NOP"), Rule::WgmmaAccumulatorRead);
    assert_eq!(found.earlier.as_ref().unwrap().offset, 0x1000);
    assert_eq!(found.function, "gemm_tma");
}

#[test]
fn a_wait_that_leaves_one_group_more_in_flight() {
    planted(GEMM, &with(GEMM, "1100", "WARPGROUP.DEPBAR.LE gsb0, 0x1"), Rule::WgmmaAccumulatorRead);
}

#[test]
fn an_operand_that_is_reused_between_mma_and_wait() {
    let code = with(REGISTERS, "0c80", "MOV R89, RZ");
    let found = planted(REGISTERS, &code, Rule::WgmmaOperandWritten);
    assert_eq!((found.at.offset, found.earlier.unwrap().offset), (0xc80, 0xc70));
    assert!(found.why.starts_with("R89 "), "{}", found.why);
    assert_eq!(found.at.line, Some(14), "lines of the source are shown");
}

#[test]
fn an_accumulator_that_is_read_early() {
    let code = with(REGISTERS, "0c80", "FADD R4, R25, R4");
    assert_eq!(planted(REGISTERS, &code, Rule::WgmmaAccumulatorRead).at.offset, 0xc80);
}

#[test]
fn an_accumulator_that_is_written_early() {
    let code = with(REGISTERS, "0c80", "CS2R R86, SRZ");
    let found = planted(REGISTERS, &code, Rule::WgmmaAccumulatorWritten);
    assert!(found.why.starts_with("R86..R87 "), "{}", found.why);
}

#[test]
fn a_product_that_the_assembler_lost() {
    let wgmma = GEMM.lines().find(|line| line.contains("HGMMA")).unwrap();
    let offset = wgmma.split("/*").nth(1).and_then(|rest| rest.split("*/").next()).unwrap();
    let lost = with(GEMM, offset, "HGMMA.64x8x16.F16 RZ, gdesc[URZ], RZ, !UPT, gsb0");
    planted(GEMM, &lost, Rule::WgmmaLost);
}

#[test]
fn a_wait_that_one_branch_alone_passes() {
    let clean = labelled(REGISTERS, "0e50", ".L_planted");
    let found = planted(&clean, &with(&clean, "0e40", "@P3 BRA `(.L_planted)"), Rule::WgmmaAccumulatorRead);
    assert!(found.path.len() > 1, "{:x?}", found.path);
    planted(REGISTERS, &with(REGISTERS, "0e50", "@P3 WARPGROUP.DEPBAR.LE gsb0, 0x0"), Rule::WgmmaAccumulatorRead);
}

#[test]
fn a_hazard_across_the_back_edge() {
    let found =
        planted(REGISTERS, &with(REGISTERS, "0bc0", "WARPGROUP.DEPBAR.LE gsb0, 0x2"), Rule::WgmmaOperandWritten);
    let earlier = found.earlier.unwrap();
    assert!(earlier.offset > found.at.offset, "the MMA is of the iteration before");
    assert_eq!(found.path, [0x9e0, 0x9e0]);
}

#[test]
fn a_subroutine_that_writes_an_operand() {
    let called = with(REGISTERS, "0c80", "CALL.REL.NOINC `(.L_planted)");
    let end = "        /*fff0*/ MOV R90, RZ ;\n        /*10000*/ RET.REL.NODEC R4 `(scaled_rows) ;";
    let harmless = "        /*fff0*/ MOV R4, RZ ;\n        /*10000*/ RET.REL.NODEC R4 `(scaled_rows) ;";
    let (clean, code) = (format!("{called}\n.L_planted:\n{harmless}"), format!("{called}\n.L_planted:\n{end}"));
    assert_eq!(planted(&clean, &code, Rule::WgmmaOperandWritten).at.offset, 0xfff0);
}

#[test]
fn a_missing_fence_of_registers() {
    let found = planted(GEMM, &with(GEMM, "0ff0", "NOP"), Rule::WgmmaUnfenced);
    assert_eq!(found.at.offset, 0x1000);
    assert!(found.earlier.unwrap().instruction.starts_with("CS2R"));
}

#[test]
fn a_missing_fence_between_stores_and_the_copy_that_reads_them() {
    let found = planted(GEMM, &with(GEMM, "1560", "NOP"), Rule::ProxyUnfenced);
    assert!(found.earlier.unwrap().instruction.starts_with("STSM"));
}

#[test]
fn a_store_behind_the_fence_unless_all_threads_store_at_one_place() {
    let stored = with(GEMM, "1570", "STS [R20+0x100], R8");
    assert_eq!(planted(GEMM, &stored, Rule::ProxyUnfenced).earlier.unwrap().offset, 0x1570);
    let everywhere = with(&stored, "1550", "IMAD.U32 R20, RZ, RZ, UR14");
    assert_eq!(findings(&everywhere), []);
    // R2 is the number of the thread.
    planted(GEMM, &with(&stored, "1550", "LEA R20, R2, UR14, 0x3"), Rule::ProxyUnfenced);
}

#[test]
fn bytes_that_no_copy_brings() {
    let odd = with(GEMM, "1dd0", "@!P0 IMAD.MOV.U32 R3, RZ, RZ, 0x2008");
    assert_eq!(planted(GEMM, &odd, Rule::BarrierBytes).at.offset, 0x1e10);
    let other = with(GEMM, "2300", "@!P0 IMAD.MOV.U32 R3, RZ, RZ, 0x4000");
    let found = planted(GEMM, &other, Rule::BarrierBytes);
    assert!(found.why.contains("16384"), "{}", found.why);
}

#[test]
fn a_count_that_is_not_that_of_its_ring() {
    let at = GEMM.lines().position(|line| line.contains("[UR10+0x30030]")).unwrap();
    let lines: Vec<&str> = GEMM.lines().collect();
    let set = lines[..at].iter().rposition(|line| line.contains("UMOV UR4, 0x1 ;")).unwrap();
    let offset = lines[set].split("/*").nth(1).unwrap().split("*/").next().unwrap();
    let found = planted(GEMM, &with(GEMM, offset, "UMOV UR4, 0x2"), Rule::BarrierCount);
    assert!(found.why.contains("counts 2") && found.at.instruction.contains("0x30030"), "{found:#?}");
    planted(GEMM, &with(GEMM, offset, "UMOV UR4, 0x0"), Rule::BarrierCount);
}

#[test]
fn a_barrier_that_nothing_initialises() {
    let line = GEMM.lines().find(|line| line.contains("[UR10+0x30028]") && line.contains("EXCH")).unwrap();
    let offset = line.split("/*").nth(1).unwrap().split("*/").next().unwrap();
    let found = planted(GEMM, &with(GEMM, offset, "NOP"), Rule::BarrierUninitialised);
    assert!(found.why.contains("0x30428"), "{}", found.why);
}
