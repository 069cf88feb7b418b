"""Which of two kernels is faster for a grid and sizes, Twill's or stock Triton's: by the times of a program's own launches.

No launch is made twice, since a kernel may change what it reads: launches alternate until each side has its samples, and
the faster one has all that follow.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

SAMPLES = 5
"""Launches of each side that are timed, after a first that is not: it may compile and load."""
MARGIN = 0.01
"""The part of Twill's time by which stock Triton must be faster. A choice: less than runs of one kernel differ by."""


class Side(Enum):
    """Whose kernel is launched."""

    TWILL = "twill"
    STOCK = "stock"


class Event(Protocol):
    """A point on a stream, as `torch.cuda.Event` is one."""

    def record(self) -> object: ...
    def query(self) -> bool: ...
    def elapsed_time(self, end: Any) -> float: ...


class Contest:
    """A contest for launches that are alike; until it is settled, `turn` says who is next."""

    def __init__(self, event: Callable[[], Event], is_capturing: Callable[[], bool]):
        self._event, self._is_capturing = event, is_capturing
        self._launched = 0
        self._pending: list[tuple[Side, Event, Event]] = []
        self.milliseconds: dict[Side, float] = {}
        """Medians, once it is settled."""
        self.winner: Side | None = None

    def turn(self) -> Side:
        """The side that has the next launch; Twill's into a CUDA graph, where none can be timed."""
        if self.winner is not None:
            return self.winner
        if self._is_capturing():
            return Side.TWILL
        if self._launched >= 2 * (SAMPLES + 1):
            self._settle()
        return self.winner or (Side.TWILL if self._launched % 2 == 0 or self._is_over() else Side.STOCK)

    def launch(self, side: Side, launch: Callable[[], object]) -> object:
        """Launches, and records the time unless the contest is over."""
        if self._is_over() or self._is_capturing():
            return launch()
        before, after = self._event(), self._event()
        before.record()
        result = launch()
        after.record()
        # A launch that fails is none.
        self._launched += 1
        if self._launched > 2:
            self._pending.append((side, before, after))
        return result

    def forfeit(self, side: Side) -> None:
        """One side cannot launch: the other one has it."""
        self.winner = Side.TWILL if side is Side.STOCK else Side.STOCK
        self._pending.clear()

    def _is_over(self) -> bool:
        return self.winner is not None or self._launched >= 2 * (SAMPLES + 1)

    def _settle(self) -> None:
        if not all(after.query() for _, _, after in self._pending):
            return
        times: dict[Side, list[float]] = {side: [] for side in Side}
        for side, before, after in self._pending:
            times[side].append(before.elapsed_time(after))
        self._pending.clear()
        self.milliseconds = {side: statistics.median(of) for side, of in times.items()}
        ours, stock = self.milliseconds[Side.TWILL], self.milliseconds[Side.STOCK]
        self.winner = Side.STOCK if stock < ours * (1 - MARGIN) else Side.TWILL


def begin() -> Contest | None:
    """A contest on the GPU in use; None where nothing can be timed."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not hasattr(cuda, "Event") or not hasattr(cuda, "is_current_stream_capturing"):
        return None
    return Contest(lambda: cuda.Event(enable_timing=True), cuda.is_current_stream_capturing)
