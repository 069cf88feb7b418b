"""What is done for one configuration: plain data in, plain data out, in a thread or on another machine."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable

from .. import _twill
from ..errors import InfeasibleError, InputError
from . import flop

FIT, SOLVE, MEASURE = "fit", "solve", "measure"

REPORT = 400
"""Columns of a report, so many that it breaks no line."""

Outcome = dict


def run(step: str, question: dict, progress: Callable[[str], None] | None = None) -> Outcome:
    """What a step finds out about a question."""
    return {FIT: lambda: verdict(question), SOLVE: lambda: solved(question, progress)}[step]()


def key(step: str, question: dict) -> str:
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


def verdict(question: dict) -> Outcome:
    """Whether it fits, and its proven bound, without search.

    `fits`: true, false, or null where only a search can tell; `reason`; `lower_bound` in cycles of one iteration (of
    each loop, by weight); `flop` of the same; `shared_bytes` needed at least; `weights` of its loops.
    """
    try:
        loops, kernel = _twill.schedule({**question, "options": [*question["options"], "--work-limit=1"]})
    except (InputError, InfeasibleError) as error:
        return {"fits": False, "reason": str(error)}
    files, weights, bound, status = _read(loops, kernel)
    flops = flop.of_loops(question["text"])
    chosen = _option(question, "loop")
    flops = flops[chosen : chosen + 1] if chosen is not None else flops
    if len(flops) != len(files):
        return {
            "fits": False,
            "reason": f"{question['name']}: {len(files)} of {len(flops)} loops are scheduled; choose one by `loop`",
        }
    each = (_option(question, "programs-per-cta") or 1) * (_option(question, "unroll") or 1)
    found: Outcome = {
        "fits": False if status == "infeasible" else None,
        "reason": "no schedule exists (proved); twill explain says why" if status == "infeasible" else None,
        "lower_bound": bound,
        "flop": each * sum(weight * one for weight, one in zip(weights, flops)),
        "shared_bytes": max(map(_least_shared, files)),
        "weights": weights,
    }
    return found


def solved(question: dict, progress: Callable[[str], None] | None = None) -> Outcome:
    """The exact schedule.

    `status`, `ii` (of each loop, by weight), `lower_bound`, `stages`, `length`, `shared_bytes`, `registers`.
    """
    try:
        loops, kernel = _twill.schedule(question, progress)
    except (InputError, InfeasibleError) as error:
        return {"status": "infeasible", "reason": str(error)}
    files, weights, bound, status = _read(loops, kernel)
    found: Outcome = {"status": status, "lower_bound": bound}
    if all(file.get("initiation_interval") is not None for file in files):
        found["ii"] = sum(weight * file["initiation_interval"] for weight, file in zip(weights, files))
        found["stages"] = max(file["stages"] for file in files)
        found["length"] = max(file["length"] for file in files)
        found["shared_bytes"] = max(map(_shared, loops))
        found["registers"] = max(
            (group["registers_per_thread"] for file in files for group in file["groups"]), default=0
        )
    return found


def _read(loops: list[str], kernel: str | None) -> tuple[list[dict], list[int], int, str]:
    """Schedule files, how often each loop counts, the bound of all, the status of all."""
    files = [json.loads(text) for text in loops]
    if kernel is None:
        order = ("optimal", "feasible", "unknown", "infeasible")
        status = max((file["status"] for file in files), key=order.index)
        return files, [1] * len(files), sum(file["lower_bound"]["interval"] for file in files), status
    common = json.loads(kernel)
    return files, common["weights"], common["lower_bound"], common["status"]


def _option(question: dict, name: str) -> int | None:
    values = [word.split("=", 1)[1] for word in question["options"] if word.startswith(f"--{name}=")]
    return int(values[-1]) if values else None


def _reserved(file: dict) -> int:
    return file["problem"]["graph"].get("reserved", {}).get("shared_memory", 0)


def _held(file: dict, streaming: bool) -> int:
    """Bytes of one copy of each value in shared memory."""
    operations = file["problem"]["graph"]["operations"]
    kept = (one for one in operations if bool(one.get("streaming")) == streaming)
    return sum((one.get("result") or {}).get("shared_memory", 0) for one in kept)


def _least_shared(file: dict) -> int:
    return _reserved(file) + _held(file, streaming=True)


def _shared(text: str) -> int:
    """Bytes of shared memory of a schedule, as its report counts them."""
    match = re.search(r"Shared memory: ([0-9']+)", _twill.timeline(text, REPORT, False))
    return int(match[1].replace("'", "")) if match else 0
