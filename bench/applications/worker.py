"""One case, in a process of its own: stock Triton, Twill, both timed, results compared; a line of JSON.

    python -m bench.applications.worker CASE SOURCES MODE [LOCK]

With LOCK, a file, one process at a time measures.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from . import graphs, planting
from .case import Call, Case, cases

TRIALS = 150
"""Calls within which it is settled who is faster."""
TIMED, MOST_TIMED = 30, 240
"""Timed calls of each side; the median counts. More where it is uncertain: calls that wait for the CPU are."""
CERTAIN, LONGEST = 0.004, 15.0
"""The standard error of a median, relative to it, that is small enough, and how many seconds it is sought."""
WARM = 3
"""Calls before them."""
SPIN = 5_000_000
"""Cycles that the GPU is busy while a call is launched, some 3 ms: the CPU's time does not count unless it is longer."""


def find(name: str) -> Case:
    """The case of a name, `package.case`."""
    importlib.import_module(f"bench.applications.packages.{name.split('.')[0]}")
    return next(one for one in cases() if f"{one.package}.{one.name}" == name)


def main() -> None:
    """Answers for a case."""
    name, sources, mode = sys.argv[1:4]
    lock = sys.argv[4] if len(sys.argv) > 4 else None
    sys.path[:0] = sources.split(":")
    started = time.monotonic()
    try:
        row = measured(find(name), mode, lock)
    except BaseException as error:
        row = {"error": f"{type(error).__name__}: {error}"[:600], "trace": traceback.format_exc()[-1500:]}
    print("\n" + json.dumps({"case": name, **row, "seconds": round(time.monotonic() - started, 1)}), flush=True)


@contextlib.contextmanager
def alone(lock: str | None) -> Iterator[None]:
    """Waits until no other process measures."""
    with open(lock or "/dev/null", "w", encoding="utf-8") as file:
        if lock:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def measured(case: Case, mode: str, lock: str | None) -> dict[str, Any]:
    """Times and differences of a case."""
    import torch
    from twill_gpu import activation

    torch.manual_seed(torch.seed())
    made = case.make()
    parts = made if isinstance(made, tuple) else (made,)
    call, reference, peers = (*parts, *(None, {})[len(parts) - 1 :])
    if mode == "check":
        return compared(call)
    if mode.startswith(planting.MODE):
        return planting.compared(call, planting.seeds_of(mode.removeprefix(planting.MODE)))
    activation.install_with(settings(mode))
    first = time.monotonic()
    # Some packages keep what Triton compiled and launch that.
    call()
    torch.cuda.synchronize()
    first_seconds = time.monotonic() - first
    with alone(lock):
        return {"first_call_seconds": round(first_seconds, 2), **timed(case, call, reference, peers)}


def timed(case: Case, call: Call, reference: Call | None, peers: dict[str, Call]) -> dict[str, Any]:
    """Times and differences of calls while Twill is active."""
    import torch
    from twill_gpu import activation
    from twill_gpu.activation import checking

    with paused(activation):
        stock = [one.clone() for one in call()]
        torch.cuda.synchronize()
        again = call()
        varies = [difference(a, b) for a, b in zip(again, stock)]
        row: dict[str, Any] = {"error_stock": against(reference, stock)}
    worst, errors = [0.0] * len(stock), row["error_stock"]
    for _ in range(TRIALS):
        results = call()
        torch.cuda.synchronize()
        worst = [max(worst_so_far, difference(a, b)) for worst_so_far, a, b in zip(worst, results, stock)]
        if is_settled(activation):
            break
    row["error_twill"] = errors and against(reference, call())
    row["differences"] = [float(f"{one:.3g}") for one in worst]
    row["stock_varies"] = [float(f"{one:.3g}") for one in varies]
    row["allowed"] = [checking.allowed([one, *(other for other in stock if other.is_floating_point())]) for one in stock]
    row["kernels"] = [
        {
            "name": one.name,
            "status": one.status,
            "reason": " ".join(one.reason.split())[:300],
            "wins": one.wins,
            "grids": one.grids,
            "speed": one.speed and round(one.speed, 3),
            "configurations": one.configurations,
            "gain": one.gain and round(one.gain, 3),
            "launches": one.launches,
            "collected": found.kernel and collected_name(one.name, found.kernel.ttir),
            "times": [
                {"winner": c.winner, **{side: round(ms, 4) for side, ms in c.milliseconds.items()}}
                for c in found.contests.values()
            ],
        }
        for one, found in of_mma(activation)
    ]
    stock_wall, twill_wall = wall_in_turns(lambda: paused(activation), contextlib.nullcontext, call=call)
    row["stock_wall_ms"], row["twill_wall_ms"] = round(stock_wall, 4), round(twill_wall, 4)
    stock_ms, twill_ms = in_turns(lambda: paused(activation), contextlib.nullcontext, call=call)
    row["stock_ms"], row["twill_ms"] = round(stock_ms, 4), round(twill_ms, 4)
    row["peers"] = {name: peer_times(peer, stock) for name, peer in peers.items()}
    row["graph"] = graphs.captured(call, lambda: paused(activation), activation)
    row["tolerance"] = case.tolerance
    return row


def peer_times(peer: Call, stock: Sequence[Any]) -> dict[str, Any]:
    """The time of another library's call and its largest difference from stock Triton's results; an error where it has none."""
    try:
        differences = [difference(one.view(other.shape), other) for one, other in zip(peer(), stock)]
        return {"ms": round(milliseconds(peer), 4), "difference": float(f"{max(differences, default=0.0):.3g}")}
    except Exception as error:  # What a library supports is its own affair.
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def settings(mode: str) -> Any:
    """Those of the environment in a mode; where it waits for kernels, launches alternate, so that every result is compared."""
    import dataclasses
    import os

    from twill_gpu.activation.settings import Settings

    found = Settings.of_environment({**os.environ, "TWILL": mode})
    assert found is not None, "a mode is switched on"
    return dataclasses.replace(found, alternates=True)


@contextlib.contextmanager
def paused(activation: Any) -> Iterator[None]:
    """Leaves all launches to stock Triton, those of autograd's threads too."""
    activation._activity.is_paused = True
    try:
        yield
    finally:
        activation._activity.is_paused = False


def compared(call: Callable[[], Sequence[Any]]) -> dict[str, Any]:
    """What `TWILL=check` finds in some calls; nothing is timed."""
    from twill_gpu import activation

    activation.install("check")
    for _ in range(12):
        call()
    return {"kernels": [{"name": one.name, "reason": one.reason, "checked": one.checked} for one in activation.status()]}


def of_mma(activation: Any) -> list[tuple[Any, Any]]:
    """Each specialisation with an MMA in a loop, and its status."""
    found = [one for one in activation._activity.found if one.reason not in ("it has no MMA", "it has no loop")]
    return list(zip(activation.status(), found))


def collected_name(name: str, ttir: str) -> str:
    """What `twill collect` calls a kernel."""
    from twill_gpu.collecting import folder

    return folder.path_of(Path(), name, ttir).stem


def is_settled(activation: Any) -> bool:
    """Whether each kernel is stock Triton's for good, or has no contest that is open; nor has an autotuner."""
    return all(one.is_settled for one in list(activation._activity.restored_at_end)) and all(
        one.status == "stock" or (found.challengers and found.contests and one.grids == len(found.contests))
        for one, found in of_mma(activation)
    )


def milliseconds(call: Callable[[], Sequence[Any]]) -> float:
    """The median time of a call on the GPU."""
    return in_turns(contextlib.nullcontext, call=call)[0]


def in_turns(*sides: Callable[[], AbstractContextManager[None]], call: Callable[[], Sequence[Any]]) -> list[float]:
    """The median time of a call on the GPU, within each of some contexts: they take turns, as clocks drift."""
    import torch

    times: list[list[float]] = [[] for _ in sides]
    end_at = time.monotonic() + LONGEST
    for turn in range(WARM + MOST_TIMED):
        is_over = time.monotonic() > end_at
        if turn >= WARM + TIMED and (is_over or all(uncertainty(own) <= CERTAIN for own in times)):
            break
        for side, own in zip(sides, times):
            with side():
                torch.cuda.synchronize()
                torch.cuda._sleep(SPIN)
                start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                start.record()
                call()
                end.record()
                torch.cuda.synchronize()
            if turn >= WARM:
                own.append(start.elapsed_time(end))
    return [statistics.median(own) for own in times]


def uncertainty(times: Sequence[float]) -> float:
    """The standard error of a median, relative to it, of times that are spread as normally distributed ones."""
    lower, median, upper = statistics.quantiles(times, n=4)
    # A quarter of them is 0.674 standard deviations off or more, and the median's error is √(π/2) of the mean's.
    return 1.2533 * (upper - lower) / 1.349 / len(times) ** 0.5 / median


def wall_in_turns(*sides: Callable[[], AbstractContextManager[None]], call: Callable[[], Sequence[Any]]) -> list[float]:
    """The time of a call when calls follow each other, by the CPU's clock, within each of some contexts: the least of five rounds.

    They take turns: other processes come and go.
    """
    import torch

    least = [float("inf")] * len(sides)
    for _ in range(5):
        for which, side in enumerate(sides):
            with side():
                torch.cuda.synchronize()
                start = time.perf_counter()
                for _ in range(TIMED):
                    call()
                torch.cuda.synchronize()
                least[which] = min(least[which], (time.perf_counter() - start) / TIMED * 1e3)
    return least


def difference(a: Any, b: Any) -> float:
    """The largest difference, relative to the largest value of the second."""
    a, b = a.double(), b.double()
    same = (a == b) | (a.isnan() & b.isnan())
    if bool(same.all()):
        return 0.0
    largest = float(b[b.isfinite()].abs().max()) if bool(b.isfinite().any()) else 0.0
    worst = (a - b).abs().masked_fill(same, 0.0)
    return float(worst.nan_to_num(float("inf")).max()) / max(largest, 1e-30)


def against(reference: Callable[[], Sequence[Any]] | None, results: Sequence[Any]) -> list[float] | None:
    """The largest error of each result against float64, where there is a reference; of the part that it covers."""
    if reference is None:
        return None
    errors = []
    for right, result in zip(reference(), results):
        covered = result[tuple(slice(0, size) for size in right.shape)]
        errors.append(float(f"{difference(covered, right):.3g}"))
    return errors


if __name__ == "__main__":
    main()
