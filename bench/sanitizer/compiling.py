"""Kernels, compiled so that compute-sanitizer can follow them."""

import shutil
from collections.abc import Callable
from pathlib import Path

from bench.random_programs.sides import MACHINE, SEARCH_SECONDS, forms


def compile_zoo(task: dict, stage: Callable[[str], None]) -> dict:
    """Makes the kernels of a TTIR in each form, and stock Triton's: by form nothing, or why there is none."""
    from bench.differential.sides import ours, stock, warps_of
    from twill_gpu import backend

    sides: dict[str, str] = {}
    for name in task["forms"]:
        stage(name)
        folder = task["folder"] / name
        try:
            options = forms(0)[name] | ({"num_warps": 4, "num_stages": 3} if name == "multistage" else {})
            made = backend.compile_kernel(
                task["ttir"].read_text(), task["ttir"].stem, MACHINE, {"time_limit": SEARCH_SECONDS, **options}
            )
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(made, folder)
            ours(folder).compile()
            stock(task["ttir"], warps_of(folder))
            sides[name] = ""
        except Exception as error:
            sides[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return {"sides": sides}


def arrive_by_all_lanes(task: dict, stage: Callable[[str], None]) -> dict:
    """Makes all lanes of a Gluon kernel's warps arrive at barriers: racecheck follows single threads, and not what
    `bar.warp.sync` orders before one of them."""
    from bench.differential.sides import ours

    stage("all lanes")
    path: Path = task["folder"] / "kernel.py"
    text = path.read_text()
    one = "ARRIVING_LANES = gl.constexpr(1)"
    if one in text:
        path.write_text(text.replace(one, "ARRIVING_LANES = gl.constexpr(32)"))
        ours(task["folder"]).compile()
    return {}
