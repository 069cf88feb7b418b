"""A kernel that Twill made, loaded from its folder."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import linecache
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .errors import TwillError

if TYPE_CHECKING:
    from .machine import Machine


SOURCES = {"gluon": "kernel.py", "cuda": "kernel.cu"}
"""The file of a generated kernel's source, by what it is written in."""
MACHINE_CODE = "kernel.cubin.json"
"""The file with the machine code of one in CUDA that another process has made."""


class ScheduledKernel:
    """A kernel that Twill made: what `warmup` and a launch give back, as stock Triton gives back a compiled kernel."""

    def __init__(self, folder: Path, ttir: str, machine: str | os.PathLike[str] | Machine | None):
        self.folder = Path(folder)
        """kernel.py or kernel.cu, kernel.json, schedule.json, launch.py and more."""
        self.ttir = ttir
        """Its source."""
        self.machine = machine
        self._module = launcher(self.folder)
        with without_bytecode():
            self._kernel = self._module.load(self.folder)
        self.metadata: dict[str, Any] = json.loads((self.folder / "kernel.json").read_text(encoding="utf-8"))
        """The contents of kernel.json."""
        self.name: str = self.metadata["name"]
        self.language = language_of(self.metadata)
        """The language of its source: `gluon` or `cuda`."""
        self.launch = self._kernel.launch
        """Launches it on values by their parameters' names and a grid, on the current stream."""
        self.plan = self._kernel.plan
        """Checks the arguments of `launch`; what is left to do."""
        self.is_planned = self._kernel.is_planned
        """Whether a launch on such arguments has nothing left to make or load."""
        self.reading = self._kernel.reading
        """How a launch reads arguments."""
        self.magnitudes = self._kernel.magnitudes
        """Bits of the whole numbers that a plan leaves open."""
        self.refused: type[Exception] = self._module.Refused
        """The error of both for arguments that the Triton kernel may take, but not this one."""

    @property
    def parameters(self) -> list[str]:
        """Names of its parameters, all of them run-time parameters of the Triton kernel."""
        return [parameter["name"] for parameter in self.metadata["parameters"]]

    @property
    def architecture(self) -> str:
        """The target of its machine code, such as `sm_90a`."""
        return str(self.metadata["architecture"])

    @property
    def info(self) -> dict[str, Any]:
        """Name, interval (`ii`, cycles), stages, status; registers, spills and its assembler once it was used."""
        return dict(self._kernel.info)

    @cached_property
    def asm(self) -> dict[str, Any]:
        """Its forms by name: `ttir`, `gluon` or `cuda` (its source), and the compiler's to `ptx` and `cubin`; Triton's have more."""
        asm: dict[str, Any] = self.compile().asm
        asm["ttir"] = self.ttir
        asm[self.language] = (self.folder / SOURCES[self.language]).read_text(encoding="utf-8")
        return asm

    @property
    def n_regs(self) -> int | None:
        """Registers of a thread at entry; None until it was used."""
        return cast("int | None", self.info["registers"])

    @property
    def n_spills(self) -> int | None:
        """Registers that were spilled; None until it was used."""
        return cast("int | None", self.info["spills"])

    def compile(self) -> Any:
        """Compiles it to machine code, for which no GPU is needed; what Triton or NVRTC made of it."""
        return self._kernel.compile()

    @property
    def is_kept(self) -> bool:
        """Whether its machine code is there already, made by another process: no compiler has to run."""
        return bool(self._kernel.is_kept)

    def keep(self) -> None:
        """Keeps its machine code in its folder, where no compiler's cache does."""
        self._kernel.keep(self.folder)

    def check_parameters(self, names: list[str]) -> None:
        """Raises `TwillError` where a parameter is none of the Triton kernel's."""
        own = self.parameters
        other = [name for name in own if name not in names or own.count(name) > 1]
        if other:
            raise TwillError(f"parameters of the TTIR are not those of the Python function: {', '.join(other)}")

    def shed(self) -> None:
        """Lets go of texts that a launch does not need: sources in Python's own cache, and all but the machine code in `asm`."""
        linecache.cache.pop(str(self.folder / "kernel.py"), None)
        if not self._kernel.is_compiled:
            return
        forms: dict[str, object] = self.compile().asm
        for form in [form for form, text in forms.items() if isinstance(text, str)]:
            del forms[form]

    def forget(self) -> None:
        """Lets go of what Python keeps of its files. A launch that is under way is not disturbed."""
        self.shed()
        sys.modules.pop("twill_kernel_" + re.sub(r"\W", "_", str(self.folder.resolve())), None)

    def _repr_html_(self) -> str | None:
        """The page of its schedule, as `schedule.json` has it."""
        from . import widget

        try:
            return widget.page((self.folder / "schedule.json").read_text(encoding="utf-8"), self.name)
        except OSError:
            return None

    def __repr__(self) -> str:
        schedule = self.metadata.get("schedule", {})
        return f"ScheduledKernel({self.name} for {self.architecture}, I = {schedule.get('interval')}, {self.folder})"


def language_of(metadata: dict[str, Any]) -> str:
    """The language of the source by kernel.json."""
    return str(metadata.get("language", "gluon"))


def launcher(folder: Path) -> Any:
    """launch.py of a kernel's folder. Kernels whose files are the same but for the kernel itself share one."""
    texts = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        if path.name != SOURCES["gluon"]:
            texts.update(path.read_bytes() + b"\0")
    key = texts.digest()
    if key not in _launchers:
        _launchers[key] = load(folder / "launch.py")
    return _launchers[key]


_launchers: dict[bytes, Any] = {}


def load(path: Path) -> Any:
    """A Python file as a module of its own; kernels live side by side."""
    name = "twill_launch_" + "".join(c if c.isalnum() else "_" for c in str(path))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader, "it ends in .py"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with without_bytecode():
        spec.loader.exec_module(module)
    return module


@contextmanager
def without_bytecode() -> Iterator[None]:
    """Has Python write no bytecode: a kernel's folder may be in a cache that is checked, or that others read.

    The switch is the process's, and several threads may load kernels: the last one puts it back.
    """
    global _loading, _wrote_none
    with _lock:
        if _loading == 0:
            _wrote_none, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        _loading += 1
    try:
        yield
    finally:
        with _lock:
            _loading -= 1
            if _loading == 0:
                sys.dont_write_bytecode = _wrote_none


def _forked() -> None:
    """In a forked child, which has none of the threads that load kernels in its parent."""
    global _lock, _loading
    _lock = threading.Lock()
    if _loading:
        _loading, sys.dont_write_bytecode = 0, _wrote_none


_lock = threading.Lock()
_loading = 0
"""Loads under way."""
_wrote_none = sys.dont_write_bytecode
"""What the switch was before them."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
