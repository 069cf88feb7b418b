"""A launch by stock Triton of what it compiled before: the end of `JITFunction.run`, whose beginning was done already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast


def launcher() -> Callable[..., Any]:
    """The function that launches `compiled` on a grid as Triton 3.6 to 3.9 do."""
    from triton import knobs
    from triton.runtime.driver import driver

    runtime, any_driver = knobs.runtime, cast(Any, driver)

    def launch(compiled: Any, grid: tuple[int, ...], bound: dict[str, Any], device: int) -> Any:
        stream = any_driver.active.get_current_stream(device)
        values = bound.values()
        metadata = compiled.launch_metadata(grid, stream, *values)
        size = len(grid)
        y, z = grid[1] if size > 1 else 1, grid[2] if size > 2 else 1
        enter, leave = runtime.launch_enter_hook, runtime.launch_exit_hook
        compiled.run(grid[0], y, z, stream, compiled.function, compiled.packed_metadata, metadata, enter, leave, *values)
        return compiled

    return launch
