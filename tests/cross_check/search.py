"""The optimal schedule of a problem, by Z3.

    python search.py FILE [--max-interval K]     prints the answer for one graph file
"""

from __future__ import annotations

import argparse
import json
import sys

from bounds import earliest, resource_bound, stage_bound
from model import Model, Solution
from problem import FAMILIES, LEVELS, Options, Problem, load


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
        # The live values depend on the number of stages, so each is a problem of its own.
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
    """Returns whether there is a schedule with this interval, whatever its objectives."""
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
    return model.minimise_length(max(t + op.span for t, op in zip(cycles, problem.operations)), 1)


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
