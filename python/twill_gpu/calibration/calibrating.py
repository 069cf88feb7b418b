"""A calibration: all benchmarks compiled, run in turn, and fitted."""

from __future__ import annotations

import datetime
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import InputError, TwillError
from ..machine import Machine
from .benchmark import SERIES, Benchmark, Kernel, Launch, Program, Samples
from .building import build
from .copies import COPIES
from .device import TENSOR_BYTES, Gpu
from .figures import Figure
from .mma import MMAS
from .overlap import OVERLAP
from .passes import PASSES_BENCHMARK
from .shared_memory import SHARED_MEMORY
from .synchronization import SYNCHRONIZATION

BENCHMARKS = (MMAS, PASSES_BENCHMARK, OVERLAP, SHARED_MEMORY, COPIES, SYNCHRONIZATION)
LAUNCHES = 25
"""The launches of each kernel that count; one more is to warm up."""
ARCHITECTURE = "sm_90a"
FREQUENCY = Program("frequency", "synchronization.cuh", (Kernel("frequency", "time_frequency(g)"),))
RAMP = 40
"""Launches of a millisecond that bring the clock up."""


@dataclass(frozen=True)
class Calibration:
    """The measurements, and their device."""

    machine: str
    """The machine that was named."""
    gpu: str
    driver: str
    date: str
    clock_mhz: float
    """The clock of the multiprocessors while benchmarks ran: the median of before and after each round of launches."""
    launches: int
    seconds: float
    """On the GPU, from the first launch to the last."""
    figures: tuple[Figure, ...]

    @property
    def by_name(self) -> dict[str, Figure]:
        """Its figures."""
        return {one.name: one for one in self.figures}

    @property
    def where(self) -> str:
        """On what, for the sources of numbers."""
        return f"{self.date}, {self.gpu}, driver {self.driver}, SM clock {self.clock_mhz:.0f} MHz"


def chosen(only: Sequence[str]) -> list[Benchmark]:
    """The benchmarks of these names; all for none. Raises `InputError` for a name that there is not."""
    known = {one.name: one for one in BENCHMARKS}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise InputError(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
    return [one for one in BENCHMARKS if not only or one.name in only]


def calibrate(
    machine: str = "h200",
    only: Sequence[str] = (),
    launches: int = LAUNCHES,
    say: Callable[[str], object] = lambda text: None,
) -> Calibration:
    """Measures this GPU for a machine. Raises `TwillError` where there is no GPU of its architecture, or no NVRTC."""
    [found] = calibrate_times(1, machine, only, launches, say)
    return found


def calibrate_times(
    times: int,
    machine: str,
    only: Sequence[str] = (),
    launches: int = LAUNCHES,
    say: Callable[[str], object] = lambda text: None,
) -> list[Calibration]:
    """N calibrations one after another, of kernels that are compiled once."""
    benchmarks, architecture = chosen(only), Machine(machine).architecture
    if architecture != ARCHITECTURE:
        raise InputError(f"only {ARCHITECTURE} is calibrated, and {machine} is {architecture}")
    gpu = Gpu()
    programs = [program for one in benchmarks for program in one.programs()]
    say(f"compiling {len(programs)} programs")
    codes = build([*programs, FREQUENCY], ARCHITECTURE)
    with gpu:
        if gpu.architecture != 90:
            raise TwillError(f"{machine} is {ARCHITECTURE}, and {gpu.name} is sm_{gpu.architecture}; name its machine")
        functions: dict[str, object] = {}
        for program, code in zip([*programs, FREQUENCY], codes):
            functions |= gpu.load(code, program.kernels)
        return [_measured(gpu, functions, machine, benchmarks, programs, launches, say) for _ in range(times)]


def _measured(
    gpu: Gpu,
    functions: dict[str, object],
    machine: str,
    benchmarks: Sequence[Benchmark],
    programs: Sequence[Program],
    launches: int,
    say: Callable[[str], object],
) -> Calibration:
    say(f"measuring {gpu.name}")
    samples, clocks = Samples(gpu.multiprocessors), []
    begin = time.monotonic()
    for _ in range(RAMP):
        _frequency(gpu, functions)
    for number in range(-1, launches):
        for kernel in (kernel for program in programs for kernel in program.kernels):
            for launch in kernel.launches:
                if kernel.flushes:
                    gpu.flush()
                written = gpu.run(kernel, functions[kernel.name], launch, SERIES, _origin(number))
                if number >= 0:
                    samples.numbers.setdefault((kernel.name, launch), []).append(written)
        clocks.append(_frequency(gpu, functions))
    seconds = time.monotonic() - begin
    return Calibration(
        machine,
        gpu.name,
        gpu.driver_version,
        datetime.date.today().isoformat(),
        sorted(clocks)[len(clocks) // 2],
        launches,
        seconds,
        tuple(figure for one in benchmarks for figure in one.figures(samples)),
    )


def _origin(number: int) -> int:
    """Where in the tensor copies begin that shall not find anything in the cache: elsewhere in each launch."""
    rows, apart = TENSOR_BYTES // 128, 16384
    return (number + 1) * apart % (rows - apart)


def _frequency(gpu: Gpu, functions: dict[str, object]) -> float:
    """MHz of the multiprocessors."""
    [kernel] = FREQUENCY.kernels
    cycles, nanoseconds, *_ = gpu.run(kernel, functions[kernel.name], Launch(), SERIES)
    return 1000 * cycles / nanoseconds


def progress(text: str) -> None:
    """A line of progress."""
    print(text, file=sys.stderr)
