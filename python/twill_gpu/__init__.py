"""Twill: Triton kernels with the fastest software pipeline and warp specialisation, by changing only the decorator.

Importing this costs neither Triton nor torch; the calls that need them import them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ._twill import __version__

# Its module has its name.
from .example import example

if TYPE_CHECKING:
    from .activation import KernelStatus, StatusReport, install, status, uninstall
    from .cache import CacheInfo, cache_info, clear_cache
    from .comparing import Comparison, compare
    from .decorator import jit
    from .errors import BudgetError, InfeasibleError, InputError, MissingError, OptionError, TwillError, TwillWarning
    from .fitting import Fit, fit, prune_configs
    from .graph import Graph
    from .jit_kernel import JitKernel
    from .large import LargeSchedule, gaus
    from .machine import Machine, machines
    from .scheduled import ScheduledKernel
    from .scheduling import Alternatives, Explanation, LoopSchedule, Schedule, alternatives, schedule
    from .sweeping import Sweep, sweep
    from .torch_operator import custom_op

__all__ = [
    "Alternatives",
    "BudgetError",
    "CacheInfo",
    "Comparison",
    "Explanation",
    "Fit",
    "Graph",
    "InfeasibleError",
    "InputError",
    "JitKernel",
    "KernelStatus",
    "LargeSchedule",
    "LoopSchedule",
    "Machine",
    "MissingError",
    "OptionError",
    "Schedule",
    "ScheduledKernel",
    "StatusReport",
    "Sweep",
    "TwillError",
    "TwillWarning",
    "__version__",
    "alternatives",
    "cache_info",
    "clear_cache",
    "compare",
    "custom_op",
    "example",
    "fit",
    "gaus",
    "install",
    "jit",
    "machines",
    "prune_configs",
    "schedule",
    "status",
    "sweep",
    "uninstall",
]

_MODULES = {
    "activation": ("KernelStatus", "StatusReport", "install", "status", "uninstall"),
    "cache": ("CacheInfo", "cache_info", "clear_cache"),
    "comparing": ("Comparison", "compare"),
    "decorator": ("jit",),
    "errors": ("BudgetError", "InfeasibleError", "InputError", "MissingError", "OptionError", "TwillError", "TwillWarning"),
    "fitting": ("Fit", "fit", "prune_configs"),
    "graph": ("Graph",),
    "jit_kernel": ("JitKernel",),
    "large": ("LargeSchedule", "gaus"),
    "machine": ("Machine", "machines"),
    "scheduled": ("ScheduledKernel",),
    "scheduling": ("Alternatives", "Explanation", "LoopSchedule", "Schedule", "alternatives", "schedule"),
    "sweeping": ("Sweep", "sweep"),
    "torch_operator": ("custom_op",),
}
"""Where the names are that are imported when first asked for: all of them take 0.2 s, which the `twill` command has not."""


if not TYPE_CHECKING:

    def __getattr__(name):
        for module, names in _MODULES.items():
            if name == module or name in names:
                found = importlib.import_module(f".{module}", __name__)
                if name == module:
                    return found
                value = globals()[name] = getattr(found, name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
