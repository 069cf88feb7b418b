"""The decisions of a schedule: `t_v` (`le`, and `slot` modulo I) and `w_v` (`runs`)."""

from __future__ import annotations

from formula import Formula, Literal, negate
from problem import Options, Problem


class Unknowns:
    """Booleans for cycles, slots and groups, and what they mean."""

    problem: Problem
    options: Options
    interval: int
    horizon: int
    stages: int | None
    drop: frozenset[str]
    formula: Formula
    operations: range

    def _times(self) -> None:
        problem, formula, interval = self.problem, self.formula, self.interval
        self.latest = [self.horizon - op.span for op in problem.operations]
        if min(self.latest) < 0:
            formula.contradiction = True
            return
        self.order = [[formula.new() for _ in range(latest)] for latest in self.latest]
        self.slot = [[formula.new() for _ in range(interval)] for _ in self.operations]
        for v in self.operations:
            for t in range(self.latest[v]):
                formula.clause(-self.order[v][t], self.le(v, t + 1))
            for t in range(self.latest[v] + 1):
                formula.clause(self.le(v, t - 1), negate(self.le(v, t)), self.slot[v][t % interval])
            formula.at_most([(1, s) for s in self.slot[v]], 1)
        if self.stages is not None:
            # Longer than one stage less: some operation ends after (stages - 1) * interval.
            short = (self.stages - 1) * interval
            formula.clause(*[negate(self.le(v, short - op.span)) for v, op in enumerate(problem.operations)])

    def le(self, v: int, t: int) -> Literal:
        """Returns whether `t_v <= t`."""
        if t < 0:
            return False
        return True if t >= self.latest[v] else self.order[v][t]

    def _groups(self) -> None:
        """`w_v`, and for every pair of operations whether the groups differ."""
        problem, formula = self.problem, self.formula
        self.compute = problem.compute_groups
        self.eligible = list(problem.candidates(self.options))
        if "assignment" in self.drop:
            self.eligible = [tuple(range(len(problem.groups)))] * len(problem.operations)
        self.on: list[dict[int, Literal]] = []
        for v in self.operations:
            groups = self.eligible[v]
            one = len(groups) == 1
            self.on.append({g: True if one else formula.new() for g in groups})
            if not one:
                formula.clause(*self.on[v].values())
                formula.at_most([(1, literal) for literal in self.on[v].values()], 1)
        # Compute groups are interchangeable: an operation opens one only if an earlier operation is
        # on the one before. Assigned by sub-tile they are not.
        for v in self.operations if self.options.warp_assignment == "free" else ():
            for before, g in zip(self.compute, self.compute[1:]):
                formula.clause(negate(self.runs(v, g)), *[self.runs(o, before) for o in range(v)])
        self.used: dict[int, Literal] = {}
        for g in self.compute:
            self.used[g] = formula.new()
            for v in self.operations:
                formula.clause(negate(self.runs(v, g)), self.used[g])
        self._apart: dict[tuple[int, int], Literal] = {}

    def runs(self, v: int, g: int) -> Literal:
        """Returns whether `w_v = g`."""
        return self.on[v].get(g, False)

    def apart(self, a: int, b: int) -> Literal:
        """Returns whether `w_a != w_b`."""
        if a == b:
            return False
        key = (min(a, b), max(a, b))
        if key not in self._apart:
            literal = self.formula.new()
            for g in self.on[a].keys() | self.on[b].keys():
                x, y = self.runs(a, g), self.runs(b, g)
                self.formula.clause(negate(x), negate(y), -literal)
                self.formula.clause(negate(x), y, literal)
            self._apart[key] = literal
        return self._apart[key]
