"""docs/model.md as a time-indexed Boolean formulation, solved by Z3.

For every operation `v` and cycle `t` a Boolean says `t_v <= t` (`le`), for every slot one says `t_v mod I = r`, for every group
one says `w_v = g`. Every constraint is a clause or a pseudo-Boolean inequality over these; lives are Booleans per cycle. Nothing
here is shared with `twill-exact`, which was not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from constraints import Constraints
from formula import Formula, Literal, negate, term
from memories import Memories
from problem import FAMILIES, LEVELS, Options, Problem


@dataclass(frozen=True)
class Solution:
    interval: int
    cycles: tuple[int, ...]
    groups: tuple[int, ...]
    objectives: tuple[int, ...]
    """In the order of `LEVELS`."""

    @property
    def length(self) -> int:
        return self.objectives[LEVELS.index("length")]


class Model(Constraints, Memories):
    """All schedules with one interval whose length is at most `horizon`; with `stages`, only those
    of exactly N stages."""

    def __init__(
        self,
        problem: Problem,
        options: Options,
        interval: int,
        horizon: int,
        stages: int | None = None,
        drop: frozenset[str] = frozenset(),
    ) -> None:
        self.problem, self.options, self.interval, self.horizon = problem, options, interval, horizon
        self.stages, self.drop = stages, drop
        self.formula = Formula()
        self.operations = range(len(problem.operations))
        if options.liveness == "paper" and stages is None:
            raise ValueError("the paper's liveness needs the number of stages")
        self._times()
        if not self.formula.contradiction:
            self._groups()
        if not self.formula.contradiction:
            for family in FAMILIES:
                if family not in drop:
                    getattr(self, f"_{family}")()
        self._objectives()
        self.solver = z3.SolverFor("QF_FD")
        if not self.formula.contradiction:
            self.solver.from_string("\n".join(self.formula.lines))

    # Objective

    def _objectives(self) -> None:
        problem, formula = self.problem, self.formula
        self.handoff_words: list[tuple[int, Literal]] = []
        self.channels: list[tuple[int, Literal]] = []
        if formula.contradiction:
            return
        for d in filter(problem.register_value, problem.dependences):
            words = max(1, problem.operations[d.source].amount // 64)
            self.handoff_words.append((words, self.apart(d.source, d.target)))
        for u in self.operations:
            for g in range(len(problem.groups)):
                readers = [d.target for d in problem.uses(u) if self.runs(d.target, g) is not False]
                if readers:
                    channel = formula.new()
                    for v in readers:
                        formula.clause(negate(self.runs(v, g)), self.runs(u, g), channel)
                    self.channels.append((1, channel))

    # Solving

    def check(self, *assumptions: Literal) -> bool:
        if self.formula.contradiction or any(a is False for a in assumptions):
            return False
        answer = self.solver.check(*[term(a) for a in assumptions if a is not True])
        if answer == z3.unknown:
            raise RuntimeError(f"Z3 gave up: {self.solver.reason_unknown()}")
        if answer == z3.unsat:
            return False
        model = self.solver.model()
        self._true = {str(d) for d in model.decls() if z3.is_true(model[d])}
        return True

    def value(self, literal: Literal) -> bool:
        if isinstance(literal, bool):
            return literal
        return (f"b{abs(literal)}" in self._true) == (literal > 0)

    def fits(self, length: int) -> list[Literal]:
        """That the schedule is no longer than `length`."""
        return [self.le(v, length - op.span) for v, op in enumerate(self.problem.operations)]

    def _cycles(self) -> tuple[int, ...]:
        first = lambda v: next((t for t, x in enumerate(self.order[v]) if self.value(x)), self.latest[v])
        return tuple(first(v) for v in self.operations)

    def _length(self) -> int:
        return max(t + op.span for t, op in zip(self._cycles(), self.problem.operations))

    def _require(self, literals: list[Literal]) -> None:
        for literal in literals:
            if literal is not True:
                self.solver.add(term(literal))

    def minimise_length(self, least: int, step: int) -> int:
        """Least multiple of `step` that the length fits in, which is then required."""
        best = -(-self._length() // step)
        low = max(1, -(-least // step))
        while low < best:
            middle = (low + best) // 2
            if self.check(*self.fits(middle * step)):
                best = min(middle, -(-self._length() // step))
            else:
                low = middle + 1
        self._require(self.fits(best * step))
        return best

    def _minimise_sum(self, terms: list[tuple[int, Literal]]) -> int:
        total = lambda: sum(c for c, literal in terms if self.value(literal))
        fixed = sum(c for c, literal in terms if literal is True)
        free = [(term(literal), c) for c, literal in terms if not isinstance(literal, bool)]
        best = self._again(total)
        while best > fixed:
            self.solver.push()
            self.solver.add(z3.PbLe(free, best - 1 - fixed))
            better = self.check()
            if better:
                best = total()
            self.solver.pop()
            if not better:
                break
        if free:
            self.solver.add(z3.PbLe(free, best - fixed))
        return best

    def _again(self, value):
        """`value` of a model of everything required so far."""
        if not self.check():
            raise AssertionError("a level of the objective lost its solution")
        return value()

    def optimise(self, least_length: int) -> Solution:
        """The best schedule; to be called after `check` found one."""
        levels = {"stages": self.minimise_length(least_length, self.interval)}
        levels["compute_groups"] = self._minimise_sum([(1, used) for used in self.used.values()])
        levels["handoff_words"] = self._minimise_sum(self.handoff_words)
        levels["channels"] = self._minimise_sum(self.channels)
        self._again(lambda: None)
        levels["length"] = self.minimise_length(least_length, 1)
        levels["registers_per_thread"] = self._minimise_registers() if levels["compute_groups"] else 0
        self._again(lambda: None)
        groups = tuple(next(g for g, on in self.on[v].items() if self.value(on)) for v in self.operations)
        return Solution(self.interval, self._cycles(), groups, tuple(levels[level] for level in LEVELS))

    def _minimise_registers(self) -> int:
        choices = self.problem.register_choices()
        if "registers" in self.drop:
            return choices[0]
        for k, choice in enumerate(choices[:-1]):
            no_more = [negate(steps[k]) for steps in self.register_steps.values()]
            if self.check(*no_more):
                self._require(no_more)
                return choice
        return choices[-1]
