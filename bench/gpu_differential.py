"""Kernels that Twill generated, compared on a GPU with what stock Triton makes of the same TTIR, on random arguments.

    python bench/gpu_differential.py FOLDER --ttir TTIRFOLDER                  # FOLDER/ID/ and TTIRFOLDER/ID.ttir
    python bench/gpu_differential.py FOLDER --ttir TTIRFOLDER --only fla --time --json rows.json
    python bench/gpu_differential.py FOLDER --ttir TTIRFOLDER --compile-only   # needs no GPU and no torch

Needs a Hopper GPU, torch and Triton 3.6. Nothing is known of the kernels but their arguments' types and names: pointers
get memory of their own with random contents, numbers are chosen by name. So results need not mean anything, but both
sides must agree on them. Verdicts:

    equal, close        bit for bit, or within the tolerance of the type
    DIFFERENT           beyond it, where stock Triton agrees with itself, also with another number of warps
    ours fails          does not compile, faults, or says nothing for long; stock Triton runs
    stock fails         stock Triton does one of these, with all arguments that were tried
    nothing written     neither side changed any memory
    not deterministic   stock Triton's results vary: programs or threads write to the same place
    skipped             the launcher refuses the arguments, or a file is missing

A kernel has the worst verdict of its trials, but one trial that compares something counts more than others that do not.
The exit code is 1 if a kernel is DIFFERENT or ours fails.
"""

import argparse
import collections
import contextlib
import importlib.util
import json
import multiprocessing
import os
import re
import statistics
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

STAGES = 2
"""Of stock Triton's software pipelines."""
SLOT, MARGIN = 64 << 20, 8 << 20
"""Bytes of memory for each pointer, and of those how many are before it."""
RUNNERS = 6
"""Processes that share the GPU, except while times are taken."""
START_SECONDS, COMPILE_SECONDS, TRIAL_SECONDS = 180, 120, 15
WIDE = 132
"""Programs along the first axis where times are taken: one for each multiprocessor."""
WARM_UP, LAUNCHES, ROUNDS = 3, 15, 2

TORCH = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
TORCH |= {"f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2", "i1": "bool", "ui8": "uint8"}
TORCH |= {f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)}
TOLERANCE = {"f16": 2e-2, "bf16": 2e-2, "f32": 1e-2, "f64": 1e-2, "f8E4M3FN": 0.13, "f8E5M2": 0.26, "i8": 1}
"""Of floats relative to the value plus the root mean square of all that stock Triton wrote to that memory; of i8,
mostly something rounded, in units; other integers must be the same."""

AGREE, WRONG = ("equal", "close"), ("DIFFERENT", "ours fails")
VERDICTS = (*WRONG, "close", "equal", "not deterministic", "nothing written", "stock fails", "skipped")
"""The first one that any trial has is the kernel's."""


# ------------------------------------------------------------------------------------------------- arguments
@dataclass(frozen=True)
class Trial:
    """How large numbers are: sizes of matrices and sequences, and others; multiples of 16, or anything."""

    name: str
    grid: tuple[int, int, int]
    size16: int
    size: int
    other16: int
    other: int
    zeros: bool = False
    """Whether memory of integers is all zeros."""


TRIALS = (Trial("grid", (2, 2, 1), 192, 75, 64, 3), Trial("one program", (1, 1, 1), 128, 200, 32, 2))
FALLBACKS = (Trial("small", (1, 1, 1), 16, 16, 16, 2, zeros=True), Trial("large", (1, 1, 1), 256, 250, 64, 4))
"""For kernels of which no trial compared anything."""


@dataclass(frozen=True)
class Argument:
    """An argument of the Triton kernel: a pointer, a descriptor (with the shape of its blocks) or a scalar."""

    name: str
    kind: str
    element: str
    block: tuple[int, ...]
    divisible: bool


FUNCTION = re.compile(r"tt\.func public @[\w$.-]+\((.*)\) attributes")
ARGUMENT = re.compile(
    r"%([\w$.-]+): (?:!tt\.ptr<(\w+)>|!tt\.tensordesc<tensor<([\dx]+)x(\w+)>>|(\w+))( \{[^}]*divisibility = 16 [^}]*})?"
)


def arguments_of(ttir: str) -> list[Argument]:
    """Arguments as a launch gives them: shape and strides that follow a descriptor belong to it."""
    found, following = [], 0
    for name, pointee, block, tile, scalar, divisible in ARGUMENT.findall(FUNCTION.search(ttir)[1]):
        if following:
            following -= 1
            continue
        shape = tuple(int(size) for size in block.split("x")) if block else ()
        following = 2 * len(shape)
        kind = "pointer" if pointee else "descriptor" if block else "scalar"
        found.append(Argument(name, kind, pointee or tile or scalar, shape, bool(divisible)))
    return found


STRIDE = re.compile(r"stride", re.IGNORECASE)
COUNT = re.compile(r"group|batch|heads|num_(?!valid|tok)", re.IGNORECASE)
SIZE = re.compile(r"^([mnkstdl]|t[qk])$|seq|len|ctx|tok|size|dim$|height|width|rows|cols|total|valid", re.IGNORECASE)
ROW = 256
"""The least stride, at least as large as any row is long."""


def numbers_of(arguments: list[Argument], trial: Trial) -> dict[str, int | float]:
    """A value for each scalar."""
    numbers = strides_of([one.name for one in arguments if one.kind == "scalar" and STRIDE.search(one.name)])
    for one in arguments:
        if one.kind != "scalar" or one.name in numbers:
            continue
        if not one.element.startswith("i"):
            numbers[one.name] = 0.5
        elif SIZE.search(one.name) and not COUNT.search(one.name):
            numbers[one.name] = trial.size16 if one.divisible else trial.size
        else:
            numbers[one.name] = trial.other16 if one.divisible else trial.other
    return numbers


def strides_of(names: list[str]) -> dict[str, int]:
    """Strides that let nothing overlap where those of a tensor are given from the outer to the inner dimension."""
    groups, last = [], None
    for name in names:
        key = name.split("_")[0] if name.lower().endswith("stride") else re.match(r".*?stride_?[a-z]?", name, re.I)[0]
        if key.lower() != last:
            groups.append([])
        groups[-1].append(name)
        last = key.lower()
    steps = (ROW, ROW * 256, ROW * 1024, ROW * 2048, ROW * 4096)
    return {name: steps[min(i, 4)] for group in groups for i, name in enumerate(reversed(group))}


# What integers in memory mostly mean, by the pointer's name; anything else is an index or a count: 0 to 3.
STARTS = re.compile(r"cu_|indptr|offset|start|_loc$", re.IGNORECASE)
PAIRS = re.compile(r"(chunk|token|split)_ind", re.IGNORECASE)
LENGTHS = re.compile(r"len|rank|size|padded|total", re.IGNORECASE)
ORDERS = re.compile(r"sorted|gather|scatter|perm", re.IGNORECASE)
LOCKS = re.compile(r"lock|counter", re.IGNORECASE)
PACKED = re.compile(r"^b_ptr$|zeros|weight_packed|qweight|w_q", re.IGNORECASE)


def integers(name: str, count: int, trial: Trial, generator):
    """What memory of integers begins with."""
    import torch

    places = torch.arange(count, device="cuda")
    if trial.zeros or LOCKS.search(name):
        return torch.zeros_like(places)
    if STARTS.search(name):
        return places.clamp(max=64) * trial.size
    if PAIRS.search(name):  # of a sequence and a block in it
        return torch.where(places % 2 == 0, places // 4 % 4, places // 2 % 2)
    if LENGTHS.search(name):
        return torch.full_like(places, trial.size)
    if ORDERS.search(name):
        return places % 4096
    most = 1 << 31 if PACKED.search(name) else 4
    return torch.randint(0, most, (count,), device="cuda", generator=generator)


def is_table(argument: Argument) -> bool:
    """Whether memory is there for addresses of other memory."""
    return argument.kind == "pointer" and argument.element == "i64" and argument.name.lower().endswith("ptrs")


class Case:
    """Arguments of a trial. Memory of all pointers is one allocation: what is beyond one is another's, and compared."""

    def __init__(self, task: dict):
        import torch

        self.trial: Trial = task["trial"]
        self.grid, self.folder, self.ttir = task.get("grid", self.trial.grid), task["folder"], task["ttir"]
        self.arguments = arguments_of(self.ttir.read_text())
        tables = [f"*{one.name}" for one in self.arguments if is_table(one)]
        self.slots = [(one.name, one.element) for one in self.arguments if one.kind != "scalar"]
        self.slots += [(name, "bf16") for name in tables]
        self.initial = torch.zeros(len(self.slots) * SLOT, dtype=torch.uint8, device="cuda")
        self.live = torch.empty_like(self.initial)
        names = [name for name, _ in self.slots]
        generator = torch.Generator("cuda").manual_seed(zlib.crc32(f"{task['seed']} {task['id']}".encode()))
        for index, (name, element) in enumerate(self.slots):
            memory = self.memory(self.initial, index)[MARGIN // torch_type(element).itemsize :]
            if f"*{name}" in tables:
                memory.fill_(self.pointer(names.index(f"*{name}")).data_ptr())
            else:
                self._fill(memory, name, generator)
        numbers = numbers_of(self.arguments, self.trial)
        self.values = [
            numbers[one.name] if one.kind == "scalar" else self._pointed(one, names.index(one.name))
            for one in self.arguments
        ]

    def memory(self, whole, index: int):
        """What there is for a pointer, as elements of its type."""
        return whole[index * SLOT : (index + 1) * SLOT].view(torch_type(self.slots[index][1]))

    def pointer(self, index: int):
        memory = self.memory(self.live, index)
        return memory[MARGIN // memory.itemsize :]

    def _fill(self, memory, name: str, generator) -> None:
        import torch

        count = memory.numel()
        if memory.dtype.is_floating_point:
            scale = (0.1, 0.3, 1.0)[zlib.crc32(name.encode()) % 3]
            memory.copy_(torch.randn(count, device="cuda", generator=generator) * scale)
        elif memory.dtype in (torch.int8, torch.bool):
            least, most = (-8, 9) if memory.dtype == torch.int8 else (0, 2)
            memory.copy_(torch.randint(least, most, (count,), device="cuda", generator=generator, dtype=torch.int8))
        else:
            memory.copy_(integers(name, count, self.trial, generator))

    def _pointed(self, argument: Argument, index: int):
        from triton.tools.tensor_descriptor import TensorDescriptor

        if argument.kind == "pointer":
            return self.pointer(index)
        least = [4] * (len(argument.block) - 2) + [ROW] * min(len(argument.block), 2)
        shape = [max(pair) for pair in zip(least, argument.block)]
        strides = [1]
        for size in reversed(shape[1:]):
            strides.insert(0, strides[0] * size)
        return TensorDescriptor(self.pointer(index), shape, strides, list(argument.block))

    def stock(self, warps: int | None = None) -> Callable[[], object]:
        kernel = stock(self.ttir, warps or warps_of(self.folder))[self.grid]
        return lambda: kernel(*self.values)

    def ours(self) -> Callable[[], object]:
        return ours(self.folder).prepare(*self.values, grid=self.grid)

    def run(self, launch: Callable[[], object]):
        """The memory after a launch; the next one overwrites it."""
        import torch

        self.live.copy_(self.initial)
        launch()
        torch.cuda.synchronize()
        return self.live


def torch_type(element: str):
    import torch

    return getattr(torch, TORCH[element])


# ------------------------------------------------------------------------------------------------- both sides
def stock(ttir: Path, warps: int):
    """What stock Triton makes of TTIR. It takes descriptors as kernels from Python do, each with shape and strides."""
    import triton
    from triton.backends.compiler import GPUTarget

    options = {"num_warps": warps, "num_stages": STAGES}
    compiled = triton.compile(str(ttir), target=GPUTarget("cuda", 90, 32), options=options)
    compiled.src.signature = {
        index: {"pointer": f"*{one.element}", "scalar": one.element}.get(
            one.kind, f"tensordesc<{one.element}{list(one.block)}>"
        )
        for index, one in enumerate(arguments_of(ttir.read_text()))
    }
    return compiled


def ours(folder: Path):
    """The kernel of a folder, by its launch.py."""
    name = "launch_" + re.sub(r"\W", "_", folder.name)
    spec = importlib.util.spec_from_file_location(name, folder / "launch.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load(folder)


def warps_of(folder: Path) -> int:
    return json.loads((folder / "kernel.json").read_text())["num_warps"]


# ------------------------------------------------------------------------------------------------- comparing
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
        for one in compiled:
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


# ------------------------------------------------------------------------------------------------- processes
TASKS = {"compile": compile_both, "compare": compare, "clock": clock}


def serve(pipe, log: str, gpu: bool) -> None:
    """A process that does tasks until one leaves the GPU broken. It sends the stage it is at, then what came of it."""
    with open(log, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if gpu:
        import torch
        import triton

        torch.zeros(1, device="cuda")
        triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    pipe.send("ready")
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            task = pipe.recv()
            try:
                answer = TASKS[task["task"]](task, pipe.send)
            except Exception as error:
                kinds = [kind.__name__ for kind in type(error).__mro__]
                answer = {"error": describe(error), "refused": "Refused" in kinds}
            answer["broken"] = gpu and is_broken()
            pipe.send(answer)
            if answer["broken"]:
                os._exit(1)


def is_broken() -> bool:
    """Whether an error stays with this process. Frees memory, too."""
    import torch

    try:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    except Exception:
        return True
    return False


def describe(error: BaseException) -> str:
    """An error on one line: of CUDA's the first, of compilers' the last."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    return f"{type(error).__name__}: {lines[0] if 'CUDA' in lines[0] else lines[-1]}"[:300]


class Worker:
    """A process for tasks, started anew after one that crashed, hung or broke the GPU."""

    context = multiprocessing.get_context("spawn")

    def __init__(self, folder: str, gpu: bool):
        self.gpu, self.process, self.pipe = gpu, None, None
        self.log = Path(folder) / f"{id(self)}.log"
        self.log.touch()

    def start(self) -> bool:
        self.pipe, other = self.context.Pipe()
        self.process = self.context.Process(target=serve, args=(other, str(self.log), self.gpu), daemon=True)
        self.process.start()
        other.close()
        return self.pipe.poll(START_SECONDS) and self._received() == "ready"

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join(30)
            self.process = None

    def _received(self):
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            return None

    def ask(self, task: dict, seconds: float) -> dict:
        """What came of a task; with `error` and `stage` if nothing did. Ends the run if no process starts."""
        if self.process is None and not self.start():
            self.stop()
            raise SystemExit(f"no process starts: {self.complaint()}")
        with contextlib.suppress(OSError):
            self.pipe.send(task)
        stage, end = "start", time.monotonic() + seconds
        while self.pipe.poll(max(end - time.monotonic(), 0)):
            answer = self._received()
            if isinstance(answer, str):
                stage = answer
                continue
            if answer is None:
                self.process.join(10)
                answer = {"error": f"crashed ({self.process.exitcode}): {self.complaint()}", "broken": True}
            elif "PassManager" in answer.get("error", ""):
                answer["error"] += f": {self.complaint()}"
            if answer.pop("broken", False):
                self.stop()
            return answer | ({"stage": stage} if "error" in answer else {})
        self.stop()
        return {"stage": stage, "error": f"nothing within {seconds} s"}

    def complaint(self) -> str:
        """What the process printed last, an error if there is one."""
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()] or [""]
        return ([line for line in lines if "error" in line.lower()] or lines)[-1][:300]


def each(tasks: list, work: Callable[[Worker, object], dict], jobs: int, gpu: bool) -> Iterator[dict]:
    """What `work` makes of each task by a worker, as it comes."""
    own, workers = threading.local(), []

    def with_worker(task) -> dict:
        if not hasattr(own, "worker"):
            own.worker = Worker(logs, gpu)
            workers.append(own.worker)
        return work(own.worker, task)

    with tempfile.TemporaryDirectory() as logs, ThreadPoolExecutor(jobs) as pool:
        try:
            for done in as_completed([pool.submit(with_worker, task) for task in tasks]):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)
            for worker in workers:
                worker.stop()


# ------------------------------------------------------------------------------------------------- kernels
def compiled(worker: Worker, row: dict) -> dict:
    """A row of a kernel that compiles on both sides; else with its verdict."""
    answer = worker.ask({"task": "compile", **row["task"]}, COMPILE_SECONDS)
    if "error" in answer:
        row |= {"verdict": failure(answer), "note": f"compiling: {answer['error']}"}
    return row


def compared(worker: Worker, row: dict) -> dict:
    """The row with all trials and the verdict."""
    row["trials"] = []
    for trial in TRIALS + FALLBACKS:
        if trial in FALLBACKS and any(one["verdict"] in AGREE + WRONG for one in row["trials"]):
            break
        answer = worker.ask({"task": "compare", "trial": trial, **row["task"]}, TRIAL_SECONDS)
        if "error" in answer:
            answer = {"verdict": failure(answer), "note": answer["error"]}
        row["trials"].append({"trial": trial.name, **answer})
    verdicts = [one["verdict"] for one in row["trials"]]
    row["verdict"] = next(verdict for verdict in VERDICTS if verdict in verdicts)
    row["note"] = "; ".join(map(figures, row["trials"]))
    return row


def failure(answer: dict) -> str:
    """The verdict on an error, by the stage that it came from."""
    if answer.get("refused"):
        return "skipped"
    return {"stock": "stock fails", "ours": "ours fails"}.get(answer["stage"], "skipped")


def timed(worker: Worker, row: dict) -> dict:
    """The row with times: of a wide grid, or of the first trial's where that does not run."""
    trial = TRIALS[0]
    for grid in ((WIDE, *trial.grid[1:]), trial.grid):
        answer = worker.ask({"task": "clock", "trial": trial, "grid": grid, **row["task"]}, TRIAL_SECONDS)
        if "error" not in answer:
            return row | answer
    return row | {"time_error": f"{answer['stage']}: {answer['error']}"}


def figures(trial: dict) -> str:
    """A trial in words."""
    text = f"{trial['trial']}: {trial['verdict']}"
    if trial.get("changed"):
        text += f", {trial['changed']} changed"
        if trial["finite"] < trial["changed"]:
            text += f" ({trial['finite']} finite)"
    if trial.get("differing"):
        text += f", {trial['differing']} differ, {trial['beyond']} beyond tolerance"
        text += f", by {trial['most']:.3g}, relative {trial['relative']:.3g}"
    if trial.get("where"):
        text += f", in {' '.join(trial['where'])}"
    return text + (f", {trial['note']}" if trial["note"] else "")


def rows_of(options: argparse.Namespace) -> list[dict]:
    """A row for each folder; with a verdict where a file is missing."""
    rows = []
    for folder in sorted(options.folder.resolve().iterdir()):
        if not folder.is_dir() or not re.search(options.only, folder.name):
            continue
        ttir = options.ttir.resolve() / f"{folder.name}.ttir"
        task = {"id": folder.name, "folder": folder, "ttir": ttir, "seed": options.seed}
        row = {"id": folder.name, "task": task | {"launchers": not options.compile_only}}
        missing = [path.name for path in (ttir, folder / "launch.py", folder / "kernel.json") if not path.is_file()]
        rows.append(row | ({"verdict": "skipped", "note": f"no {', '.join(missing)}"} if missing else {}))
    return rows


def run(rows: list[dict], options: argparse.Namespace) -> None:
    """Completes the rows, in phases; a kernel's line is printed as soon as its verdict is known."""
    by_id = {row["id"]: row for row in rows}

    def phase(name: str, chosen: list[dict], work: Callable, jobs: int, gpu: bool = True) -> None:
        begin = time.monotonic()
        for row in each(chosen, work, jobs, gpu):
            by_id[row["id"]] = row
            if "ratio" in row:
                print(f"{row['id']}: {row['stock_ms']:.4f} / {row['ours_ms']:.4f} ms = {row['ratio']:.2f}", flush=True)
            elif "time_error" in row:
                print(f"{row['id']}: not timed: {row['time_error']}", flush=True)
            elif "verdict" in row:
                print(f"{row['id']}: {row['verdict']}: {row['note']}", flush=True)
        rows[:] = by_id.values()
        print(f"-- {name}: {len(chosen)} kernels in {time.monotonic() - begin:.0f} s", flush=True)
        write(rows, options.json)

    phase("compiled", [row for row in rows if "verdict" not in row], compiled, options.jobs, gpu=False)
    if options.compile_only:
        return
    phase("compared", [row for row in rows if "verdict" not in row], compared, options.runners)
    if options.time:
        agreed = [row for row in rows if any(t["verdict"] in AGREE for t in row.get("trials", [])[:1])]
        phase("timed", agreed, timed, 1)


def write(rows: list[dict], path: Path | None) -> None:
    if path:
        kept = [{key: value for key, value in row.items() if key != "task"} for row in rows]
        path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def summary(rows: list[dict]) -> str:
    """Kernels by verdict, and ratios of times."""
    counted = collections.Counter(row.get("verdict", "compiled") for row in rows)
    lines = [f"{counted[verdict]:5} {verdict}" for verdict in ("compiled", *VERDICTS) if counted[verdict]]
    if ratios := sorted(row["ratio"] for row in rows if "ratio" in row):
        middle = statistics.median(ratios)
        least, most = ratios[0], ratios[-1]
        lines.append(f"stock / ours: median {middle:.2f}, {least:.2f} to {most:.2f}, {len(ratios)} kernels")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="one sub-folder a kernel, as `twill compile` writes it")
    parser.add_argument("--ttir", type=Path, required=True, metavar="DIR", help="holds ID.ttir of sub-folder ID")
    parser.add_argument("--only", default="", metavar="REGEX", help="kernels whose name contains this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there, after each phase")
    parser.add_argument("--jobs", type=int, default=14, metavar="N", help="processes that compile (default: 14)")
    parser.add_argument("--runners", type=int, default=RUNNERS, metavar="N", help=f"that run (default: {RUNNERS})")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random contents")
    parser.add_argument("--time", action="store_true", help="also take times where both agree")
    parser.add_argument("--compile-only", action="store_true", help="run nothing")
    options = parser.parse_args()
    rows = rows_of(options)
    for row in rows:
        if "verdict" in row:
            print(f"{row['id']}: {row['verdict']}: {row['note']}")
    run(rows, options)
    print(summary(rows))
    return 1 if any(row.get("verdict") in WRONG for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
