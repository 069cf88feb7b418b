"""Twill: Triton kernels with the fastest software pipeline and warp specialisation, by changing only the decorator.

Importing this costs neither Triton nor torch; what needs them is imported when it is first asked for.
"""

from __future__ import annotations

import importlib

_WHERE = {
    "jit": "decorator",
    "JitKernel": "jit_kernel",
    "ScheduledKernel": "scheduled",
    "custom_op": "torch_operator",
    "TwillError": "errors",
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
