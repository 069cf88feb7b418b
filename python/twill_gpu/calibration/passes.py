"""Passes of a warp group over a tile in its registers, alone and while others do the same."""

from __future__ import annotations

from collections.abc import Iterable

from .benchmark import Benchmark, Kernel, Launch, Program, Samples
from .figures import Figure, figure, fitted
from .fits import Measured, line

ROWS = 64
COLUMNS = (32, 64, 128, 256)
"""Columns of tiles."""
GROUPS = (Launch(1), Launch(2), Launch(3))
KINDS = {
    "fma": "x a - b, b by row",
    "rescale": "x a, a by row",
    "maximum": "max(x, a), a by row",
    "exp2": "2^x",
    "scaled_exp2": "2^(x a - b), b by row",
    "convert": "f32 to f16",
    "row_maximum": "row maxima, shuffles included",
    "row_maximum_in_thread": "row maxima of what a thread holds",
    "row_sum": "row sums, shuffles included",
    "row_sum_in_thread": "row sums of what a thread holds",
    "softmax": "maxima, 2^(x a - b), sums within threads, f16",
    "softmax_whole_sums": "the same, sums with shuffles",
}
"""Kinds of passes, with what they do."""
PASSES = {name: name if name.startswith(("row", "softmax")) else f"{name}_pass" for name in KINDS}
"""Their structs in passes.cuh."""
SHUFFLED = ("row_maximum", "row_sum")
"""Those that wait for other threads whatever the tile."""
PAIR, FOUR = 0, 1
"""Series: two and four passes a round."""


def columns_of(kind: str) -> tuple[int, ...]:
    """Columns of the tiles of a kind: 64 x 256 scores and what becomes of them are more than the registers hold."""
    return COLUMNS[:-1] if kind.startswith("softmax") else COLUMNS


def name_of(kind: str, columns: int) -> str:
    """Name of a kernel."""
    return f"pass_{kind}_{columns}"


def programs() -> Iterable[Program]:
    """A program for each kind."""
    for kind, struct in PASSES.items():
        kernels = (_kernel(kind, struct, columns) for columns in columns_of(kind))
        yield Program(f"pass_{kind}", "passes.cuh", tuple(kernels))


def _kernel(kind: str, struct: str, columns: int) -> Kernel:
    return Kernel(name_of(kind, columns), f"time_pass<{struct}, {columns}>(g)", 2, GROUPS, 3)


def cycles(samples: Samples, kind: str, columns: int, launch: Launch = Launch()) -> Measured:
    """Cycles of a pass, of each of the groups of a launch."""
    kernel = name_of(kind, columns)
    return (samples.round(kernel, FOUR, launch) - samples.round(kernel, PAIR, launch)) / 2


def figures(samples: Samples) -> Iterable[Figure]:
    """Cycles of each pass by tile, alone and while other groups run, and by elements."""
    for kind, meaning in KINDS.items():
        for launch in GROUPS:
            groups = "" if launch.groups == 1 else f".{launch.groups}_groups"
            meaning = meaning if launch.groups == 1 else f"each of {launch.groups} groups at once"
            points = []
            for columns in columns_of(kind):
                measured = cycles(samples, kind, columns, launch)
                points.append((ROWS * columns, measured))
                yield figure(f"passes.{kind}.{ROWS}x{columns}{groups}", measured, "cycles", meaning)
            over = line(points)
            rate = over.slope.reciprocal(launch.groups)
            yield fitted(f"passes.{kind}.rate{groups}", rate, "elements/cycle", over, "elements", "all groups together")
            if kind in SHUFFLED and launch.groups == 1:
                yield fitted(f"passes.{kind}.latency", over.intercept, "cycles", over, "elements", "of no elements")


PASSES_BENCHMARK = Benchmark("passes", programs, figures)
