"""The folder of collected kernels: TTIR and records, written by many processes and merged.

Each process writes its own part of a record, whole or not at all. A merge adds them up.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import InputError

FORMAT, VERSION = "twill-collected", 1
LOCATION = re.compile(r"^#loc.*\n?| loc\((?:[^()]|\([^()]*\))*\)", re.MULTILINE)
PARTS = ".parts"
"""Below the folder: what processes have written since the last merge."""


@dataclass(frozen=True)
class Launches:
    """Launches of a kernel that are alike."""

    grid: list[int]
    arguments: dict[str, int]
    """Whole numbers among the arguments."""
    options: dict[str, Any]
    """Of Triton's compiler, such as `num_warps`."""
    count: int
    samples: int
    """Launches that were timed."""
    milliseconds: float | None
    """Their median."""


@dataclass(frozen=True)
class Record:
    """What is known of a kernel besides its TTIR."""

    kernel: str
    file: str
    """Of the Python source."""
    line: int
    target: str
    """Such as `cuda:90`."""
    signature: dict[str, str]
    constexprs: dict[str, Any]
    launches: list[Launches] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Launches in all."""
        return sum(one.count for one in self.launches)

    @property
    def milliseconds(self) -> float | None:
        """Time of all launches; None where none was timed."""
        known = [one for one in self.launches if one.milliseconds is not None]
        return sum(one.count * (one.milliseconds or 0.0) for one in known) if known else None

    def to_json(self) -> str:
        """As its file has it."""
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str, place: str) -> Record:
        """From a file. Raises `InputError` where it is none."""
        try:
            read = json.loads(text)
            if (read.pop("format"), read.pop("version")) != (FORMAT, VERSION):
                raise ValueError("another format or version")
            launches = [Launches(**one) for one in read.pop("launches")]
            return cls(**read, launches=launches)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{place}: it is no record of twill collect: {error}; collect into a new folder") from error


@dataclass(frozen=True)
class Collected:
    """A kernel of a folder."""

    ttir: Path
    record: Record


def prepare(folder: Path) -> None:
    """Makes a folder, if there is none."""
    (folder / PARTS).mkdir(parents=True, exist_ok=True)


def check(folder: Path) -> None:
    """Raises `InputError` if a folder has something else in it than collected kernels."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder}: it is a file; name a folder for the kernels")
    other = next((file.name for file in sorted(folder.iterdir()) if file.name != PARTS and not _stem(file)), None)
    if other is not None:
        raise InputError(f"{folder}: it holds {other}; name a new folder, an empty one, or one of twill collect")


def _stem(file: Path) -> str | None:
    return file.stem if re.fullmatch(r".*-[0-9a-f]{12}\.(ttir|json)", file.name) else None


def path_of(folder: Path, name: str, ttir: str) -> Path:
    """Where a kernel's TTIR is. Places in sources are of one machine, and tell nothing apart."""
    digest = hashlib.sha256(LOCATION.sub("", ttir).encode()).hexdigest()[:12]
    return folder / f"{re.sub(r'[^A-Za-z0-9_.]', '_', name)[:100]}-{digest}.ttir"


def write_ttir(folder: Path, name: str, ttir: str) -> Path:
    """Writes a kernel's TTIR, where it is not there yet; its path."""
    path = path_of(folder, name, ttir)
    if not path.exists():
        _write(path, ttir)
    return path


def write_part(ttir: Path, process: str, record: Record, launches: Iterable[Launches]) -> None:
    """Writes what a process knows of a kernel, over what it wrote before."""
    parts = ttir.parent / PARTS
    parts.mkdir(exist_ok=True)
    _write(parts / f"{ttir.stem}.{process}.json", replace(record, launches=list(launches)).to_json())


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def merge(folder: Path) -> None:
    """Adds what processes have written to the records, once they have ended."""
    for part in sorted((folder / PARTS).glob("[!.]*.json")):
        stem = part.name.rsplit(".", 2)[0]
        path = folder / f"{stem}.json"
        added = Record.from_json(part.read_text(encoding="utf-8"), str(part))
        before = Record.from_json(path.read_text(encoding="utf-8"), str(path)).launches if path.exists() else []
        _write(path, replace(added, launches=_added([*before, *added.launches])).to_json())
        part.unlink()
    if (folder / PARTS).is_dir() and not any((folder / PARTS).iterdir()):
        (folder / PARTS).rmdir()


def _added(launches: list[Launches]) -> list[Launches]:
    """Launches that are alike as one; the median of two is taken as that of their medians, by samples."""
    found: dict[str, list[Launches]] = {}
    for one in launches:
        found.setdefault(json.dumps([one.grid, one.arguments, one.options], sort_keys=True), []).append(one)

    def together(alike: list[Launches]) -> Launches:
        times = [one.milliseconds for one in alike for _ in range(min(one.samples, 64)) if one.milliseconds is not None]
        count, samples = sum(one.count for one in alike), sum(one.samples for one in alike)
        return replace(alike[0], count=count, samples=samples, milliseconds=statistics.median(times) if times else None)

    return [together(alike) for alike in found.values()]


def read(folder: str | os.PathLike[str]) -> list[Collected]:
    """The kernels of a folder, those first that took most time. Raises `InputError` where there are none."""
    place = Path(folder)
    found = []
    for ttir in sorted(place.glob("*.ttir")):
        path = ttir.with_suffix(".json")
        if path.exists():
            found.append(Collected(ttir, Record.from_json(path.read_text(encoding="utf-8"), str(path))))
    if not found:
        raise InputError(f"{place}: there is no kernel of twill collect in it")
    return sorted(found, key=lambda one: (-(one.record.milliseconds or 0.0), -one.record.count, one.ttir.name))
