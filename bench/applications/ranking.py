"""What a ranking of collected kernels predicts, beside what is measured.

    twill collect -o kernels -- python -m bench.applications.plain --sources FOLDER --only fla
    python -m bench.applications --sources FOLDER --only fla --json rows.json
    python -m bench.applications.ranking kernels rows.json

A kernel of the folder is found in the rows by its TTIR. The time that it would save is measured as the time that was collected,
less its part by which the fastest of Twill's kernels is faster than stock Triton: the median of its grids, 0 where none is.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from twill_gpu.collecting.ranking import Ranked, rank
from twill_gpu.contest import OWN, STOCK


def parts(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The part of its time that each kernel saves by Twill's, by its name in a folder of collected kernels."""
    found: dict[str, list[float]] = {}
    for kernel in (kernel for row in rows for kernel in row.get("kernels", ())):
        for times in kernel["times"]:
            own = [times[side] for side in OWN if side in times]
            if kernel.get("collected") and own and STOCK in times:
                found.setdefault(kernel["collected"], []).append(max(0.0, 1 - min(own) / times[STOCK]))
    return {name: statistics.median(each) for name, each in found.items()}


def table(ranked: list[Ranked], measured: dict[str, float]) -> str:
    """Markdown, in the order of the ranking."""
    lines = ["| kernel | launches | ms | saves, predicted | saves, measured | |", "|---|--:|--:|--:|--:|---|"]
    for one in ranked:
        if one.measured is None:
            continue
        name = one.collected.ttir.stem
        predicted = "–" if one.saved is None else f"{one.saved:.2f} ms, {100 * one.saved / one.measured:.0f} %"
        part = measured.get(name)
        real = "–" if part is None else f"{part * one.measured:.2f} ms, {100 * part:.0f} %"
        count = f"{one.collected.record.count:,}"
        lines.append(f"| {name} | {count} | {one.measured:.2f} | {predicted} | {real} | {one.reason} |")
    return "\n".join(lines)


def main() -> None:
    """Ranks, and compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of twill collect")
    parser.add_argument("rows", type=Path, help="as bench.applications wrote them")
    parser.add_argument("--machine", default="h200")
    options = parser.parse_args()
    ranked = rank(options.folder, options.machine, progress=lambda text: print(text, file=sys.stderr, flush=True))
    print(table(ranked, parts(json.loads(options.rows.read_text(encoding="utf-8")))))


if __name__ == "__main__":
    main()
