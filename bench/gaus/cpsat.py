"""OR-Tools CP-SAT on a scheduling question: reads it as JSON on stdin, writes its answer as JSON to stdout.

Start steps within mobility windows, one difference constraint for each dependence. Resources are one cumulative
constraint each, with the peak as its capacity; storage is a cumulative constraint over lifetimes, which end where the
last reader starts. Every variable is hinted from the warm start. One thread; the time limit is for the solver alone, so
neither reading nor building the model counts. `cpsat_loop` has the model of a loop.
"""

import json
import sys
import time
from pathlib import Path

from ortools.sat.python import cp_model

from bench.gaus import cpsat_loop, graphs
from bench.gaus.check import measure
from bench.gaus.graphs import Graph


def model(graph: Graph, kind: str, weights: tuple[int, int], latency: int, hint: list[int]):
    """The model and the variables of the start steps."""
    made = cp_model.CpModel()
    windows = zip(graph.earliest, graph.latest(latency), strict=True)
    starts = [made.new_int_var(low, high, "") for low, high in windows]
    for u, v, delay, _, _ in graph.edges:
        made.add(starts[v] - starts[u] >= delay)
    for start, step in zip(starts, hint, strict=True):
        made.add_hint(start, step)
    measured = measure(graph, hint)
    if kind == "storage":
        made.minimize(peak_storage(made, graph, starts, latency, hint, measured.storage))
    else:
        cost = weights[0] * sum(peak(made, graph, starts, name, hinted) for name, hinted in measured.peaks.items())
        if weights[1]:
            net = [0] * len(graph)
            for u, v, _, _, weight in graph.edges:
                net[u] -= weight
                net[v] += weight
            cost += weights[1] * cp_model.LinearExpr.weighted_sum(starts, net)
        made.minimize(cost)
    return made, starts


def peak(made: cp_model.CpModel, graph: Graph, starts: list, resource: str, hint: int) -> cp_model.IntVar:
    held, amounts = [], []
    for start, uses in zip(starts, graph.uses, strict=True):
        for name, steps, amount in uses:
            if name == resource:
                held.append(made.new_fixed_size_interval_var(start, steps, ""))
                amounts.append(amount)
    capacity = made.new_int_var(max(amounts), sum(amounts), "")
    made.add_hint(capacity, hint)
    made.add_cumulative(held, amounts, capacity)
    return capacity


def peak_storage(made: cp_model.CpModel, graph: Graph, starts: list, latency: int, hint: list[int], hinted: int):
    last = {}
    for u, v, _, _, _ in graph.edges:
        if graph.storage[u]:
            last[u] = max(last.get(u, 0), hint[v])
    ends = {u: made.new_int_var(0, latency, "") for u in last}
    for u, v, _, _, _ in graph.edges:
        if u in ends:
            made.add(ends[u] >= starts[v])
    lives = []
    for u, end in ends.items():
        size = made.new_int_var(0, latency, "")
        made.add_hint(end, last[u])
        made.add_hint(size, last[u] - hint[u])
        lives.append(made.new_interval_var(starts[u], size, end, ""))
    amounts = [graph.storage[u] for u in ends]
    # The warm start is a schedule, so nobody needs more than it does.
    capacity = made.new_int_var(0, hinted, "")
    made.add_hint(capacity, hinted)
    made.add_cumulative(lives, amounts, capacity)
    return capacity


class Trace(cp_model.CpSolverSolutionCallback):
    """Every solution: when, and what it is worth."""

    def __init__(self) -> None:
        super().__init__()
        self.began = time.perf_counter()
        self.found: list[tuple[float, int]] = []

    def on_solution_callback(self) -> None:
        self.found.append((time.perf_counter() - self.began, round(self.objective_value)))


def steps(solver: cp_model.CpSolver, starts: list | cpsat_loop.Starts) -> list[int]:
    return starts.of(solver) if isinstance(starts, cpsat_loop.Starts) else [solver.value(start) for start in starts]


def main() -> int:
    question = json.load(sys.stdin)
    graph = graphs.read(Path(question["file"]), question["chaining"])
    began = time.perf_counter()
    latency, hint = question["latency"], question["hint"]
    if question["interval"]:
        made, starts = cpsat_loop.model(graph, question["interval"], latency, hint)
    else:
        made, starts = model(graph, question["kind"], tuple(question["weights"]), latency, hint)
    building = time.perf_counter() - began
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = question["seconds"]
    solver.parameters.random_seed = question["seed"]
    trace = Trace()
    status = solver.solve(made, trace)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    answer = {
        "status": solver.status_name(status).lower(),
        "steps": steps(solver, starts) if found else None,
        "bound": solver.best_objective_bound if status != cp_model.UNKNOWN or found else None,
        "trace": trace.found,
        "building": building,
        "solving": solver.wall_time,
    }
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
