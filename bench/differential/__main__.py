"""Kernels that Twill generated, compared on a GPU with what stock Triton makes of the same TTIR, on random arguments.

    python -m bench.differential FOLDER --ttir TTIRFOLDER                  # FOLDER/ID/ and TTIRFOLDER/ID.ttir
    python -m bench.differential FOLDER --ttir TTIRFOLDER --only fla --time --json rows.json
    python -m bench.differential FOLDER --ttir TTIRFOLDER --compile-only   # needs no GPU and no torch

Needs a Hopper GPU, torch and Triton 3.6. Nothing is known of the kernels but their arguments' types and names: pointers
get memory of their own with random contents, numbers are chosen by name. So results need not mean anything, but both
sides must agree on them. Verdicts:

    equal, close        bit for bit, or within the tolerance of the type
    DIFFERENT           beyond it, where stock Triton agrees with itself, also with another number of warps
    ours fails          does not compile, faults, or says nothing for long; stock Triton runs
    stock fails         stock Triton does one of these, with all arguments that were tried
    nothing written     neither side changed any memory
    not deterministic   stock Triton's results vary: programs or threads write to the same place
    skipped             the launcher refuses the arguments, or a file is missing

A kernel has the worst verdict of its trials, but one trial that compares something counts more than others that do not.
The exit code is 1 if a kernel is DIFFERENT or ours fails.
"""

import argparse
import collections
import json
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from .arguments import FALLBACKS, TRIALS
from .comparing import clock, compare, compile_both
from .processes import Worker, each

TASKS = {"compile": compile_both, "compare": compare, "clock": clock}
RUNNERS = 6
"""Processes that share the GPU, except while times are taken."""
COMPILE_SECONDS, TRIAL_SECONDS = 120, 15
WIDE = 132
"""Programs along the first axis where times are taken: one for each multiprocessor."""

AGREE, WRONG = ("equal", "close"), ("DIFFERENT", "ours fails")
VERDICTS = (*WRONG, "close", "equal", "not deterministic", "nothing written", "stock fails", "skipped")
"""The first one that any trial has is the kernel's."""


def compiled(worker: Worker, row: dict) -> dict:
    """A row of a kernel that compiles on both sides; else with its verdict."""
    answer = worker.ask({"task": "compile", **row["task"]}, COMPILE_SECONDS)
    if "error" in answer:
        row |= {"verdict": failure(answer), "note": f"compiling: {answer['error']}"}
    return row


def compared(worker: Worker, row: dict) -> dict:
    """The row with all trials and the verdict."""
    row["trials"] = []
    for trial in TRIALS + FALLBACKS:
        if trial in FALLBACKS and any(one["verdict"] in AGREE + WRONG for one in row["trials"]):
            break
        answer = worker.ask({"task": "compare", "trial": trial, **row["task"]}, TRIAL_SECONDS)
        if "error" in answer:
            answer = {"verdict": failure(answer), "note": answer["error"]}
        row["trials"].append({"trial": trial.name, **answer})
    verdicts = [one["verdict"] for one in row["trials"]]
    row["verdict"] = next(verdict for verdict in VERDICTS if verdict in verdicts)
    row["note"] = "; ".join(map(figures, row["trials"]))
    return row


def failure(answer: dict) -> str:
    """The verdict on an error, by the stage that it came from."""
    if answer.get("refused"):
        return "skipped"
    return {"stock": "stock fails", "ours": "ours fails"}.get(answer["stage"], "skipped")


def timed(worker: Worker, row: dict) -> dict:
    """The row with times: of a wide grid, or of the first trial's where that does not run."""
    trial = TRIALS[0]
    for grid in ((WIDE, *trial.grid[1:]), trial.grid):
        answer = worker.ask({"task": "clock", "trial": trial, "grid": grid, **row["task"]}, TRIAL_SECONDS)
        if "error" not in answer:
            return row | answer
    return row | {"time_error": f"{answer['stage']}: {answer['error']}"}


def figures(trial: dict) -> str:
    """A trial in words."""
    text = f"{trial['trial']}: {trial['verdict']}"
    if trial.get("changed"):
        text += f", {trial['changed']} changed"
        if trial["finite"] < trial["changed"]:
            text += f" ({trial['finite']} finite)"
    if trial.get("differing"):
        text += f", {trial['differing']} differ, {trial['beyond']} beyond tolerance"
        text += f", by {trial['most']:.3g}, relative {trial['relative']:.3g}"
    if trial.get("where"):
        text += f", in {' '.join(trial['where'])}"
    return text + (f", {trial['note']}" if trial["note"] else "")


def rows_of(options: argparse.Namespace) -> list[dict]:
    """A row for each folder; with a verdict where a file is missing."""
    rows = []
    for folder in sorted(options.folder.resolve().iterdir()):
        if not folder.is_dir() or not re.search(options.only, folder.name):
            continue
        ttir = options.ttir.resolve() / f"{folder.name}.ttir"
        task = {"id": folder.name, "folder": folder, "ttir": ttir, "seed": options.seed}
        row = {"id": folder.name, "task": task | {"launchers": not options.compile_only}}
        missing = [path.name for path in (ttir, folder / "launch.py", folder / "kernel.json") if not path.is_file()]
        rows.append(row | ({"verdict": "skipped", "note": f"no {', '.join(missing)}"} if missing else {}))
    return rows


def run(rows: list[dict], options: argparse.Namespace) -> None:
    """Completes the rows, in phases; a kernel's line is printed as soon as its verdict is known."""
    by_id = {row["id"]: row for row in rows}

    def phase(name: str, chosen: list[dict], work: Callable, jobs: int, gpus: int = 1) -> None:
        begin = time.monotonic()
        for row in each(chosen, work, jobs, gpus, TASKS):
            by_id[row["id"]] = row
            if "ratio" in row:
                print(f"{row['id']}: {row['stock_ms']:.4f} / {row['ours_ms']:.4f} ms = {row['ratio']:.2f}", flush=True)
            elif "time_error" in row:
                print(f"{row['id']}: not timed: {row['time_error']}", flush=True)
            elif "verdict" in row:
                print(f"{row['id']}: {row['verdict']}: {row['note']}", flush=True)
        rows[:] = by_id.values()
        print(f"-- {name}: {len(chosen)} kernels in {time.monotonic() - begin:.0f} s", flush=True)
        write(rows, options.json)

    phase("compiled", [row for row in rows if "verdict" not in row], compiled, options.jobs, gpus=0)
    if options.compile_only:
        return
    phase("compared", [row for row in rows if "verdict" not in row], compared, options.runners)
    if options.time:
        agreed = [row for row in rows if any(t["verdict"] in AGREE for t in row.get("trials", [])[:1])]
        phase("timed", agreed, timed, 1)


def write(rows: list[dict], path: Path | None) -> None:
    if path:
        kept = [{key: value for key, value in row.items() if key != "task"} for row in rows]
        path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def summary(rows: list[dict]) -> str:
    """Kernels by verdict, and ratios of times."""
    counted = collections.Counter(row.get("verdict", "compiled") for row in rows)
    lines = [f"{counted[verdict]:5} {verdict}" for verdict in ("compiled", *VERDICTS) if counted[verdict]]
    if ratios := sorted(row["ratio"] for row in rows if "ratio" in row):
        middle = statistics.median(ratios)
        least, most = ratios[0], ratios[-1]
        lines.append(f"stock / ours: median {middle:.2f}, {least:.2f} to {most:.2f}, {len(ratios)} kernels")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="one sub-folder a kernel, as `twill compile` writes it")
    parser.add_argument("--ttir", type=Path, required=True, metavar="DIR", help="holds ID.ttir of sub-folder ID")
    parser.add_argument("--only", default="", metavar="REGEX", help="kernels whose name contains this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there, after each phase")
    parser.add_argument("--jobs", type=int, default=14, metavar="N", help="processes that compile (default: 14)")
    parser.add_argument("--runners", type=int, default=RUNNERS, metavar="N", help=f"that run (default: {RUNNERS})")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random contents")
    parser.add_argument("--time", action="store_true", help="also take times where both agree")
    parser.add_argument("--compile-only", action="store_true", help="run nothing")
    options = parser.parse_args()
    rows = rows_of(options)
    for row in rows:
        if "verdict" in row:
            print(f"{row['id']}: {row['verdict']}: {row['note']}")
    run(rows, options)
    print(summary(rows))
    return 1 if any(row.get("verdict") in WRONG for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
