"""A calibration as text."""

from __future__ import annotations

from .calibrating import Calibration
from .figures import Figure, number

HEAD = ("figure", "value", "unit", "spread", "residual", "fit")


def text(found: Calibration) -> str:
    """A line for each figure."""
    rows = [HEAD, *(_row(figure) for figure in found.figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join([*_title(found), "", *lines, "", *_meaning(found)]) + "\n"


def _title(found: Calibration) -> list[str]:
    return [
        f"{found.gpu} as {found.machine}: {len(found.figures)} figures, each of {found.launches} launches",
        f"{found.where}; {found.seconds:.1f} s on the GPU",
    ]


def _row(figure: Figure) -> tuple[str, ...]:
    residual = "" if figure.residual is None else percent(figure.residual)
    fit = figure.fit or figure.meaning
    return figure.name, number(figure.value), figure.unit, percent(figure.spread), residual, fit


def percent(part: float) -> str:
    """A part as percent."""
    return f"{100 * part:.1f} %"


def _meaning(found: Calibration) -> list[str]:
    return [
        "spread: half of what the middle four fifths of the launches span. residual: how far the farthest point of a",
        "fit lies from its line, as a part of the largest. Cycles are those of the multiprocessor.",
    ]
