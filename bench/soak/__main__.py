"""A serving loop under `TWILL=1` while much is thrown away and processes begin anew: memory, latencies, results.

    python -m bench.soak                                  # eight minutes of serving, and the starts of four processes
    python -m bench.soak --within 590 --jobs 12           # and all of it within 590 s
    python -m bench.soak --only fp8_rows --evict 0.5      # mix.py has the calls: of these one has another size each time
    python -m bench.soak --minutes 60 --restarts 10 --json soak.json

Needs a Hopper GPU, torch, Triton 3.6 and twill_gpu. Processes serve one after the other, on one cache that is empty at first;
the last but one is killed, the others end well. A process makes a call at random, one to eight times, and waits for the
GPU, as a server does that reads a token. After its kernels are made and contests settled (the first 40 % of its loop;
60 % in the first process, which is longer) stock Triton and Twill have segments of 0.2 s by turns, and times and memory count.
From then on contests are forgotten as at Twill's limit, what Triton compiled of a function is thrown away, and files of
the cache are deleted. Each time is divided by stock Triton's median for the same call in the same process.

The exit code is 1 if a result is wrong, a call or a process fails, a background process is left, memory grows by more than
1 MiB a minute (or open files, threads or temporary files by more than processes at work have), or the 99th
percentile of latencies is more than 1.02 of stock Triton's.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
import time
from pathlib import Path

from . import report
from .folders import Folders
from .plan import UNLIMITED, Plan, killed, loop_seconds, share_of_rest
from .process import Process, Served

REPORTING = 20.0
"""Seconds of a limited time that are left for the tables."""


def say(text: str) -> None:
    """What goes on."""
    print(text, file=sys.stderr, flush=True)


def soak(plan: Plan, minutes: float, processes: int, within: float | None, delete: float, json_file: Path | None) -> list[str]:
    """Serves by all processes and prints what they did; what is wrong. plan: what they have in common."""
    begun = time.monotonic()
    served: list[Served] = []
    with tempfile.TemporaryDirectory(prefix="soak-") as root:
        folders = Folders(Path(root), plan.seed)
        for number in range(processes):
            now = time.monotonic()
            seconds = loop_seconds(60 * minutes, processes, number)
            until = now + seconds + UNLIMITED
            if within is not None:
                until = now + share_of_rest(begun + within - REPORTING - now, processes, number)
            own = dataclasses.replace(plan, number=number, seconds=seconds, until=until)
            served.append(Process(own, folders, number == killed(processes), delete, say).run())
            print(report.of_process(served[-1], processes), end="\n\n", flush=True)
            if json_file is not None:
                # What there is if the rest does not come.
                json_file.write_text(json.dumps([report.row(one) for one in served]), encoding="utf-8")
            folders.throw_away_compiled()
        whole = report.Report(served)
        print(whole.whole(folders.thrown_away), flush=True)
        if json_file is not None:
            json_file.write_text(json.dumps(whole.as_json(folders.thrown_away)), encoding="utf-8")
    return whole.failures()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=8, metavar="M", help="of all loops together (default: 8)")
    parser.add_argument("--restarts", type=int, default=4, metavar="N", help="processes, one after the other (default: 4)")
    parser.add_argument("--within", type=float, metavar="SECONDS", help="end by then; loops are shorter where starts take long")
    parser.add_argument("--only", default="", metavar="REGEX", help="calls in whose name this is found; see mix.py")
    parser.add_argument("--sources", type=Path, help="as for bench.applications, whose calls --only may choose too")
    parser.add_argument("--jobs", type=int, metavar="N", help="background processes of Twill (default: Twill's)")
    parser.add_argument("--evict", type=float, default=2, metavar="SECONDS", help="between two evictions of contests (default: 2)")
    parser.add_argument(
        "--delete", type=float, default=20, metavar="SECONDS", help="between two files that are deleted (default: 20)"
    )
    parser.add_argument("--drops", type=int, default=3, metavar="N", help="functions that a process compiles anew (default: 3)")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures and samples there, too")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    sources = ":".join(sorted(str(one.resolve()) for one in options.sources.iterdir())) if options.sources else ""
    named = {name: getattr(options, name) for name in ("seed", "jobs", "only", "evict", "drops")}
    plan = Plan(number=0, seconds=0.0, until=0.0, sources=sources, **named)
    return int(bool(soak(plan, options.minutes, options.restarts, options.within, options.delete, options.json)))


if __name__ == "__main__":
    sys.exit(main())
