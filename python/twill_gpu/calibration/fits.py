"""Numbers that were measured several times, and lines through them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """A number as each of several launches gave it."""

    launches: tuple[float, ...]

    @property
    def value(self) -> float:
        """The mean of the middle four fifths, which a few disturbed launches do not move."""
        return statistics.fmean(self._middle)

    @property
    def spread(self) -> float:
        """Half of what the middle four fifths of the launches span."""
        return (self._middle[-1] - self._middle[0]) / 2

    @property
    def _middle(self) -> list[float]:
        ordered = sorted(self.launches)
        left_out = len(ordered) // 10
        return ordered[left_out : len(ordered) - left_out]

    @property
    def relative_spread(self) -> float:
        """The spread as a part of the value; 0 of what is 0."""
        return self.spread / abs(self.value) if self.value else 0.0

    def __add__(self, other: Measured) -> Measured:
        return Measured(tuple(a + b for a, b in zip(self.launches, other.launches)))

    def __sub__(self, other: Measured) -> Measured:
        return Measured(tuple(a - b for a, b in zip(self.launches, other.launches)))

    def __mul__(self, factor: float) -> Measured:
        return Measured(tuple(factor * a for a in self.launches))

    def __truediv__(self, divisor: float) -> Measured:
        return self * (1 / divisor)

    def reciprocal(self, amount: float = 1.0) -> Measured:
        """An amount over this; no number where this is 0."""
        return Measured(tuple(amount / a if a else float("nan") for a in self.launches))


@dataclass(frozen=True)
class Line:
    """A line through points, by least squares, launch by launch."""

    intercept: Measured
    slope: Measured
    points: tuple[tuple[float, float], ...]
    """The input."""

    def at(self, x: float) -> Measured:
        """The line's value there."""
        return self.intercept + self.slope * x

    @property
    def residual(self) -> float:
        """How far the farthest point lies from the line, as a part of the largest."""
        largest = max(abs(y) for _, y in self.points)
        distances = [abs(y - self.intercept.value - self.slope.value * x) for x, y in self.points]
        return max(distances) / largest if largest else 0.0


def line(points: Sequence[tuple[float, Measured]]) -> Line:
    """The line through at least two points with different x."""
    xs = [x for x, _ in points]
    each = [through(xs, ys) for ys in zip(*(y.launches for _, y in points))]
    intercept, slope = (Measured(numbers) for numbers in zip(*each))
    return Line(intercept, slope, tuple((x, y.value) for x, y in points))


def through(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """Intercept and slope of least squares."""
    middle, height = statistics.fmean(xs), statistics.fmean(ys)
    width = sum((x - middle) ** 2 for x in xs)
    slope = sum((x - middle) * (y - height) for x, y in zip(xs, ys)) / width
    return height - slope * middle, slope


def mean(numbers: Sequence[Measured]) -> Measured:
    """The mean of several, launch by launch."""
    return Measured(tuple(statistics.fmean(each) for each in zip(*(one.launches for one in numbers))))


def latest(numbers: Sequence[Measured]) -> Measured:
    """The largest of several, launch by launch."""
    return Measured(tuple(max(each) for each in zip(*(one.launches for one in numbers))))


def pooled(numbers: Sequence[Measured]) -> Measured:
    """Several measurements of one thing as one, where each launch measured it several times."""
    return Measured(tuple(number for one in numbers for number in one.launches))
