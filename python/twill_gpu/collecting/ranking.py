"""Collected kernels by the time that Twill's schedule would save, as far as that can be predicted."""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from ..errors import TwillError
from ..machine import Machine
from ..scheduling import schedule
from ..sweeping.launch_time import Gpu, milliseconds
from .folder import Collected, read
from .trips import trip_counts


@dataclass(frozen=True)
class Ranked:
    """A kernel, and what a better schedule would save."""

    collected: Collected
    predicted: float | None
    """Milliseconds of its timed launches with Twill's kernel, by simulation; None where it is not known."""
    measured: float | None
    """The same by stock Triton, as they were measured."""
    reason: str
    """Why one of them is not known."""

    @property
    def saved(self) -> float | None:
        """Milliseconds that Twill's kernel would take less; not below 0, as the faster one runs."""
        if self.predicted is None or self.measured is None:
            return None
        return max(0.0, self.measured - self.predicted)


def rank(
    folder: str | os.PathLike[str],
    machine: str | os.PathLike[str] | Machine | None = None,
    time_limit: float = 20.0,
    progress: Callable[[str], None] | None = None,
    jobs: int | None = None,
) -> list[Ranked]:
    """The kernels of a folder, those first that would save most time. Raises `InputError` where there are none.

    time_limit: seconds for the search of each.
    progress: is told of each kernel that is done.
    jobs: kernels at once; by default half as many as there are CPUs.

    Times are predicted of the generated kernel by simulation, at the machine's clock and power (`twill sweep`), and trip
    counts are computed from the launches' arguments. So they are to choose by; a GPU says what is true.
    """
    whole = Machine.of("h200" if machine is None else machine)
    gpu = Gpu.of({key: number.value for key, number in whole.numbers.items()})
    collected = read(folder)
    stop = threading.Event()

    def watch(_: str) -> None:
        if stop.is_set():
            raise InterruptedError

    found = []
    pool = ThreadPoolExecutor(jobs or max(1, (os.cpu_count() or 1) // 2))
    try:
        asked = [pool.submit(_ranked, one, whole, gpu, time_limit, watch) for one in collected]
        for count, done in enumerate(as_completed(asked), start=1):
            found.append(done.result())
            if progress is not None:
                progress(f"{found[-1].collected.ttir.stem}: scheduled and simulated, {count} of {len(asked)}")
    finally:
        # Where something was raised, what is under way ends behind it.
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
    return sorted(found, key=lambda one: (-(one.saved or 0.0), -(one.measured or 0.0), one.collected.ttir.name))


def _ranked(one: Collected, machine: Machine, gpu: Gpu, time_limit: float, watch: Callable[[str], None]) -> Ranked:
    timed = [launches for launches in one.record.launches if launches.milliseconds is not None]
    measured = sum(launches.count * (launches.milliseconds or 0.0) for launches in timed) if timed else None
    if measured is None:
        return Ranked(one, None, None, "no launch was timed")
    text = one.ttir.read_text(encoding="utf-8")
    counts = [trip_counts(text, launches.arguments, launches.grid) for launches in timed]
    if None in counts:
        return Ranked(one, None, measured, "trip counts do not follow from the arguments")
    try:
        files = schedule(one.ttir, machine, time_limit=time_limit, progress=watch).compile(assemble=False, progress=watch)
    except TwillError as error:
        return Ranked(one, None, measured, str(error).splitlines()[0])
    kernel: dict[str, Any] = json.loads(files["kernel.json"])
    predicted = 0.0
    for launches, trips in zip(timed, counts):
        try:
            time = milliseconds(kernel, (launches.grid, [math.ceil(count) for count in trips or ()]), gpu)
        except ValueError:
            return Ranked(one, None, measured, "its loops are not those of the generated kernel")
        if time is None:
            why = kernel.get("in_order")
            return Ranked(one, None, measured, f"it has no pipeline: {why}" if why else "it is not simulated")
        predicted += launches.count * time
    return Ranked(one, predicted, measured, "")


def table(found: Sequence[Ranked]) -> str:
    """Kernels with what they take, what they would take, and what that saves."""
    rows: list[tuple[str, ...]] = [("kernel", "launches", "ms", "predicted ms", "saves ms")]
    for one in found:
        numbers = (one.measured, one.predicted, one.saved)
        cells = ["-" if number is None else f"{number:.2f}" for number in numbers]
        rows.append((one.collected.ttir.stem, f"{one.collected.record.count:,}", *cells))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = []
    for row, why in zip(rows, ["", *[one.reason for one in found]]):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
        lines.append("  ".join(cells).rstrip() + (f"  ({why})" if why else ""))
    saved, total = sum(one.saved or 0.0 for one in found), sum(one.measured or 0.0 for one in found)
    share = f" ({100 * saved / total:.1f} %)" if total else ""
    return "\n".join([*lines, f"a better schedule would save {saved:.2f} of {total:.2f} ms{share}, by simulation"])
