"""Two schedules side by side, with what changed."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

from .errors import InputError
from .scheduling import WIDTH, LoopSchedule, Schedule

Value = Union[int, str, None]
"""Of a quantity; None where there is none."""
MOVED = 12
"""Operations that moved and are listed in text."""


@dataclass(frozen=True)
class Change:
    """A quantity that differs."""

    what: str
    a: Value
    b: Value

    @property
    def percent(self) -> float | None:
        """How much more it is in b; None of what is no number."""
        if isinstance(self.a, int) and isinstance(self.b, int) and self.a:
            return 100.0 * (self.b - self.a) / self.a
        return None

    def __str__(self) -> str:
        percent = f" ({self.percent:+.1f} %)" if self.percent is not None else ""
        return f"{self.what}: {_shown(self.a)} -> {_shown(self.b)}{percent}"


@dataclass(frozen=True)
class Move:
    """An operation that stands elsewhere. None where one of the schedules has no such operation."""

    operation: str
    line: int | None
    """Of the Python source."""
    a: tuple[int, int, int] | None
    """Cycle of its issue, stage and warp group."""
    b: tuple[int, int, int] | None

    def __str__(self) -> str:
        line = f" (line {self.line})" if self.line else ""
        if self.a is None or self.b is None:
            return f"{self.operation}{line}: only in {'b' if self.a is None else 'a'}"
        names = ("cycle", "stage", "group")
        parts = [f"{name} {old} -> {new}" for name, old, new in zip(names, self.a, self.b) if old != new]
        return f"{self.operation}{line}: {', '.join(parts)}"


class LoopComparison:
    """A loop in two schedules."""

    def __init__(self, a: LoopSchedule, b: LoopSchedule):
        self.a, self.b = a, b
        old, new = _quantities(a), _quantities(b)
        names = list(dict.fromkeys([*old, *new]))
        self.changes = tuple(Change(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name))
        """Quantities that differ."""
        self.moves = _moves(a, b)
        """Operations that stand elsewhere, in the order of a's loop."""

    @property
    def name(self) -> str:
        """Names of the loop."""
        return self.a.name if self.a.name == self.b.name else f"{self.a.name} and {self.b.name}"

    @property
    def only_in_a(self) -> list[str]:
        """Operations that b does not have: a kernel that is cut otherwise has others."""
        return [move.operation for move in self.moves if move.b is None]

    @property
    def only_in_b(self) -> list[str]:
        """Operations that a does not have."""
        return [move.operation for move in self.moves if move.a is None]

    def rows(self) -> list[tuple[str, Value, Value, str]]:
        """All quantities: name, value in a, in b, and how much more that is."""
        old, new = _quantities(self.a), _quantities(self.b)
        names = list(dict.fromkeys([*old, *new]))
        found = []
        for name in names:
            percent = Change(name, old.get(name), new.get(name)).percent
            found.append((name, old.get(name), new.get(name), f"{percent:+.1f} %" if percent else ""))
        return found


class Comparison:
    """Two schedules side by side; in a notebook with their pages."""

    def __init__(self, a: Schedule, b: Schedule, names: tuple[str, str]):
        self.a, self.b, self.names = a, b, names
        self.loops = tuple(LoopComparison(one, other) for one, other in zip(a.loops, b.loops))
        """In the order of the text."""

    @property
    def is_same(self) -> bool:
        """Whether both do the same at the same times."""
        return not any(one.changes or one.moves for one in self.loops)

    @property
    def speedup(self) -> float | None:
        """How many times the intervals of a those of b are shorter, in sum over the loops; None where one has no schedule."""
        sums = []
        for schedule in (self.a, self.b):
            intervals = [one._file.get("initiation_interval") for one in schedule.loops]
            if None in intervals:
                return None
            sums.append(sum(map(int, intervals)))
        return sums[0] / sums[1] if sums[1] else None

    def __str__(self) -> str:
        lines = [f"a: {self.names[0]}", f"b: {self.names[1]}"]
        for one in self.loops:
            rows = [("", "a", "b", ""), *[(name, _shown(old), _shown(new), more) for name, old, new, more in one.rows()]]
            widths = [max(len(row[column]) for row in rows) for column in range(4)]
            lines += ["", one.name]
            for row in rows:
                cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
                lines.append("  " + "  ".join(cells).rstrip())
            if not one.changes and not one.moves:
                lines.append("  nothing differs")
            for only, side in ((one.only_in_a, "a"), (one.only_in_b, "b")):
                if only:
                    lines.append(f"  only in {side}: {', '.join(only[:MOVED])}{', …' if len(only) > MOVED else ''}")
            moved = [move for move in one.moves if move.a and move.b]
            if moved:
                lines.append(f"  {len(moved)} operation{'s' if len(moved) > 1 else ''} stand elsewhere:")
                lines += [f"    {move}" for move in moved[:MOVED]]
                if len(moved) > MOVED:
                    lines.append(f"    and {len(moved) - MOVED} more")
        return "\n".join(part for line in lines for part in textwrap.wrap(line, WIDTH, subsequent_indent="      ") or [""])

    def __repr__(self) -> str:
        count = sum(len(one.changes) + len(one.moves) for one in self.loops)
        return f"Comparison({self.names[0]!r}, {self.names[1]!r}, {count} differences)"

    def _repr_html_(self) -> str:
        """What changed, and the pages of both, side by side where there is room."""
        parts = []
        for one in self.loops:
            parts.append(f"<h4>{html.escape(one.name)}</h4>")
            rows = [[name, _shown(a), _shown(b), more] for name, a, b, more in one.rows()]
            differ = {change.what for change in one.changes}
            parts.append(_table(["", *self.names, ""], rows, [row[0] in differ for row in rows]))
            if one.moves:
                moved = [[move.operation, str(move.line or ""), _placed(move.a), _placed(move.b)] for move in one.moves]
                summary = f"{len(one.moves)} operations stand elsewhere (cycle, stage, group)"
                table = _table(["operation", "line", *self.names], moved)
                parts.append(f"<details><summary>{summary}</summary>{table}</details>")
            if not one.changes and not one.moves:
                parts.append("<p>nothing differs</p>")
        parts.append('<div style="display: flex; gap: 1em; flex-wrap: wrap">')
        for name, schedule in zip(self.names, (self.a, self.b)):
            page = schedule._repr_html_() or "<p>there is no schedule</p>"
            caption = f"<figcaption>{html.escape(name)}</figcaption>"
            parts.append(f'<figure style="flex: 1 1 24em; min-width: 0; margin: 0">{caption}{page}</figure>')
        return "".join([*parts, "</div>"])


def compare(a: Schedule, b: Schedule, names: Sequence[str] = ("a", "b")) -> Comparison:
    """Two schedules side by side: intervals, bounds, stages, registers, warp groups, rings, and the operations that moved.

        one = twill_gpu.schedule("kernel.ttir", machine="h200")
        twill_gpu.compare(one, twill_gpu.schedule("kernel.ttir", machine="h200", compute_groups=1))

    names: what to call them.

    In a notebook the result shows what changed above both pages; `print` gives it as text, and `.loops[0].changes` and
    `.moves` as data. Raises `InputError` where they have different numbers of loops.
    """
    if len(a.loops) != len(b.loops):
        raise InputError(f"a has {len(a.loops)} loops and b {len(b.loops)}: compare schedules of one kernel, or of one loop each")
    first, second = names
    return Comparison(a, b, (first, second))


def _quantities(one: LoopSchedule) -> dict[str, Value]:
    """What is compared of a loop, in the order of the table."""
    file: dict[str, Any] = one._file
    resources = file["problem"]["resources"]
    found: dict[str, Value] = {
        "machine": resources["name"],
        "initiation interval": file.get("initiation_interval"),
        "proved bound": one.lower_bound,
        "status": one.status,
        "simulated cycles": (file.get("simulated") or {}).get("cycles"),
        "stages": one.stages,
        "length": one.length,
        "operations": len(one.operations) or None,
        "warp groups": len(one.groups) or None,
        "compute groups": sum(group.role == "compute" for group in one.groups) or None,
        "registers a thread, most": max((group.registers_per_thread for group in one.groups), default=None),
    }
    for ring in file.get("rings", ()):
        found[f"slots of {ring['buffer']}"] = ring["depth"]
    return {name: value for name, value in found.items() if value is not None}


def _moves(a: LoopSchedule, b: LoopSchedule) -> tuple[Move, ...]:
    old = {one.name: one for one in a.operations}
    new = {one.name: one for one in b.operations}
    found = []
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        places = [None if one is None else (one.cycle, one.stage, one.group) for one in (before, after)]
        if places[0] != places[1]:
            one = before or after
            line = one.source[1] if one is not None and one.source else None
            found.append(Move(name, line, places[0], places[1]))
    return tuple(found)


def _shown(value: Value) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else str(value)


def _placed(place: tuple[int, int, int] | None) -> str:
    return "-" if place is None else ", ".join(map(str, place))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], differ: Sequence[bool] = ()) -> str:
    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)

    bold = [*differ, *[False] * (len(rows) - len(differ))]
    begin = {False: "<tr>", True: '<tr style="font-weight: bold">'}
    body = "".join(f"{begin[is_bold]}{cells('td', row)}</tr>" for row, is_bold in zip(rows, bold))
    return f"<table><thead><tr>{cells('th', head)}</tr></thead><tbody>{body}</tbody></table>"
