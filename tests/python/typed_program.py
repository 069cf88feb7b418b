"""A user's program, for type checkers (test_types.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twill_gpu
from typing_extensions import assert_type


@twill_gpu.jit
def bare(x_ptr: Any, y_ptr: Any, n: int) -> None: ...


@twill_gpu.jit(machine="h200", on_failure="error", options={"time_limit": 60, "persistent": False})
def with_arguments(x_ptr: Any, y_ptr: Any, n: int) -> None: ...


@twill_gpu.custom_op("typed::launch", mutates_args={"y"})
def launch(x: Any, y: Any) -> None:
    bare[(1, 1, 1)](x, y, 16, num_warps=4)
    with_arguments[lambda meta: (meta["n"],)](x, y, 16)


def told(text: str) -> None:
    print(text)


def main() -> None:
    assert_type(bare, twill_gpu.JitKernel)
    assert_type(with_arguments, twill_gpu.JitKernel)
    assert_type(twill_gpu.jit(), Callable[[Callable[..., Any]], twill_gpu.JitKernel])

    machine = twill_gpu.Machine("h200").with_numbers("small", {"memory.shared_bytes": 131072})
    found = twill_gpu.schedule("gemm", machine, sub_tiles=2, time_limit=10, progress=told)
    assert_type(found, twill_gpu.Schedule)
    assert_type(found.ii, int)
    assert_type(found.stages, "int | None")
    assert_type(found.svg(), "str | None")
    assert_type(found.loops, "tuple[twill_gpu.LoopSchedule, ...]")
    assert_type([one.source for one in found.operations], "list[tuple[str, int] | None]")
    assert_type(found.explain(), twill_gpu.Explanation)
    assert_type(found.compile(assemble=False), "dict[str, str]")
    for other in twill_gpu.alternatives("gemm", 2, within=0.05):
        assert_type(other, twill_gpu.Schedule)

    fit = twill_gpu.fit("gemm.ttir", machine)
    assert_type(fit.needs["shared_memory"].required, int)
    swept = twill_gpu.sweep("gemm.ttir", {"sub_tiles": [1, 2]}, machine=machine, solve=1, progress=False)
    if swept.best is not None:
        assert_type(swept.best.ii, "int | None")
    large = twill_gpu.gaus(None, random="nodes=100", time_limit=1)
    assert_type(large.starts, "dict[str, int]")
    graph = twill_gpu.Graph("g", machine="h100").operation("C", {"tensor": 256}).dependence("C", "C", 1)
    assert_type(twill_gpu.schedule(graph), twill_gpu.Schedule)
    try:
        twill_gpu.schedule("nothing")
    except twill_gpu.InputError as error:
        assert_type(error.place, "tuple[str, int] | None")
    print(twill_gpu.__version__.upper(), twill_gpu.machines(), twill_gpu.cache_info().size)
