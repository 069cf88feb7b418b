"""Everything that machine code depends on besides a kernel, in one line: versions, and what an assembler is chosen by.

It needs nothing but Python, and imports no Triton: `twill compile` runs its text with `--python`'s interpreter.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("triton", "nvidia-cuda-nvcc", "nvidia-cuda-nvrtc")
ASSEMBLERS = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")
"""Variables that name a ptxas: one path may have another version tomorrow."""
OPTIONS = ("PTXAS_OPTIONS", "DISABLE_PTXAS_OPT", "TRITON_DEFAULT_FP_FUSION", "TRITON_FORCE_DISABLE_FP_FUSION")
FIRST_DRIVER = 13
"""The CUDA driver that loads what a newer ptxas makes."""


def installed(package: str) -> str:
    """The version of a package; `none` where there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def version_of(path: str) -> str:
    """What a ptxas says of its version."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return "none"
    found = re.search(r"\bV[\d.]+", said)
    return found[0] if found else "unknown"


def is_torchs(path: str) -> bool:
    """Whether a ptxas is the one that torch comes with.

    Inductor names it in a process that compiles a kernel: no kernel of Twill's depends on that (a kernel's ptxas.py).
    """
    place = Path(path)
    return place.parts[-3:] == ("torch", "bin", "ptxas") and (place.parents[1] / "__init__.py").is_file()


def has_old_driver() -> bool:
    """Whether there is a CUDA driver that loads nothing of a newer ptxas."""
    number = ctypes.c_int()
    try:
        failed = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number))
    except (OSError, AttributeError):
        return False
    return not failed and number.value // 1000 < FIRST_DRIVER


def described() -> str:
    """The line."""
    parts = [f"{package} {installed(package)}" for package in PACKAGES]
    named = {name: path for name in ASSEMBLERS if (path := os.environ.get(name))}
    if is_torchs(named.get(ASSEMBLERS[0], "")):
        del named[ASSEMBLERS[0]]
    parts += [f"{name}={path} {version_of(path)}" for name, path in named.items()]
    parts += [f"{name}={value}" for name in OPTIONS if (value := os.environ.get(name))]
    parts += ["old driver"] if has_old_driver() else []
    return ", ".join(parts)


if __name__ == "__main__":
    print(described())
