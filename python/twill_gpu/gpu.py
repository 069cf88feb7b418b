"""Which machine a GPU is."""

from __future__ import annotations

import re
import sys

from .errors import TwillError

NAMES = (("h200", r"\bG?H200\b"),)
"""Machines that only the GPU's name tells from others of its architecture."""
ARCHITECTURES = {80: "a100", 90: "h100", 100: "b200"}
"""By compute capability × 10."""


def machine_of(device: int | None, architecture: int) -> str:
    """Name of the machine whose numbers a GPU is scheduled with. Raises `TwillError` where there is none."""
    if architecture not in ARCHITECTURES:
        known = ", ".join(f"sm_{one} ({name})" for one, name in ARCHITECTURES.items())
        raise TwillError(f"no machine is known for sm_{architecture}, only for {known}; machine=… names one")
    name = name_of(device)
    here = (machine for machine, pattern in NAMES if architecture == 90 and re.search(pattern, name))
    return next(here, ARCHITECTURES[architecture])


def name_of(device: int | None) -> str:
    """What the maker calls a GPU; nothing where torch is not in use."""
    torch = sys.modules.get("torch")
    return torch.cuda.get_device_name(device) if torch is not None else ""
