"""Dependences, units and warp groups (docs/model.md, "Constraints")."""

from __future__ import annotations

from formula import Literal, negate
from problem import Dependence
from unknowns import Unknowns


class Constraints(Unknowns):
    """A method for each family, under its name."""

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
