"""Passes of a warp group while the tensor core runs MMAs for another."""

from __future__ import annotations

from collections.abc import Iterable

from .benchmark import Benchmark, Kernel, Launch, Program, Samples
from .figures import Figure, figure
from .mma import SHARED_BYTES
from .passes import FOUR, PAIR, PASSES, ROWS
from .wgmma import struct, struct_name

COLUMNS = 128
"""Columns of the tile, and of the instructions."""
KINDS = ("fma", "maximum", "exp2", "scaled_exp2", "convert", "row_maximum", "row_sum", "softmax")
WHERE = {"shared": False, "registers": True}
"""The place of the left operand, and whether that is registers."""
BOTH = Launch(2)


def programs() -> Iterable[Program]:
    """A program for each place of the left operand."""
    for where, left in WHERE.items():
        one = struct_name("f16", COLUMNS, left)
        kernels = (
            Kernel(
                f"overlap_{where}_{kind}",
                f"time_pass_overlapping_mmas<{PASSES[kind]}, {COLUMNS}, {one}>(g)",
                2,
                (BOTH,),
                2,
                SHARED_BYTES,
            )
            for kind in KINDS
        )
        yield Program(f"overlap_{where}", "overlap.cuh", tuple(kernels), struct("f16", COLUMNS, left))


def figures(samples: Samples) -> Iterable[Figure]:
    """Cycles of a pass of the one group while the other issues MMAs."""
    for kind in KINDS:
        for where in WHERE:
            kernel = f"overlap_{where}_{kind}"
            four, pair = (samples.rounds(kernel, series, BOTH).slope for series in (FOUR, PAIR))
            meaning = f"while another group runs MMAs, its left operand in {where}"
            yield figure(
                f"passes.{kind}.{ROWS}x{COLUMNS}.overlapping_mmas_{where}", (four - pair) / 2, "cycles", meaning
            )


OVERLAP = Benchmark("overlap", programs, figures)
