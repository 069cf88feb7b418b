//! The search for the least initiation interval, with its proofs.

use crate::bounds;
use crate::compact;
use crate::constraints::symmetry;
use crate::encoding::Candidate;
use crate::extract;
use crate::greedy;
use crate::limits::{Budget, Meter};
use crate::modulo::{self, Modulo};
use crate::objective;
use crate::progress::Progress;
use crate::query::{self, Solution, Verdict};
use crate::repetition;
use crate::structure;

use twill_graph::saturate;
use twill_graph::{
    Cycles, Families, Liveness, LowerBound, LowerBoundKind, ModuloSchedule, ObjectiveLevel, ObjectiveValue, Outcome,
    Phase, Pipeline, Placement, Problem, Rejection, RejectionReason, Report, Schedule, StageWindow,
};
use web_time::Instant;

/// How to search.
#[derive(Clone, Debug)]
pub struct SearchOptions {
    /// When to give up.
    pub budget: Budget,
    /// Largest interval to try; by default the one beyond which nothing new is possible.
    pub largest_interval: Option<Cycles>,
    /// The same for each loop of a kernel, where several are scheduled together.
    pub largest_intervals: Vec<Cycles>,
    /// Work units for each secondary objective (about a million a second). What is not proved by
    /// then is reported as not proved.
    pub objective_work: Option<u64>,
    /// A schedule to start from, as interval and placements; passed over if it breaks a constraint.
    pub seed: Option<(Cycles, Vec<Placement>)>,
    /// A modulo schedule, without warps, to start from; passed over if it breaks a constraint.
    pub pipeline: Option<Pipeline>,
}

impl Default for SearchOptions {
    fn default() -> Self {
        SearchOptions {
            budget: Budget::default(),
            largest_interval: None,
            largest_intervals: Vec::new(),
            objective_work: Some(5_000_000),
            seed: None,
            pipeline: None,
        }
    }
}

/// Work for the first attempt at an interval: a few hundredths of a second.
const FIRST_WORK: u64 = 50_000;

/// Work for the schedule without warps: a second or two.
const MODULO_WORK: u64 = 2_000_000;

/// Work for the second attempt at the lower bound: a few seconds.
const BOUND_WORK: u64 = 4_000_000;

/// Operations from which on a first schedule is built before the search.
const LARGE: usize = 40;

/// Work for the search at the bound before that: about a second.
const BEFORE_WORK: u64 = 1_000_000;

/// Work for the schedule of a body that such a graph repeats: several seconds.
const BODY_WORK: u64 = 8_000_000;

/// Work for a schedule that is built: a few seconds.
const GREEDY_WORK: u64 = 10_000_000;

/// Finds the least initiation interval with its proof, and the best schedule at it.
///
/// The result depends only on the problem and the options, unless a time budget or an interrupt
/// ends the search.
pub fn schedule(problem: &Problem, options: &SearchOptions, progress: &mut dyn FnMut(Progress)) -> Report {
    let mut search = Search::new(problem, options, Meter::start(&options.budget), progress);
    let (outcome, objectives) = search.run();
    search.report(outcome, objectives)
}

/// One loop by itself.
pub(crate) struct Search<'p, 'a> {
    problem: &'p Problem,
    options: &'a SearchOptions,
    meter: Meter,
    progress: &'a mut dyn FnMut(Progress),
    rejections: Vec<Rejection>,
    phases: Vec<Phase>,
    modulo: Option<ModuloSchedule>,
    best: Option<Solution<'p>>,
    pub(crate) lower: LowerBound,
}

/// The state of intervals during the search.
struct Gap {
    /// Nothing exists below.
    excluded: i64,
    /// Questions below took too much work this time.
    open: i64,
    /// The best schedule so far.
    found: Option<i64>,
    /// Some of those may be answered with more work; others have more stages than can be counted.
    paused: bool,
}

impl Gap {
    fn is_open(&self, limit: i64) -> bool {
        self.found.map_or(self.open <= limit, |found| self.open < found)
    }
}

/// The state when the interval is settled, or cannot be.
pub(crate) enum Settled {
    /// A schedule is at hand at this interval; `proved`: no smaller one exists.
    Found {
        interval: i64,
        proved: bool,
    },
    Not(Outcome),
}

/// The largest interval to try.
pub(crate) fn limit(problem: &Problem, options: &SearchOptions) -> i64 {
    let limit = options.largest_interval.map_or_else(|| bounds::largest_interval(problem), |c| c.0);
    limit.clamp(1, problem.graph().largest_interval())
}

impl<'p, 'a> Search<'p, 'a> {
    pub(crate) fn new(
        problem: &'p Problem,
        options: &'a SearchOptions,
        meter: Meter,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Search<'p, 'a> {
        Search {
            problem,
            options,
            meter,
            progress,
            rejections: Vec::new(),
            phases: Vec::new(),
            modulo: None,
            best: None,
            lower: bounds::lower_bound(problem, Families::ALL),
        }
    }

    /// The best schedule so far, with its interval.
    pub(crate) fn best_candidate(&self) -> Option<(i64, Candidate)> {
        self.best.as_ref().map(|found| (found.encoding.question.interval, found.candidate.clone()))
    }

    /// The result, with this answer.
    pub(crate) fn report(mut self, outcome: Outcome, objectives: Vec<ObjectiveValue>) -> Report {
        self.rejections.sort_by_key(|r| r.interval);
        Report {
            outcome,
            lower_bound: self.lower,
            modulo: self.modulo,
            rejections: self.rejections,
            objectives,
            wider_bound: None,
            simulated: None,
            phases: self.phases,
        }
    }

    fn run(&mut self) -> (Outcome, Vec<ObjectiveValue>) {
        let proved = match self.settle() {
            Settled::Found { proved, .. } => proved,
            Settled::Not(Outcome::Unknown { .. }) if self.take_seed() => false,
            Settled::Not(outcome) => return (outcome, Vec::new()),
        };
        let Some(found) = self.best.take() else { return (self.stopped(), Vec::new()) };
        (self.progress)(Progress::Improving);
        let started = Instant::now();
        let (schedule, objectives) = self.improve(found);
        self.phase("secondary objectives", started);
        let outcome = if proved { Outcome::Optimal { schedule } } else { Outcome::Feasible { schedule } };
        (outcome, objectives)
    }

    /// Finds the least interval.
    pub(crate) fn settle(&mut self) -> Settled {
        if let Some(reason) = structure::impossible(self.problem) {
            return Settled::Not(Outcome::Infeasible { reason });
        }
        let limit = limit(self.problem, self.options);
        let started = Instant::now();
        // It is a bound and a measure; the answer does not hang on it.
        let work = modulo::LENGTH_WORK;
        let start = modulo::start(self.problem, self.options, &self.meter);
        self.meter.allow(Some(MODULO_WORK));
        let modulo = modulo::schedule(self.problem, limit, start.as_ref(), work, &self.meter);
        self.meter.allow(None);
        self.phase("modulo schedule", started);
        match modulo {
            Modulo::Found { interval, shortest } => {
                let length = shortest.candidate.length;
                let length_proved = shortest.proved;
                let (initiation_interval, length) = (Cycles(interval), Cycles(length));
                self.modulo = Some(ModuloSchedule { initiation_interval, length, length_proved });
                (self.progress)(Progress::Modulo { interval: initiation_interval, length });
                self.raise_bound(interval);
            }
            Modulo::Stopped { bound, .. } => {
                self.raise_bound(bound);
                if self.meter.stopped().is_some() {
                    return Settled::Not(self.stopped());
                }
            }
            Modulo::Exhausted => return Settled::Not(self.exhausted(limit)),
        }
        let started = Instant::now();
        self.take_first(limit);
        let settled = self.least_interval(limit);
        self.phase("joint schedule", started);
        let proved = settled && !self.stages_were_limited();
        match &self.best {
            Some(found) => Settled::Found { interval: found.encoding.question.interval, proved },
            None => Settled::Not(if settled { self.exhausted(limit) } else { self.stopped() }),
        }
    }

    /// Starts from a schedule that need not be searched for, where one is given or the graph is large: the one that
    /// was given, that of the body which the graph repeats, or one that is built.
    fn take_first(&mut self, limit: i64) {
        let wanted = self.options.seed.is_some() || self.problem.graph().operations().len() >= LARGE;
        let out_of_reach = self.lower.interval.0 > limit;
        if !wanted || out_of_reach || !bounds::is_monotone(self.problem) {
            return;
        }
        // A schedule that the search finds at the bound by itself has the fewest stages, and is better to go on from.
        let bottom = self.lower.interval.0;
        self.meter.allow(Some(BEFORE_WORK));
        match self.ask(bottom) {
            Some(true) => return,
            Some(false) => self.raise_bound(bottom + 1),
            None => {}
        }
        self.meter.allow(None);
        if let Some((interval, placements)) = self.options.seed.as_ref().filter(|(i, _)| i.0 <= limit) {
            self.take(*interval, placements);
        }
        if self.best.is_none() {
            self.take_repeated(limit);
        }
        if self.best.is_none() {
            self.take_built(limit);
        }
    }

    /// Starts from a schedule that is built without search.
    fn take_built(&mut self, limit: i64) {
        self.meter.allow(Some(GREEDY_WORK));
        let built = greedy::schedule(self.problem, self.lower.interval.0, limit, &self.meter);
        self.meter.allow(None);
        if let Some((interval, placements)) = built.filter(|(interval, _)| interval.0 <= limit) {
            self.take(interval, &placements);
        }
    }

    /// Where the graph is a loop body several times over, schedules the body and repeats it.
    fn take_repeated(&mut self, limit: i64) {
        let Some(repetition) = repetition::find(self.problem.graph()) else { return };
        let body = repetition.body().clone();
        let Ok(body) = Problem::new(body, self.problem.resources().clone(), *self.problem.options()) else { return };
        let options = SearchOptions { objective_work: Some(BODY_WORK / 10), ..SearchOptions::default() };
        let meter = self.meter.part(BODY_WORK);
        let (outcome, _) = Search::new(&body, &options, meter, &mut |_| {}).run();
        let repeated = outcome.schedule().map(|schedule| repetition.unrolled(schedule));
        if let Some((interval, placements)) = repeated.filter(|(interval, _)| interval.0 <= limit) {
            self.meter.allow(None);
            self.take(interval, &symmetry::in_order(self.problem, placements));
        }
    }

    /// Keeps the schedule that was given where the search was stopped before it had one.
    fn take_seed(&mut self) -> bool {
        let Some((interval, placements)) = &self.options.seed else { return false };
        self.best = query::at(self.problem, interval.0, placements, &Meter::grace());
        self.best.is_some()
    }

    fn take(&mut self, interval: Cycles, placements: &[Placement]) {
        if let Some(found) = query::at(self.problem, interval.0, placements, &self.meter) {
            self.tell_found(&found);
            self.best = Some(found);
        }
    }

    fn tell_found(&mut self, found: &Solution) {
        let stages = objective::measure(&found.encoding, &found.candidate, ObjectiveLevel::Stages);
        let interval = Cycles(found.encoding.question.interval);
        (self.progress)(Progress::Found { interval, stages: saturate::<u32>(stages) });
    }

    /// Leaves the best schedule in `best`; `true` when nothing smaller exists (or nothing at all).
    fn least_interval(&mut self, limit: i64) -> bool {
        let bottom = self.lower.interval.0;
        if bounds::is_monotone(self.problem) { self.bisect(bottom, limit) } else { self.climb(bottom, limit) }
    }

    /// One by one: nothing follows from one interval for another.
    fn climb(&mut self, bottom: i64, limit: i64) -> bool {
        for interval in bottom..=limit {
            self.meter.allow(None);
            match self.ask(interval) {
                Some(true) => return true,
                Some(false) => self.raise_bound(interval + 1),
                None => return false,
            }
        }
        true
    }

    /// Feasibility is monotone: widen the step until there is a schedule, then halve the gap. Every
    /// question gets a little work first; those that stay open are asked again with more, when the
    /// others are settled. So there is a schedule early, and the proof gets what time is left.
    fn bisect(&mut self, bottom: i64, limit: i64) -> bool {
        let found = self.best.as_ref().map(|found| found.encoding.question.interval);
        let mut gap = Gap { excluded: bottom, open: bottom, found, paused: false };
        let mut work = FIRST_WORK;
        let (mut interval, mut step) = (bottom, 1);
        while gap.found.is_none() && interval <= limit {
            if !self.attempt(&mut gap, interval, work) {
                return false;
            }
            let next = interval.saturating_add(step);
            interval = if interval < limit { next.min(limit) } else { next };
            step = i64::saturating_mul(step, 4);
        }
        // The bound itself is often the answer.
        gap.open = gap.excluded;
        if gap.is_open(limit) && gap.excluded == bottom && !self.attempt(&mut gap, bottom, BOUND_WORK) {
            return false;
        }
        loop {
            while gap.is_open(limit) {
                let above = gap.found.unwrap_or(limit + 1);
                let middle = gap.open + (above - gap.open) / 2;
                if !self.attempt(&mut gap, middle, work) {
                    return false;
                }
            }
            gap.open = gap.excluded;
            if !gap.is_open(limit) || !gap.paused {
                self.meter.allow(None);
                return !gap.is_open(limit);
            }
            gap.paused = false;
            work = work.saturating_mul(4);
        }
    }

    /// Asks about one interval with limited work; `false` when the budget is used up.
    fn attempt(&mut self, gap: &mut Gap, interval: i64, work: u64) -> bool {
        self.meter.allow(Some(work));
        match self.ask(interval) {
            Some(true) => gap.found = Some(interval),
            Some(false) => {
                gap.excluded = interval + 1;
                gap.open = gap.open.max(gap.excluded);
                self.raise_bound(gap.excluded);
            }
            None if self.meter.stopped().is_some() => return false,
            None => {
                gap.open = gap.open.max(interval + 1);
                gap.paused |= self.meter.pause();
            }
        }
        true
    }

    /// Returns whether there is a schedule at an interval; `None` when stopped.
    fn ask(&mut self, interval: i64) -> Option<bool> {
        if query::spend_on_refused(self.rejections.len(), &self.meter) {
            return None;
        }
        (self.progress)(Progress::Trying { interval: Cycles(interval) });
        match query::ask(self.problem, interval, Families::ALL, &self.meter) {
            Verdict::Found(found) => {
                self.tell_found(&found);
                self.best = Some(*found);
                Some(true)
            }
            Verdict::Excluded { stages, reason } => {
                (self.progress)(Progress::Rejected { interval: Cycles(interval) });
                self.rejections.push(Rejection { interval: Cycles(interval), stages, reason });
                Some(false)
            }
            Verdict::Stopped => None,
        }
    }

    fn improve(&mut self, found: Solution<'p>) -> (Schedule, Vec<ObjectiveValue>) {
        let Solution { mut encoding, candidate, fewest_stages } = found;
        let interval = encoding.question.interval;
        let stages = objective::measure(&encoding, &candidate, ObjectiveLevel::Stages);
        let least_length = match self.modulo {
            Some(m) if m.length_proved && m.initiation_interval == Cycles(interval) => m.length.0,
            _ => bounds::least_length(self.problem, interval),
        };
        let (candidate, mut values) =
            objective::improve(&mut encoding, candidate, least_length, &self.meter, self.options.objective_work);
        values.insert(0, ObjectiveValue { level: ObjectiveLevel::Stages, value: stages, proved: fewest_stages });
        let candidate = compact::compact(&encoding, candidate);
        (extract::schedule(&encoding, &candidate), values)
    }

    /// Records that every interval below `interval` is excluded.
    fn raise_bound(&mut self, interval: i64) {
        if interval > self.lower.interval.0 {
            let from = match self.lower.kind {
                LowerBoundKind::Search { from } => from,
                _ => self.lower.interval,
            };
            self.lower = LowerBound { interval: Cycles(interval), kind: LowerBoundKind::Search { from } };
        }
    }

    fn exhausted(&self, limit: i64) -> Outcome {
        if self.stages_were_limited() {
            return Outcome::Unknown { stopped_by: "largest number of stages tried".to_owned() };
        }
        // docs/model.md lists the reasons that exclude all larger intervals too.
        let options = self.problem.options();
        let all = limit >= bounds::largest_interval(self.problem)
            && options.liveness == Liveness::Folded
            && options.stage_window == StageWindow::Complete;
        Outcome::Infeasible { reason: RejectionReason::Exhausted { largest: Cycles(limit), all } }
    }

    /// Returns whether some interval was excluded only up to some number of stages, against what was asked.
    fn stages_were_limited(&self) -> bool {
        let complete = self.problem.options().stage_window == StageWindow::Complete;
        complete && self.rejections.iter().any(|r| r.stages.is_some())
    }

    fn stopped(&self) -> Outcome {
        Outcome::Unknown { stopped_by: self.meter.stopped().unwrap_or("limit of 2^32 stages").to_owned() }
    }

    fn phase(&mut self, name: &str, started: Instant) {
        self.phases.push(Phase { name: name.into(), seconds: started.elapsed().as_secs_f64() });
    }
}
