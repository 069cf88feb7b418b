//! The search for the least `Σ weight · I` over all loops, with its proofs.

use super::classes::Classes;
use super::frontier::Frontier;
use super::joint::{self, JointSolution, JointVerdict};
use super::objective;
use crate::bounds;
use crate::compact;
use crate::encoding::Candidate;
use crate::extract;
use crate::limits::Meter;
use crate::progress::Progress;
use crate::query;
use crate::search::{self, Search, SearchOptions, Settled};
use twill_graph::saturate;
use twill_graph::{
    CommonGroups, Cycles, GroupRole, KernelObjective, KernelRejection, MultiLoopProblem, MultiLoopReport,
    ObjectiveLevel, Outcome, Phase, RejectionReason, Report, Schedule, WarpGroup,
};
use web_time::Instant;

/// Work for the first attempt at a vector: a few hundredths of a second.
const FIRST_WORK: u64 = 100_000;

/// Work for the first attempt at the bound itself, which is usually the answer: a few seconds.
const BOUND_WORK: u64 = 4_000_000;

/// Finds schedules of all loops of a kernel with common groups, the least `Σ weight · I` with its
/// proof, and the best schedules there. The budget is for all loops together.
///
/// The problem's options must be those of folded liveness with any number of stages: the paper's
/// variants are for one loop.
///
/// The result depends only on the problem and the options, unless a time budget or an interrupt
/// ends the search.
pub fn schedule_multi_loop(
    kernel: &MultiLoopProblem,
    options: &SearchOptions,
    progress: &mut dyn FnMut(Progress),
) -> MultiLoopReport {
    let meter = Meter::start(&options.budget);
    let half = meter.half();
    let (mut alone, mut own) = (Vec::new(), Vec::new());
    let each: Vec<SearchOptions> = (0..kernel.loops().len()).map(|index| of_loop(options, index)).collect();
    for (problem, options) in kernel.loops().iter().zip(&each) {
        let mut search = Search::new(problem, options, half.clone(), &mut *progress);
        let settled = search.settle();
        let bound = search.lower.interval.0;
        own.push(search.best_candidate());
        // Replaced below by what holds within the kernel.
        let unknown = Outcome::Unknown { stopped_by: String::new() };
        alone.push((settled, bound, search.report(unknown, Vec::new())));
    }
    let bottom: Vec<i64> = alone.iter().map(|(_, bound, _)| *bound).collect();
    let (reports, settled): (Vec<Report>, Vec<Settled>) = alone.into_iter().map(|(s, _, report)| (report, s)).unzip();
    let limits: Vec<i64> = kernel.loops().iter().zip(&each).map(|(p, options)| search::limit(p, options)).collect();
    let mut together = Together {
        kernel,
        classes: Classes::new(kernel),
        options,
        meter,
        progress,
        own,
        excluded: Frontier::new(bottom.clone(), limits.clone()),
        limits,
        lower: kernel.cycles(bottom.iter().map(|&i| Cycles(i))).0,
        best: None,
        rejections: Vec::new(),
        phases: Vec::new(),
    };
    together.run(settled, reports)
}

/// The options for one of the loops.
fn of_loop(options: &SearchOptions, index: usize) -> SearchOptions {
    let largest_interval = options.largest_intervals.get(index).copied().or(options.largest_interval);
    SearchOptions { largest_interval, ..options.clone() }
}

struct Together<'p, 'a> {
    kernel: &'p MultiLoopProblem,
    classes: Classes,
    options: &'a SearchOptions,
    meter: Meter,
    progress: &'a mut dyn FnMut(Progress),
    /// The best schedule of each loop by itself, with its interval.
    own: Vec<Option<(i64, Candidate)>>,
    /// The vectors that no proof excludes.
    excluded: Frontier,
    limits: Vec<i64>,
    lower: i64,
    best: Option<(Vec<i64>, JointSolution<'p>)>,
    rejections: Vec<KernelRejection>,
    phases: Vec<Phase>,
}

impl Together<'_, '_> {
    fn run(&mut self, alone: Vec<Settled>, reports: Vec<Report>) -> MultiLoopReport {
        let hopeless = |settled: &Settled| match settled {
            Settled::Not(outcome) => Some(outcome.clone()),
            Settled::Found { .. } => None,
        };
        // A proof about one loop counts for all; one that was stopped leaves its bound.
        let own: Vec<Option<Outcome>> = alone.iter().map(hopeless).collect();
        let proof = own.iter().flatten().find_map(|o| match o {
            Outcome::Infeasible { reason } => Some(reason.clone()),
            _ => None,
        });
        let impossible = proof.or_else(|| self.classes.impossible());
        if let Some(reason) = impossible {
            return self.report(Outcome::Infeasible { reason }, own, reports, Vec::new());
        }
        let started = Instant::now();
        let settled = self.least_cycles();
        if !settled && self.best.is_none() {
            self.take_own();
        }
        self.phase("joint schedule of all loops", started);
        let Some((intervals, found)) = self.best.take() else {
            let outcome = if settled { self.exhausted() } else { self.stopped() };
            return self.report(outcome, own, reports, Vec::new());
        };
        (self.progress)(Progress::Improving);
        let started = Instant::now();
        let (schedules, groups, objectives) = self.improve(found);
        self.phase("secondary objectives of all loops", started);
        let common = CommonGroups { groups, cycles: Cycles(self.value(&intervals)) };
        let outcome =
            if settled { Outcome::Optimal { schedule: common } } else { Outcome::Feasible { schedule: common } };
        let each = schedules.into_iter().zip(&alone).map(|(schedule, alone)| {
            let least = |i| matches!(alone, Settled::Found { interval, proved: true } if *interval == i);
            Some(match least(schedule.interval.0) {
                true => Outcome::Optimal { schedule },
                false => Outcome::Feasible { schedule },
            })
        });
        self.report(outcome, each.collect(), reports, objectives)
    }

    /// Leaves the best schedules in `best`; `true` when nothing smaller exists (or nothing at all).
    ///
    /// Every question gets a little work first; those that stay open are asked again with more, when
    /// the others are settled; the bound itself, which is often the answer, with much more.
    fn least_cycles(&mut self) -> bool {
        let monotone = self.kernel.loops().iter().all(bounds::is_monotone);
        // Vectors that are not excluded, and did not take too much work this time.
        let mut open = self.excluded.clone();
        let (mut work, mut step) = (FIRST_WORK, 0);
        let (mut bound, mut patient) = (self.corner(&open), None);
        // Some questions may be answered with more work; others have more stages than can be counted.
        let mut paused = false;
        loop {
            if query::spend_on_refused(self.rejections.len(), &self.meter) && self.meter.stopped().is_some() {
                return false;
            }
            let above = self.best.as_ref().map_or(i64::MAX, |(intervals, _)| self.value(intervals));
            let (probe, allowed) = match (patient.take(), self.corner(&open).filter(|c| self.value(c) < above)) {
                (Some(bound), _) => (bound, BOUND_WORK),
                (_, Some(corner)) if monotone => (self.probe(&corner, above, step), work),
                (_, Some(corner)) => (corner, work),
                (_, None) => {
                    if self.lower_bound().is_none_or(|least| least >= above) {
                        if self.best.is_some() {
                            self.lower = above;
                        }
                        self.meter.allow(None);
                        return true;
                    }
                    if !std::mem::take(&mut paused) {
                        self.meter.allow(None);
                        return false;
                    }
                    open = self.excluded.clone();
                    (work, step) = (work.saturating_mul(4), 0);
                    patient = bound.take().filter(|b| self.corner(&open).as_ref() == Some(b));
                    continue;
                }
            };
            self.meter.allow(Some(allowed));
            let cycles: Vec<Cycles> = probe.iter().map(|&i| Cycles(i)).collect();
            (self.progress)(Progress::Together { intervals: cycles.clone() });
            match joint::ask(self.kernel, &self.classes, &probe, &self.own, &self.meter) {
                JointVerdict::Found(found) => self.best = Some((probe, *found)),
                JointVerdict::Excluded(reason) => {
                    self.rejections.push(KernelRejection { intervals: cycles, smaller: monotone, reason });
                    self.excluded.exclude(&probe);
                    open.exclude(&probe);
                    self.lower = self.lower.max(self.lower_bound().unwrap_or(self.lower));
                }
                JointVerdict::Stopped if self.meter.stopped().is_some() => return false,
                JointVerdict::Stopped => {
                    paused |= self.meter.pause();
                    open.exclude(&probe);
                }
            }
            step = i64::saturating_mul(step, 4).max(1);
        }
    }

    /// Tries the best intervals of the loops by themselves, where the search was stopped before it had schedules for all.
    fn take_own(&mut self) {
        let own: Option<Vec<i64>> = self.own.iter().map(|own| own.as_ref().map(|(interval, _)| *interval)).collect();
        let Some(own) = own else { return };
        if let JointVerdict::Found(found) = joint::ask(self.kernel, &self.classes, &own, &self.own, &Meter::grace()) {
            self.best = Some((own, *found));
        }
    }

    /// The corner of a frontier with the least value.
    fn corner(&self, frontier: &Frontier) -> Option<Vec<i64>> {
        frontier.least(|c| self.value(c)).map(<[i64]>::to_vec)
    }

    /// A vector to ask for, not below `corner`: far above it while nothing is found, then halfway to
    /// what is, with an equal share of the gap for every loop.
    fn probe(&self, corner: &[i64], above: i64, step: i64) -> Vec<i64> {
        let gap = (above - self.value(corner) - 1) / 2;
        let loops = saturate::<i64>(corner.len());
        let share = |k: usize| match &self.best {
            Some(_) => gap / loops / saturate::<i64>(self.kernel.weights()[k]),
            None => step,
        };
        let probe = |(k, &c): (usize, &i64)| c.saturating_add(share(k)).min(self.limits[k]);
        corner.iter().enumerate().map(probe).collect()
    }

    fn lower_bound(&self) -> Option<i64> {
        self.corner(&self.excluded).map(|c| self.value(&c))
    }

    fn value(&self, intervals: &[i64]) -> i64 {
        self.kernel.cycles(intervals.iter().map(|&i| Cycles(i))).0
    }

    fn improve(&self, found: JointSolution) -> (Vec<Schedule>, Vec<WarpGroup>, Vec<KernelObjective>) {
        let JointSolution { mut joint, candidates, fewest_stages } = found;
        let stages = objective::stages(&joint, &candidates);
        let work = self.options.objective_work;
        let (mut candidates, mut values) = objective::improve(self.kernel, &mut joint, candidates, &self.meter, work);
        let stages =
            KernelObjective { level: ObjectiveLevel::Stages, index: None, value: stages, proved: fewest_stages };
        values.insert(0, stages);
        for k in 0..candidates.len() {
            let before = candidates[k].clone();
            candidates[k] = compact::compact(&joint.parts[k], before.clone());
            // Compaction looks at one loop; together they may then need too much.
            let registers = (ObjectiveLevel::RegistersPerThread, None);
            let most = values.last().map_or(i64::MAX, |v| v.value);
            if !joint.fits_file(&candidates) || objective::total(&joint, &candidates, registers) > most {
                candidates[k] = before;
            }
        }
        let groups = joint.groups(&candidates);
        let given = |g: &WarpGroup| groups.iter().find(|common| common.id == g.id).copied();
        let mut schedules = Vec::new();
        for (part, candidate) in joint.parts.iter().zip(&candidates) {
            let mut schedule = extract::schedule(part, candidate);
            for group in schedule.groups.iter_mut().filter(|g| g.role == GroupRole::Compute) {
                *group = given(group).unwrap_or(*group);
            }
            schedules.push(schedule);
        }
        (schedules, groups, values)
    }

    fn report(
        &mut self,
        outcome: Outcome<CommonGroups>,
        own: Vec<Option<Outcome>>,
        reports: Vec<Report>,
        objectives: Vec<KernelObjective>,
    ) -> MultiLoopReport {
        let missing = || Outcome::Unknown { stopped_by: "no schedule of all loops together".to_owned() };
        let within =
            |(report, own): (Report, Option<Outcome>)| Report { outcome: own.unwrap_or_else(missing), ..report };
        MultiLoopReport {
            outcome,
            lower_bound: Cycles(self.lower),
            loops: reports.into_iter().zip(own).map(within).collect(),
            rejections: std::mem::take(&mut self.rejections),
            objectives,
            phases: std::mem::take(&mut self.phases),
        }
    }

    fn exhausted(&self) -> Outcome<CommonGroups> {
        let all = self.kernel.loops().iter().zip(&self.limits).all(|(p, &limit)| limit >= bounds::largest_interval(p));
        let reason = if all {
            let why = "each has a schedule by itself, and at no intervals do all of them".to_owned();
            RejectionReason::OtherLoops { why }
        } else {
            let largest = self.limits.iter().copied().min().unwrap_or(0);
            RejectionReason::Exhausted { largest: Cycles(largest), all: false }
        };
        Outcome::Infeasible { reason }
    }

    fn stopped(&self) -> Outcome<CommonGroups> {
        Outcome::Unknown { stopped_by: self.meter.stopped().unwrap_or("limit of 2^32 stages").to_owned() }
    }

    fn phase(&mut self, name: &str, started: Instant) {
        self.phases.push(Phase { name: name.into(), seconds: started.elapsed().as_secs_f64() });
    }
}
