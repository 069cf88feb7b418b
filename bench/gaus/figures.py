"""Rows by question, and the figures that tables and goals are made of."""

import math
import statistics
from dataclasses import dataclass, field

from bench.gaus.cases import OURS


@dataclass
class Answered:
    """One question with all its answers."""

    part: str
    graph: str
    name: str
    by: dict[str, list[dict]] = field(default_factory=dict)

    def rows(self, who: str) -> list[dict]:
        """Those that found something, by seed."""
        return [row for row in self.by.get(who, []) if row["status"] == "found"]

    def values(self, who: str) -> list[int]:
        return [row["value"] for row in self.rows(who)]

    def value(self, who: str) -> float | None:
        """The median over the seeds, of an even number the worse of the two."""
        values = self.values(who)
        return statistics.median_high(values) if values else None

    def seed(self, who: str, seed: int = 1) -> int | None:
        return next((row["value"] for row in self.rows(who) if row["seed"] == seed), None)

    @property
    def bound(self) -> int | None:
        """The greatest lower bound that was stated; of loops it is one on latency at an interval."""
        return max((row["bound"] for rows in self.by.values() for row in rows if row.get("bound") is not None), default=None)

    @property
    def nodes(self) -> int:
        return next(row["nodes"] for rows in self.by.values() for row in rows if "nodes" in row)

    @property
    def latency_bound(self) -> int | None:
        return next(row["bound_on_latency"] for rows in self.by.values() for row in rows)


def by_question(rows: list[dict]) -> list[Answered]:
    found: dict[tuple, Answered] = {}
    for row in rows:
        key = (row["part"], row["graph"], row["question"])
        found.setdefault(key, Answered(*key)).by.setdefault(row["who"], []).append(row)
    for one in found.values():
        for answers in one.by.values():
            answers.sort(key=lambda row: row["seed"])
    return list(found.values())


def geomean(values: list[float]) -> float:
    """Of what is above 0; NaN of nothing."""
    logs = [math.log(value) for value in values if value > 0]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


def gap(questions: list[Answered], who: str = OURS) -> tuple[float, int]:
    """Geometric mean of value / bound, and over how many questions."""
    pairs = [(one.value(who), one.bound) for one in questions]
    ratios = [value / bound for value, bound in pairs if value and bound and bound > 0]
    return geomean(ratios), len(ratios)


def ratios(questions: list[Answered], over: str, under: str) -> list[float]:
    """Values of `over` / values of `under`, with the first seed, where there are both."""
    pairs = [(one.seed(over), one.seed(under)) for one in questions]
    return [first / second for first, second in pairs if first and second and first > 0 and second > 0]


@dataclass
class Comparison:
    """How ours compares with another, question by question."""

    better: list[Answered] = field(default_factory=list)
    # As good, and nothing better is possible.
    at_bound: list[Answered] = field(default_factory=list)
    equal: list[Answered] = field(default_factory=list)
    worse: list[Answered] = field(default_factory=list)

    def __str__(self) -> str:
        text = f"better on {len(self.better)}, equal at the bound on {len(self.at_bound)}"
        return text + f", equal on {len(self.equal)}, worse on {len(self.worse)}"

    @property
    def all(self) -> int:
        return sum(map(len, (self.better, self.at_bound, self.equal, self.worse)))


def compare(questions: list[Answered], other: str, mine: str = OURS) -> Comparison:
    found = Comparison()
    for one in questions:
        ours, theirs = one.value(mine), one.value(other)
        if theirs is None or ours is None:
            continue
        if ours < theirs:
            found.better.append(one)
        elif ours > theirs:
            found.worse.append(one)
        else:
            (found.at_bound if ours == one.bound else found.equal).append(one)
    return found


def slope(points: list[tuple[float, float]]) -> float:
    """Of the logarithms, by least squares: 1 is linear."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len(logs) < 2:
        return math.nan
    return statistics.linear_regression(*zip(*logs, strict=True)).slope
