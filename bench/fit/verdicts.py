"""What `twill fit` says of configurations, and what becomes of them in `twill compile` and Triton's compiler."""

from __future__ import annotations

import collections
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from bench.fit import allocation
from bench.fit.configurations import Configuration

SHARED_BYTES = 232448
TENSOR_COLUMNS = 512
FILE_WORDS = 65536
COMPILED = {0: "compiled", 1: "refused", 2: "infeasible", 3: "not found in time"}


def ask_fit(twill: Path, configurations: list[Configuration], ttir: Path, times: int = 1) -> dict[str, dict]:
    """Verdicts by name; configurations with the same options are asked of one process, and the least of several times counts."""
    by_options = collections.defaultdict(list)
    for one in configurations:
        by_options[one.machine, one.options].append(one)
    verdicts = {}
    for (machine, options), group in by_options.items():
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
    if run.returncode == 0 and json.loads((folder / "kernel.json").read_text())["groups"] == ["in_order"]:
        # What fits is a kernel with a pipeline.
        row["compile"] = "in order"
    elif run.returncode == 0 and takes_more_registers(folder):
        row["compile"] = "spills"
    elif run.returncode == 0:
        started = time.perf_counter()
        row["kernel"] = hashlib.sha256((folder / "kernel.py").read_bytes()).hexdigest()[:16]
        try:
            row.update(allocation.allocated(folder, whole))
        except Exception as error:  # noqa: BLE001  whatever Triton says is an answer
            while error.__cause__ is not None:
                error = error.__cause__
            row["triton"] = " ".join(f"{type(error).__name__}: {str(error).strip().splitlines()[-1:]}".split())[-400:]
        row["triton_seconds"] = round(time.perf_counter() - started, 3)
    return row


def takes_more_registers(folder: Path) -> bool:
    """Whether the schedule counts on more registers than a multiprocessor has."""

    def inner(value) -> bool:
        if isinstance(value, dict):
            own = value.get("registers")
            if isinstance(own, dict) and own.get("words", 0) > FILE_WORDS:
                return True
            return any(map(inner, value.values()))
        return isinstance(value, list) and any(map(inner, value))

    return inner(json.loads((folder / "schedule.json").read_text()))


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


def required(verdict: dict) -> int:
    needs = verdict.get("needs", [])
    return next((need["required"] for need in needs if need["resource"] == "shared_memory"), 0)


def because(verdict: dict, row: dict) -> str:
    told = verdict.get("misfit", {}).get("reason") or verdict.get("error") or f"needs {required(verdict)} bytes"
    found = row.get("triton") or row.get("why") or f"{row.get('shared')} bytes"
    return f": {told}; {row['compile']}: {found.splitlines()[-1] if found else ''}"
