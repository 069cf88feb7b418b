"""Tables of the report on large graphs."""

import statistics

from bench.gaus import figures
from bench.gaus.cases import (
    ABLATIONS,
    CP_SAT,
    DOWNHILL,
    EXACT,
    FACTOR,
    FORCE,
    ITERATIVE,
    LEGALISER,
    LIST,
    OURS,
    SDC,
    SPANS,
    STEP,
    WITH_WINDOWS,
)
from bench.gaus.figures import Answered
from bench.gaus.goals import Loop

# What the questions ask, in the order of the report.
MEANINGS = {
    "epfl A": f"D · peak + communication: a unit costs 1 in each of the D steps, an edge 1 in each step that it spans; D = ⌊{FACTOR} × path⌋.",
    "epfl B": f"Peak storage, every value 1; D = ⌊{FACTOR} × path⌋.",
    "epfl peak": f"The peak alone; D = ⌊{FACTOR} × path⌋. One seed.",
    "gs_random score": "GS-Schedule's own score: 100 · peak stage weight + weighted edges, a consumer allowed in its producer's step; D = number of"
    " levels of the graph.",
    "gs_random A": f"The same score without chaining: every dependence takes a step; D = ⌊{FACTOR} × path⌋.",
    "gs_random B": f"Peak storage, a value takes its node's weight; D = ⌊{FACTOR} × path⌋.",
}


def table(head: list[str], sides: str, rows: list[list[str]]) -> list[str]:
    """`sides`: l or r by column."""
    line = lambda cells: "| " + " | ".join(cells) + " |"
    return [line(head), "|" + "|".join("--:" if side == "r" else "---" for side in sides) + "|", *map(line, rows)]


def hatschet(loops: list[Loop]) -> list[str]:
    rows = []
    for who, title in ((OURS, "gaus"), (ITERATIVE, "iterative modulo"), (SDC, "SDC modulo"), (EXACT, "exact")):
        answers = [(loop, row) for loop in loops if (row := loop.row(who))]
        if not answers:
            continue
        settled = [(loop, row) for loop, row in answers if loop.optimum is not None]
        optimal = sum(row["interval"] == loop.optimum for loop, row in settled)
        same = [(row, peer) for loop, row in answers if (peer := loop.row(ITERATIVE)) and row["interval"] == peer["interval"]]
        rows.append([title, f"{optimal} of {len(settled)}", proofs([row for _, row in answers]), *against(same)])
        seconds = [row["seconds"] for _, row in answers]
        rows[-1] += [f"{sum(seconds):.1f}", f"{max(seconds):.2f}"]
    head = ["", "least interval", "proved by it", "same interval", "latency ×", "longer", "live values ×", "fewer", "more", "s", "longest s"]
    return [
        "## HatScheT: loops",
        "",
        "Least interval, then latency, then live values. Against iterative modulo scheduling at the same interval: geometric"
        " means, and on how many loops. First seed. Proved: for the exact engine its proof, for others that the interval meets the lower bound.",
        "",
        *table(head, "l" + "r" * 10, rows),
        "",
    ]


def proofs(rows: list[dict]) -> str:
    bound = lambda row: row["bound"] if row["who"] == EXACT else row["least_interval"]
    return str(sum(row["interval"] == bound(row) for row in rows))


def against(pairs: list[tuple[dict, dict]]) -> list[str]:
    mean = lambda what: figures.geomean([a[what] / b[what] for a, b in pairs if a[what] and b[what]])
    count = lambda holds: str(sum(holds(a, b) for a, b in pairs))
    longer = count(lambda a, b: a["latency"] > b["latency"])
    fewer, more = count(lambda a, b: a["storage"] < b["storage"]), count(lambda a, b: a["storage"] > b["storage"])
    return [str(len(pairs)), f"{mean('latency'):.3f}", longer, f"{mean('storage'):.3f}", fewer, more]


def express(questions: list[Answered], optima: dict[tuple[str, str], int]) -> list[str]:
    rows = []
    for one in questions:
        best = optima[one.graph, one.name]
        cells = [one.graph, one.name.removeprefix("units, "), str(one.latency_bound), str(best), str(one.bound)]
        cells.append(spread(one) if one.value(OURS) == best else f"**{spread(one)}**")
        for who in (LIST, FORCE, CP_SAT):
            value = one.value(who)
            cells.append("–" if value is None else str(value) if value == best else f"**{value}**")
        rows.append(cells)
    head = ["graph", "latency", "D", "optimum", "bound", "gaus", "list", "force-directed", "CP-SAT"]
    return [
        "## EXPRESS: multipliers and ALUs",
        "",
        "Optima by CPLEX, proved. Bold: not the optimum.",
        "",
        *table(head, "ll" + "r" * 7, rows),
        "",
    ]


def quality(questions: list[Answered], name: str, meaning: str) -> list[str]:
    """One formulation on one family."""
    questions = [one for one in questions if any(one.rows(who) for who in one.by)]
    if not questions:
        return []
    rows = []
    for one in sorted(questions, key=lambda one: one.nodes):
        cells = [one.graph, f"{one.nodes:,}", str(one.latency_bound), number(one.bound), spread(one)]
        value, bound = one.value(OURS), one.bound
        cells.append(f"{100 * (value / bound - 1):.1f} %" if value and bound else "–")
        for who in (LIST, FORCE, SPANS, CP_SAT):
            cells.append(number(one.value(who)))
        mine = one.rows(OURS)
        cells.append(f"{statistics.median(row['seconds'] for row in mine):.1f}" if mine else "–")
        cells.append(f"{max(row['memory'] for row in mine) / 1e6:.0f}" if mine else "–")
        rows.append(cells)
    mean, count = figures.gap(questions)
    peers = []
    for who in (LIST, FORCE, SPANS, CP_SAT):
        theirs = figures.ratios(questions, who, OURS)
        peers.append(f"{who} {figures.geomean(theirs):.3f} (of {len(theirs)})")
    head = ["graph", "nodes", "D", "bound", "gaus", "gap", "list", "force-directed", "spans", "CP-SAT", "s", "MB"]
    return [
        f"## {name}",
        "",
        meaning,
        "",
        *table(head, "l" + "r" * 11, rows),
        "",
        f"Geometric mean of objective / bound: {mean:.3f} over {count} graphs. Peers' objectives over ours: {', '.join(peers)}.",
        "",
    ]


def ablation(questions: list[Answered]) -> list[str]:
    rows = []
    for name in MEANINGS:
        mine = [one for one in questions if f"{one.part} {one.name}" == name]
        ratios = {who: figures.ratios(mine, who, OURS) for who in ABLATIONS}
        if not any(ratios.values()):
            continue
        starts = [(row["at_start"], row["value"]) for one in mine for row in one.rows(OURS) if row["seed"] == 1]
        starts = [first / last for first, last in starts if first and last]
        downhill = figures.ratios(mine, LEGALISER, DOWNHILL)
        cells = [name, str(len(ratios["no gradient"])), f"{figures.geomean(starts):.3f}"]
        cells += [f"{figures.geomean(ratios[who]):.3f}" if ratios[who] else "–" for who in ABLATIONS]
        cells.append(f"{figures.geomean(downhill):.3f}")
        without = ratios["no gradient"]
        cells.append(" / ".join(str(sum(holds)) for holds in ([x > 1 for x in without], [x == 1 for x in without], [x < 1 for x in without])))
        rows.append(cells)
    if not rows:
        return []
    head = ["", "graphs", "start, legalised", *ABLATIONS, "gradient over legaliser", "gradient better / equal / worse"]
    return [
        "## Ablation: what the parts are worth",
        "",
        "Geometric means of the objective over that of the whole engine, same wall clock, first seed: above 1, the part that is"
        " left out helps. *Legaliser alone*: no gradient, polish or windows, from the same start. *No polish*: no windows either."
        " *No windows*: no exact search in windows, of the graphs that have it by default (up to"
        f" {WITH_WINDOWS:,} operations). *Gradient over legaliser*: what the gradient itself buys, *legaliser alone* over *no polish*."
        " Last column: the whole engine against the one without gradient, on how many graphs.",
        "",
        *table(head, "l" + "r" * (len(head) - 1), rows),
        "",
    ]


def scaling(questions: list[Answered]) -> list[str]:
    rows = []
    found = [(one, row) for one in questions for row in one.rows(STEP)]
    for one, row in sorted(found, key=lambda pair: (pair[0].name, pair[1]["nodes"])):
        graph = one.graph if one.name == "EPFL" else "random"
        cells = [one.name, graph, f"{row['nodes']:,}", f"{row['dependences']:,}", str(row["gradients"])]
        rows.append([*cells, f"{1e3 * row['step']:.3f}", f"{1e6 * row['step'] / row['nodes']:.3f}", f"{row['memory'] / 1e6:.0f}"])
    head = ["family", "graph", "nodes", "dependences", "gradients", "ms a gradient", "µs a node", "MB"]
    return [
        "## Cost of a gradient step",
        "",
        "One descent without polish, less the same without descent, the least of three, one core; the objective is the peak. Random graphs have two"
        " edges a node: *shallow* ones from any operation to any later one, *deep* ones to the next 64.",
        "",
        *table(head, "ll" + "r" * 6, rows),
        "",
    ]


def spread(one: Answered) -> str:
    values = one.values(OURS)
    if not values:
        return "–"
    middle = number(one.value(OURS))
    return middle if min(values) == max(values) else f"{middle} ({number(min(values))}–{number(max(values))})"


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:,}" if abs(value) >= 10000 else str(value)
