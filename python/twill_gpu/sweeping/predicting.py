"""How long a launch takes, from the simulation of its generated kernel."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ..errors import InputError

LAUNCH_MILLISECONDS = 0.002
"""From the end of a launch to the beginning of the next, of a kernel that does nothing."""

Amounts = tuple[int, Sequence[int]]
"""Programs of the grid, and trip counts of the kernel's loops."""


def milliseconds(kernel: Mapping, amounts: Amounts, multiprocessors: int, clock_mhz: float) -> float | None:
    """Time of a launch: tiles of the multiprocessor that has most, one after another; None where nothing is simulated.

    kernel: its kernel.json, or the part that `of_kernel` keeps.
    """
    simulated, grid = kernel.get("simulated"), kernel["grid"]
    programs, trips = amounts
    if simulated is None:
        return None
    iterations = simulated.get("assembled") or simulated["iterations"]
    if len(trips) != len(iterations):
        raise InputError(f"the kernel has {len(iterations)} loops, and there are {len(trips)} trip counts")
    tiles = -(-programs // math.prod(grid["programs_per_cta"]))
    of_one = -(-tiles // (multiprocessors * grid["ctas_per_sm"])) * grid["ctas_per_sm"]
    # CTAs that are launched one after another each begin anew.
    starts = 1 if grid["kind"] == "persistent" else of_one
    loops = sum(count * cycles for count, cycles in zip(trips, iterations))
    cycles = starts * simulated["start"] + of_one * (simulated["tile"] + loops)
    return cycles / clock_mhz / 1000 + LAUNCH_MILLISECONDS


TIE = 0.01
"""Predicted times that are apart by no more than this part say nothing of which is less."""

Item = TypeVar("Item")


def fastest_first(
    items: Sequence[Item],
    time: Callable[[Item], float],
    moved: Callable[[Item], float],
    flop: Callable[[Item], float],
) -> list[Item]:
    """By time; of those within 1 % of the first among them, what moves fewer bytes comes first, then longer iterations."""
    order, left = [], sorted(items, key=time)
    while left:
        limit = time(left[0]) * (1 + TIE)
        count = sum(time(item) <= limit for item in left)
        order += sorted(left[:count], key=lambda item: (moved(item), -flop(item), time(item)))
        left = left[count:]
    return order


def of_kernel(kernel: Mapping) -> dict:
    """What a prediction takes of a kernel.json."""
    part = {"simulated": kernel.get("simulated"), "grid": kernel["grid"]}
    assembly = kernel.get("assembly") or {}
    return part | {"spilled": assembly.get("spill_stores", 0) + assembly.get("spill_loads", 0)}


def amounts_of(programs: str, trips: str) -> Callable[[Mapping[str, object]], Amounts]:
    """Amounts by constexprs, from expressions such as `16 * 4096 // BLOCK_M` and, a comma between loops, `4096 // BLOCK_N`."""
    count, loops = _expression(programs), [_expression(one) for one in trips.split(",")]
    return lambda constexprs: (count(constexprs), [one(constexprs) for one in loops])


_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Div: lambda a, b: -(-a // b),
}


def _expression(text: str) -> Callable[[Mapping[str, object]], int]:
    """Whole numbers, names of constexprs, + - * and both divisions: // rounds down, / up."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"{text!r} is no expression; write one such as 16 * 4096 // BLOCK_M") from None

    def value(node: ast.AST, known: Mapping[str, object]) -> int:
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left, right = value(node.left, known), value(node.right, known)
            if right == 0 and isinstance(node.op, (ast.Div, ast.FloorDiv)):
                raise InputError(f"{text!r} divides by 0")
            return _OPERATORS[type(node.op)](left, right)
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            if type(known.get(node.id)) is int:
                return known[node.id]
            raise InputError(f"{text!r}: {node.id} is no constexpr that is a whole number")
        raise InputError(f"{text!r}: only whole numbers, constexprs, + - * / // and parentheses are understood")

    return lambda constexprs: value(tree, constexprs)
