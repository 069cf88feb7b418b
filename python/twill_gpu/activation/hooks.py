"""What stands in the place of methods of Triton while Twill is active."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._twill import TunerRun
from .launches import ATTRIBUTE, Launcher, launcher_of
from .tuning import SETTLED, Call, tuning_of

if TYPE_CHECKING:
    from .activity import Activity


def of_compiled(activity: Activity, original: property) -> property:
    """In the place of `CompiledKernel.run`, its launcher: kernels that may be for Twill have one of ours."""
    own = original.fget
    assert own is not None, "it is read"

    def run(self: Any) -> Any:
        found = self.__dict__.get(ATTRIBUTE)
        if found is None or found.token is not token:
            found = self.__dict__[ATTRIBUTE] = Launcher(token, launcher_of(activity, self, own(self)))
            activity.on_end(self, ATTRIBUTE, found)
        return found.launch

    token = activity.token
    return property(run)


def of_tuner(activity: Activity, original: Callable[..., Any]) -> TunerRun:
    """In the place of `Autotuner.run`: kernels of Twill may be tried for other configurations than stock Triton's choice."""

    @functools.wraps(original)
    def run(self: Any, *args: Any, **named: Any) -> Any:
        tuning = tuning_of(activity, self)
        if tuning is None or activity.is_suspended():
            return original(self, *args, **named)
        known = tuning.settled.look(args, named)
        if known is True:
            tuning.rest_a_while()
            return original(self, *args, **named)
        if known is None or not known.holds(activity):
            return tuning.run(functools.partial(original, self, *args, **named), args, named)
        tuning.rest_a_while()
        thread = activity.thread
        before, thread.taken = thread.taken, known
        try:
            return original(self, *args, **named)
        finally:
            thread.taken = before

    return TunerRun(original, run, SETTLED, types.MethodType)


def of_tuning(activity: Activity, original: Callable[..., Any]) -> Callable[..., Any]:
    """In the place of `Autotuner._bench`: stock Triton compares its configurations; what it found is looked at later."""

    @functools.wraps(original)
    def bench(self: Any, *args: Any, **named: Any) -> Any:
        outer, tuning = activity.call, tuning_of(activity, self)
        with activity.suspended():
            if tuning is None:
                return original(self, *args, **named)
            call = outer
            if call is None or call.tuning is not tuning:
                # Nobody looks at this call: its autotuner rests.
                call = activity.call = Call(tuning, (), {})
                call.compared = tuning.unlooked
            try:
                with call.compares(named.get("config")) as found:
                    found.times = original(self, *args, **named)
                    return found.times
            finally:
                activity.call = outer

    return bench
