"""What stands in the place of a compiled kernel's launcher while Twill is active: each launch by one side, exactly once.

`JITFunction.run` ends with a call of `CompiledKernel.run`, and so does `compiled[grid](…)`. All that comes before is Triton's own:
arguments, specialisations, hooks. Kernels that are not for Twill have their own launchers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..contest import STOCK, Side
from ..jit_kernel import OWN, STOCK_ONLY
from . import configurations, turn
from .configurations import Compiled
from .function import Function, function_of, nothing_for_twill
from .rounds import Seen
from .specialisation import Specialised

if TYPE_CHECKING:
    from .activity import Activity

ATTRIBUTE = "_twill_launcher"
"""Where a compiled kernel has its launcher, and whose that is."""
TRITONS = 5
"""Arguments of Triton's launcher after grid and stream and before those of the kernel: function, metadata, hooks."""


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
    """In the place of a launcher: a launch by one of Twill's kernels or by stock Triton's."""

    def __init__(self, activity: Activity, original: Callable[..., Any], kernel: Kernel):
        self.original = original
        self._activity, self._kernel, self._thread = activity, kernel, activity.thread
        self._names, self._first, self._count = kernel.names, kernel.first, kernel.first + len(kernel.names)
        self._found: Specialised | None = None
        self._plans: dict[Side, tuple[Any, Callable[..., Any]]] = {}
        """What finds plans of Twill's kernels, and of which kernel."""
        self._checks_device = not activity.has_one_device()
        """What was loaded on one device may be launched on another one: by `compiled[grid](…)`."""

    def __call__(self, x: int, y: int, z: int, stream: int, *rest: Any) -> Any:
        activity, thread, found = self._activity, self._thread, self._found
        call = thread.call
        is_elsewhere = self._checks_device and activity.device() != self._kernel.device
        if thread.suspended or activity.is_paused or activity.has_ended or len(rest) != self._count or is_elsewhere:
            if call is not None and call.comparing is not None and call.comparing.seen is None and call.is_of(self._kernel.jit):
                call.comparing.seen = Seen(self, (x, y, z))
            return self.original(x, y, z, stream, *rest)
        if not x.__class__ is y.__class__ is z.__class__ is int:
            x, y, z = map(operator.index, (x, y, z))
        grid = x, y, z
        if call is not None and (call.is_over or not call.is_of(self._kernel.jit)):
            call = None
        if found is not None and call is None and found.quick_class is not None and self._is_settled(found, grid, stream, rest):
            return None
        by_stock = partial(self.original, x, y, z, stream, *rest)
        if found is None or not found.has_begun:
            is_tried = activity.decides_first and not activity.is_capturing()
            found = self._begin(None if is_tried else by_stock)
            if not is_tried:
                return None
        bound = dict(zip(self._names, rest[self._first :]))
        launch = turn.Launch(activity, found, bound, grid, stream, by_stock, self.relaunch)
        return turn.launch(launch) if call is None else call.launch(launch)

    def _is_settled(self, found: Specialised, grid: tuple[int, int, int], stream: int, rest: tuple[Any, ...]) -> bool:
        """Launches where nothing is left to find out or to make; whether that was so.

        Nearly all launches are of this kind: what is done for them is what Twill costs.
        """
        quick_class, activity = found.quick_class, self._activity
        try:
            contest = found.contests.get(quick_class(grid, rest)) if quick_class is not None else None
        except Exception:
            # A number that is no `int`, say.
            return False
        if contest is None:
            return False
        side = contest.winner
        if side == STOCK or (side is None and contest.rests()):
            found.launches += 1
            if activity.is_capturing():
                found.captured[STOCK] += 1
            self.original(*grid, stream, *rest)
            return True
        kernel = None if side is None else found.kernels.get(side)
        if side is None or kernel is None or turn.is_hooked(activity):
            return False
        try:
            of, made_plan = self._plans.get(side, _NONE)
            if of is not kernel:
                of, made_plan = self._plans[side] = kernel, kernel.made_plan(self._names)
            plan, varying = made_plan(grid, rest)
            if plan is None or plan.index != found.device:
                return False
            plan.launch_on(stream, varying)
        except Exception:
            # It was not launched: what has to be said is said where it is tried again.
            return False
        found.launches += 1
        if activity.is_capturing():
            found.captured[contest.winner or STOCK] += 1
        return True

    def __getattr__(self, name: str) -> Any:
        # Whoever asks a launcher what it is.
        if name == "original":
            raise AttributeError(name)
        return getattr(self.original, name)

    def relaunch(self, by_stock: partial[Any], values: dict[str, Any]) -> Any:
        """A launch by stock Triton's kernel, on other arguments."""
        before = by_stock.args[: 4 + self._first]
        return self.original(*before, *[values[name] for name in self._names])

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
            if self._found is None:
                kernel = self._kernel
                self._found = Specialised(self._activity, kernel.function, kernel.ttir, kernel.target, kernel.device)
                self._activity.add(self._found)
            return self._found

    def _begin(self, by_stock: Callable[[], Any] | None) -> Specialised:
        """The first launch is stock Triton's, unless it is settled first who has it."""
        if by_stock is not None:
            by_stock()
        # Another thread may be here too, or one that captures a graph was.
        found = self._specialised()
        found.launches += by_stock is not None
        if self._activity.is_capturing():
            found.captured[STOCK] += by_stock is not None
            found.leave()
        else:
            found.begin(self._kernel.only, self._kernel.stock, self._kernel.passed)
        return found


def _nothing(*_: Any) -> tuple[None, None]:
    return None, None


_NONE = None, _nothing
"""Of a side that has launched nothing."""


class Launcher:
    """What a compiled kernel is launched by. token: that of the activity that says so."""

    __slots__ = ("__weakref__", "launch", "token")

    def __init__(self, token: object, launch: Callable[..., Any]):
        self.token, self.launch = token, launch


def launcher_of(activity: Activity, kernel: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """A `Runner` for a `CompiledKernel`; its own launcher where there is nothing for Twill in it."""
    try:
        ttir, function = kernel.asm.get("ttir", ""), getattr(kernel.src, "fn", None)
        if not ttir or function is None or nothing_for_twill(ttir) is not None or OWN in function.__dict__:
            return original
        # A hook gives each launch another pipeline of passes.
        if activity.triton.knobs.runtime.add_stages_inspection_hook is not None:
            return original
        names, metadata = list(function.arg_names), kernel.metadata
        device = activity.triton.runtime.driver.active.get_current_device()
        only = [name for name in STOCK_ONLY if getattr(metadata, name, None)]
        known = partial(configurations.of_kernel, kernel)
        return Runner(
            activity, original, Kernel(function_of(function), function, ttir, metadata.target, device, names, TRITONS, only, known, None)
        )
    except Exception:
        # A kernel of another kind.
        return original
