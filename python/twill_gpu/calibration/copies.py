"""Copies by TMA between global and shared memory."""

from __future__ import annotations

from collections.abc import Iterable

from .benchmark import SERIES, Benchmark, Kernel, Launch, Program, Samples
from .figures import Figure, figure, fitted
from .fits import line, mean, pooled

LINE, KILOBYTE = 128, 1024
BOX_ROWS = (8, 32, 64, 128, 256)
"""Rows of the boxes whose latency is measured."""
RINGS = {32: 6, 64: 6, 128: 6, 256: 6}
"""Slots of a ring, by rows of a box."""
SMALLEST = LINE * min(RINGS)
PASSES = 8
"""Passes over a ring of the first number of a series."""
SHARED_BYTES = 6 * 256 * LINE + 64
"""The largest ring, and its barriers (copies.cuh)."""
ALL = Launch(1, None)
LATENCIES = (("cold", "out of memory"), ("cached", "out of the second-level cache"))
PATTERNS = (("own", "each its own rows"), ("common", "all the same rows"))


def programs() -> Iterable[Program]:
    """Latencies, and rates of one multiprocessor and of all."""
    here = Launch(1)
    latencies = (
        Kernel(f"copies_{rows}", f"time_copies<{rows}>(g, map)", 2, (here,), 1, SHARED_BYTES, rows, True)
        for rows in BOX_ROWS
    )
    loads = (
        Kernel(f"tma_loads_{rows}", f"time_loads<{rows}, {slots}>(g, map)", 2, (here, ALL), 1, SHARED_BYTES, rows)
        for rows, slots in RINGS.items()
    )
    stores = (
        Kernel(f"tma_stores_{rows}", f"time_stores<{rows}, {slots}>(g, map)", 2, (here, ALL), 1, SHARED_BYTES, rows)
        for rows, slots in RINGS.items()
    )
    yield Program("copies", "copies.cuh", (*latencies, *loads, *stores))


def figures(samples: Samples) -> Iterable[Figure]:
    """Latency by size, and bytes a cycle and multiprocessor."""
    for series, (name, meaning) in enumerate(LATENCIES):
        points = []
        for rows in BOX_ROWS:
            measured = pooled(samples.series(f"copies_{rows}", series))
            points.append((rows * LINE / KILOBYTE, measured))
            yield figure(f"copies.load.{name}.{rows * LINE}_bytes", measured, "cycles", f"issue to arrival, {meaning}")
        over = line(points)
        yield fitted(f"copies.load.{name}.latency", over.intercept, "cycles", over, "KB", f"of no bytes, {meaning}")
    for launch, who in ((Launch(1), "1_sm"), (ALL, "all_sms")):
        for series, (pattern, meaning) in enumerate(PATTERNS):
            yield from _rates(samples, f"copies.load.{who}.{pattern}", "tma_loads", series, launch, meaning)
        yield from _rates(samples, f"copies.store.{who}", "tma_stores", 0, launch, "each its own rows")


def _rates(samples: Samples, name: str, kernel: str, series: int, launch: Launch, meaning: str) -> Iterable[Figure]:
    ctas = samples.multiprocessors if launch.ctas is None else 1
    for rows, slots in RINGS.items():
        each = [
            samples.rounds(f"{kernel}_{rows}", series, launch, at=cta * 2 * SERIES, stride=PASSES * slots).slope
            for cta in range(ctas)
        ]
        box = mean(each)
        size = rows * LINE
        yield figure(
            f"{name}.{size}_byte_boxes", box.reciprocal(size), "bytes/cycle", f"of each multiprocessor, {meaning}"
        )
        if size == SMALLEST:
            yield figure(f"{name}.box", box, "cycles", f"of a box of {size} bytes: wait for a slot, issue")


COPIES = Benchmark("copies", programs, figures)
