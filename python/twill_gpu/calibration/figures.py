"""The findings: numbers with the points that they were fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .fits import Line, Measured


@dataclass(frozen=True)
class Figure:
    """A number that was measured."""

    name: str
    value: float
    unit: str
    spread: float
    """Half of what the middle four fifths of the launches span, as a part of the value."""
    residual: float | None = None
    """The residual of a fit: the distance of the farthest point from the line, as a part of the largest."""
    fit: str = ""
    """The line, and over what."""
    points: tuple[tuple[float, float], ...] = ()
    """The points of the fit."""
    meaning: str = ""
    """In a few words."""

    def as_json(self) -> dict[str, object]:
        """For `--format json`."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "spread": self.spread,
            "residual": self.residual,
            "fit": self.fit,
            "points": [list(point) for point in self.points],
            "meaning": self.meaning,
        }


def figure(
    name: str, measured: Measured, unit: str, meaning: str = "", points: Sequence[tuple[float, float]] = ()
) -> Figure:
    """A number by itself."""
    return Figure(name, measured.value, unit, measured.relative_spread, points=tuple(points), meaning=meaning)


def fitted(name: str, measured: Measured, unit: str, to: Line, over: str, meaning: str = "") -> Figure:
    """A number that comes out of a line."""
    text = f"{number(to.intercept.value)} + {number(to.slope.value)} * {over}"
    return Figure(name, measured.value, unit, measured.relative_spread, to.residual, text, to.points, meaning)


def number(value: float) -> str:
    """A number for people: four digits."""
    return f"{value:.4g}"
