"""Cycles and tensor-pipe use of one launch, by Nsight Compute without fixing the clocks. No torch."""

import csv
import io
import re
import shutil
import subprocess

CYCLES = "sm__cycles_active.avg"
TIME = "gpu__time_duration.sum"
SECTORS = "lts__t_sectors.sum"
# Names differ between chips and versions; what ncu knows of these is taken.
TENSOR = re.compile(r"sm__pipe_tensor(_op_[hg]mma)?_cycles_active")
TENSOR_SUFFIX = ".avg.pct_of_peak_sustained_active"


def metrics() -> list[str]:
    """What to count on this GPU; empty without ncu."""
    if not shutil.which("ncu"):
        return []
    try:
        listed = subprocess.run(
            ["ncu", "--query-metrics"], capture_output=True, text=True, timeout=60, check=False
        ).stdout
    except subprocess.TimeoutExpired:
        listed = ""
    names = {line.split()[0] for line in listed.splitlines() if line.strip()}
    tensor = sorted(name + TENSOR_SUFFIX for name in names if TENSOR.fullmatch(name))
    return [CYCLES, TIME, SECTORS, *tensor]


def command(names: list[str]) -> list[str]:
    """What to put before the program: its launches between cudaProfilerStart and cudaProfilerStop are counted."""
    return [
        "ncu",
        "--profile-from-start",
        "off",
        "--clock-control",
        "none",
        "--csv",
        "--page",
        "raw",
        "--print-units",
        "base",
        "--metrics",
        ",".join(names),
    ]


def chosen(result: dict, part: str) -> list[dict]:
    """Contenders of a row to count: those named, else our best and the libraries."""
    if part:
        return [one for one in result["contenders"] if part in f"{result['row']}/{one['name']}"]
    wanted = {result["ours"], *result["best"].values()}
    return [one for one in result["contenders"] if one["name"] in wanted]


def launches(output: str) -> list[dict]:
    """What ncu counted of each launch, in their order."""
    lines = output.splitlines()
    start = next((index for index, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    table = csv.DictReader(io.StringIO("\n".join(lines[start:])))
    return [row for row in table if (row.get("ID") or "").strip().isdigit()]


def read(output: str) -> dict:
    """Sums over the launches of cycles, nanoseconds, sectors; the tensor pipe's share of active cycles."""
    lines = output.splitlines()
    if not any(line.startswith('"ID"') for line in lines):
        return {"failed": next((line for line in reversed(lines) if "==ERROR==" in line), "ncu gave no table")}
    rows = launches(output)
    if not rows:
        return {"failed": "ncu saw no launch"}
    cycles = [number(row.get(CYCLES)) for row in rows]
    found = {"launches": len(rows), "cycles": sum(cycles), "ns": sum(number(row.get(TIME)) for row in rows)}
    found["l2_sectors"] = sum(number(row.get(SECTORS)) for row in rows)
    for name in rows[0]:
        if name and name.endswith(TENSOR_SUFFIX) and sum(cycles):
            share = sum(number(row[name]) * count for row, count in zip(rows, cycles)) / sum(cycles)
            found["tensor_percent"] = max(found.get("tensor_percent", 0.0), share)
    return found


def number(text: str | None) -> float:
    try:
        return float((text or "").replace(",", ""))
    except ValueError:
        return 0.0
