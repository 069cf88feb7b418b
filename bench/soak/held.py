"""Memory, files and processes over time: how much at first and in the end of what counts, and whether it grows."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .figures import slope

LOADED = ("specialisations", "loaded", "waiting")
"""What takes memory when it changes, as the documentation says: kernels that are loaded. Between two changes nothing may grow."""


@dataclass(frozen=True)
class Kind:
    """Something that a process holds."""

    name: str
    unit: str = ""
    per_minute: float | None = None
    """The slope that it may have; None where no limit is set."""
    growth: float | None = None
    """How much more there may be in the last third."""


KINDS = {
    "rss": Kind("memory of the process", "KiB", per_minute=1024),
    "gpu": Kind("memory of the GPU", "KiB", per_minute=1024),
    "torch": Kind("given away by torch", "KiB", per_minute=64),
    "files": Kind("open files", growth=16),
    "threads": Kind("threads", growth=16),
    "children": Kind("background processes", growth=16),
    "scratch_files": Kind("temporary files", growth=64),
    "scratch_kib": Kind("temporary files", "KiB"),
    "cache_files": Kind("files in Twill's cache"),
    "cache_kib": Kind("files in Twill's cache", "KiB"),
    "triton_kib": Kind("files in Triton's cache", "KiB"),
    "specialisations": Kind("specialisations"),
    "loaded": Kind("kernels that are loaded"),
    "waiting": Kind("specialisations that wait for kernels"),
    "contests": Kind("contests"),
    "open": Kind("contests that are open"),
}
"""Background processes that are at work have files, threads and folders: as many as there may be by default."""


@dataclass(frozen=True)
class Held:
    """What was held of a kind."""

    kind: Kind
    first: float
    last: float
    """Medians of the first and the last third."""
    slope: float
    """By the minute, while no kernel was loaded."""

    @property
    def grows(self) -> str | None:
        """Why it is not flat; None if it is."""
        if self.kind.per_minute is not None and self.slope > self.kind.per_minute:
            return f"{self.kind.name} grows by {self.slope:,.0f} {self.kind.unit} a minute"
        if self.kind.growth is not None and self.last - self.first > self.kind.growth:
            return f"{self.kind.name}: {self.first:,.0f} at first, {self.last:,.0f} in the end"
        return None


def held(samples: Sequence[dict[str, Any]]) -> dict[str, Held]:
    """What there was of each kind while times count; nothing of a process without a sample of the first and the last third."""
    counting = [one for one in samples if one["phase"] != "warm"]
    found = {}
    for key, kind in KINDS.items():
        thirds = [[float(one[key]) for one in counting if one["phase"] == phase and key in one] for phase in ("first", "last")]
        if all(thirds):
            steady = itertools.groupby((one for one in counting if key in one), lambda one: [one[name] for name in LOADED])
            series = [[(one["at"] / 60, float(one[key])) for one in group] for _, group in steady]
            found[key] = Held(kind, *map(statistics.median, thirds), slope(series))
    return found


def of_a_load(samples: Sequence[dict[str, Any]], key: str) -> float | None:
    """How much more is held for each kernel that was loaded while times count, the author's and others; None without one."""
    counting = [one for one in samples if one["phase"] != "warm" and key in one]
    if not counting:
        return None
    before, after = counting[0], counting[-1]
    loaded = sum(after[name] - before[name] for name in ("specialisations", "loaded"))
    return (after[key] - before[key]) / loaded if loaded > 0 else None
