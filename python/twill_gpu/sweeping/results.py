"""The results of a sweep."""

from __future__ import annotations

import dataclasses
import html
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


FORMAT: dict[str, object] = {"format": "twill-sweep", "version": 1}


@dataclass(frozen=True)
class Row:
    """The results for one configuration. Throughput is that of the loop's MMAs, in the steady state."""

    index: int
    """In the order of the space, from 0."""
    configuration: Mapping[str, object]
    """The values that were swept, by name."""
    constexprs: Mapping[str, object]
    """Constexprs of the kernel, fixed ones included."""
    options: Mapping[str, object]
    """Options of twill, fixed ones included."""
    status: str
    """`rejected`, `bounded` (no search), `optimal` (proved), `feasible`, `infeasible` (proved), `unknown`, `failed`."""
    fits: bool | None
    """True if it fits; None where only a search can tell and none was made."""
    reason: str | None = None
    """Why it does not fit, or what went wrong."""
    flop: int | None = None
    """Floating-point operations of one iteration; of several loops, of one iteration of each by weight."""
    moved_bytes: int | None = None
    """Bytes that the same moves through shared memory and from and to the L2 cache: energy, which is time at the GPU's power
    limit."""
    lower_bound: int | None = None
    """No interval is smaller, in cycles; proved."""
    bound: float | None = None
    """No schedule does more FLOP per cycle on one multiprocessor; proved."""
    bound_teraflops: float | None = None
    """The same in TFLOP/s on all multiprocessors at the machine's clock."""
    ii: int | None = None
    """Initiation interval in cycles of the schedule that was found; of several loops, of all by weight."""
    stages: int | None = None
    """Iterations that overlap."""
    length: int | None = None
    """Cycles from an iteration's begin to its end."""
    flop_per_cycle: float | None = None
    """The schedule's throughput on one multiprocessor."""
    teraflops: float | None = None
    """The same in TFLOP/s on all multiprocessors at the machine's clock."""
    simulated: int | None = None
    """Cycles as `ii` by simulation of the warp programs, which know barriers and issue slots."""
    simulated_teraflops: float | None = None
    """The same in TFLOP/s on all multiprocessors at the machine's clock."""
    shared_bytes: int | None = None
    """Shared memory of the schedule; before it is solved, what every schedule takes."""
    registers: int | None = None
    """Registers a thread of the warp group that has most."""
    predicted_milliseconds: float | None = None
    """Time of a launch by simulation of the generated kernel, at the clock that the machine's power allows."""
    spilled: int | None = None
    """Bytes of registers that the generated kernel spills."""
    milliseconds: float | None = None
    """Median time of a launch on the GPU."""
    error: float | None = None
    """Largest difference from the reference, relative to the reference's largest value."""

    @property
    def name(self) -> str:
        """Its values in words."""
        return " ".join(f"{name}={word(value)}" for name, value in self.configuration.items()) or "as given"

    @property
    def moved_per_flop(self) -> float:
        """Bytes moved for each FLOP."""
        return self.moved_bytes / self.flop if self.moved_bytes and self.flop else 0.0

    @property
    def rate(self) -> float | None:
        """FLOP per cycle that it achieves, by simulation where there is one; where it is not solved, at most."""
        if self.flop and self.simulated:
            return self.flop / self.simulated
        return self.bound if self.flop_per_cycle is None else self.flop_per_cycle


class Sweep:
    """All configurations of a sweep, the best first."""

    def __init__(
        self,
        rows: Sequence[Row],
        *,
        kernel: str,
        machine: str,
        solve: int,
        interrupted: bool = False,
        notes: Sequence[str] = (),
    ):
        self.rows = tuple(rows)
        """Solved ones by predicted time, where there is none by FLOP per simulated cycle; then those with a bound alone, by it; then those that do not fit."""
        self.kernel, self.machine, self.solve = kernel, machine, solve
        self.interrupted = interrupted
        """True if Ctrl-C ended it before it was done."""
        self.notes = tuple(notes)
        """Further notes."""

    @property
    def best(self) -> Row | None:
        """The fastest that was timed; where none was, the first by prediction, or that achieves most. None if none was solved."""
        timed = [row for row in self.rows if row.milliseconds is not None]
        if timed:
            return min(timed, key=lambda row: row.milliseconds or 0.0)
        return next((row for row in self.rows if row.flop_per_cycle is not None), None)

    @property
    def certain(self) -> bool:
        """Returns whether no other configuration can achieve more than the `solve` best that were solved; proved."""
        solved = sorted(
            (row for row in self.rows if row.flop_per_cycle is not None), key=lambda row: -(row.flop_per_cycle or 0.0)
        )[: self.solve]
        best = {row.index for row in solved}
        rest = [row for row in self.rows if row.index not in best and row.fits is not False]
        if self.interrupted or any(row.status == "failed" or row.bound is None for row in rest):
            return False
        least = min((row.flop_per_cycle or 0.0 for row in solved), default=0.0)
        return not rest or (len(solved) == self.solve > 0 and all((row.bound or 0.0) <= least for row in rest))

    def pareto(self, of: str | None = None, length: bool = False) -> tuple[Row, ...]:
        """The Pareto front: rows that no other beats in throughput without taking more shared memory.

        of: `achieved`, by what schedules achieve, or `bound`, by what may be achieved at most; by default the former
            where anything was solved.
        length: whether an iteration that takes fewer cycles from begin to end counts too, among solved ones.
        """
        of = of or ("achieved" if any(row.flop_per_cycle is not None for row in self.rows) else "bound")
        if of not in ("achieved", "bound"):
            raise ValueError(f"of must be 'achieved' or 'bound', not {of!r}")

        def costs(row: Row) -> tuple[float, ...] | None:
            rate = row.flop_per_cycle if of == "achieved" else row.bound
            if row.fits is False or rate is None or row.shared_bytes is None or (length and row.length is None):
                return None
            return (-rate, row.shared_bytes, *([row.length or 0] if length else []))

        known = [(row, cost) for row in self.rows if (cost := costs(row)) is not None]
        front: list[tuple[Row, tuple[Any, ...]]] = []
        # A row that beats another comes before it in this order, and is beaten by none or by one on the front.
        for row, cost in sorted(known, key=lambda pair: (pair[1], pair[0].index)):
            if not any(other != cost and all(a <= b for a, b in zip(other, cost)) for _, other in front):
                front.append((row, cost))
        return tuple(row for row, _ in sorted(front, key=lambda pair: (pair[1][1], pair[1], pair[0].index)))

    def table(self, limit: int | None = None, width: int = 100) -> str:
        """All of it as text on lines of at most `width` columns; at most `limit` rows."""
        from .table import text

        return text(self, limit, width)

    def svg(self) -> str:
        """A picture by itself: throughput against shared memory, with the front and what does not fit."""
        from .picture import svg

        return svg(self)

    def to_json(self) -> str:
        """Its file (docs/sweep.md)."""
        file = {**FORMAT, "kernel": self.kernel, "machine": self.machine, "solve": self.solve}
        file |= {"interrupted": self.interrupted, "certain": self.certain, "notes": list(self.notes)}
        file |= {"rows": [_plain(row) for row in self.rows]}
        places = {row.index: place for place, row in enumerate(self.rows)}
        file |= {"pareto": [places[row.index] for row in self.pareto()]}
        return json.dumps(file, indent=2, ensure_ascii=False)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes sweep.txt, sweep.json and sweep.svg into a folder, which is made if it is not there."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (("txt", self.table() + "\n"), ("json", self.to_json() + "\n"), ("svg", self.svg())):
            (folder / f"sweep.{name}").write_text(text, encoding="utf-8")

    def _repr_html_(self) -> str:
        return f'{self.svg()}<pre style="overflow-x: auto">{html.escape(self.table(30))}</pre>'

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        best = self.best
        shown = f", best {best.name} at {best.flop_per_cycle:.0f} FLOP a cycle" if best else ""
        return f"Sweep({self.kernel} for {self.machine}, {len(self.rows)} configurations{shown})"


def word(value: object) -> str:
    """A value as tables show it."""
    return "-" if value is None else ("on" if value else "off") if isinstance(value, bool) else str(value)


def _plain(row: Row) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(row).items() if value is not None or name == "fits"}
