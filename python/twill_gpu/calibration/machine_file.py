"""The machine file that a calibration makes: it extends the machine that was named."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .calibrating import Calibration
from .figures import Figure, number
from .mma import DELAYS, MANY
from .table import percent

TILE = 64 * 128
"""Elements of the tile whose passes give rates: the one most kernels have."""
WHO = "twill machine calibrate"


@dataclass(frozen=True)
class Entry:
    """A number of the file."""

    table: str
    key: str
    figure: str
    """Its parts."""
    value: Callable[[Figure], float] = lambda figure: figure.value
    digits: int = 0
    """After the point."""
    note: str = ""


def _rate(figure: Figure) -> float:
    """Elements a cycle of a pass over the tile."""
    return TILE / figure.value


def _pass(rule: str, kind: str) -> Entry:
    return Entry(
        f"costs.{rule}", "elements_per_cycle", f"passes.{kind}.64x128", _rate, 1, "of 64x128 f32, one group alone"
    )


def _reduction(rule: str, kind: str) -> tuple[Entry, Entry]:
    """The time that it holds the unit by elements, and the wait for shuffles, in which others can have the unit."""
    return (
        Entry(f"costs.{rule}", "elements_per_cycle", f"passes.{kind}.rate", digits=1, note="one group alone"),
        Entry(f"costs.{rule}", "additional_latency", f"passes.{kind}.latency", note="shuffles"),
    )


ENTRIES = (
    Entry("memory", "shared_bytes_per_cycle", "mma.shared_bytes_per_cycle"),
    Entry("tensor_core", "additional_latency", "mma.additional_latency"),
    Entry("tensor_core", "wait_latency", "mma.f16.m64n128k16.shared.wait_latency"),
    Entry("tensor_core.flop_per_cycle", "f16", "mma.f16.rate"),
    Entry("tensor_core.flop_per_cycle", "bf16", "mma.f16.rate", note="as f16"),
    Entry("tensor_core.flop_per_cycle", "f8", "mma.e4m3.rate"),
    Entry("latency", "handoff", "shared_memory.handoff.latency", digits=1),
    Entry("latency", "handoff_per_kb", "shared_memory.handoff.per_kb", digits=1),
    Entry("latency", "transfer", "copies.load.cold.latency"),
    Entry("synchronization", "arrive", "synchronization.arrive"),
    Entry("synchronization", "wait", "synchronization.wait"),
    Entry("synchronization", "handoff", "synchronization.handoff"),
    Entry("synchronization", "named_barrier", "synchronization.named_barrier"),
    Entry("synchronization", "fence", "shared_memory.fence.after_64x128"),
    Entry("synchronization", "set_registers", "synchronization.set_registers"),
    _pass("fma", "fma"),
    _pass("alu", "maximum"),
    _pass("special_function", "exp2"),
    _pass("convert", "convert"),
    *_reduction("reduce_maximum", "row_maximum"),
    *_reduction("reduce_sum", "row_sum"),
    Entry("costs.shared_load", "bytes_per_cycle", "shared_memory.load.rate", digits=1),
    Entry("costs.shared_store", "bytes_per_cycle", "shared_memory.store.rate", digits=1),
    Entry("costs.shared_store", "additional_latency", "mma.store.latency"),
    Entry("costs.tma_load", "bytes_per_cycle", "copies.load.1_sm.common.32768_byte_boxes", digits=1),
    Entry("costs.tma_store", "bytes_per_cycle", "copies.store.1_sm.32768_byte_boxes", digits=1),
)
FIGURES = frozenset(entry.figure for entry in ENTRIES)
"""All that numbers of the file are made of."""


def text(found: Calibration, name: str) -> str:
    """The file: what was measured of what machine files have, table by table."""
    figures = found.by_name
    lines = [
        f"# Measured by {WHO}: {found.where}.",
        f"# Each number is the mean of the middle four fifths of {found.launches} launches.",
        "",
        f"name = {json.dumps(name)}",
        f"description = {json.dumps(f'{found.gpu}, calibrated {found.date}')}",
        f"extends = {json.dumps(found.machine)}",
    ]
    tables: dict[str, list[str]] = {}
    for entry in ENTRIES:
        if entry.figure in figures:
            tables.setdefault(entry.table, []).append(_line(entry, figures[entry.figure], found))
    if (order := sharing(figures)) is not None:
        tables.setdefault("tensor_core", []).append(f"sharing = {json.dumps(order)}")
    for table, entries in tables.items():
        lines += ["", f"[{table}]", *entries]
    return "\n".join(lines) + "\n"


def _line(entry: Entry, figure: Figure, found: Calibration) -> str:
    value = round(entry.value(figure), entry.digits)
    shown = f"{value:.0f}" if entry.digits == 0 else repr(value)
    parts = [f"{WHO}, {found.where}", f"{figure.name} {number(figure.value)} {figure.unit}"]
    if figure.fit:
        parts.append(f"fit {figure.fit}, residual {percent(figure.residual or 0)}")
    parts.append(f"spread {percent(figure.spread)}")
    if entry.note:
        parts.append(entry.note)
    return f"{entry.key} = {{ measured = {shown}, source = {json.dumps('; '.join(parts))} }}"


def sharing(figures: Mapping[str, Figure]) -> str | None:
    """How the tensor core serves two warp groups: a single instruction of the second, started when the first's chain
    has long begun, is done among the first's instructions, or after them."""
    busy = [f"mma.sharing.{MANY}_and_1.after_{delay}.second_takes" for delay in DELAYS[:-1]]
    idle, first = (
        f"mma.sharing.{MANY}_and_1.after_{DELAYS[-1]}.{what}" for what in ("second_takes", "first_done")
    )
    if not all(name in figures for name in (*busy, idle, first)):
        return None
    # After them, it would take what is left of the first's chain longer.
    waits = [figures[name].value - figures[idle].value for name in busy]
    left = [figures[first].value - delay for delay in DELAYS[:-1]]
    return "in_order" if sum(waits) > sum(left) / 2 else "interleaved"
