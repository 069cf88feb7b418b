"""Kernels of torch.compile: Inductor compiles them, in processes of its own too, and launches them by functions that it writes.

A launcher computes the grid and calls `runner`, a name among its globals: that of `CompiledKernel` with all arguments, or that of
a static launcher (`torch/_inductor/runtime/static_triton_launcher.py`), which knows machine code alone, with those that are no
constants.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from .importing import AfterImport

SOURCE = "torch.compile"
"""In the place of the files that Inductor writes: they are named after a hash, and the same kernel may be in several."""
HEURISTICS, TUNING = "torch._inductor.runtime.triton_heuristics", "torch._inductor.autotune_process"
_FILE = re.compile(r'"[^"\n]+":(?=\d+:\d+)')


class Launched(NamedTuple):
    """What a launcher launches."""

    result: Any
    """The `CompileResult` that made the launcher."""
    is_static: bool
    name: str
    arg_names: list[str]
    """All parameters."""
    given: list[str]
    """Those that the runner is given."""
    first: int
    """How many others come before them, after grid and stream."""
    ttir: str

    @property
    def device(self) -> int:
        """The device that it is compiled for."""
        return self.result.compile_meta.get("device") or 0

    def metadata(self) -> dict[str, Any]:
        """What Triton's cache has of a kernel that a static launcher launches."""
        found: dict[str, Any] = json.loads(_kept(self.result, self.device, "json"))
        return found


def launched_by(result: Any, launcher: Any) -> Launched | None:
    """What the launcher of a `CompileResult` launches; None where its TTIR is gone."""
    kernel, is_static = result.kernel, getattr(launcher, "_is_static", False)
    ttir = _kept(result, result.compile_meta.get("device") or 0, "ttir") if is_static else kernel.asm.get("ttir", "")
    if not ttir:
        return None
    ttir = _FILE.sub(f'"{SOURCE}":', ttir)
    if not is_static:
        function = kernel.src.fn
        # The launcher gives function, metadata and hooks before them.
        return Launched(result, False, function.__name__, list(function.arg_names), list(function.arg_names), 5, ttir)
    absent = result._get_arg_lists(kernel.arg_names, kernel.declared_constexprs)[2]
    given = [one for i, one in enumerate(kernel.arg_names) if i not in kernel.full_constexprs and one not in absent]
    return Launched(result, True, kernel.name, list(kernel.arg_names), given, 0, ttir)


def follow(
    replace: Callable[[Any, str, Any], None],
    take: Callable[[Any, Any], None],
    alone: Callable[[], AbstractContextManager[Any]],
    left: Callable[[Exception], None],
) -> list[AfterImport]:
    """Has each launcher taken from when Inductor is imported.

    replace: puts something in the place of an attribute; take: is given a `CompileResult` and its launcher; alone: is around
    Inductor's comparisons of configurations; left: is told what is not as it is known.
    """

    def making(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def make_launcher(self: Any) -> Any:
            launcher = original(self)
            try:
                take(self, launcher)
            except Exception as error:
                left(error)
            return launcher

        return make_launcher

    def comparing(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def bench(self: Any, *args: Any, **named: Any) -> Any:
            with alone():
                return original(self, *args, **named)

        return bench

    def of_heuristics(module: Any) -> None:
        for result in (module.TritonCompileResult, module.StaticTritonCompileResult):
            replace(result, "make_launcher", making(result.make_launcher))
        replace(module.CachingAutotuner, "bench", comparing(module.CachingAutotuner.bench))

    def of_tuning(module: Any) -> None:
        replace(module.BenchmarkRequest, "benchmark", comparing(module.BenchmarkRequest.benchmark))

    def safely(act: Callable[[Any], None]) -> Callable[[ModuleType], None]:
        def do(module: ModuleType) -> None:
            try:
                act(module)
            except Exception as error:
                left(error)

        return do

    return [AfterImport(HEURISTICS, safely(of_heuristics)), AfterImport(TUNING, safely(of_tuning))]


def _kept(result: Any, device: int, what: str) -> str:
    """The TTIR or metadata of a kernel of which Inductor keeps the machine code alone, from Triton's cache; empty if gone."""
    from torch._inductor.runtime import triton_heuristics as inductor

    folder = Path(inductor.triton_cache_dir(device), inductor.triton_hash_to_path_key(result.kernel.hash))
    try:
        return (folder / f"{result.kernel.name}.{what}").read_text(encoding="utf-8")
    except OSError:
        return ""
