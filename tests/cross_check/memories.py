"""Registers, shared memory with its rings, and tensor memory (docs/model.md, "Live values", "Rings")."""

from __future__ import annotations

from formula import Literal, negate
from problem import REGISTERS, SHARED, TENSOR
from unknowns import Unknowns


class Memories(Unknowns):
    """A method for each family, under its name; lives are Booleans per cycle or slot."""

    def _occupied(
        self,
        begin: tuple[int, int],
        ends: list[tuple[int, int, int, Literal]],
        condition: Literal = True,
    ) -> dict[int, list[Literal]]:
        """An item held in `[t_v + begin, max(t_u + distance * I + end))`, by slot (folded) or by
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
        """Returns whether `cycle < (N - 1) * I + L`."""
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
