"""What stands in the place of methods of Triton while Twill is active."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..jit_kernel import OWN
from .launches import ATTRIBUTE, Launches
from .tuning import tuning_of

if TYPE_CHECKING:
    from .activity import Activity


def of_launches(activity: Activity, original: Callable[..., Any]) -> Callable[..., Any]:
    """In the place of `JITFunction.run`: at its first launch a function gets a `run` of its own."""

    @functools.wraps(original)
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        launches = self.__dict__.get(ATTRIBUTE)
        # A copy has the launches of what it was copied from.
        if launches is None or not launches.belongs_to(activity, self):
            launches = self.__dict__[ATTRIBUTE] = Launches(activity, self, original)
            activity.on_end(self, ATTRIBUTE, launches)
        mine = original.__get__(self) if launches.is_stock or OWN in self.__dict__ else launches.run
        # Whoever has put something else in its place is called first.
        if "run" not in self.__dict__ and type(self).run is run:
            self.__dict__["run"] = mine
            activity.on_end(self, "run", mine)
        return mine(*args, grid=grid, warmup=warmup, **named)

    return run


def state_without_launches(self: Any) -> dict[str, Any]:
    """In the place of a `__getstate__` that `JITFunction` has not: copies begin without launches."""
    kept = dict(self.__dict__)
    launches = kept.pop(ATTRIBUTE, None)
    if launches is not None and getattr(kept.get("run"), "__self__", None) in (launches, self):
        del kept["run"]
    return kept


def of_compiled(activity: Activity, original: Callable[..., Any]) -> Callable[..., Any]:
    """In the place of `CompiledKernel.__getitem__`, by which some libraries launch what they compiled before."""

    @functools.wraps(original)
    def getitem(self: Any, grid: Any) -> Callable[..., Any]:
        runner: Callable[..., Any] = original(self, grid)
        launches, found = self.__dict__.get(ATTRIBUTE, (None, None))
        if launches is None or not found.challengers or not launches.belongs_to(activity):
            return runner

        def run(*args: Any, **named: Any) -> Any:
            return runner(*args, **named) if named else launches.run_compiled(found, grid, args, runner)

        return run

    return getitem


def of_tuner(activity: Activity, original: Callable[..., Any]) -> Callable[..., Any]:
    """In the place of `Autotuner.run`: kernels of Twill may be tried for other configurations than stock Triton's choice."""

    @functools.wraps(original)
    def run(self: Any, *args: Any, **named: Any) -> Any:
        tuning = tuning_of(activity, self)
        if tuning is None or activity.is_suspended():
            return original(self, *args, **named)
        return tuning.run(functools.partial(original, self, *args, **named), args, named)

    return run


def of_tuning(activity: Activity, original: Callable[..., Any]) -> Callable[..., Any]:
    """In the place of `Autotuner._bench`: stock Triton compares its configurations; what it found is looked at later."""

    @functools.wraps(original)
    def bench(self: Any, *args: Any, **named: Any) -> Any:
        call = activity.call
        with activity.suspended():
            if call is None:
                return original(self, *args, **named)
            with call.compares(named.get("config")) as found:
                found.times = original(self, *args, **named)
                return found.times

    return bench
