"""A loop's fewest live values at an interval and a latency, as a model for CP-SAT.

A literal for each operation and step says that the operation has started by then, as in the structured formulation of optimal modulo
scheduling (Eichenberger, Davidson: Efficient formulation for optimal modulo schedulers, PLDI 1997). A value is live in the steps in which
it has been made and a reader has not started; live values and uses of resources are counted by slot of the interval.
"""

from ortools.sat.python import cp_model

from bench.gaus.check import measure
from bench.gaus.graphs import Graph


class Starts:
    """Start steps within a latency. A literal may be true or false in any schedule, and then is a bool."""

    def __init__(self, made: cp_model.CpModel, graph: Graph, latency: int, hint: list[int]) -> None:
        self.made = made
        # Of each operation, those of the steps before its last.
        self.literals = [[made.new_bool_var("") for _ in range(latency - own)] for own in graph.latency]
        for literals, start in zip(self.literals, hint, strict=True):
            for before, after in zip(literals, literals[1:], strict=False):
                self.any_of(~before, after)
            for step, literal in enumerate(literals):
                made.add_hint(literal, step >= start)

    def by(self, operation: int, step: int):
        """The operation has started by the step."""
        literals = self.literals[operation]
        return literals[step] if 0 <= step < len(literals) else step >= 0

    def any_of(self, *literals) -> None:
        """One of them is true."""
        if not any(literal is True for literal in literals):
            self.made.add_bool_or([literal for literal in literals if literal is not False])

    def of(self, solver: cp_model.CpSolver) -> list[int]:
        """The steps that were found."""
        return [sum(not solver.boolean_value(literal) for literal in literals) for literals in self.literals]


def no(literal):
    return not literal if isinstance(literal, bool) else ~literal


def model(graph: Graph, interval: int, latency: int, hint: list[int]) -> tuple[cp_model.CpModel, Starts]:
    """The model, and the start steps; the hint is a schedule at the interval and within the latency."""
    made = cp_model.CpModel()
    starts = Starts(made, graph, latency, hint)
    for u, v, delay, distance, _ in graph.edges:
        for step in range(latency + 1):
            starts.any_of(no(starts.by(v, step)), starts.by(u, step - delay + distance * interval))
    for resource, limit in graph.limit.items():
        for used in uses(graph, starts, resource, interval):
            made.add(sum(used) <= limit)
    # The hint is a schedule, so nobody needs more than it does.
    hinted = measure(graph, hint, interval).storage
    capacity = made.new_int_var(0, hinted, "")
    made.add_hint(capacity, hinted)
    for live in live_values(made, graph, starts, interval, latency):
        made.add(sum(live) <= capacity)
    made.minimize(capacity)
    return made, starts


def uses(graph: Graph, starts: Starts, resource: str, interval: int) -> list[list]:
    """What operations use of a resource in each slot of the interval."""
    slots: list[list] = [[] for _ in range(interval)]
    for operation, used in enumerate(graph.uses):
        for held, amount in [(held, amount) for name, held, amount in used if name == resource]:
            for step in range(len(starts.literals[operation]) + 1):
                here = amount * (starts.by(operation, step) - starts.by(operation, step - 1))
                for slot in range(step, step + held):
                    slots[slot % interval].append(here)
    return slots


def live_values(made: cp_model.CpModel, graph: Graph, starts: Starts, interval: int, latency: int) -> list[list]:
    """Sizes of live values in each slot of the interval."""
    readers: dict[int, list[tuple[int, int]]] = {}
    for u, v, _, distance, _ in graph.edges:
        readers.setdefault(u, []).append((v, distance * interval))
    slots: list[list] = [[] for _ in range(interval)]
    for u, read in readers.items():
        for step in range(latency + max(later for _, later in read)) if graph.storage[u] else ():
            live = made.new_bool_var("")
            for v, later in read:
                starts.any_of(no(starts.by(u, step)), starts.by(v, step - later), live)
            slots[step % interval].append(graph.storage[u] * live)
    return slots
