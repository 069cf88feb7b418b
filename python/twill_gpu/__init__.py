"""Twill: Triton kernels with the fastest software pipeline and warp specialisation, by changing only the decorator.

Importing this costs neither Triton nor torch; the calls that need them import them.
"""

from __future__ import annotations

from ._twill import __version__
from .activation import KernelStatus, StatusReport, install, status, uninstall
from .cache import CacheInfo, cache_info, clear_cache
from .comparing import Comparison, compare
from .decorator import jit
from .errors import BudgetError, InfeasibleError, InputError, MissingError, OptionError, TwillError, TwillWarning
from .example import example
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
