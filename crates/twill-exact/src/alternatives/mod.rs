//! Several schedules that are really different, the best first: the model's cycles are estimates, so what is equal or
//! nearly equal in them is worth timing.
//!
//! The next schedule answers the question of the search with one clause for each schedule before it: differ in
//! something (`normalized.rs`). So it is the best of those that are left, goes through the same objective and extraction,
//! and an answer "none" proves that there is no other.

mod difference;
mod normalized;

pub use difference::{Difference, differences};

use crate::bounds;
use crate::compact;
use crate::encoding::{Anchor, Candidate, Encoding, Question, Reply, Stages};
use crate::extract;
use crate::limits::{Budget, Meter};
use crate::objective;
use crate::progress::Progress;
use crate::query;
use normalized::{NormalizedSchedule, Scope};
use twill_graph::{
    Cycles, Families, Liveness, ObjectiveLevel, ObjectiveValue, OpId, Outcome, Problem, Report, Schedule, StageWindow,
};

/// Which other schedules are wanted, and how long to look for them.
#[derive(Clone, Debug)]
pub struct AlternativeOptions {
    /// Schedules in all, the first one included.
    pub most: usize,
    /// How much longer than the first one's an interval may be, as part of it: 0.05 is 5 %.
    pub within: f64,
    /// Stages allowed beyond those of the first one.
    pub more_stages: u32,
    /// When to give up altogether.
    pub budget: Budget,
    /// Work units for the search of one further schedule (about a million a second). Where they do not suffice, the
    /// search goes on with more stages, then at larger intervals, and completeness is no longer claimed.
    pub work_each: Option<u64>,
    /// Work units for each secondary objective of one schedule.
    pub objective_work: Option<u64>,
}

impl Default for AlternativeOptions {
    fn default() -> Self {
        AlternativeOptions {
            most: 8,
            within: 0.0,
            more_stages: 1,
            budget: Budget::default(),
            work_each: Some(5_000_000),
            objective_work: Some(500_000),
        }
    }
}

/// Several schedules of one problem.
#[derive(Clone, Debug)]
pub struct Alternatives {
    /// One for each schedule, as of a search that found it; the first is the report that was given. Of the bound and the
    /// rejections they say what that one says. A secondary objective counts as proved where it and those before it are
    /// equal to the first one's, which are.
    pub reports: Vec<Report>,
    /// Proved: every other schedule from the first one's interval up to this one, with at most `stages` stages, is like
    /// one of the reports. `None` when that is not known even for the first one's interval.
    pub complete_through: Option<Cycles>,
    /// Stages that were allowed.
    pub stages: u32,
    /// Why there are no more.
    pub end: End,
}

/// Why an enumeration ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// As many were found as were wanted.
    Most,
    /// Proved: there are no more within the stages and intervals allowed.
    Complete,
    /// Nothing more was found, but some question took more work than one schedule is worth.
    Unproved,
    /// The budget was used up.
    Stopped {
        /// The reason for its end.
        by: String,
    },
}

/// Up to [`AlternativeOptions::most`] schedules, every one really different from those before it: the schedule of
/// `report`, which comes from [`schedule`](crate::schedule) on the same problem, and others at its interval and above.
///
/// Schedules are alike, and only one of them is given, when, up to the names of interchangeable warp groups and
/// sub-tiles, the same operations run on the same groups, all copies of operations that share a group or a unit issue in
/// the same order, and every operation is in the same stage, counted from the first issue.
///
/// They come by interval. At each interval, first those that differ from all before them in the groups or the order
/// of expensive operations, the ones that take at least a sixteenth of the first interval and do not load; then those that
/// differ in anything. Each of these two series comes by the objective after the interval (`docs/model.md`), as far as the
/// work allowed proves it.
///
/// The result depends only on problem, report and options, unless a time budget or an interrupt ends the search. Without a
/// schedule in the report there are none.
pub fn alternatives(
    problem: &Problem,
    report: &Report,
    options: &AlternativeOptions,
    progress: &mut dyn FnMut(Progress),
) -> Alternatives {
    let Some(first) = report.outcome.schedule() else {
        return Alternatives { reports: Vec::new(), complete_through: None, stages: 0, end: End::Unproved };
    };
    let model = problem.options();
    let normalized = NormalizedSchedule::of(problem, first);
    let mut search = Enumeration {
        problem,
        first: report,
        options,
        meter: Meter::start(&options.budget),
        progress,
        stages: (first.stages(), first.stages().saturating_add(options.more_stages)),
        seen: normalized.clone().images(problem),
        all: Scope::all(problem),
        expensive: Scope::expensive(problem, first.interval.0),
        alike: normalized.alike(problem),
        reports: vec![report.clone()],
        // In the paper's variants time may not be shifted.
        given_up: model.liveness == Liveness::Paper || model.stage_window == StageWindow::Paper,
        complete_through: None,
    };
    let end = match search.run(first) {
        Err(end) => end,
        Ok(()) if search.given_up => End::Unproved,
        Ok(()) => End::Complete,
    };
    let Enumeration { reports, complete_through, stages, .. } = search;
    Alternatives { reports, complete_through: complete_through.map(Cycles), stages: stages.1, end }
}

struct Enumeration<'p, 'a> {
    problem: &'p Problem,
    first: &'a Report,
    options: &'a AlternativeOptions,
    meter: Meter,
    progress: &'a mut dyn FnMut(Progress),
    /// Those of the first schedule, and the most allowed.
    stages: (u32, u32),
    /// The schedules found, with interchangeable sub-tiles in all orders.
    seen: Vec<NormalizedSchedule>,
    all: Scope,
    expensive: Scope,
    /// First operations of interchangeable sub-tiles, in the order in which the first schedule has them.
    alike: Vec<(OpId, OpId)>,
    reports: Vec<Report>,
    /// Some question was left open, so nothing is complete from here on.
    given_up: bool,
    complete_through: Option<i64>,
}

/// The answer to the question whether there is another schedule.
enum Another<'p> {
    Found(Box<(Encoding<'p>, Candidate)>),
    None,
    GivenUp,
}

impl<'p> Enumeration<'p, '_> {
    fn run(&mut self, first: &Schedule) -> Result<(), End> {
        let least = first.interval.0;
        // Far below 2^53, and cut off above.
        let more = (least as f64 * self.options.within.max(0.0)) as i64;
        let limit = least.saturating_add(more);
        let mut next = Some(least);
        while let Some(interval) = next {
            self.at(interval)?;
            next = self.next_interval(interval, limit)?;
        }
        Ok(())
    }

    /// Takes every schedule at one interval.
    fn at(&mut self, interval: i64) -> Result<(), End> {
        let mut plan = Vec::new();
        for stages in self.plan(interval)? {
            // Sub-tiles in order look like the first schedule's; what else there is, `another` says.
            plan.extend((!self.alike.is_empty()).then_some((stages, true)));
            plan.push((stages, false));
        }
        let _ = self.series(interval, &plan, &self.expensive.clone())?;
        if self.series(interval, &plan, &self.all.clone())? {
            self.complete(interval);
        } else {
            self.given_up = true;
        }
        Ok(())
    }

    /// Takes every schedule at one interval that differs in what is compared; whether no other is left.
    fn series(&mut self, interval: i64, plan: &[(Stages, bool)], scope: &Scope) -> Result<bool, End> {
        let mut exhausted = true;
        for &(stages, in_order) in plan {
            loop {
                if self.reports.len() >= self.options.most {
                    return Err(End::Most);
                }
                match self.another(interval, stages, in_order, scope)? {
                    Another::Found(found) => self.take(found.0, found.1),
                    Another::None => break,
                    Another::GivenUp => {
                        exhausted = false;
                        break;
                    }
                }
            }
        }
        Ok(exhausted)
    }

    /// The least interval above with another schedule, up to the limit.
    fn next_interval(&mut self, interval: i64, limit: i64) -> Result<Option<i64>, End> {
        if interval >= limit {
            return Ok(None);
        }
        if !bounds::is_monotone(self.problem) {
            for next in interval + 1..=limit {
                match self.is_another(next)? {
                    Some(true) => return Ok(Some(next)),
                    Some(false) => self.complete(next),
                    None => self.given_up = true,
                }
            }
            return Ok(None);
        }
        // An idle slot may be inserted into any schedule, which changes neither order nor stages (docs/model.md).
        match self.is_another(limit)? {
            Some(true) => {}
            Some(false) => {
                self.complete(limit);
                return Ok(None);
            }
            None => {
                self.given_up = true;
                return Ok(None);
            }
        }
        let (mut low, mut high) = (interval + 1, limit);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.is_another(middle)? {
                Some(true) => high = middle,
                Some(false) => {
                    self.complete(middle);
                    low = middle + 1;
                }
                None => {
                    self.given_up = true;
                    low = middle + 1;
                }
            }
        }
        Ok(Some(low))
    }

    /// Returns whether there is another schedule at an interval; `None` when that took too much work.
    fn is_another(&mut self, interval: i64) -> Result<Option<bool>, End> {
        let mut plan = self.plan(interval)?;
        if let Some(&most @ Stages::AtMost(_)) = plan.last() {
            plan = vec![most]; // It covers the others.
        }
        let mut answer = Some(false);
        for stages in plan {
            match self.another(interval, stages, false, &self.all.clone())? {
                Another::Found(_) => return Ok(Some(true)),
                Another::None => {}
                Another::GivenUp => answer = None,
            }
        }
        Ok(answer)
    }

    /// Numbers of stages to ask for, in order.
    fn plan(&self, interval: i64) -> Result<Vec<Stages>, End> {
        let (first, most) = self.stages;
        let model = self.problem.options();
        if model.liveness == Liveness::Paper || model.stage_window == StageWindow::Paper {
            self.meter.allow(self.options.work_each);
            let plan = query::stages_to_try(self.problem, interval, Families::ALL, &self.meter);
            let few = |s: &Stages| s.most().is_some_and(|n| n <= most);
            return match (plan, self.meter.stopped()) {
                (Some(plan), _) => Ok(plan.into_iter().filter(few).collect()),
                (None, Some(by)) => Err(End::Stopped { by: by.to_owned() }),
                (None, None) => Ok(Vec::new()),
            };
        }
        let least = if self.is_least(interval) { first } else { bounds::least_stages(self.problem, interval) };
        Ok((least..=most).map(Stages::AtMost).collect())
    }

    /// Asks for a schedule that differs from all before it in something that is compared; `in_order`: whose
    /// interchangeable sub-tiles start in the order of the first. That may leave some out: of operations that issue at once the first in
    /// the graph counts as first, which is another one when sub-tiles change places.
    fn another(&mut self, interval: i64, stages: Stages, in_order: bool, scope: &Scope) -> Result<Another<'p>, End> {
        (self.progress)(Progress::Trying { interval: Cycles(interval) });
        self.meter.allow(self.options.work_each);
        let question = Question { interval, stages, families: Families::ALL };
        let Some(mut encoding) = Encoding::in_any_order(self.problem, question, &self.meter) else {
            return Ok(Another::None);
        };
        for &(first, second) in self.alike.iter().filter(|_| in_order) {
            let ordered = encoding.at_least(Anchor::Issue(first), Anchor::Issue(second), 0);
            encoding.engine.unlogged([ordered]);
        }
        // Stages are counted from the first issue.
        let starts: Vec<_> = self.problem.graph().op_ids().map(|op| encoding.issued_at(op, 0)[1]).collect();
        encoding.engine.unlogged(starts);
        for normalized in &self.seen {
            let differs = normalized.differs(&mut encoding, scope);
            encoding.engine.unlogged(differs);
        }
        match (query::with_few_groups(&mut encoding, &self.meter), self.meter.stopped()) {
            (Reply::Found(candidate), _) => Ok(Another::Found(Box::new((encoding, candidate)))),
            (Reply::None, _) => Ok(Another::None),
            (Reply::Stopped, Some(by)) => Err(End::Stopped { by: by.to_owned() }),
            (Reply::Stopped, None) => Ok(Another::GivenUp),
        }
    }

    /// Makes the best of what was found, as the search does, and keeps it.
    fn take(&mut self, mut encoding: Encoding<'p>, candidate: Candidate) {
        let interval = encoding.question.interval;
        let least_length = bounds::least_length(self.problem, interval);
        let (candidate, mut values) =
            objective::improve(&mut encoding, candidate, least_length, &self.meter, self.options.objective_work);
        let normalized = |c: &Candidate| NormalizedSchedule::new(self.problem, interval, &c.times, &c.groups);
        let found = normalized(&candidate);
        let candidate = compact::compact_where(&encoding, candidate, |moved| {
            moved.times.contains(&0) && normalized(moved).is_like(&found, &self.all)
        });
        let schedule = extract::schedule(&encoding, &candidate);
        let (cycles, stages) = (schedule.interval, schedule.stages());
        (self.progress)(Progress::Found { interval: cycles, stages });
        let level = ObjectiveLevel::Stages;
        values.insert(0, ObjectiveValue { level, value: i64::from(stages), proved: false });
        let outcome = match &self.first.outcome {
            Outcome::Optimal { schedule: best } if best.interval == cycles => Outcome::Optimal { schedule },
            _ => Outcome::Feasible { schedule },
        };
        let proved = if self.is_least(interval) { self.first.objectives.as_slice() } else { &[] };
        let objectives = as_proved(values, proved);
        self.reports.push(Report { outcome, objectives, phases: Vec::new(), ..self.first.clone() });
        self.seen.extend(found.images(self.problem));
    }

    /// Returns whether it is the first schedule's interval.
    fn is_least(&self, interval: i64) -> bool {
        self.first.outcome.schedule().is_some_and(|s| s.interval.0 == interval)
    }

    /// Records that nothing else exists up to an interval.
    fn complete(&mut self, interval: i64) {
        if !self.given_up {
            self.complete_through = Some(interval);
        }
    }
}

/// Values that hold as long as they are those of the first schedule are proved if its are; no others are.
fn as_proved(mut values: Vec<ObjectiveValue>, first: &[ObjectiveValue]) -> Vec<ObjectiveValue> {
    let mut equal = true;
    for (i, value) in values.iter_mut().enumerate() {
        let known = first.get(i).filter(|k| k.level == value.level && k.value == value.value);
        value.proved = equal && known.is_some_and(|k| k.proved);
        equal &= known.is_some();
    }
    values
}
