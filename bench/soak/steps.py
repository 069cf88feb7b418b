"""The steps of a process, as its lines of JSON tell them, and times by those of stock Triton."""

from __future__ import annotations

import functools
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .figures import Interval, Times, percentile, ratio

SIDES = ("stock", "twill")
PARTS = {"median": 0.5, "p99": 0.99, "p99.9": 0.999}
LATENCY, HOST = "latency", "host time"
"""Of a step until the GPU is done; and of a call until it returns."""
FEWEST = 200
"""Times of each side of which a percentile is told."""

Key = tuple[str, str, str, int]
"""What was timed, whose, of what call, and how many calls a step has; the latter is 1 for host times."""


class Steps:
    """What was measured in a process."""

    def __init__(self) -> None:
        self.times: dict[Key, Times] = defaultdict(Times)
        """In µs. A block has a segment of each side."""
        self.count = {"stock": 0, "twill": 0, "misses": 0, "trials": 0}
        """Steps of each side, and those of Twill's in which a contest was missing, or something was tried."""
        self._disturbed: list[tuple[str, str, int, float]] = []
        self._segments = 0

    def add(self, segment: dict[str, Any], requests: Sequence[str]) -> None:
        """The steps of a segment, if they count."""
        if not segment["counts"]:
            return
        block, side = self._segments // 2, segment["side"]
        self._segments += 1
        for number, latency, misses, trials, *hosts in segment["steps"]:
            name, calls = requests[int(number)], len(hosts)
            self.count[side] += 1
            self.times[LATENCY, side, name, calls].add(latency, block)
            for host in hosts:
                self.times[HOST, side, name, 1].add(host, block)
            if side == "twill":
                for kind, times in (("misses", misses), ("trials", trials)):
                    if times:
                        self.count[kind] += 1
                        self._disturbed.append((kind, name, calls, latency))

    def usual(self, what: str, name: str, calls: int) -> float | None:
        """Stock Triton's median."""
        stock = self.times.get((what, "stock", name, calls))
        return statistics.median(stock.values) if stock else None

    def normalised(self, what: str, side: str, name: str | None, calls: int | None) -> Times:
        """Times of a side by stock Triton's median for such steps: of all, or those of a call, or with so many calls."""
        found = Times()
        for (own, of, request, many), times in sorted(self.times.items()):
            if (own, of) == (what, side) and name in (None, request) and calls in (None, many):
                usual = self.usual(what, request, many)
                if usual:
                    found.extend(times.divided(usual))
        return found

    def disturbed(self, kind: str) -> list[float]:
        """Latencies of Twill's steps with a missing contest, or with a trial, by stock Triton's median."""
        usual = functools.cache(lambda name, calls: self.usual(LATENCY, name, calls))
        return [time / usual(name, calls) for of, name, calls, time in self._disturbed if of == kind and usual(name, calls)]


@dataclass(frozen=True)
class Figures:
    """Percentiles of both sides, by stock Triton's median, and the ratio of the 99th."""

    steps: dict[str, int]
    stock: dict[str, float]
    twill: dict[str, float]
    p99: Interval


def figures(stock: Times, twill: Times) -> Figures | None:
    """What times say; None where there are too few."""
    if min(len(stock), len(twill)) < FEWEST:
        return None
    sides = []
    for times in (stock, twill):
        values = sorted(times.values)
        sides.append({name: percentile(values, part) for name, part in PARTS.items()})
    return Figures({"stock": len(stock), "twill": len(twill)}, *sides, ratio(twill, stock, PARTS["p99"]))
