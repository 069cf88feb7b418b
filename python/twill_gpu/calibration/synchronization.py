"""Barriers, and registers that are given back and taken."""

from __future__ import annotations

from collections.abc import Iterable

from .benchmark import Benchmark, Kernel, Launch, Program, Samples
from .figures import Figure, figure
from .fits import mean

SHARED_BYTES = 64


def programs() -> Iterable[Program]:
    """One program."""
    kernels = (
        Kernel("clock", "time_clock(g)"),
        Kernel("barrier", "time_barrier(g)", 3, shared_bytes=SHARED_BYTES),
        Kernel("handoff", "time_handoff(g)", 3, (Launch(2),), shared_bytes=SHARED_BYTES),
        Kernel("group_sync", "time_group_sync(g)"),
        Kernel("set_registers", "time_registers(g)"),
    )
    yield Program("synchronization", "synchronization.cuh", kernels)


def figures(samples: Samples) -> Iterable[Figure]:
    """Cycles of each."""
    both = Launch(2)
    yield figure(
        "synchronization.clock", mean(samples.series("clock")), "cycles", "from one read of the clock to the next"
    )
    yield figure(
        "synchronization.arrive", samples.round("barrier", 0) / 4, "cycles", "an arrival of each warp of a group"
    )
    yield figure("synchronization.wait", samples.round("barrier", 1) / 4, "cycles", "a wait for a phase that is over")
    yield figure(
        "synchronization.arrive_and_wait", samples.round("barrier", 2) / 4, "cycles", "a group waits for its arrival"
    )
    round_trip = samples.round("handoff", 0, both) / 2
    yield figure("synchronization.handoff", round_trip / 2, "cycles", "one group's arrival to the other's return")
    named = samples.round("handoff", 1, both) / 2
    yield figure("synchronization.named_handoff", named / 2, "cycles", "the same by a named barrier")
    yield figure("synchronization.named_barrier", samples.round("handoff", 2, both) / 4, "cycles", "two groups sync")
    yield figure(
        "synchronization.named_barrier.1_group", samples.round("group_sync") / 4, "cycles", "warps of a group sync"
    )
    pair = samples.round("set_registers") / 2
    yield figure("synchronization.set_registers", pair / 2, "cycles", "setmaxnreg, alternately dec and inc")


SYNCHRONIZATION = Benchmark("synchronization", programs, figures)
