"""A launch by Twill's kernel or by stock Triton, exactly once: by the side whose turn it is."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..contest import Side
from . import checking
from .settings import Mode
from .specialisation import Specialised

if TYPE_CHECKING:
    from .activity import Activity


def launch(activity: Activity, found: Specialised, bound: dict[str, Any], grid: Any, by_stock: Callable[[], Any]) -> Any:
    """Launches by the side whose turn it is; what is returned is what stock Triton compiled. bound: arguments by name."""
    kernel, is_capturing = found.kernel, activity.is_capturing()
    found.launches += 1
    if is_capturing:
        found.captured[Side.STOCK] += 1
    if kernel is None:
        return by_stock()
    runtime = activity.triton.knobs.runtime
    enter, leave = runtime.launch_enter_hook, runtime.launch_exit_hook
    if getattr(enter, "calls", enter) or getattr(leave, "calls", leave):
        # Profilers are told of stock Triton's kernels, with the metadata of their authors.
        return by_stock()
    is_check = activity.settings.mode is Mode.CHECK
    side, contested, plan = Side.STOCK, None, None
    varying: list[Any] = []
    try:
        sizes: Any = grid(bound) if callable(grid) else grid
        grid = tuple(map(operator.index, sizes))
        key = found.class_of(bound, grid)
        contested = found.contests.get(key)
        if contested is None or contested.winner is not Side.STOCK:
            # Nothing may be made, loaded or tried while launches go into a CUDA graph.
            may = not is_capturing or (
                contested is not None and contested.winner is Side.TWILL and kernel.is_planned(bound, grid)
            )
            if may:
                plan, varying = kernel.plan(bound, grid)
                # Stock Triton launches on the device in use, wherever memory is: that one's stream has the launch.
                may = plan.index == found.device
            if not may:
                contested = None
            elif is_check:
                side = Side.TWILL
            else:
                contested = contested or found.contest_for(key)
                side = Side.STOCK if contested is None else contested.turn()
    except Exception as error:
        # Refused, or whatever: stock Triton says it if the arguments are wrong.
        found.refuse(f"{type(error).__name__}: {error}")
        return by_stock()
    if is_check:
        if side is Side.STOCK or len(found.checked) >= checking.LAUNCHES:
            return by_stock()
        return checking.launch(found, bound, grid, by_stock)
    if contested is None:
        return by_stock()
    if side is Side.STOCK:
        return by_stock() if contested.winner is not None else contested.launch(Side.STOCK, by_stock)
    try:
        by_twill = partial(plan.launch, varying)  # type: ignore[union-attr]
        if contested.winner is not None:
            by_twill()
        else:
            contested.launch(Side.TWILL, by_twill)
    except Exception as error:
        # It was not launched.
        found.refuse(f"{type(error).__name__}: {error}")
        return by_stock()
    if is_capturing:
        found.captured[Side.STOCK] -= 1
        found.captured[Side.TWILL] += 1
    return found.compiled
