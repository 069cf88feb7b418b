"""The cache of proven schedules and generated kernels on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from . import _twill


@dataclass(frozen=True)
class CacheInfo:
    """How much the cache holds."""

    folder: Path | None
    """None where it is off."""
    schedules: int
    kernels: int
    configurations: int
    size: int
    """In bytes."""


def cache_info() -> CacheInfo:
    """The contents of the cache. It is the folder `TWILL_CACHE`, or `twill` in `XDG_CACHE_HOME` or `~/.cache`; `TWILL_CACHE=off`
    turns it off."""
    folder = _twill.cache_folder()
    return CacheInfo(Path(folder) if folder else None, *_twill.cache_info())


def clear_cache() -> None:
    """Throws away all that the cache holds, and what `twill_gpu.install` found out about other people's kernels."""
    from .activation.records import Records

    _twill.cache_clear()
    Records().clear()
