"""Twill under kernels that nobody changed: `install()`, or `TWILL=1` in the environment.

Each launch of a compiled kernel ends in a `launches.Runner`: those of `triton.jit` functions, under `triton.autotune` and
`triton.heuristics` too, and those of torch.compile's kernels. A first launch is stock Triton's; background processes make kernels
of its TTIR; when there are some, launches alternate until it is settled who is the fastest. Nothing is launched twice, and nobody
waits.
"""

from __future__ import annotations

import os
import threading

from .. import needs
from ..errors import InputError
from ..replaced import Replaced
from .activity import Activity
from .report import KernelStatus, StatusReport, status_of
from .settings import Log, Mode, Settings, default_jobs

__all__ = ["KernelStatus", "StatusReport", "install", "status", "uninstall"]

_activity: Activity | None = None
_lock = threading.Lock()
_replaced = Replaced()


def install(
    mode: str = "1",
    *,
    only: str | None = None,
    skip: str | None = None,
    jobs: int | None = None,
    log: str = "off",
    configurations: bool = True,
) -> None:
    """Puts Twill under all Triton kernels of this process, until `uninstall`. Calling it again changes nothing.

    mode: `1` makes kernels in the background; `wait` before the first launch; `frozen` uses what earlier processes settled;
        `check` compares Twill's results with stock Triton's, which has all launches.
    only, skip: regular expressions for names of kernels that it may take, and that it leaves alone.
    jobs: background processes, by default a quarter of the cores and at most four.
    configurations: try stock Triton's compiler with other numbers of stages and warps, too.
    log: `off`, `summary` (a table when the process ends) or `each` (a line for each kernel, too).

    Raises `MissingError` without Triton 3.6 to 3.9, `InputError` for a value that an argument cannot have.
    """
    texts = {"TWILL": mode, "TWILL_ONLY": only or "", "TWILL_SKIP": skip or "", "TWILL_LOG": log}
    texts["TWILL_CONFIGURATIONS"] = "" if configurations else "0"
    texts["TWILL_BLACKWELL"] = os.environ.get("TWILL_BLACKWELL", "")
    settings = Settings.of_environment({**texts, "TWILL_JOBS": str(default_jobs() if jobs is None else jobs)})
    if settings is None:
        raise InputError(f"mode={mode!r}: it may be {', '.join(one.value for one in Mode)}")
    install_with(settings)


def install_with(settings: Settings) -> None:
    """As `install`, with settings."""
    with _lock:
        if _activity is None:
            _install(settings)


def _install(settings: Settings) -> None:
    global _activity
    triton = needs.triton("twill_gpu.install")
    from triton.compiler.compiler import CompiledKernel
    from triton.runtime.autotuner import Autotuner

    from . import hooks, inductor, stock

    activity = Activity(settings, triton, stock.Launches())
    _replaced.replace(CompiledKernel, "run", hooks.of_compiled(activity, vars(CompiledKernel)["run"]))
    _replaced.replace(Autotuner, "run", hooks.of_tuner(activity, Autotuner.run))
    _replaced.replace(Autotuner, "_bench", hooks.of_tuning(activity, Autotuner._bench))
    _replaced.wait(inductor.follow(activity, _replaced.replace))
    _activity = activity


def uninstall() -> None:
    """Leaves all later launches to stock Triton, and ends background processes."""
    global _activity
    _replaced.restore()
    if _activity is not None:
        _activity.end()
        _activity = None


def status() -> StatusReport:
    """What became of each specialisation that was launched since `install`, those without an MMA in a loop aside."""
    found = list(_activity.found) if _activity is not None else []
    for one in found:
        one.wait_until_begun()
    return StatusReport(status_of(one) for one in found if one.reason not in ("it has no MMA", "it has no loop"))
