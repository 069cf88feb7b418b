"""The folders that serving processes share, and what is thrown away in them."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

from . import resources

RECORDS, KERNELS = "activation-v1", "twill-cache-v1"
"""Where Twill keeps both in its cache."""
OF_ENDS = (".trial", ".died")
"""Endings of records by which a process learns how an earlier one ended."""
PART = 0.1
"""The part of what Triton has compiled that is thrown away between two processes."""


class Folders:
    """Twill's cache, Triton's cache, and where temporary files are."""

    def __init__(self, root: Path, seed: int):
        self.cache, self.triton, self.scratch = (root / name for name in ("twill", "triton", "scratch"))
        for folder in (self.cache, self.triton, self.scratch):
            folder.mkdir(mode=0o700)
        self._chance = random.Random(f"{seed} folders")
        self.thrown_away = {"records": 0, "kernels": 0, "compiled": 0}

    def environment(self) -> dict[str, str]:
        """That of a process: Twill is switched on by the process itself."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TWILL")}
        ours = {"TWILL_CACHE": self.cache, "TRITON_CACHE_DIR": self.triton, "TMPDIR": self.scratch}
        return {**kept, **{name: str(folder) for name, folder in ours.items()}}

    def sample(self) -> dict[str, float]:
        """How many files there are, and their KiB."""
        found: dict[str, float] = {}
        for name, folder in (("cache", self.cache), ("triton", self.triton), ("scratch", self.scratch)):
            found[f"{name}_files"], found[f"{name}_kib"] = resources.of_folder(folder)
        return found

    def records(self, ending: str) -> int:
        """How many records have an ending."""
        return len(list((self.cache / RECORDS).glob(f"*{ending}")))

    def throw_away(self) -> None:
        """A record, and every other time a kernel: as somebody may who makes room."""
        self._throw_away("records", self.cache / RECORDS)
        if self._chance.random() < 0.5:
            self._throw_away("kernels", self.cache / KERNELS)

    def _throw_away(self, what: str, folder: Path) -> None:
        # What begins with a dot is being written.
        files = sorted(one for one in folder.rglob("[!.]*") if one.is_file() and one.suffix not in OF_ENDS)
        if files:
            self._chance.choice(files).unlink(missing_ok=True)
            self.thrown_away[what] += 1

    def throw_away_compiled(self) -> None:
        """Some of what Triton has compiled: while nobody reads it, since stock Triton itself fails on half of an entry."""
        entries = sorted(one for one in self.triton.iterdir() if one.is_dir())
        for entry in self._chance.sample(entries, int(PART * len(entries))):
            shutil.rmtree(entry, ignore_errors=True)
            self.thrown_away["compiled"] += 1

    def background(self) -> list[int]:
        """Twill's background processes: their temporary files are below ours, in a folder of the serving process."""
        return resources.processes_with("TMPDIR", f"{self.scratch}/")

    def left_behind(self) -> list[str]:
        """What is left where temporary files are."""
        return sorted(one.name for one in self.scratch.iterdir())
