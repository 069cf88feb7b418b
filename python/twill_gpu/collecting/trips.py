"""How often the loops of a kernel run in a launch: its TTIR read with the launch's arguments and grid."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

DEFINED = re.compile(r"^\s*(%[\w#]+)(?::\d+)? = ([\w.]+) ?(.*)$")
FOR = re.compile(r"scf\.for (%\w+) = (%[\w#]+) to (%[\w#]+) step (%[\w#]+)")
CONSTANT = re.compile(r"(-?\d+) :")
OPERANDS = re.compile(r"%[\w#]+")
AXES = {"x": 0, "y": 1, "z": 2}
SAMPLES = 64
"""Programs of the grid that are asked, where trip counts differ between them."""
DEPTH = 200
TILES = re.compile(r"\b(tt\.(dot|load|store|descriptor_\w+|atomic_\w+))\b")


def _toward_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


BINARY: Mapping[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": _toward_zero,
    "arith.divui": _toward_zero,
    "arith.remsi": lambda a, b: a - b * _toward_zero(a, b),
    "arith.remui": lambda a, b: a % b,
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.andi": lambda a, b: a & b,
    "arith.shli": lambda a, b: a << b,
    "arith.shrsi": lambda a, b: a >> b,
}
SAME = ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast")


class Unknown(Exception):
    """A number that does not follow from arguments and grid."""


def trip_counts(ttir: str, arguments: Mapping[str, int], grid: Sequence[int]) -> list[float] | None:
    """Iterations of each innermost loop with tiles, in the order of the text, in the mean over programs of the grid.

    None where that cannot be told: a loop in a loop, a `while`, bounds that are loaded.
    """
    lines = ttir.splitlines()
    loops = _innermost(lines)
    if loops is None:
        return None
    defined = {match[1]: (match[2], match[3]) for match in map(DEFINED.match, lines) if match}
    extents = [*grid, 1, 1][:3]
    programs = _programs(extents)
    try:
        counts = [[_trips(loop, defined, arguments, program, extents) for loop in loops] for program in programs]
    except (Unknown, ZeroDivisionError):
        return None
    return [sum(column) / len(programs) for column in zip(*counts)]


def _innermost(lines: Sequence[str]) -> list[tuple[str, str, str]] | None:
    """Bounds and step of the loops; None where one is in another."""
    found: list[tuple[str, str, str]] = []
    open_at: int | None = None
    bounds = ("", "", "")
    has_tiles = False
    for line in lines:
        indent = len(line) - len(line.lstrip())
        match = FOR.search(line)
        if "scf.while" in line or (match and open_at is not None):
            return None
        if match:
            open_at, bounds, has_tiles = indent, (match[2], match[3], match[4]), False
        elif open_at is not None and indent == open_at and line.lstrip().startswith("}"):
            found += [bounds] if has_tiles else []
            open_at = None
        elif open_at is not None:
            has_tiles = has_tiles or bool(TILES.search(line))
    return found or None


def _programs(extents: Sequence[int]) -> list[tuple[int, int, int]]:
    """Some programs of a grid, evenly."""
    x, y, z = extents
    count = x * y * z
    step = max(1, count // SAMPLES)
    return [(at % x, at // x % y, at // (x * y)) for at in range(step // 2, count, step)] or [(0, 0, 0)]


def _trips(
    loop: tuple[str, str, str],
    defined: Mapping[str, tuple[str, str]],
    arguments: Mapping[str, int],
    program: tuple[int, int, int],
    extents: Sequence[int],
) -> int:
    def value(name: str, depth: int = 0) -> int:
        if depth > DEPTH:
            raise Unknown
        if name not in defined:
            if name[1:] in arguments:
                return arguments[name[1:]]
            raise Unknown
        operation, rest = defined[name]
        if operation == "arith.constant":
            constant = CONSTANT.match(rest)
            if constant:
                return int(constant[1])
        elif operation in ("tt.get_program_id", "tt.get_num_programs"):
            axis = AXES[rest.split()[0]]
            return program[axis] if operation == "tt.get_program_id" else extents[axis]
        elif operation in BINARY or operation in SAME:
            operands = [value(one, depth + 1) for one in OPERANDS.findall(rest.split(":")[0])]
            if operation in SAME:
                return operands[0]
            return BINARY[operation](*operands)
        raise Unknown

    lower, upper, step = map(value, loop)
    if step <= 0:
        raise Unknown
    return max(0, -(-(upper - lower) // step))
