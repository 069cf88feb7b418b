"""What Twill did with each kernel: a line, a table, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from ..contest import Side
from .specialisation import Specialised, Status


@dataclass(frozen=True)
class KernelStatus:
    """What became of a specialisation of a kernel."""

    name: str
    source: str
    """File and line of its Python."""
    status: str
    """`stock`, `waiting` or `scheduled`."""
    reason: str
    """Why stock Triton runs it; empty where Twill has a kernel."""
    interval: int | None
    """Cycles of an iteration, I, by the schedule."""
    proof: str | None
    """What is known of I: `optimal in the model of h200: proved`, say."""
    assembler: str | None
    """What made the machine code, `ptxas 13.4.59`, say, and what there is to know of an old version."""
    launches: int
    captured: int
    """Those of them that went into CUDA graphs; how often graphs are launched nobody counts."""
    captured_wins: int
    """Those of them that are Twill's kernel's."""
    grids: int
    """Grids and sizes for which it is settled who is faster."""
    wins: int
    """Those for which Twill's kernel is."""
    speed: float | None
    """Stock Triton's time by Twill's, the median of those grids."""
    checked: list[str]
    """With `TWILL=check`: what the comparison of each launch found."""


def status_of(found: Specialised) -> KernelStatus:
    """The status of a specialisation."""
    settled = [one for one in list(found.contests.values()) if one.winner is not None]
    speeds = sorted(
        one.milliseconds[Side.STOCK] / one.milliseconds[Side.TWILL]
        for one in settled
        if one.milliseconds.get(Side.TWILL) and Side.STOCK in one.milliseconds
    )
    info = found.kernel.info if found.kernel is not None else {}
    return KernelStatus(
        found.name,
        found.function.place,
        found.status.value,
        found.reason,
        info.get("ii"),
        info.get("status"),
        info.get("assembler"),
        found.launches,
        sum(found.captured.values()),
        found.captured[Side.TWILL],
        len(settled),
        sum(one.winner is Side.TWILL for one in settled),
        speeds[len(speeds) // 2] if speeds else None,
        list(found.checked),
    )


def line(found: Specialised) -> str:
    """One line about a specialisation."""
    return _line(status_of(found))


def _line(one: KernelStatus) -> str:
    if one.status == Status.STOCK.value:
        return f"{one.name}: stock Triton: {' '.join(one.reason.split())}"
    if one.status == Status.WAITING.value:
        return f"{one.name}: stock Triton, until its kernel is made"
    parts = [f"{one.name}: scheduled, I = {one.interval} cycles"]
    if one.grids:
        parts.append(f"faster for {one.wins} of {one.grids} grids")
    if one.speed:
        parts.append(f"{one.speed:.2f} times stock Triton's speed")
    if one.captured:
        parts.append(f"{one.captured_wins} of {one.captured} launches in CUDA graphs")
    parts += [f"checked: {each}" for each in one.checked[:1]]
    parts += [f"assembled by {one.assembler}"] if one.assembler else []
    return ", ".join(parts)


class StatusReport(tuple[KernelStatus, ...]):
    """The status of all specialisations with an MMA in a loop: prints as text, shows as a table in notebooks."""

    def __str__(self) -> str:
        return "\n".join(map(_line, self))

    def to_json(self) -> str:
        """The same as a JSON list."""
        return json.dumps([asdict(one) for one in self], indent=1)

    def _repr_html_(self) -> str:
        from html import escape

        head = ("kernel", "status", "I", "grids", "faster", "speed", "launches", "reason")
        rows = [
            (one.name, one.status, one.interval, one.grids, one.wins, one.speed and f"{one.speed:.2f}", one.launches, one.reason)
            for one in self
        ]
        cells = "".join("<tr>" + "".join(f"<td>{escape(str(c if c is not None else ''))}</td>" for c in row) + "</tr>" for row in rows)
        return f"<table><tr>{''.join(f'<th>{name}</th>' for name in head)}</tr>{cells}</table>"


def table(found: Iterable[Specialised], more: int = 0) -> str:
    """The summary at a process's end. more: specialisations that are not listed."""
    report = StatusReport(status_of(one) for one in found if one.reason not in ("it has no MMA", "it has no loop"))
    taken = sum(one.wins > 0 for one in report)
    head = f"twill: {len(report)} tensor-core kernels, {taken} faster by Twill" + (f", {more} not listed" if more else "")
    return "\n".join([head, *(f"twill: {_line(one)}" for one in report)])
