//! `F(d) = P(X ≤ d)` of one start, at as many steps as it takes to draw it.
//!
//! `X` is `N(μ, σ²)` rounded to the nearest step and pushed into the mobility window, so that the tails lie in its end
//! steps: `F(d) = 0` below the window, `1` from its last step on, `Φ((d + ½ − μ)/σ)` between. Between two knots `F` is
//! taken to be linear. Where knots are one step apart this is exact; where `σ` is large they are further apart, and the
//! cost of an operation is bounded whatever its `σ`.

use super::normal::normal;

/// How finely distributions are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Detail {
    /// Half width of the window, in `σ`; beyond it a distribution is taken to be 0 or 1. Default 3 (own: what is cut
    /// off is 0.0013).
    pub reach: f64,
    /// Most steps between knots, in `σ`; 0 for a knot at every step. Default 1 (own: within 0.03 of `Φ`).
    /// Finer ones cost more and led to the same schedules.
    pub spacing: f64,
}

impl Default for Detail {
    fn default() -> Self {
        Self { reach: 3.0, spacing: 1.0 }
    }
}

/// One start: its distribution and the window that it is pushed into.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Mean.
    pub mu: f64,
    /// Standard deviation, above 0.
    pub sigma: f64,
    /// First step of the window.
    pub earliest: i64,
    /// Last step of the window.
    pub latest: i64,
}

/// `F` at a step, and its derivatives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// `F`.
    pub value: f64,
    /// `∂F/∂μ`.
    pub by_mu: f64,
    /// `∂F/∂σ`.
    pub by_sigma: f64,
}

impl Point {
    /// Before the start.
    pub const NEVER: Point = Point { value: 0.0, by_mu: 0.0, by_sigma: 0.0 };
    /// After it.
    pub const EVER: Point = Point { value: 1.0, ..Self::NEVER };
}

impl Start {
    /// `F(d)`.
    pub fn at(&self, step: i64) -> Point {
        if step < self.earliest {
            return Point::NEVER;
        }
        if step >= self.latest {
            return Point::EVER;
        }
        let z = (step as f64 + 0.5 - self.mu) / self.sigma;
        let (cdf, pdf) = normal(z);
        Point { value: cdf, by_mu: -pdf / self.sigma, by_sigma: -z * pdf / self.sigma }
    }

    /// First and last step at which `F` is neither 0 nor 1 by `detail`; `F` is 1 at the last one.
    pub fn window(&self, detail: Detail) -> (i64, i64) {
        let half = detail.reach * self.sigma + 0.5;
        let first = ((self.mu - half).floor() as i64).clamp(self.earliest, self.latest);
        let last = ((self.mu + half).ceil() as i64).clamp(first, self.latest);
        (first, last)
    }

    /// Steps between knots.
    pub fn stride(&self, detail: Detail) -> i64 {
        ((self.sigma * detail.spacing) as i64).max(1)
    }
}

/// A piecewise linear function of steps: 0 up to `before`, constant from the last knot.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// The last step before the first knot.
    pub before: i64,
    /// Steps, rising, and the value there.
    pub knots: Vec<(i64, f64)>,
}

/// `F` of one start, drawn.
#[derive(Clone, Debug, Default)]
pub struct Drawn {
    /// The values; the last knot is the first step at which it is 1.
    pub curve: Curve,
    /// The same with derivatives, knot by knot.
    pub points: Vec<Point>,
}

impl Drawn {
    /// Draws `F` of `start`, in place of what was drawn before.
    pub fn draw(&mut self, start: &Start, detail: Detail) {
        let (first, last) = start.window(detail);
        let stride = start.stride(detail);
        self.curve.before = first - 1;
        self.curve.knots.clear();
        self.points.clear();
        let mut step = first;
        while step < last {
            self.add(step, start.at(step));
            // The tail lies in the last step: the one before it ends the drawn part.
            step = if step < last - 1 { (step + stride).min(last - 1) } else { last };
        }
        self.add(last, Point::EVER);
    }

    fn add(&mut self, step: i64, point: Point) {
        self.curve.knots.push((step, point.value));
        self.points.push(point);
    }
}
