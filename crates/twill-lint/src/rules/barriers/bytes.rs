//! Expected bytes: multiples of 16, in range, and the same wherever the same tensor maps are copied.
//!
//! A box's size is in its tensor map and not in the code. But a map has one size, so that two places that copy the same maps to
//! barriers expect the same bytes.

use super::facts::{Facts, Kind, Use};
use crate::constants::Value;
use crate::finding::{Finding, Rule};
use crate::program::Program;
use std::collections::BTreeMap;

/// Most bytes that a phase may expect (PTX ISA, "mbarrier", tx-count).
const MOST: u32 = (1 << 20) - 1;
/// What a bulk copy moves is a multiple of this (PTX ISA, "cp.async.bulk").
const UNIT: u32 = 16;

/// Copies, each with its tensor map.
type Maps = Vec<(String, Value)>;

/// Finds expected bytes that no copy brings.
pub fn check(program: &Program, facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for function in &program.listing.functions {
        let range = function.start..function.end;
        let mut sites: BTreeMap<Maps, Vec<(usize, u32)>> = BTreeMap::new();
        let expects: Vec<(usize, &Use)> = facts.of_kind(range.clone(), Kind::Expect).collect();
        for (index, (at, expect)) in expects.iter().enumerate() {
            let Some(bytes) = expect.operand.as_number() else { continue };
            if bytes > MOST || !bytes.is_multiple_of(UNIT) {
                let why = format!(
                    "the barrier is to expect {bytes} bytes, and copies bring multiples of {UNIT} up to {MOST}"
                );
                findings.push(Finding::new(program, Rule::BarrierBytes, *at, why));
                continue;
            }
            let next = expects[index + 1..].iter().find(|(_, other)| other.barrier == expect.barrier);
            let end = next.map_or(function.end, |(at, _)| *at);
            if let Some(maps) = maps(program, facts, *at..end, expect) {
                sites.entry(maps).or_default().push((*at, bytes));
            }
        }
        for sites in sites.values() {
            findings.extend(differing(program, sites));
        }
    }
    findings
}

/// The maps that are copied to the barrier up to where it is armed again; none if one of them is not known.
fn maps(program: &Program, facts: &Facts, range: std::ops::Range<usize>, expect: &Use) -> Option<Maps> {
    expect.offset()?;
    let mut found = Vec::new();
    for (at, copy) in facts.of_kind(range, Kind::Copy) {
        if copy.barrier == Value::Unknown {
            return None;
        }
        if copy.barrier == expect.barrier {
            found.push((program.listing.code[at].name.join("."), copy.operand));
        }
    }
    found.sort();
    (!found.is_empty() && found.iter().all(|(_, map)| *map != Value::Unknown)).then_some(found)
}

/// The places whose bytes are not those of most.
fn differing(program: &Program, sites: &[(usize, u32)]) -> Vec<Finding> {
    let votes = |bytes: u32| sites.iter().filter(|(_, other)| *other == bytes).count();
    let Some((first, usual)) = sites.iter().copied().max_by_key(|(at, bytes)| (votes(*bytes), std::cmp::Reverse(*at)))
    else {
        return Vec::new();
    };
    let show = |(at, bytes): &(usize, u32)| {
        let why = format!("the barrier is to expect {bytes} bytes of tensor maps that bring {usual} elsewhere");
        Finding::new(program, Rule::BarrierBytes, *at, why).after(program, first, &[])
    };
    sites.iter().filter(|(_, bytes)| *bytes != usual).map(show).collect()
}
