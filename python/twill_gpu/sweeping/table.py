"""A sweep as text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from .results import Row, Sweep, word

DASH = "-"
LEAST_WIDTH = 40
LEAST_NAME = 12
"""Columns of a name that is shortened."""


@dataclass(frozen=True)
class Column:
    title: str
    show: Callable[[Row], str]
    rank: int = 0
    """Columns of higher rank are left out first where the page is narrow; those of rank 0 stay."""


def text(sweep: Sweep, limit: int | None, width: int) -> str:
    """Title, a table of those that may fit, those that do not with the reason, and what it all means; on lines of at most
    `width` columns."""
    width = max(width, LEAST_WIDTH)
    fitting = [row for row in sweep.rows if row.fits is not False and row.status != "failed"]
    others = [row for row in sweep.rows if row.fits is False or row.status == "failed"]
    parts = [f"{sweep.kernel} on {sweep.machine}: {len(sweep.rows)} configurations, {len(others)} of them rejected"]
    if fitting:
        parts += ["", *_table(fitting[:limit], _front(sweep), width), *_more(fitting, limit)]
    if remarks := [row for row in fitting[:limit] if row.reason]:
        parts += ["", "Remarks", *(f"  {_safe(row.name)}: {_safe(row.reason or row.status)}" for row in remarks)]
    if others:
        parts += ["", "Rejected"]
        parts += [f"  {_safe(row.name)}: {_safe(row.reason or row.status)}" for row in others[:limit]]
        parts += _more(others, limit)
    lines = [*parts, "", *_meaning(sweep)]
    return "\n".join(part for line in lines for part in _folded(line, width))


def _folded(line: str, width: int) -> list[str]:
    """A line on as many as it takes."""
    indent = line[: len(line) - len(line.lstrip())]
    if len(line) <= width:
        return [line]
    return textwrap.wrap(line, width, subsequent_indent=indent + "    ", break_on_hyphens=False)


def _front(sweep: Sweep) -> set[int]:
    return {row.index for row in sweep.pareto()}


def _value_of(name: str) -> Callable[[Row], str]:
    return lambda row: word(row.configuration[name])


def _table(rows: list[Row], front: set[int], width: int) -> list[str]:
    columns = [Column(name, _value_of(name)) for name in rows[0].configuration]
    swept = len(columns)
    simulated = [
        Column("simulated", lambda row: _number(row.simulated)),
        Column("simulated TFLOP/s", lambda row: _number(row.simulated_teraflops, 1)),
    ]
    if all(row.simulated is None for row in rows):
        simulated = []
    columns += [
        Column("I >=", lambda row: _number(row.lower_bound), 3),
        Column("at most TFLOP/s", lambda row: _number(row.bound_teraflops, 1)),
        Column("I", lambda row: _number(row.ii), 1),
        Column("TFLOP/s", lambda row: _number(row.teraflops, 1)),
        *simulated,
        Column("FLOP/cycle/SM", lambda row: _number(row.flop_per_cycle, 1), 6),
        Column("status", lambda row: row.status, 1),
        Column("stages", lambda row: _number(row.stages), 7),
        Column("length", lambda row: _number(row.length), 8),
        Column(
            "shared bytes",
            lambda row: ("" if row.ii else ">= ") + _number(row.shared_bytes) if row.shared_bytes else DASH,
            4,
        ),
        Column("registers", lambda row: _number(row.registers), 5),
    ]
    if any(row.predicted_milliseconds is not None for row in rows):
        columns += [Column("predicted ms", lambda row: _number(row.predicted_milliseconds, 4))]
        columns += [Column("spilled", lambda row: _number(row.spilled), 4)]
    if any(row.milliseconds is not None or row.error is not None for row in rows):
        columns += [
            Column("ms", lambda row: _number(row.milliseconds, 4)),
            Column("error", lambda row: _scientific(row.error), 2),
        ]
    columns += [Column("front", lambda row: "*" if row.index in front else "", 2)]
    return _laid_out(columns, [[_safe(column.show(row)) for column in columns] for row in rows], swept, width)


def _laid_out(columns: list[Column], cells: list[list[str]], swept: int, width: int) -> list[str]:
    """Titles in as many lines as they take, rows below, and what is left out of them."""
    titles = [_safe(column.title) for column in columns]

    def widths(shown: list[int], broken: bool) -> list[int]:
        return [
            max(map(len, [*(_words(titles[c]) if broken else [titles[c]]), *(row[c] for row in cells)])) for c in shown
        ]

    def total(wide: list[int]) -> int:
        return sum(wide) + 2 * (len(wide) - 1)

    shown = list(range(len(columns)))
    broken = total(widths(shown, False)) > width
    whole = total(widths(shown, broken))
    while total(widths(shown, broken)) > width:
        worst = max(shown, key=lambda c: columns[c].rank)
        if columns[worst].rank == 0:
            break
        shown.remove(worst)
    wide = widths(shown, broken)
    while total(wide) > width and max(wide[:swept], default=0) > LEAST_NAME:
        widest = wide.index(max(wide[:swept]))
        wide[widest] = max(LEAST_NAME, wide[widest] - (total(wide) - width))
    words = [_words(titles[c]) if broken else [titles[c]] for c in shown]
    head = max(map(len, words))
    lines = [[([""] * (head - len(title)) + title)[k] for title in words] for k in range(head)]
    lines += [[row[c] for c in shown] for row in cells]
    out = ["  ".join(_shortened(cell, size).rjust(size) for cell, size in zip(line, wide)).rstrip() for line in lines]
    left_out = [titles[c] for c in range(len(columns)) if c not in shown]
    if left_out:
        out.append(f"  not shown: {', '.join(left_out)} (--width {whole}, or --format json)")
    return out


def _words(title: str) -> list[str]:
    """A title in lines as short as its longest word allows."""
    return textwrap.wrap(title, max(4, *map(len, title.split())), break_on_hyphens=False)


def _shortened(text: str, width: int) -> str:
    """Both ends of a text: the end often says more than the beginning."""
    if len(text) <= width:
        return text
    tail = width // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def _more(rows: list[Row], limit: int | None) -> list[str]:
    return [] if limit is None or len(rows) <= limit else [f"  ... and {len(rows) - limit} more"]


def _meaning(sweep: Sweep) -> list[str]:
    lines = []
    if sweep.interrupted:
        lines.append("Interrupted: this is what there is so far.")
    if (best := sweep.best) is not None:
        how = (
            f"{grouped(best.milliseconds, 4)} ms"
            if best.milliseconds is not None
            else f"{grouped(best.flop_per_cycle or 0.0, 1)} FLOP a cycle"
        )
        lines.append(f"Best: {_safe(best.name)} ({how}).")
    solved = min(sweep.solve, sum(row.flop_per_cycle is not None for row in sweep.rows))
    if sweep.certain and solved:
        lines.append(f"No other configuration achieves more than the best {solved} (proved).")
    elif solved:
        lines.append("Another configuration may achieve more: not all that may were solved to the end.")
    lines += sweep.notes
    lines.append("I >=: no smaller interval exists (proved); *: on the Pareto front of throughput and shared memory.")
    return lines


def _number(value: float | None, digits: int = 0) -> str:
    return DASH if value is None else grouped(value, digits)


def grouped(value: float, digits: int = 0) -> str:
    """A number with its thousands apart from 10,000 on, as the command prints it."""
    plain = f"{value:.{digits}f}"
    return plain if len(plain.lstrip("-").split(".")[0]) <= 4 else f"{value:,.{digits}f}"


def _scientific(value: float | None) -> str:
    return DASH if value is None else f"{value:.1e}"


def _safe(text: str) -> str:
    """On one line, without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in " ".join(text.splitlines()))
