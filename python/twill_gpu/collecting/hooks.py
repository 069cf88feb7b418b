"""What stands in the place of methods of Triton while kernels are recorded."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import inductor
from .recorder import OPTIONS, Recorder


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


def of_inductor(recorder: Recorder, result: Any, launcher: Any) -> None:
    """Has the launches of a launcher that Inductor has made recorded."""
    found = inductor.launched_by(result, launcher)
    if found is None:
        recorder.left(LookupError("a kernel's TTIR is gone from Triton's cache"))
        return
    metadata = found.metadata() if found.is_static else result.kernel.metadata._asdict()
    options, names = {name: metadata.get(name) for name in OPTIONS}, launcher.__globals__
    runner, before = names["runner"], found.first

    def run(x: Any, y: Any, z: Any, stream: Any, *rest: Any) -> Any:
        if recorder.has_ended:
            return runner(x, y, z, stream, *rest)
        timer = recorder.begin(launcher, False)
        done = runner(x, y, z, stream, *rest)
        recorder.launched_by_inductor(launcher, found, options, (x, y, z), rest[before:], timer)
        return done

    names["runner"] = run
