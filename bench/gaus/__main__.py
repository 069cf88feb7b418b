"""Large graphs: `twill gaus`, textbook schedulers, the exact engine and OR-Tools CP-SAT under the same wall clock.

    cargo build --release -p twill-cli
    pip install ortools
    python -m bench.gaus --benchmarks DIR --keep                # bench/results/gaus.md with its plots
    python -m bench.gaus --benchmarks DIR express --minutes 5   # a part of it

The folder holds hatschet, express, epfl and gs_random. Every answer is one process on one core, with as many processes at
a time as there are cores, and every schedule is checked here once more, from the files alone. Each answer is a row of
target/bench/gaus.jsonl as soon as it is there; an interrupted run goes on where it stopped. Rows come in order of importance, and those
that do not fit into --minutes are left for another run.
"""

import argparse
import concurrent.futures
import hashlib
import importlib.util
import json
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path

from bench.common import BUILD, RESULTS, ROOT, TWILL
from bench.gaus import answers, report
from bench.gaus.cases import CP_SAT, PARTS, Job, jobs
from bench.gaus.child import Children

ROWS = ROOT / "target" / "bench" / "gaus.jsonl"
"""Rows, which are kept: of another build only those of other solvers count."""


class Run:
    """Asks what is not answered yet, on all cores, until the time is over."""

    def __init__(self, options: argparse.Namespace, path: Path) -> None:
        self.options, self.path = options, path
        self.build = hashlib.sha256(options.twill.read_bytes()).hexdigest()[:12]
        self.rows = rows_of(path)
        self.children, self.lock = Children(), threading.Lock()
        self.began = time.monotonic()
        self.left_out = 0

    def key(self, job: Job) -> list:
        """Answers of other solvers do not depend on what was built here, but where they start from ours."""
        is_others = job.who == CP_SAT and not job.question.loop
        return [*job.question.key, job.who, job.seed, job.seconds, "" if is_others else self.build]

    def everything(self) -> None:
        wanted = jobs(self.options.parts, self.options.benchmarks, self.options.seconds, self.options.seeds)
        if self.options.only:
            wanted = [job for job in wanted if self.options.only in job.question.key[1]]
        if self.options.without_cp_sat:
            wanted = [job for job in wanted if job.who != CP_SAT]
        done = {json.dumps(row["key"]) for row in self.rows}
        todo = [job for job in wanted if json.dumps(self.key(job)) not in done]
        print(f"{len(wanted)} answers, {len(todo)} to go", file=sys.stderr)
        cores: queue.Queue[int] = queue.Queue()
        for core in sorted(os.sched_getaffinity(0))[-self.options.jobs :]:
            cores.put(core)
        with concurrent.futures.ThreadPoolExecutor(cores.qsize()) as pool:
            try:
                for future in [pool.submit(self.one, job, cores) for job in todo]:
                    future.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                self.children.stop()

    def one(self, job: Job, cores: queue.Queue) -> None:
        # Reading the graph and the rest takes as long again as small limits, and seconds at most.
        if time.monotonic() - self.began + job.seconds + 2 > 60 * self.options.minutes:
            with self.lock:
                self.left_out += 1
            return
        core = cores.get()
        try:
            # Of this thread alone, and of what it starts.
            os.sched_setaffinity(0, {core})
            row = {"key": self.key(job)} | answers.answer(self.options, self.children, job)
        except InterruptedError:
            return
        finally:
            cores.put(core)
        with self.lock:
            self.rows.append(row)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        shown = f"{row.get('value', '-')} {row['status']} {row.get('why', '')}"
        print(*job.question.key, job.who, f"seed {job.seed}: {shown}", file=sys.stderr, flush=True)


def rows_of(path: Path) -> list[dict]:
    """What an earlier run left; half a row at the end is taken off."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]


def main() -> int:
    options = arguments()
    path = options.rows or ROWS
    path.parent.mkdir(parents=True, exist_ok=True)
    run = Run(options, path)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if not options.report:
            run.everything()
    finally:
        # What there is is written, also when the run is cut short.
        print(report.write(options, run.rows, run.left_out))
    broken = [row for row in run.rows if row["status"] == "broken"]
    return 1 if broken else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--benchmarks", type=Path, required=True, metavar="DIR", help="the benchmark graphs")
    parser.add_argument("--twill", type=Path, default=TWILL, help="the command")
    parser.add_argument("--minutes", type=float, default=60.0, help="answers that do not fit are left out (default: 60)")
    parser.add_argument(
        "--seconds", type=float, default=14.0, help="wall clock for a large graph; small ones get less (default: 14)"
    )
    parser.add_argument("--seeds", type=int, default=5, help="runs of the search with different seeds (default: 5)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at a time (default: cores)")
    parser.add_argument("--only", metavar="TEXT", default="", help="graphs whose name contains this")
    parser.add_argument("--without-cp-sat", action="store_true", help="leave the outside peer out; OR-Tools is not needed")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the report of the rows that are there")
    parser.add_argument("--rows", type=Path, metavar="JSONL", help="rows to go on with (default: target/bench/gaus.jsonl)")
    parser.add_argument("--output", type=Path, default=ROWS.parent, metavar="DIR", help="for the report (default: target/bench)")
    parser.add_argument("--keep", action="store_true", help="write the report to bench/results")
    parser.add_argument("--revision", help="what was built, if not the checkout's HEAD")
    options = parser.parse_args()
    options.output = RESULTS if options.keep else options.output
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part is named {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    options.parts = options.parts or PARTS
    if not options.twill.is_file():
        parser.error(f"{options.twill} is missing; {BUILD}")
    for part in set(options.parts) - {"scaling"} | ({"epfl"} if "scaling" in options.parts else set()):
        if not (options.benchmarks / part).is_dir():
            parser.error(f"{options.benchmarks} has no folder {part}")
    if min(options.minutes, options.seconds, options.seeds, options.jobs) <= 0:
        parser.error("--minutes, --seconds, --seeds and --jobs must be positive")
    if not (options.report or options.without_cp_sat) and importlib.util.find_spec("ortools") is None:
        parser.error("OR-Tools is missing; run: pip install ortools; or give --without-cp-sat")
    return options


if __name__ == "__main__":
    sys.exit(main())
