"""Verdicts of `twill fit` on many configurations, and what becomes of the kernels in Triton's compiler.

    cargo build --release -p twill-cli
    python -m bench.fit --work DIR --keep      # writes bench/results/fit.md; the same command again goes on

Needs Triton 3.6.0, no GPU. `twill fit` says whether each configuration fits; then `twill compile` generates its kernel, and
Triton's compiler says how much shared and tensor memory that takes. What `twill compile` refuses does not fit either.
The exit status is 1 if something that does not fit was said to fit.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import statistics
import sys
import tempfile
from pathlib import Path

from bench.common import TWILL, keep
from bench.fit import configurations
from bench.fit.configurations import Configuration
from bench.fit.verdicts import SHARED_BYTES, ask_fit, because, compile_one, judge, required, truth


def report(chosen: list[Configuration], verdicts: dict, rows: dict, seconds: float, seed: int) -> tuple[str, bool]:
    """The table, and whether anything was wrongly said to fit."""
    judged = {c.name: judge(verdicts[c.name], rows[c.name]) for c in chosen if c.name in rows}
    count = collections.Counter(judged.values())
    fit_all = sum(truth(rows[name]) for name in judged)
    late = count["false misfit"] + count["unknown, fits"] + count["false error"]
    times = sorted(verdicts[name]["milliseconds"] for name in judged)
    lines = [
        "# twill fit and Triton's compiler",
        "",
        f"{len(judged)} configurations of attention and matrix products ({fit_all} fit), "
        f"`twill compile --time-limit {seconds:g} --attempts 1` and Triton 3.6.0; `python -m bench.fit --seed {seed}`.",
        "",
        "| verdict | Triton has room | count |",
        "|---|---|--:|",
        f"| fits | yes | {count['true fit']} |",
        f"| does not fit | no | {count['true misfit']} |",
        f"| **fits** | **no: false fits** | **{count['false fit']}** |",
        f"| does not fit | yes: false misfits | {count['false misfit']} |",
        f"| unknown | yes: counted as false misfits | {count['unknown, fits']} |",
        f"| unknown | no | {count['unknown, does not fit']} |",
        f"| error (no code for it) | no | {count['error']} |",
        f"| error | yes: counted as false misfits | {count['false error']} |",
        "",
        f"Wrongly not said to fit: {late} of {len(judged)} ({100 * late / len(judged):.2f} %).",
        "",
        f"Milliseconds a configuration, from text to verdict, the least of three: median {statistics.median(times):.2f}, "
        f"99 % {times[int(0.99 * (len(times) - 1))]:.2f}, maximum {times[-1]:.2f}.",
        "",
        "| kernel | machine | configurations | fit | near the limit | false fits | false misfits, unknown that fit |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    kinds = collections.defaultdict(list)
    for one in chosen:
        if one.name in judged:
            kinds[one.kernel, one.machine].append(one.name)
    for (kernel, machine), names in sorted(kinds.items()):
        near = sum(abs(required(verdicts[name]) / SHARED_BYTES - 1) < 0.1 for name in names)
        wrong = sum(judged[n] in ("false misfit", "unknown, fits", "false error") for n in names)
        false = sum(judged[n] == "false fit" for n in names)
        fitting = sum(truth(rows[n]) for n in names)
        lines.append(f"| {kernel} | {machine} | {len(names)} | {fitting} | {near} | {false} | {wrong} |")
    lines += ["", "Near the limit: least shared memory within 10 % of what there is.", ""]
    bad = [n for n, what in judged.items() if what in ("false fit", "false misfit", "unknown, fits", "false error")]
    if bad:
        lines += ["## Every wrong verdict", ""]
        lines += [f"- {judged[n]}: `{n}`{because(verdicts[n], rows[n])}" for n in bad]
        lines.append("")
    return "\n".join(lines), count["false fit"] > 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--twill", type=Path, default=TWILL)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0, help="time limit of twill compile")
    parser.add_argument("--work", type=Path, help="TTIR, kernels and rows; with the same folder it goes on")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--whole", action="store_true", help="run Triton's stage to LLVM to its end")
    parser.add_argument("--keep", action="store_true", help="write bench/results/fit.md")
    options = parser.parse_args()
    work = options.work or Path(tempfile.mkdtemp(prefix="twill-fit-"))
    ttir, kernels, found = work / "ttir", work / "kernels", work / "rows.jsonl"
    ttir.mkdir(parents=True, exist_ok=True)
    kernels.mkdir(exist_ok=True)
    refused = configurations.print_all(list(configurations.kernels()), ttir)
    chosen = configurations.chosen(options.count + 50 * len(refused), options.seed, SHARED_BYTES)
    chosen = [one for one in chosen if one.ttir not in refused][: options.count]
    verdicts = ask_fit(options.twill, chosen, ttir, times=3)
    rows = {}
    if found.exists():
        rows = {row["name"]: row for row in map(json.loads, found.read_text().splitlines())}
    tasks = [
        (options.twill, one, ttir, kernels, options.seconds, options.whole) for one in chosen if one.name not in rows
    ]
    with multiprocessing.Pool(options.processes, maxtasksperchild=100) as pool, found.open("a") as file:
        for number, row in enumerate(pool.imap_unordered(compile_one, tasks), 1):
            rows[row["name"]] = row
            file.write(json.dumps(row) + "\n")
            file.flush()
            what = judge(verdicts[row["name"]], row)
            if what.startswith("false") or what == "unknown, fits" or number % 100 == 0:
                print(f"{number}/{len(tasks)} {what}: {row['name']}{because(verdicts[row['name']], row)}", flush=True)
    text, wrong = report(chosen, verdicts, rows, options.seconds, options.seed)
    print(text)
    if options.keep:
        keep("fit.md", text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
