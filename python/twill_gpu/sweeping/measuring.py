"""The best configurations on the GPU: compiled, checked and timed side by side."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import needs
from ..errors import InputError, TwillError
from ..machine import Machine
from . import jobs
from .journal import Journal
from .progress import Line
from .space import Candidate

ROUNDS = 31
"""Samples of each kernel."""
SAMPLE_MILLISECONDS = 1.0
"""Launches between two events, in time: events hinder launches that follow each other closely."""
TOLERANCE = 2e-2
"""Largest difference from the reference, relative to its largest value, with which a kernel counts as right."""

Timed = dict[str, Any]


def measured(
    function: Any,
    best: Sequence[Candidate],
    machine: Machine,
    limits: Mapping[str, object],
    arguments: Callable[[Mapping[str, Any]], tuple[Any, ...]],
    reference: Callable[..., Any] | None,
    journal: Journal,
    line: Line,
) -> dict[int, Timed]:
    """Fields of rows by index: `milliseconds` and `error`, or `reason` where a kernel cannot run or is wrong."""
    torch = torch_with_gpu()
    device = torch.cuda.get_device_name(torch.cuda.current_device())
    keys = {one.index: _key(one, limits, device) for one in best}
    missing = [one for one in best if keys[one.index] not in journal]
    found: dict[int, Timed] = {one.index: journal.get(keys[one.index]) or {} for one in best if one not in missing}
    launches = {}
    for done, one in enumerate(missing):
        line.say(f"kernels: {done} of {len(missing)} compiled and checked")
        try:
            launch, error = _checked(function, one, machine, limits, arguments, reference)
        except Exception as error:
            kind = "" if isinstance(error, TwillError) else f"{type(error).__name__}: "
            found[one.index] = {"reason": f"not timed: {kind}{error}"}
            continue
        if error is not None and not error <= TOLERANCE:
            why = f"not timed: its result is wrong by {error:.1e} of the largest value"
            found[one.index] = {"reason": why} if math.isinf(error) else {"error": error, "reason": why}
            continue
        launches[one.index], found[one.index] = launch, {} if error is None else {"error": error}
    for index, milliseconds in _medians(torch, launches, line).items():
        found[index]["milliseconds"] = milliseconds
    for one in missing:
        # A failed job may succeed another time.
        if one.index in launches:
            journal.add(keys[one.index], jobs.MEASURE, found[one.index])
    line.end()
    return found


def torch_with_gpu() -> Any:
    """The module, if it has a GPU. Raises `InputError` where not."""
    needs.triton("measure")
    torch = needs.torch("measure")
    if not torch.cuda.is_available():
        raise InputError("measure needs a GPU, and there is none")
    return torch


def _key(one: Candidate, limits: Mapping[str, object], device: str) -> str:
    question: dict[str, Any] = {**(one.question or {})}
    return jobs.key(jobs.MEASURE, {**question, "limits": dict(limits), "device": device})


def _checked(
    function: Any,
    one: Candidate,
    machine: Machine,
    limits: Mapping[str, object],
    arguments: Callable[[Mapping[str, Any]], tuple[Any, ...]],
    reference: Callable[..., Any] | None,
) -> tuple[Callable[[], object], float | None]:
    """A launch of the kernel, and how wrong its result is; Triton's own fallback is no result."""
    from ..jit_kernel import JitKernel

    while hasattr(function, "fn") and not hasattr(function, "device_caches"):
        function = function.fn
    kernel = JitKernel(
        function.fn if isinstance(function, JitKernel) else function, machine, "error", {**limits, **one.options}
    )
    given, grid = arguments(one.constexprs)

    def launch() -> object:
        return kernel[grid](*given, **one.constexprs)

    launch()
    if reference is None:
        return launch, None
    pairs = reference(*given)
    pairs = [pairs] if isinstance(pairs, tuple) else list(pairs)
    return launch, max(_error(got, wanted) for got, wanted in pairs)


def _error(got: Any, wanted: Any) -> float:
    """Largest difference relative to the largest value; infinite where something is not a number."""
    difference = (got.double() - wanted.double()).abs().max().item()
    largest = wanted.double().abs().max().item()
    error = difference / largest if largest else difference
    return error if math.isfinite(error) else math.inf


def _medians(torch: Any, launches: Mapping[int, Callable[[], object]], line: Line) -> dict[int, float]:
    """Milliseconds of a launch of each kernel: all in turn, and every other round in opposite order."""
    counts = {
        index: max(1, round(SAMPLE_MILLISECONDS / _sample(torch, launch, 3))) for index, launch in launches.items()
    }
    samples: dict[int, list[float]] = {index: [] for index in launches}
    for number in range(ROUNDS):
        line.say(f"timing: {number} of {ROUNDS} rounds")
        for index in list(launches)[:: 1 if number % 2 == 0 else -1]:
            samples[index].append(_sample(torch, launches[index], counts[index]))
    return {index: statistics.median(times) for index, times in samples.items()}


def _sample(torch: Any, launch: Callable[[], object], count: int) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        launch()
    end.record()
    end.synchronize()
    milliseconds: float = begin.elapsed_time(end)
    return max(milliseconds / count, 1e-6)
