"""Does `TWILL=check` notice wrong kernels? Twill's are made of a TTIR with one thing changed (`planted.py`), and compared.

Each such kernel runs on copies of a launch's memory, as every kernel does that is checked, and stock Triton has all launches.
Kernels are made in a cache of their own, which is thrown away: nobody else gets one.

    python -m bench.applications.planting rows.json          # the summary of what `--plant` has written so far
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

from . import planted

MODE = "plant "
"""What a case's process is told, before the seeds."""
CALLS = 12
"""In which a kernel's first launches are compared."""
SEARCH_SECONDS = 10
"""For which the schedule of a wrong kernel is looked for: it need not be the best."""
NOTICED, NOT_NOTICED, NOT_MADE, NOT_COMPARED = "noticed", "NOT NOTICED", "not made", "not compared"
VERDICTS = (NOTICED, NOT_NOTICED, NOT_MADE, NOT_COMPARED)


class Asked(NamedTuple):
    """A kernel that Twill was to make: of which specialisation, whose side it is, and what was changed."""

    found: Any
    side: str
    change: planted.Planted


def seeds_of(text: str) -> range:
    """`FIRST:LAST`, the last not included; one number is that one alone."""
    first, _, last = text.partition(":")
    return range(int(first), int(last) if last else int(first) + 1)


# ------------------------------------------------------------------------------------------------- in a case's process
def compared(call: Callable[[], Sequence[Any]], seeds: Iterable[int]) -> dict[str, Any]:
    """What `TWILL=check` says of the planted kernels of each seed in some calls."""
    rows: list[dict[str, Any]] = []
    for seed in seeds:
        asked: list[Asked] = []
        with _activity(seed, asked):
            why: dict[str, Any] = {}
            try:
                for _ in range(CALLS):
                    call()
            except Exception as error:
                # A fault ends the context: what was planted is named, as it may be why.
                why = {"error": f"{type(error).__name__}: {error}"[:600], "trace": traceback.format_exc()[-1500:]}
            rows += [_row(seed, one) for one in asked]
            if why:
                return {**why, "planted": rows}
    return {"planted": rows}


@contextlib.contextmanager
def _activity(seed: int, asked: list[Asked]) -> Iterator[None]:
    """Twill is active in a cache of its own, and makes each of its kernels of a TTIR that is changed; they are noted."""
    from twill_gpu import activation
    from twill_gpu.activation.settings import Settings
    from twill_gpu.activation.specialisation import Specialised
    from twill_gpu.activation.workers import Unanswered, Workers

    begin, make = Specialised._begin, Workers.make

    def noting(found: Any, side: Any) -> Any:
        change = planted.plant(found._ttir, seed)
        under_way = begin(found, side)
        if change is not None and under_way is not None:
            asked.append(Asked(found, str(side), change))
        return under_way

    def planting(workers: Any, ttir: str, name: str, machine: str, options: Any, folder: Any) -> Any:
        change = planted.plant(ttir, seed)
        if change is not None:
            return make(workers, change.text, name, machine, {**options, "time_limit": SEARCH_SECONDS}, folder)
        nothing: Future[Any] = Future()
        nothing.set_exception(Unanswered("there is nothing to change"))
        return nothing

    with tempfile.TemporaryDirectory(prefix="planted-") as cache, _variable("TWILL_CACHE", cache):
        settings = Settings.of_environment({**os.environ, "TWILL": "check", "TWILL_CONFIGURATIONS": "0"})
        assert settings is not None, "it is switched on"
        Specialised._begin, Workers.make = noting, planting
        activation.install_with(settings)
        try:
            yield
        finally:
            Specialised._begin, Workers.make = begin, make
            activation.uninstall()


@contextlib.contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """An environment variable for a while."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _row(seed: int, asked: Asked) -> dict[str, Any]:
    found, side, change = asked
    verdict, said = verdict_of(side, list(found.checked), found._reasons.get(side, ""), side in found.kernels)
    return {"kernel": found.name, "side": side, "seed": seed, "change": change.said, "verdict": verdict, "said": said[:400]}


def verdict_of(side: str, checked: Sequence[str], reason: str, is_there: bool) -> tuple[str, str]:
    """What became of a planted kernel, and what says so.

    checked: what comparisons of all kernels of the specialisation found; reason: why it has no launches; is_there: it has.
    """
    from twill_gpu.contest import OWN, TWILL

    others = tuple(f"{other}: " for other in OWN if other != TWILL)
    said = [one for one in checked if (not one.startswith(others) if side == TWILL else one.startswith(f"{side}: "))]
    different = [one for one in said if one.endswith("elements differ")]
    if different:
        return NOTICED, different[0]
    unlike = [one for one in said if not one.endswith("no difference")]
    if unlike:
        # It refused the arguments, or reads addresses.
        return NOT_COMPARED, unlike[0]
    if said:
        return NOT_NOTICED, f"{len(said)} comparisons"
    return (NOT_COMPARED, "it was not launched") if is_there else (NOT_MADE, reason or "it was not made in time")


# ------------------------------------------------------------------------------------------------- of all cases
def run(
    chosen: Sequence[str], seeds: range, answer: Callable[[str, range], dict[str, Any]], at_once: int
) -> Iterator[dict[str, Any]]:
    """Rows of cases as they come. answer: has a case run in a process of its own for some seeds."""

    def whole(name: str) -> dict[str, Any]:
        row = answer(name, seeds)
        there = {one["seed"] for one in row.get("planted", ())}
        # Functions that keep what Triton compiled for the first seed have kernels for others in a process of their own.
        for seed in [one for one in seeds if there and one not in there and "error" not in row]:
            row["planted"] += answer(name, range(seed, seed + 1)).get("planted", [])
        return row

    with ThreadPoolExecutor(at_once) as pool:
        for done in as_completed([pool.submit(whole, name) for name in chosen]):
            yield done.result()


def line(row: dict[str, Any]) -> str:
    """A case in one line, and a line for each kernel that was not noticed."""
    counts = collections.Counter(one["verdict"] for one in row.get("planted", ()))
    parts = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
    parts += [f"fails: {' '.join(row['error'].split())[:200]}"] if "error" in row else []
    lines = [f"planted: {row['case']}, {row.get('seconds', '')} s: {', '.join(parts) or 'no kernels of Twill'}"]
    lines += [f"    {told(one)}" for one in row.get("planted", ()) if one["verdict"] == NOT_NOTICED]
    return "\n".join(lines)


def told(one: dict[str, Any]) -> str:
    """A planted kernel in one line."""
    who = f"{one['kernel']} ({one['side']}, seed {one['seed']})"
    return f"{who}: {one['verdict']}: {one['change']}: {' '.join(one['said'].split())[:200]}"


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """What all rows say: a table by kind of change, and each kernel that was not noticed, compared or made."""
    every = [(row["case"], one) for row in rows for one in row.get("planted", ())]
    kinds = collections.defaultdict(collections.Counter)
    for _, one in every:
        kinds[one["change"].partition(", line ")[0]][one["verdict"]] += 1
    lines = [f"| what was changed | {' | '.join(VERDICTS)} |", "|---|" + "---|" * len(VERDICTS)]
    lines += [f"| {kind} | {' | '.join(str(count[one]) for one in VERDICTS)} |" for kind, count in sorted(kinds.items())]
    total = collections.Counter(one["verdict"] for _, one in every)
    lines += ["", f"{len(every)} planted in {len(rows)} calls: {', '.join(f'{total[one]} {one}' for one in VERDICTS)}."]
    fail = [row for row in rows if "error" in row]
    lines += [f"{len(fail)} calls fail: {', '.join(row['case'] for row in fail)}."] if fail else []
    lines += [f"- {case}: {told(one)}" for verdict in VERDICTS[1:] for case, one in every if one["verdict"] == verdict]
    return "\n".join(lines)


if __name__ == "__main__":
    print(summary(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
