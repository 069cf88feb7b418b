//! Storage of a value whose producer and readers are where they are only with some probability:
//! `live(d) = F_i(d) · (1 − Π_j F_j(d − δ_j·II))`, started and not yet read by all.
//!
//! Between the producer's window and those of the last readers a value is live for certain: that part takes no knots,
//! so that the cost does not grow with lifetimes.

use super::curve::{Curve, Detail, Point, Start};
use super::profile::Ramps;

/// Readers that may be the last, up to which each has knots of its own.
const MOST_GRIDS: usize = 2;

/// Knots that they share where they are more.
const COMMON_KNOTS: i64 = 12;

/// A reader, and how much later its read is on the producer's clock.
pub type Reader = (Start, i64);

/// The drawn probability that one value is live. The buffers are used again for the next.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// The probability by steps.
    pub curve: Curve,
    readers: Vec<Reader>,
    /// Readers that may be the last: who is certain to have read latest comes first.
    late: Vec<Late>,
    /// How many of `late` may not have read at the step looked at.
    waiting: usize,
    /// From this step on the producer has started.
    started: i64,
    /// Before it somebody has certainly not read.
    dies: i64,
    steps: Vec<i64>,
}

#[derive(Clone, Copy, Debug)]
struct Late {
    /// Position in `readers`.
    reader: usize,
    /// From this step on it has read.
    done: i64,
    /// Its `F` at the step looked at.
    point: Point,
}

impl Live {
    /// Draws the value of `producer` for the readers given; `false` when it is certainly never live.
    pub fn draw(&mut self, producer: &Start, readers: impl Iterator<Item = Reader>, detail: Detail) -> bool {
        self.readers.clear();
        self.readers.extend(readers);
        let windows = || self.readers.iter().map(|(start, shift)| (start.window(detail), *shift));
        let dies = windows().map(|((first, _), shift)| first + shift).max();
        let dead = windows().map(|((_, last), shift)| last + shift).max();
        let (first, last) = producer.window(detail);
        let (Some(dies), Some(dead)) = (dies, dead) else { return false };
        if dead <= first {
            return false;
        }
        self.started = last;
        self.dies = dies;
        self.late.clear();
        for (reader, (start, shift)) in self.readers.iter().enumerate() {
            let done = start.window(detail).1 + shift;
            if done > dies {
                self.late.push(Late { reader, done, point: Point::NEVER });
            }
        }
        self.late.sort_unstable_by_key(|late| (std::cmp::Reverse(late.done), late.reader));
        self.steps.clear();
        rising(first, last.min(dead), producer.stride(detail), &mut self.steps);
        self.steps.extend([dies - 1, dies, dead - 1, dead]);
        if self.late.len() > MOST_GRIDS && detail.spacing > 0.0 {
            rising(dies, dead, ((dead - dies) / COMMON_KNOTS).max(1), &mut self.steps);
        } else {
            for late in &self.late {
                let (start, shift) = self.readers[late.reader];
                let first = start.window(detail).0 + shift;
                rising(first.max(dies), late.done, start.stride(detail), &mut self.steps);
            }
        }
        self.steps.retain(|step| (first..=dead).contains(step));
        self.steps.sort_unstable();
        self.steps.dedup();
        self.curve.before = first - 1;
        self.curve.knots.clear();
        for at in 0..self.steps.len() {
            let step = self.steps[at];
            // From the last knot on the curve is constant, and nothing is live any more.
            let value = if step == dead { 0.0 } else { self.produced(producer, step).value * (1.0 - self.read(step)) };
            self.curve.knots.push((step, value));
        }
        true
    }

    fn produced(&self, producer: &Start, step: i64) -> Point {
        if step >= self.started { Point::EVER } else { producer.at(step) }
    }

    /// Probability that all have read by `step`.
    fn read(&mut self, step: i64) -> f64 {
        self.waiting = 0;
        if step < self.dies {
            return 0.0;
        }
        let mut all = 1.0;
        for late in self.late.iter_mut().take_while(|late| late.done > step) {
            let (start, shift) = self.readers[late.reader];
            late.point = start.at(step - shift);
            all *= late.point.value;
            self.waiting += 1;
        }
        all
    }

    /// Derivatives of a loss in which the value last drawn takes `amount`: by `μ` and `σ` of its producer, and to
    /// `report` for readers that may be the last, by position.
    pub fn trace(
        &mut self,
        producer: &Start,
        ramps: &Ramps,
        amount: f64,
        mut report: impl FnMut(usize, [f64; 2]),
    ) -> [f64; 2] {
        let curve = std::mem::take(&mut self.curve);
        let mut by_producer = [0.0; 2];
        ramps.trace(&curve, 0, |knot, by_value| {
            let (step, by_value) = (curve.knots[knot].0, by_value * amount);
            let started = self.produced(producer, step);
            let read = self.read(step);
            by_producer[0] += by_value * (1.0 - read) * started.by_mu;
            by_producer[1] += by_value * (1.0 - read) * started.by_sigma;
            if read > 0.0 {
                let by_read = -by_value * started.value;
                for late in &self.late[..self.waiting] {
                    // From `dies` on every reader has started with some probability: no division by 0.
                    let by_reader = by_read * read / late.point.value;
                    report(late.reader, [by_reader * late.point.by_mu, by_reader * late.point.by_sigma]);
                }
            }
        });
        self.curve = curve;
        by_producer
    }
}

/// `first`, and on by `stride`, to `last`, with the step before it.
fn rising(first: i64, last: i64, stride: i64, steps: &mut Vec<i64>) {
    let mut step = first;
    while step < last {
        steps.push(step);
        step += stride.min(last - step);
    }
    steps.extend([last - 1, last]);
}
