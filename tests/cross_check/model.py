"""docs/model.md as a time-indexed Boolean formulation, solved by Z3.

For every operation `v` and cycle `t` a Boolean says `t_v <= t` (`le`), for every slot one says `t_v mod I = r`, for every group
one says `w_v = g`. Every constraint is a clause or a pseudo-Boolean inequality over these; lives are Booleans per cycle. Nothing
here is shared with `twill-exact`, which was not looked at.

    python model.py FILE [--max-interval K]     prints the answer for one graph file
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from math import gcd

import z3

from problem import FAMILIES, LEVELS, REGISTERS, SHARED, TENSOR, Dependence, Options, Problem, load

Literal = int | bool
"""A Boolean by number, its negation by the negative number, or a constant."""


class Formula:
    """Clauses and pseudo-Boolean inequalities. Written as SMT-LIB text, which Z3 reads far faster
    than Python can build terms."""

    def __init__(self) -> None:
        self.count = 0
        self.lines: list[str] = []
        self.contradiction = False

    def new(self) -> int:
        self.count += 1
        self.lines.append(f"(declare-const b{self.count} Bool)")
        return self.count

    def clause(self, *literals: Literal) -> None:
        kept = []
        for literal in literals:
            if literal is True:
                return
            if literal is not False:
                kept.append(text(literal))
        if not kept:
            self.contradiction = True
        elif len(kept) == 1:
            self.lines.append(f"(assert {kept[0]})")
        else:
            self.lines.append(f"(assert (or {' '.join(kept)}))")

    def at_most(self, terms: list[tuple[int, Literal]], bound: int) -> None:
        """`sum of coefficient * literal <= bound`, coefficients not negative."""
        kept: dict[int, int] = {}
        for coefficient, literal in terms:
            if literal is True:
                bound -= coefficient
            elif literal is not False and coefficient:
                kept[literal] = kept.get(literal, 0) + coefficient
        if bound < 0:
            self.contradiction = True
            return
        if sum(kept.values()) <= bound:
            return
        divisor = gcd(*kept.values())
        coefficients = " ".join(str(c // divisor) for c in kept.values())
        literals = " ".join(text(literal) for literal in kept)
        self.lines.append(f"(assert ((_ pble {bound // divisor} {coefficients}) {literals}))")


def text(literal: int) -> str:
    return f"b{literal}" if literal > 0 else f"(not b{-literal})"


def negate(literal: Literal) -> Literal:
    return not literal if isinstance(literal, bool) else -literal


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


class Model:
    """All schedules with one interval whose length is at most `horizon`; with `stages`, only those
    of exactly so many stages."""

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

    # Unknowns

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
        """Whether `t_v <= t`."""
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
        """Whether `w_v = g`."""
        return self.on[v].get(g, False)

    def apart(self, a: int, b: int) -> Literal:
        """Whether `w_a != w_b`."""
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

    # Constraints

    def _at_least(self, d: Dependence, delay: int, *unless: Literal) -> None:
        """`t_v + distance * I >= t_u + delay`, or one of `unless`."""
        gap = delay - d.distance * self.interval
        if d.source == d.target:
            if gap > 0:
                self.formula.clause(*unless)
            return
        for t in range(self.latest[d.target] + 1):
            self.formula.clause(negate(self.le(d.target, t)), self.le(d.source, t - gap), *unless)

    def _dependence(self) -> None:
        for d in self.problem.dependences:
            self._at_least(d, d.delay)

    def _resource(self) -> None:
        interval, operations = self.interval, self.problem.operations
        for unit, capacity in self.problem.capacity.items():
            for r in range(interval):
                terms = []
                for v, op in enumerate(operations):
                    reserved = [r.start + c for r in op.reservations if r.unit == unit for c in range(r.cycles)]
                    for p in range(interval):
                        terms.append((sum((p + c) % interval == r for c in reserved), self.slot[v][p]))
                self.formula.at_most(terms, capacity)

    def _bandwidth(self) -> None:
        rate = self.problem.shared_bytes_per_cycle
        if rate is not None and sum(op.shared_traffic for op in self.problem.operations) > rate * self.interval:
            self.formula.contradiction = True

    def _assignment(self) -> None:
        if any(not groups for groups in self.eligible):
            self.formula.contradiction = True

    def _handoff(self) -> None:
        for d in filter(self.problem.register_value, self.problem.dependences):
            apart = self.apart(d.source, d.target)
            if d.distance > 0 or not self.options.cross_group_registers:
                self.formula.clause(negate(apart))
            else:
                self._at_least(d, d.delay + self.problem.operations[d.source].handoff, negate(apart))

    def _concurrency(self) -> None:
        operations, interval = self.problem.operations, self.interval
        for v in self.operations:
            incoming = [d for d in self.problem.dependences if d.target == v and d.source != v]
            if any(d.blocking for d in incoming):
                waits: Literal = True
            else:
                sources = {d.source for d in incoming if self.problem.register_value(d)}
                if not sources:
                    continue
                waits = self.formula.new()
                for u in sources:
                    self.formula.clause(negate(self.apart(u, v)), waits)
            for o, other in enumerate(operations):
                if o == v:
                    continue
                literal_window = not other.asynchronous or self.options.concurrency_window == "literal"
                window = other.cycles if literal_window else 1
                if window == 0:
                    continue
                unless = (negate(waits), self.apart(o, v))
                if window >= interval:
                    self.formula.clause(*unless)
                    continue
                for r in range(interval):
                    for c in range(window):
                        self.formula.clause(-self.slot[o][r], -self.slot[v][(r + c) % interval], *unless)

    def _exclusive(self) -> None:
        operations, interval = self.problem.operations, self.interval
        if not self.options.exclusive_issue:
            return
        busy = [v for v in self.operations if not operations[v].asynchronous and operations[v].cycles > 0]
        for v in busy:
            if operations[v].cycles > interval:
                self.formula.contradiction = True
                return
        for a in busy:
            for b in (b for b in busy if b > a):
                apart = self.apart(a, b)
                for p in range(interval):
                    rows = {(p + c) % interval for c in range(operations[a].cycles)}
                    for q in range(interval):
                        if any((q + c) % interval in rows for c in range(operations[b].cycles)):
                            self.formula.clause(-self.slot[a][p], -self.slot[b][q], apart)

    def _occupied(
        self,
        begin: tuple[int, int],
        ends: list[tuple[int, int, int, Literal]],
        condition: Literal = True,
    ) -> dict[int, list[Literal]]:
        """What is held in `[t_v + begin, max(t_u + distance * I + end))`, by slot (folded) or by
        cycle (the paper's straight-line program).

        An end counts only if its literal holds, all of it only if `condition` does.
        """
        (v, offset), interval, cells = begin, self.interval, {}
        if not ends:
            return cells
        folded = self.options.liveness == "folded"
        carried = [counts for _, distance, _, counts in ends if distance > 0]
        for copy in range(1 if folded else self.stages):
            counted = [e for e in ends if folded or copy + e[1] < self.stages]
            to_end = carried if not folded and copy == self.stages - 1 else []
            shift = copy * interval
            stop = max((self.latest[u] + 1 + d * interval + end for u, d, end, _ in counted), default=0)
            if to_end:
                stop = self.horizon
            for t in range(offset, stop):
                inside = True if folded else self._inside(t + shift)
                if inside is False:
                    continue
                held = self.formula.new()
                begun = (negate(self.le(v, t - offset)), negate(condition), negate(inside), held)
                for u, d, end, counts in counted:
                    self.formula.clause(self.le(u, t - d * interval - end), negate(counts), *begun)
                for counts in to_end:
                    self.formula.clause(negate(counts), *begun)
                cells.setdefault(t % interval if folded else t + shift, []).append(held)
        return cells

    def _inside(self, cycle: int) -> Literal:
        """Whether `cycle < (N - 1) * I + L`."""
        if not hasattr(self, "_inside_at"):
            self._inside_at: dict[int, Literal] = {}
        rest = cycle - (self.stages - 1) * self.interval
        if rest < 0:
            return True
        if rest >= self.horizon:
            return False
        if rest not in self._inside_at:
            literal = self.formula.new()
            for w, op in enumerate(self.problem.operations):
                self.formula.clause(self.le(w, rest - op.span), literal)
            self._inside_at[rest] = literal
        return self._inside_at[rest]

    def _live(self, v: int, condition: Literal = True) -> dict[int, list[Literal]]:
        ends = [(d.target, d.distance, d.hold, True) for d in self.problem.uses(v)]
        return self._occupied((v, 0), ends, condition)

    def _cells(self) -> range:
        return range(self.interval if self.options.liveness == "folded" else 2 * self.stages * self.interval)

    def _registers(self) -> None:
        problem, formula = self.problem, self.formula
        held: dict[int, dict[int, list[tuple[int, Literal]]]] = {g: {} for g in range(len(problem.groups))}

        def hold(g: int, words: int, cells: dict[int, list[Literal]]) -> None:
            for cell, literals in cells.items():
                held[g].setdefault(cell, []).extend((words, literal) for literal in literals)

        for v, op in enumerate(problem.operations):
            if op.memory == REGISTERS and op.amount > 0:
                for g, on in self.on[v].items():
                    hold(g, op.amount, self._live(v, on))
        if self.options.consumer_registers:
            for d in filter(problem.register_value, problem.dependences):
                words, reader = problem.operations[d.source].amount, problem.operations[d.target]
                if words == 0 or d.source == d.target or reader.variable_latency:
                    continue
                apart = self.apart(d.source, d.target)
                for g, on in self.on[d.target].items():
                    here = formula.new()
                    formula.clause(negate(apart), negate(on), here)
                    hold(g, words, self._occupied((d.target, 0), [(d.target, 0, reader.span, True)], here))

        choices = problem.register_choices()
        budget: list[tuple[int, Literal]] = []
        self.register_steps: dict[int, list[Literal]] = {}
        for g, group in enumerate(problem.groups):
            if group.registers is not None:
                room = max(0, problem.tile_words(group.warps, group.registers))
                for terms in held[g].values():
                    formula.at_most(terms, room)
                continue
            # steps[k]: this group's threads are given more than choices[k].
            steps = [formula.new() for _ in choices[1:]]
            for a, b in zip(steps, steps[1:]):
                formula.clause(-b, a)
            rooms = [problem.tile_words(group.warps, r) for r in choices]
            missing = [(b - a, -step) for a, b, step in zip(rooms, rooms[1:], steps)]
            for terms in held[g].values():
                formula.at_most(terms + missing, rooms[-1])
            threads = 32 * group.warps
            budget.append((threads * choices[0], self.used[g]))
            budget += [(threads * problem.register_granularity, step) for step in steps]
            self.register_steps[g] = steps
        formula.at_most(budget, problem.register_budget)

    def _shared_memory(self) -> None:
        problem, formula, interval = self.problem, self.formula, self.interval
        room = problem.shared_memory - problem.reserved_shared
        held: dict[int, list[tuple[int, Literal]]] = {cell: [] for cell in self._cells()}
        for v, op in enumerate(problem.operations):
            if op.streaming:
                terms = self._ring(v, room)
                for cell in held.values():
                    cell.extend(terms)
            elif op.memory == SHARED and op.amount > 0:
                for cell, literals in self._live(v).items():
                    held[cell].extend((op.amount, literal) for literal in literals)
            elif op.memory == REGISTERS and op.amount > 0:
                ends = [
                    (d.target, d.distance, problem.operations[d.target].completion, self.apart(v, d.target))
                    for d in problem.uses(v)
                    if d.target != v
                ]
                for cell, literals in self._occupied((v, 0), ends).items():
                    held[cell].extend((4 * op.amount, literal) for literal in literals)
        for terms in held.values():
            formula.at_most(terms, room)

    def _ring(self, v: int, room: int) -> list[tuple[int, Literal]]:
        """Bytes of a streaming load's ring: one slot, and one more for every Boolean."""
        problem, formula, interval, op = self.problem, self.formula, self.interval, self.problem.operations[v]
        if op.memory != SHARED or op.amount == 0:
            return []
        terms: list[tuple[int, Literal]] = [(op.amount, True)]
        uses = problem.uses(v)
        if not uses:
            return terms
        for slots in range(1, room // op.amount + 1):
            more = formula.new()
            terms.append((op.amount, more))
            for a in uses:
                for b in uses:
                    # More slots if transfer + (t_b + d_b I + completion) - (t_a + d_a I) > slots * I.
                    late = op.transfer_latency + b.distance * interval + problem.operations[b.target].completion
                    gap = slots * interval + a.distance * interval - late
                    if a.target == b.target:
                        if gap < 0:
                            formula.clause(more)
                        continue
                    for t in range(self.latest[a.target] + 1):
                        formula.clause(negate(self.le(a.target, t)), self.le(b.target, t + gap), more)
            terms_left = room // op.amount - slots
            if terms_left == 0:
                # One slot more than fits: `more` is the last Boolean, and it cannot hold.
                formula.clause(-more)
        if room // op.amount == 0:
            formula.contradiction = True
        return terms

    def _tensor_memory(self) -> None:
        problem = self.problem
        held: dict[int, list[tuple[int, Literal]]] = {}
        for v, op in enumerate(problem.operations):
            if op.memory == TENSOR and op.amount > 0:
                for cell, literals in self._live(v).items():
                    held.setdefault(cell, []).extend((op.amount, literal) for literal in literals)
        for terms in held.values():
            self.formula.at_most(terms, problem.tensor_memory - problem.reserved_tensor)

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

    def _minimise_length(self, least: int, step: int) -> int:
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
        levels = {"stages": self._minimise_length(least_length, self.interval)}
        levels["compute_groups"] = self._minimise_sum([(1, used) for used in self.used.values()])
        levels["handoff_words"] = self._minimise_sum(self.handoff_words)
        levels["channels"] = self._minimise_sum(self.channels)
        self._again(lambda: None)
        levels["length"] = self._minimise_length(least_length, 1)
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


def term(literal: int) -> z3.BoolRef:
    name = z3.Bool(f"b{abs(literal)}")
    return name if literal > 0 else z3.Not(name)


# Bounds


def resource_bound(problem: Problem) -> int:
    """ResMII."""
    busy = dict.fromkeys(problem.capacity, 0)
    for op in problem.operations:
        for r in op.reservations:
            busy[r.unit] += r.cycles
    return max([1] + [-(-busy[unit] // capacity) for unit, capacity in problem.capacity.items()])


def earliest(problem: Problem, interval: int) -> list[int] | None:
    """Earliest cycles that the dependences alone allow; none if they form a positive cycle."""
    cycles = [0] * len(problem.operations)
    for _ in range(len(cycles) + 1):
        changed = False
        for d in problem.dependences:
            bound = cycles[d.source] + d.delay - d.distance * interval
            if bound > cycles[d.target]:
                cycles[d.target], changed = bound, True
        if not changed:
            return cycles
    return None


def recurrence_bound(problem: Problem) -> int:
    """RecMII."""
    interval = 1
    while earliest(problem, interval) is None:
        interval += 1
    return interval


def stage_bound(problem: Problem, interval: int) -> int:
    """So many stages suffice at one interval.

    Split the operations by stage. If no dependence and no pair of consumers of one load is as close across the split as its weight
    below, the later part can move one stage earlier: slots stay, delays hold, lives and rings do not grow. So in some schedule these
    pairs connect all operations, up to components that start in stage 0 each, and their weights bound the distances. (One more stage
    is a margin; a test doubles it.)
    """
    pairs: list[tuple[int, int, int]] = []
    for d in problem.dependences:
        cost = d.delay + (problem.operations[d.source].handoff if problem.register_value(d) else 0)
        forward, backward = cost + (1 - d.distance) * interval, d.distance * interval - d.delay
        pairs.append((max(0, forward, backward), d.source, d.target))
    for v, op in enumerate(problem.operations):
        if op.streaming:
            for a in problem.uses(v):
                for b in problem.uses(v):
                    pairs.append(((1 + abs(a.distance - b.distance)) * interval, a.target, b.target))
    root = list(range(len(problem.operations)))

    def find(v: int) -> int:
        while root[v] != v:
            v = root[v]
        return v

    total = 0
    for weight, a, b in sorted(pairs, reverse=True):
        if find(a) != find(b):
            root[find(a)] = find(b)
            total += weight
    span = max(op.span for op in problem.operations)
    return -(-(total + span + interval) // interval) + 1


# Search


def solve(
    problem: Problem,
    options: Options = Options(),
    max_interval: int = 16,
    max_stages: int | None = None,
    drop: frozenset[str] = frozenset(),
    first_interval: int = 1,
) -> Solution | None:
    """The optimal schedule, or none up to `max_interval`; `drop` leaves out constraint families."""
    if "assignment" not in drop and any(not groups for groups in problem.eligible):
        return None
    for interval in range(first_interval, max_interval + 1):
        solution = solve_at(problem, options, interval, max_stages, drop)
        if solution is not None:
            return solution
    return None


def solve_at(
    problem: Problem, options: Options, interval: int, max_stages: int | None, drop: frozenset[str]
) -> Solution | None:
    if "resource" not in drop and interval < resource_bound(problem):
        return None
    cycles = earliest(problem, interval)
    if "dependence" in drop:
        cycles = [0] * len(problem.operations)
    if cycles is None:
        return None
    least = max(t + op.span for t, op in zip(cycles, problem.operations))
    first = -(-least // interval)
    last = stage_bound(problem, interval) if max_stages is None else max_stages
    if options.stage_window == "paper":
        modulo = phase_1_at(problem, interval)
        if modulo is None:
            return None
        first = last = -(-modulo // interval)
    if options.liveness == "paper":
        # What is live depends on the number of stages, so each is a problem of its own.
        for stages in range(first, last + 1):
            model = Model(problem, options, interval, stages * interval, stages, drop)
            if model.check():
                return model.optimise((stages - 1) * interval + 1)
        return None
    # A schedule, if there is one, is rarely long; only its absence needs the whole range.
    for stages in sorted({min(first + 1, last), last}):
        model = Model(problem, options, interval, stages * interval, None, drop)
        if model.check():
            return model.optimise(least)
    return None


def feasible(problem: Problem, interval: int) -> bool:
    """Whether there is a schedule with this interval, whatever its objectives."""
    if earliest(problem, interval) is None or interval < resource_bound(problem):
        return False
    most = stage_bound(problem, interval)
    return any(Model(problem, Options(), interval, n * interval).check() for n in sorted({min(3, most), most}))


WARPS = frozenset(FAMILIES) - {"dependence", "resource", "bandwidth"}


def phase_1_at(problem: Problem, interval: int) -> int | None:
    """Least length at one interval under `dependence`, `resource` and `bandwidth` alone."""
    cycles = earliest(problem, interval)
    if cycles is None or interval < resource_bound(problem):
        return None
    model = Model(problem, Options(), interval, stage_bound(problem, interval) * interval, None, WARPS)
    if not model.check():
        return None
    return model._minimise_length(max(t + op.span for t, op in zip(cycles, problem.operations)), 1)


def phase_1(problem: Problem, max_interval: int) -> tuple[int, int] | None:
    """Interval and length of the throughput-optimal modulo schedule."""
    for interval in range(1, max_interval + 1):
        length = phase_1_at(problem, interval)
        if length is not None:
            return interval, length
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description="Solves one graph file with Z3.")
    parser.add_argument("file")
    parser.add_argument("--max-interval", type=int, default=16)
    parser.add_argument("--options", type=json.loads, default={}, help="JSON of ModelOptions")
    arguments = parser.parse_args()
    problem = load(arguments.file)
    solution = solve(problem, Options(**arguments.options), arguments.max_interval)
    if solution is None:
        print(f"infeasible up to I = {arguments.max_interval}")
        return 2
    print(f"I = {solution.interval}", *(f"{k} = {x}" for k, x in zip(LEVELS, solution.objectives)), sep="\n")
    for op, t, g in zip(problem.operations, solution.cycles, solution.groups):
        print(f"{op.name}: cycle {t}, group {g} ({problem.groups[g].role})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
