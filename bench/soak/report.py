"""What was measured, as Markdown, and what is wrong with it."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Sequence
from typing import Any

from .figures import Times
from .held import held, of_a_load
from .process import Served
from .steps import FEWEST, HOST, LATENCY, PARTS, SIDES, Figures, figures

ALLOWED = 1.02
"""The ratio of the 99th percentiles of latencies, Twill's by stock Triton's, that is no failure."""
BLOCKS = 1 << 20
"""More than a process has: blocks of several processes are told apart by it."""


class Report:
    """What some processes did. Percentiles take a while, so each is computed once."""

    def __init__(self, served: Sequence[Served]):
        self.served = list(served)
        self.figures = functools.cache(self._figures)
        self.names = sorted({name for one in served for _, _, name, _ in one.steps.times})
        self.calls = sorted({calls for one in served for what, _, _, calls in one.steps.times if what == LATENCY})
        """How many calls steps have."""

    def _figures(self, what: str, name: str | None = None, calls: int | None = None) -> Figures | None:
        """Percentiles of all steps, of those of a call, or of those with so many calls."""
        sides = {side: Times() for side in SIDES}
        for one in self.served:
            for side, times in sides.items():
                times.extend(one.steps.normalised(what, side, name, calls), BLOCKS * one.plan.number)
        return figures(**sides)

    def _microseconds(self, what: str, side: str, name: str) -> str:
        """The median of steps with one call."""
        found = [value for one in self.served for value in one.steps.times.get((what, side, name, 1), Times()).values]
        return f"{statistics.median(found):.1f}" if found else ""

    # --------------------------------------------------------------------------------------------- tables
    def latencies(self) -> str:
        """Both sides beside each other, as parts of stock Triton's median for the same call."""
        lines = [
            "| | " + " | ".join(f"{side}, {part}" for side in ("stock", "Twill") for part in PARTS) + " | ratio of p99 |",
            "|---|" + "--:|" * (2 * len(PARTS) + 1),
        ]
        rows: list[tuple[str, Figures | None]] = [(LATENCY, self.figures(LATENCY))]
        for calls in self.calls:
            rows.append((f"of steps with {calls} call{'s' * (calls > 1)}", self.figures(LATENCY, None, calls)))
        for name, found in (*rows, (HOST, self.figures(HOST))):
            cells = [f"{side[part]:.3f}" for side in (found.stock, found.twill) for part in PARTS] if found else [""] * 6
            lines.append(f"| {name} | {' | '.join(cells)} | {found.p99 if found else f'fewer than {FEWEST} steps'} |")
        return "\n".join(lines)

    def each(self) -> str:
        """A line for each call: medians of single calls in µs, ratios of all its steps."""
        cells = " | ".join(f"{what}, µs: stock | Twill | ratio of p99" for what in (LATENCY, HOST))
        lines = [f"| call | steps: stock, Twill | {cells} |", "|---|" + "--:|" * 7]
        for name in self.names:
            row = []
            for what in (LATENCY, HOST):
                found = self.figures(what, name)
                row += [*(self._microseconds(what, side, name) for side in SIDES), str(found.p99) if found else ""]
            latency = self.figures(LATENCY, name)
            steps = ", ".join(map(str, latency.steps.values())) if latency else f"fewer than {FEWEST}"
            lines.append(f"| {name} | {steps} | {' | '.join(row)} |")
        return "\n".join(lines)

    def whole(self, thrown_away: dict[str, int]) -> str:
        """All processes together."""
        away = ", ".join(f"{number} {name}" for name, number in thrown_away.items())
        return "\n\n".join([
            f"## All {len(self.served)} processes",
            "Times are parts of stock Triton's median, in the same process, for steps of the same call, as often.",
            self.latencies(),
            self.each(),
            f"Files thrown away: {away}.",
            self.verdict(),
        ])  # fmt: skip

    # --------------------------------------------------------------------------------------------- what is wrong
    def failures(self) -> list[str]:
        """What is wrong, in words."""
        found: list[str] = []
        for one in self.served:
            found += [f"process {one.plan.number + 1}: {each}" for each in failures_of(one)]
        latency = self.figures(LATENCY)
        if latency is None:
            found.append("there are too few steps for a percentile")
        elif latency.p99.value > ALLOWED:
            found.append(f"the 99th percentile of latencies is {latency.p99} of stock Triton's")
        return found

    def verdict(self) -> str:
        """Whether all is well. Calls that are slower beyond doubt are named, and are no failure alone."""
        wrong, lines = self.failures(), []
        for name in self.names:
            found = self.figures(LATENCY, name)
            if found is not None and found.p99.low > ALLOWED:
                lines.append(f"{name} {found.p99}")
        said = [*wrong, *([f"ratios of p99 above {ALLOWED}: {'; '.join(lines)}"] if lines else [])]
        head = "**Not as it should be:**" if wrong else "**All as it should be.**"
        return "\n".join([head, *([""] if said else []), *(f"- {one}" for one in said)])

    def as_json(self, thrown_away: dict[str, int]) -> dict[str, Any]:
        """The figures behind the tables, and all samples."""

        def of(*which: Any) -> Any:
            found = self.figures(*which)
            return found and {**vars(found), "p99": found.p99._asdict()}

        return {
            "processes": [row(one) for one in self.served],
            "calls": {name: {what: of(what, name) for what in (LATENCY, HOST)} for name in self.names},
            "calls of a step": {calls: of(LATENCY, None, calls) for calls in self.calls},
            **{what: of(what) for what in (LATENCY, HOST)},
            "thrown away": thrown_away,
            "failures": self.failures(),
        }


def row(served: Served) -> dict[str, Any]:
    """All of a process but its times."""
    kept = {name: value for name, value in vars(served).items() if name not in ("plan", "steps")}
    found = {key: {"first": one.first, "last": one.last, "slope": one.slope} for key, one in held(served.samples).items()}
    return {"number": served.plan.number, "steps": served.steps.count, "held": found, **kept}


def failures_of(served: Served) -> list[str]:
    """What is wrong with a process."""
    found = []
    if served.wrong:
        number = sum(served.end["wrong"].values()) if served.end else len(served.wrong)
        found.append(f"{number} results are wrong, the first one of {served.wrong[0]['request']}")
    found += [f"{one['request']} failed: {one['error']}" for one in served.failed]
    if served.ended:
        found.append(served.ended)
    elif served.end is None and not served.is_killed:
        found.append("it ended without a word")
    if served.left_processes:
        found.append(f"{len(served.left_processes)} background processes are left")
    return found + [one.grows for one in held(served.samples).values() if one.grows]


# ------------------------------------------------------------------------------------------------- a process
def of_process(served: Served, processes: int) -> str:
    """All of a process."""
    return "\n\n".join([head(served, processes), Report([served]).latencies(), memory(served), counts(served)])


def head(served: Served, processes: int) -> str:
    """What process this is."""
    how = "killed" if served.is_killed else served.ended.partition(":")[0] or "ended well"
    cache = "the cache of those before it" if served.plan.number else "an empty cache"
    return (
        f"## Process {served.plan.number + 1} of {processes}: {cache}, {how}\n\n"
        f"{served.begun_after:.0f} s until its loop began; a loop of {served.seconds:.0f} s, of which the first "
        f"{served.warm:.0f} s do not count; {len(served.requests)} calls."
    )


def memory(served: Served) -> str:
    """What it held."""
    found = held(served.samples)
    if not found:
        return "Memory: there is no sample of the last third of what counts."
    lines = ["| held | first third | last third | a minute | |", "|---|--:|--:|--:|---|"]
    for key, one in found.items():
        name = f"{one.kind.name}, {one.kind.unit}" if one.kind.unit else one.kind.name
        each = of_a_load(served.samples, key) if key in ("rss", "gpu") else None
        said = [*(["**grows**"] if one.grows else []), *([f"{each:,.0f} KiB for each kernel loaded"] if each is not None else [])]
        lines.append(f"| {name} | {one.first:,.0f} | {one.last:,.0f} | {one.slope:+,.1f} | {'; '.join(said)} |")
    return "\n".join(lines)


def counts(served: Served) -> str:
    """What it did, in words."""
    count, end = served.steps.count, served.end
    parts = [
        f"{count['stock']} steps of stock Triton and {count['twill']} with Twill count",
        f"a contest was missing in {part(count['misses'], count['twill'])} of the latter{usual(served, 'misses')}",
        f"something was tried in {part(count['trials'], count['twill'])}{usual(served, 'trials')}",
    ]
    if end is not None:
        status = end["status"]
        by = ", ".join(f"{number} {name}" for name, number in sorted(status["by_status"].items()))
        parts += [
            f"contests of {end['evictions']} specialisations were forgotten",
            f"{end['drops']} functions compiled anew",
            f"{status['kernels']} specialisations ({by}), launched {status['launches']} times",
            f"{status['settled']} contests settled, {status['twill']} for Twill and {status['tuned']} for other stages and warps",
            f"{end['checked']} results compared, {sum(end['wrong'].values())} wrong",
        ]
        if status["condemned"]:
            parts.append(f"left to stock Triton since a process ended: {', '.join(status['condemned'])}")
    waiting = next((one["waiting"] for one in served.samples if one["phase"] != "warm"), 0)
    if waiting:
        parts.append(f"{waiting} specialisations still waited for kernels when times began to count")
    parts.append(f"records: {served.trials} of first launches, {served.died} of processes that died")
    if served.left_out:
        parts.append("left out: " + "; ".join(f"{name} ({why})" for name, why in served.left_out.items()))
    if served.left_files:
        parts.append(f"left where temporary files are: {len(served.left_files)} ({', '.join(served.left_files[:3])})")
    return "; ".join(parts) + "."


def part(some: int, every: int) -> str:
    """A number, and its part in per cent."""
    return f"{some} ({100 * some / every:.2f} %)" if every else "0"


def usual(served: Served, kind: str) -> str:
    """How long disturbed steps take."""
    found = served.steps.disturbed(kind)
    return f", which take {statistics.median(found):.2f} of the usual time" if found else ""
