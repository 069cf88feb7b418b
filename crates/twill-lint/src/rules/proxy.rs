//! Shared memory between the proxies: what a thread stores has to be fenced before the async proxy reads it.
//!
//! PTX ISA, "Async proxy": `wgmma.mma_async` and bulk copies access shared memory through the async proxy, and
//! `fence.proxy.async` orders that with ordinary stores. In machine code it is `FENCE.VIEW.ASYNC`.
//!
//! Addresses are not compared. So a finding needs a store, then a barrier after which others may rely on it, then a read of the
//! async proxy, with no fence and no ordinary load from shared memory in between: a load after the barrier may be what the
//! store was for, as in a change of layout.

use crate::constants::{Constants, Value};
use crate::finding::{Finding, Rule};
use crate::flow::{Analysis, Step, path, solve, visit};
use crate::program::Program;
use crate::sass::Instruction;
use std::collections::{BTreeMap, BTreeSet};

/// A store, and whether a barrier has been passed since, on one way or another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Stored {
    before_barrier: bool,
    after_barrier: bool,
}

struct Unfenced<'a> {
    program: &'a Program,
    stores: BTreeSet<usize>,
}

/// Stores whose address depends on the thread. All threads store a scalar at one place, and the async proxy reads tiles.
fn stores(program: &Program) -> BTreeSet<usize> {
    let code = &program.listing.code;
    let has_address = |operand: &str| operand.starts_with("[R") && !operand.starts_with("[RZ");
    let is_one = |at: &usize| code[*at].is(&["STS", "STSM"]) && has_address(code[*at].operand(0));
    let mut found: BTreeSet<usize> = (0..code.len()).filter(is_one).collect();
    if !found.is_empty() {
        // An address that is known is that of all threads; a place at some multiple of 8 may be each thread's own.
        let constants = Constants::of(program);
        let mut elsewhere = BTreeSet::new();
        constants.visit(|known, at| {
            let is_one = |operand| matches!(constants.address(known, &code[at], operand), Value::Known(..));
            if found.contains(&at) && !is_one(code[at].operand(0)) {
                elsewhere.insert(at);
            }
        });
        found = elsewhere;
    }
    found
}

fn loads(instruction: &Instruction) -> bool {
    instruction.is(&["LDS", "LDSM", "ATOMS"])
}

fn fences(instruction: &Instruction) -> bool {
    instruction.base() == "FENCE" && instruction.has("ASYNC") && instruction.guard.is_none()
}

fn is_barrier(instruction: &Instruction) -> bool {
    instruction.base() == "BAR" && !instruction.has("ARV")
}

/// What the async proxy reads from shared memory: operands of a `wgmma`, and copies to global memory.
fn reads_async(instruction: &Instruction) -> bool {
    let copies = instruction.is(&["UTMASTG", "UTMAREDG", "UBLKRED"])
        || instruction.base() == "UBLKCP" && instruction.name.get(1).is_some_and(|to| to == "G");
    copies || instruction.operands.iter().any(|operand| operand.starts_with("gdesc"))
}

fn next(stored: Stored, instruction: &Instruction) -> Option<Stored> {
    if fences(instruction) {
        return None;
    }
    if is_barrier(instruction) {
        let is_unconditional = instruction.guard.is_none();
        return Some(Stored { before_barrier: stored.before_barrier && !is_unconditional, after_barrier: true });
    }
    if loads(instruction) {
        return stored.before_barrier.then_some(Stored { after_barrier: false, ..stored });
    }
    Some(stored)
}

impl Analysis for Unfenced<'_> {
    type State = BTreeMap<usize, Stored>;

    fn start(&self, _: usize) -> Self::State {
        BTreeMap::new()
    }

    fn join(&self, state: &mut Self::State, other: &Self::State) -> bool {
        let mut is_new = false;
        for (store, stored) in other {
            let known = state.entry(*store).or_default();
            let both = Stored {
                before_barrier: known.before_barrier || stored.before_barrier,
                after_barrier: known.after_barrier || stored.after_barrier,
            };
            is_new |= both != *known;
            *known = both;
        }
        is_new
    }

    fn step(&self, state: &mut Self::State, at: usize) {
        let instruction = &self.program.listing.code[at];
        state.retain(|_, stored| match next(*stored, instruction) {
            Some(next) => {
                *stored = next;
                true
            }
            None => false,
        });
        if self.stores.contains(&at) {
            state.insert(at, Stored { before_barrier: true, after_barrier: false });
        }
    }
}

/// Finds what the async proxy reads with no fence since the store.
pub fn check(program: &Program) -> Vec<Finding> {
    let code = &program.listing.code;
    if !code.iter().any(reads_async) {
        return Vec::new();
    }
    let analysis = Unfenced { program, stores: stores(program) };
    if analysis.stores.is_empty() {
        return Vec::new();
    }
    let states = solve(&analysis, &program.graph);
    let mut found: BTreeMap<usize, usize> = BTreeMap::new();
    let mut stores: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    visit(&analysis, &program.graph, &states, |state, at| {
        if !reads_async(&code[at]) {
            return;
        }
        for (store, _) in state.iter().filter(|(_, stored)| stored.after_barrier) {
            found.entry(*store).or_insert(at);
            stores.entry(at).or_default().insert(*store);
        }
    });
    let mut findings = Vec::new();
    let mut said = BTreeSet::new();
    for (store, at) in found {
        if !said.insert(at) {
            continue;
        }
        let begin = Stored { before_barrier: true, after_barrier: false };
        let way =
            path(&program.graph, store, &begin, at, |stored, at| next(*stored, &code[at]).map_or(Step::Ends, Step::On));
        let why =
            "the async proxy reads shared memory, and since the store and its barrier there is no FENCE.VIEW.ASYNC";
        let mut finding = Finding::new(program, Rule::ProxyUnfenced, at, why.to_owned()).after(program, store, &way);
        finding.more = stores.get(&at).map_or(0, |stores| stores.len().saturating_sub(1));
        findings.push(finding);
    }
    findings
}
