"""A kernel as stock Triton compiles it, and as its folder has it."""

import importlib.util
import json
import re
from pathlib import Path

from .signature import arguments_of

STAGES = 2
"""Of stock Triton's software pipelines."""


def stock(ttir: Path, warps: int):
    """What stock Triton makes of TTIR. It takes descriptors as kernels from Python do, each with shape and strides."""
    import triton
    from triton.backends.compiler import GPUTarget

    options = {"num_warps": warps, "num_stages": STAGES}
    compiled = triton.compile(str(ttir), target=GPUTarget("cuda", 90, 32), options=options)
    compiled.src.signature = {
        index: {"pointer": f"*{one.element}", "scalar": one.element}.get(
            one.kind, f"tensordesc<{one.element}{list(one.block)}>"
        )
        for index, one in enumerate(arguments_of(ttir.read_text()))
    }
    return compiled


def ours(folder: Path):
    """The kernel of a folder, by its launch.py."""
    name = "launch_" + re.sub(r"\W", "_", folder.name)
    spec = importlib.util.spec_from_file_location(name, folder / "launch.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load(folder)


def warps_of(folder: Path) -> int:
    return json.loads((folder / "kernel.json").read_text())["num_warps"]
