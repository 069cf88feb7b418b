#!/usr/bin/env python3
"""Verdicts of `twill fit` on many configurations, beside what becomes of the kernels in Triton's compiler.

    cargo build --release -p twill-cli
    python bench/fit.py --work DIR --keep      # writes bench/results/<date>-fit.md; the same command again goes on

Needs Triton 3.6.0, no GPU. Each configuration is asked of `twill fit`; then `twill compile` generates its kernel, and
Triton's compiler says how much shared and tensor memory that takes. What `twill compile` refuses does not fit either.
The exit status is 1 if something that does not fit was said to fit.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import hashlib
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fit_configurations
import fit_triton
from fit_configurations import ROOT, Configuration

SHARED_BYTES = 232448
TENSOR_COLUMNS = 512
COMPILED = {0: "compiled", 1: "refused", 2: "infeasible", 3: "not found in time"}


def ask_fit(twill: Path, configurations: list[Configuration], ttir: Path, times: int = 1) -> dict[str, dict]:
    """Verdicts by name; configurations with the same options are asked of one process, and the least of several times counts."""
    together = collections.defaultdict(list)
    for one in configurations:
        together[one.machine, one.options].append(one)
    verdicts = {}
    for (machine, options), group in together.items():
        paths = [str(ttir / f"{one.ttir}.ttir") for one in group]
        command = [str(twill), "fit", *paths, "--machine", machine, *options, "--format", "json", "--timings"]
        for _ in range(times):
            lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
            if len(lines) != len(group):
                sys.exit(f"{' '.join(command)}: {len(lines)} answers to {len(group)} questions")
            for one, answer in zip(group, map(json.loads, lines)):
                before = verdicts.get(one.name, answer)
                answer["milliseconds"] = min(before["milliseconds"], answer["milliseconds"])
                verdicts[one.name] = answer
    return verdicts


def compile_one(task: tuple) -> dict:
    """What becomes of a configuration in `twill compile` and Triton's compiler."""
    twill, one, ttir, kernels, seconds, whole = task
    folder = kernels / one.folder
    command = [str(twill), "compile", str(ttir / f"{one.ttir}.ttir"), "--machine", one.machine, *one.options]
    command += ["--no-assemble", "--attempts", "1", "--quiet", "--time-limit", str(seconds), "-o", str(folder)]
    started = time.perf_counter()
    run = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "TWILL_CACHE": "off"})
    row = {"name": one.name, "compile": COMPILED.get(run.returncode, "crashed"), "why": run.stderr.strip()[-400:]}
    row["compile_seconds"] = round(time.perf_counter() - started, 3)
    if run.returncode == 0:
        started = time.perf_counter()
        row["kernel"] = hashlib.sha256((folder / "kernel.py").read_bytes()).hexdigest()[:16]
        try:
            row.update(fit_triton.allocated(folder, whole))
        except Exception as error:  # noqa: BLE001  whatever Triton says is an answer
            while error.__cause__ is not None:
                error = error.__cause__
            row["triton"] = " ".join(f"{type(error).__name__}: {str(error).strip().splitlines()[-1:]}".split())[-400:]
        row["triton_seconds"] = round(time.perf_counter() - started, 3)
    return row


def truth(row: dict) -> bool:
    """Whether a kernel came out that Triton has room for."""
    return row.get("shared", SHARED_BYTES + 1) <= SHARED_BYTES and row.get("tensor", 0) <= TENSOR_COLUMNS


def judge(verdict: dict, row: dict) -> str:
    fits = truth(row)
    if "error" in verdict:
        return "false error" if fits else "error"
    return {
        "fits": ("true fit" if fits else "false fit"),
        "does_not_fit": ("false misfit" if fits else "true misfit"),
        "unknown": ("unknown, fits" if fits else "unknown, does not fit"),
    }[verdict["verdict"]]


def report(configurations: list[Configuration], verdicts: dict, rows: dict, seconds: float, seed: int) -> tuple[str, bool]:
    """The table, and whether anything was wrongly said to fit."""
    judged = {c.name: judge(verdicts[c.name], rows[c.name]) for c in configurations if c.name in rows}
    count = collections.Counter(judged.values())
    fit_all = sum(truth(rows[name]) for name in judged)
    late = count["false misfit"] + count["unknown, fits"] + count["false error"]
    times = sorted(verdicts[name]["milliseconds"] for name in judged)
    lines = [
        "# twill fit beside Triton's compiler",
        "",
        f"{len(judged)} configurations of attention and matrix products ({fit_all} fit), "
        f"`twill compile --time-limit {seconds:g} --attempts 1` and Triton 3.6.0; `python bench/fit.py --seed {seed}`.",
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
    for one in configurations:
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


def required(verdict: dict) -> int:
    needs = verdict.get("needs", [])
    return next((need["required"] for need in needs if need["resource"] == "shared_memory"), 0)


def because(verdict: dict, row: dict) -> str:
    told = verdict.get("misfit", {}).get("reason") or verdict.get("error") or f"needs {required(verdict)} bytes"
    found = row.get("triton") or row.get("why") or f"{row.get('shared')} bytes"
    return f": {told}; {row['compile']}: {found.splitlines()[-1] if found else ''}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--twill", type=Path, default=ROOT / "target" / "release" / "twill")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0, help="time limit of twill compile")
    parser.add_argument("--work", type=Path, help="TTIR, kernels and rows; with the same folder it goes on")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--whole", action="store_true", help="run Triton's stage to LLVM to its end")
    parser.add_argument("--keep", action="store_true", help="write bench/results/<date>-fit.md")
    options = parser.parse_args()
    work = options.work or Path(tempfile.mkdtemp(prefix="twill-fit-"))
    ttir, kernels, found = work / "ttir", work / "kernels", work / "rows.jsonl"
    ttir.mkdir(parents=True, exist_ok=True)
    kernels.mkdir(exist_ok=True)
    refused = fit_configurations.print_all(list(fit_configurations.kernels()), ttir)
    chosen = fit_configurations.chosen(options.count + 50 * len(refused), options.seed, SHARED_BYTES)
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
        date = datetime.date.today().isoformat()
        (ROOT / "bench" / "results" / f"{date}-fit.md").write_text(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
