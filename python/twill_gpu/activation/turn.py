"""A launch by the side whose turn it is, exactly once: Twill's kernel, or stock Triton's as its author or another has it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from ..contest import OWN, STOCK, Contest, Side
from . import checking, rehearsal
from .settings import Mode
from .specialisation import Specialised

if TYPE_CHECKING:
    from ..scheduled import ScheduledKernel
    from .activity import Activity


class Decides(Protocol):
    """What says who has launches: a contest, or one side's part in a contest of configurations."""

    @property
    def winner(self) -> Side | None: ...
    def launch(self, side: Side, launch: Callable[[], object]) -> object: ...


def launch(
    activity: Activity,
    found: Specialised,
    bound: dict[str, Any],
    grid: Any,
    by_stock: Callable[[], Any],
    decided: tuple[Side, Decides] | None = None,
    on_values: Callable[[dict[str, Any]], Any] | None = None,
) -> Any:
    """Launches by the side whose turn it is; what is returned is what stock Triton compiled.

    bound: arguments by name. decided: whose turn it is where the specialisation's own contests do not say it. on_values: as
    `by_stock`, on other arguments; by default what stock Triton compiled is launched.
    """
    is_capturing = activity.is_capturing()
    found.launches += 1
    if is_capturing:
        found.captured[STOCK] += 1
    if found.beginning is not None and not is_capturing:
        found.wait_until_begun()
    if not (found.kernels or found.configurations):
        return by_stock()
    runtime = activity.triton.knobs.runtime
    enter, leave = runtime.launch_enter_hook, runtime.launch_exit_hook
    if getattr(enter, "calls", enter) or getattr(leave, "calls", leave):
        # Profilers are told of stock Triton's kernels, with the metadata of their authors.
        return by_stock()
    if decided is None and type(grid) is tuple:
        # Nearly all launches are of this kind: what is done for them is what Twill costs.
        settled = found.contests.get(found.class_of(bound, grid))
        winner = None if settled is None else settled.winner
        if winner == STOCK or (settled is not None and winner is None and settled.incumbent == STOCK and settled.rests()):
            return by_stock()
        kernel = None if winner is None else found.kernels.get(winner)
        if kernel is not None and (not is_capturing or kernel.is_planned(bound, grid)):
            return _by_winner(found, kernel, cast(Side, winner), bound, grid, by_stock, is_capturing)
    is_check = activity.settings.mode is Mode.CHECK
    contested: Decides | None = None
    side = STOCK
    try:
        sizes: Any = grid(bound) if callable(grid) else grid
        grid = tuple(map(operator.index, sizes))
        if decided is not None:
            side, contested = decided
        elif is_check:
            side = STOCK if is_capturing else checking.next_side(found)
        else:
            by_stock_on = on_values or partial(_by_stock, activity, found, grid)
            side, contested = _turn(activity, found, bound, grid, by_stock_on, is_capturing)
        by_other = None if side == STOCK else _launcher(activity, found, side, bound, grid, is_capturing)
    except Exception as error:
        # Refused, or whatever: stock Triton says it if the arguments are wrong.
        found.refuse(f"{type(error).__name__}: {error}", side if side in OWN else None)
        return by_stock()
    if by_other is None:
        # Trials of stock Triton's are timed; launches that another one could not have are none.
        is_trial = side == STOCK and contested is not None and contested.winner is None
        return contested.launch(STOCK, by_stock) if is_trial and contested is not None else by_stock()
    if is_check:
        return checking.launch(found, side, by_other, bound, by_stock)
    assert contested is not None, "somebody had the turn"
    try:
        if contested.winner is not None:
            by_other(bound)
        else:
            contested.launch(side, partial(by_other, bound))
    except Exception as error:
        # It was not launched.
        found.give_up(side, f"{type(error).__name__}: {error}")
        return by_stock()
    if is_capturing:
        found.captured[STOCK] -= 1
        found.captured[side] += 1
    return found.compiled


def _by_winner(
    found: Specialised,
    kernel: ScheduledKernel,
    side: Side,
    bound: dict[str, Any],
    grid: tuple[int, ...],
    by_stock: Callable[[], Any],
    is_capturing: bool,
) -> Any:
    """Launches by a kernel of Twill's that has won."""
    try:
        plan, varying = kernel.plan(bound, grid)
        if plan.index != found.device:
            # Stock Triton launches on the device in use, wherever memory is: that one's stream has the launch.
            return by_stock()
        plan.launch_here(varying)
    except Exception as error:
        # It was refused, or not launched.
        found.refuse(f"{type(error).__name__}: {error}", side)
        return by_stock()
    if is_capturing:
        found.captured[STOCK] -= 1
        found.captured[side] += 1
    return found.compiled


def _turn(
    activity: Activity,
    found: Specialised,
    bound: dict[str, Any],
    grid: tuple[int, ...],
    by_stock_on: Callable[[dict[str, Any]], Any],
    is_capturing: bool,
) -> tuple[Side, Contest | None]:
    """Whose turn it is, and in what contest."""
    key = found.class_of(bound, grid)
    contested = found.contests.get(key)
    if contested is None and not is_capturing:
        contested = found.contest_for(key)
    if contested is None:
        return STOCK, None
    if contested.winner is not None:
        return contested.winner, contested
    # Nothing may be made, loaded or tried while launches go into a CUDA graph.
    if is_capturing:
        return STOCK, contested
    if activity.is_deterministic():
        return STOCK, None
    if activity.settings.settles_first:

        def launcher(side: Side, values: dict[str, Any]) -> Callable[[dict[str, Any]], Any] | None:
            return by_stock_on if side == STOCK else _launcher(activity, found, side, values, grid, False)

        contested = rehearsal.settled(activity, found, key, bound, launcher)
        return (contested.winner or STOCK, contested) if contested is not None else (STOCK, None)
    return contested.turn(), contested


def _by_stock(activity: Activity, found: Specialised, grid: tuple[int, ...], values: dict[str, Any]) -> Any:
    """Launches what stock Triton compiled."""
    return activity.launch_stock(found.compiled, grid, values, found.device)


def _launcher(
    activity: Activity, found: Specialised, side: Side, bound: dict[str, Any], grid: tuple[int, ...], is_capturing: bool
) -> Callable[[dict[str, Any]], Any] | None:
    """What launches a challenger on arguments; None where it cannot be launched now. Raises what Twill's kernel refuses."""
    if side not in OWN:
        made = found.configurations.get(side)
        if made is None or (is_capturing and made.kernel is None):
            return None
        other = found.configuration(side)
        return None if other is None else lambda values: activity.launch_stock(other, grid, values, found.device)
    kernel = found.kernels.get(side)
    if kernel is None or (is_capturing and not kernel.is_planned(bound, grid)):
        return None
    plan, varying = kernel.plan(bound, grid)
    if plan.index != found.device:
        # Stock Triton launches on the device in use, wherever memory is: that one's stream has the launch.
        return None
    return lambda values: plan.launch(varying) if values is bound else kernel.launch(values, grid)
