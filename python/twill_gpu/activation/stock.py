"""A launch by stock Triton of what it compiled with other options: the end of `JITFunction.run`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


LaunchFunction = tuple[Callable[..., Any], Any, Any]
"""The function that a launcher calls in the end; whether thread blocks cooperate, and whether launches overlap."""


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

    def direct(self, compiled: Any) -> tuple[Callable[..., Any], Any, Any, LaunchFunction | None]:
        """Launcher, function and metadata of what is loaded, and what the launcher calls in the end, if that can be called."""
        launcher = self._launcher(compiled)
        return launcher, compiled.function, compiled.packed_metadata, launch_function(launcher)


def launch_function(launcher: Any) -> LaunchFunction | None:
    """The function that Triton 3.6's launcher calls in the end, and what it is told; None where there is more to do than that."""
    try:
        from triton.backends.nvidia.driver import CudaLauncher
    except ImportError:
        return None
    is_plain = type(launcher) is CudaLauncher and not (launcher.global_scratch_size or launcher.profile_scratch_size)
    # Later ones take their arguments as a tuple.
    if not is_plain or CudaLauncher.__call__.__module__ != CudaLauncher.__module__ or hasattr(launcher, "arg_annotations") or getattr(launcher, "gsan_enabled", False):
        return None
    return launcher.launch, launcher.launch_cooperative_grid, launcher.launch_pdl
