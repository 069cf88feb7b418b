"""Wall time of `twill schedule` on one core, for every kernel of examples/ and every built-in graph.

    cargo build --release -p twill-cli
    python -m bench.schedule --keep            # writes bench/results/schedule.md

Python's standard library only. One process a run, pinned by taskset; the phases are those of the answer's `seconds`.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.common import BUILD, ROOT, TWILL, keep, processor, revision, run

SOURCES = ("crates", "machines", "Cargo.lock")
PHASES = ["reading", "modulo schedule", "joint schedule", "secondary objectives", "replay"]

# Input, then options. What the published times are for comes first.
EXTRA = [
    ["examples/attention_forward.ttir", "--normalise", "300"],
    ["attention-forward-hopper", "--compute-groups", "1", "--max-interval", "2048"],
    ["attention-forward-hopper", "--compute-groups", "1"],
    ["attention-backward-blackwell", "--consumer-registers", "off"],
    ["examples/attention_forward_m256.ttir", "--machine", "b200"],
    ["examples/attention_backward_m128.ttir", "--machine", "b200", "--consumer-registers", "off"],
    # Scale: the loop's own schedule starts the search.
    ["attention-forward-hopper", "--unroll", "2"],
    ["attention-forward-blackwell", "--unroll", "2"],
    ["examples/attention_forward_d64.ttir", "--unroll", "4"],
    ["attention-backward-hopper", "--unroll", "2"],
    ["attention-backward-hopper", "--unroll", "4"],
    ["examples/swiglu.ttir", "--unroll", "4"],
]

# Tiles for Blackwell; on Hopper they are larger than a group can hold.
BLACKWELL = {"attention_forward_m256", "attention_backward_m128"}

CONTEXT = """\
For context, the search times that Twill (arXiv 2512.18134) reports, on one core of a Xeon 8570: attention forward on
Hopper 28 s and on Blackwell 18 s, attention backward on Hopper 84 s and on Blackwell 242 s. Machines, graphs, costs
and the model differ, so these are no comparison of like with like."""


def main() -> int:
    options = arguments()
    if not options.twill.is_file():
        sys.exit(f"{options.twill} is missing; {BUILD}")
    load = os.getloadavg()[0]
    rows = []
    for command in commands(options):
        row = measure(options, command)
        rows.append(row)
        print(f"{row['median']:10.4f} s  {' '.join(command)}", file=sys.stderr)
    text = report(options, rows, load)
    print(text)
    if options.keep:
        keep("schedule.md", text)
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--twill", type=Path, default=TWILL, help="the command")
    parser.add_argument("--runs", type=int, default=9, metavar="N", help="runs of each input (default: 9)")
    parser.add_argument("--long", type=float, default=2.0, metavar="SECONDS",
                        help="inputs whose first run takes longer are run 3 times at most (default: 2)")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="core to run on (default: the last)")
    parser.add_argument("--only", metavar="PART", default="", help="inputs whose command contains this")
    parser.add_argument("--revision", help="what was built, if not the checkout's HEAD")
    parser.add_argument("--keep", action="store_true", help="write bench/results/schedule.md")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs must be at least 1")
    return options


def commands(options: argparse.Namespace) -> list[list[str]]:
    paths = [path for path in sorted((ROOT / "examples").glob("*.ttir")) if path.stem not in BLACKWELL]
    kernels = [[str(path.relative_to(ROOT))] for path in paths]
    listed = run([str(options.twill), "graphs"])
    graphs = [[line.split()[0]] for line in listed.splitlines()]
    every = kernels + graphs + EXTRA
    return [command for command in every if options.only in " ".join(command)]


def measure(options: argparse.Namespace, command: list[str]) -> dict:
    """Runs of one input; the phases are of the run with the median time, summed over the kernel's loops."""
    pinned = ["taskset", "--cpu-list", str(options.core), str(options.twill)]
    full = [*pinned, "schedule", "--quiet", "--format", "json", *command]
    runs = []
    wanted = options.runs
    while len(runs) < wanted:
        started = time.perf_counter()
        done = subprocess.run(full, cwd=ROOT, capture_output=True, text=True, check=False)
        taken = time.perf_counter() - started
        if done.returncode not in (0, 2):
            sys.exit(f"{' '.join(full)}: exit code {done.returncode}\n{done.stderr}")
        runs.append((taken, done.stdout))
        if runs[0][0] > options.long:
            wanted = min(options.runs, 3)
    runs.sort(key=lambda run: run[0])
    answer = json.loads(runs[(len(runs) - 1) // 2][1])
    # Several loops of a kernel come in one answer, with what concerns all of them.
    loops = answer.get("loops", [answer])
    parts = [answer, *loops] if "loops" in answer else [answer]
    seconds = {phase: sum(part["seconds"].get(phase, 0.0) for part in parts) for phase in PHASES}
    times = [taken for taken, _ in runs]
    return {
        "command": " ".join(command),
        "operations": "+".join(str(len(one["problem"]["graph"]["operations"])) for one in loops),
        "answer": found(answer, loops),
        "median": statistics.median(times),
        "least": times[0],
        "runs": len(times),
        "seconds": seconds,
    }


def found(answer: dict, loops: list[dict]) -> str:
    if answer["status"] == "infeasible":
        return "infeasible"
    proved = answer["status"] == "optimal" and all(objective["proved"] for objective in answer["objectives"])
    intervals = ", ".join(f"I = {one['initiation_interval']}" for one in loops)
    return intervals + ("" if proved else " (not all proved)")


def report(options: argparse.Namespace, rows: list[dict], load: float) -> str:
    lines = [
        f"# Time to schedule, {datetime.date.today()}",
        "",
        f"- processor: {processor()}, {os.cpu_count()} visible, one used; load before the start {load:.2f}",
        f"- system: {platform.system()} {platform.release()}, {platform.machine()}",
        f"- versions: {run([str(options.twill), '--version']).strip()} ({options.revision or revision(*SOURCES)}),"
        f" {run(['rustc', '--version']).strip()}, Python {platform.python_version()}",
        "",
        "Wall time in milliseconds of the whole process, from TTIR or graph to replayed schedule in JSON, with every"
        " objective. Phases are of the run with the median time; with several loops they are summed.",
        "",
        "| input | operations | answer | median | min | runs | " + " | ".join(PHASES) + " |",
        "|---|--:|---|" + "--:|" * (3 + len(PHASES)),
    ]
    for row in rows:
        phases = " | ".join(milliseconds(row["seconds"][phase]) for phase in PHASES)
        lines.append(
            f"| `{row['command']}` | {row['operations']} | {row['answer']} | {milliseconds(row['median'])}"
            f" | {milliseconds(row['least'])} | {row['runs']} | {phases} |"
        )
    return "\n".join([*lines, "", CONTEXT])


def milliseconds(seconds: float) -> str:
    value = seconds * 1000
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


if __name__ == "__main__":
    sys.exit(main())
