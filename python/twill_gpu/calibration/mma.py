"""MMAs of the tensor core: rates, latency, and two warp groups at once."""

from __future__ import annotations

from collections.abc import Iterable

from .benchmark import Benchmark, Kernel, Launch, Program, Samples
from .figures import Figure, figure, fitted
from .fits import Line, Measured, line
from .wgmma import DEPTH, struct, struct_name

COLUMNS = {"f16": (8, 16, 32, 64, 96, 128, 192, 256), "e4m3": (64, 128, 256)}
"""The K of the instructions, by the type of their operands."""
CHAINS = (2, 4, 8, 16)
"""Instructions of a chain, in series 0 to 3, twice a round; series 4: four chains of AGAIN."""
AGAIN = 4
ROWS, BYTES = 64, {"f16": 2, "e4m3": 1}
LEFT_LINE = 32
"""Bytes of a row of an operand that an instruction reads."""
SHARED_BYTES = 2 * (3 * 8192 + 32768) + 64
"""Bytes of both groups' operands and the barriers after them (mma.cuh)."""
MANY, FEW = 16, (1, 4, 16)
"""Instructions of the first and of the second group's chain."""
SHARED_COLUMNS = 128
DELAYS = (100, 250, 400, 550, 4000)
"""Cycles that the second group starts later; the last: when the first is done."""
STORED_COLUMNS = (64, 128, 192)
GROUPS = (Launch(1), Launch(2))


def _variants() -> Iterable[tuple[str, int, bool]]:
    return ((kind, columns, left) for kind, widths in COLUMNS.items() for columns in widths for left in (False, True))


def name_of(kind: str, columns: int, left_in_registers: bool) -> str:
    """Name of a kernel."""
    return f"chains_{kind}_{columns}_{'registers' if left_in_registers else 'shared'}"


def programs() -> Iterable[Program]:
    """A program for each type and place of the left operand, and one for the gap between chains."""
    for kind in COLUMNS:
        for left in (False, True):
            widths = COLUMNS[kind]
            kernels = tuple(_chains(kind, columns, left) for columns in widths)
            definitions = "".join(struct(kind, columns, left) for columns in widths)
            yield Program(f"chains_{kind}_{'registers' if left else 'shared'}", "mma.cuh", kernels, definitions)
    one, columns = struct_name("f16", SHARED_COLUMNS, False), SHARED_COLUMNS
    waited = Kernel("waited_chains", f"time_waited_chains<{one}, {columns}>(g)", 3, (Launch(1),), 2, SHARED_BYTES)
    stored = (
        Kernel(
            f"stored_chains_{read}",
            f"time_stored_chains<{one}, {columns}, {read}>(g)",
            2,
            (Launch(1),),
            2,
            SHARED_BYTES,
        )
        for read in STORED_COLUMNS
    )
    sharing = (
        Kernel(f"sharing_{few}", f"time_sharing<{one}, {columns}, {MANY}, {few}>(g)", 1, (Launch(2),), 2, SHARED_BYTES)
        for few in FEW
    )
    yield Program("between_chains", "mma.cuh", (waited, *stored, *sharing), struct("f16", columns, False))


def _chains(kind: str, columns: int, left: bool) -> Kernel:
    call = f"time_chains<{struct_name(kind, columns, left)}, {columns}>(g)"
    return Kernel(name_of(kind, columns, left), call, 5, GROUPS, 2, SHARED_BYTES)


def figures(samples: Samples) -> Iterable[Figure]:
    """Intervals, rates, latencies and the order in which the tensor core serves two groups."""
    for kind, columns, left in _variants():
        name, where = name_of(kind, columns, left), "registers" if left else "shared"
        shape = f"mma.{kind}.m64n{columns}k{DEPTH[kind]}.{where}"
        over = interval(samples, name)
        yield fitted(
            f"{shape}.interval", over.slope, "cycles", over, "instructions", "from one instruction to the next"
        )
        yield figure(
            f"{shape}.wait_latency", _wait(samples, name, over), "cycles", "end of a chain to issue of the next"
        )
        both = interval(samples, name, Launch(2))
        yield fitted(f"{shape}.interval.2_groups", both.slope / 2, "cycles", both, "instructions", "two groups at once")
    yield from _shared_rate(samples)
    for kind in COLUMNS:
        flop = 2 * ROWS * 256 * DEPTH[kind]
        rate = interval(samples, name_of(kind, 256, False)).slope.reciprocal(flop)
        yield figure(f"mma.{kind}.rate", rate, "FLOP/cycle", "m64n256, left operand in shared memory")
    yield from _between(samples)
    yield from _sharing(samples)


def interval(samples: Samples, kernel: str, launch: Launch = Launch()) -> Line:
    """Cycles of a chain and what follows it, by instructions."""
    return line([(count, samples.round(kernel, series, launch) / 2) for series, count in enumerate(CHAINS)])


def _wait(samples: Samples, name: str, over: Line) -> Measured:
    """Four chains less two: twice a chain and the wait for it, without the loop."""
    pair = samples.round(name, 4) - samples.round(name, CHAINS.index(AGAIN))
    return pair / 2 - over.slope * AGAIN


def _shared_rate(samples: Samples) -> Iterable[Figure]:
    """How fast operands are read: intervals of instructions that read more than they compute, by bytes."""
    # With a left operand in registers the narrowest reads next to nothing: what an instruction takes at least.
    least = interval(samples, name_of("f16", min(COLUMNS["f16"]), True)).slope.value
    points = []
    for columns in COLUMNS["f16"][1:]:
        computing, bytes_read = columns / 2, (ROWS + columns) * LEFT_LINE
        measured = interval(samples, name_of("f16", columns, False)).slope
        if measured.value > 1.02 * computing and measured.value > 1.02 * least:
            points.append((bytes_read, measured))
    if len(points) >= 2:
        over = line(points)
        rate = over.slope.reciprocal()
        meaning = "what the tensor core reads, where it waits for it"
        yield fitted("mma.shared_bytes_per_cycle", rate, "bytes/cycle", over, "bytes", meaning)
    for bytes_read, measured in points:
        name = f"mma.shared_bytes_per_cycle.n{bytes_read // LEFT_LINE - ROWS}"
        yield figure(name, measured.reciprocal(bytes_read), "bytes/cycle", "bytes of both operands by the interval")


def _between(samples: Samples) -> Iterable[Figure]:
    plain, barrier, as_triton = (samples.round("waited_chains", series) / 2 for series in range(3))
    over = interval(samples, name_of("f16", SHARED_COLUMNS, False))
    wait = _wait(samples, name_of("f16", SHARED_COLUMNS, False), over)
    yield figure(
        "mma.barrier", barrier - plain, "cycles", "arrival of each warp and wait for it, before a chain"
    )
    yield figure("mma.barrier.one_arrival", as_triton - plain, "cycles", "warps sync, one arrives, all wait")
    yield figure(
        "mma.additional_latency",
        wait + barrier - plain,
        "cycles",
        "end of a chain to the next, a barrier between",
    )
    points = []
    for columns in STORED_COLUMNS:
        kernel = f"stored_chains_{columns}"
        more = samples.round(kernel, 1) - samples.round(kernel, 0)
        points.append((ROWS * columns * BYTES["f16"], more))
        yield figure(
            f"mma.store.{ROWS}x{columns}", more, "cycles", "f16 from registers to a chain that reads it"
        )
    over = line(points)
    meaning = "store, fence and sync before an MMA, of no bytes"
    yield fitted("mma.store.latency", over.intercept, "cycles", over, "bytes", meaning)


def _sharing(samples: Samples) -> Iterable[Figure]:
    """When each group's chain was done, from the start of the first."""
    for few in FEW:
        kernel = f"sharing_{few}"
        first, second, started = (samples.series(kernel, launch=Launch(2), group=group) for group in range(3))
        for step, delay in enumerate(DELAYS):
            what = f"mma.sharing.{MANY}_and_{few}.after_{delay}"
            yield figure(f"{what}.first_done", first[step], "cycles", "from its start")
            yield figure(f"{what}.second_takes", second[step] - started[step], "cycles", "from its own start")


MMAS = Benchmark("mma", programs, figures)
