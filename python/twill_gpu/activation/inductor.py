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
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from .._twill import SettledLauncher
from . import configurations
from .configurations import Compiled
from .function import Function, nothing_for_twill
from .importing import AfterImport
from .launches import Kernel, Runner

if TYPE_CHECKING:
    from .activity import Activity

SOURCE = "torch.compile"
"""In the place of the files that Inductor writes: they are named after a hash, and the same kernel may be in several."""
_FILE = re.compile(r'"[^"\n]+":(?=\d+:\d+)')
HEURISTICS, TUNING = "torch._inductor.runtime.triton_heuristics", "torch._inductor.autotune_process"


def follow(activity: Activity, replace: Callable[[Any, str, Any], None]) -> list[AfterImport]:
    """Has kernels of torch.compile taken from when Inductor is imported. replace: puts something in the place of an attribute."""

    def of_heuristics(module: Any) -> None:
        for result in (module.TritonCompileResult, module.StaticTritonCompileResult):
            replace(result, "make_launcher", _making(activity, result.make_launcher))
        replace(module.CachingAutotuner, "bench", _alone(activity, module.CachingAutotuner.bench))

    def of_tuning(module: Any) -> None:
        replace(module.BenchmarkRequest, "benchmark", _alone(activity, module.BenchmarkRequest.benchmark))

    def safely(act: Callable[[Any], None]) -> Callable[[ModuleType], None]:
        def do(module: ModuleType) -> None:
            try:
                act(module)
            except Exception as error:
                _left(activity, error)

        return do

    return [AfterImport(HEURISTICS, safely(of_heuristics)), AfterImport(TUNING, safely(of_tuning))]


def _left(activity: Activity, error: Exception) -> None:
    """Says once that this torch is another one than is known."""
    from .activity import say

    if not activity.left_inductor:
        activity.left_inductor = True
        say(f"twill: kernels of torch.compile stay with stock Triton: {type(error).__name__}: {error}")


def _alone(activity: Activity, original: Callable[..., Any]) -> Callable[..., Any]:
    """In the place of a method by which Inductor compares its configurations: Twill takes the winner."""

    @functools.wraps(original)
    def bench(self: Any, *args: Any, **named: Any) -> Any:
        with activity.suspended():
            return original(self, *args, **named)

    return bench


def _making(activity: Activity, original: Callable[..., Any]) -> Callable[..., Any]:
    """In the place of `CompileResult.make_launcher`."""

    @functools.wraps(original)
    def make_launcher(self: Any) -> Any:
        launcher = original(self)
        try:
            _take(activity, self, launcher)
        except Exception as error:
            _left(activity, error)
        return launcher

    return make_launcher


def _take(activity: Activity, result: Any, launcher: Any) -> None:
    """Puts a `Runner` into a launcher, if there is something for Twill in its kernel."""
    meta, kernel, names = result.compile_meta, result.kernel, launcher.__globals__
    device = meta.get("device") or 0
    is_static = getattr(launcher, "_is_static", False)
    ttir = _kept(result, device, "ttir") if is_static else kernel.asm.get("ttir", "")
    if not ttir or nothing_for_twill(ttir) is not None:
        return
    if is_static:
        name, arg_names = kernel.name, kernel.arg_names
        absent = result._get_arg_lists(arg_names, kernel.declared_constexprs)[2]
        given = [one for i, one in enumerate(arg_names) if i not in kernel.full_constexprs and one not in absent]
        first = 0
    else:
        function = kernel.src.fn
        name, arg_names = function.__name__, function.arg_names
        # The launcher gives function, metadata and hooks before them.
        given, first = list(arg_names), 5
    target = SimpleNamespace(backend=meta["device_type"], arch=meta["cc"])
    function = Function(name, list(arg_names), SOURCE)
    ttir = _FILE.sub(f'"{SOURCE}":', ttir)

    def stock() -> Compiled:
        if not is_static:
            return configurations.of_kernel(kernel)
        return Compiled(None, json.loads(_kept(result, device, "json")), getattr(kernel, "n_spills", None) or 0)

    runner = names["runner"]
    # Triton's own launcher, which this is in the place of already.
    runner = runner.original if isinstance(runner, SettledLauncher) else runner
    found = Kernel(function, None, ttir, target, device, given, first, [], stock, len(given))
    names["runner"] = Runner(activity, runner, found).launcher


def _kept(result: Any, device: int, what: str) -> str:
    """The TTIR or metadata of a kernel of which Inductor keeps the machine code alone, from Triton's cache; empty if gone."""
    from torch._inductor.runtime import triton_heuristics as inductor

    folder = Path(inductor.triton_cache_dir(device), inductor.triton_hash_to_path_key(result.kernel.hash))
    try:
        return (folder / f"{result.kernel.name}.{what}").read_text(encoding="utf-8")
    except OSError:
        return ""
