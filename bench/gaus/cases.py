"""What is measured: questions about graphs, who answers them, and in which order."""

import csv
from dataclasses import dataclass, replace
from pathlib import Path

from bench.gaus import graphs

PARTS = ["hatschet", "express", "epfl", "gs_random", "scaling"]

OURS = "gaus"
LEGALISER = "legaliser alone"
DOWNHILL = "no polish"
WINDOWS = "no windows"
# Operations up to which windows are solved exactly by default.
WITH_WINDOWS = 1000
ABLATIONS = {
    LEGALISER: ["--no-gradient", "--polish-sweeps", "0", "--windows", "0", "--known", "none"],
    "no gradient": ["--no-gradient"],
    DOWNHILL: ["--polish-sweeps", "0", "--windows", "0", "--known", "none"],
    WINDOWS: ["--windows", "0"],
    "no known schedules": ["--known", "none"],
    "list start": ["--start", "list", "--known", "none"],
    "random start": ["--start", "random", "--known", "none"],
}
LIST, FORCE, SPANS, ITERATIVE, SDC = "list", "force-directed", "spans", "ims", "sdc"
EXACT, CP_SAT = "exact", "CP-SAT"
STEP = "gradient steps"

# Operations of a loop up to which CP-SAT looks for fewer live values: the model has a literal for each operation and step.
MODELLED = 300

# GS-Schedule's score: 100 for each unit of the peak, 1 for each step that a weighted edge spans.
SCORE = (100, 1)
# Latency bound of EPFL and gs_random, in critical paths.
FACTOR = 1.5


@dataclass(frozen=True)
class Question:
    """A question about a graph. `latency` is a bound in steps."""

    part: str
    name: str
    file: Path
    kind: str
    weights: tuple[int, int] = (1, 0)
    latency: int | None = None
    chaining: bool = False
    loop: bool = False
    # A random graph's description, instead of a file.
    random: str = ""

    @property
    def graph(self) -> graphs.Graph:
        """Of a file."""
        return graphs.read(self.file, self.chaining)

    @property
    def key(self) -> tuple[str, str, str]:
        """Part, graph and name: which question a row answers."""
        graph = f"{self.file.parent.name}/{self.file.stem}" if self.loop else self.file.stem
        return self.part, self.random or graph, self.name

    def arguments(self) -> list[str]:
        """As `twill gaus` takes them."""
        found = ["--random", self.random] if self.random else [str(self.file)]
        if self.loop:
            return [*found, "--smallest-ii"]
        found += ["--objective", self.kind]
        found += ["--latency-factor", str(FACTOR)] if self.random else ["--latency", str(self.latency)]
        if self.kind == "resources":
            found += ["--weights", "{},{}".format(*self.weights)]
        return found + (["--chaining", "on" if self.chaining else "off"] if self.file.suffix == ".gml" else [])


@dataclass(frozen=True)
class Job:
    """One answer to one question. Those of a lower rank come first."""

    question: Question
    who: str
    seed: int
    seconds: float
    rank: int


def bound(graph: graphs.Graph, factor: float) -> int:
    return int(graph.critical_path * factor)


def express(folder: Path) -> list[tuple[Question, int]]:
    """With the least sum of multipliers and ALUs, proved by CPLEX."""
    with (folder / "express" / "optima.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = []
    for row in rows:
        path = folder / "express" / f"{row['graph']}.dot"
        latency = bound(graphs.read(path), float(row["latency_factor"]))
        question = Question("express", f"units, {row['latency_factor']} × path", path, "resources", latency=latency)
        found.append((question, int(row["multipliers"]) + int(row["alus"])))
    return found


def hatschet(folder: Path) -> list[tuple[Question, int | None]]:
    """With the least interval where it is proved."""
    with (folder / "hatschet" / "optimal_ii.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    known = lambda row: int(row["ii_lower"]) if row["ii_lower"] == row["ii_upper"] else None
    path = lambda row: folder / "hatschet" / row["graph"]
    return [(Question("hatschet", "interval", path(row), "latency", loop=True), known(row)) for row in rows]


def epfl(folder: Path) -> list[Question]:
    """A: a unit costs 1 in each step of the schedule, an edge 1 in each step that it spans; B; and the peak alone."""
    found = []
    for file in sorted((folder / "epfl").glob("*.blif")):
        latency = bound(graphs.read(file), FACTOR)
        question = Question("epfl", "A", file, "resources", (latency, 1), latency)
        found += [question, replace(question, name="B", kind="storage"), replace(question, name="peak", weights=(1, 0))]
    return found


def gs_random(folder: Path) -> list[Question]:
    """GS-Schedule's score; the same without chaining, which is A; and B."""
    found = []
    for file in sorted((folder / "gs_random").glob("*.gml")):
        path = graphs.read(file).critical_path
        latency = int(path * FACTOR)
        score = Question("gs_random", "score", file, "resources", SCORE, latency=path, chaining=True)
        a = Question("gs_random", "A", file, "resources", SCORE, latency)
        found += [score, a, replace(a, name="B", kind="storage")]
    return found


def scaling(folder: Path) -> list[Question]:
    """Two edges a node: shallow ones, whose depth hardly grows, and deep ones, whose depth is in proportion; and EPFL."""
    found = []
    for nodes in (1000 * 2**k for k in range(7)):
        shallow, deep = f"nodes={nodes},density={4 / (nodes - 1):.9f}", f"nodes={nodes},density={2 / 64},reach=64"
        found += [Question("scaling", "shallow", Path(), "resources", random=shallow)]
        found += [Question("scaling", "deep", Path(), "resources", random=deep)]
    return found + [replace(question, part="scaling", name="EPFL") for question in epfl(folder) if question.name == "peak"]


def limit(graph: graphs.Graph, seconds: float) -> float:
    """Wall clock for a graph: small ones get less of it."""
    if len(graph) < 1000:
        return max(seconds / 8, 0.5)
    return seconds / 2 if len(graph) < 5000 else seconds


def jobs(parts: list[str], folder: Path, seconds: float, seeds: int) -> list[Job]:
    """All of them, the most important first: one seed and every peer, then ablations, then the other seeds."""
    found = []
    small = max(seconds / 10, 0.5)
    every = range(1, seeds + 1)
    if "hatschet" in parts:
        for question, _ in hatschet(folder):
            found += [Job(question, who, 1, small, 0) for who in (EXACT, ITERATIVE, SDC)]
            found += [Job(question, OURS, seed, small, 0 if seed == 1 else 4) for seed in every]
            if len(question.graph) <= MODELLED:
                found.append(Job(question, CP_SAT, 1, seconds, 2))
    if "express" in parts:
        for question, _ in express(folder):
            found += [Job(question, who, 1, small, 0) for who in (LIST, FORCE, CP_SAT)]
            found += [Job(question, OURS, seed, small, 0 if seed == 1 else 4) for seed in every]
    if "scaling" in parts:
        found += [Job(question, STEP, 1, 60.0, 2) for question in scaling(folder)]
    large = (epfl(folder) if "epfl" in parts else []) + (gs_random(folder) if "gs_random" in parts else [])
    for question in large:
        time = limit(question.graph, seconds)
        found += [Job(question, who, 1, time, 0) for who in (LIST, FORCE, SPANS)]
        found += [Job(question, OURS, 1, time, 1), Job(question, CP_SAT, 1, time, 2)]
        if question.name != "peak":
            differ = [who for who in ABLATIONS if who != WINDOWS or len(question.graph) <= WITH_WINDOWS]
            found += [Job(question, who, 1, time, 3) for who in differ]
            found += [Job(question, OURS, seed, time, 4) for seed in every if seed > 1]
    return sorted(found, key=lambda job: job.rank)
