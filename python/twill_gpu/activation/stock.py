"""A launch by stock Triton of what it compiled with other options: the end of `JITFunction.run`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Launches:
    """Launches `compiled` on a grid and a stream as Triton 3.6 to 3.9 do. Made before anything of Triton's is replaced."""

    def __init__(self) -> None:
        from triton import knobs
        from triton.compiler.compiler import CompiledKernel

        self._runtime, self._launcher = knobs.runtime, vars(CompiledKernel)["run"].fget

    def __call__(self, compiled: Any, grid: tuple[int, ...], bound: dict[str, Any], stream: int) -> None:
        values, run = bound.values(), self._launcher(compiled)
        metadata = compiled.launch_metadata(grid, stream, *values)
        enter, leave = self._runtime.launch_enter_hook, self._runtime.launch_exit_hook
        run(*grid, stream, compiled.function, compiled.packed_metadata, metadata, enter, leave, *values)

    def direct(self, compiled: Any) -> tuple[Callable[..., Any], Any, Any]:
        """Launcher, function and metadata of what is loaded: a launch gives the two, and no metadata and hooks where none wants it."""
        return self._launcher(compiled), compiled.function, compiled.packed_metadata
