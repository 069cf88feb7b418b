"""A call of a package's own function, as its users write it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Call = Callable[[], Sequence[Any]]
"""Calls the function on inputs that stay the same; gives back its results, tensors that later calls do not change."""


@dataclass(frozen=True)
class Case:
    """A call with inputs."""

    package: str
    name: str
    make: Callable[[], Call | tuple[Call, Call | None] | tuple[Call, Call | None, dict[str, Call]]]
    """Makes random inputs on the GPU; the call, if there is one the same in float64, and the same by other libraries."""
    tolerance: float
    """Largest error of a result against float64, relative to the largest value of the reference."""


_cases: list[Case] = []


def case(package: str, name: str | None = None, tolerance: float = 1e-2) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Registers a function that makes inputs and a call."""

    def register(make: Callable[[], Any]) -> Callable[[], Any]:
        _cases.append(Case(package, name or make.__name__, make, tolerance))
        return make

    return register


def cases() -> list[Case]:
    """Those that were registered."""
    return list(_cases)
