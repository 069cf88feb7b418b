"""Schedules with their proofs, explained and shown."""

from __future__ import annotations

import html
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from . import _twill, needs, widget
from .backend import toolchain
from .errors import BudgetError, InfeasibleError
from .graph import Graph
from .inputs import question_of
from .keywords import spelled
from .machine import Machine
from .options import known
from .scheduled import SOURCES, language_of

WIDTH = 110
"""Columns of text."""


@dataclass(frozen=True)
class WarpGroup:
    """A warp group in use."""

    id: int
    role: str
    """`variable_latency`, `issue` or `compute`."""
    warps: int
    registers_per_thread: int


@dataclass(frozen=True)
class PlacedOperation:
    """An operation of the schedule."""

    name: str
    kind: str
    cycle: int
    """The cycle of its issue, within its own iteration."""
    stage: int
    group: int
    """Id of its warp group."""
    unit: str | None
    """The functional unit that it holds longest."""
    source: tuple[str, int] | None
    """File and line."""


class LoopSchedule:
    """The result for the schedule of one loop."""

    def __init__(self, text: str):
        self._text, self._file = text, json.loads(text)

    @property
    def name(self) -> str:
        """The name of the loop."""
        return str(self._file["problem"]["graph"]["name"])

    @property
    def status(self) -> str:
        """`optimal` (proved), `feasible` (with a bound), `infeasible` (proved) or `unknown`."""
        return str(self._file["status"])

    @property
    def ii(self) -> int:
        """Initiation interval in cycles. Raises `InfeasibleError` or `BudgetError` where there is no schedule."""
        if self._file.get("initiation_interval") is None:
            kind = InfeasibleError if self.status == "infeasible" else BudgetError
            raise kind(f"{self.name}: there is no schedule ({self.status})")
        return int(self._file["initiation_interval"])

    @property
    def lower_bound(self) -> int:
        """No smaller interval exists; proved."""
        return int(self._file["lower_bound"]["interval"])

    @property
    def bound(self) -> dict[str, Any]:
        """The proof: `interval`, `kind`, `witness`."""
        return dict(self._file["lower_bound"])

    @property
    def length(self) -> int | None:
        """Cycles of one iteration."""
        return cast("int | None", self._file.get("length"))

    @property
    def stages(self) -> int | None:
        """Iterations that overlap."""
        return cast("int | None", self._file.get("stages"))

    @property
    def groups(self) -> tuple[WarpGroup, ...]:
        """Warp groups in use."""
        return tuple(WarpGroup(**group) for group in self._file["groups"])

    @property
    def operations(self) -> tuple[PlacedOperation, ...]:
        """Where every operation went, in the order of the loop."""
        return tuple(map(_placed, self._file["operations"]))

    def timeline(self, width: int = WIDTH, color: bool = False) -> str:
        """The steady state as text, with what bounds it and what it uses."""
        return _twill.timeline(self._text, width, color)

    def svg(self) -> str | None:
        """The first iterations as a picture, by warp group and functional unit; None where there is no schedule."""
        return _twill.timeline_svg([self._text])

    def pseudocode(self) -> str | None:
        """The program of each warp group; None where there is no schedule."""
        return _twill.pseudocode(self._text)

    def check(self) -> None:
        """Replays the schedule without the solver. Raises `InputError` where it breaks a constraint."""
        _twill.check(self._text)

    def to_json(self) -> str:
        """Its file (docs/formats.md)."""
        return self._text

    def _repr_svg_(self) -> str | None:
        return self.svg()

    def _repr_html_(self) -> str | None:
        return widget.page(self._text, self.name) if self._has_schedule else None

    @property
    def _has_schedule(self) -> bool:
        return self._file.get("initiation_interval") is not None

    def __repr__(self) -> str:
        return f"LoopSchedule({self.name!r}, I = {self._file.get('initiation_interval')}, {self.status})"


class Explanation:
    """Why a loop is no faster, and what would change that."""

    def __init__(self, text: str, shown: str):
        self._text, self._shown = text, shown

    def to_json(self) -> str:
        """Its file (docs/formats.md)."""
        return self._text

    @property
    def what_ifs(self) -> list[dict[str, Any]]:
        """Changes of kernel and machine with the interval that each would give."""
        return list(json.loads(self._text).get("what_ifs", []))

    def __str__(self) -> str:
        return self._shown

    def _repr_html_(self) -> str:
        return _pre(self._shown)

    def __repr__(self) -> str:
        return f"Explanation({self._shown.splitlines()[0]!r})"


class Schedule:
    """The schedule of a kernel: that of its loop, or of its loops with common warp groups in `loops`."""

    def __init__(self, question: _twill.Question, loops: Sequence[str], kernel: str | None):
        self._question, self._kernel = question, kernel
        self.loops: tuple[LoopSchedule, ...] = tuple(map(LoopSchedule, loops))
        """In the order of the text."""

    def _only(self, what: str) -> LoopSchedule:
        if len(self.loops) != 1:
            raise AttributeError(f"the kernel has {len(self.loops)} loops: ask schedule.loops[0].{what} and so on")
        return self.loops[0]

    @property
    def ii(self) -> int:
        """Initiation interval in cycles, of a kernel with one loop."""
        return self._only("ii").ii

    @property
    def stages(self) -> int | None:
        """Iterations that overlap, of a kernel with one loop."""
        return self._only("stages").stages

    @property
    def length(self) -> int | None:
        """Cycles of one iteration, of a kernel with one loop."""
        return self._only("length").length

    @property
    def lower_bound(self) -> int:
        """No smaller interval exists (proved), of a kernel with one loop."""
        return self._only("lower_bound").lower_bound

    @property
    def operations(self) -> tuple[PlacedOperation, ...]:
        """Where every operation went, of a kernel with one loop."""
        return self._only("operations").operations

    @property
    def groups(self) -> tuple[WarpGroup, ...]:
        """Warp groups in use by any loop."""
        groups = json.loads(self._kernel)["groups"] if self._kernel else self.loops[0]._file["groups"]
        return tuple(WarpGroup(**group) for group in groups)

    @property
    def status(self) -> str:
        """`optimal` (proved), `feasible` (with a bound), `infeasible` (proved) or `unknown`."""
        if self._kernel:
            return str(json.loads(self._kernel)["status"])
        worst = ("optimal", "feasible", "unknown", "infeasible")
        return max((one.status for one in self.loops), key=worst.index)

    def timeline(self, width: int = WIDTH, color: bool = False) -> str:
        """The steady state of each loop as text, with what bounds it and what it uses."""
        return "\n".join(one.timeline(width, color) for one in self.loops)

    def svg(self) -> str | None:
        """The first iterations of each loop as one picture (`twill schedule --format svg`); None where there is no schedule."""
        return _twill.timeline_svg([one.to_json() for one in self.loops])

    def explain(self, what_if: bool = True, effort: int = 250_000, progress: Callable[[str], None] | None = None) -> Explanation:
        """Why it is no faster: what bounds each loop, why the interval below is impossible, what would change it.

        effort: units of work for each question about a conflict, and four times as many for each change.
        """
        told = _twill.explain(self._question, WIDTH, what_if, effort, progress)
        texts, shown = zip(*told)
        text = texts[0] if len(texts) == 1 else "[" + ",\n".join(texts) + "]"
        return Explanation(text, "\n".join(shown))

    def report(
        self, path: str | os.PathLike[str], explain_limit: float | None = 30.0, progress: Callable[[str], None] | None = None
    ) -> None:
        """Writes a page that stands for itself: timeline, graph, registers, memories, explanation (docs/report.md).

        explain_limit: seconds after which explaining stops, and what is known then is shown; None leaves it out.
        """
        page = _twill.report(self.to_json(), explain_limit, progress)
        # Whole or not at all.
        part = f"{os.fspath(path)}.part"
        with open(part, "w", encoding="utf-8") as file:
            file.write(page)
        os.replace(part, path)

    @cached_property
    def kernel_source(self) -> str:
        """The generated kernel in Gluon, or in CUDA C++ with `emit="cuda"`, as `twill compile` writes it without a look at its
        machine code.

        Its options are the generator's, which fixes some of the scheduler's. Raises `InputError` for a loop graph.
        """
        files = self.compile(assemble=False)
        return files[SOURCES[language_of(json.loads(files["kernel.json"]))]]

    def compile(self, assemble: bool = True, progress: Callable[[str], None] | None = None) -> dict[str, str]:
        """All files of the generated kernel by name: kernel.py (kernel.cu with `emit="cuda"`), launch.py, schedule.json and more.

        assemble: look at the machine code with this Python's Triton, and make the schedule again where registers spill.
        """
        if assemble and self._question["options"].get("emit") != "cuda":
            needs.triton("looking at machine code (assemble=True)")
        python, tools = (sys.executable, toolchain()) if assemble else (None, "")
        text = _twill.compile(self._question, python, "twill_gpu.schedule(…).compile()", tools, progress)
        return dict(json.loads(text)["files"])

    def to_json(self) -> str:
        """The schedule's file; of several loops the kernel's, or an array where each was scheduled by itself."""
        if self._kernel or len(self.loops) == 1:
            return self._kernel or self.loops[0].to_json()
        return "[" + ",\n".join(one.to_json() for one in self.loops) + "]"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes its file, which `twill check` replays."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_json() + "\n")

    def _repr_svg_(self) -> str | None:
        """For what shows no frames, such as GitHub and printed notebooks."""
        return self.svg()

    def _repr_html_(self) -> str | None:
        if not all(one._has_schedule for one in self.loops):
            return None
        return widget.page(self.to_json(), " and ".join(one.name for one in self.loops))

    def __str__(self) -> str:
        return self.timeline()

    def __repr__(self) -> str:
        return f"Schedule({', '.join(map(repr, self.loops))})"


@spelled(more=known)
def schedule(
    what: Callable[..., Any] | str | os.PathLike[str] | Graph,
    machine: str | os.PathLike[str] | Machine | None = None,
    signature: Mapping[str, str] | Sequence[str] | str | None = None,
    constexprs: Mapping[str, object] | None = None,
    *,
    progress: Callable[[str], None] | None = None,
    **options: object,
) -> Schedule:
    """The optimal schedule of a kernel's loops, with its proof.

        twill_gpu.schedule(gemm, machine="h200", signature={"a_desc": "tensordesc<fp16[128, 64]>", …, "K": "i32:16"},
                           constexprs={"BLOCK_M": 128, …})
        twill_gpu.schedule("examples/gemm_tma.ttir", machine="h200", compute_groups=1)

    what: a Triton function, with the types of its parameters in `signature` as Triton writes them and `constexprs`; the path
        or the text of a TTIR; a `Graph`, the path of its file, or the name of a built-in one.
    machine: a `Machine`, its name or its path; by default a graph's own, h200 for kernels.
    options: those of `twill compile` with underscores, such as `sub_tiles=2`, `time_limit=10`.
    progress: is told in words what is going on.

    The GIL is released meanwhile, and Ctrl-C ends the search. Raises `InputError`, with the line of the kernel's source in
    `.place` where it is about one. Where there is no schedule, `.status` says so and `.explain()` why.
    """
    question = question_of(what, machine, signature, constexprs, options)
    loops, kernel = _twill.schedule(question, progress)
    return Schedule(question, loops, kernel)


class Alternatives(list[Schedule]):
    """Different schedules (each a `Schedule`), the best first."""

    def __init__(self, schedules: Sequence[Schedule], differences: Sequence[Sequence[str]], complete: bool, stages: int):
        super().__init__(schedules)
        self.differences = [list(one) for one in differences]
        """In what each differs from the first, in words, the most important first."""
        self.is_complete = complete
        """True if it is proved that all others at the least interval, with at most `stages` stages, do the same as one of these."""
        self.stages = stages


@spelled(more=known)
def alternatives(
    what: Callable[..., Any] | str | os.PathLike[str] | Graph,
    most: int,
    machine: str | os.PathLike[str] | Machine | None = None,
    signature: Mapping[str, str] | Sequence[str] | str | None = None,
    constexprs: Mapping[str, object] | None = None,
    *,
    within: float = 0.0,
    progress: Callable[[str], None] | None = None,
    **options: object,
) -> Alternatives:
    """Up to `most` schedules of a kernel with one loop that really differ: in a warp group, a stage, or an order.

    within: how much longer than the least an interval may be, as part of it: 0.05 is 5 %. The rest is as for `schedule`.
    """
    question = question_of(what, machine, signature, constexprs, options)
    found, complete, stages = _twill.top(question, most, within, progress)
    return Alternatives([Schedule(question, [text], None) for text, _ in found], [why for _, why in found], complete, stages)


def _placed(entry: dict[str, Any]) -> PlacedOperation:
    source = entry.get("source")
    place = (source["file"], source["line"]) if source else None
    fields = {name: entry[name] for name in ("name", "kind", "cycle", "stage", "group")}
    return PlacedOperation(**fields, unit=entry.get("unit"), source=place)


def _pre(text: str) -> str:
    """Text in a notebook, as it is."""
    return f'<pre style="line-height: 1.15; overflow-x: auto">{html.escape(text)}</pre>'
