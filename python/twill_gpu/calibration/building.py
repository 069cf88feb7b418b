"""Compiling microbenchmarks by NVRTC."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .. import _twill
from ..errors import TwillError
from .benchmark import Program

OPTIONS = ("-std=c++17", "-default-device")
INSTALL = "pip install 'twill-gpu[cuda]'"
SPOILED = ("are serialized", "setmaxnreg ignored", "'setmaxnreg' ignored")
"""The remarks of ptxas where it changed a kernel."""


def build(programs: Sequence[Program], architecture: str, workers: int | None = None) -> list[bytes]:
    """Machine code of each program. Raises `TwillError` where one does not compile, or not to what it should be."""
    nvrtc, sources = bindings(), headers()
    options = [*OPTIONS, f"-arch={architecture}", f"-I{cuda_headers()}"]
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        return list(pool.map(lambda program: _compile(nvrtc, program, sources, options), programs))


def headers() -> dict[str, str]:
    """Our own headers by name: those of generated kernels, and those of this folder."""
    own = {path.name: path.read_text(encoding="utf-8") for path in (Path(__file__).parent / "cuda").glob("*.cuh")}
    return {"twill.cuh": _twill.cuda_primitives(), **own}


def bindings() -> Any:
    """NVRTC."""
    try:
        nvrtc: Any = importlib.import_module("cuda.bindings.nvrtc")
        nvrtc.nvrtcVersion()
    except Exception as error:  # the bindings are not there, or not what they are of
        raise TwillError(f"microbenchmarks are compiled by NVRTC, which is not there ({error}): {INSTALL}") from error
    return nvrtc


def cuda_headers() -> Path:
    """CUDA's own headers, as wheels or a toolkit install them."""
    for place in sys.path:
        for found in (Path(place) / "nvidia" / "cu13" / "include", Path(place) / "nvidia" / "cuda_runtime" / "include"):
            if (found / "cuda_fp16.h").is_file():
                return found
    for toolkit in (os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if toolkit and (Path(toolkit) / "include" / "cuda_fp16.h").is_file():
            return Path(toolkit) / "include"
    raise TwillError(f"CUDA's headers are not there: {INSTALL}")


def _compile(nvrtc: Any, program: Program, sources: Mapping[str, str], options: Sequence[str]) -> bytes:
    def checked(answer: tuple[Any, ...]) -> Any:
        error, *values = answer
        if int(error) != 0:
            raise TwillError(f"NVRTC: {nvrtc.nvrtcGetErrorString(error)[1].decode()}")
        return values[0] if values else None

    def text(size: Any, get: Any) -> bytes:
        room = bytes(checked(size(made)))
        checked(get(made, room))
        return room

    names = [name.encode() for name in sources]
    texts = [source.encode() for source in sources.values()]
    file = f"{program.name}.cu"
    made = checked(nvrtc.nvrtcCreateProgram(program.text().encode(), file.encode(), len(names), texts, names))
    (error,) = nvrtc.nvrtcCompileProgram(made, len(options), [option.encode() for option in options])
    log = text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).decode().rstrip("\0")
    if int(error) != 0:
        raise TwillError(f"NVRTC refused {file}:\n{log}")
    if any(words in log for words in SPOILED):
        raise TwillError(f"{file} would measure something else than it should:\n{log}")
    code = text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
    checked(nvrtc.nvrtcDestroyProgram(made))
    return code
