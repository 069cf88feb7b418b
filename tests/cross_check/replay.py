"""docs/model.md once more, by laying iterations out cycle by cycle; and by trying everything.

`replay` shares nothing with the Z3 model but the reader of the file. It unrolls the loop far enough that the cycles `[0, I)` see
the steady state, and counts there what is issued, busy and alive. `enumerate_all` tries every schedule of a tiny problem.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass

from problem import COMPUTE, ISSUE, REGISTERS, SHARED, TENSOR, VARIABLE_LATENCY, Options, Problem


@dataclass
class Replay:
    violations: dict[str, str]
    """By constraint family, one example each."""
    objectives: tuple[int, ...]
    usage: dict[str, int]
    """Most words of any compute group, bytes and columns in any cycle."""


def replay(
    problem: Problem,
    interval: int,
    cycles: tuple[int, ...],
    groups: tuple[int, ...],
    registers: dict[int, int] | None = None,
    options: Options = Options(),
    fast: bool = False,
) -> Replay:
    """Replays a schedule; `registers` (by compute group) are the least that suffice when left out.

    With `fast`, storage is not looked at once something else is violated.
    """
    ops, violations = problem.operations, {}
    everyone = range(len(ops))

    def wrong(family: str, why: str) -> None:
        violations.setdefault(family, why)

    length = max(cycles[v] + ops[v].span for v in everyone)
    longest = max(
        [length]
        + [cycles[d.target] + d.distance * interval + d.hold + ops[d.target].completion for d in problem.dependences]
    )
    # Iterations whose doings can reach [0, I).
    iterations = range(-(longest // interval) - 1, length // interval + 2)
    begin = lambda v, i: cycles[v] + i * interval
    window = range(interval)

    # dependence, handoff
    if min(cycles) < 0:
        wrong("dependence", "an operation issues before cycle 0")
    for d in problem.dependences:
        produced, consumed = begin(d.source, 0), begin(d.target, d.distance)
        if consumed < produced + d.delay:
            wrong("dependence", f"{ops[d.source].name} -> {ops[d.target].name}")
        if problem.register_value(d) and groups[d.source] != groups[d.target]:
            if d.distance > 0 or not options.cross_group_registers:
                wrong("handoff", f"{ops[d.source].name} -> {ops[d.target].name} changes group")
            if consumed < produced + d.delay + ops[d.source].handoff:
                wrong("handoff", f"{ops[d.source].name} -> {ops[d.target].name}")

    # assignment
    roles = {group.role for group in problem.groups}
    for v in everyone:
        group, op = problem.groups[groups[v]], ops[v]
        if group.warps < op.width:
            wrong("assignment", f"{op.name} needs {op.width} warps")
        if VARIABLE_LATENCY in roles and op.variable_latency != (group.role == VARIABLE_LATENCY):
            wrong("assignment", f"{op.name} and the variable-latency group")
        if ISSUE in roles and group.role != VARIABLE_LATENCY and (op.width == 1) != (group.role == ISSUE):
            wrong("assignment", f"{op.name} and the issue group")
        if options.warp_assignment == "by_sub_tile" and group.role == COMPUTE:
            # Compute groups stand last in the pool.
            first = next(g for g, other in enumerate(problem.groups) if other.role == COMPUTE)
            if groups[v] != first + (op.sub_tile or 0) % (len(problem.groups) - first):
                wrong("assignment", f"{op.name} and the group of its sub-tile")
    if violations and fast:
        return Replay(violations, (), {})

    # resource, exclusive: who holds what in [0, I)
    held: Counter = Counter()
    busy: Counter = Counter()
    for v, i in itertools.product(everyone, iterations):
        for r in ops[v].reservations:
            for c in range(r.start, r.start + r.cycles):
                held[r.unit, begin(v, i) + c] += 1
        if not ops[v].asynchronous:
            for c in range(ops[v].cycles):
                busy[groups[v], begin(v, i) + c] += 1
    for (unit, cycle), count in held.items():
        if cycle in window and count > problem.capacity[unit]:
            wrong("resource", f"{unit} in cycle {cycle}")
    if options.exclusive_issue:
        for (group, cycle), count in busy.items():
            if cycle in window and count > 1:
                wrong("exclusive", f"group {group} in cycle {cycle}")
    if violations and fast:
        return Replay(violations, (), {})

    # bandwidth: all iterations move the same bytes, one an interval
    if problem.shared_bytes_per_cycle is not None:
        moved = sum(op.shared_traffic for op in ops)
        if moved > interval * problem.shared_bytes_per_cycle:
            wrong("bandwidth", f"{moved} bytes")
            if fast:
                return Replay(violations, (), {})

    # concurrency: v of one iteration against o of any
    for v in everyone:
        waits = any(
            d.target == v
            and d.source != v
            and (d.blocking or (problem.register_value(d) and groups[d.source] != groups[v]))
            for d in problem.dependences
        )
        for o in everyone:
            if not waits or o == v or groups[o] != groups[v]:
                continue
            if ops[o].asynchronous and options.concurrency_window == "issue":
                stalled = 1
            else:
                stalled = ops[o].cycles
            span = range(-(length + stalled) // interval - 2, (length + stalled) // interval + 3)
            if any(begin(o, i) <= cycles[v] < begin(o, i) + stalled for i in span):
                wrong("concurrency", f"{ops[v].name} waits during {ops[o].name}")
    if violations and fast:
        return Replay(violations, (), {})

    # Storage: what is held in [0, I), by whichever iteration; or in the paper's straight-line program
    paper = options.liveness == "paper"
    copies, end_of_time = iterations, interval
    if paper:
        stages = -(-length // interval)
        copies, end_of_time = range(stages), (stages - 1) * interval + length
    words: Counter = Counter()
    shared: Counter = Counter()
    tensor: Counter = Counter()

    def hold(where: Counter, key, amount: int, start: int, end: int) -> None:
        for cycle in range(max(start, 0), min(end, end_of_time)):
            where[key, cycle] += amount

    for v, i in itertools.product(everyone, copies):
        op, uses = ops[v], problem.uses(v)
        to_end = paper and i == copies[-1] and any(d.distance > 0 for d in uses)
        if paper:
            uses = [d for d in uses if i + d.distance in copies]
        if (uses or to_end) and not op.streaming:
            end = max([begin(d.target, i + d.distance) + d.hold for d in uses] + [end_of_time] * to_end)
            where, key = {REGISTERS: (words, groups[v]), SHARED: (shared, None), TENSOR: (tensor, None)}[op.memory]
            hold(where, key, op.amount, begin(v, i), end)
        if op.memory == REGISTERS:
            away = [d for d in uses if groups[d.target] != groups[v]]
            if away:
                end = max(begin(d.target, i + d.distance) + ops[d.target].completion for d in away)
                hold(shared, None, 4 * op.amount, begin(v, i), end)
            for d in away:
                reader = d.target
                if options.consumer_registers and not ops[reader].variable_latency:
                    start = begin(reader, i + d.distance)
                    hold(words, groups[reader], op.amount, start, start + ops[reader].span)
    always = problem.reserved_shared
    for v in everyone:
        if ops[v].streaming and ops[v].memory == SHARED:
            uses = problem.uses(v)
            slots = 1
            if uses:
                first = min(begin(d.target, d.distance) for d in uses)
                last = max(begin(d.target, d.distance) + ops[d.target].completion for d in uses)
                slots = max(1, -(-(ops[v].transfer_latency + last - first) // interval))
            always += ops[v].amount * slots
    usage = {
        "registers": 0,
        "shared_memory": always + max([0, *shared.values()]),
        "tensor_memory": problem.reserved_tensor + max([0, *tensor.values()]),
    }
    if usage["shared_memory"] > problem.shared_memory:
        wrong("shared_memory", f"{usage['shared_memory']} bytes")
    if usage["tensor_memory"] > problem.tensor_memory:
        wrong("tensor_memory", f"{usage['tensor_memory']} columns")

    # registers
    peak: Counter = Counter()
    for (group, _), amount in words.items():
        peak[group] = max(peak[group], amount)
    granule, total, most = problem.register_granularity, 0, 0
    in_use = sorted(set(groups))
    for g in in_use:
        group = problem.groups[g]
        if group.registers is not None:
            usable = max(0, min(group.registers, problem.register_maximum) - problem.register_reserve)
            if peak[g] > 32 * group.warps * usable:
                wrong("registers", f"fixed group {g} holds {peak[g]} words")
            continue
        usage["registers"] = max(usage["registers"], peak[g])
        fits = lambda r: peak[g] <= 32 * group.warps * (min(r, problem.register_maximum) - problem.register_reserve)
        if registers is None:
            least = (r for r in range(0, problem.register_maximum + granule, granule))
            given = next((r for r in least if r >= problem.register_minimum and fits(r)), None)
            if given is None:
                wrong("registers", f"group {g} holds {peak[g]} words")
                continue
        else:
            given = registers[g]
            if given % granule or given < problem.register_minimum or not fits(given):
                wrong("registers", f"group {g} holds {peak[g]} words in {given} registers a thread")
        total += 32 * group.warps * given
        most = max(most, given)
    if total > problem.register_words - problem.fixed_words:
        wrong("registers", f"the groups together are given {total}")

    crossing = [d for d in problem.dependences if d.value and groups[d.source] != groups[d.target]]
    objectives = (
        -(-length // interval),
        sum(1 for g in in_use if problem.groups[g].registers is None),
        sum(max(1, ops[d.source].amount // 64) for d in crossing if problem.register_value(d)),
        len({(d.source, groups[d.target]) for d in crossing}),
        length,
        most,
    )
    return Replay(violations, objectives, usage)


def enumerate_all(
    problem: Problem, max_interval: int, max_stages: int, options: Options = Options()
) -> tuple[int, tuple[int, ...]] | None:
    """The least interval and, at it, the least objectives, among all schedules within the limits."""
    count = len(problem.operations)
    spans = [op.span for op in problem.operations]
    assignments = set()
    for groups in itertools.product(range(len(problem.groups)), repeat=count):
        if options.warp_assignment != "free":
            assignments.add(groups)
            continue
        # Compute groups are numbered in order of appearance.
        compute = problem.compute_groups
        seen = list(dict.fromkeys(g for g in groups if g in compute))
        assignments.add(tuple(compute[seen.index(g)] if g in compute else g for g in groups))
    for interval in range(1, max_interval + 1):
        for stages in range(1, max_stages + 1):
            best = None
            ranges = [range(stages * interval - span + 1) for span in spans]
            for cycles in itertools.product(*ranges):
                if any(
                    cycles[d.target] + d.distance * interval < cycles[d.source] + d.delay for d in problem.dependences
                ):
                    continue
                for groups in assignments:
                    result = replay(problem, interval, cycles, groups, None, options, fast=True)
                    if not result.violations and (best is None or result.objectives < best):
                        best = result.objectives
            if best is not None:
                return interval, best
    return None
