//! Many random kernels, and mistakes in their programs: the figures that say how much was tried.

use crate::fault::Fault;
use crate::mutate::{Mutant, sites};
use crate::trial::{Finding, Machines, Outcome, Trial};
use crate::warps::{Choice, Habit};
use serde::Serialize;
use std::collections::BTreeMap;
use twill_codegen::ir::WarpProgram;
use twill_graph::SplitMix64;

/// How much is tried.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Where seeds of kernels begin.
    pub seed: u64,
    /// Kernels that have programs; others do not count.
    pub programs: u64,
    /// Executions of each call with every habit.
    pub seeds: u64,
    /// Mistakes made in each program, chosen at random.
    pub mutants: usize,
}

/// The attempts, and their outcome.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Kernels that were generated.
    pub kernels: u64,
    /// The part of these that has programs.
    pub programs: u64,
    /// Executions that computed what they should.
    pub interleavings: u64,
    /// Steps of groups in them.
    pub steps: u64,
    /// Ends of asynchronous copies and MMAs in them.
    pub events: u64,
    /// The failures, with the seed of the kernel.
    pub findings: Vec<String>,
    /// Kernels without a program, by who refused.
    pub refused: BTreeMap<String, u64>,
    /// Programs with a mistake, by what the protocol checker and the executions say.
    pub mutants: MutantFigures,
    /// The same by kind of mistake.
    pub kinds: BTreeMap<String, MutantFigures>,
}

/// Programs with a mistake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MutantFigures {
    /// All.
    pub all: u64,
    /// The checker rejects it, and an execution went wrong.
    pub both: u64,
    /// The checker rejects it, and no execution went wrong.
    pub checker_alone: u64,
    /// Neither notices anything.
    pub harmless: u64,
    /// The checker did not come to a verdict.
    pub undecided: u64,
    /// The checker accepts it, and an execution went wrong: a defect of the checker.
    pub execution_alone: u64,
}

/// The outcome of an execution of a program with a mistake.
#[derive(Clone, Debug, PartialEq)]
enum Notice {
    Nothing,
    Wrong(String),
}

/// Runs a plan; `progress` is told after every kernel.
pub fn run(plan: Plan, machines: &Machines, progress: &mut dyn FnMut(&Report)) -> Report {
    let mut report = Report::default();
    let mut seed = plan.seed;
    while report.programs < plan.programs {
        let Some(trial) = Trial::of_seed(seed) else { break };
        report.kernels += 1;
        match trial.run(machines, plan.seeds) {
            Ok(Outcome::Refused(why)) => *report.refused.entry(shortened(&why)).or_default() += 1,
            Ok(Outcome::Agreed { interleavings, figures }) => {
                report.programs += 1;
                report.interleavings += interleavings;
                report.steps += figures.steps;
                report.events += figures.events;
                if plan.mutants > 0 {
                    mistakes(&trial, seed, plan.mutants, machines, &mut report);
                }
            }
            Err(finding) => {
                report.programs += 1;
                report.findings.push(format!("kernel {seed}: {finding}"));
            }
        }
        seed += 1;
        progress(&report);
    }
    report
}

/// The reason without places and numbers.
fn shortened(why: &str) -> String {
    let after = |mark: &str| why.find(mark).map(|k| &why[k + mark.len()..]);
    let what = after("code generation does not know ").unwrap_or(why);
    let words: Vec<&str> = what.split(';').next().unwrap_or(what).split_whitespace().collect();
    words.iter().filter(|w| !w.chars().any(|c| c.is_ascii_digit())).copied().collect::<Vec<_>>().join(" ")
}

fn mistakes(trial: &Trial, seed: u64, count: usize, machines: &Machines, report: &mut Report) {
    let Ok((compiled, program)) = trial.compile(machines) else { return };
    let calls: Result<Vec<_>, Finding> =
        (0..trial.calls.len()).map(|call| trial.expected(&compiled, &program, call)).collect();
    let Ok(calls) = calls else { return };
    let mut left = sites(&program);
    let mut random = SplitMix64::new(seed ^ 0x6d75_7461_6e74);
    let drawn = std::iter::from_fn(|| (!left.is_empty()).then(|| left.swap_remove(random.index(left.len()))));
    for mutant in drawn.filter_map(|site| site.mutant(&program)).take(count) {
        let notice = execute(&mutant.program, &calls);
        let figures = judge(&mutant, &notice);
        if figures.execution_alone > 0 {
            let Notice::Wrong(what) = &notice else { continue };
            report.findings.push(format!("kernel {seed}, {} at {}: accepted, but {what}", mutant.kind, mutant.place));
        }
        report.mutants.add(figures);
        report.kinds.entry(mutant.kind).or_default().add(figures);
    }
}

impl MutantFigures {
    fn add(&mut self, other: MutantFigures) {
        self.all += other.all;
        self.both += other.both;
        self.checker_alone += other.checker_alone;
        self.harmless += other.harmless;
        self.undecided += other.undecided;
        self.execution_alone += other.execution_alone;
    }
}

fn judge(mutant: &Mutant, notice: &Notice) -> MutantFigures {
    let mut figures = MutantFigures { all: 1, ..MutantFigures::default() };
    let is_wrong = *notice != Notice::Nothing;
    match (accepts(&mutant.program), is_wrong) {
        (Some(true), false) => figures.harmless = 1,
        (Some(true), true) => figures.execution_alone = 1,
        (Some(false), false) => figures.checker_alone = 1,
        (Some(false), true) => figures.both = 1,
        (None, _) => figures.undecided = 1,
    }
    figures
}

/// Returns whether the checker accepts a program; none without a verdict.
fn accepts(program: &WarpProgram) -> Option<bool> {
    match twill_codegen::check(program.clone()) {
        Ok(_) => Some(true),
        Err(twill_codegen::Error::Protocol { .. }) => Some(false),
        Err(_) => None,
    }
}

/// Executes a program until something goes wrong.
fn execute(program: &WarpProgram, calls: &[crate::trial::Expected]) -> Notice {
    for call in calls {
        for habit in Habit::ALL {
            match call.execute(program, &mut Choice::new(habit, 1)) {
                Ok(_) => {}
                // An unknown operation is no mistake of the program.
                Err(Finding::Fault { fault: Fault::Unknown { .. }, .. }) => return Notice::Nothing,
                Err(finding) => return Notice::Wrong(finding.to_string()),
            }
        }
    }
    Notice::Nothing
}
