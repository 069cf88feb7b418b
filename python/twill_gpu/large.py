"""Large graphs without warps, by GauS (docs/gaus.md)."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from . import _twill, widget
from .graph import Graph
from .keywords import spelled
from .options import checked, known


class LargeSchedule:
    """The schedule of a large graph, with its lower bound."""

    def __init__(self, text: str):
        self._text, file = text, json.loads(text)
        self.summary: dict[str, Any] = file.get("summary", file)
        """All figures (docs/formats.md)."""
        self._file = file if "summary" in file else None

    @property
    def objective(self) -> int | None:
        """The objective; None where no schedule was found in time."""
        return cast("int | None", self.summary["objective"].get("value"))

    @property
    def lower_bound(self) -> int:
        """No schedule has a smaller objective."""
        return int(self.summary["objective"]["lower_bound"])

    @property
    def is_optimal(self) -> bool:
        """Returns whether that proves it the least."""
        return self.objective == self.lower_bound

    @property
    def latency(self) -> int | None:
        """Steps until all operations are finished."""
        return self.summary.get("latency")

    @property
    def ii(self) -> int | None:
        """Initiation interval of a loop."""
        return self.summary.get("interval")

    @property
    def starts(self) -> dict[str, int]:
        """The step in which each operation starts."""
        if self._file is None:
            return {}
        names = [one["name"] for one in self._file["graph"]["operations"]]
        return dict(zip(names, self._file["steps"]))

    def to_json(self) -> str:
        """Its file, which `twill check` replays."""
        return self._text

    def _repr_html_(self) -> str | None:
        return None if self._file is None else widget.page(self._text, "large graph")

    def __repr__(self) -> str:
        kind = self.summary["objective"]["kind"]
        return f"LargeSchedule({kind} = {self.objective}, at least {self.lower_bound})"


@spelled(more=lambda: known("gaus"))
def gaus(
    what: str | os.PathLike[str] | Graph | Mapping[str, object] | None,
    *,
    progress: Callable[[str], None] | None = None,
    **options: object,
) -> LargeSchedule:
    """Schedules a large graph by gradient, with a lower bound.

    what: the path of a graph (.json, .graphml, .dot, .blif, .gml, .mlir, .ttir), a `Graph`, a dataflow graph as its format has
        it (`{"format": "twill-dataflow", …}`), or `random="nodes=1000"` among the options and None.
    options: those of `twill gaus` with underscores: `objective="storage"`, `smallest_ii=True`, `time_limit=10`, `seed=1`.

    Raises `InputError`; `InfeasibleError` where dependences rule every schedule out.
    """
    if what is None:
        return LargeSchedule(_twill.gaus(None, checked(options, "gaus", has_input=False), progress))
    if isinstance(what, (Graph, Mapping)):
        text = what.to_json() if isinstance(what, Graph) else json.dumps(what)
        with tempfile.TemporaryDirectory(prefix="twill-") as folder:
            path = Path(folder) / "graph.json"
            path.write_text(text, encoding="utf-8")
            return _of_file(path, options, progress)
    return _of_file(what, options, progress)


def _of_file(
    path: str | os.PathLike[str], options: Mapping[str, object], progress: Callable[[str], None] | None
) -> LargeSchedule:
    return LargeSchedule(_twill.gaus(os.fspath(path), checked(options, "gaus"), progress))
