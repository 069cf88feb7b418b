"""Which configurations are bounded and which are solved, in which order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from .. import _twill
from . import jobs
from .journal import Journal
from .progress import Line
from .space import Candidate

AHEAD = 4
"""Jobs for each worker that are submitted at a time."""


class Pool(Protocol):
    """What does jobs."""

    capacity: int

    def submit(self, key: str, step: str, question: _twill.Question) -> None: ...
    def next(self) -> tuple[str, dict[str, Any] | Exception]: ...
    def close(self) -> list[tuple[str, dict[str, Any] | Exception]]: ...


class Search:
    """The steps of a sweep: bounds of all configurations, then schedules of the best."""

    def __init__(
        self, candidates: Sequence[Candidate], pool: Pool, journal: Journal, line: Line, limits: Mapping[str, object]
    ):
        self._candidates, self._pool, self._journal, self._line = candidates, pool, journal, line
        self._limits = dict(limits)
        self._running: dict[str, str] = {}
        """Steps of jobs under way, by key."""
        self._keys: dict[tuple[int, str], str] = {}
        self.failed: dict[str, str] = {}
        """Why a job has no outcome, by key; it is tried again when the sweep is run again."""

    # ------------------------------------------------------------------------------------------------ what is known
    def bound(self, one: Candidate) -> dict[str, Any] | None:
        """What is known of a configuration without search; None if nothing is yet."""
        return None if one.question is None else self._journal.get(self.key(one, jobs.FIT))

    def schedule(self, one: Candidate) -> dict[str, Any] | None:
        """What is known of its schedule; None if nothing is yet."""
        return None if one.question is None else self._journal.get(self.key(one, jobs.SOLVE))

    def simulation(self, one: Candidate) -> dict[str, Any] | None:
        """What is known of its kernel's time; None if nothing is yet."""
        return None if one.question is None else self._journal.get(self.key(one, jobs.SIMULATE))

    def key(self, one: Candidate, step: str) -> str:
        """Of its job in a step."""
        if (one.index, step) not in self._keys:
            self._keys[one.index, step] = jobs.key(step, self._question(one, step))
        return self._keys[one.index, step]

    def _question(self, one: Candidate, step: str) -> _twill.Question:
        limits = self._limits if step in (jobs.SOLVE, jobs.SIMULATE) else {}
        assert one.question is not None, "nothing is asked about what the front end refuses"
        return {**one.question, "options": {**one.question["options"], **limits}}

    # ------------------------------------------------------------------------------------------------------- steps
    def bound_all(self) -> None:
        """Bounds each configuration, or finds out that it does not fit."""
        asked = {self.key(one, jobs.FIT): one for one in self._candidates if one.question is not None}
        missing = [key for key in asked if key not in self._journal]
        done = len(asked) - len(missing)
        while missing or self._running:
            while missing and len(self._running) < AHEAD * self._pool.capacity:
                key = missing.pop(0)
                self._submit(key, jobs.FIT, asked[key])
            self._receive()
            done += 1
            self._line.say(f"bounds: {done} of {len(asked)}")
        self._line.say(f"bounds: {done} of {len(asked)}")
        self._line.end()

    def solve_best(self, count: int) -> list[Candidate]:
        """Solves in the order of the bound until no other configuration can be among the `count` best.

        Gives back those that this needed, whatever else was solved meanwhile by workers that were free: the same for
        any number of workers.
        """
        order = ranked(self._candidates, self.bound)
        solved: list[Candidate] = []
        rates: list[float] = []
        for position, one in enumerate(order):
            if not self._may_be_among(one, rates, count):
                break
            while not self._is_over(one):
                self._look_ahead(order[position:], rates, count)
                self._receive()
                self._say(rates, count)
            solved.append(one)
            rate = rate_of(self.bound(one), self.schedule(one))
            if rate is not None:
                rates = sorted([*rates, rate], reverse=True)
            self._say(rates, count)
        self._line.end()
        return solved

    def simulate_all(self, solved: Sequence[Candidate]) -> None:
        """Generates the kernels of those that have a schedule, and simulates them."""
        having = [one for one in solved if rate_of(self.bound(one), self.schedule(one)) is not None]
        asked = {self.key(one, jobs.SIMULATE): one for one in having}
        missing = [key for key in asked if key not in self._journal and key not in self.failed]
        done = len(asked) - len(missing)
        while missing or self._running:
            while missing and len(self._running) < self._pool.capacity:
                key = missing.pop(0)
                self._submit(key, jobs.SIMULATE, asked[key])
            self._receive()
            done += 1
            self._line.say(f"kernels: {done} of {len(asked)} simulated")
        self._line.end()

    def _may_be_among(self, one: Candidate, rates: list[float], count: int) -> bool:
        return count > 0 and (len(rates) < count or bound_rate(self.bound(one)) > rates[count - 1])

    def _look_ahead(self, order: Sequence[Candidate], rates: list[float], count: int) -> None:
        for one in order:
            if len(self._running) >= self._pool.capacity or not self._may_be_among(one, rates, count):
                return
            key = self.key(one, jobs.SOLVE)
            if not self._is_over(one) and key not in self._running:
                self._submit(key, jobs.SOLVE, one)

    def _is_over(self, one: Candidate) -> bool:
        key = self.key(one, jobs.SOLVE)
        return key in self._journal or key in self.failed

    def _submit(self, key: str, step: str, one: Candidate) -> None:
        self._running[key] = step
        self._pool.submit(key, step, self._question(one, step))

    def close(self) -> None:
        """Ends what is under way; what has been finished nevertheless is kept."""
        for key, outcome in self._pool.close():
            self._keep(key, outcome)

    def _receive(self) -> None:
        self._keep(*self._pool.next())

    def _keep(self, key: str, outcome: dict[str, Any] | Exception) -> None:
        step = self._running.pop(key)
        if isinstance(outcome, Exception):
            self.failed[key] = f"{type(outcome).__name__}: {outcome}"
        else:
            self._journal.add(key, step, outcome)

    def _say(self, rates: list[float], count: int) -> None:
        best = f", best {rates[0]:.0f} FLOP a cycle" if rates else ""
        self._line.say(f"schedules: {len(rates)} solved for the best {count}{best}, {len(self._running)} under way")


def bound_rate(bound: Mapping[str, Any] | None) -> float:
    """FLOP per cycle that no schedule exceeds."""
    return float(bound["flop"] / bound["lower_bound"]) if bound and bound["lower_bound"] else 0.0


def rate_of(bound: Mapping[str, Any] | None, schedule: Mapping[str, Any] | None) -> float | None:
    """FLOP per cycle of a schedule; None where there is none."""
    return float(bound["flop"] / schedule["ii"]) if bound and schedule and schedule.get("ii") else None


def ranked(candidates: Sequence[Candidate], bound_of: Callable[[Candidate], Mapping[str, Any] | None]) -> list[Candidate]:
    """Those that may fit: by bound on throughput, then FLOP of an iteration, least shared memory, then as given."""
    known = [(one, bound_of(one)) for one in candidates]
    fitting = [(one, bound) for one, bound in known if bound is not None and bound["fits"] is not False]
    fitting.sort(
        key=lambda pair: (-bound_rate(pair[1]), -pair[1]["flop"], pair[1].get("shared_bytes") or 0, pair[0].index)
    )
    return [one for one, _ in fitting]
