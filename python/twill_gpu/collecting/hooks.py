"""What stands in the place of methods of Triton while kernels are recorded."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .recorder import Recorder


def of_launches(recorder: Recorder, original: Callable[..., Any]) -> Callable[..., Any]:
    """In the place of `JITFunction.run`. Whatever goes wrong in recording, the launch is made."""

    @functools.wraps(original)
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        sizes: list[Any] = []
        if callable(grid):
            grid = _noted(grid, sizes)
        timer = recorder.begin(self, warmup)
        compiled = original(self, *args, grid=grid, warmup=warmup, **named)
        recorder.launched(self, compiled, sizes[-1] if sizes else grid, args, named, warmup, timer)
        return compiled

    return run


def _noted(grid: Callable[..., Any], sizes: list[Any]) -> Callable[..., Any]:
    """A grid that is computed from the arguments, which the function's own binder gives it; what it is goes to `sizes`."""

    def note(bound: Any) -> Any:
        sizes.append(grid(bound))
        return sizes[-1]

    return note


def of_tuning(recorder: Recorder, original: Callable[..., Any]) -> Callable[..., Any]:
    """In the place of `Autotuner._bench`: launches of a comparison are not the program's."""

    @functools.wraps(original)
    def bench(self: Any, *args: Any, **named: Any) -> Any:
        with recorder.tuning():
            return original(self, *args, **named)

    return bench
