"""A Triton function, and whether there is something for Twill in its kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_MMA = re.compile(r"\btt\.dot(_scaled)?\b")
_LOOP = re.compile(r"\bscf\.(for|while)\b")


def nothing_for_twill(ttir: str) -> str | None:
    """Why Twill does not look at a kernel: it has no MMA, or no loop."""
    if not _MMA.search(ttir):
        return "it has no MMA"
    return None if _LOOP.search(ttir) else "it has no loop"


@dataclass(frozen=True)
class Function:
    """What is known of a Triton function."""

    name: str
    arg_names: Sequence[str]
    place: str
    """Where its source is."""


def function_of(function: Any) -> Function:
    """What is known of a `JITFunction`."""
    code = function.fn.__code__
    return Function(function.__name__, function.arg_names, f"{code.co_filename}:{code.co_firstlineno}")
