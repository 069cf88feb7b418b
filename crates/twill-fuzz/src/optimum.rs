//! Target: the exact engine's answers on small problems, against [`brute`](crate::brute) force.

use crate::brute::{self, Objectives, Optimum};
use crate::sample;
use crate::tape::Tape;
use twill_exact::{SearchOptions, schedule};
use twill_graph::{Cycles, Liveness, ObjectiveLevel, ObjectiveValue, Outcome, Problem, Report, Schedule};
use twill_reference::broken;

/// The comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compared {
    /// The bytes make no problem.
    Nothing,
    /// Brute force had too much to try.
    TooMuch,
    /// There is no schedule up to the largest interval, by both.
    Infeasible,
    /// There is none at any interval, by both.
    Impossible,
    /// The least interval.
    Interval,
    /// The least interval and every level of the objective.
    Objectives,
}

/// Largest interval that is tried where the one that is enough is larger.
const LARGEST: i64 = 10;

/// Choices of brute force, for an interval: a small part of a second.
const TRIES: u64 = 400_000;

/// Returns whether engine and brute force agree.
///
/// # Panics
/// When they do not.
pub fn check(bytes: &[u8]) -> Compared {
    let mut tape = Tape::new(bytes);
    let Some(mut problem) = sample::problem(&mut tape) else { return Compared::Nothing };
    if tape.one_in(3) {
        let Some(other) = sample::with_the_papers_liveness(&problem) else { return Compared::Nothing };
        problem = other;
    }
    let question = Question::new(problem);
    match question.by_force() {
        Optimum::TooMuch => Compared::TooMuch,
        answer => question.compare(answer, &question.by_engine()),
    }
}

/// A problem, up to some interval.
pub(crate) struct Question {
    pub(crate) problem: Problem,
    pub(crate) largest: i64,
    /// True if nothing new is possible above that.
    pub(crate) all: bool,
}

impl Question {
    pub(crate) fn new(problem: Problem) -> Question {
        let enough = brute::enough(&problem).max(1);
        Question { problem, largest: enough.min(LARGEST), all: enough <= LARGEST }
    }

    pub(crate) fn by_force(&self) -> Optimum {
        brute::optimum(&self.problem, self.largest, TRIES)
    }

    pub(crate) fn by_engine(&self) -> Report {
        let largest = (!self.all).then_some(Cycles(self.largest));
        schedule(&self.problem, &SearchOptions { largest_interval: largest, ..SearchOptions::default() }, &mut |_| {})
    }

    fn compare(&self, answer: Optimum, report: &Report) -> Compared {
        let Question { problem, largest, all } = self;
        // Nothing is proved of all numbers of stages then.
        let paper = problem.options().liveness == Liveness::Paper;
        match (answer, &report.outcome) {
            (Optimum::None, Outcome::Infeasible { .. }) if *all => Compared::Impossible,
            (Optimum::None, Outcome::Infeasible { .. }) => Compared::Infeasible,
            (Optimum::None, Outcome::Unknown { .. }) if paper => Compared::Infeasible,
            (Optimum::Found { interval, objectives }, Outcome::Optimal { schedule }) => {
                assert_eq!(report.lower_bound.interval.0, interval, "the bound of {problem:#?}");
                self.same(interval, objectives, schedule, &report.objectives)
            }
            (Optimum::Found { interval, objectives }, Outcome::Feasible { schedule }) if paper => {
                self.same(interval, objectives, schedule, &report.objectives)
            }
            (answer, outcome) => {
                let by_engine = outcome.status();
                let agree = false;
                assert!(agree, "by force {answer:?} up to {largest}, by the engine {by_engine}: {problem:#?}");
                Compared::Nothing
            }
        }
    }

    /// A schedule of the least interval, with the least objectives there.
    fn same(
        &self,
        interval: i64,
        objectives: Option<Objectives>,
        schedule: &Schedule,
        reached: &[ObjectiveValue],
    ) -> Compared {
        let problem = &self.problem;
        assert_eq!(schedule.interval.0, interval, "the least interval of {problem:#?}");
        assert!(broken(problem, schedule).is_empty(), "{schedule:#?}\nbreaks {problem:#?}");
        let rejected = twill_check::verify(problem, schedule.clone()).err();
        assert!(rejected.is_none(), "{rejected:?}: {schedule:#?}\n{problem:#?}");
        let Some(least) = objectives else { return Compared::Interval };
        let levels = [
            ObjectiveLevel::Stages,
            ObjectiveLevel::ComputeGroups,
            ObjectiveLevel::HandoffWords,
            ObjectiveLevel::Channels,
            ObjectiveLevel::Length,
            ObjectiveLevel::RegistersPerThread,
        ];
        let reached = levels.map(|level| reached.iter().find(|value| value.level == level));
        assert!(reached.iter().all(|v| v.is_some_and(|v| v.proved)), "{reached:?} of {problem:#?}");
        let reached = reached.map(|value| value.map_or(i64::MAX, |value| value.value));
        assert_eq!(reached, least, "objectives of the engine and by force, of {problem:#?}");
        Compared::Objectives
    }
}
