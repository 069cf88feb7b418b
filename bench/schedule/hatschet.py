"""The least initiation interval of the HatScheT benchmark loops: `twill gaus --engine exact` and OR-Tools CP-SAT.

    cargo build --release -p twill-cli
    pip install ortools
    python -m bench.schedule.hatschet /path/to/hatschet --keep     # writes bench/results/hatschet.{md,csv}

The folder holds ChStone/<program>/graphN.graphml with graphN_RM.xml, and optimal_ii.csv. Every loop gets the same wall-clock
limit on the same core; CP-SAT runs with one thread. An interrupted run goes on where it stopped. Every schedule is
checked here once more, from the files alone.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import platform
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from collections import Counter, deque
from dataclasses import dataclass
from pathlib import Path

from bench.common import BUILD, ROOT, TWILL, keep, processor, revision, run

try:
    from ortools import __version__ as ortools_version
    from ortools.sat.python import cp_model
except ImportError:
    cp_model = None

UNFINISHED = ROOT / "target" / "bench" / "hatschet.csv"
"""Rows of a run until it is over."""
SOLVERS = {
    "ours": "`twill gaus --engine exact`",
    "plain": "CP-SAT, all operations",
    "reduced": "CP-SAT, our reduction",
}
FIELDS = ["graph", "nodes", "limited", "mii", "known_lower", "known_upper"]
FIELDS += [f"{solver}_{what}" for solver in SOLVERS for what in ("ii", "lower", "seconds")]


@dataclass
class Loop:
    """A loop as the files have it; an edge is (from, to, latency + delay, distance)."""

    resource: list[str]
    limit: dict[str, int]
    edges: list[tuple[int, int, int, int]]
    names: list[str]

    @property
    def limited(self) -> list[int]:
        return [v for v, resource in enumerate(self.resource) if self.limit[resource] > 0]


def main() -> int:
    options = arguments()
    os.sched_setaffinity(0, {options.core})
    known = list(csv.DictReader((options.folder / "optimal_ii.csv").open(encoding="utf-8")))
    known = [row for row in known if options.only in row["graph"]]
    path = options.rows or UNFINISHED
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {}
    if path.exists():
        done = {row["graph"]: row for row in csv.DictReader(path.open(encoding="utf-8"))}
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not done:
            writer.writeheader()
        for row in known:
            if row["graph"] not in done:
                done[row["graph"]] = measure(options, row)
                writer.writerow(done[row["graph"]])
                file.flush()
    rows = [{key: str(value) for key, value in done[row["graph"]].items()} for row in known]
    text = report(options, rows)
    print(text)
    if options.keep:
        keep("hatschet.md", text)
        keep("hatschet.csv", path.read_text(encoding="utf-8"))
    if not options.rows:
        path.unlink()
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the benchmark loops")
    parser.add_argument("--twill", type=Path, default=TWILL, help="the command")
    parser.add_argument("--limit", type=float, default=60.0, metavar="SECONDS", help="of each solver for each loop (default: 60)")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="core to run on (default: the last)")
    parser.add_argument("--only", metavar="PART", default="", help="loops whose path contains this")
    parser.add_argument("--rows", type=Path, metavar="CSV", help="a file for the rows, to stay; an earlier one is gone on with")
    parser.add_argument("--revision", help="what was built, if not the checkout's HEAD")
    parser.add_argument("--keep", action="store_true", help="write bench/results/hatschet.md, and the rows next to it")
    options = parser.parse_args()
    if not options.twill.is_file():
        parser.error(f"{options.twill} is missing; {BUILD}")
    if cp_model is None:
        parser.error("OR-Tools is missing; run: pip install ortools")
    return options


def measure(options: argparse.Namespace, known: dict) -> dict:
    file = options.folder / known["graph"]
    loop = read(file)
    mii = int(known["mii"])
    row = {"graph": known["graph"], "nodes": len(loop.names), "limited": len(loop.limited), "mii": mii}
    row |= {"known_lower": known["ii_lower"], "known_upper": known["ii_upper"]}
    answers = {
        "ours": ours(options, file, loop),
        "plain": upwards(options, loop, mii, plain_model),
        "reduced": upwards(options, loop, mii, reduced_model),
    }
    for solver, (interval, lower, seconds) in answers.items():
        row |= {f"{solver}_ii": interval or "", f"{solver}_lower": lower, f"{solver}_seconds": f"{seconds:.4f}"}
    print(row["graph"], {s: a for s, a in answers.items()}, file=sys.stderr, flush=True)
    return row


def read(file: Path) -> Loop:
    model = xml.parse(file.with_name(file.stem + "_RM.xml")).getroot()
    limit, latency = {}, {}
    for resource in model.iter("Resource"):
        name = resource.get("name")
        limit[name], latency[name] = int(resource.get("limit")), int(resource.get("latency"))
        # What the models below assume; it holds for all of these loops.
        assert limit[name] < 0 or resource.get("blockingTime") == "1", file
    graph, space = xml.parse(file).getroot(), "{http://graphml.graphdrawing.org/xmlns}"
    data = lambda element: {d.get("key"): d.text for d in element.iter(space + "data")}
    nodes = list(graph.iter(space + "node"))
    index = {node.get("id"): v for v, node in enumerate(nodes)}
    resource = [data(node)["uses_resource"] for node in nodes]
    edges = []
    for edge in graph.iter(space + "edge"):
        u, values = index[edge.get("source")], data(edge)
        delay = latency[resource[u]] + int(values["delay"])
        edges.append((u, index[edge.get("target")], delay, int(values["distance"])))
    return Loop(resource, limit, edges, list(index))


def check(loop: Loop, interval: int, times: list[int]) -> None:
    for u, v, delay, distance in loop.edges:
        assert times[u] + delay <= times[v] + distance * interval, (interval, u, v)
    starts = Counter((loop.resource[v], times[v] % interval) for v in loop.limited)
    assert all(count <= loop.limit[resource] for (resource, _), count in starts.items()), interval


def ours(options: argparse.Namespace, file: Path, loop: Loop) -> tuple[int | None, int, float]:
    command = [str(options.twill), "gaus", str(file), "--engine", "exact", "--quiet", "--format", "json"]
    command += ["--time-limit", str(options.limit)]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode not in (0, 3):
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    answer = json.loads(done.stdout)
    interval = answer["initiation_interval"]
    if interval is not None:
        check(loop, interval, [answer["times"][name] for name in loop.names])
    return interval, answer["lower_bound"]["interval"], seconds


def upwards(options: argparse.Namespace, loop: Loop, mii: int, build) -> tuple[int | None, int, float]:
    """Intervals from MII up, one by one, until there is a schedule or the time is over."""
    started = time.perf_counter()
    interval = mii
    while True:
        model, times = build(loop, interval)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_time_in_seconds = max(options.limit - (time.perf_counter() - started), 0.01)
        status = solver.solve(model)
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            seconds = time.perf_counter() - started
            if len(times) == len(loop.names):
                check(loop, interval, [solver.value(times[v]) for v in range(len(times))])
            return interval, interval, seconds
        if status != cp_model.INFEASIBLE:
            return None, interval, time.perf_counter() - started
        interval += 1


def add_resources(model: cp_model.CpModel, loop: Loop, slots: dict[int, cp_model.IntVar]) -> None:
    for resource, limit in loop.limit.items():
        users = [slot for v, slot in slots.items() if loop.resource[v] == resource]
        if limit == 1:
            model.add_all_different(users)
        elif len(users) > limit > 0:
            held = [model.new_fixed_size_interval_var(slot, 1, "") for slot in users]
            model.add_cumulative(held, [1] * len(held), limit)


def plain_model(loop: Loop, interval: int):
    """Every operation has a time; a limited one also a slot and a stage, `time = stage · II + slot`."""
    weights = [(u, v, delay - distance * interval) for u, v, delay, distance in loop.edges]
    # With slots given, each limited operation on a path adds less than one interval to its length.
    horizon = max(longest(len(loop.names), weights, dict.fromkeys(range(len(loop.names)), 0)))
    horizon += interval * (len(loop.limited) + 1)
    model = cp_model.CpModel()
    times = {v: model.new_int_var(0, horizon, "") for v in range(len(loop.names))}
    for u, v, weight in weights:
        model.add(times[v] - times[u] >= weight) if u != v else None
    slots = {}
    for v in loop.limited:
        slots[v] = model.new_int_var(0, interval - 1, "")
        model.add(times[v] == slots[v] + interval * model.new_int_var(0, horizon // interval, ""))
    add_resources(model, loop, slots)
    return model, times


def reduced_model(loop: Loop, interval: int):
    """Slots component by component, as docs/solvers.md describes: only limited operations, in windows around a pivot."""
    model, slots = cp_model.CpModel(), {}
    component = components(loop)
    groups: dict[int, list[int]] = {}
    for v in loop.limited:
        groups.setdefault(component[v], []).append(v)
    for at, group in enumerate(sorted(groups.values(), key=len, reverse=True)):
        inside = [(u, v, d - distance * interval) for u, v, d, distance in loop.edges if component[u] == component[v]]
        paths = {u: longest(len(loop.names), inside, {u: 0}) for u in group}
        pivot = min(group, key=lambda u: -sum(paths[u][v] + paths[v][u] for v in group))
        room = interval - 1 if at else 0
        times = {}
        for v in group:
            low, high = (0, room) if v == pivot else (paths[pivot][v], room - paths[v][pivot])
            times[v] = model.new_int_var(low, high, "")
            slots[v] = model.new_int_var(0, interval - 1, "")
            model.add(times[v] == slots[v] + interval * model.new_int_var(low // interval, high // interval, ""))
        for u in group:
            for v in group:
                implied = any(
                    paths[u][w] + paths[w][v] == paths[u][v] and paths[u][w] + paths[w][u] < 0 and paths[v][w] + paths[w][v] < 0
                    for w in group if w not in (u, v)
                )
                if u != v and not implied:
                    model.add(times[v] - times[u] >= paths[u][v])
    add_resources(model, loop, slots)
    return model, slots


def longest(count: int, edges: list[tuple[int, int, int]], start: dict[int, int]) -> list:
    """Longest paths; no cycle is too long at MII and above."""
    leaving: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for u, v, weight in edges:
        leaving[u].append((v, weight))
    reach: list = [None] * count
    for v, value in start.items():
        reach[v] = value
    queue, queued = deque(start), set(start)
    while queue:
        u = queue.popleft()
        queued.discard(u)
        for v, weight in leaving[u]:
            if reach[v] is None or reach[u] + weight > reach[v]:
                reach[v] = reach[u] + weight
                if v not in queued:
                    queued.add(v)
                    queue.append(v)
    return reach


def components(loop: Loop) -> list[int]:
    """Strongly connected components (Kosaraju)."""
    count = len(loop.names)
    forward: list[list[int]] = [[] for _ in range(count)]
    backward: list[list[int]] = [[] for _ in range(count)]
    for u, v, _, _ in loop.edges:
        forward[u].append(v)
        backward[v].append(u)
    order, seen = [], [False] * count
    for root in range(count):
        stack = [] if seen[root] else [(root, iter(forward[root]))]
        seen[root] = True
        while stack:
            for v in stack[-1][1]:
                if not seen[v]:
                    seen[v] = True
                    stack.append((v, iter(forward[v])))
                    break
            else:
                order.append(stack.pop()[0])
    component = [-1] * count
    for root in reversed(order):
        stack = [root] if component[root] < 0 else []
        while stack:
            v = stack.pop()
            if component[v] < 0:
                component[v] = root
                stack.extend(backward[v])
    return component


def report(options: argparse.Namespace, rows: list[dict]) -> str:
    lines = [
        f"# Least initiation intervals of the HatScheT loops, {datetime.date.today()}",
        "",
        f"- processor: {processor()}, {os.cpu_count()} visible, one used; load at the end {os.getloadavg()[0]:.2f}; limit"
        f" {options.limit:g} s a loop and solver, wall clock",
        f"- versions: {run([str(options.twill), '--version']).strip()} ({options.revision or revision('crates', 'Cargo.lock')}), OR-Tools {ortools_version},"
        f" Python {platform.python_version()}",
        "- ours: whole process, from files to replayed schedule, MII included. CP-SAT: one thread, from MII (given) up one by one, model building"
        " included, reading not. *All operations*: a time for every operation, slot and stage for limited ones. *Our"
        " reduction*: the same question after the reduction of docs/solvers.md, done in Python.",
        "",
        "| solver | proved | no schedule in time | total | longest |",
        "|---|--:|--:|--:|--:|",
    ]
    for solver, name in SOLVERS.items():
        seconds = [float(row[f"{solver}_seconds"]) for row in rows]
        solved = sum(proved(row, solver) for row in rows)
        none = sum(not row[f"{solver}_ii"] for row in rows)
        lines.append(f"| {name} | {solved} of {len(rows)} | {none} | {sum(seconds):.1f} s | {max(seconds):.2f} s |")
    differing = [row["graph"] for row in rows if not agree(row)]
    above = sum(proved(row, "ours") and int(row["ours_ii"]) > int(row["mii"]) for row in rows)
    lines += [
        "",
        f"Proved intervals that contradict each other or optimal_ii.csv: {', '.join(differing) or 'none'}."
        f" Least interval above MII: {above} loops.",
        "",
        "Loops that optimal_ii.csv leaves open, and those that took a solver longer than a second:",
        "",
        "| loop | operations | limited | MII | optimal_ii.csv | " + " | ".join(SOLVERS.values()) + " |",
        "|---|--:|--:|--:|--:|" + "--:|" * len(SOLVERS),
    ]
    for row in rows:
        is_open = row["known_lower"] != row["known_upper"]
        if is_open or any(float(row[f"{solver}_seconds"]) > 1 for solver in SOLVERS):
            known = f"{row['known_lower']}–{row['known_upper']}" if is_open else row["known_lower"]
            answers = " | ".join(answer(row, solver) for solver in SOLVERS)
            lines.append(f"| {row['graph']} | {row['nodes']} | {row['limited']} | {row['mii']} | {known} | {answers} |")
    return "\n".join(lines)


def proved(row: dict, solver: str) -> bool:
    return row[f"{solver}_ii"] != "" and row[f"{solver}_ii"] == row[f"{solver}_lower"]


def agree(row: dict) -> bool:
    """Whether all bounds of this loop leave an interval."""
    lower = [row["known_lower"], *(row[f"{solver}_lower"] for solver in SOLVERS)]
    upper = [row["known_upper"], *(row[f"{solver}_ii"] for solver in SOLVERS)]
    return max(map(int, lower)) <= min(int(value) for value in upper if value)


def answer(row: dict, solver: str) -> str:
    interval, seconds = row[f"{solver}_ii"], float(row[f"{solver}_seconds"])
    shown = interval if proved(row, solver) else f"{row[f'{solver}_lower']}–{interval or '?'}"
    return f"{shown} ({seconds:.2f} s)"


if __name__ == "__main__":
    sys.exit(main())
