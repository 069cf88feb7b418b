"""Packages' own tests with Twill under their Triton kernels: what passes by stock Triton alone, and what with Twill?

    python -m bench.applications.suites fla --sources FOLDER                        # a choice of fla's tests, in four minutes
    python -m bench.applications.suites fla --sources FOLDER --only 'test_gla|test_delta' --mode check --at-once 6
    python -m bench.applications.suites fla flag_gems liger --sources FOLDER --minutes 9 --json rows.json
    python -m bench.applications.suites fla --sources FOLDER --list

Needs a Hopper GPU, torch, Triton 3.6, twill_gpu, pytest, and FOLDER/suites with the packages' repositories, package and tests.
Each test function has a process of its own: by stock Triton, then with `TWILL=1` until all kernels are made, then in each mode.
`check` compares each kernel's results with stock Triton's; with `wait`, kernels of Twill have some of the launches, and the
tests themselves say whether results are right.

The exit code is 1 if a test fails with Twill and not by stock Triton alone, or if a result differs.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import sys
import time
from pathlib import Path
from typing import Any

from . import process
from .listing import chosen, tests_of
from .report import is_wrong, line, report
from .suite import CHECK, MAKING, SUITES, WAIT, Suite

LEAST_SECONDS = 45.0
"""Less than this is too little to begin a test with."""


def main() -> int:
    """Runs the tests."""
    options = parser().parse_args()
    tests = [
        (suite, folder, test)
        for name in options.suites
        for suite, folder in [(SUITES[name], SUITES[name].folder(options.sources))]
        for test in chosen(tests_of(suite, folder), suite.first, options.only)
    ]
    if options.list:
        print("\n".join(test for _, _, test in tests))
        return 0
    end = time.monotonic() + 60 * options.minutes
    rows: list[dict[str, Any]] = []
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        asked = [pool.submit(row_of, *one, options, end) for one in tests]
        for done in concurrent.futures.as_completed(asked):
            rows.append(row := done.result())
            print(line(row), file=sys.stderr, flush=True)
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    order = [test for _, _, test in tests]
    print(report(sorted(rows, key=lambda row: order.index(row["test"]))))
    return int(any(map(is_wrong, rows)))


def row_of(suite: Suite, folder: Path, test: str, options: argparse.Namespace, end: float) -> dict[str, Any]:
    """What became of a test, if there is time for it."""
    seconds = min(options.seconds, end - time.monotonic() - process.GRACE / 3)
    if seconds < LEAST_SECONDS:
        return {"test": test, "ended": "not begun: the time was over"}
    asked = ["--twill-modes", ",".join(options.mode), "--twill-per-test", str(options.per_test)]
    asked += ["--twill-tuning", str(options.tuning)]
    asked += ["--twill-configurations"] if options.configurations else []
    return process.run(suite, folder, test, asked, seconds, options.jobs)


def parser() -> argparse.ArgumentParser:
    """The command's arguments."""
    made = argparse.ArgumentParser(
        prog="python -m bench.applications.suites", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("suites", nargs="+", choices=SUITES, metavar="SUITE", help=", ".join(SUITES))
    made.add_argument("--sources", type=Path, required=True, help="a folder with a folder `suites`, which holds the repositories")
    made.add_argument("--only", help="tests in whose `file::function` this is found (default: a choice of those with products)")
    modes = [MAKING, CHECK, WAIT]
    made.add_argument("--mode", nargs="+", default=[CHECK, WAIT], choices=modes, help="as TWILL (default: check wait)")
    made.add_argument("--per-test", type=int, default=1, metavar="N", help="parameters of each test (default: 1; 0: all)")
    tuning = "configurations that triton.autotune compares (default: 1; 0: all, which takes minutes)"
    made.add_argument("--tuning", type=int, default=1, metavar="N", help=tuning)
    made.add_argument("--configurations", action="store_true", help="stock Triton's other stages and warps, too")
    made.add_argument("--at-once", type=int, default=8, metavar="TESTS", help="processes at a time (default: 8)")
    made.add_argument("--jobs", type=int, default=2, help="background processes of each (default: 2)")
    made.add_argument("--seconds", type=float, default=210, help="after which a test is ended (default: 210)")
    made.add_argument("--minutes", type=float, default=4, help="after which no test is begun (default: 4)")
    made.add_argument("--list", action="store_true", help="only say which tests")
    made.add_argument("--json", type=Path, help="write the rows here, too")
    return made


if __name__ == "__main__":
    raise SystemExit(main())
