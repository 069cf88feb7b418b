//! Modulo scheduling of large loops: the least initiation interval that dependences and resources allow,
//! proved.
//!
//! Phase 1 of [`schedule`](crate::schedule) keeps the longest path between every two operations and is for tens of
//! them. This is for thousands, of which few use a limited resource (docs/solvers.md).

mod bounds;
mod domains;
mod hall;
mod net;
mod place;
mod query;
mod reduce;
mod theory;

use crate::limits::{Budget, Meter};
use crate::progress::Progress;
use net::Net;
use query::Verdict;
use twill_graph::saturate;
use twill_graph::{
    Cycles, IssueTimes, LowerBound, LowerBoundKind, ModuloProblem, Outcome, Phase, Rejection, RejectionReason, Report,
};
use web_time::Instant;

/// Work for the first attempt at an interval: about a second.
const FIRST_WORK: u64 = 4_000_000;

/// Finds the least initiation interval with its proof, and times at it.
///
/// The result depends only on the problem and the work budget, unless a time budget or an interrupt ends the search.
pub fn modulo_schedule(
    problem: &ModuloProblem,
    budget: &Budget,
    progress: &mut dyn FnMut(Progress),
) -> Report<IssueTimes> {
    let started = Instant::now();
    let net = Net::new(problem);
    let lower_bound = bounds::lower_bound(&net);
    let phase = |name: &str, since: Instant| Phase { name: name.into(), seconds: since.elapsed().as_secs_f64() };
    let mut phases = vec![phase("bounds", started)];
    let started = Instant::now();
    let simple = lower_bound.interval;
    let meter = Meter::start(budget);
    let mut search =
        Search { net, meter, progress, excluded: simple.0, best: None, rejections: Vec::new(), too_large: false };
    let stopped = search.run();
    phases.push(phase("search", started));
    let Search { excluded, best, mut rejections, .. } = search;
    rejections.sort_by_key(|r| r.interval);
    let outcome = match best {
        Some(schedule) if schedule.interval.0 == excluded => Outcome::Optimal { schedule },
        Some(schedule) => Outcome::Feasible { schedule },
        None => Outcome::Unknown { stopped_by: stopped.unwrap_or_default() },
    };
    let lower_bound = match excluded > simple.0 {
        true => LowerBound { interval: Cycles(excluded), kind: LowerBoundKind::Search { from: simple } },
        false => lower_bound,
    };
    Report {
        outcome,
        lower_bound,
        modulo: None,
        rejections,
        objectives: Vec::new(),
        wider_bound: None,
        simulated: None,
        phases,
    }
}

struct Search<'p, 'a> {
    net: Net<'p>,
    meter: Meter,
    progress: &'a mut dyn FnMut(Progress),
    /// Nothing exists below.
    excluded: i64,
    best: Option<IssueTimes>,
    rejections: Vec<Rejection>,
    too_large: bool,
}

impl Search<'_, '_> {
    /// Searches until the interval is settled, or says what stopped it. Feasibility is monotone in the interval
    /// (docs/model.md), so steps widen until there is a schedule and then halve the gap; what takes too much work is asked again with
    /// more.
    fn run(&mut self) -> Option<String> {
        let limit = self.net.problem.sequential().max(self.excluded);
        let mut work = FIRST_WORK;
        loop {
            let (mut open, mut step) = (self.excluded, 1);
            let mut interval = open;
            while open < self.found().unwrap_or(limit + 1) {
                self.meter.allow(Some(work));
                if !self.ask(interval) {
                    if let Some(by) = self.meter.stopped() {
                        return Some(by.into());
                    }
                    open = open.max(interval + 1);
                }
                open = open.max(self.excluded);
                interval = match self.found() {
                    Some(found) => open + (found - open) / 2,
                    None => interval.saturating_add(step).min(limit).max(open),
                };
                step = step.saturating_mul(2);
            }
            if self.found() == Some(self.excluded) {
                return None;
            }
            if self.too_large {
                return Some("size of the encoding".into());
            }
            work = work.saturating_mul(4);
        }
    }

    fn found(&self) -> Option<i64> {
        self.best.as_ref().map(|b| b.interval.0)
    }

    /// Returns whether the interval was settled.
    fn ask(&mut self, interval: i64) -> bool {
        (self.progress)(Progress::Trying { interval: Cycles(interval) });
        match query::ask(&self.net, interval, &self.meter) {
            Verdict::Found(slots) => {
                let times = place::place(&self.net, interval, &slots);
                let stages = saturate::<u32>(times.stages());
                (self.progress)(Progress::Found { interval: Cycles(interval), stages });
                self.best = Some(times);
            }
            Verdict::Excluded { conflicts } => {
                let interval = Cycles(interval);
                (self.progress)(Progress::Rejected { interval });
                let reason = RejectionReason::Throughput { conflicts };
                self.rejections.push(Rejection { interval, stages: None, reason });
                self.excluded = self.excluded.max(interval.0 + 1);
            }
            Verdict::Stopped => return false,
            Verdict::TooLarge => {
                self.too_large = true;
                return false;
            }
        }
        true
    }
}
