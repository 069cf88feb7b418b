//! Shorter pipelines, for fewer iterations than a group's pipeline has stages.
//!
//! Code for each such trip count grows with the square of the stages: a group that loads indices ahead of what they address may
//! have 20 stages and more. Instead, the same events are done in a pipeline of half as many stages; what is still fewer, in one
//! of a quarter, and so on, which is in all no longer than the first. Loads are then as many iterations ahead as half of those
//! that there are.
//!
//! The last stages become one: there, an iteration's events follow each other in the order of the schedule.
//!
//! Groups that compute keep code for each trip count: MMAs that run from one iteration to the next would be waited for, and in machine
//! code the loop with MMAs would no longer be the one of the steady state.

use crate::passes::steps::build::StepBuilder;
use crate::passes::steps::order::Precedence;
use crate::passes::steps::program::{Block, GroupSteps};
use std::collections::HashMap;

/// Code for few iterations may take this many times the steps of that for many: up to 5 stages, each trip count has its own.
const MOST_TIMES: usize = 2;

impl StepBuilder<'_> {
    /// The group's program, with shorter pipelines where code for each trip count would be long.
    pub(super) fn with_shorter(&self, precedences: &[Precedence]) -> GroupSteps {
        let mut program = self.program();
        if own_code(&program) > MOST_TIMES * pipeline(&program) {
            let shorter = self.of_stages(i64::from(program.first / 2), precedences);
            program.shorter = shorter.map(|shorter| Box::new(shorter.with_shorter(precedences)));
        }
        program
    }

    /// The same with this many stages before the last; `None` where something would come too early.
    fn of_stages(&self, last: i64, precedences: &[Precedence]) -> Option<Self> {
        let mut order = self.stages_of_events();
        order.sort_by_key(|(_, stage)| (*stage).max(last));
        for (_, stage) in &mut order {
            *stage = last.min(*stage);
        }
        are_met(precedences, &order).then(|| self.reordered(order))
    }
}

/// Whether all that must come before something else does, among these events.
fn are_met(precedences: &[Precedence], order: &[(usize, i64)]) -> bool {
    let places: HashMap<usize, (i64, usize)> =
        order.iter().enumerate().map(|(position, (event, stage))| (*event, (*stage, position))).collect();
    precedences.iter().all(|p| match (places.get(&p.before), places.get(&p.after)) {
        (Some(before), Some((stage, position))) => *before <= (stage + p.distance, *position),
        _ => true,
    })
}

impl GroupSteps {
    /// Steps of its code, for all trip counts.
    pub(crate) fn length(&self) -> usize {
        let fewer = self.shorter.as_ref().map_or_else(|| own_code(self), |shorter| shorter.length());
        pipeline(self) + fewer
    }
}

/// Steps of code for each trip count below that of the steady state.
fn own_code(program: &GroupSteps) -> usize {
    let blocks = program.prologue.iter().chain(&program.epilogue);
    // A block is in the code for each trip count above its own.
    let copies = |block: &Block| program.first.saturating_sub(block.trip_count_above.saturating_add(1)) as usize;
    blocks.map(|block| copies(block) * block.steps.len()).sum()
}

/// Steps of prologue, steady state and epilogue.
fn pipeline(program: &GroupSteps) -> usize {
    let all = |blocks: &[Block]| blocks.iter().map(|block| block.steps.len()).sum::<usize>();
    all(&program.prologue) + program.steady.len() + all(&program.epilogue)
}
