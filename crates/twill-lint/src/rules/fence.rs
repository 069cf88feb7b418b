//! Registers that a `wgmma` reads: `wgmma.fence` has to stand between an ordinary write and the `wgmma`.
//!
//! PTX ISA, "wgmma.fence": it orders accesses to registers between `wgmma.mma_async` and other operations; it is needed between
//! an access by a thread and any `wgmma.mma_async` that accesses the same register, as accumulator or as left operand, except
//! for MMAs of one shape that follow each other in one accumulator. In machine code it is `WARPGROUP.ARRIVE`.

use crate::finding::{Finding, Rule};
use crate::flow::{Analysis, Step, path, solve, visit};
use crate::program::Program;
use crate::sass::{Registers, is_fence};
use std::collections::BTreeMap;

/// The last write of each register since a fence, plus one; of several ways, the first in the text.
type Written = [u32; 256];

struct Unfenced<'a>(&'a Program);

impl Analysis for Unfenced<'_> {
    type State = Box<Written>;

    fn start(&self, _: usize) -> Self::State {
        Box::new([0; 256])
    }

    fn join(&self, state: &mut Self::State, other: &Self::State) -> bool {
        let mut is_new = false;
        for (known, other) in state.iter_mut().zip(other.iter()) {
            if *other != 0 && (*known == 0 || *other < *known) {
                (*known, is_new) = (*other, true);
            }
        }
        is_new
    }

    fn step(&self, state: &mut Self::State, at: usize) {
        let instruction = &self.0.listing.code[at];
        if is_fence(instruction) && instruction.guard.is_none() {
            **state = [0; 256];
        } else if let Some(mma) = &self.0.wgmmas[at] {
            mma.accumulator.iter().for_each(|register| state[usize::from(register)] = 0);
        } else {
            let writer = u32::try_from(at + 1).unwrap_or(u32::MAX);
            self.0.effects[at].writes.iter().for_each(|register| state[usize::from(register)] = writer);
        }
    }
}

/// Registers that the `wgmma` at a place reads.
fn read(program: &Program, at: usize) -> Option<Registers> {
    let mma = program.wgmmas[at].as_ref()?;
    Some(if mma.accumulates { mma.operands.union(mma.accumulator) } else { mma.operands })
}

/// Finds each `wgmma` that reads what was written with no fence since.
pub fn check(program: &Program) -> Vec<Finding> {
    if program.wgmmas.iter().all(Option::is_none) {
        return Vec::new();
    }
    let analysis = Unfenced(program);
    let states = solve(&analysis, &program.graph);
    let mut found: BTreeMap<usize, (usize, Registers)> = BTreeMap::new();
    visit(&analysis, &program.graph, &states, |state, at| {
        let Some(read) = read(program, at) else { return };
        for register in read.iter() {
            if let Some(writer) = state[usize::from(register)].checked_sub(1) {
                let entry = found.entry(at).or_insert((writer as usize, Registers::NONE));
                entry.1 = entry.1.union(Registers::range(register, 1));
            }
        }
    });
    let show = |(at, (writer, registers)): (usize, (usize, Registers))| {
        let way = path(&program.graph, writer, &(), at, |(), at| {
            let instruction = &program.listing.code[at];
            if is_fence(instruction) && instruction.guard.is_none() { Step::Ends } else { Step::On(()) }
        });
        let why = format!("{registers} was written with no WARPGROUP.ARRIVE since, and a wgmma reads it");
        Finding::new(program, Rule::WgmmaUnfenced, at, why).after(program, writer, &way)
    };
    found.into_iter().map(show).collect()
}
