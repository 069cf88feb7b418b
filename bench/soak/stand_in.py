"""Calls and a Twill for tests of the loop: neither a GPU nor Triton is needed. What a call does wrong is in its name."""

from __future__ import annotations

import random
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from .application import Application, Request
from .plan import Plan

USUAL = "quick"
BUSY = 100e-6
"""Seconds that a call takes."""


class Twill:
    """Says what `twill.Twill` says, and notes what it is told."""

    def __init__(self) -> None:
        self.misses = self.trials = self.evictions = self.steps = 0
        self.is_paused = True
        self.dropped: list[str] = []
        self.held: list[bytes] = []
        self.children: list[subprocess.Popen[bytes]] = []

    def count_trials(self) -> None:
        """Trials are counted already."""

    def pause(self, paused: bool) -> None:
        """As `twill.Twill`."""
        self.is_paused = paused

    def evict(self, chance: random.Random) -> bool:
        """As `twill.Twill`."""
        self.evictions += 1
        return True

    def after_step(self) -> None:
        """As `twill.Twill`."""
        self.steps += 1

    def functions(self) -> list[str]:
        """As `twill.Twill`."""
        return ["one", "another"]

    def drop(self, function: str) -> None:
        """As `twill.Twill`."""
        self.dropped.append(function)

    def counts(self) -> dict[str, int]:
        """As `twill.Twill`."""
        return {"specialisations": len(self.dropped), "loaded": 0, "waiting": 0, "contests": 1, "open": 0}

    def status(self) -> dict[str, Any]:
        """As `twill.Twill`."""
        numbers = dict.fromkeys(("kernels", "launches", "settled", "twill", "tuned"), 1)
        return {**numbers, "by_status": {"scheduled": 1}, "condemned": [], "reasons": []}

    # --------------------------------------------------------------------------------------------- calls
    def call(self, kind: str) -> list[float]:
        """A call; by Twill, what its name says."""
        by_twill = not self.is_paused
        if by_twill and kind == "leak":
            self.held.append(bytes(4096))
        if by_twill and kind == "fail":
            raise RuntimeError("no launch")
        if by_twill and kind == "hang":
            time.sleep(3600)
        if by_twill and kind == "child" and not self.children:
            environment = {"TMPDIR": f"{tempfile.gettempdir()}/left"}
            self.children.append(subprocess.Popen(["sleep", "20"], env=environment, start_new_session=True))
        end = time.perf_counter() + BUSY
        while time.perf_counter() < end:
            pass
        return [2.0 if by_twill and kind == "wrong" else 1.0]


def check(results: Sequence[float]) -> tuple[float, float]:
    """All results are 1."""
    return abs(results[0] - 1.0), 0.5


def beneath(plan: Plan) -> Twill:
    """As `mix.beneath`."""
    global _twill
    _twill = Twill()
    return _twill


def begin(plan: Plan, tell: Callable[[dict[str, Any]], None]) -> Application:
    """As `mix.begin`."""
    print("what somebody prints is no line of ours")
    kinds = [kind for kind in ("quick", "leak", "fail", "hang", "child", "wrong") if re.search(plan.only or USUAL, kind)]
    requests = [Request(kind, lambda kind=kind: _twill.call(kind), check) for kind in kinds]
    return Application(requests, lambda: None, lambda: {"gpu": 1024.0, "torch": 512.0}, {})


_twill: Twill
