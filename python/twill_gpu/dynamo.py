"""torch.compile is to do nothing with kernels. Imports no torch, but uses it where somebody else did."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_told: set[Any] = set()


def leave_alone(*functions: Callable[..., Any]) -> None:
    """Keeps Dynamo from translating these functions, and what they call, where torch.compile is in use.

    Without it Dynamo, having left a launch out of its graphs, tries each Python function of the launch by itself.
    """
    frames = sys.modules.get("torch._C._dynamo.eval_frame")
    if frames is None or functions[0] in _told:
        return
    _told.update(functions)
    try:
        skip = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.SKIP)
        for function in functions:
            frames.set_code_exec_strategy(function.__code__, skip)
    except (AttributeError, TypeError):
        # Another torch than 2.7 to 2.11: slower and with its warnings, but right.
        pass


def refuse_to_be_traced(name: str) -> None:
    """Ends Dynamo's graph where it looks into a kernel, as it does into those below `triton.autotune`.

    It would hand their Python source to stock Triton.
    """
    guards = sys.modules.get("torch._guards")
    if guards is not None and "torch._dynamo.exc" in sys.modules and guards.TracingContext.try_get() is not None:
        raise sys.modules["torch._dynamo.exc"].Unsupported(
            f"{name} is a kernel of twill_gpu, whose launches torch.compile cannot see into: "
            "put the launch into an operator made with twill_gpu.custom_op to have it in the graph"
        )
