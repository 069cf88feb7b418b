"""The report on large graphs: goals, tables and plots, from the rows."""

import argparse
import datetime
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

from bench.common import processor, revision
from bench.gaus import cases, figures, goals, tables
from bench.gaus.cases import CP_SAT, FORCE, LIST, OURS, SPANS
from bench.gaus.figures import Answered
from bench.gaus.svg import Panel, Series, page

# Whose quality over time is drawn.
DRAWN = [("div", "A"), ("div", "B"), ("log2", "A"), ("voter", "B"), ("rand_graph_10000_1", "score"), ("rand_graph_10000_1", "B")]


def write(options: argparse.Namespace, rows: list[dict], left_out: int) -> str:
    """Writes the report and its plots; its text."""
    rows = latest(rows)
    questions = figures.by_question(rows)
    plots = {"quality": quality(questions), "time": cost(questions)}
    options.output.mkdir(parents=True, exist_ok=True)
    for name, svg in plots.items():
        if svg:
            save(options.output / f"gaus-{name}.svg", svg)
    text = markdown(options, questions, rows, left_out, {name: f"gaus-{name}.svg" for name, svg in plots.items() if svg})
    save(options.output / "gaus.md", text + "\n")
    return text


def save(path: Path, text: str) -> None:
    """Never half a file."""
    part = path.with_suffix(path.suffix + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def latest(rows: list[dict]) -> list[dict]:
    """Of the newest build alone, and the last of answers that were repeated with other limits."""
    builds = [row["key"][-1] for row in rows if row["key"][-1]]
    kept = {tuple(row["key"][:-2]): row for row in rows if row["key"][-1] in ("", *builds[-1:])}
    return list(kept.values())


def markdown(options: argparse.Namespace, questions: list[Answered], rows: list[dict], left_out: int, plots: dict) -> str:
    of = lambda part: [one for one in questions if one.part == part]
    large = of("epfl") + of("gs_random")
    verdicts, sections = [], []
    if of("hatschet"):
        known = {question.key[1]: optimum for question, optimum in cases.hatschet(options.benchmarks)}
        loops = goals.loops(of("hatschet"), known)
        verdicts += goals.hatschet(loops)
        sections += tables.hatschet(loops)
    if of("express"):
        optima = {question.key[1:]: best for question, best in cases.express(options.benchmarks)}
        verdicts += goals.express(of("express"), optima)
        sections += tables.express(of("express"), optima)
    if large:
        verdicts += goals.large(large, wanted(options))
        verdicts += goals.score(of("gs_random")) + goals.largest(questions)
        for name, meaning in tables.MEANINGS.items():
            sections += tables.quality([one for one in large if f"{one.part} {one.name}" == name], name, meaning)
        sections += tables.ablation(large)
    if "quality" in plots:
        sections += ["## Quality over time", "", f"![Quality over time]({plots['quality']})", ""]
    if of("scaling"):
        verdicts += goals.linear(questions)
        sections += tables.scaling(of("scaling"))
        sections += [f"![Time of a gradient step]({plots['time']})", ""] if "time" in plots else []
    failed = [row for row in rows if row["status"] not in ("found", "nothing found")]
    lines = [f"# Large graphs, {datetime.date.today()}", "", *setting(options, rows, left_out), ""]
    lines += ["## Goals", "", *tables.table(["goal", "measured", "verdict"], "lll", [goal.cells() for goal in verdicts]), ""]
    lines += [*sections, "## Without an answer", ""]
    lines += [
        f"- {' '.join(row['key'][:3])}, {row['who']}, seed {row['seed']}: {row['status']} {row.get('why', '')}".rstrip()
        for row in failed
    ] or ["None failed; every schedule was checked here from the files alone."]
    return "\n".join(lines).rstrip()


def wanted(options: argparse.Namespace) -> int:
    """Questions A and B from 1,000 nodes on."""
    found = []
    for part, questions in (("epfl", cases.epfl), ("gs_random", cases.gs_random)):
        found += questions(options.benchmarks) if part in options.parts else []
    return sum(one.name in ("A", "B") and options.only in one.key[1] and len(one.graph) >= 1000 for one in found)


def setting(options: argparse.Namespace, rows: list[dict], left_out: int) -> list[str]:
    try:
        version = metadata.version("ortools")
    except metadata.PackageNotFoundError:
        version = "–"
    twill = subprocess.run([str(options.twill), "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return [
        f"- processor: {processor()}, {os.cpu_count()} visible; one core an answer, {options.jobs} at a time;"
        f" load at the end {os.getloadavg()[0]:.2f}",
        f"- versions: {twill} ({options.revision or revision('crates', 'Cargo.lock')}), OR-Tools {version}, Python {platform.python_version()}",
        f"- {len(rows)} answers{f', {left_out} left for another run' if left_out else ''}; limits of"
        f" {', '.join(f'{limit:g}' for limit in sorted({row['limit'] for row in rows}))} s by part and size",
        "- wall clock: ours is for the whole command but writing; what it took is in *s*. CP-SAT: one thread, every"
        " variable hinted from the list schedule, its limit for the solver alone; reading and building the model come on top.",
        "- *spans*: least communication, or least sum of lifetimes, exactly, by difference constraints; peaks fall out.",
        f"- seeds: ours is the median of up to {options.seeds}, with least and greatest; peers run once.",
    ]


def quality(questions: list[Answered]) -> str:
    by_name = {(one.graph, one.name): one for one in questions if one.part in ("epfl", "gs_random")}
    chosen = [by_name[key] for key in DRAWN if key in by_name]
    others = sorted((one for one in by_name.values() if one not in chosen), key=lambda one: -one.nodes)
    chosen += others[: len(DRAWN) - len(chosen)]
    panels = [panel for one in chosen if (panel := over_time(one))]
    return page(panels, 3) if panels else ""


def over_time(one: Answered) -> Panel | None:
    """Objective over the bound."""
    scale = one.bound or 1
    series = []
    for row in one.rows(OURS):
        points = [(max(seconds, 1e-3), value / scale) for seconds, value in row["trace"]]
        series.append(Series("gaus, each seed", points, 0, step=True))
    for row in one.rows(CP_SAT):
        points = [(1e-3, row["start"] / scale)]
        points += [(max(seconds, 1e-3), value / scale) for seconds, value in row["trace"] if value <= row["start"]]
        series.append(Series("CP-SAT", points, 1, step=True))
    for k, who in enumerate((LIST, FORCE, SPANS), 2):
        series += [Series(who, [(1e-3, value / scale)], k, step=True, dashed=True) for value in one.values(who)[:1]]
    series = [each for each in series if each.points and all(value > 0 for _, value in each.points)]
    ending = "× bound" if one.bound else ""
    title = f"{one.graph}, {one.name} ({one.nodes:,} nodes)"
    return Panel(title, "seconds of search", f"objective {ending}".strip(), series) if one.rows(OURS) else None


def cost(questions: list[Answered]) -> str:
    panels = []
    series = []
    for k, family in enumerate(("shallow", "deep", "EPFL")):
        points = goals.steps(questions, family)
        series.append(Series(family, points, k, line=family != "EPFL"))
    if any(each.points for each in series):
        nodes = [x for each in series for x, _ in each.points]
        per_node = sorted(y / x for each in series for x, y in each.points)
        middle = per_node[len(per_node) // 2]
        ends = [(x, middle * x) for x in (min(nodes), max(nodes))]
        series.append(Series("linear", ends, 5, line=True, dashed=True))
        panels.append(Panel("Time of a gradient step", "nodes", "seconds", series))
        rows = [row for one in questions if one.part == "scaling" for row in one.rows(cases.STEP)]
        memory = sorted((row["nodes"], row["memory"] / 1e6) for row in rows)
        panels.append(Panel("Memory of the whole process", "nodes", "MB", [Series("all", memory)]))
    return page(panels, 2) if panels else ""
