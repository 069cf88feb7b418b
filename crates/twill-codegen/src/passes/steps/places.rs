//! Where the events of a group stand in its code: in which order, and in which window of one interval.
//!
//! Events follow each other by their times in the schedule. For code there are four reordering, none of which changes the
//! order of what computes:
//!
//! - A group that loads and also waits for others, to store what they computed, starts its loads as many iterations earlier
//!   as rings have slots beyond those that the schedule needs: a late result must not hold back what the next iteration reads.
//!   (Backward attention on an H200: 540 instead of 450 TFLOP/s.)
//! - Where MMAs are to start in batches, a release that waits for an MMA only to give a buffer back is put after the
//!   next wait of the group that includes it (units end in order, so it costs nothing there), or after the next MMA that
//!   the group starts in this iteration: earlier it would stop the group from starting it. How long the buffer can do without
//!   is up to its slots; the protocol checker sees to it that nobody waits for ever.
//! - There, too, an MMA is put after what the group writes to shared memory before it waits for a value or starts another:
//!   a group stands at an MMA until the tensor core takes it. Ahead of what fences and gives away what is written it is
//!   put in the end (`kernel::fences`).
//! - The loop's body begins where the fewest MMAs are in flight, or, where MMAs leave results in tensor memory,
//!   the fewest registers are in use.

use crate::passes::steps::events::{EventKind, Events, RelativeStep};
use crate::passes::steps::program::{Barrier, BufferKind, Purpose};
use crate::passes::steps::scheduled_graph::ScheduledGraph;
use std::collections::HashMap;
use twill_graph::saturate;
use twill_graph::{GroupId, OpId, Storage};

/// The order of a group's events, and the window of each.
pub(crate) struct Places {
    /// Numbers of events.
    pub order: Vec<usize>,
    /// By number of event, counted from some window.
    pub windows: HashMap<usize, i64>,
}

/// Places of a group's events in one line: twice their number among those of all iterations, so that there is room between
/// any two.
struct Line<'a> {
    scheduled: &'a ScheduledGraph<'a>,
    all: &'a Events,
    /// Event and place in iteration 0.
    places: Vec<(usize, i64)>,
    /// From an event to the same event of the next iteration.
    period: i64,
}

impl Places {
    pub(crate) fn new(scheduled: &ScheduledGraph, all: &Events, ranks: &[usize], group: GroupId) -> Places {
        let interval = scheduled.interval();
        let mut order: Vec<usize> = (0..all.events.len()).filter(|&k| all.events[k].group == group).collect();
        order.sort_by_key(|&k| (all.events[k].time.rem_euclid(interval), ranks.get(k).copied().unwrap_or(k)));
        let period = 2 * saturate::<i64>(order.len());
        let place = |(position, &k): (usize, &usize)| {
            let position = 2 * saturate::<i64>(position);
            (k, all.events[k].time.div_euclid(interval) * period + position)
        };
        let places = order.iter().enumerate().map(place).collect();
        let mut line = Line { scheduled, all, places, period };
        let mut cut = 0;
        if let Some(reordering) = scheduled.code {
            if reordering.mma_batches {
                line.put_off_releases();
                line.put_off_starts();
            }
            line.run_ahead(reordering.ring_depth);
            let in_tensor = scheduled.graph.operations().iter().any(|o| matches!(o.storage, Storage::Tensor(_)));
            cut = if in_tensor { line.empty_place() } else { line.quiet_place() };
        }
        line.places.sort_by_key(|(_, place)| (place - cut).rem_euclid(period));
        let window = |place: i64| (place - cut).div_euclid(period);
        Places {
            order: line.places.iter().map(|(k, _)| *k).collect(),
            windows: line.places.iter().map(|(k, place)| (*k, window(*place))).collect(),
        }
    }
}

impl Line<'_> {
    /// Where an operation issues in iteration 0.
    fn issue(&self, op: OpId) -> Option<i64> {
        let issues = |k: usize| self.all.events[k].kind.issues() == Some(op);
        self.places.iter().find(|(k, _)| issues(*k)).map(|(_, place)| *place)
    }

    fn is_mma(&self, op: OpId) -> bool {
        self.scheduled.is_asynchronous(op) && matches!(self.scheduled.operation(op).storage, Storage::Registers(_))
    }

    /// Waits of an event for MMAs, with the iteration.
    fn waits(&self, k: usize) -> impl Iterator<Item = (OpId, i64, Purpose)> + '_ {
        self.all.events[k].steps.iter().filter_map(|step| match *step {
            RelativeStep::WaitAsync { op, at, purpose } if self.is_mma(op) => Some((op, at, purpose)),
            _ => None,
        })
    }

    /// Starts loads as many intervals earlier as their rings have slots to spare, if the group waits for results of others.
    fn run_ahead(&mut self, ring_depth: u32) {
        if !self.places.iter().any(|(k, _)| self.awaits(*k)) {
            return;
        }
        for (k, place) in &mut self.places {
            let EventKind::Start(op) = self.all.events[*k].kind else { continue };
            // A load of an address that the group computes, or in an order with others, stays.
            if self.scheduled.graph.dependences().iter().any(|d| d.to == op || (d.from == op && !d.carries_value)) {
                continue;
            }
            let ring = self.all.planned.iter().map(|p| &p.buffer).find(|buffer| {
                matches!(buffer.kind, BufferKind::Ring(_)) && buffer.values.iter().any(|value| value.op == op)
            });
            let spare = ring.map_or(0, |ring| ring_depth.saturating_sub(ring.depth));
            *place -= i64::from(spare) * self.period;
        }
    }

    /// Puts releases after waits that include theirs, at most one interval later.
    fn put_off_releases(&mut self) {
        let mut moved = Vec::new();
        for (position, &(k, place)) in self.places.iter().enumerate() {
            if !matches!(self.all.events[k].kind, EventKind::ConsumerRelease(..)) {
                continue;
            }
            let issued = self.waits(k).filter_map(|(op, at, _)| Some((op, self.issue(op)? + at * self.period)));
            let needed: Vec<(OpId, i64)> = issued.collect();
            let wait = needed.iter().filter_map(|(op, issued)| self.next_wait(*op, *issued, place)).max();
            // After an iteration's last MMA nothing is held back, and the loop may begin anew with none in flight.
            let iteration = self.waits(k).map(|(_, at, _)| at).max();
            let start = self.next_start(place).filter(|(_, of)| iteration.is_some_and(|iteration| *of <= iteration));
            let latest = start.and_then(|(start, _)| wait.into_iter().chain([start]).min());
            let bound = needed.iter().filter_map(|(op, issued)| self.operands_change(*op, *issued)).min();
            let latest = latest.map(|l| l + 1).filter(|l| *l - place <= self.period);
            if let Some(latest) = latest.filter(|l| bound.is_none_or(|bound| *l < bound)) {
                moved.push((position, latest));
            }
        }
        for (position, place) in moved {
            self.places[position].1 = place;
        }
    }

    /// Puts MMAs after what the group writes to shared memory until it next waits or starts another.
    fn put_off_starts(&mut self) {
        let mut moved = Vec::new();
        for (position, &(k, place)) in self.places.iter().enumerate().filter(|(_, (k, _))| self.starts(*k)) {
            let mut after: Vec<(i64, usize)> = self
                .places
                .iter()
                .filter(|(other, _)| *other != k)
                .map(|(other, at)| ((at - place).rem_euclid(self.period), *other))
                .collect();
            after.sort_unstable();
            // What others started an iteration ago does not hold the group back.
            let own = self.all.events[k].kind.issues();
            let waits = |k: usize| self.waits(k).any(|(op, at, _)| at >= 0 || Some(op) == own) || self.awaits(k);
            let until = |k: usize| self.starts(k) || waits(k);
            let stretch = after.iter().take_while(|(_, other)| !until(*other));
            let written = stretch.filter(|(_, other)| {
                let stores = |op| matches!(self.scheduled.operation(op).storage, Storage::Shared(_));
                matches!(self.all.events[*other].kind, EventKind::Run(op) if stores(op))
            });
            moved.extend(written.map(|(after, _)| *after).max().map(|after| (position, place + after + 1)));
        }
        for (position, place) in moved {
            self.places[position].1 = place;
        }
    }

    /// Whether an event starts an MMA.
    fn starts(&self, k: usize) -> bool {
        matches!(self.all.events[k].kind, EventKind::Start(op) if self.is_mma(op))
    }

    /// Whether an event waits for a value of another group.
    fn awaits(&self, k: usize) -> bool {
        let awaits =
            |step: &RelativeStep| matches!(step, RelativeStep::MbarrierWait { barrier: Barrier::Full { .. }, .. });
        self.all.events[k].steps.iter().any(awaits)
    }

    /// Where the group next starts an MMA, and of which iteration.
    fn next_start(&self, from: i64) -> Option<(i64, i64)> {
        let next = |place: i64| (from - place).div_euclid(self.period) + 1;
        let places = self.places.iter().filter(|(k, _)| self.starts(*k));
        places.map(|(_, place)| (place + next(*place) * self.period, next(*place))).min()
    }

    /// Where the group next makes what an MMA that issues at a place reads from registers.
    fn operands_change(&self, op: OpId, issued: i64) -> Option<i64> {
        let own = self.scheduled.group(op);
        let in_registers = |from: OpId| {
            matches!(self.scheduled.operation(from).storage, Storage::Registers(_))
                && self.scheduled.group(from) == own
                && !self.is_mma(from)
        };
        let operands = self.scheduled.graph.dependences().iter().filter(|d| d.to == op && d.carries_value && !d.tied);
        let made = operands.filter(|d| in_registers(d.from)).filter_map(|d| self.issue(d.from));
        made.map(|place| place + ((issued - place).div_euclid(self.period) + 1) * self.period).min()
    }

    /// The first event from a place on that waits, for a reason of its own, for what was issued at a place or later to the
    /// unit of `op`.
    fn next_wait(&self, op: OpId, issued: i64, from: i64) -> Option<i64> {
        let queue = self.scheduled.queue(op);
        let up = |difference: i64| -(-difference).div_euclid(self.period);
        let waits = self.places.iter().flat_map(|&(k, place)| {
            let own = self.waits(k).filter(move |(awaited, _, purpose)| {
                *purpose != Purpose::ConsumerRelease && self.scheduled.queue(*awaited) == queue
            });
            own.filter_map(move |(awaited, at, _)| {
                let late_enough = up(issued - self.issue(awaited)?) - at;
                Some(place + late_enough.max(up(from - place)) * self.period)
            })
        });
        waits.min()
    }

    /// Where the loop's body begins if no MMAs are in flight in registers: where the fewest words are carried from
    /// iteration to iteration.
    fn empty_place(&self) -> i64 {
        let lives = self.register_lives();
        let carried = |cut: i64| -> i64 {
            let crossed = |&(start, end): &(i64, i64)| {
                (end - cut).div_euclid(self.period) - (start - cut).div_euclid(self.period)
            };
            lives.iter().map(|(live, words)| crossed(live) * words).sum()
        };
        let cuts = self.places.iter().map(|&(_, place)| (carried(place), place.rem_euclid(self.period)));
        cuts.min().map_or(0, |(_, place)| place)
    }

    /// From where to where values of the group are in registers, and how many words they are.
    fn register_lives(&self) -> Vec<((i64, i64), i64)> {
        let mut lives = Vec::new();
        for op in self.scheduled.graph.op_ids() {
            let Storage::Registers(words) = self.scheduled.operation(op).storage else { continue };
            let Some(start) = self.issue(op) else { continue };
            let handed_off =
                self.places.iter().find(|(k, _)| self.all.events[*k].kind == EventKind::ProducerCommit(op));
            let read = |d: &twill_graph::Dependence| match self.scheduled.crosses(d) {
                true => handed_off.map(|(_, place)| *place),
                false => Some(self.issue(d.to)? + i64::from(d.distance) * self.period),
            };
            let end = self.scheduled.uses(op).filter_map(read).max().unwrap_or(start);
            lives.push(((start, end), saturate::<i64>(words.0)));
        }
        lives
    }

    /// Where the loop's body begins: at the place that the fewest MMAs are in flight over, since compilers move values
    /// from one iteration to the next there, and ptxas serialises all MMAs if it finds one whose result is
    /// moved before it is waited for (note C7514). Among equals, before an MMA: what is carried to the next iteration
    /// is computed before it begins, so nothing stands between there and the MMA.
    fn quiet_place(&self) -> i64 {
        let mut in_flight: Vec<(i64, i64)> = Vec::new();
        for &(k, start) in &self.places {
            let EventKind::Start(op) = self.all.events[k].kind else { continue };
            if !self.is_mma(op) {
                continue;
            }
            let waits = self.places.iter().flat_map(|&(k, place)| {
                let of = self.waits(k).filter(move |(awaited, ..)| *awaited == op);
                of.map(move |(_, at, _)| place - at * self.period)
            });
            in_flight.push((start, waits.min().unwrap_or(start + self.period)));
        }
        let over = |cut: i64| -> i64 {
            let crossed = |&(start, end): &(i64, i64)| {
                (end - cut).div_euclid(self.period) - (start - cut).div_euclid(self.period)
            };
            in_flight.iter().map(crossed).sum()
        };
        let begins = |k: usize| !matches!(self.all.events[k].kind, EventKind::Start(op) if self.is_mma(op));
        let cuts = self.places.iter().map(|&(k, place)| (over(place), begins(k), place.rem_euclid(self.period)));
        cuts.min().map_or(0, |(.., place)| place)
    }
}
