"""What stands in the place of a compiled kernel's launcher while Twill is active: each launch by one side, exactly once.

`JITFunction.run` ends with a call of `CompiledKernel.run`, and so does `compiled[grid](…)`. All that comes before is Triton's own:
arguments, specialisations, hooks. Kernels that are not for Twill have their own launchers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from .._twill import SettledLauncher
from ..contest import OWN, STOCK, Contest, Side
from ..marks import OWN_LAUNCHES, STOCK_ONLY
from . import configurations, turn
from .configurations import Compiled
from .function import Function, function_of, nothing_for_twill
from .rounds import Seen
from .specialisation import Specialised
from .stock import launch_function

if TYPE_CHECKING:
    from .activity import Activity

ATTRIBUTE = "_twill_launcher"
"""Where a compiled kernel has its launcher, and whose that is."""
TRITONS = 5
"""Arguments of Triton's launcher after grid and stream and before those of the kernel: function, metadata, hooks."""

FAILURES = 16
"""Launches in a row that could not be settled, after which none is tried: arguments are of kinds that are looked at each time."""


class Kernel(NamedTuple):
    """What is known of a compiled kernel that may be for Twill."""

    function: Function
    jit: Any
    """Its `JITFunction`, if that is known: an autotuner may be calling it."""
    ttir: str
    target: Any
    device: int
    names: list[str]
    """Those of the arguments that its launcher takes."""
    first: int
    """How many others come before them, after grid and stream."""
    only: list[str]
    """Its options that only stock Triton has."""
    stock: Callable[[], Compiled]
    passed: int | None
    """As for `configurations.Made`."""


class Runner:
    """What launches of a compiled kernel have that are not settled: one of Twill's kernels, or stock Triton's.

    `launcher`, which is in the place of the kernel's own, makes all others itself.
    """

    def __init__(self, activity: Activity, original: Callable[..., Any], kernel: Kernel):
        self._original = original
        self._activity, self._kernel, self._thread = activity, kernel, activity.thread
        self._names, self._first, self._count = kernel.names, kernel.first, kernel.first + len(kernel.names)
        self.found: Specialised | None = None
        """The specialisation, once it was launched."""
        self._failures = 0
        """Launches in a row that could not be settled."""
        # What was loaded on one device may be launched on another one: by `compiled[grid](…)`.
        self._checked = None if activity.has_one_device() else kernel.device
        self.launcher = SettledLauncher(self, original, launch_function(original), activity, kernel.names, kernel.first, self._checked)

    def __call__(self, x: int, y: int, z: int, stream: int, *rest: Any) -> Any:
        activity, thread, found, epoch = self._activity, self._thread, self.found, self.launcher.epoch
        call = thread.call
        is_elsewhere = self._checked is not None and activity.device() != self._checked
        if activity.is_suspended() or activity.has_ended or len(rest) != self._count or is_elsewhere:
            if call is not None and call.comparing is not None and call.comparing.seen is None and call.is_of(self._kernel.jit):
                call.comparing.seen = Seen(self, (x, y, z))
            return self._original(x, y, z, stream, *rest)
        if not x.__class__ is y.__class__ is z.__class__ is int:
            x, y, z = map(operator.index, (x, y, z))
        if call is not None and (call.is_over or not call.is_of(self._kernel.jit)):
            call = None
        by_stock = partial(self._original, x, y, z, stream, *rest)
        if found is None or not found.has_begun:
            is_tried = activity.decides_first and not activity.is_capturing()
            bound = dict(zip(self._names, rest[self._first :]))
            found = self._begin(None if is_tried else by_stock, bound, (x, y, z))
            if not is_tried:
                return None
        taken = thread.taken
        if taken is not None and found is not taken.found and taken.tuning.function is self._kernel.jit:
            # Calls like this one are not all of one specialisation: each is looked at.
            taken.tuning.settled.forget()
        if found.is_alone:
            # From now on.
            self.launcher.leave(STOCK)
        bound = dict(zip(self._names, rest[self._first :]))
        launch = turn.Launch(activity, found, bound, (x, y, z), stream, by_stock, self.relaunch, partial(self._settle, epoch))
        return turn.launch(launch) if call is None else call.launch(launch)

    def _settle(self, epoch: int, launch: turn.Launch, side: Side, contest: Contest) -> None:
        """Has launches like one made without a further look, as long as nothing else is to be found out. epoch: that before it."""
        winner = contest.winner
        is_open = winner is None and side == STOCK
        # Another thread may have ended the contest during the launch.
        if self._failures >= FAILURES or not (is_open or winner == side):
            return
        try:
            is_settled = self._is_settled(epoch, launch, side, contest if is_open else None)
        except Exception:
            is_settled = False
        # What has changed meanwhile, a kernel that was given up say, is found out anew.
        if self.launcher.epoch == epoch:
            self._failures = 0 if is_settled else self._failures + 1

    def _is_settled(self, epoch: int, launch: turn.Launch, side: Side, contest: Contest | None) -> bool:
        """Tells the launcher; whether it can make such launches. contest: where that is open."""
        found = launch.found
        launched = launch.by_stock.args, found.numbers or [], epoch, side
        if side == STOCK:
            return self.launcher.settle_stock(launched, contest)
        if side in OWN:
            kernel = found.kernels[side]
            plan, _ = kernel.plan(launch.bound, launch.grid)
            return self.launcher.settle_own(launched, kernel.reading, plan.steps)
        direct = found.configurations[side].direct
        return direct is not None and self.launcher.settle_other(launched, direct)

    def relaunch(self, by_stock: partial[Any], values: dict[str, Any]) -> Any:
        """A launch by stock Triton's kernel, on other arguments."""
        before = by_stock.args[: 4 + self._first]
        return self._original(*before, *[values[name] for name in self._names])

    @property
    def ttir(self) -> str:
        """Its kernel as Triton reads it."""
        return self._kernel.ttir

    @property
    def device(self) -> int:
        """The device that it is loaded on."""
        return self._kernel.device

    def adopt(self) -> Specialised:
        """Has kernels made for what stock Triton compared, and no call has chosen so far."""
        found = self._specialised()
        found.begin(self._kernel.only, self._kernel.stock, self._kernel.passed)
        return found

    def _specialised(self) -> Specialised:
        with self._activity.listing:
            if self.found is None:
                kernel = self._kernel
                self.found = Specialised(
                    self._activity, kernel.function, kernel.ttir, kernel.target, kernel.device, self.launcher
                )
                self._activity.add(self.found)
            return self.found

    def _begin(self, by_stock: Callable[[], Any] | None, bound: dict[str, Any], grid: tuple[int, ...]) -> Specialised:
        """The first launch is stock Triton's, unless it is settled first who has it."""
        if by_stock is not None:
            by_stock()
        # Another thread may be here too, or one that captures a graph was.
        found = self._specialised()
        found.looked_at[STOCK] += by_stock is not None
        if self._activity.is_capturing():
            found.looked_at_captured[STOCK] += by_stock is not None
            found.leave()
        else:
            # Tensors are not kept for it.
            numbers = {name: int(value) for name, value in bound.items() if isinstance(value, int)}
            found.begin(self._kernel.only, self._kernel.stock, self._kernel.passed, (numbers, grid))
        return found


class Launcher:
    """What a compiled kernel is launched by. token: that of the activity that says so."""

    __slots__ = ("__weakref__", "launch", "token")

    def __init__(self, token: object, launch: Callable[..., Any]):
        self.token, self.launch = token, launch


def launcher_of(activity: Activity, kernel: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """That of a `Runner` for a `CompiledKernel`; its own launcher where there is nothing for Twill in it."""
    try:
        ttir, function = kernel.asm.get("ttir", ""), getattr(kernel.src, "fn", None)
        if not ttir or function is None or nothing_for_twill(ttir) is not None or OWN_LAUNCHES in function.__dict__:
            return original
        # A hook gives each launch another pipeline of passes.
        if activity.triton.knobs.runtime.add_stages_inspection_hook is not None:
            return original
        names, metadata = list(function.arg_names), kernel.metadata
        device = activity.triton.runtime.driver.active.get_current_device()
        only = [name for name in STOCK_ONLY if getattr(metadata, name, None)]
        known = partial(configurations.of_kernel, kernel)
        found = Kernel(function_of(function), function, ttir, metadata.target, device, names, TRITONS, only, known, None)
        return Runner(activity, original, found).launcher
    except Exception:
        # A kernel of another kind.
        return original
