"""Twill: Triton kernels with the fastest software pipeline and warp specialisation, by changing only the decorator.

Importing this costs neither Triton nor torch; what needs them is imported when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .cache import cache_info, clear_cache
    from .decorator import jit
    from .errors import BudgetError, InfeasibleError, InputError, TwillError, TwillWarning
    from .fitting import Fit, fit, prune_configs
    from .graph import Graph
    from .jit_kernel import JitKernel
    from .large import LargeSchedule, gaus
    from .machine import Machine, machines
    from .scheduled import ScheduledKernel
    from .scheduling import Alternatives, Explanation, LoopSchedule, Schedule, alternatives, schedule
    from .sweeping import Sweep, sweep
    from .torch_operator import custom_op

_WHERE = {
    "jit": "decorator",
    "JitKernel": "jit_kernel",
    "ScheduledKernel": "scheduled",
    "custom_op": "torch_operator",
    "schedule": "scheduling",
    "alternatives": "scheduling",
    "Alternatives": "scheduling",
    "Schedule": "scheduling",
    "LoopSchedule": "scheduling",
    "Explanation": "scheduling",
    "fit": "fitting",
    "Fit": "fitting",
    "prune_configs": "fitting",
    "Graph": "graph",
    "Machine": "machine",
    "machines": "machine",
    "sweep": "sweeping",
    "Sweep": "sweeping",
    "gaus": "large",
    "LargeSchedule": "large",
    "cache_info": "cache",
    "clear_cache": "cache",
    "TwillError": "errors",
    "InputError": "errors",
    "InfeasibleError": "errors",
    "BudgetError": "errors",
    "TwillWarning": "errors",
}
"""By name, the module that it is in."""

__all__ = list(_WHERE)


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
