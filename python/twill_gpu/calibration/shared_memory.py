"""Tiles between registers and shared memory, and from one warp group to another."""

from __future__ import annotations

from collections.abc import Iterable

from .benchmark import Benchmark, Kernel, Launch, Program, Samples
from .figures import Figure, figure, fitted
from .fits import Measured, line

ROWS, HALF, SINGLE, KILOBYTE = 64, 2, 4, 1024
COLUMNS = (64, 128, 256)
"""Columns of tiles of f16."""
HANDED = (8, 16, 32, 64, 128)
"""Columns of tiles of f32 for the handoff benchmarks."""
SHARED_BYTES = 3 * 32768 + 64
"""Three tiles, and the barriers after them (shared_memory.cuh)."""
GROUPS = (Launch(1), Launch(2), Launch(3))


def programs() -> Iterable[Program]:
    """Stores, loads, and handoffs."""
    stores = (Kernel(f"stores_{n}", f"time_stores<{n}>(g)", 4, GROUPS, 3, SHARED_BYTES) for n in COLUMNS)
    loads = (Kernel(f"loads_{n}", f"time_loads<{n}>(g)", 1, GROUPS, 3, SHARED_BYTES) for n in COLUMNS)
    yield Program("shared_memory", "shared_memory.cuh", (*stores, *loads))
    tiles = (Kernel(f"handoffs_{n}", f"time_handoffs<{n}>(g)", 1, (Launch(2),), 2, SHARED_BYTES) for n in HANDED)
    rows = Kernel("handoffs_rows", "time_row_handoffs(g)", 1, (Launch(2),), 2, SHARED_BYTES)
    yield Program("handoffs", "shared_memory.cuh", (*tiles, rows))


def figures(samples: Samples) -> Iterable[Figure]:
    """Rates of stores and loads, of one group and of several; fences; handoffs by size."""
    ways = (
        ("store", "stores", 0, "f16 by matrices (stmatrix)"),
        ("store_words", "stores", 3, "f16 by words"),
        ("load", "loads", 0, "f16 by matrices (ldmatrix)"),
    )
    for name, kernel, series, meaning in ways:
        for launch in GROUPS:
            points = [(ROWS * n * HALF, samples.round(f"{kernel}_{n}", series, launch)) for n in COLUMNS]
            over = line(points)
            groups = "" if launch.groups == 1 else f".{launch.groups}_groups"
            rate = over.slope.reciprocal(launch.groups)
            yield fitted(f"shared_memory.{name}.rate{groups}", rate, "bytes/cycle", over, "bytes", meaning)
        one = samples.round(f"{kernel}_128", series)
        yield figure(f"shared_memory.{name}.{ROWS}x128", one, "cycles", meaning)
    for n in COLUMNS:
        more = samples.round(f"stores_{n}", 1) - samples.round(f"stores_{n}", 0)
        yield figure(f"shared_memory.fence.after_{ROWS}x{n}", more, "cycles", "fence after the store of a tile of f16")
    yield figure("shared_memory.fence", samples.round("stores_64", 2) / 4, "cycles", "fence after a fence")
    handed: list[tuple[float, Measured]] = []
    for n in HANDED:
        one_way = samples.round(f"handoffs_{n}", launch=Launch(2)) / 2
        handed.append((ROWS * n * SINGLE / KILOBYTE, one_way))
        yield figure(
            f"shared_memory.handoff.{ROWS}x{n}", one_way, "cycles", "f32 from one group's registers to another's"
        )
    rows = samples.round("handoffs_rows", launch=Launch(2)) / 2
    yield figure(f"shared_memory.handoff.{ROWS}_rows", rows, "cycles", "a number of each row, to another group")
    over = line(handed)
    meaning = "store, arrival, wait, load"
    yield fitted("shared_memory.handoff.latency", over.intercept, "cycles", over, "KB", meaning)
    yield fitted("shared_memory.handoff.per_kb", over.slope, "cycles/KB", over, "KB", meaning)


SHARED_MEMORY = Benchmark("shared_memory", programs, figures)
