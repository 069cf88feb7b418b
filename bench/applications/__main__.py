"""Packages' own functions with Twill under their Triton kernels: right, and never slower?

    python -m bench.applications --sources FOLDER            # FOLDER has the packages' Python, a folder for each
    python -m bench.applications --sources FOLDER --only fla
    python -m bench.applications --sources FOLDER --make 8   # only makes kernels, by 8 cases at once, into the cache
    python -m bench.applications --sources FOLDER --at-once 8 # makes kernels by 8 cases at once; one at a time is timed
    python -m bench.applications --sources FOLDER --json rows.json
    python -m bench.applications --sources FOLDER --plant 0:2 --make 8 # wrong kernels on purpose: does TWILL=check say so?

Needs a Hopper GPU, torch, Triton 3.6, twill_gpu, and the packages' sources on the path or in --sources. Each call is made by
stock Triton and with `twill_gpu.install("wait")`, in one process: results are compared with each other in every call while
kernels are tried, and with float64 where a case has a reference; then the whole call is timed on both sides: by the GPU's
clock, and by the CPU's when calls follow each other.

The exit code is 1 if a result differs beyond rounding.
"""

import argparse
import collections
import concurrent.futures
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from twill_gpu.contest import OWN

from . import planting
from .case import cases
from .names import PACKAGES

SECONDS = 420
"""After which a case is ended."""


def names(only: str) -> list[str]:
    """The cases of all packages in whose name a regular expression is found."""
    import importlib

    for package in PACKAGES:
        if (Path(__file__).parent / "packages" / f"{package}.py").exists():
            importlib.import_module(f"bench.applications.packages.{package}")
    return [name for one in cases() if re.search(only, name := f"{one.package}.{one.name}")]


def answer(name: str, sources: str, mode: str, seconds: float, lock: str | None = None) -> dict:
    """The row of a case. lock: a file that one process at a time has while it measures."""
    command = [sys.executable, "-m", "bench.applications.worker", name, sources, mode, *([lock] if lock else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"case": name, "error": f"no answer in {seconds:.0f} s"}
    for line in reversed(done.stdout.splitlines()):
        if line.startswith('{"case"'):
            return json.loads(line)
    return {"case": name, "error": f"ended with {done.returncode}: {done.stderr[-600:]}"}


def is_wrong(row: dict) -> bool:
    """Whether a result differs from stock Triton's by more than rounding, and more than stock Triton from itself.

    Where there is a float64 reference, it decides: Twill's error may be twice stock Triton's.
    """
    if row.get("error_twill"):
        return any(ours > max(2 * stock, row["tolerance"]) for ours, stock in zip(row["error_twill"], row["error_stock"]))
    pairs = zip(row.get("differences", ()), row.get("allowed", ()), row.get("stock_varies", ()))
    return any(ours > max(allowed, 4 * varies) for ours, allowed, varies in pairs)


def table(rows: list[dict]) -> str:
    """The rows as Markdown."""
    lines = [
        "| call | kernels: Twill's, others' stages and warps, all | stock ms | with Twill ms | ratio | by the clock |"
        " in a CUDA graph | difference | error, stock's | speed by other libraries' |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if "error" in row:
            lines.append(f"| {row['case']} | {' '.join(row['error'].split())[:160]} | | | | | | | | |")
            continue
        kernels = row["kernels"]
        taken, made = (sum(bool(one[key]) for one in kernels) for key in ("wins", "configurations"))
        errors = f"{max(row['error_twill']):.1e}, {max(row['error_stock']):.1e}" if row["error_twill"] else ""
        lines.append(
            f"| {row['case']} | {taken}, {made}, {len(kernels)} | {row['stock_ms']:.3f} | {row['twill_ms']:.3f} | "
            f"{row['stock_ms'] / row['twill_ms']:.3f} | {row['stock_wall_ms'] / row['twill_wall_ms']:.3f} | {in_graph(row)} | {'**' if is_wrong(row) else ''}{max(row['differences']):.1e}"
            f"{'**' if is_wrong(row) else ''} | {errors} | {peers(row)} |"
        )
    return "\n".join(lines)


def in_graph(row: dict) -> str:
    """Stock Triton's time by Twill's in CUDA graphs of the call; a dash where it cannot be captured."""
    graph = row.get("graph", {})
    return f"{graph['stock_ms'] / graph['twill_ms']:.3f}" if "stock_ms" in graph else "–"


def peers(row: dict) -> str:
    """Other libraries' times over Twill's."""
    all_of = row.get("peers", {}).items()
    return "; ".join(f"{name} {one['ms'] / row['twill_ms']:.3f}" if "ms" in one else f"{name} –" for name, one in all_of)


def kernels_table(rows: list[dict]) -> str:
    """A line for each kernel of all calls."""
    seen = collections.defaultdict(list)
    for row in rows:
        for one in row.get("kernels", ()):
            seen[row["case"].split(".")[0], one["name"]].append(one)
    lines = [
        "| kernel | grids | Twill's is the fastest | its speed by stock's | other stages and warps | speed of the fastest | else |",
        "|---|---|---|---|---|---|---|",
    ]
    for (package, name), each in sorted(seen.items()):
        speeds = [times["stock"] / own(times) for one in each for times in one["times"] if own(times)]
        why = sorted({one["reason"] for one in each if one["reason"]})
        spread = f"{min(speeds):.2f}–{max(speeds):.2f}" if speeds else ""
        wins = sum(one["wins"] for one in each)
        gains = [times["stock"] / times[times["winner"]] for one in each for times in one["times"] if times.get(times["winner"])]
        gained = f"{min(gains):.2f}–{max(gains):.2f}" if gains else ""
        others = sorted({side.replace("num_", "") for one in each for side in one["configurations"]})
        lines.append(
            f"| {package} `{name}` | {sum(one['grids'] for one in each)} | {wins} | {spread} | {'; '.join(others)} | {gained} | "
            f"{'; '.join(why)[:140]} |"
        )
    return "\n".join(lines)


def own(times: dict[str, float]) -> float | None:
    """Milliseconds of the fastest of Twill's kernels; None where it has none."""
    return min((time for side, time in times.items() if side in OWN and time), default=None)


def summary(rows: list[dict]) -> str:
    """What all rows say."""
    whole = [row for row in rows if "error" not in row]
    ratios = [row["stock_ms"] / row["twill_ms"] for row in whole]
    # A kernel that is left to stock Triton counts 1.
    speeds, raw = [], []
    for row in whole:
        for one in row["kernels"]:
            speeds += [t["stock"] / t[t["winner"]] for t in one["times"] if t.get(t["winner"])] or [1.0]
            raw += [t["stock"] / own(t) for t in one["times"] if own(t)]
    parts = [f"{len(rows)} calls, {len(rows) - len(whole)} fail, {sum(map(is_wrong, whole))} wrong"]
    if ratios:
        parts.append(f"whole calls: geometric mean {mean(ratios):.3f}, least {min(ratios):.3f}")
    replays = [row["graph"]["stock_ms"] / row["graph"]["twill_ms"] for row in whole if "stock_ms" in row.get("graph", {})]
    if replays:
        parts.append(f"{len(replays)} in CUDA graphs: geometric mean {mean(replays):.3f}, least {min(replays):.3f}")
    if speeds:
        parts.append(f"{len(speeds)} tensor-core kernels and grids, those left to stock Triton as 1: geometric mean {mean(speeds):.3f}")
    if raw:
        parts.append(
            f"{len(raw)} with a kernel of Twill's: geometric mean {mean(raw):.3f}, {sum(one >= 0.95 for one in raw)} at least 0.95"
        )
    return "; ".join(parts) + "."


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def made(chosen: list[str], sources: str, options: argparse.Namespace) -> int:
    """Makes the kernels of cases, and says what `TWILL=check` finds of each; their times mean nothing beside each other."""
    rows: list[dict] = []
    with concurrent.futures.ThreadPoolExecutor(options.make) as pool:
        asked = [pool.submit(answer, name, sources, "check", options.seconds) for name in chosen]
        for done in concurrent.futures.as_completed(asked):
            rows.append(row := done.result())
            said = row.get("error") or [one["checked"] or one["reason"] for one in row["kernels"]]
            print(f"made: {row['case']} {row.get('seconds', '')} {str(said)[:300]}", flush=True)
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


def plant(chosen: list[str], sources: str, options: argparse.Namespace) -> int:
    """Has Twill make wrong kernels, and says which of them `TWILL=check` did not notice."""
    rows: list[dict] = []

    def ask(name: str, seeds: range) -> dict:
        return answer(name, sources, f"{planting.MODE}{seeds.start}:{seeds.stop}", options.seconds)

    for row in planting.run(chosen, planting.seeds_of(options.plant), ask, options.make or 1):
        rows.append(row)
        print(planting.line(row), flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(planting.summary(rows))
    return 0


def main() -> int:
    """Runs the cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, help="a folder with a folder for each package, which holds its modules")
    parser.add_argument("--only", default="", help="cases in whose name this regular expression is found")
    parser.add_argument("--mode", default="wait", help="as TWILL (default: wait)")
    parser.add_argument("--make", type=int, default=0, metavar="CASES", help="only make kernels, by so many cases at once")
    parser.add_argument(
        "--at-once", type=int, default=1, metavar="CASES", help="make kernels by so many cases at once, and time one at a time"
    )
    parser.add_argument(
        "--plant", metavar="FIRST:LAST", help="only make wrong kernels, with the changes of these seeds; cases at once as by --make"
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="after which a case is ended")
    parser.add_argument("--json", type=Path, help="write the rows here, too")
    options = parser.parse_args()
    folders = sorted(str(one) for one in options.sources.iterdir()) if options.sources else []
    chosen, sources = names(options.only), ":".join(folders)
    if options.plant:
        return plant(chosen, sources, options)
    if options.make:
        return made(chosen, sources, options)
    rows: list[dict] = []
    with tempfile.NamedTemporaryFile() as file, concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        lock = file.name if options.at_once > 1 else None
        asked = [pool.submit(answer, name, sources, options.mode, options.seconds, lock) for name in chosen]
        for done in concurrent.futures.as_completed(asked):
            rows.append(done.result())
            print(table(rows[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    rows.sort(key=lambda row: chosen.index(row["case"]))
    print(table(rows), kernels_table(rows), summary(rows), sep="\n\n")
    return int(any(is_wrong(row) for row in rows))


if __name__ == "__main__":
    os.environ.setdefault("TWILL_JOBS", "4")
    raise SystemExit(main())
