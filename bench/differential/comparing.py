"""What each process does with a kernel: compile both sides, compare them, take their times."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from .arguments import Case
from .sides import ours, stock, warps_of

WARM_UP, LAUNCHES, ROUNDS = 3, 15, 2
TOLERANCE = {"f16": 2e-2, "bf16": 2e-2, "f32": 1e-2, "f64": 1e-2, "f8E4M3FN": 0.13, "f8E5M2": 0.26, "i8": 1}
"""Of floats relative to the value plus the root mean square of all that stock Triton wrote to that memory; of i8,
mostly something rounded, in units; other integers must be the same."""


@dataclass
class Difference:
    """Of two results, over all memory."""

    changed: int = 0
    """Elements that stock Triton's kernel changed, and how many of them are finite."""
    finite: int = 0
    differing: int = 0
    """Elements with other bits, and those beyond the tolerance."""
    beyond: int = 0
    most: float = 0.0
    """The largest difference, and the largest in the measure of the tolerance."""
    relative: float = 0.0
    where: list[str] = field(default_factory=list)
    """Pointers to what is beyond."""


def measure(case: Case, first, second, ignored: dict | None = None) -> tuple[Difference, dict]:
    """The difference of two results, and by slot which elements are beyond the tolerance; not counting ignored ones."""
    found, beyond = Difference(), {}
    for index, (name, element) in enumerate(case.slots):
        before, a, b = (case.memory(whole, index) for whole in (case.initial, first, second))
        changed = bits(before) != bits(a)
        found.changed += int(changed.sum())
        values, others = wide(a), wide(b)
        finite = values[changed]
        finite = finite[finite.isfinite()]
        found.finite += finite.numel()
        differing = bits(a) != bits(b)
        if not bool(differing.any()):
            continue
        if ignored and index in ignored:
            differing &= ~ignored[index]
        found.differing += int(differing.sum())
        distance, relative = distances(values, others, float(finite.square().mean().sqrt()) if finite.numel() else 0.0)
        if not a.dtype.is_floating_point:
            relative = distance
        outside = (relative > TOLERANCE.get(element, 0)) & differing
        found.most = max(found.most, float((distance * differing).nan_to_num(nan=0).max()))
        found.relative = max(found.relative, float(relative.where(differing, 0).max()))
        if bool(outside.any()):
            found.beyond += int(outside.sum())
            found.where.append(name)
            beyond[index] = outside
    return found, beyond


def bits(values):
    import torch

    return values.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[values.itemsize])


def wide(values):
    """Values of a type that holds them and their differences."""
    import torch

    return values.float() if values.itemsize < 4 or values.dtype == torch.float32 else values.double()


def distances(a, b, scale: float) -> tuple:
    """Absolute differences, and relative to the value plus a scale; no number equals another that is none."""
    same = (a == b) | (a.isnan() & b.isnan())
    distance = (a - b).abs().masked_fill(same, 0)
    relative = (distance / (a.abs() + scale)).nan_to_num(nan=float("inf")).masked_fill(same, 0)
    return distance, relative


def compile_both(task: dict, stage: Callable) -> dict:
    """Fills Triton's cache: machine code, and what launches it unless the task is only to compile."""
    from triton.backends.nvidia.driver import CudaLauncher

    stage("stock")
    compiled = [stock(task["ttir"], warps_of(task["folder"]))]
    stage("ours")
    compiled.append(ours(task["folder"]).compile())
    if task["launchers"]:
        # A kernel in CUDA has no launcher of Triton's.
        for one in (one for one in compiled if hasattr(one, "src")):
            CudaLauncher(one.src, one.metadata)
    return {"verdict": "compiled"}


def compare(task: dict, stage: Callable) -> dict:
    """Runs stock Triton's kernel twice and ours once, from the same memory at the same addresses."""
    stage("arguments")
    case = Case(task)
    stage("stock")
    launch = case.stock()
    first = case.run(launch).clone()
    _, varying = measure(case, first, case.run(launch))
    stage("ours")
    result = case.run(case.ours()).clone()
    stage("comparing")
    found, beyond = measure(case, first, result)
    note = ""
    if beyond and not varying:
        varying = other_warps(case, first)
        if varying:
            note = "stock varies with warps"
            found, beyond = measure(case, first, result, varying)
    verdict = "equal" if not found.differing else "close"
    if beyond and (note or not varying):
        verdict = "DIFFERENT"
    elif varying:
        verdict = "not deterministic"
    elif not found.changed and not found.differing:
        verdict = "nothing written"
    return {"verdict": verdict, "note": note, **vars(found)}


def other_warps(case: Case, first) -> dict:
    """Where stock Triton's kernel gives another result with another number of warps; empty if that does not run."""
    try:
        return measure(case, first, case.run(case.stock(4 if warps_of(case.folder) != 4 else 8)))[1]
    except Exception:
        return {}


def clock(task: dict, stage: Callable) -> dict:
    """Median milliseconds of both, in turn."""
    stage("arguments")
    case = Case(task)
    sides = []
    for name, make in (("stock", case.stock), ("ours", case.ours)):
        stage(name)
        sides.append((name, make(), []))
    for name, launch, times in sides * ROUNDS:
        stage(name)
        case.run(launch)
        times += times_of(launch)
    stock_ms, ours_ms = (statistics.median(times) for _, _, times in sides)
    grid = "x".join(map(str, task["grid"]))
    return {"timed_grid": grid, "stock_ms": stock_ms, "ours_ms": ours_ms, "ratio": stock_ms / ours_ms}


def times_of(launch: Callable[[], object]) -> list[float]:
    """Milliseconds of launches after a warm-up. The host submits them while the GPU is paused."""
    import torch

    for _ in range(WARM_UP):
        launch()
    torch.cuda._sleep(2_000_000)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(LAUNCHES + 1)]
    events[0].record()
    for event in events[1:]:
        launch()
        event.record()
    torch.cuda.synchronize()
    return [before.elapsed_time(after) for before, after in zip(events, events[1:])]
