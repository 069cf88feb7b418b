"""From TTIR to the folder of a generated kernel."""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from . import _twill
from .ending import at_end
from .errors import TwillError
from .toolchain import described

if TYPE_CHECKING:
    from .machine import Machine

TIME_LIMIT = 60
"""Seconds after which a search ends with the best schedule known, unless options say otherwise. Background processes count CPU
time."""

_numbers = itertools.count()


def compile_kernel(ttir: str, name: str, machine: str | os.PathLike[str] | Machine | None, options: Mapping[str, object]) -> Path:
    """A folder with the kernel that runs the best schedule of a TTIR: kernel.py or kernel.cu, kernel.json, launch.py and more.

    Raises `TwillError` with the reason where there is none. The folder lasts as long as this process; the kernel itself is
    kept in the cache on disk.
    """
    request = question("kernel", name, ttir, machine, {"time_limit": TIME_LIMIT, **options})
    try:
        kernel = _twill.compile(request, sys.executable, command(), toolchain())
    except TwillError as error:
        # Lines of the TTIR mean nothing to the author of the Python.
        raise type(error)(re.sub(rf"^{re.escape(name)}(:\d+)*: ", "", str(error)), error.place) from None
    return written(kernel, folder() / f"{next(_numbers)}-{re.sub(r'[^A-Za-z0-9_]', '_', name)[:100]}")


def cached_kernel(ttir: str, name: str, machine: str | os.PathLike[str] | Machine | None, options: Mapping[str, object]) -> Path | None:
    """As `compile_kernel`, of what the cache on disk holds; None where it would have to be made."""
    request = question("kernel", name, ttir, machine, {"time_limit": TIME_LIMIT, **options})
    kernel = _twill.cached(request, sys.executable, command(), toolchain())
    return None if kernel is None else written(kernel, folder() / f"{next(_numbers)}-cached")


def written(kernel: str, place: Path) -> Path:
    """A new folder with the files of a kernel, which is given as JSON."""
    place.mkdir()
    for file, text in json.loads(kernel)["files"].items():
        (place / file).write_text(text, encoding="utf-8")
    return place


def question(
    kind: str, name: str, text: str, machine: str | os.PathLike[str] | Machine | None, options: Mapping[str, object]
) -> _twill.Question:
    """The question to `_twill` about an input."""
    # An application that has all in its cache asks nothing.
    from .machine import Machine
    from .options import checked

    if machine is not None:
        machine = Machine.of(machine).text
    return {"kind": kind, "name": name, "text": text, "machine": machine, "options": checked(options)}


def command() -> str:
    """The provenance that a generated kernel states."""
    return "twill_gpu.jit"


@functools.cache
def toolchain() -> str:
    """Everything that machine code depends on besides the kernel."""
    return described()


def folder() -> Path:
    """A folder of this process for kernels, removed when it ends. A forked child has one of its own."""
    global _folder
    if _folder is None or _folder[0] != os.getpid():
        made = Path(tempfile.mkdtemp(prefix="twill-"))
        _folder = os.getpid(), made
        at_end(lambda: shutil.rmtree(made, ignore_errors=True))
    return _folder[1]


_folder: tuple[int, Path] | None = None
"""Of which process, and where."""
