"""A benchmark: kernels, the launches of each, and the figures from the numbers that they write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from .figures import Figure
from .fits import Line, Measured, latest, line

STEPS, GROUPS, STRIDE = 5, 3, 8
"""Numbers of a series of a warp group, most warp groups, rounds of the first number (measure.cuh)."""
SERIES = STEPS * GROUPS

WARP_GROUP = 128
"""Threads."""


@dataclass(frozen=True)
class Launch:
    """How a kernel is launched: warp groups a CTA, and CTAs; None: one for each multiprocessor."""

    groups: int = 1
    ctas: int | None = 1


@dataclass(frozen=True)
class Kernel:
    """A kernel of one call."""

    name: str
    call: str
    """In C++; `g` is what the kernel is given, `map` the tensor map."""
    series: int = 1
    """How many series each CTA writes."""
    launches: tuple[Launch, ...] = (Launch(),)
    most_groups: int = 3
    """For the compiler: the most warp groups, which share the registers."""
    shared_bytes: int = 0
    box_rows: int = 8
    """The rows of the boxes of its tensor map."""
    flushes: bool = False
    """Nothing of the tensor may be in the cache when it begins."""

    def text(self) -> str:
        """Its definition."""
        return (
            f'extern "C" __global__ void __launch_bounds__({WARP_GROUP * self.most_groups}, 1)\n'
            f"{self.name}(i64 *out, float *data, u32 never, u32 origin, const __grid_constant__ tensor_map map) {{\n"
            f"  const given g{{out, data, never, origin}};\n  {self.call};\n}}\n"
        )


@dataclass(frozen=True)
class Program:
    """Kernels that are compiled together."""

    name: str
    header: str
    """The file of the calls."""
    kernels: tuple[Kernel, ...]
    definitions: str = ""
    """After the header."""

    def text(self) -> str:
        """The source."""
        parts = [f'#include "{self.header}"\n\nnamespace twill {{\n', self.definitions]
        return "\n".join([*parts, *(kernel.text() for kernel in self.kernels), "}  // namespace twill\n"])


@dataclass
class Samples:
    """The numbers that the kernels wrote, by kernel and launch, for each repetition."""

    multiprocessors: int
    numbers: dict[tuple[str, Launch], list[Sequence[int]]] = field(default_factory=dict)

    def series(
        self, kernel: str, series: int = 0, launch: Launch = Launch(), group: int = 0, at: int = 0
    ) -> list[Measured]:
        """The numbers of a series, written by a warp group of a CTA; `at`: where the CTA's begin."""
        written = self.numbers[kernel, launch]
        first = at + series * SERIES + group * STEPS
        return [Measured(tuple(float(numbers[first + step]) for numbers in written)) for step in range(STEPS)]

    def rounds(
        self, kernel: str, series: int = 0, launch: Launch = Launch(), group: int = 0, at: int = 0, stride: int = STRIDE
    ) -> Line:
        """Cycles by rounds."""
        measured = self.series(kernel, series, launch, group, at)
        return line([(stride * (step + 1), one) for step, one in enumerate(measured)])

    def round(self, kernel: str, series: int = 0, launch: Launch = Launch()) -> Measured:
        """Cycles of a round; of several groups at once those of the last to be done, for the first had company."""
        groups = (self.series(kernel, series, launch, group) for group in range(launch.groups))
        return line([(STRIDE * (step + 1), latest(each)) for step, each in enumerate(zip(*groups))]).slope


@dataclass(frozen=True)
class Benchmark:
    """A kind of work."""

    name: str
    """For `--only`."""
    programs: Callable[[], Iterable[Program]]
    figures: Callable[[Samples], Iterable[Figure]]
