"""Launches of a GEMM on the stand-in for a GPU of tests/python, on several grids, with Twill itself beneath."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from bench.common import ROOT

from .application import Application, Request
from .plan import Plan
from .twill import Twill

GRIDS = 5
"""Grids on which it is launched, so that it has as many contests."""


def beneath(plan: Plan) -> Twill:
    """As `mix.beneath`."""
    return Twill(plan.jobs)


def begin(plan: Plan, tell: Callable[[dict[str, Any]], None]) -> Application:
    """As `mix.begin`."""
    sys.path[:0] = [str(ROOT / "tests" / "python")]
    import stand_in

    machine = stand_in.Machine()
    from test_jit import TILES, gemm_arguments

    kernel, arguments = stand_in.gemm(), gemm_arguments(machine.tensor)

    def call(rows: int) -> list[Any]:
        kernel[(rows, 3)](*arguments, **TILES, num_warps=stand_in.STOCK_WARPS)
        # It keeps what each launch was given.
        results = list(machine.memory)
        machine.memory.clear()
        return results

    asked = call(1)

    def check(results: list[Any]) -> tuple[float, float]:
        # One launch, of the same memory.
        return float(results != asked), 0.0

    requests = [Request(f"gemm_{rows}", lambda rows=rows: call(rows), check) for rows in range(1, GRIDS + 1)]
    return Application(requests, lambda: None, lambda: {"gpu": 0.0, "torch": 0.0})
