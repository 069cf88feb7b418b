"""A launch by the side whose turn it is, exactly once: Twill's kernel, or stock Triton's as its author or another has it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..contest import OWN, STOCK, Contest, Side
from . import checking, rehearsal
from .settings import Mode
from .specialisation import Specialised

if TYPE_CHECKING:
    from .activity import Activity


NOT_LAUNCHED = RuntimeError, TypeError, ValueError, ArithmeticError, AttributeError, LookupError, MemoryError
"""Errors of a launch that was not made. A signal's handler may raise others after it; what it raises is the application's."""


class Decides(Protocol):
    """What says who has launches: a contest, or one side's part in a contest of configurations."""

    @property
    def winner(self) -> Side | None: ...
    def launch(self, side: Side, launch: Callable[[], object], /) -> object: ...


class Launch(NamedTuple):
    """A launch that somebody is to make."""

    activity: Activity
    found: Specialised
    bound: dict[str, Any]
    """The arguments by name."""
    grid: tuple[int, ...]
    stream: int
    by_stock: partial[Any]
    """Makes it by stock Triton."""
    relaunch: Callable[[partial[Any], dict[str, Any]], Any]
    """Makes it by stock Triton on other arguments."""
    settle: Callable[[Launch, Side, Contest], None]
    """Is told by what contest the launch was a side's, after it: launches like it need not be looked at again."""


def launch(one: Launch, decided: tuple[Side, Decides] | None = None) -> Any:
    """Launches by the side whose turn it is. decided: that, where the specialisation's own contests do not say it."""
    activity, found, by_stock = one.activity, one.found, one.by_stock
    is_capturing = activity.is_capturing()
    found.looked_at[STOCK] += 1
    if is_capturing:
        found.looked_at_captured[STOCK] += 1
    if found.beginning is not None and not is_capturing:
        found.wait_until_begun()
    if not (found.kernels or found.configurations):
        return by_stock()
    if is_hooked(activity):
        # Profilers are told of stock Triton's kernels, with the metadata of their authors.
        return by_stock()
    if one.stream != activity.stream(found.device):
        # What is tried is timed on the current one.
        return by_stock()
    is_check = activity.settings.mode is Mode.CHECK
    contested: Decides | None = None
    side = STOCK
    try:
        if decided is not None:
            side, contested = decided
        elif is_check:
            side = STOCK if is_capturing else checking.next_side(found)
        else:
            side, contested = _turn(one, is_capturing)
        by_other = None if side == STOCK else _launcher(one, side, one.bound, is_capturing)
    except Exception as error:
        # Refused, or whatever: stock Triton says it if the arguments are wrong.
        found.refuse(f"{type(error).__name__}: {error}", side if side in OWN else None)
        return by_stock()
    if by_other is None:
        # Trials of stock Triton's are timed; launches that another one could not have are none.
        is_trial = side == STOCK and contested is not None and contested.winner is None
        result = contested.launch(STOCK, by_stock) if is_trial and contested is not None else by_stock()
        if side == STOCK and isinstance(contested, Contest) and not (is_trial and is_capturing):
            one.settle(one, STOCK, contested)
        return result
    if is_check:
        return checking.launch(found, side, by_other, one.bound, by_stock)
    assert contested is not None, "somebody had the turn"
    try:
        if contested.winner is not None:
            by_other(one.bound)
        else:
            contested.launch(side, partial(by_other, one.bound))
    except NOT_LAUNCHED as error:
        # It was not launched.
        found.give_up(side, f"{type(error).__name__}: {error}")
        return by_stock()
    for counted in (found.looked_at, found.looked_at_captured) if is_capturing else (found.looked_at,):
        counted[STOCK] -= 1
        counted[side] += 1
    if isinstance(contested, Contest) and contested.winner is not None:
        one.settle(one, side, contested)
    return None


def is_hooked(activity: Activity) -> bool:
    """Whether anything is to be told of launches."""
    runtime = activity.triton.knobs.runtime
    enter, leave = runtime.launch_enter_hook, runtime.launch_exit_hook
    return bool(getattr(enter, "calls", enter) or getattr(leave, "calls", leave))


def _turn(one: Launch, is_capturing: bool) -> tuple[Side, Contest | None]:
    """Whose turn it is, and in what contest."""
    activity, found, bound = one.activity, one.found, one.bound
    key = found.class_of(bound, one.grid)
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
            return partial(one.relaunch, one.by_stock) if side == STOCK else _launcher(one, side, values, False)

        contested = rehearsal.settled(activity, found, key, bound, launcher)
        return contested.winner or STOCK, contested
    return contested.turn(), contested


def _launcher(
    one: Launch, side: Side, bound: dict[str, Any], is_capturing: bool
) -> Callable[[dict[str, Any]], Any] | None:
    """What launches a challenger on arguments; None where it cannot be launched now. Raises what Twill's kernel refuses."""
    found, grid, stream = one.found, one.grid, one.stream
    if side not in OWN:
        made = found.configurations.get(side)
        if made is None or (is_capturing and made.kernel is None):
            return None
        other = found.configuration(side)
        return None if other is None else lambda values: one.activity.launch_stock(other, grid, values, stream)
    kernel = found.kernels.get(side)
    if kernel is None or (is_capturing and not kernel.is_planned(bound, grid)):
        return None
    if (kernel := found.finished(side)) is None:
        return None
    plan, varying = kernel.plan(bound, grid)
    if plan.index != found.device:
        # Stock Triton launches on the device in use, wherever memory is: that one's stream has the launch.
        return None
    return lambda values: plan.launch_on(stream, varying) if values is bound else kernel.launch(values, grid)
