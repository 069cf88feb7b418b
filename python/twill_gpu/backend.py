"""From TTIR to the folder of a generated kernel, by the `twill` command."""

from __future__ import annotations

import atexit
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .errors import TwillError

COMMAND = "TWILL_COMMAND"
"""Environment variable with the path of the `twill` command; by default it is looked for on the path."""
TIME_LIMIT = 60
"""Seconds after which a search ends with the best schedule known, unless options say otherwise."""

FLAGS = ("no_contract", "no_siblings")
SWITCHES = (
    "consumer_registers",
    "cross_group_registers",
    "exclusive_issue",
    "late_releases",
    "operands_in_registers",
    "persistent",
    "turns",
)
VALUES = (
    "attempts",
    "band",
    "compute_groups",
    "concurrency_window",
    "handover_depth",
    "liveness",
    "max_interval",
    "model",
    "normalise",
    "order",
    "programs_axis",
    "programs_per_cta",
    "registers_per_thread",
    "ring_depth",
    "schedule",
    "stage_window",
    "sub_tiles",
    "time_limit",
    "trip_counts",
    "unroll",
    "warp_assignment",
    "work_limit",
)

_numbers = itertools.count()


def check_options(options: Mapping[str, object]) -> None:
    """Raises TypeError for an option that there is not."""
    unknown = [name for name in options if name not in (*FLAGS, *SWITCHES, *VALUES)]
    if unknown:
        known = ", ".join(sorted((*FLAGS, *SWITCHES, *VALUES)))
        raise TypeError(f"no such option: {', '.join(unknown)}; there are {known}")


def compile_kernel(ttir: str, name: str, machine: str | None, options: Mapping[str, object]) -> Path:
    """A folder with the kernel that runs the best schedule of a TTIR: kernel.py, kernel.json, launch.py and more.

    Raises `TwillError` with the reason where there is none. The folder lasts as long as this process.
    """
    place = folder() / f"{next(_numbers)}-{re.sub(r'[^A-Za-z0-9_]', '_', name)[:100]}"
    place.mkdir()
    source, target = place / "kernel.ttir", place / "kernel"
    source.write_text(ttir, encoding="utf-8")
    words = [command(), "compile", str(source), "-o", str(target), "--python", sys.executable, "--quiet"]
    words += ["--machine", machine] if machine else []
    ran = subprocess.run(words + arguments(options), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if ran.returncode != 0:
        raise TwillError(reason(ran.returncode, ran.stderr, str(source)))
    return target


def command() -> str:
    """Path of the `twill` command."""
    found = os.environ.get(COMMAND) or shutil.which("twill")
    if not found or not shutil.which(found):
        raise TwillError(f"there is no command {found or 'twill'}: install it, or give its path in {COMMAND}")
    return found


def arguments(options: Mapping[str, object]) -> list[str]:
    """Options as the command takes them. None leaves an option at what the command does by itself."""
    words = []
    for name, value in {"time_limit": TIME_LIMIT, **options}.items():
        word = "--" + name.replace("_", "-")
        if value is None or (name in FLAGS and not value):
            continue
        if name in FLAGS:
            words.append(word)
        elif name in SWITCHES:
            words += [word, "on" if value else "off"]
        elif isinstance(value, (list, tuple)):
            words += [word, ",".join(map(str, value))]
        else:
            words += [word, str(value)]
    return words


def reason(code: int, said: str, source: str) -> str:
    """Why the command made no kernel."""
    if code == 2:
        return "no schedule exists for it (proved); smaller tiles or fewer values alive in the loop may have one"
    if code == 3:
        return "no schedule was found in time; a longer time_limit in options may find one"
    lines = said.strip().splitlines() or [f"twill ended with exit code {code}"]
    first = next((i for i, line in enumerate(lines) if line.startswith("error: ")), len(lines) - 1)
    text = " ".join(line.strip() for line in lines[first:]).removeprefix("error: ")
    # Lines of the TTIR mean nothing to who wrote the Python.
    return re.sub(re.escape(source) + r"(:\d+)*: ", "", text).rstrip(".")


def folder() -> Path:
    """A folder of this process for kernels, removed when it ends."""
    global _folder
    if _folder is None:
        _folder = Path(tempfile.mkdtemp(prefix="twill-"))
        atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    return _folder


_folder: Path | None = None
