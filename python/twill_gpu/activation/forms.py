"""The forms in which Twill makes somebody else's kernel: by its schedule in Gluon and in CUDA, and without warp specialisation."""

from __future__ import annotations

import functools
import importlib.metadata

from ..contest import CUDA, MULTISTAGE, ONE_STAGE, TWILL, Side
from .configurations import Configuration

OPTIONS: dict[Side, dict[str, object]] = {MULTISTAGE: {"schedule": "multistage"}, TWILL: {}, CUDA: {"emit": "cuda"}}
"""What Twill's kernels of a specialisation are made by, the one first that is made sooner."""


def options_of(own: Configuration | None) -> dict[Side, dict[str, object]]:
    """What Twill's kernels are made by, with the warps and stages that a kernel's author chose, where it may have them.

    One stage may have been chosen for its own sake, or for an older GPU: then there is a kernel whose loops load ahead, too.
    """
    options = OPTIONS if has_nvrtc() else {side: one for side, one in OPTIONS.items() if side != CUDA}
    if own is None:
        return options
    warps = {"num_warps": own.num_warps} if own.num_warps in (1, 2, 4, 8) else {}
    stages = {"num_stages": own.num_stages} if 0 < own.num_stages <= 8 else {}
    multistage = {**OPTIONS[MULTISTAGE], **warps}
    if own.num_stages == 1:
        others = {side: one for side, one in options.items() if side != MULTISTAGE}
        return {MULTISTAGE: multistage, ONE_STAGE: {**multistage, **stages}, **others}
    return {**options, MULTISTAGE: {**multistage, **stages}}


@functools.cache
def has_nvrtc() -> bool:
    """Whether there is what kernels in CUDA are compiled and launched by: torch brings it."""
    try:
        return all(importlib.metadata.version(one) for one in ("cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime"))
    except importlib.metadata.PackageNotFoundError:
        return False
