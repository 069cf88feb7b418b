"""Budgets, and their use: time, work and memory; and what large and extreme graphs take.

python tests/hostile/budgets.py --json docs/reports/trust/budgets.json
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from command import ROOT
from figures import Table, record
from measured import Measured, measure

HERE = Path(__file__).resolve().parent
MOST_MEGABYTES = 2000
MOST_OVER = 0.10

# A search that would take longer: operations, and its budget.
TIMES = [(100, 2.0), (100, 10.0), (300, 10.0), (500, 10.0)]
MEMORIES = [(300, 100), (500, 200), (500, 400)]


def made(kind: str, value: object, path: Path) -> Path:
    """A graph in a file, made by a program of its own: the peak memory of this one would count as that of what it starts."""
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); import graphs; "
    subprocess.run(
        [sys.executable, "-c", code + f"open({str(path)!r}, 'w').write(graphs.{kind}({value!r}))"], check=True
    )
    return path


def case(number: int, path: Path) -> Path:
    """One of the extreme graphs, made likewise."""
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); import graphs; "
    subprocess.run(
        [sys.executable, "-c", code + f"open({str(path)!r}, 'w').write(graphs.CASES[{number}][1]())"], check=True
    )
    return path


def ended(found: Measured) -> str:
    """How a run ended, in a word or a line."""
    words = {0: "proved", 2: "infeasible (proved)", 3: "stopped with the best known"}
    if found.code == 1:
        # Without the path, which is of a moment.
        return "refused: " + found.stderr.strip().split(".json:", 1)[-1].strip()[:160]
    return words.get(found.code, f"died ({found.code})")


def budgets(folder: Path) -> list[dict]:
    """The budget, and its use."""
    rows = []

    def row(budget: str, operations: int, limit: float, used: float, found: Measured) -> None:
        over = used / limit - 1
        rows.append({
            "budget": budget, "operations": operations, "limit": limit, "used": round(used, 3), "over": round(over, 4),
            "ended": ended(found), "within_10_percent": over <= MOST_OVER,
        })  # fmt: skip
        print(rows[-1], file=sys.stderr, flush=True)

    quiet = ["--quiet", "--format", "json", "-o"]
    out = folder / "out.json"
    for operations, seconds in TIMES:
        graph = made("loop", operations, folder / "loop.json")
        found = measure("schedule", graph, "--time-limit", seconds, *quiet, out, kill_after=4 * seconds + 20)
        row("seconds", operations, seconds, found.seconds, found)
    for operations, megabytes in MEMORIES:
        graph = made("loop", operations, folder / "loop.json")
        found = measure("schedule", graph, "--memory-limit", megabytes, "--time-limit", 60, *quiet, out)
        row("megabytes", operations, megabytes, found.megabytes, found)
    return rows


def works() -> list[dict]:
    """Units of work, which the library counts: a test of it prints them."""
    words = ["cargo", "test", "--quiet", "-p", "twill-exact", "--lib", "work_budgets_are_kept", "--", "--nocapture"]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    rows = []
    for operations, limit, used in re.findall(r"work: (\d+) operations limit (\d+) used (\d+)", said):
        over = int(used) / int(limit) - 1
        rows.append({
            "budget": "units of work", "operations": int(operations), "limit": int(limit), "used": int(used), "over": round(over, 4),
            "within_10_percent": over <= MOST_OVER, "ended": "stopped with the best known" if over >= 0 else "proved",
        })  # fmt: skip
    return rows


def extremes(folder: Path, seconds: float) -> list[dict]:
    """The cost of large and extreme graphs with a limit of time alone."""
    names = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(HERE)!r}); import graphs; print(*(c[0] for c in graphs.CASES), sep='\\n')"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    rows = []
    for number, name in enumerate(names):
        path = case(number, folder / "case.json")
        found = measure("schedule", path, "--time-limit", seconds, kill_after=10 * seconds)
        rows.append({
            "graph": name, "megabytes_of_text": round(path.stat().st_size / 1e6, 1), "time_limit": seconds,
            "seconds": round(found.seconds, 2), "peak_megabytes": round(found.megabytes), "ended": ended(found),
            "within_10_percent": found.seconds <= seconds * (1 + MOST_OVER),
            "under_2_gigabytes": found.megabytes < MOST_MEGABYTES,
        })  # fmt: skip
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10, help="limit of time for the extreme graphs")
    parser.add_argument("--json", type=Path, help="where the figures go")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        limited = works() + budgets(Path(scratch))
        extreme = extremes(Path(scratch), given.seconds)
    text = [
        "Limits, and the use of each when the search stopped: seconds of the whole command, units of work as the"
        " library counts them, most memory of the process in 10^6 bytes. Each is kept to within 10 %.",
        f"And graphs that are large or extreme, with a limit of {given.seconds:g} seconds and none of memory: each ends with an answer"
        " or says what it refuses, under 2 GB.",
    ]
    tables = [
        Table(
            ["budget", "operations", "limit", "used", "over, %", "ended"],
            [
                [r["budget"], r["operations"], r["limit"], r["used"], round(100 * r["over"], 1), r["ended"]]
                for r in limited
            ],
        ),
        Table(
            ["graph", "text, MB", "seconds", "peak, MB", "ended"],
            [[r["graph"], r["megabytes_of_text"], r["seconds"], r["peak_megabytes"], r["ended"]] for r in extreme],
        ),
    ]
    record("Budgets", 40, text, tables, given.json)
    rows = limited + extreme
    faults = [
        r for r in rows if not r["within_10_percent"] or not r.get("under_2_gigabytes", True) or "died" in r["ended"]
    ]
    if faults:
        sys.exit(f"{len(faults)} of {len(rows)} are over their budget: {faults}")
