"""Time to the proven optimum of the searches that Twill (arXiv 2512.18134) reports, next to Z3's on the exported formulation.

    cargo build --release -p twill-cli
    pip install -r tests/cross_check/requirements.txt
    python -m bench.schedule.searches --keep   # writes bench/results/searches.md; up to 25 minutes

Everything runs on one core, in this run. Z3 does what the paper's procedure does: costs normalised to U = 300, intervals from the
bound of phase 1 upward, at each as many stages as phase 1 has there, until one is satisfiable.
"""

import argparse
import datetime
import json
import math
import os
import platform
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from bench.common import BUILD, ROOT, TWILL, keep, processor, revision, run
from bench.common import z3 as command_of_z3
from bench.schedule.__main__ import SOURCES

# In the paper's model shared memory does not bind attention backward on Blackwell, and tiles are not counted where
# another group reads them; docs/model.md says what we do by default.
BLACKWELL_BACKWARD = ["--consumer-registers", "off"]
AMPLE = 4 * 1024 * 1024


@dataclass
class Search:
    title: str
    graph: str
    published: int
    """Seconds, one core of a Xeon 8570, CBC and Yices2."""
    options: list[str] = field(default_factory=list)
    shared_memory: int | None = None
    registers: int | None = None
    """Most a thread."""


SEARCHES = [
    Search("attention forward, Hopper", "attention-forward-hopper", 28),
    Search("attention backward, Hopper", "attention-backward-hopper", 84),
    Search("attention forward, Blackwell", "attention-forward-blackwell", 18),
    Search("attention backward, Blackwell, 2 groups", "attention-backward-blackwell", 242,
           [*BLACKWELL_BACKWARD, "--compute-groups", "2"], AMPLE),
    Search("attention backward, Blackwell, 3 groups of 168 registers", "attention-backward-blackwell", 48,
           [*BLACKWELL_BACKWARD, "--compute-groups", "3"], AMPLE, 168),
]

# As in the paper, which normalises costs to a sum of at most 300 and tries one number of stages an interval.
PROCEDURE = ["--normalise", "300", "--stage-window", "paper"]

SCALES = [("U = 50", 50, 1), ("U = 100", 100, 1), ("U = 300", 300, 1), ("U = 1000", 1000, 1), ("true cycles", 0, 1),
          ("true cycles × 100", 0, 100)]


def main() -> int:
    options = arguments()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        options.folder = Path(folder)
        chosen = [s for s in SEARCHES if options.only in s.title]
        searches = [with_z3(options, search) for search in chosen]
        scales = [scaled(options, search) for search in chosen]
    text = report(options, searches, scales, load)
    print(text)
    if options.keep:
        keep("searches.md", text)
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--twill", type=Path, default=TWILL, help="the command")
    parser.add_argument("--z3", default=command_of_z3(),
                        help="Z3's command (default: the one next to this Python, then the one on the path)")
    parser.add_argument("--limit", type=float, default=300.0, metavar="SECONDS", help="processor time of each search of Z3 (default: 300)")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs of each of our searches (default: 5)")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="core to run on (default: the last)")
    parser.add_argument("--only", metavar="PART", default="", help="searches whose title contains this")
    parser.add_argument("--revision", help="what was built, if not the checkout's HEAD")
    parser.add_argument("--keep", action="store_true", help="write bench/results/searches.md")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs must be at least 1")
    if not options.twill.is_file():
        parser.error(f"{options.twill} is missing; {BUILD}")
    if options.z3 is None:
        parser.error("there is no z3; run: pip install -r tests/cross_check/requirements.txt")
    return options


class OverLimit(Exception):
    """A process took more than it was allowed."""


def pinned(options: argparse.Namespace, command: list, limit: float | None = None) -> tuple[float, str, int]:
    """Processor seconds on one core, standard output, exit code."""
    full = ["taskset", "--cpu-list", str(options.core), *map(str, command)]
    seconds = math.ceil(limit) if limit is not None else resource.RLIM_INFINITY
    allow = lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(full, cwd=ROOT, capture_output=True, text=True, check=False, preexec_fn=allow)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Z3 ends by itself when it is told that its time is up.
    if done.returncode == -signal.SIGXCPU or done.stdout.strip() == "timeout":
        raise OverLimit
    if done.stderr:
        sys.exit(f"{' '.join(full)}: {done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout, done.returncode


def graph(options: argparse.Namespace, search: Search, scale: int = 1) -> Path:
    """The search's graph with its machine in full, as a file; every time in it multiplied by `scale`."""
    file = json.loads(run([str(options.twill), "lower", search.graph, "--format", "graph"]))
    if search.shared_memory is not None:
        file["machine"]["shared_memory"] = search.shared_memory
    if search.registers is not None:
        file["machine"]["registers"]["maximum_per_thread"] = search.registers
    for op in file["operations"]:
        for unit in op.get("units", []):
            times(unit, ("start", "cycles"), scale)
        times(op, ("cycles", "latency", "handoff", "transfer_latency"), scale)
    for dependence in file["dependences"]:
        times(dependence, ("delay", "hold"), scale)
    path = options.folder / "graph.json"
    path.write_text(json.dumps(file), encoding="utf-8")
    return path


def times(entry: dict, keys: tuple[str, ...], scale: int) -> None:
    for key in keys:
        if key in entry:
            entry[key] *= scale


def ours(options: argparse.Namespace, path: Path, more: list[str]) -> tuple[float, dict]:
    """Median seconds of the whole process, and the answer, which must be proved."""
    command = [options.twill, "schedule", path, "--quiet", "--format", "json", *more]
    runs = [pinned(options, command) for _ in range(options.runs)]
    if any(code != 0 for _, _, code in runs):
        sys.exit(f"{' '.join(map(str, command))}: exit code {[code for _, _, code in runs]}")
    answer = json.loads(runs[0][1])
    if not all(objective["proved"] for objective in answer["objectives"]):
        sys.exit(f"{' '.join(map(str, command))}: not all proved")
    return statistics.median(taken for taken, _, _ in runs), answer


def with_z3(options: argparse.Namespace, search: Search) -> dict:
    path = graph(options, search)
    seconds, answer = ours(options, path, search.options)
    same_seconds, same = ours(options, path, [*PROCEDURE, *search.options])
    row = {"search": search, "ours": (seconds, answer), "same": (same_seconds, same)}
    row["z3"] = z3(options, path, search, same)
    print(f"{search.title}: ours {seconds:.3f} s and {same_seconds:.3f} s, Z3 {row['z3']}", file=sys.stderr)
    return row


def z3(options: argparse.Namespace, path: Path, search: Search, ours_found: dict) -> dict:
    """Intervals upward until one is satisfiable; only Z3's own time counts, from text to answer."""
    first = ours_found["modulo"]["initiation_interval"]
    last = ours_found["initiation_interval"]
    stages = {r["interval"]: r["stages"] for r in ours_found["rejections"] if "stages" in r} | {last: window(options, path, search, last)}
    text, spent, questions = options.folder / "question.smt2", 0.0, 0
    for interval in range(first, last + 1):
        if interval not in stages:
            continue  # Phase 1 has no schedule here, so it has no number of stages and asks nothing.
        export = [options.twill, "schedule", path, "--emit", "smtlib2", *PROCEDURE, *search.options]
        pinned(options, [*export, "--interval", interval, "--stages", stages[interval], "--output", text])
        try:
            taken, said, _ = pinned(options, [options.z3, text], max(options.limit - spent, 1))
        except OverLimit:
            return {"seconds": None, "questions": questions, "at": interval, "last": last}
        spent, questions = spent + taken, questions + 1
        expected = "sat" if interval == last else "unsat"
        if said.strip() != expected:
            sys.exit(f"{search.title}: at I = {interval} Z3 says {said.strip()}, and we {expected}")
    return {"seconds": spent, "questions": questions, "at": last, "last": last}


def window(options: argparse.Namespace, path: Path, search: Search, interval: int) -> int:
    """Stages that phase 1 has at an interval: what the question at it is exported with by default."""
    export = [options.twill, "schedule", path, "--emit", "smtlib2", *PROCEDURE, *search.options, "--interval", interval]
    _, text, _ = pinned(options, export)
    return int(re.search(r"^; Is there .* (\d+) stages?\?$", text, re.MULTILINE).group(1))


def scaled(options: argparse.Namespace, search: Search) -> list[str]:
    cells = []
    for _, limit, factor in SCALES:
        normalise = ["--normalise", str(limit)] if limit else []
        seconds, answer = ours(options, graph(options, search, factor), [*normalise, *search.options])
        cells.append(f"{seconds:.3f} (I = {answer['initiation_interval']})")
    print(f"{search.title}: {', '.join(cells)}", file=sys.stderr)
    return [search.title, *cells]


def report(options: argparse.Namespace, searches: list[dict], scales: list[list[str]], load: float) -> str:
    lines = [
        f"# Time to the proven optimum, {datetime.date.today()}",
        "",
        f"- processor: {processor()}, {os.cpu_count()} visible, one used; load before the start {load:.2f}",
        f"- system: {platform.system()} {platform.release()}, {platform.machine()}",
        f"- versions: {run([str(options.twill), '--version']).strip()} ({options.revision or revision(*SOURCES)}),"
        f" {run(['rustc', '--version']).strip()}, {run([options.z3, '--version']).strip()}, Python {platform.python_version()}",
        "",
        "## Compared with Z3 on the exported formulation",
        "",
        "Processor seconds, which on an idle core are those of the clock. *Ours*: the whole process, median of"
        f" {options.runs}, from graph to replayed schedule with every objective proved. *True cycles*: costs as they are, any number of"
        " stages. *The paper's procedure*: costs normalised to a sum of at most 300, and at each interval as many stages as"
        " phase 1 has there. *Z3* answers the same questions as that, from the bound of phase 1 upward, each as"
        " `twill schedule --emit smtlib2` writes it; only its own time counts, not phase 1 and not writing, and it stops at the"
        " interval, without the other objectives. Where it came to an answer it agrees with ours.",
        "",
        "| search | ours, true cycles | I | ours, the paper's procedure | I | Z3 | questions | published |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in searches:
        cells = [row["search"].title]
        for key in ("ours", "same"):
            seconds, answer = row[key]
            cells += [f"{seconds:.3f}", str(answer["initiation_interval"])]
        found = row["z3"]
        if found["seconds"] is None:
            cells += [f"> {options.limit:.0f}", f"{found['questions']}; stopped at I = {found['at']} of {found['last']}"]
        else:
            cells += [f"{found['seconds']:.1f}", str(found["questions"])]
        lines.append(f"| {' | '.join([*cells, str(row['search'].published)])} |")
    lines += [
        "",
        "*Published*: Twill (arXiv 2512.18134), CBC and Yices2 on one core of a Xeon 8570. Machines, graphs, costs and the model"
        " differ, so only the other columns compare like with like. Attention backward on Blackwell is searched as there: register"
        " tiles are not counted where another group reads them, and shared memory is ample.",
        "",
        "## The same searches with smaller and larger cycle counts",
        "",
        "Processor seconds of the whole process, any number of stages, costs normalised to a sum of at most U, as they are, and"
        " multiplied. Normalising distorts ratios, so the problems of a row differ; the last two columns are one problem in two units.",
        "",
        f"| search | {' | '.join(title for title, _, _ in SCALES)} |",
        "|---|" + "--:|" * len(SCALES),
    ]
    return "\n".join([*lines, *(f"| {' | '.join(cells)} |" for cells in scales)])


if __name__ == "__main__":
    sys.exit(main())
