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


NAMES = frozenset(
    """__name__ all_kwargs append arg_names autotuning base_fn bench_time best_config cache cache_results check_disk_cache configs
    configs_timings dict dtype fn get getattr hasattr isinstance items JITFunction keys knobs len listener min nargs pre_hook print
    prune_configs run str tuple zip""".split()
)
"""What `Autotuner.run` of Triton 3.6 to 3.9 names: `tuner_run.rs` does what it does with a configuration."""


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
        tuning = None if activity.has_ended else tuning_of(activity, self)
        if tuning is None or activity.is_suspended():
            return original(self, *args, **named)
        by_stock = functools.partial(original, self, *args, **named)
        known = tuning.settled.look(args, named)
        if known is None or not (known is True or known.holds(activity)):
            return tuning.run(by_stock, args, named)
        return tuning.run_settled(known, by_stock, args, named) if is_tritons else by_stock()

    # Somebody else's may do more than Triton's with a configuration.
    is_tritons = getattr(original, "__module__", "") == "triton.runtime.autotuner" and not (
        set(original.__code__.co_names) - NAMES
    )
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
                # Another autotuner's, within a hook, or a call that went to the method itself.
                call = activity.call = Call(tuning, (), {})
                call.compared = tuning.unlooked
            try:
                with call.compares(named.get("config")) as found:
                    found.times = original(self, *args, **named)
                    return found.times
            finally:
                activity.call = outer

    return bench
