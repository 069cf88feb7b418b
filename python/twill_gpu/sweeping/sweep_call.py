"""A sweep from its beginning to its end."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import InputError
from ..keywords import spelled
from ..machine import Machine
from ..options import checked, known
from . import jobs
from .journal import Journal
from .launch_time import Amounts, Gpu, fastest_first, milliseconds
from .measuring import measured, torch_with_gpu
from .progress import Line
from .results import Row, Sweep
from .search import Pool, Search, bound_rate, rate_of
from .space import LIMITS, Candidate, Configuration, candidates
from .workers import Threads

TIME_LIMIT = 60.0
"""Seconds after which an exact search ends with the best schedule known."""


@spelled(options=known)
def sweep(
    what: Callable[..., Any] | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    space: Mapping[str, Sequence[object]] | None = None,
    *,
    machine: str | Machine = "h200",
    signature: Mapping[str, str | Callable[[Mapping[str, Any]], str]] | str | None = None,
    constexprs: Mapping[str, object] | None = None,
    options: Mapping[str, object] | None = None,
    where: Callable[[Configuration], bool] | None = None,
    solve: int = 5,
    time_limit: float = TIME_LIMIT,
    measure: int = 0,
    amounts: Callable[[Mapping[str, Any]], Amounts] | None = None,
    sustained: bool = True,
    arguments: Callable[[Mapping[str, Any]], tuple[Any, ...]] | None = None,
    reference: Callable[..., object] | None = None,
    workers: int | None = None,
    ray: str | None = None,
    state: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[str], object] = True,
) -> Sweep:
    """Which tile shapes and options make a kernel fastest, by proof where one is possible.

        twill_gpu.sweep(gemm, {"BLOCK_M": [64, 128, 256], "BLOCK_K": [64, 128], "sub_tiles": [1, 2]}, machine="h200",
                        signature={"a_desc": "tensordesc<fp16[{BLOCK_M}, {BLOCK_K}]>", …, "K": "i32:16"},
                        constexprs={"BLOCK_N": 128})

    what: a Triton function, or one TTIR file or several.
    space: values by name: constexprs of the function, and options of `twill compile` with underscores; None leaves an
        option alone. Every combination is a configuration.
    signature: types of the run-time parameters, in which {NAME} stands for the value of a constexpr; or callables that
        are given the constexprs.
    constexprs, options: those that are the same everywhere.
    where: is given a configuration; says whether it is part of the sweep.
    solve: the best N are certain: schedules are solved exactly, in the order of the bound, until no other
        configuration can achieve more. Each search ends after `time_limit` seconds with the best known, unless
        `options` has a limit.
    amounts: is given the constexprs; says how many programs the grid has, in all or along each axis, and a trip count for each loop. With it, kernels of
        all that were solved are generated and simulated, and ranked by the time of a launch: waves of tiles on all
        multiprocessors, each with its prologue and epilogue, at the clock that the machine's power allows.
    sustained: whether these launches follow each other for long; otherwise they are the first few milliseconds after a rest,
        when a GPU may draw more.
    measure: the best N are compiled and timed on this process's GPU, with `arguments(constexprs)` giving the
        launch's arguments and its grid, and `reference(*arguments)` what was computed and what should have been.
    workers: threads; by default one for each CPU.
    ray: address of a Ray cluster that does the work instead, `"auto"`, or `"local"` for one that is begun here.
    state: file in which all that is done is kept. With the same file a sweep goes on where it ended.
    progress: whether to show on standard error how far it is; or what is told.

    Ctrl-C ends it with what there is. Raises `InputError` where the sweep itself makes no sense; a configuration that
    makes none is rejected with the reason.
    """
    machine, options = Machine.of(machine), dict(options or {})
    if solve < 0 or measure < 0 or (workers is not None and workers < 1):
        raise InputError("solve and measure must be at least 0, and workers at least 1")
    if measure and (arguments is None or not (callable(what) or hasattr(what, "fn"))):
        raise InputError(
            "measure needs a Triton function and arguments=…, which gives a launch's arguments and its grid"
        )
    if measure:
        torch_with_gpu()
    limits = {name: options[name] for name in LIMITS if options.get(name) is not None} or {"time_limit": time_limit}
    found = candidates(what, space or {}, machine, signature, constexprs or {}, options, where)
    journal = Journal(state)
    try:
        line, pool = Line(progress), _pool(workers, ray)
        search = Search(found, pool, journal, line, checked(limits))
        solved, predicted, timed, interrupted = [], {}, {}, False
        try:
            search.bound_all()
            solved = search.solve_best(max(solve, measure))
            if amounts is not None:
                search.simulate_all(solved)
                gpu = _gpu(machine, sustained)
                predicted = {one.index: _predicted(one, search, amounts, gpu) for one in solved}
            if measure and arguments is not None:
                best = _in_order(solved, search, predicted)[:measure]
                timed = measured(what, best, machine, limits, arguments, reference, journal, line)
        except KeyboardInterrupt:
            line.end()
            interrupted = True
            # Rows solved meanwhile count, even if rows before them are not solved.
            solved = [one for one in found if search.schedule(one) is not None]
        finally:
            search.close()
    finally:
        journal.close()
    more = {index: {"predicted_milliseconds": time} for index, time in predicted.items() if time is not None}
    more = {index: more.get(index, {}) | timed.get(index, {}) for index in {*more, *timed}}
    rows = _rows(found, search, {one.index for one in solved}, more, machine)
    name = str(getattr(what, "__name__", "")) or next(one.question["name"] for one in found if one.question)
    several = any((search.bound(one) or {}).get("weights", [1])[1:] for one in found)
    notes = (
        ["Of several loops, I and FLOP are those of one iteration of each, by weight (trip_counts)."] if several else []
    )
    return Sweep(
        rows, kernel=name, machine=machine.name, solve=max(solve, measure), interrupted=interrupted, notes=notes
    )


def _pool(workers: int | None, ray: str | None) -> Pool:
    if ray is None:
        return Threads(workers or os.cpu_count() or 1)
    from .cluster import Cluster

    return Cluster(ray)


def _gpu(machine: Machine, sustained: bool) -> Gpu:
    return Gpu.of({key: number.value for key, number in machine.numbers.items()}, sustained)


def _predicted(one: Candidate, search: Search, amounts: Callable[[Mapping[str, Any]], Amounts], gpu: Gpu) -> float | None:
    """Milliseconds of a launch; None where its kernel is not simulated."""
    kernel = search.simulation(one)
    if kernel is None or "simulated" not in kernel:
        return None
    try:
        return milliseconds(kernel, amounts(one.constexprs), gpu)
    except ValueError as error:
        raise InputError(str(error)) from None


def _in_order(solved: Sequence[Candidate], search: Search, predicted: Mapping[int, float | None]) -> list[Candidate]:
    """Those with a schedule, the best first: by time of a launch where that is predicted, then by FLOP per cycle."""
    rates = {one.index: rate_of(search.bound(one), search.schedule(one)) for one in solved}
    having = [one for one in solved if rates[one.index] is not None]
    timed = [one for one in having if predicted.get(one.index) is not None]
    rest = [one for one in having if predicted.get(one.index) is None]
    bounds = {one.index: search.bound(one) or {} for one in having}
    first = fastest_first(
        timed,
        lambda one: predicted[one.index] or 0.0,
        lambda one: _moved(bounds[one.index]),
        lambda one: int(bounds[one.index]["flop"]),
        lambda one: _option_count(one.options),
    )
    return first + sorted(rest, key=lambda one: -_simulated_rate(bounds[one.index], search.schedule(one)))


def _simulated_rate(bound: Mapping[str, Any], schedule: Mapping[str, Any] | None) -> float:
    """FLOP per cycle by simulation; where there is none, of the schedule."""
    cycles = (schedule or {}).get("simulated") or (schedule or {}).get("ii")
    return float(bound["flop"] / cycles) if cycles else 0.0


def _moved(bound: dict[str, Any]) -> float:
    """Bytes for each FLOP."""
    return (bound.get("moved_bytes") or 0) / bound["flop"] if bound["flop"] else 0.0


def _option_count(options: Mapping[str, object]) -> int:
    """Options that are not left alone."""
    return sum(value is not None for value in options.values())


def _rows(
    found: Sequence[Candidate], search: Search, solved: set[int], timed: Mapping[int, dict[str, Any]], machine: Machine
) -> list[Row]:
    numbers = machine.numbers
    # TFLOP/s of all multiprocessors for one FLOP per cycle on one.
    scale = numbers["chip.clock_mhz"].value * numbers["chip.streaming_multiprocessors"].value * 1e-6
    rows = [_row(one, search, one.index in solved, timed.get(one.index, {}), scale) for one in found]
    infinity = float("inf")

    def order(row: Row) -> tuple[Any, ...]:
        if row.flop_per_cycle is None and (row.fits is False or row.bound is None):
            return 2, row.index
        group = 0 if row.flop_per_cycle is not None else 1
        return group, -(row.rate or 0.0), -(row.flop or 0), row.shared_bytes or infinity, row.index

    predicted = [row for row in rows if row.predicted_milliseconds is not None and row.flop_per_cycle is not None]
    rest = [row for row in rows if row not in predicted]
    # Rows that are equal in all criteria stay in the order of the rest.
    first = fastest_first(
        sorted(predicted, key=order),
        lambda row: row.predicted_milliseconds or 0.0,
        lambda row: row.moved_per_flop,
        lambda row: row.flop or 0,
        lambda row: _option_count(row.options),
    )
    return [*first, *sorted(rest, key=order)]


def _row(one: Candidate, search: Search, is_solved: bool, timed: Mapping[str, Any], scale: float) -> Row:
    fields: dict[str, Any] = {
        "index": one.index,
        "configuration": one.configuration,
        "constexprs": one.constexprs,
        "options": one.options,
    }
    if one.question is None:
        return Row(**fields, status="rejected", fits=False, reason=one.reason)
    bound = search.bound(one)
    if bound is None:
        why = search.failed.get(search.key(one, jobs.FIT), "nothing is known of it yet")
        return Row(**fields, status="failed", fits=None, reason=why)
    if bound["fits"] is False:
        return Row(
            **fields, status="rejected", fits=False, reason=bound["reason"], shared_bytes=bound.get("shared_bytes")
        )
    fields |= {"moved_bytes": bound.get("moved_bytes")}
    fields |= {"flop": bound["flop"], "shared_bytes": bound.get("shared_bytes"), "registers": bound.get("registers")}
    fields |= {"lower_bound": bound["lower_bound"], "status": "bounded", "fits": bound["fits"]}
    schedule = search.schedule(one) if is_solved else None
    if schedule is not None:
        fields |= {name: schedule[name] for name in ("status", "stages", "length", "ii", "simulated") if name in schedule}
        fields["lower_bound"] = max(bound["lower_bound"], schedule.get("lower_bound") or 0)
        # The generator's rings may take more than the schedule asks for, and the schedule more than fit found.
        for name in ("shared_bytes", "registers"):
            fields[name] = max((one for one in (fields[name], schedule.get(name)) if one is not None), default=None)
    elif is_solved or search.key(one, jobs.SOLVE) in search.failed:
        fields["reason"] = search.failed.get(search.key(one, jobs.SOLVE))
    if schedule is not None and fields["status"] == "infeasible":
        return Row(**{**fields, "fits": False, "reason": schedule.get("reason") or "no schedule exists (proved)"})
    rate = rate_of(bound, schedule)
    fields["bound"] = bound_rate({**bound, "lower_bound": fields["lower_bound"]})
    fields["bound_teraflops"] = fields["bound"] * scale
    if is_solved and (simulation := search.simulation(one)) is not None:
        fields |= {"reason": simulation.get("reason"), "spilled": simulation.get("spilled")}
    if rate is not None:
        fields |= {"flop_per_cycle": rate, "teraflops": rate * scale, "fits": True}
        if fields.get("simulated"):
            fields["simulated_teraflops"] = _simulated_rate(bound, schedule) * scale
    return Row(**fields, **timed)
