"""What rows say: tests that fail with Twill alone, kernels, comparisons; as Markdown."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from typing import Any

from .suite import STOCK

OUTCOMES = ("passed", "failed", "skipped")
DIED = "died"
"""How `process` says that a signal ended a process."""


def verdict(line: str) -> str:
    """What a comparison found: `same`, `different`, `unchecked`, or `refused` where the kernel did not take the arguments."""
    if line.endswith("no difference"):
        return "same"
    if "not checked" in line:
        return "unchecked"
    return "different" if "elements differ" in line else "refused"


def outcomes(row: dict[str, Any], phase: str) -> collections.Counter[str]:
    """How many tests of a row passed, failed and were skipped in a phase."""
    return collections.Counter(one["outcome"] for one in row.get("outcomes", {}).get(phase, {}).values())


def failed_by_twill(row: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Tests that fail with Twill and not by stock Triton alone: mode, test, why."""
    every = row.get("outcomes", {})
    stock = every.get(STOCK, {})
    return [
        (phase, test, one.get("why", ""))
        for phase, tests in every.items()
        for test, one in tests.items()
        if phase != STOCK and one["outcome"] == "failed" and stock.get(test, {}).get("outcome") != "failed"
    ]


def failed_by_stock(row: dict[str, Any]) -> list[tuple[str, str]]:
    """Tests that fail by stock Triton alone: test, why."""
    stock = row.get("outcomes", {}).get(STOCK, {})
    return [(test, one.get("why", "")) for test, one in stock.items() if one["outcome"] == "failed"]


def compared(row: dict[str, Any]) -> collections.Counter[str]:
    """How many comparisons of a row found what."""
    return collections.Counter(verdict(line) for _, line in comparisons(row))


def comparisons(row: dict[str, Any]) -> list[tuple[str, str]]:
    """All comparisons of a row: kernel, what was found."""
    return [(one["name"], line) for kernels in row.get("kernels", {}).values() for one in kernels for line in one["checked"]]


def kernels(row: dict[str, Any]) -> tuple[int, int]:
    """How many specialisations were seen, and for how many there is a kernel of Twill's, or was one when it was compared."""
    phases = row.get("kernels", {}).values()
    made = [sum(one["status"] == "scheduled" or bool(one["checked"]) for one in each) for each in phases]
    return max(map(len, phases), default=0), max(made, default=0)


def has_died_with_twill(row: dict[str, Any]) -> bool:
    """Whether a signal ended the process after the phase without Twill."""
    return row.get("ended", "").startswith(DIED) and row.get("phase", STOCK) != STOCK


def is_wrong(row: dict[str, Any]) -> bool:
    """Whether a test fails with Twill alone, its process dies, or a result differs."""
    return bool(failed_by_twill(row)) or has_died_with_twill(row) or compared(row)["different"] > 0


def line(row: dict[str, Any]) -> str:
    """A row of the table."""
    if not row.get("outcomes"):
        return f"| {row['test']} | {remark(row)} | | | | |"
    by_phase = [f"{phase}: {_counts(outcomes(row, phase))}" for phase in row["outcomes"] if phase != STOCK]
    seen, made = kernels(row)
    found = compared(row)
    rest = "".join(f", {found[what]} {what}" for what in ("unchecked", "refused") if found[what])
    different = f"**{found['different']}**" if found["different"] else "0"
    return (
        f"| {row['test']} | {_counts(outcomes(row, STOCK))} | {'; '.join(by_phase)} | {made} of {seen} | "
        f"{found['same'] + found['different']}, {different}{rest} | {row.get('seconds', '')} {remark(row)} |"
    )


def remark(row: dict[str, Any]) -> str:
    """Why a row is not whole."""
    parts = [row["ended"]] if row.get("ended") else []
    parts += [f"{row['unmade']} kernels were not made in time"] if row.get("unmade") else []
    parts += [f"not done: {row['phase']}"] if row.get("phase") else []
    return "; ".join(parts)


def _counts(counted: collections.Counter[str]) -> str:
    named = [f"{counted[one]} {one}" for one in OUTCOMES if counted[one]]
    return ", ".join(named) or "none"


def report(rows: Sequence[dict[str, Any]]) -> str:
    """All rows as Markdown: the table, what is wrong, and a summary."""
    head = [
        "| test | by stock Triton | with Twill | kernels made | launches compared, different | seconds |",
        "|---|---|---|---|---|---|",
    ]
    return "\n\n".join(filter(None, ["\n".join([*head, *map(line, rows)]), _list(rows), summary(rows)]))


def _list(rows: Iterable[dict[str, Any]]) -> str:
    """What is wrong, a line each."""
    found = []
    for row in rows:
        found += [f"- fails with Twill ({phase}): `{test}`: {_short(why)}" for phase, test, why in failed_by_twill(row)]
        found += [f"- fails by stock Triton alone: `{test}`: {_short(why)}" for test, why in failed_by_stock(row)]
        found += [
            f"- differs: `{row['test']}`: `{name}`: {_short(text)}"
            for name, text in comparisons(row)
            if verdict(text) == "different"
        ]
    return "\n".join(found)


def _short(text: str) -> str:
    return " ".join(text.split())[:200]


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """What all rows say."""
    begun = [row for row in rows if row.get("outcomes")]
    total: collections.Counter[str] = collections.Counter()
    for row in begun:
        total.update({f"stock {one}": count for one, count in outcomes(row, STOCK).items()})
        total.update({f"compared {one}": count for one, count in compared(row).items()})
        total["failed by Twill"] += len(failed_by_twill(row))
        seen, made = kernels(row)
        total["seen"] += seen
        total["made"] += made
    launches = total["compared same"] + total["compared different"]
    return (
        f"{len(rows)} functions, {len(rows) - len(begun)} without a result; by stock Triton "
        + ", ".join(f"{total[f'stock {one}']} {one}" for one in OUTCOMES)
        + f"; {total['failed by Twill']} fail with Twill alone; {total['seen']} kernels, {total['made']} made, "
        f"{launches} launches compared, {total['compared different']} different."
    )
