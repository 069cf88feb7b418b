"""Every Triton kernel that a program compiles, in a folder: `twill collect -- python app.py`, or `record()`.

A folder has, of each kernel, its TTIR (`NAME-DIGEST.ttir`) and a record (`NAME-DIGEST.json`): signature, constexprs, and how
often and how long it was launched on which grids. The commands of `twill` take the folder where they take kernels.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

from .. import inductor, needs
from ..replaced import Replaced
from .folder import Collected, read
from .recorder import Recorder

__all__ = ["VARIABLE", "Collected", "read", "record", "stop"]

VARIABLE = "TWILL_COLLECT"
"""Names the folder in the environment of a program, and of all that it starts."""

_recorder: Recorder | None = None
_replaced = Replaced()


def record(folder: str | os.PathLike[str]) -> None:
    """Records all Triton kernels of this process from now on, until `stop`. Calling it again changes nothing.

    Raises `MissingError` without Triton, `InputError` where the folder cannot be written.
    """
    global _recorder
    if _recorder is not None:
        return
    needs.triton("twill collect")
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    from . import hooks

    recorder = Recorder(Path(folder))
    _replaced.replace(JITFunction, "run", hooks.of_launches(recorder, JITFunction.run))
    _replaced.replace(Autotuner, "_bench", hooks.of_tuning(recorder, Autotuner._bench))
    take = functools.partial(hooks.of_inductor, recorder)
    _replaced.wait(inductor.follow(_replaced.replace, take, recorder.tuning, recorder.left))
    _recorder = recorder


def record_if_asked() -> None:
    """Records where the environment says so."""
    folder = os.environ.get(VARIABLE)
    if folder:
        record(folder)


def stop() -> None:
    """Ends recording, and writes what is not written yet."""
    global _recorder
    _replaced.restore()
    if _recorder is not None:
        _recorder.end()
        _recorder = None
