"""A launch by stock Triton of what it compiled with other options: the end of `JITFunction.run`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def launcher() -> Callable[..., Any]:
    """The function that launches `compiled` on a grid and a stream as Triton 3.6 to 3.9 do."""
    from triton import knobs
    from triton.compiler.compiler import CompiledKernel

    runtime, own = knobs.runtime, vars(CompiledKernel)["run"].fget

    def launch(compiled: Any, grid: tuple[int, ...], bound: dict[str, Any], stream: int) -> None:
        values, run = bound.values(), own(compiled)
        metadata = compiled.launch_metadata(grid, stream, *values)
        enter, leave = runtime.launch_enter_hook, runtime.launch_exit_hook
        run(*grid, stream, compiled.function, compiled.packed_metadata, metadata, enter, leave, *values)

    return launch
