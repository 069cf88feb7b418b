"""The machine file of a GPU."""

from __future__ import annotations

from .errors import TwillError

ARCHITECTURES = {80: "a100", 90: "h200", 100: "b200"}
"""By compute capability × 10. An H100 has the multiprocessor of an H200, whose numbers are measured."""


def machine_of(architecture: int) -> str:
    """Name of the machine whose numbers a GPU is scheduled with. Raises `TwillError` where there is none."""
    if architecture not in ARCHITECTURES:
        known = ", ".join(f"sm_{one} ({name})" for one, name in ARCHITECTURES.items())
        raise TwillError(f"no machine is known for sm_{architecture}, only for {known}; machine=… names one")
    return ARCHITECTURES[architecture]
