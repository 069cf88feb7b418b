"""The chart of measured speed in the README: `python -m bench.gpu.chart` draws docs/pictures/speed.svg of results/gpu.json.

A bar is the speed of Twill's kernel over that of a peer in the same run; the line through its end spans the rounds of that run.
"""

import json
import sys
from pathlib import Path
from xml.sax.saxutils import escape

from bench.gpu.report import targets

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results" / "gpu.json"
PICTURE = ROOT / "docs" / "pictures" / "speed.svg"

STOCK = "stock Triton"
LIBRARIES = ("FlashAttention CuTe", "cuBLAS", "cuDNN")
COLOURS = {STOCK: "#9aa5b1", **dict.fromkeys(LIBRARIES, "#1f6fb2")}

LEFT, SCALE, BAR, GAP, TOP = 236, 290, 12, 8, 46
"""Pixels: of names, of a speed of 1, of a bar, between rows, of the head."""


def title(row: str) -> str:
    """A row of the benchmark in words: `forward-causal-d128-16k`."""
    words = row.split("-")
    if words[0] == "gemm":
        what = {"pointers": " of pointers", "gelu": ", bias, GELU", "rmsnorm": " of RMS norm", "gathered": " of gathered rows"}
        size = f"{int(words[-1]):,}" if words[-1].isdigit() else words[-1].replace("x", " × ")
        return f"GEMM{what.get(words[1], '')} {size}"
    if words[0] not in ("forward", "backward"):
        return row
    causal = " causal" if "causal" in words else ""
    return f"attention {words[0]}{causal} {words[-2]}, {words[-1]} keys"


def bars(answer: dict) -> list[tuple[str, list[dict]]]:
    """For each row of the benchmark what is drawn of it, in the order of its page."""
    rows: dict[str, list[dict]] = {}
    for one in targets(answer):
        if one["measured"] is not None and one["against"] in COLOURS:
            rows.setdefault(one["row"], []).append(one)
    return list(rows.items())


def drawn(answer: dict) -> str:
    """The picture."""
    rows = bars(answer)
    most = max(one["spread"][1] for _, all_of in rows for one in all_of)
    height = TOP + sum(len(all_of) * BAR + GAP for _, all_of in rows) + 24
    width = round(LEFT + most * SCALE + 150)
    gpu = answer["gpu"]["name"]
    days = sorted({(result.get("run") or answer)["date"] for result in answer["rows"]})
    date = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ' font-family="sans-serif" font-size="11">',
        f"<title>Speed of Twill's kernels over that of others, {escape(gpu)}, {date}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="8" y="16" font-weight="bold">Speed of Twill\'s kernels over that of a peer (1: as fast), {escape(gpu)}, {date}</text>',
        f'<rect x="8" y="25" width="10" height="10" fill="{COLOURS[STOCK]}"/><text x="22" y="34">over stock Triton</text>',
        f'<rect x="130" y="25" width="10" height="10" fill="{COLOURS[LIBRARIES[0]]}"/><text x="144" y="34">over the library that is named</text>',
    ]
    y = TOP
    for row, all_of in rows:
        middle = y + len(all_of) * BAR / 2 + 4
        lines.append(f'<text x="{LEFT - 8}" y="{middle:g}" text-anchor="end">{escape(title(row))}</text>')
        for one in all_of:
            against, measured, (low, high) = one["against"], one["measured"], one["spread"]
            lines.append(
                f'<rect x="{LEFT}" y="{y + 1}" width="{measured * SCALE:.1f}" height="{BAR - 2}" fill="{COLOURS[against]}"/>'
                f'<path d="M{LEFT + low * SCALE:.1f} {y + BAR / 2:g}H{LEFT + high * SCALE:.1f}" stroke="#222"/>'
            )
            end = LEFT + max(high, measured) * SCALE + 6
            said = f"{measured:.3f}" + ("" if against == STOCK else f" {against}")
            lines.append(f'<text x="{end:.1f}" y="{y + BAR - 2}">{escape(said)}</text>')
            y += BAR
        y += GAP
    lines.append(f'<path d="M{LEFT + SCALE} {TOP - 4}V{y}" stroke="#d1495b" stroke-dasharray="4 3"/>')
    lines.append(f'<text x="{LEFT + SCALE}" y="{y + 14}" text-anchor="middle">1</text>')
    return "\n".join([*lines, "</svg>", ""])


def main() -> int:
    PICTURE.write_text(drawn(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
    print(f"written to {PICTURE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
