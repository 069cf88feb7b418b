"""Plots as SVG: lines and points over logarithmic or linear axes, several panels side by side. No dependencies."""

import math
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 440, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 30, 44
COLOURS = ["#1f6fb2", "#d1495b", "#2a9d5b", "#e08e1b", "#7a5195", "#555555"]


@dataclass(frozen=True)
class Series:
    """`step`: a value holds until the next; otherwise points, with straight lines between them if `line`."""

    name: str
    points: list[tuple[float, float]]
    colour: int = 0
    step: bool = False
    line: bool = False
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """One set of axes."""

    title: str
    x: str
    y: str
    series: list[Series] = field(default_factory=list)
    log_x: bool = True
    log_y: bool = True


class Axis:
    """From values to pixels."""

    def __init__(self, values: list[float], log: bool, first: float, last: float) -> None:
        self.log, self.first, self.last = log, first, last
        self.low, self.high = min(values), max(values)
        if self.low == self.high:
            self.low, self.high = self.low * 0.9, self.high * 1.1 or 1.0
        if log:
            room = (self.high / self.low) ** 0.04
            self.low, self.high = self.low / room, self.high * room
        else:
            self.high += 0.04 * (self.high - self.low)

    def at(self, value: float) -> float:
        change = math.log if self.log else float
        part = (change(value) - change(self.low)) / (change(self.high) - change(self.low))
        return self.first + part * (self.last - self.first)

    def ticks(self) -> list[float]:
        if self.log and self.high / self.low >= 10:
            whole = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            ticks = [m * 10.0**k for k in whole for m in ((1, 2, 5) if self.high / self.low < 300 else (1,))]
        else:
            unit = 10.0 ** math.floor(math.log10((self.high - self.low) / 3))
            unit *= next(k for k in (1, 2, 5, 10) if (self.high - self.low) / (k * unit) <= 6)
            ticks = [k * unit for k in range(math.ceil(self.low / unit), math.floor(self.high / unit) + 1)]
        return [tick for tick in ticks if self.low <= tick <= self.high]


def page(panels: list[Panel], columns: int) -> str:
    """All panels, row by row."""
    rows = math.ceil(len(panels) / columns)
    width, height = WIDTH * min(columns, len(panels)), HEIGHT * rows
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ' font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for k, panel in enumerate(panels):
        lines.append(f'<g transform="translate({k % columns * WIDTH},{k // columns * HEIGHT})">')
        lines += drawn(panel)
        lines.append("</g>")
    return "\n".join([*lines, "</svg>", ""])


def drawn(panel: Panel) -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    lines = [text(LEFT, 16, panel.title, "start", 'font-weight="bold"')]
    shown = [series for series in panel.series if series.points]
    if not shown:
        return [*lines, text(WIDTH / 2, HEIGHT / 2, "nothing measured", "middle")]
    x = Axis([point[0] for series in shown for point in series.points], panel.log_x, LEFT, right)
    y = Axis([point[1] for series in shown for point in series.points], panel.log_y, bottom, TOP)
    for tick in x.ticks():
        lines.append(rule(x.at(tick), TOP, x.at(tick), bottom))
        lines.append(text(x.at(tick), bottom + 14, f"{tick:g}", "middle"))
    for tick in y.ticks():
        lines.append(rule(LEFT, y.at(tick), right, y.at(tick)))
        lines.append(text(LEFT - 5, y.at(tick) + 4, f"{tick:g}", "end"))
    lines.append(f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}" fill="none" stroke="#888"/>')
    lines.append(text((LEFT + right) / 2, HEIGHT - 12, panel.x, "middle"))
    middle = (TOP + bottom) / 2
    lines.append(text(14, middle, panel.y, "middle", f'transform="rotate(-90 14 {middle:g})"'))
    named: dict[str, Series] = {}
    for series in shown:
        lines += curve(series, x, y, right)
        named.setdefault(series.name, series)
    height = 14 * len(named) + 8
    lines.append(f'<rect x="{right - 124}" y="{TOP + 2}" width="122" height="{height}" fill="white" fill-opacity="0.8"/>')
    for k, series in enumerate(named.values()):
        at = TOP + 14 + 14 * k
        lines.append(f'<rect x="{right - 118}" y="{at - 8}" width="10" height="8" fill="{colour(series)}"/>')
        lines.append(text(right - 103, at, series.name, "start"))
    return lines


def curve(series: Series, x: Axis, y: Axis, right: float) -> list[str]:
    points = [(x.at(a), y.at(b)) for a, b in series.points]
    if not (series.step or series.line):
        return [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour(series)}"/>' for a, b in points]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for a, b in points[1:]:
        path += f"H{a:.1f}V{b:.1f}" if series.step else f"L{a:.1f} {b:.1f}"
    path += f"H{right:.1f}" if series.step else ""
    dashes = ' stroke-dasharray="5 4"' if series.dashed else ""
    return [f'<path d="{path}" fill="none" stroke="{colour(series)}" stroke-width="1.5"{dashes}/>']


def colour(series: Series) -> str:
    return COLOURS[series.colour % len(COLOURS)]


def rule(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="#e4e4e4"/>'


def text(x: float, y: float, words: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(words)}</text>'
