"""Kernels of torch.compile in the place of whose `runner` a `Runner` is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from .. import inductor
from .._twill import SettledLauncher
from ..importing import AfterImport
from . import configurations
from .configurations import Compiled
from .function import Function, nothing_for_twill
from .launches import Kernel, Runner

if TYPE_CHECKING:
    from .activity import Activity


def follow(activity: Activity, replace: Callable[[Any, str, Any], None]) -> list[AfterImport]:
    """Has kernels of torch.compile taken from when Inductor is imported. replace: puts something in the place of an attribute.

    Where Inductor compares its configurations, Twill takes the winner.
    """
    return inductor.follow(replace, partial(_take, activity), activity.suspended, partial(_left, activity))


def _left(activity: Activity, error: Exception) -> None:
    """Says once that this torch is another one than is known."""
    from .activity import say

    if not activity.left_inductor:
        activity.left_inductor = True
        say(f"twill: kernels of torch.compile stay with stock Triton: {type(error).__name__}: {error}")


def _take(activity: Activity, result: Any, launcher: Any) -> None:
    """Puts a `Runner` into a launcher, if there is something for Twill in its kernel."""
    found = inductor.launched_by(result, launcher)
    if found is None or nothing_for_twill(found.ttir) is not None:
        return
    kernel, meta, names = result.kernel, result.compile_meta, launcher.__globals__

    def stock() -> Compiled:
        if not found.is_static:
            return configurations.of_kernel(kernel)
        return Compiled(None, found.metadata(), getattr(kernel, "n_spills", None) or 0)

    target = SimpleNamespace(backend=meta["device_type"], arch=meta["cc"])
    function = Function(found.name, found.arg_names, inductor.SOURCE)
    runner = names["runner"]
    # Triton's own launcher, which this is in the place of already.
    runner = runner.original if isinstance(runner, SettledLauncher) else runner
    taken = Kernel(function, None, found.ttir, target, found.device, found.given, found.first, [], stock, len(found.given))
    names["runner"] = Runner(activity, runner, taken).launcher
