//! Counts of arrivals: the range of them, one count for each ring, and barriers that nothing initialises.

use super::facts::{Facts, Kind, Use};
use crate::finding::{Finding, Rule};
use crate::program::Program;
use std::collections::{BTreeMap, BTreeSet};

/// Counts up to this are in range (PTX ISA, "mbarrier.init").
const MOST: u32 = (1 << 20) - 1;

/// The count that a state stands for: it holds 2^20 minus the count twice, at bits 1 and 43.
fn count(used: &Use) -> Option<u32> {
    let (low, high) = (used.operand.as_number()?, used.second.as_number()?);
    let pending = low >> 1;
    (low & 1 == 0 && high == pending.wrapping_shl(11)).then(|| (1u32 << 20).wrapping_sub(pending))
}

/// Finds counts that cannot be right.
pub fn check(program: &Program, facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for function in &program.listing.functions {
        let range = function.start..function.end;
        for (at, used) in facts.of_kind(range.clone(), Kind::Init) {
            if let Some(found) = count(used).filter(|count| *count == 0 || *count > MOST) {
                let why = format!("the barrier is to count {found} arrivals, and a count is 1 to {MOST}");
                findings.push(Finding::new(program, Rule::BarrierCount, at, why));
            }
        }
        // Memory of barriers that are invalidated holds others later.
        let is_reused = facts.of_kind(range.clone(), Kind::Invalidate).next().is_some();
        let is_read = facts.of_kind(range.clone(), Kind::Init).all(|(_, used)| used.is_one());
        if is_reused || !is_read {
            continue;
        }
        let inits: BTreeMap<u32, usize> =
            facts.of_kind(range.clone(), Kind::Init).filter_map(|(at, used)| Some((used.offset()?, at))).collect();
        if inits.is_empty() {
            continue;
        }
        findings.extend(uninitialised(program, facts, range.clone(), &inits));
        findings.extend(rings(program, facts, range, &inits));
    }
    findings
}

fn uninitialised(
    program: &Program,
    facts: &Facts,
    range: std::ops::Range<usize>,
    inits: &BTreeMap<u32, usize>,
) -> Vec<Finding> {
    let used = facts.uses.range(range).filter(|(_, used)| used.kind != Kind::Init);
    let mut said = BTreeSet::new();
    let lost = used.filter_map(|(at, used)| {
        let offset = used.offset()?;
        (!inits.contains_key(&offset) && said.insert(offset)).then_some((*at, offset))
    });
    let show = |(at, offset)| {
        let why = format!(
            "nothing initialises a barrier at {offset:#x} of shared memory, and all that is initialised is known"
        );
        Finding::new(program, Rule::BarrierUninitialised, at, why)
    };
    lost.map(show).collect()
}

/// One instruction that goes round a ring arrives at all of its barriers alike, so that they have one count.
fn rings(
    program: &Program,
    facts: &Facts,
    range: std::ops::Range<usize>,
    inits: &BTreeMap<u32, usize>,
) -> Vec<Finding> {
    let others = || facts.uses.range(range.clone()).filter(|(_, used)| !matches!(used.kind, Kind::Init | Kind::Copy));
    if others().any(|(_, used)| used.offset().is_none()) {
        return Vec::new();
    }
    let begins: BTreeSet<u32> = others().filter_map(|(_, used)| used.offset()).collect();
    let slots: BTreeSet<u32> =
        others().filter(|(_, used)| !used.is_one()).filter_map(|(_, used)| used.offset()).collect();
    let mut findings = Vec::new();
    for begin in slots {
        let end = begins.range(begin + 1..).next().copied().unwrap_or(u32::MAX);
        let mut first: Option<(usize, u32)> = None;
        let mut next = begin;
        for (offset, at) in inits.range(begin..end) {
            let Some(count) = facts.uses.get(at).and_then(count) else { break };
            if *offset != next {
                break;
            }
            next = offset + 8;
            match first {
                Some((other, known)) if known != count => {
                    let why = format!(
                        "this barrier counts {count} arrivals, and the first of its ring at {begin:#x} counts {known}"
                    );
                    findings.push(Finding::new(program, Rule::BarrierCount, *at, why).after(program, other, &[]));
                }
                Some(_) => {}
                None => first = Some((*at, count)),
            }
        }
    }
    findings
}
