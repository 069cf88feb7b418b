"""A kernel that Twill made, loaded from its folder."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from .errors import TwillError
from .machine import Machine


SOURCES = {"gluon": "kernel.py", "cuda": "kernel.cu"}
"""The file of a generated kernel's source, by what it is written in."""


class ScheduledKernel:
    """A kernel that Twill made: what `warmup` and a launch give back, as stock Triton gives back a compiled kernel."""

    def __init__(self, folder: Path, ttir: str, machine: str | os.PathLike[str] | Machine | None):
        self.folder = Path(folder)
        """kernel.py or kernel.cu, kernel.json, schedule.json, launch.py and more."""
        self.ttir = ttir
        """Its source."""
        self.machine = machine
        self._module = load(self.folder / "launch.py")
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
        """Name, interval (`ii`, cycles), stages, status; registers and spills once it was used."""
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

    def check_parameters(self, names: list[str]) -> None:
        """Raises `TwillError` where a parameter is none of the Triton kernel's."""
        own = self.parameters
        other = [name for name in own if name not in names or own.count(name) > 1]
        if other:
            raise TwillError(f"parameters of the TTIR are not those of the Python function: {', '.join(other)}")

    def __repr__(self) -> str:
        schedule = self.metadata.get("schedule", {})
        return f"ScheduledKernel({self.name} for {self.architecture}, I = {schedule.get('interval')}, {self.folder})"


def language_of(metadata: dict[str, Any]) -> str:
    """The language of the source by kernel.json."""
    return str(metadata.get("language", "gluon"))


def load(path: Path) -> Any:
    """A Python file as a module of its own; kernels live side by side."""
    name = "twill_launch_" + "".join(c if c.isalnum() else "_" for c in str(path))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader, "it ends in .py"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # The folder may be in a cache that is checked, or that others read.
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = writes
    return module
