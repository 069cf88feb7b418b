//! From events to warp programs: order, waits that are not needed, prologue, loop, epilogue.
//!
//! Time is cut into windows of one interval. Relative to its group's first window, an event has a
//! stage `s`: in window `k` it is done for iteration `k − s`, if that is an iteration of the loop.
//! With `S` the group's last stage: windows `0 … S−1` are the prologue, window `k` of
//! `S … T−1` is the loop with variable `i = k`, windows `T … T+S−1` are the epilogue. For a trip
//! count `T < S` the loop does not run; the prologue does iteration `k − s` only if `k − s < T`,
//! and the epilogue's windows are only those from `S` on; or a shorter pipeline runs.

use crate::passes::steps::events::{EventKind, Events, RelativeStep};
use crate::passes::steps::order::{precedences, ranks};
use crate::passes::steps::places::Places;
use crate::passes::steps::program::{Barrier, Block, BufferId, GroupSteps, Iteration, LoopProgram, Step};
use crate::passes::steps::scheduled_graph::{ReorderingOptions, ScheduledGraph};
use crate::passes::steps::shared_barriers::SharedBarriers;
use std::collections::{HashMap, HashSet};
use twill_check::Verified;
use twill_graph::saturate;
use twill_graph::{GroupId, GroupRole, OpId, Problem, Schedule, WarpGroup};

impl LoopProgram {
    /// The warp programs of a schedule, which must have been verified against `problem`.
    pub fn new(problem: &Problem, schedule: &Verified<Schedule>) -> LoopProgram {
        LoopProgram::from_claim(problem, schedule)
    }

    /// [`LoopProgram::new`] of any schedule.
    pub(crate) fn from_claim(problem: &Problem, schedule: &Schedule) -> LoopProgram {
        LoopProgram::of(ScheduledGraph::new(problem, schedule), schedule)
    }

    /// The warp programs that code is generated from: registers are left to the compiler, and rings may
    /// have been used before.
    pub(crate) fn for_code(problem: &Problem, schedule: &Schedule, reordering: ReorderingOptions) -> LoopProgram {
        let scheduled = ScheduledGraph::new(problem, schedule).for_code(reordering);
        if !reordering.shared_barriers {
            return LoopProgram::of(scheduled, schedule);
        }
        let shared = SharedBarriers::of(&scheduled, reordering.ring_depth);
        LoopProgram::of(scheduled.sharing(&shared), schedule)
    }

    fn of(scheduled: ScheduledGraph<'_>, schedule: &Schedule) -> LoopProgram {
        let mut spare = HashSet::new();
        let (all, ranks) = loop {
            let all = Events::new(&scheduled, &spare);
            match ranks(scheduled.interval(), &all.events, &precedences(&scheduled, &all)) {
                Ok(ranks) => break (all, ranks),
                // With one copy more its writer comes an interval after the reader: no more than
                // one is ever needed.
                Err(reused) if spare.insert(reused) => {}
                Err(_) => break (all, Vec::new()),
            }
        };
        let precedences = precedences(&scheduled, &all);
        let warp = |g: &WarpGroup| {
            let builder = StepBuilder::new(&scheduled, &all, &ranks, g.id);
            let is_shortened = g.role == GroupRole::VariableLatency
                && scheduled.code.is_some_and(|reordering| reordering.shorter_pipelines);
            if is_shortened { builder.with_shorter(&precedences) } else { builder.program() }
        };
        let warps = schedule.groups.iter().map(warp).collect();
        LoopProgram { buffers: all.planned.into_iter().map(|p| p.buffer).collect(), warps }
    }
}

/// An event in its group's order.
struct Placed {
    number: usize,
    kind: EventKind,
    steps: Vec<(RelativeStep, Needed)>,
    /// Windows after the group's first.
    stage: i64,
}

/// One group's program in the making.
pub(super) struct StepBuilder<'a> {
    scheduled: &'a ScheduledGraph<'a>,
    all: &'a Events,
    group: GroupId,
    /// In the order of the steady state.
    events: Vec<Placed>,
    /// Position and stage of each asynchronous operation of the group.
    issued: HashMap<OpId, (usize, i64)>,
    /// The last stage.
    stages: i64,
}

/// The window that an event is done in.
#[derive(Clone, Copy)]
enum Window {
    Prologue(i64),
    Steady,
    Epilogue(i64),
}

impl<'a> StepBuilder<'a> {
    fn new(scheduled: &'a ScheduledGraph<'a>, all: &'a Events, ranks: &[usize], group: GroupId) -> StepBuilder<'a> {
        let Places { order, windows } = Places::new(scheduled, all, ranks, group);
        let window = |k: usize| windows.get(&k).copied().unwrap_or(0);
        let first = order.iter().map(|&k| window(k)).min().unwrap_or(0);
        let order = order.iter().map(|&k| (k, window(k) - first)).collect();
        StepBuilder::of(scheduled, all, group, order)
    }

    /// That of a group's events in this order, with their stages.
    fn of(
        scheduled: &'a ScheduledGraph<'a>,
        all: &'a Events,
        group: GroupId,
        order: Vec<(usize, i64)>,
    ) -> StepBuilder<'a> {
        let waits: Vec<(i64, &[RelativeStep])> =
            order.iter().map(|&(k, stage)| (stage, all.events[k].steps.as_slice())).collect();
        let needed = needed_waits(&waits);
        let placed = |(&(number, stage), needed): (&(usize, i64), Vec<Needed>)| Placed {
            number,
            kind: all.events[number].kind,
            steps: all.events[number]
                .steps
                .iter()
                .cloned()
                .zip(needed)
                .filter(|(_, n)| *n != Needed::Nowhere)
                .collect(),
            stage,
        };
        let events: Vec<Placed> = order.iter().zip(needed).map(placed).collect();
        let issued = events
            .iter()
            .enumerate()
            .filter_map(|(k, e)| match e.kind {
                EventKind::Start(op) => Some((op, (k, e.stage))),
                EventKind::Run(_) | EventKind::ProducerCommit(_) | EventKind::ConsumerRelease(..) => None,
            })
            .collect();
        let stages = events.iter().map(|e| e.stage).max().unwrap_or(0);
        StepBuilder { scheduled, all, group, events, issued, stages }
    }

    /// The group's events with their stages, in the order of the steady state.
    pub(super) fn stages_of_events(&self) -> Vec<(usize, i64)> {
        self.events.iter().map(|event| (event.number, event.stage)).collect()
    }

    /// The same group's in another order, with other stages.
    pub(super) fn reordered(&self, order: Vec<(usize, i64)>) -> StepBuilder<'a> {
        StepBuilder::of(self.scheduled, self.all, self.group, order)
    }

    pub(super) fn program(&self) -> GroupSteps {
        let mut prologue = Vec::new();
        for window in 0..self.stages {
            for (k, event) in self.events.iter().enumerate().filter(|(_, e)| e.stage <= window) {
                let above = saturate::<u32>(window - event.stage);
                extend(&mut prologue, above, self.steps(k, Window::Prologue(window)));
            }
        }
        let steady = (0..self.events.len()).flat_map(|k| self.steps(k, Window::Steady)).collect();
        let mut epilogue = Vec::new();
        for window in 0..self.stages {
            let above = saturate::<u32>(self.stages - window - 1);
            for (k, _) in self.events.iter().enumerate().filter(|(_, e)| e.stage > window) {
                extend(&mut epilogue, above, self.steps(k, Window::Epilogue(window)));
            }
        }
        let first = saturate::<u32>(self.stages);
        GroupSteps { group: self.group, first, prologue, steady, epilogue, shorter: None }
    }

    /// The steps of an event in a window.
    fn steps(&self, position: usize, window: Window) -> Vec<Step> {
        let event = &self.events[position];
        let iteration = |at: i64| match window {
            Window::Prologue(k) => Iteration::Absolute(k - event.stage + at),
            Window::Steady => Iteration::Current(at - event.stage),
            Window::Epilogue(m) => Iteration::End(m - event.stage + at),
        };
        // Waits that return at once for every trip count.
        let nothing = |at: i64, depth: i64| match iteration(at) {
            Iteration::Absolute(n) => n < depth,
            Iteration::Current(_) => false,
            Iteration::End(n) => n >= 0,
        };
        let absolute = |step: &RelativeStep| {
            Some(match *step {
                RelativeStep::Issue { op, ref signals } => Step::Issue {
                    op,
                    iteration: iteration(0),
                    signals: signals.iter().map(|(barrier, at)| (*barrier, iteration(*at))).collect(),
                },
                RelativeStep::Store { op, buffer } => Step::Store { op, iteration: iteration(0), buffer },
                RelativeStep::MbarrierWait { barrier, at } => {
                    let depth = match barrier {
                        Barrier::Full { .. } => 0,
                        Barrier::Empty { buffer } => i64::from(self.all.planned[buffer.index()].buffer.depth),
                    };
                    let continued = self.scheduled.code.is_some() && matches!(barrier, Barrier::Empty { .. });
                    if !continued && nothing(at, depth) {
                        return None;
                    }
                    Step::MbarrierWait { barrier, iteration: iteration(at) }
                }
                RelativeStep::MbarrierArrive { barrier, at } => {
                    Step::MbarrierArrive { barrier, iteration: iteration(at) }
                }
                RelativeStep::WaitAsync { op, at, purpose } => {
                    if nothing(at, 0) {
                        return None;
                    }
                    let newer_in_flight = self.newer_in_flight(position, op, at, window);
                    Step::WaitAsync { op, iteration: iteration(at), newer_in_flight, purpose }
                }
            })
        };
        let here = |needed: &Needed| *needed == Needed::Everywhere || !matches!(window, Window::Steady);
        let mut steps: Vec<Step> =
            event.steps.iter().filter(|(_, n)| here(n)).filter_map(|(step, _)| absolute(step)).collect();
        self.join_waits(&mut steps);
        steps
    }

    /// Of an event's waits for operations of one queue, which end in order, leaves only the one that
    /// lets the fewest run on.
    fn join_waits(&self, steps: &mut Vec<Step>) {
        let wait = |step: &Step| match step {
            Step::WaitAsync { op, newer_in_flight, .. } => Some((self.scheduled.queue(*op), *newer_in_flight)),
            _ => None,
        };
        let waits: Vec<_> = steps.iter().map(wait).collect();
        let mut k = 0;
        steps.retain(|_| {
            let here = k;
            k += 1;
            let Some((queue, newer)) = waits[here] else { return true };
            let stricter = |(other, wait): (usize, &Option<_>)| {
                wait.is_some_and(|(q, n)| q == queue && (n, other) < (newer, here))
            };
            !waits.iter().enumerate().any(stricter)
        });
    }

    /// How many operations of the same queue are issued between `op` of the awaited iteration and
    /// the event, whatever the trip count.
    fn newer_in_flight(&self, position: usize, op: OpId, at: i64, window: Window) -> u32 {
        let event = &self.events[position];
        let Some(&(target, target_stage)) = self.issued.get(&op) else { return 0 };
        let queue = self.scheduled.queue(op);
        // Windows are counted from iteration 0, from the loop's variable or from the trip count;
        // iterations that surely exist are those from `least` to `most`.
        let (here, least, most) = match window {
            Window::Prologue(k) => (k, 0, k - event.stage),
            Window::Steady => (0, -self.stages, 0),
            Window::Epilogue(m) => (m, m - self.stages, -1),
        };
        let there = here - event.stage + at + target_stage;
        let mut newer = 0_u32;
        for (other, &(place, stage)) in &self.issued {
            if self.scheduled.queue(*other) != queue {
                continue;
            }
            // Windows strictly between the two, and what of the two themselves lies between.
            let from = if place > target { there } else { there + 1 };
            let to = if place < position { here } else { here - 1 };
            let from = from.max(least + stage);
            let to = to.min(most + stage);
            newer = newer.saturating_add(saturate::<u32>((to - from + 1).max(0)));
        }
        newer
    }
}

/// Appends steps to the last block, if that is done for the same trip counts.
fn extend(blocks: &mut Vec<Block>, trip_count_above: u32, steps: Vec<Step>) {
    if steps.is_empty() {
        return;
    }
    match blocks.last_mut() {
        Some(last) if last.trip_count_above == trip_count_above => last.steps.extend(steps),
        _ => blocks.push(Block { trip_count_above, steps }),
    }
}

/// Where a step is needed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needed {
    Everywhere,
    /// In the loop, an earlier wait does.
    AroundTheLoop,
    Nowhere,
}

/// What a wait is for.
#[derive(PartialEq, Eq, Hash)]
enum Awaited {
    Operation(OpId),
    Full(BufferId, OpId),
}

/// When a wait is done, seen from the iteration that it waits for: window and place; and the
/// iteration in which it is done.
struct Wait {
    when: (i64, usize, usize),
    iteration: i64,
}

/// Finds waits for what an earlier step of the group has already waited for.
///
/// Of two waits for the same thing, of iteration `j`, one done in iteration `j + a` and a later one
/// in iteration `j + b`, the later one can go if the earlier one is done whenever it is: if `a`
/// lies between 0 and `b`. In the loop all later iterations up to the window's exist as well, so
/// there it can go if only `a ≥ 0`.
fn needed_waits(events: &[(i64, &[RelativeStep])]) -> Vec<Vec<Needed>> {
    let awaited = |step: &RelativeStep| match *step {
        RelativeStep::WaitAsync { op, at, .. } => Some((Awaited::Operation(op), -at)),
        RelativeStep::MbarrierWait { barrier: Barrier::Full { buffer, value }, at } => {
            Some((Awaited::Full(buffer, value), -at))
        }
        _ => None,
    };
    let mut waits: HashMap<Awaited, Vec<Wait>> = HashMap::new();
    for (k, (stage, steps)) in events.iter().enumerate() {
        for (a, step) in steps.iter().enumerate() {
            if let Some((what, iteration)) = awaited(step) {
                waits.entry(what).or_default().push(Wait { when: (stage + iteration, k, a), iteration });
            }
        }
    }
    let needed = |k: usize, a: usize| {
        let (stage, steps) = events[k];
        let Some((what, iteration)) = awaited(&steps[a]) else { return Needed::Everywhere };
        let when = (stage + iteration, k, a);
        let earlier = || waits.get(&what).into_iter().flatten().filter(|w| w.when < when);
        if earlier().any(|w| (0..=iteration).contains(&w.iteration) || (iteration..=0).contains(&w.iteration)) {
            Needed::Nowhere
        } else if earlier().any(|w| w.iteration >= 0) {
            Needed::AroundTheLoop
        } else {
            Needed::Everywhere
        }
    };
    (0..events.len()).map(|k| (0..events[k].1.len()).map(|a| needed(k, a)).collect()).collect()
}
