"""A sweep as text."""

from __future__ import annotations

from collections.abc import Callable

from .results import Row, Sweep, word

DASH = "-"


def text(sweep: Sweep, limit: int | None) -> str:
    """Title, a table of those that may fit, those that do not with the reason, and what it all means."""
    fitting = [row for row in sweep.rows if row.fits is not False and row.status != "failed"]
    others = [row for row in sweep.rows if row.fits is False or row.status == "failed"]
    parts = [f"{sweep.kernel} on {sweep.machine}: {len(sweep.rows)} configurations, {len(others)} of them rejected"]
    if fitting:
        parts += ["", *_table(fitting[:limit], _front(sweep)), *_more(fitting, limit)]
    if remarks := [row for row in fitting[:limit] if row.reason]:
        parts += ["", "Remarks", *(f"  {_safe(row.name)}: {_safe(row.reason or row.status)}" for row in remarks)]
    if others:
        parts += ["", "Rejected"]
        parts += [f"  {_safe(row.name)}: {_safe(row.reason or row.status)}" for row in others[:limit]]
        parts += _more(others, limit)
    return "\n".join([*parts, "", *_meaning(sweep)])


def _front(sweep: Sweep) -> set[int]:
    return {row.index for row in sweep.pareto()}


def _value_of(name: str) -> Callable[[Row], str]:
    return lambda row: word(row.configuration[name])


def _table(rows: list[Row], front: set[int]) -> list[str]:
    columns: list[tuple[str, Callable[[Row], str]]] = []
    for name in rows[0].configuration:
        columns.append((name, _value_of(name)))
    columns += [
        ("I >=", lambda row: _number(row.lower_bound)),
        ("at most TFLOP/s", lambda row: _number(row.bound_teraflops, 1)),
        ("I", lambda row: _number(row.ii)),
        ("TFLOP/s", lambda row: _number(row.teraflops, 1)),
        ("FLOP/cycle/SM", lambda row: _number(row.flop_per_cycle, 1)),
        ("status", lambda row: row.status),
        ("stages", lambda row: _number(row.stages)),
        ("length", lambda row: _number(row.length)),
        (
            "shared bytes",
            lambda row: ("" if row.ii else ">= ") + _number(row.shared_bytes) if row.shared_bytes else DASH,
        ),
        ("registers", lambda row: _number(row.registers)),
    ]
    if any(row.predicted_milliseconds is not None for row in rows):
        columns += [("predicted ms", lambda row: _number(row.predicted_milliseconds, 4))]
        columns += [("spilled", lambda row: _number(row.spilled))]
    if any(row.milliseconds is not None or row.error is not None for row in rows):
        columns += [("ms", lambda row: _number(row.milliseconds, 4)), ("error", lambda row: _scientific(row.error))]
    columns += [("front", lambda row: "*" if row.index in front else "")]
    cells = [[_safe(name) for name, _ in columns], *([_safe(show(row)) for _, show in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(line, widths)).rstrip() for line in cells]


def _more(rows: list[Row], limit: int | None) -> list[str]:
    return [] if limit is None or len(rows) <= limit else [f"  ... and {len(rows) - limit} more"]


def _meaning(sweep: Sweep) -> list[str]:
    lines = []
    if sweep.interrupted:
        lines.append("Interrupted: this is what there is so far.")
    if (best := sweep.best) is not None:
        how = (
            f"{best.milliseconds:.4f} ms"
            if best.milliseconds is not None
            else f"{best.flop_per_cycle:.1f} FLOP a cycle"
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
    return DASH if value is None else f"{value:.{digits}f}"


def _scientific(value: float | None) -> str:
    return DASH if value is None else f"{value:.1e}"


def _safe(text: str) -> str:
    """On one line, without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in " ".join(text.splitlines()))
