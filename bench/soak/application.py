"""What a serving process serves: calls, and what the loop needs of a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Results = Sequence[Any]


@dataclass(frozen=True)
class Request:
    """A call on inputs that stay the same."""

    name: str
    call: Callable[[], Results]
    check: Callable[[Results], tuple[float, float]]
    """The largest difference of results from stock Triton's at the beginning, and the one that is allowed."""


@dataclass
class Application:
    """All calls."""

    requests: list[Request]
    synchronise: Callable[[], object]
    """Waits for the GPU."""
    memory: Callable[[], dict[str, float]]
    """KiB of the GPU's memory, by who says so."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Calls that cannot be made here, and why."""
