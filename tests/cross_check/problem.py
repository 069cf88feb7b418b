"""The scheduling problem as docs/model.md states it, read from a graph file with its machine in it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

WARP_THREADS = 32
VARIABLE_LATENCY, ISSUE, COMPUTE = "variable_latency", "issue", "compute"
REGISTERS, SHARED, TENSOR = "registers", "shared_memory", "tensor_memory"

FAMILIES = (
    "dependence",
    "resource",
    "bandwidth",
    "assignment",
    "handoff",
    "concurrency",
    "exclusive",
    "registers",
    "shared_memory",
    "tensor_memory",
)
LEVELS = ("stages", "compute_groups", "handoff_words", "channels", "length", "registers_per_thread")


@dataclass(frozen=True)
class Reservation:
    unit: str
    start: int
    cycles: int


@dataclass(frozen=True)
class Operation:
    name: str
    reservations: tuple[Reservation, ...]
    cycles: int
    latency: int
    asynchronous: bool
    width: int
    memory: str | None
    amount: int
    variable_latency: bool
    streaming: bool
    handoff: int
    transfer_latency: int
    sub_tile: int | None
    shared_traffic: int

    @property
    def completion(self) -> int:
        return max(self.cycles, self.latency)

    @property
    def span(self) -> int:
        return max(1, self.cycles)


@dataclass(frozen=True)
class Dependence:
    source: int
    target: int
    delay: int
    distance: int
    blocking: bool
    value: bool
    tied: bool
    hold: int


@dataclass(frozen=True)
class Group:
    role: str
    warps: int
    registers: int | None
    """Registers a thread of a fixed group; a compute group's are an unknown."""


@dataclass(frozen=True)
class Options:
    """`twill_graph::ModelOptions`."""

    exclusive_issue: bool = True
    concurrency_window: str = "issue"
    consumer_registers: bool = True
    liveness: str = "folded"
    stage_window: str = "complete"
    cross_group_registers: bool = True
    warp_assignment: str = "free"


PAPER = Options(
    exclusive_issue=False,
    concurrency_window="literal",
    consumer_registers=False,
    liveness="paper",
    stage_window="paper",
)


@dataclass(frozen=True)
class Problem:
    name: str
    operations: tuple[Operation, ...]
    dependences: tuple[Dependence, ...]
    capacity: dict[str, int]
    shared_memory: int
    tensor_memory: int
    shared_bytes_per_cycle: int | None
    """The bytes that shared memory moves in a cycle; without limit if there is none."""
    reserved_shared: int
    reserved_tensor: int
    register_words: int
    register_minimum: int
    register_maximum: int
    register_granularity: int
    register_reserve: int
    fixed_words: int
    groups: tuple[Group, ...]
    eligible: tuple[tuple[int, ...], ...] = field(default=())
    """For every operation the groups that it may run on (`assignment`)."""

    def candidates(self, options: Options) -> tuple[tuple[int, ...], ...]:
        """`eligible`; under the fixed assignment of sub-tiles one compute group each."""
        if options.warp_assignment == "free":
            return self.eligible
        compute = self.compute_groups
        mine = [compute[(op.sub_tile or 0) % len(compute)] for op in self.operations]
        return tuple(
            tuple(g for g in groups if g not in compute or g == group) for groups, group in zip(self.eligible, mine)
        )

    def uses(self, v: int) -> list[Dependence]:
        return [d for d in self.dependences if d.source == v and d.value]

    def register_value(self, d: Dependence) -> bool:
        return d.value and self.operations[d.source].memory == REGISTERS

    @property
    def compute_groups(self) -> list[int]:
        return [g for g, group in enumerate(self.groups) if group.role == COMPUTE]

    @property
    def register_budget(self) -> int:
        return self.register_words - self.fixed_words

    def register_choices(self) -> list[int]:
        """The register counts of a thread of a compute group in use: multiples of the granularity, of
        which the least leaves room for at least nothing and more than the last adds nothing."""
        granule = self.register_granularity
        up = lambda value: -(-value // granule) * granule
        least = up(max(self.register_minimum, self.register_reserve))
        return list(range(least, max(up(self.register_maximum), least) + 1, granule))

    def tile_words(self, warps: int, registers: int) -> int:
        return WARP_THREADS * warps * (min(registers, self.register_maximum) - self.register_reserve)


def read(text: str) -> Problem:
    """Reads a graph file whose `machine` is given in full."""
    return build(json.loads(text))


def load(path: str | Path) -> Problem:
    return read(Path(path).read_text())


def build(file: dict) -> Problem:
    machine = file["machine"]
    operations = tuple(_operation(entry) for entry in file["operations"])
    index = {op.name: v for v, op in enumerate(operations)}
    dependences = tuple(_dependence(entry, index, operations) for entry in file.get("dependences", []))
    groups, fixed_words = [], 0
    for role, key in ((VARIABLE_LATENCY, "variable_latency_group"), (ISSUE, "issue_group")):
        group = machine.get(key)
        if group is not None:
            groups.append(Group(role, group["warps"], group["registers_per_thread"]))
            fixed_words += WARP_THREADS * group["allocated_warps"] * group["registers_per_thread"]
    pool = machine["compute_groups"]
    groups += [Group(COMPUTE, pool["warps"], None)] * pool["maximum"]
    registers, reserved = machine["registers"], file.get("reserved", {})
    return Problem(
        name=file["name"],
        operations=operations,
        dependences=dependences,
        capacity={unit["name"]: unit.get("capacity", 1) for unit in machine["units"]},
        shared_memory=machine["shared_memory"],
        tensor_memory=machine.get("tensor_memory", 0),
        shared_bytes_per_cycle=machine.get("shared_bytes_per_cycle"),
        reserved_shared=reserved.get("shared_memory", 0),
        reserved_tensor=reserved.get("tensor_memory", 0),
        register_words=registers["words"],
        register_minimum=registers["minimum_per_thread"],
        register_maximum=registers["maximum_per_thread"],
        register_granularity=registers["granularity"],
        register_reserve=registers["reserve_per_thread"],
        fixed_words=fixed_words,
        groups=tuple(groups),
        eligible=tuple(_eligible(op, groups) for op in operations),
    )


def _operation(entry: dict) -> Operation:
    reservations = tuple(Reservation(u["unit"], u.get("start", 0), u["cycles"]) for u in entry.get("units", []))
    cycles = _default(entry.get("cycles"), max((r.start + r.cycles for r in reservations), default=0))
    latency = _default(entry.get("latency"), cycles)
    memory, amount = next(iter((entry.get("result") or {}).items()), (None, 0))
    return Operation(
        name=entry["name"],
        reservations=reservations,
        cycles=cycles,
        latency=latency,
        asynchronous=entry.get("execution", "synchronous") == "asynchronous",
        width=entry.get("issue_width", 4),
        memory=memory,
        amount=amount,
        variable_latency=entry.get("variable_latency", False),
        streaming=entry.get("streaming", False),
        handoff=entry.get("handoff", 0),
        transfer_latency=_default(entry.get("transfer_latency"), latency),
        sub_tile=entry.get("sub_tile"),
        shared_traffic=entry.get("traffic", {}).get("shared", 0),
    )


def _dependence(entry: dict, index: dict[str, int], operations: tuple[Operation, ...]) -> Dependence:
    source, target = index[entry["from"]], index[entry["to"]]
    producer, consumer, tied = operations[source], operations[target], entry.get("tied", False)
    return Dependence(
        source=source,
        target=target,
        delay=_default(entry.get("delay"), 0 if producer.streaming else producer.latency),
        distance=entry.get("distance", 0),
        blocking=_default(entry.get("blocking"), producer.asynchronous),
        value=_default(entry.get("value"), producer.memory is not None),
        tied=tied,
        hold=_default(entry.get("hold"), consumer.completion if consumer.asynchronous and not tied else 0),
    )


def _eligible(op: Operation, groups: list[Group]) -> tuple[int, ...]:
    roles = {group.role for group in groups}
    if op.variable_latency and VARIABLE_LATENCY in roles:
        role = VARIABLE_LATENCY
    elif op.width == 1 and ISSUE in roles:
        role = ISSUE
    else:
        role = COMPUTE
    return tuple(g for g, group in enumerate(groups) if group.role == role and group.warps >= op.width)


def _default(value, otherwise):
    return otherwise if value is None else value
