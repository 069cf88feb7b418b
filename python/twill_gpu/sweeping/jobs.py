"""What is done for one configuration: plain data in, plain data out, in a thread or on another machine."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from .. import _twill
from ..backend import toolchain
from ..errors import InfeasibleError, InputError
from ..options import is_on
from .launch_time import of_kernel

FIT, SOLVE, SIMULATE, MEASURE = "fit", "solve", "simulate", "measure"

REPORT = 400
"""Columns of a report: enough that it breaks no line."""

Outcome = dict[str, Any]


def run(step: str, question: _twill.Question, progress: Callable[[str], None] | None = None) -> Outcome:
    """What a step finds out about a question."""
    if step == FIT:
        return verdict(question)
    return {SOLVE: solved, SIMULATE: simulated}[step](question, progress)


def key(step: str, question: Mapping[str, Any]) -> str:
    """The same for the same step, question and version of Twill."""
    text = json.dumps([step, question, version()], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def version() -> str:
    """Of this package."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as of

    try:
        return of("twill-gpu")
    except PackageNotFoundError:
        return "none"


def verdict(question: _twill.Question) -> Outcome:
    """Whether it fits, and its proven bound, without search.

    `fits`: true, false, or null where only a search can tell; `reason`; `lower_bound` in cycles of one iteration (of
    each loop, by weight); `flop` and `moved_bytes` of the same; `shared_bytes` needed at least; `weights` of its loops.
    """
    try:
        text, weights = _twill.fit(question)
    except (InputError, InfeasibleError) as error:
        return {"fits": False, "reason": str(error)}
    fit = json.loads(text)
    needs = {need["resource"]: need["required"] for need in fit["needs"]}
    why = fit.get("misfit")
    return {
        "fits": {"fits": True, "does_not_fit": False}.get(fit["verdict"]),
        "reason": f"{why['reason']}; {why['way_out']}" if why else None,
        "lower_bound": sum(weight * one["bound"]["interval"] for weight, one in zip(weights, fit["loops"])),
        "flop": sum(weight * one["flop"] for weight, one in zip(weights, fit["loops"])),
        "moved_bytes": sum(weight * moved(one.get("traffic", {})) for weight, one in zip(weights, fit["loops"])),
        "shared_bytes": needs.get("shared_memory"),
        "registers": needs.get("registers"),
        "weights": weights,
    }


def moved(traffic: dict[str, Any]) -> int:
    """Bytes that an iteration moves through shared memory and from and to the L2 cache."""
    return int(traffic.get("shared", 0) + traffic.get("global", 0))


def solved(question: _twill.Question, progress: Callable[[str], None] | None = None) -> Outcome:
    """The exact schedule, as it is for the kernel that is generated.

    `status`, `ii` (of each loop, by weight), `lower_bound`, `stages`, `length`, `shared_bytes`, `registers`; `simulated`, as
    `ii`, by simulation of the warp programs.
    """
    try:
        loops, kernel = _twill.schedule(question, progress)
    except (InputError, InfeasibleError) as error:
        return {"status": "infeasible", "reason": str(error)}
    files, weights, bound, status = _read(loops, kernel)
    found: Outcome = {"status": status, "lower_bound": bound}
    if all(file.get("initiation_interval") is not None for file in files):
        found["ii"] = sum(weight * file["initiation_interval"] for weight, file in zip(weights, files))
        if all("simulated" in file for file in files):
            found["simulated"] = sum(weight * file["simulated"]["cycles"] for weight, file in zip(weights, files))
        found["stages"] = max(file["stages"] for file in files)
        found["length"] = max(file["length"] for file in files)
        # The schedule needs so much; rings that are asked for may take more, which fit knows.
        found["shared_bytes"] = max(map(_shared, loops))
        found["registers"] = max(
            (group["registers_per_thread"] for file in files for group in file["groups"]), default=0
        )
    return found


def simulated(question: _twill.Question, progress: Callable[[str], None] | None = None) -> Outcome:
    """What the generated kernel takes by simulation, as `launch_time.of_kernel` keeps it; `reason` where there is none.

    It is assembled where this Python can; then its machine code is what is simulated.
    """
    python, tools = (sys.executable, toolchain()) if can_assemble(question) else (None, "")
    try:
        answer = json.loads(_twill.compile(question, python, "twill_gpu.sweep(…)", tools, progress))
    except (InputError, InfeasibleError) as error:
        return {"reason": str(error)}
    return of_kernel(json.loads(answer["files"]["kernel.json"]))


def can_assemble(question: _twill.Question) -> bool:
    """Whether it is to be assembled, and this Python has what does that: NVRTC for CUDA, otherwise Triton."""
    if is_on(question["options"], "no_assemble"):
        return False
    in_cuda = question["options"].get("emit") == "cuda"
    try:
        return importlib.util.find_spec("cuda.bindings.nvrtc" if in_cuda else "triton") is not None
    except ModuleNotFoundError:
        return False


def _read(loops: list[str], kernel: str | None) -> tuple[list[dict[str, Any]], list[int], int, str]:
    """Schedule files, how often each loop counts, the bound of all, the status of all."""
    files = [json.loads(text) for text in loops]
    if kernel is None:
        order = ("optimal", "feasible", "unknown", "infeasible")
        status = max((file["status"] for file in files), key=order.index)
        return files, [1] * len(files), sum(file["lower_bound"]["interval"] for file in files), status
    common = json.loads(kernel)
    return files, common["weights"], common["lower_bound"], common["status"]


def _shared(text: str) -> int:
    """Bytes of shared memory of a schedule, as its report counts them."""
    match = re.search(r"Shared memory: ([0-9,]+)", _twill.timeline(text, REPORT, False))
    return int(match[1].replace(",", "")) if match else 0
