//! Registers of a `wgmma` that runs: neither its accumulator nor its operands may be touched before the wait for it.
//!
//! PTX ISA, "wgmma.wait_group": accessing the accumulator or the registers of the left operand without a wait for the group of
//! the `wgmma.mma_async` is undefined. Machine code ends a group with `gsb0` on its last `HGMMA` (`wgmma.commit_group`), and
//! `WARPGROUP.DEPBAR.LE gsb0, N` waits until at most the N newest groups run.

use crate::finding::{Finding, Rule};
use crate::flow::{Analysis, Step, path, solve, visit};
use crate::program::Program;
use crate::sass::{Registers, wait};
use std::collections::{BTreeMap, HashMap};

/// Groups that were ended after that of a `wgmma`, at least: of all ways to a place, the one with the fewest. Its own group is
/// not ended yet if it is [`OPEN`].
type Newer = u32;
const OPEN: Newer = 0;
/// More than any wait leaves in flight.
const OLDEST: Newer = 64;

struct InFlight<'a>(&'a Program);

impl InFlight<'_> {
    /// What becomes of a `wgmma` in flight at an instruction; none if it is waited for.
    fn next(&self, newer: Newer, at: usize) -> Option<Newer> {
        let instruction = &self.0.listing.code[at];
        if instruction.guard.is_some() {
            // It may not be executed, which leaves more in flight.
            return Some(newer);
        }
        if let Some((_, pending)) = wait(instruction) {
            return (newer <= pending).then_some(newer);
        }
        let commits = self.0.wgmmas[at].as_ref().is_some_and(|mma| mma.commits.is_some());
        Some(if commits { (newer + 1).min(OLDEST) } else { newer })
    }
}

impl Analysis for InFlight<'_> {
    type State = BTreeMap<usize, Newer>;

    fn start(&self, _: usize) -> Self::State {
        BTreeMap::new()
    }

    fn join(&self, state: &mut Self::State, other: &Self::State) -> bool {
        let mut is_new = false;
        for (mma, newer) in other {
            match state.get_mut(mma) {
                Some(known) if *known <= *newer => {}
                Some(known) => (*known, is_new) = (*newer, true),
                None => is_new = state.insert(*mma, *newer).is_none() || is_new,
            }
        }
        is_new
    }

    fn step(&self, state: &mut Self::State, at: usize) {
        if self.0.wgmmas[at].is_some() {
            state.insert(at, OPEN);
        }
        state.retain(|_, newer| match self.next(*newer, at) {
            Some(next) => {
                *newer = next;
                true
            }
            None => false,
        });
    }
}

/// What is wrong with an instruction while a `wgmma` runs.
fn conflict(program: &Program, mma: usize, at: usize) -> Option<(Rule, Registers)> {
    let running = program.wgmmas[mma].as_ref()?;
    let Some(next) = &program.wgmmas[at] else {
        let effects = program.effects[at];
        let found = [
            (Rule::WgmmaAccumulatorWritten, effects.writes.intersection(running.accumulator)),
            (Rule::WgmmaAccumulatorRead, effects.reads.intersection(running.accumulator)),
            (Rule::WgmmaOperandWritten, effects.writes.intersection(running.operands)),
        ];
        return found.into_iter().find(|(_, registers)| !registers.is_empty());
    };
    // Those of one shape follow each other in one accumulator, in order (PTX ISA, "wgmma.fence").
    let read = next.operands.intersection(running.accumulator);
    if !read.is_empty() {
        return Some((Rule::WgmmaAccumulatorRead, read));
    }
    let both = next.accumulator.intersection(running.accumulator);
    (!both.is_empty() && next.accumulator != running.accumulator).then_some((Rule::WgmmaAccumulatorWritten, both))
}

/// Finds what touches registers of a `wgmma` in flight.
pub fn check(program: &Program) -> Vec<Finding> {
    if program.wgmmas.iter().all(Option::is_none) {
        return Vec::new();
    }
    let analysis = InFlight(program);
    let states = solve(&analysis, &program.graph);
    let mut found: BTreeMap<(Rule, usize), (usize, Registers)> = BTreeMap::new();
    let mut seen: HashMap<(Rule, usize), Vec<usize>> = HashMap::new();
    visit(&analysis, &program.graph, &states, |state, at| {
        for mma in state.keys() {
            if let Some((rule, registers)) = conflict(program, *mma, at) {
                found.entry((rule, *mma)).or_insert((at, registers));
                let ats = seen.entry((rule, *mma)).or_default();
                if !ats.contains(&at) {
                    ats.push(at);
                }
            }
        }
    });
    let mut findings = Vec::new();
    let mut said = std::collections::BTreeSet::new();
    for ((rule, mma), (at, registers)) in found {
        // Of several MMAs that one instruction conflicts with, the first is shown.
        if !said.insert((rule, at)) {
            continue;
        }
        let start = analysis.next(OPEN, mma).unwrap_or(OPEN);
        let way =
            path(&program.graph, mma, &start, at, |newer, at| analysis.next(*newer, at).map_or(Step::Ends, Step::On));
        let what = match rule {
            Rule::WgmmaOperandWritten => "is written, and the left operand of a wgmma that no wait covers yet",
            Rule::WgmmaAccumulatorRead => "is read, and the accumulator of a wgmma that no wait covers yet",
            _ => "is written, and the accumulator of a wgmma that no wait covers yet",
        };
        let mut finding = Finding::new(program, rule, at, format!("{registers} {what}")).after(program, mma, &way);
        finding.more = seen.get(&(rule, mma)).map_or(0, |ats| ats.len().saturating_sub(1));
        findings.push(finding);
    }
    findings
}
