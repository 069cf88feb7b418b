"""The first call of a process, with Twill and without: how long it takes, and what later processes begin with.

    python -m bench.applications.starts --sources FOLDER --only 'fla|vllm' --at-once 4 --json rows.json

Five processes make a call, one after the other:

| process | Triton's and Inductor's cache | Twill's cache |
|---|---|---|
| stock Triton | empty | – |
| `TWILL=1` | empty | empty |
| `TWILL=wait` until all is settled | filled | is filled |
| stock Triton | filled | – |
| `TWILL=1` | filled | filled |

The second and the last are compared with the one of stock Triton before them. The last also says which part of the launches
after the first call had what was settled, and how fast calls are. The exit code is 1 where a process fails.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SECONDS = 300
"""After which a process is ended."""
PROCESSES = (
    ("cold_stock", "off", "cold"),
    ("cold_twill", "1", "cold twill"),
    ("settling", "wait", "warm"),
    ("warm_stock", "off", "warm"),
    ("warm_twill", "1", "warm"),
)
"""Name, mode of Twill, and caches of each."""


def child(name: str, sources: str, mode: str) -> None:
    """One process: prints what it found as a line of JSON."""
    sys.path[:0] = sources.split(":")
    from . import worker

    case = worker.find(name)
    from twill_gpu import activation

    if mode != "off":
        activation.install(mode)
    import torch

    made = case.make()
    call = made[0] if isinstance(made, tuple) else made
    torch.cuda.synchronize()
    seconds = [clocked(call) for _ in range(2)]
    row: dict[str, Any] = {"case": name, "first": round(seconds[0], 4), "second": round(seconds[1], 4)}
    if mode == "wait":
        for _ in range(worker.TRIALS):
            clocked(call)
            if worker.is_settled(activation):
                break
        row["is_settled"] = worker.is_settled(activation)
    if mode == "1":
        found = [one for _, one in worker.of_mma(activation)]
        row["is_settled"] = worker.is_settled(activation)
        row["winners"] = sorted(str(contest.winner) for one in found for contest in one.contests.values())
        row["kernels"] = sum(bool(one.kernels) for one in found)
        stock_ms, twill_ms = worker.in_turns(lambda: worker.paused(activation), contextlib.nullcontext, call=call)
        row["stock_ms"], row["twill_ms"] = round(stock_ms, 4), round(twill_ms, 4)
    print("\n" + json.dumps(row), flush=True)


def clocked(call: Callable[[], Sequence[Any]]) -> float:
    """Seconds until a call's results are there."""
    import torch

    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def answer(name: str, sources: str, seconds: float) -> dict[str, Any]:
    """The row of a case: what each of its processes said."""
    row: dict[str, Any] = {"case": name}
    with tempfile.TemporaryDirectory() as folder:
        for process, mode, caches in PROCESSES:
            environment = {key: value for key, value in os.environ.items() if not key.startswith("TWILL") or key == "TWILL_JOBS"}
            for variable in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TWILL_CACHE"):
                environment[variable] = str(Path(folder) / caches.replace(" ", "-") / variable.lower())
            command = [sys.executable, "-m", __spec__.name, "--child", name, sources, mode]
            try:
                done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds)
            except subprocess.TimeoutExpired:
                return {**row, "error": f"{process}: no answer in {seconds:.0f} s"}
            lines = [line for line in done.stdout.splitlines() if line.startswith('{"case"')]
            if not lines:
                return {**row, "error": f"{process}: ended with {done.returncode}: {done.stderr[-400:]}"}
            row[process] = json.loads(lines[-1])
    return row


def ratios(row: dict[str, Any]) -> tuple[float, float, float]:
    """Twill's first call by stock Triton's, with empty caches and with filled ones; then the speed of later calls."""
    cold, warm = (row[f"{state}_twill"]["first"] / row[f"{state}_stock"]["first"] for state in ("cold", "warm"))
    return cold, warm, row["warm_twill"]["stock_ms"] / row["warm_twill"]["twill_ms"]


def line(row: dict[str, Any]) -> str:
    """A row of the table."""
    if "error" in row:
        return f"| {row['case']} | {' '.join(row['error'].split())[:160]} | | | | | | | |"
    cold, warm, speed = ratios(row)
    first = [f"{row[process]['first']:.3f}" for process, _, _ in PROCESSES if process != "settling"]
    last = row["warm_twill"]
    winners = ", ".join(f"{last['winners'].count(side)} {side}" for side in dict.fromkeys(last["winners"]))
    state = winners if last["is_settled"] else f"not settled; {winners}"
    return f"| {row['case']} | {first[0]} | {first[1]} | {cold:.3f} | {first[2]} | {first[3]} | {warm:.3f} | {state} | {speed:.3f} |"


HEAD = """\
| call | first call, empty caches: stock s | with Twill s | ratio | the same, filled caches: stock s | with Twill s | ratio |\
 settled at the second call | speed of later calls |
|---|---|---|---|---|---|---|---|---|"""


def summary(rows: list[dict[str, Any]]) -> str:
    """What all rows say."""
    whole = [row for row in rows if "error" not in row]
    if not whole:
        return f"{len(rows)} calls, none of them whole."
    cold, warm, speeds = zip(*map(ratios, whole))
    sums = [sum(row[process]["first"] for row in whole) for process, _, _ in PROCESSES if process != "settling"]
    settled = sum(row["warm_twill"]["is_settled"] for row in whole)
    mean = math.exp(statistics.fmean(map(math.log, speeds)))
    return (
        f"{len(rows)} calls, {len(rows) - len(whole)} fail. First calls with Twill by those of stock Triton, empty caches: all together "
        f"{sums[1] / sums[0]:.3f}, median {statistics.median(cold):.3f}; filled caches: {sums[3] / sums[2]:.3f}, median "
        f"{statistics.median(warm):.3f}. In the last process {settled} are settled at the second call; later calls: geometric mean "
        f"{mean:.3f}, least {min(speeds):.3f}."
    )


def main() -> int:
    """Runs the cases."""
    from .__main__ import names

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, help="a folder with a folder for each package, which holds its modules")
    parser.add_argument("--only", default="", help="cases in whose name this regular expression is found")
    parser.add_argument("--at-once", type=int, default=1, metavar="CASES", help="so many cases at once")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="after which a process is ended")
    parser.add_argument("--json", type=Path, help="write the rows here, too")
    options = parser.parse_args()
    sources = ":".join(sorted(str(one) for one in options.sources.iterdir()) if options.sources else [])
    rows: list[dict[str, Any]] = []
    print(HEAD, flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        asked = [pool.submit(answer, name, sources, options.seconds) for name in names(options.only)]
        for done in concurrent.futures.as_completed(asked):
            rows.append(done.result())
            print(line(rows[-1]), flush=True)
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(f"\n{summary(rows)}")
    return int(any("error" in row for row in rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        raise SystemExit(main())
