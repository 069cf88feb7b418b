"""Percentiles, their ratio with an interval, and slopes that single steps do not change."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

ROUNDS = 200
"""Samples of the bootstrap."""
CONFIDENCE = 0.95
TAIL = 5
"""The bootstrap keeps so many times the part of values above a percentile. Samples of more than a few blocks need no more."""


@dataclass
class Times:
    """Times, and for each the block that it was taken in: times of a block are no independent samples."""

    values: array[float] = field(default_factory=lambda: array("d"))
    blocks: array[int] = field(default_factory=lambda: array("L"))

    def __len__(self) -> int:
        return len(self.values)

    def add(self, value: float, block: int) -> None:
        """One more."""
        self.values.append(value)
        self.blocks.append(block)

    def extend(self, other: Times, first: int = 0) -> None:
        """All of another one, whose blocks are counted from here on."""
        self.values.extend(other.values)
        self.blocks.extend(other.blocks if not first else array("L", [first + block for block in other.blocks]))

    def divided(self, by: float) -> Times:
        """All of them, by a number."""
        return Times(array("d", [value / by for value in self.values]), self.blocks)


class Interval(NamedTuple):
    """A figure, and between what bounds it lies by the bootstrap."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} … {self.high:.3f})"


def percentile(values: Iterable[float], part: float) -> float:
    """The least value that at least this part of all values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


class _Upper:
    """The largest times of a side, of which blocks may count several times or not at all."""

    def __init__(self, times: Times, part: float):
        self.part = part
        self.sizes = Counter(times.blocks)
        kept = min(len(times), math.ceil(TAIL * (1 - part) * len(times)) + 1)
        least = sorted(times.values)[-kept]
        self.largest = sorted(((v, b) for v, b in zip(times.values, times.blocks) if v >= least), reverse=True)

    def percentile(self, counts: Counter[int]) -> float:
        """The percentile where blocks count so many times."""
        total = sum(self.sizes[block] * count for block, count in counts.items())
        above = total - math.ceil(self.part * total)
        for value, block in self.largest:
            above -= counts[block]
            if above < 0:
                return value
        return self.largest[-1][0]


def ratio(ours: Times, theirs: Times, part: float, seed: int = 0) -> Interval:
    """A percentile of ours by that of theirs. The interval is of samples of whole blocks, the same ones for both sides."""
    sides = _Upper(ours, part), _Upper(theirs, part)
    blocks = sorted(set(sides[0].sizes) | set(sides[1].sizes))

    def of(counts: Counter[int]) -> float:
        return sides[0].percentile(counts) / sides[1].percentile(counts)

    chance, found = random.Random(seed), []
    for _ in range(ROUNDS):
        counts = Counter(chance.choices(blocks, k=len(blocks)))
        if all(any(side.sizes[block] for block in counts) for side in sides):
            found.append(of(counts))
    outside = (1 - CONFIDENCE) / 2
    return Interval(of(Counter(blocks)), percentile(found, outside), percentile(found, 1 - outside))


def slope(series: Iterable[Sequence[tuple[float, float]]]) -> float:
    """The growth of values over time, by the median of the slopes between any two points of the same series.

    It is what a value grows all the time: where the largest step of a series makes up for it, that is left out.
    """
    kept = [list(points) for points in series]
    return min(_slope(kept), _slope(list(map(_without_step, kept))), key=abs)


def _slope(series: Sequence[Sequence[tuple[float, float]]]) -> float:
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for points in series
        for earlier, later in itertools.combinations(points, 2)
        if later[0] > earlier[0]
    ]
    return statistics.median(slopes) if slopes else 0.0


def _without_step(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same without its largest step upwards."""
    steps = [after[1] - before[1] for before, after in itertools.pairwise(points)]
    if not steps:
        return list(points)
    largest = max(steps)
    at = steps.index(largest)
    return [(when, value - largest * (number > at)) for number, (when, value) in enumerate(points)]
