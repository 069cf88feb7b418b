"""Bounds on intervals and stages."""

from __future__ import annotations

from problem import Problem


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
    """This many stages suffice at one interval.

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
