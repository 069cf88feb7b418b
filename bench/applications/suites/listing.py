"""Which tests are run: functions of test files by their text alone, in the order of a suite, some parameters of each."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from .suite import Suite

_Item = TypeVar("_Item")


def functions_of(text: str) -> list[str]:
    """The names of a file's tests, as pytest writes them behind the file's."""
    body = ast.parse(text).body
    classes = [one for one in body if isinstance(one, ast.ClassDef) and one.name.startswith("Test")]
    return _tests(body) + [f"{one.name}::{name}" for one in classes for name in _tests(one.body)]


def _tests(body: Sequence[ast.stmt]) -> list[str]:
    return [one.name for one in body if isinstance(one, ast.FunctionDef) and one.name.startswith("test")]


def tests_of(suite: Suite, folder: Path) -> list[str]:
    """All tests of a suite, `file::function` below its folder."""
    files = sorted((folder / suite.tests).rglob("test_*.py"))
    return [f"{file.relative_to(folder).as_posix()}::{name}" for file in files for name in functions_of(file.read_text("utf-8"))]


def chosen(tests: Sequence[str], first: Sequence[str], only: str | None) -> list[str]:
    """The tests in whose name `only` is found, or those of the suite's own choice; the suite's order either way."""
    ranks = [next((rank for rank, one in enumerate(first) if re.search(one, name)), len(first)) for name in tests]
    ordered = sorted(zip(ranks, range(len(tests)), tests))
    return [name for rank, _, name in ordered if (rank < len(first) if only is None else re.search(only, name))]


def spread(items: Sequence[_Item], count: int) -> list[_Item]:
    """So many of a sequence, evenly from its last on: the last ones are the largest as a rule. All of them for a count of 0."""
    if count <= 0 or len(items) <= count:
        return list(items)
    if count == 1:
        return [items[-1]]
    return [items[round(place * (len(items) - 1) / (count - 1))] for place in range(count)]


def middle(items: Sequence[_Item], count: int) -> list[_Item]:
    """The same, but one alone is that in the middle: of an autotuner's configurations neither the smallest nor the largest."""
    return [items[len(items) // 2]] if count == 1 and items else spread(items, count)
