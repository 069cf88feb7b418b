"""Which Triton functions may have work for Twill, by their text: those with an MMA in them or in what they call."""

from __future__ import annotations

import re
from typing import Any

MMA = re.compile(r"\bdot(_scaled)?\b")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


def may_multiply(function: Any) -> bool:
    """Whether the text of a Triton function, or of a function that it names, has a `dot`. True where that cannot be told."""
    try:
        return _may_multiply(function, set())
    except Exception:
        # Python of any kind may stand behind a name.
        return True


def _may_multiply(function: Any, seen: set[int]) -> bool:
    if id(function) in seen:
        return False
    seen.add(id(function))
    text = function.src
    if MMA.search(text):
        return True
    places = {**getattr(function, "__globals__", {}), **_closure(function)}
    for name in set(NAME.findall(text)):
        first, *rest = name.split(".")
        found = places.get(first)
        for part in rest:
            found = getattr(found, part, None)
        # A kernel of `twill_gpu.jit` stands for one of Triton's.
        found = getattr(found, "_function", found)
        if hasattr(found, "src") and hasattr(found, "arg_names") and _may_multiply(found, seen):
            return True
    # A function that is a parameter may be anything.
    return any(re.search(rf"\b{re.escape(name)}\s*\(", text) for name in function.arg_names)


def _closure(function: Any) -> dict[str, Any]:
    cells = getattr(function.fn, "__closure__", None) or ()
    return dict(zip(function.fn.__code__.co_freevars, (cell.cell_contents for cell in cells)))
