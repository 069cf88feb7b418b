"""A sweep as a picture that needs nothing else."""

from __future__ import annotations

import math
from xml.sax.saxutils import escape

from .results import Row, Sweep
from .table import grouped

WIDTH, HEIGHT = 900, 540
LEFT, RIGHT, TOP, BOTTOM = 84, 24, 76, 104
STRIP = 22
"""Height of the strip below the axis for what does not fit."""
LETTER = 8.0
"""Width of a letter, roughly."""
LABELS = 8
"""Most points of the front that are named."""

LIGHT = {"ink": "#1f2430", "soft": "#667085", "grid": "#e4e7ec", "paper": "#ffffff"}
LIGHT |= {"solved": "#1d6fd1", "bound": "#8a94a6", "front": "#d1491d", "rejected": "#b42318"}
DARK = {"ink": "#e6e9ef", "soft": "#9aa4b5", "grid": "#303642", "paper": "#14171d"}
DARK |= {"solved": "#6cb0ff", "bound": "#7d8798", "front": "#ff9466", "rejected": "#ff7a6e"}
FONT = """.twill-sweep { font-family: system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; }
.twill-sweep text { font-size: 14px; }
.twill-sweep .soft { font-size: 13px; }
.twill-sweep .title { font-size: 18px; font-weight: 600; }
.twill-sweep path, .twill-sweep .bounded, .twill-sweep .ring { fill: none; stroke-width: 1.5; }
.twill-sweep .front, .twill-sweep .ring { stroke-width: 2; }
.twill-sweep .grid, .twill-sweep .axis { stroke-width: 1; }
"""
COLOURS = """.twill-sweep .paper {{ fill: {paper}; }}
.twill-sweep text {{ fill: {ink}; }}
.twill-sweep .name {{ paint-order: stroke; stroke: {paper}; stroke-width: 4px; stroke-linejoin: round; }}
.twill-sweep .soft {{ fill: {soft}; }}
.twill-sweep .grid {{ stroke: {grid}; }}
.twill-sweep .axis {{ stroke: {soft}; }}
.twill-sweep .solved {{ fill: {solved}; }}
.twill-sweep .bounded {{ stroke: {bound}; }}
.twill-sweep .rejected {{ stroke: {rejected}; }}
.twill-sweep .front, .twill-sweep .ring {{ stroke: {front}; }}
"""
STYLE = f"{FONT}{COLOURS.format(**LIGHT)}@media (prefers-color-scheme: dark) {{\n{COLOURS.format(**DARK)}}}\n"


def svg(sweep: Sweep) -> str:
    """Throughput against shared memory; discs are solved, circles bounds, crosses do not fit."""
    shown = [
        row for row in sweep.rows if row.fits is not False and row.rate is not None and row.shared_bytes is not None
    ]
    rejected = [row for row in sweep.rows if row.fits is False]
    scale = _scale(shown)
    x_step, x_count = _ticks(max([row.shared_bytes / 1024 for row in [*shown, *rejected] if row.shared_bytes] or [1]))
    y_step, y_count = _ticks(max([(row.rate or 0.0) * scale for row in shown] or [1]))

    def x(row: Row) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (row.shared_bytes or 0) / 1024 / (x_step * x_count)

    def y(row: Row) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (row.rate or 0.0) * scale / (y_step * y_count)

    front = sweep.pareto()
    label = f"{sweep.kernel} on {sweep.machine}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="twill-sweep" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'width="{WIDTH}" height="{HEIGHT}" style="max-width: 100%; height: auto">',
        f"<title>{_text(label)}: throughput against shared memory</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text class="title" x="{LEFT}" y="30">{_text(label)}</text>',
        *_legend(sweep, shown, rejected),
        *_axes(x_step, x_count, y_step, y_count),
        *(_cross(row, x(row)) for row in rejected),
        *(_point(row, x(row), y(row)) for row in reversed(shown)),
        *_front([(row, x(row), y(row)) for row in front]),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _legend(sweep: Sweep, shown: list[Row], rejected: list[Row]) -> list[str]:
    solved = sum(row.flop_per_cycle is not None for row in shown)
    entries = [
        ('<circle class="solved" cx="0" cy="-5" r="6"/>', f"solved exactly ({solved})"),
        ('<circle class="bounded" cx="0" cy="-5" r="5"/>', f"at most, proved ({len(shown) - solved})"),
        ('<path class="rejected" d="M-5-10L5 0M-5 0L5-10"/>', f"does not fit ({len(rejected)})"),
        ('<path class="front" d="M-10-5H10"/>', "Pareto front"),
    ]
    place: float = LEFT + 8
    parts = []
    for mark, words in entries:
        parts.append(f'<g transform="translate({place} 56)">{mark}<text class="soft" x="14">{words}</text></g>')
        place += 40 + 0.9 * LETTER * len(words)
    return parts


def _axes(x_step: float, x_count: int, y_step: float, y_count: int) -> list[str]:
    floor, width, height = HEIGHT - BOTTOM, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    parts = []
    for tick in range(y_count + 1):
        at = floor - height * tick / y_count
        parts.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="soft" x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{tick * y_step:g}</text>')
    for tick in range(x_count + 1):
        at = LEFT + width * tick / x_count
        parts.append(f'<path class="grid" d="M{at:.1f} {TOP}V{floor}"/>')
        words = f'y="{floor + STRIP + 20}" text-anchor="middle">{tick * x_step:g}'
        parts.append(f'<text class="soft" x="{at:.1f}" {words}</text>')
    parts.append(
        f'<path class="axis" d="M{LEFT} {TOP}V{floor + STRIP}H{WIDTH - RIGHT}M{LEFT} {floor}H{WIDTH - RIGHT}"/>'
    )
    middle = f'x="{LEFT + width / 2:.1f}" y="{floor + STRIP + 46}" text-anchor="middle"'
    parts.append(f"<text {middle}>shared memory, KiB</text>")
    turned = f'transform="translate(24 {TOP + height / 2:.1f}) rotate(-90)" text-anchor="middle"'
    parts.append(f"<text {turned}>TFLOP/s in the steady state</text>")
    return parts


def _point(row: Row, x: float, y: float) -> str:
    solved = row.flop_per_cycle is not None
    look = f'class="{"solved" if solved else "bounded"}" r="{6 if solved else 5}"'
    most = (
        f"{row.teraflops:.1f} TFLOP/s, I = {grouped(row.ii or 0)} ({row.status})"
        if solved
        else f"at most {row.bound_teraflops:.1f} TFLOP/s"
    )
    words = f"{row.name}: {most}, {grouped(row.shared_bytes or 0)} bytes of shared memory"
    return f'<circle {look} cx="{x:.1f}" cy="{y:.1f}"><title>{_text(words)}</title></circle>'


def _cross(row: Row, x: float) -> str:
    y = HEIGHT - BOTTOM + STRIP / 2
    path = f"M{x - 4:.1f} {y - 4:.1f}l8 8m0-8l-8 8"
    return f'<path class="rejected" d="{path}"><title>{_text(f"{row.name}: {row.reason}")}</title></path>'


def _front(points: list[tuple[Row, float, float]]) -> list[str]:
    """A staircase, as what lies right of a point and below it is beaten by it; the points are named."""
    if not points:
        return []
    steps = f"M{points[0][1]:.1f} {points[0][2]:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for _, x, y in points[1:])
    parts = [f'<path class="front" d="{steps}H{WIDTH - RIGHT}"/>']
    heights: list[float] = []
    for row, x, y in points:
        parts.append(f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="9" pointer-events="none"/>')
        # Names that would lie over another are left out; pointing at the disc shows them.
        if len(heights) < LABELS and all(abs(y - other) > 16 for other in heights):
            heights.append(y)
            words = _short(row.name)
            anchor, shift = ("start", 14) if x + 14 + LETTER * len(words) < WIDTH - RIGHT else ("end", -14)
            parts.append(
                f'<text class="name" x="{x + shift:.1f}" y="{y + 20:.1f}" text-anchor="{anchor}">{_text(words)}</text>'
            )
    return parts


def _scale(rows: list[Row]) -> float:
    """TFLOP/s for one FLOP per cycle."""
    return next((row.bound_teraflops / row.bound for row in rows if row.bound and row.bound_teraflops), 1.0)


def _ticks(most: float) -> tuple[float, int]:
    """Size of a step and number of steps, four to eight, from nothing to at least `most`."""
    rough = max(most, 1e-9) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough)
    return step, max(1, math.ceil(most / step - 1e-9))


def _short(name: str) -> str:
    return name if len(name) <= 60 else name[:59] + "…"


def _text(text: str) -> str:
    """Safe within XML, which has no control characters at all."""
    return escape("".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text))
