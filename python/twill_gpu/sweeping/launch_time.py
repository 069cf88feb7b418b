"""The time of a launch: cycles of the multiprocessor that has most to do, at the clock that the power limit leaves.

Plain data in, plain data out, and nothing imported of the package: the benchmarks read this file by itself.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

LAUNCH_MILLISECONDS = 0.002
"""From the end of a launch to the beginning of the next, of a kernel that does nothing."""

TIE = 0.01
"""Predicted times that are apart by no more than this part say nothing of which is less."""

Amounts = tuple["int | Sequence[int]", Sequence[int]]
"""Programs of the grid, in all or along each axis, and trip counts of the kernel's loops."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Gpu:
    """The GPU of a launch. Numbers that a machine file does not say are left out of the prediction."""

    multiprocessors: int
    clock_mhz: float
    """The highest under load."""
    l2_bytes_per_cycle: float = math.inf
    """That each multiprocessor loads when all do, and those next to each other load different bytes."""
    watts: float = math.inf
    """The power limit."""
    base_watts: float = 0.0
    """The power at the highest clock besides the following."""
    tensor_pj_per_flop: float = 0.0
    l2_pj_per_byte: float = 0.0

    @classmethod
    def of(cls, numbers: Mapping[str, float], sustained: bool = True) -> Gpu:
        """The GPU of a machine's numbers by their keys.

        sustained: launches follow each other for long; otherwise they are the first few milliseconds after a rest.
        """
        found: dict[str, Any] = {
            "multiprocessors": int(numbers["chip.streaming_multiprocessors"]),
            "clock_mhz": numbers["chip.clock_mhz"],
            "l2_bytes_per_cycle": numbers.get("chip.l2_bytes_per_cycle", math.inf),
        }
        if "power.clock_mhz" in numbers:
            names = ("clock_mhz", "base_watts", "tensor_pj_per_flop", "l2_pj_per_byte")
            found |= {name: numbers[f"power.{name}"] for name in names}
            found["watts"] = numbers["power.limit_watts" if sustained else "power.burst_watts"]
        return cls(**found)

    def clock(self, flop_per_cycle: float, bytes_per_cycle: float) -> float:
        """MHz, of FLOP and of bytes out of the second-level cache a cycle of the whole chip.

        Power goes with the square of the clock: energy of an operation goes with the clock, as voltage does.
        """
        picojoules = flop_per_cycle * self.tensor_pj_per_flop + bytes_per_cycle * self.l2_pj_per_byte
        watts = self.base_watts + picojoules * self.clock_mhz * 1e-6
        return self.clock_mhz * (1.0 if watts <= self.watts else math.sqrt(self.watts / watts))


def milliseconds(kernel: Mapping[str, Any], amounts: Amounts, gpu: Gpu) -> float | None:
    """Time of a launch: tiles of the multiprocessor that has most, one after another; None where nothing is simulated.

    kernel: its kernel.json, or the part that `of_kernel` keeps. Raises ValueError if loops and trip counts do not agree.
    """
    simulated, grid = kernel.get("simulated"), kernel["grid"]
    if simulated is None:
        return None
    programs, trips = amounts
    grid_extents = [programs] if isinstance(programs, int) else list(programs)
    work = simulated.get("sass") or simulated["iterations"]
    if len(trips) != len(work):
        raise ValueError(f"the kernel has {len(work)} loops, and there are {len(trips)} trip counts")
    traffic = simulated.get("traffic") or [{}] * len(work)
    # Tiles that neighbours share are loaded once for several of them; the rest bounds an iteration as work does.
    own = [one.get("global", 0) - one.get("common", 0) for one in traffic]
    iterations = [max(cycles, bytes_ / gpu.l2_bytes_per_cycle) for cycles, bytes_ in zip(work, own)]
    # Of a grid without programs, time is that of one.
    extents = [max(1, -(-count // coarsening)) for count, coarsening in zip([*grid_extents, 1, 1], grid["cta_coarsening"])]
    tiles = math.prod(extents)
    resident = gpu.multiprocessors * grid["ctas_per_sm"]
    ctas = cta_count(grid.get("ctas", []), resident, extents)
    of_one = -(-tiles // min(ctas, resident)) * grid["ctas_per_sm"]
    # CTAs that are launched one after another each begin anew.
    starts = 1 if grid["kind"] == "persistent" and ctas <= resident else of_one
    loops = sum(count * cycles for count, cycles in zip(trips, iterations))
    cycles = starts * simulated["start"] + of_one * (simulated["tile"] + loops)

    def rate(name: str) -> float:
        return float(tiles * sum(count * one.get(name, 0) for count, one in zip(trips, traffic)) / cycles)

    return float(cycles / gpu.clock(rate("flop"), rate("global")) / 1000 + LAUNCH_MILLISECONDS)


def cta_count(counts: Sequence[Mapping[str, Any]], resident: int, extents: Sequence[int]) -> int:
    """CTAs of a launch over tiles of these extents, `resident` of which run at once: by the first of the counts of
    kernel.json whose condition holds, else one for each tile."""
    names = {"tiles": math.prod(extents), "resident": resident, "columns": extents[0], "rows": extents[1]}
    for count in counts if names["tiles"] else ():
        names["waves"] = value_of(count["waves"], names)
        if "if" not in count or value_of(count["if"], names):
            return value_of(count["ctas"], names)
    return names["tiles"]


OPERATORS: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
    "min": min,
    "==": operator.eq,
    "<": operator.lt,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
}


def value_of(formula: Any, names: Mapping[str, int]) -> int:
    """A formula of kernel.json: a number, a name, or an operator and its two operands."""
    if isinstance(formula, list):
        symbol, a, b = formula
        return OPERATORS[symbol](value_of(a, names), value_of(b, names))
    return names[formula] if isinstance(formula, str) else int(formula)


def of_kernel(kernel: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a kernel.json that a prediction needs."""
    part = {"simulated": kernel.get("simulated"), "grid": kernel["grid"]}
    assembly = kernel.get("assembly") or {}
    return part | {"spilled": assembly.get("spill_stores", 0) + assembly.get("spill_loads", 0)}


def fastest_first(
    items: Sequence[Item],
    time: Callable[[Item], float],
    moved: Callable[[Item], float],
    flop: Callable[[Item], float],
    options: Callable[[Item], int],
) -> list[Item]:
    """By time; of those within 1 % of the first among them, those with fewer options first, then those with fewer
    bytes for each FLOP, then those with longer iterations."""
    order, left = [], sorted(items, key=time)
    while left:
        limit = time(left[0]) * (1 + TIE)
        count = sum(time(item) <= limit for item in left)
        order += sorted(left[:count], key=lambda item: (options(item), moved(item), -flop(item), time(item)))
        left = left[count:]
    return order
