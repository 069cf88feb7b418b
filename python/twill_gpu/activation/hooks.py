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
        if known is None or not (known is True or known.holds(activity)):
            return tuning.run(functools.partial(original, self, *args, **named), args, named)
        thread = activity.thread
        before = thread.taken
        if known is not True:
            thread.taken = known
        try:
            result = original(self, *args, **named)
        finally:
            thread.taken = before
        if is_known:
            tuning.choose(args, named, known, result)
        return result

    code = getattr(original, "__code__", None)
    # Somebody else's may do more than Triton's with a configuration.
    is_known = code is not None and code.co_filename.replace("\\", "/").endswith("triton/runtime/autotuner.py")
    return TunerRun(original, run, SETTLED, types.MethodType, activity.switch)


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
