"""What Twill did with each kernel: a line, a table, JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from ..contest import OWN, STOCK, Contest
from .specialisation import Specialised, Status


@dataclass(frozen=True)
class KernelStatus:
    """What became of a specialisation of a kernel."""

    name: str
    source: str
    """File and line of its Python."""
    status: str
    """`stock`, `waiting`, `scheduled` or `tuned`."""
    reason: str
    """Why Twill has no kernel for it; empty where it has one."""
    interval: int | None
    """Cycles of an iteration, I, by the schedule; 0 of a kernel without one (multistage)."""
    proof: str | None
    """What is known of I: `optimal in the model of h200: proved`, say."""
    assembler: str | None
    """What made the machine code, `ptxas 13.4.59`, say, and what there is to know of an old version."""
    launches: int
    captured: int
    """Those of them that went into CUDA graphs; how often graphs are launched nobody counts."""
    captured_wins: int
    """Those of them that are not stock Triton's as its author has it."""
    grids: int
    """Grids and sizes for which it is settled who is the fastest."""
    wins: int
    """Those for which one of Twill's kernels is."""
    speed: float | None
    """Stock Triton's time by that of the faster of Twill's kernels, the median of those grids."""
    configurations: dict[str, int]
    """How many of those grids other stages and warps of stock Triton have won, by what they are."""
    gain: float | None
    """Stock Triton's time by the winner's, the median of those grids."""
    checked: list[str]
    """With `TWILL=check`: what the comparison of each launch found."""


def status_of(found: Specialised) -> KernelStatus:
    """The status of a specialisation."""
    settled = [one for one in list(found.contests.values()) if one.winner is not None]
    winners = Counter(one.winner for one in settled if one.winner not in (None, STOCK))
    info = found.kernel.info if found.kernel is not None else {}
    return KernelStatus(
        found.name,
        found.function.place,
        found.status.value,
        found.reason,
        info.get("ii"),
        info.get("status"),
        info.get("assembler"),
        found.launched.total(),
        found.captured.total(),
        found.captured.total() - found.captured[STOCK],
        len(settled),
        sum(winners.pop(side, 0) for side in OWN),
        _median([_best(one) for one in settled]),
        {str(side): count for side, count in winners.most_common()},
        _median([one.speed_of(one.winner) for one in settled]),
        list(found.checked),
    )


def _best(settled: Contest) -> float | None:
    """Stock Triton's time by that of the fastest of Twill's kernels."""
    return max((speed for speed in map(settled.speed_of, OWN) if speed is not None), default=None)


def _median(speeds: Iterable[float | None]) -> float | None:
    known = sorted(speed for speed in speeds if speed is not None)
    return known[len(known) // 2] if known else None


def line(found: Specialised) -> str:
    """One line about a specialisation."""
    return _line(status_of(found))


def _line(one: KernelStatus) -> str:
    if one.status == Status.STOCK.value:
        return f"{one.name}: stock Triton: {' '.join(one.reason.split())}"
    if one.status == Status.WAITING.value:
        return f"{one.name}: stock Triton, until its kernel is made"
    if one.status == Status.TUNED.value:
        why = " ".join(one.reason.split())
        parts = [f"{one.name}: stock Triton, with other stages and warps where that is faster (no kernel of Twill's: {why})"]
    else:
        how = f"I = {one.interval} cycles" if one.interval else "multistage"
        parts = [f"{one.name}: scheduled, {how}"]
        if one.grids:
            parts.append(f"faster for {one.wins} of {one.grids} grids")
        if one.speed:
            parts.append(f"{one.speed:.2f} times stock Triton's speed")
    parts += [f"{side} for {count} of {one.grids} grids" for side, count in one.configurations.items()]
    if one.configurations and one.gain:
        parts.append(f"{one.gain:.2f} times stock Triton's speed with who is the fastest")
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

        head = ("kernel", "status", "I", "grids", "faster", "speed", "configurations", "gain", "launches", "reason")
        rows = [
            (
                one.name,
                one.status,
                one.interval,
                one.grids,
                one.wins,
                one.speed and f"{one.speed:.2f}",
                "; ".join(f"{side}: {count}" for side, count in one.configurations.items()),
                one.gain and f"{one.gain:.2f}",
                one.launches,
                one.reason,
            )
            for one in self
        ]
        cells = "".join("<tr>" + "".join(f"<td>{escape(str(c if c is not None else ''))}</td>" for c in row) + "</tr>" for row in rows)
        return f"<table><tr>{''.join(f'<th>{name}</th>' for name in head)}</tr>{cells}</table>"


def table(found: Iterable[Specialised], more: int = 0) -> str:
    """The summary at a process's end. more: specialisations that are not listed."""
    report = StatusReport(status_of(one) for one in found if one.reason not in ("it has no MMA", "it has no loop"))
    taken, tuned = sum(one.wins > 0 for one in report), sum(bool(one.configurations) for one in report)
    head = f"twill: {len(report)} tensor-core kernels, {taken} faster by Twill, {tuned} by other stages and warps"
    head += f", {more} not listed" if more else ""
    return "\n".join([head, *(f"twill: {_line(one)}" for one in report)])
