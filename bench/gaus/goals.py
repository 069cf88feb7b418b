"""What was to be shown of the scheduler for large graphs, and whether the rows show it."""

import math
from dataclasses import dataclass

from bench.gaus import figures
from bench.gaus.cases import CP_SAT, EXACT, FORCE, ITERATIVE, LIST, OURS, SPANS, STEP
from bench.gaus.figures import Answered, compare

# A goal needs most of its questions answered before it is called reached.
ENOUGH = 0.99


@dataclass(frozen=True)
class Goal:
    """One line. `reached` is none where too little was measured to say."""

    what: str
    measured: str
    reached: bool | None

    def cells(self) -> list[str]:
        verdict = {True: "reached", False: "**MISSED**", None: "not measured"}[self.reached]
        return [self.what, self.measured, verdict]


@dataclass(frozen=True)
class Loop:
    """A loop at the intervals that were found."""

    answered: Answered
    # Of the table of optima, or proved in this run.
    optimum: int | None

    def row(self, who: str) -> dict | None:
        """The first seed's."""
        return next((row for row in self.answered.rows(who) if row["seed"] == 1), None)

    @property
    def optimal(self) -> tuple[int, int]:
        """Seeds at the optimum, and seeds."""
        found = [row.get("interval") for row in self.answered.by.get(OURS, [])]
        return sum(interval == self.optimum for interval in found), len(found)


def loops(questions: list[Answered], known: dict[str, int | None]) -> list[Loop]:
    found = []
    for one in questions:
        proved = next((row["interval"] for row in one.rows(EXACT) if row["interval"] == row["bound"]), None)
        found.append(Loop(one, known.get(one.graph) or proved))
    return found


def hatschet(found: list[Loop]) -> list[Goal]:
    settled = [loop for loop in found if loop.optimum is not None and loop.optimal[1]]
    missed = [loop.answered.graph for loop in settled if loop.optimal[0] < loop.optimal[1]]
    good = len(settled) - len(missed)
    first = Goal(
        "HatScheT: least interval on every loop where it is known, with every seed",
        f"{good} of {len(settled)}{listed(missed)}",
        None if not settled else not missed,
    )
    pairs = [(loop.row(OURS), loop.row(ITERATIVE)) for loop in found]
    pairs = [(a, b) for a, b in pairs if a and b and a["interval"] == b["interval"]]
    longer = [a["graph"] for a, b in pairs if a["latency"] > b["latency"]]
    second = Goal(
        "HatScheT: latency at most that of iterative modulo scheduling, at the same interval",
        f"{len(pairs) - len(longer)} of {len(pairs)}{listed(longer)}",
        None if not pairs else not longer,
    )
    fewer, more = (sum(sign * (b["storage"] - a["storage"]) > 0 for a, b in pairs) for sign in (1, -1))
    total = figures.geomean([a["storage"] / b["storage"] for a, b in pairs if b["storage"] and a["storage"]])
    third = Goal(
        "HatScheT: fewer live values than iterative modulo scheduling",
        f"fewer on {fewer}, more on {more} of {len(pairs)}; geometric mean {total:.3f} of theirs",
        None if not pairs else total < 1,
    )
    return [first, second, third, fewest(found)]


def fewest(found: list[Loop]) -> Goal:
    """Live values at our interval and latency, which CP-SAT starts from."""
    rows = [(row, loop.row(ITERATIVE)) for loop in found if (row := loop.row(CP_SAT))]
    fewer = [row["graph"] for row, _ in rows if row["value"] < row["start"]]
    proved = [(row, peer) for row, peer in rows if row["proof"] == "optimal" and row["value"] == row["start"]]
    same = [(row, peer) for row, peer in proved if peer and peer["interval"] == row["interval"] and peer["storage"]]
    names = f" ({', '.join(fewer)})" if fewer else ""
    least = figures.geomean([row["value"] / peer["storage"] for row, peer in same])
    return Goal(
        "HatScheT: CP-SAT finds no fewer live values at the same interval and latency",
        f"fewest, proved, on {len(proved)} of {len(rows)}; fewer on {len(fewer)}{names}; where proved, the least is"
        f" {least:.3f} of iterative modulo scheduling's (geometric mean over {len(same)})",
        None if not rows else not fewer,
    )


def express(questions: list[Answered], optima: dict[tuple[str, str], int]) -> list[Goal]:
    above = [(one, one.value(OURS) - optima[one.graph, one.name]) for one in questions if one.values(OURS)]
    optimal, far = sum(extra == 0 for _, extra in above), [one.graph for one, extra in above if extra > 1]
    below = [one.graph for one, extra in above if extra < 0]
    text = f"{optimal} of {len(above)} optimal, {len(far)} more than 1 above{listed(far)}"
    proved = sum(one.value(OURS) == one.bound for one, _ in above)
    text += f", {proved} proved by our bound"
    text += f"; below the proved optimum: {', '.join(below)}" if below else ""
    reached = optimal >= 55 / 60 * len(above) and not far and not below
    every = sum(all(value == optima[one.graph, one.name] for value in one.values(OURS)) for one, _ in above)
    peers = [
        f"{sum(one.value(who) == optima[one.graph, one.name] for one in questions)} by {who}" for who in (LIST, FORCE, CP_SAT)
    ]
    text += f" (median of the seeds; {every} with every seed; {', '.join(peers)})"
    enough = len(above) >= ENOUGH * len(optima)
    return [Goal("EXPRESS: the optimum on 55 of 60, at most 1 above it", text, reached if enough else None)]


def large(questions: list[Answered], wanted: int) -> list[Goal]:
    found = []
    of_size = [one for one in questions if one.nodes >= 1000 and one.name in ("A", "B") and one.values(OURS)]
    for peer in (LIST, FORCE, SPANS):
        result = compare(of_size, peer)
        bad = [f"{one.graph} {one.name}" for one in result.equal + result.worse]
        what = f"EPFL and gs_random, A and B, from 1,000 nodes on: better than {peer}, or both at the bound"
        found.append(Goal(what, f"{result}{listed(bad)}", None if result.all < max(wanted, 1) else not bad))
    of_size = [one for one in questions if one.nodes > 5000 and one.values(OURS)]
    result = compare(of_size, CP_SAT)
    bad = [f"{one.graph} {one.name}" for one in result.worse]
    what = "above 5,000 nodes: at least as good as CP-SAT from the list schedule, same wall clock"
    found.append(Goal(what, f"{result}{listed(bad)}", None if not result.all else not bad))
    return found


def score(questions: list[Answered]) -> list[Goal]:
    found = []
    of_score = [one for one in questions if one.name == "score" and one.values(OURS)]
    for peer in (LIST, CP_SAT):
        result = compare(of_score, peer)
        bad = [one.graph for one in result.worse]
        what = f"GS-Schedule's own score, all 12 graphs: not worse than {peer}"
        found.append(Goal(what, f"{result}{listed(bad)}", None if result.all < 12 else not bad))
    return found


def largest(questions: list[Answered]) -> list[Goal]:
    rows = [row for one in questions if one.graph == "div" and one.part == "epfl" for row in one.rows(OURS)]
    if not rows:
        return [Goal("`div` (57,375 nodes) in less than 60 s and 2 GB", "", None)]
    seconds, memory = max(row["seconds"] for row in rows), max(row["memory"] for row in rows)
    text = f"{seconds:.1f} s and {memory / 1e9:.2f} GB at most, whole process"
    return [Goal("`div` (57,375 nodes) in less than 60 s and 2 GB", text, seconds < 60 and memory < 2e9)]


def linear(questions: list[Answered]) -> list[Goal]:
    found, slopes = [], {}
    for family in ("shallow", "deep"):
        points = steps(questions, family)
        # Below a few thousand, what does not depend on the size matters.
        slopes[family] = figures.slope([point for point in points if point[0] >= 4000])
    known = [value for value in slopes.values() if not math.isnan(value)]
    text = ", ".join(f"{family} n^{value:.2f}" for family, value in slopes.items() if not math.isnan(value))
    found.append(Goal("time of a gradient step linear in the nodes (n^1.15 at most)", text, max(known) <= 1.15 if known else None))
    return found


def steps(questions: list[Answered], family: str) -> list[tuple[float, float]]:
    """(nodes, seconds of a gradient step)"""
    rows = [row for one in questions if one.part == "scaling" and one.name == family for row in one.rows(STEP)]
    return sorted((row["nodes"], row["step"]) for row in rows if row["step"] > 0)


def listed(names: list[str], shown: int = 8) -> str:
    if not names:
        return ""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return f"; not on {', '.join(names[:shown])}{more}"
