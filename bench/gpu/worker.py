"""What touches the GPU, in a process of its own: a kernel that hangs or faults ends nothing else. Started by jobs.py.

    python -m bench.gpu.worker '{"task": "check", …}'

The task comes as JSON; what happens goes to stdout as lines of JSON after MARK, each with an "event".
"""

import gc
import json
import math
import os
import sys
import time
from importlib import metadata
from pathlib import Path

import torch

from bench.gpu import kernel_folders, timing
from bench.gpu.contenders import Contender, Launch, by_hand, contenders, generated, only_cudnn, stock, stock_options
from bench.gpu.jobs import MARK
from bench.gpu.problems import LIMITS, Problem, problem, relative_error
from bench.gpu.rows import FLASH, HAND, NAIVE, ROWS, STOCK, Row, check_shapes, small

FAULT = 3
"""Exit code after a fault that leaves the GPU's context unusable."""
REPEATS = 3
"""Runs of each check: a race does not show every time."""
OURS = ("generated", "part", NAIVE, STOCK, HAND)
"""Kinds whose errors must pass; a library's are only shown."""


def say(event: str, **data: object) -> None:
    print(MARK + json.dumps({"event": event, **data}), flush=True)


class Worker:
    def __init__(self, task: dict):
        self.task = task
        self.device, self.seed = task["device"], task["seed"]
        self.rehearsal = self.device == "cpu"
        self.clock = timing.HostClock() if self.rehearsal else timing.GpuClock()
        self.kernels = [kernel_folders.read(Path(folder)) for folder in task.get("kernels", [])]
        self.excluded = {tuple(one) for one in task.get("excluded", [])}
        if not self.rehearsal:
            only_cudnn()

    # --------------------------------------------------------------------------------------------- correctness
    def check(self) -> None:
        """One generated kernel at many small sizes."""
        kernel = kernel_folders.exact(self.kernels[0])
        shapes = check_shapes(kernel.example, kernel.constants, kernel.whole, kernel.least)
        for shape in shapes[:2] if self.rehearsal else shapes:
            say("case", shape=shape)
            given = problem(kernel.example, shape, self.seed, self.device)
            reference = given.reference()
            started = time.perf_counter()
            try:
                launch = generated(kernel, given, whole=False)
                tries = [self.errors(launch, reference) for _ in range(REPEATS)]
            except Exception as error:
                say("failed", shape=shape, reason=describe(error))
                self.leave_if_broken()
                continue
            seconds = time.perf_counter() - started
            errors = {name: worst(one[name] for one, _ in tries) for name in reference}
            overrun = sorted({name for _, names in tries for name in names})
            passed = not overrun and not over_limit(errors)
            peers = self.peer_errors(kernel.example, given, reference)
            say("checked", shape=shape, errors=errors, overrun=overrun, passed=passed, seconds=seconds, peers=peers)
        say("done", info=self.info(kernel))

    def info(self, kernel: kernel_folders.Generated) -> dict:
        """What the loaded kernel says of itself: registers and spills are known once it is compiled."""
        try:
            info = dict(kernel_folders.load(kernel).info)
        except Exception as error:
            return {"info": describe(error)}
        plain = lambda value: (
            isinstance(value, int | float | str) or (isinstance(value, list) and all(map(plain, value)))
        )
        return {key: value for key, value in info.items() if plain(value)}

    def errors(self, launch: Launch, reference: dict) -> tuple[dict, list]:
        launch.poison()
        launch.run()
        self.clock.finish()
        results = launch.results()
        return {
            name: relative_error(results[name], reference[name]) for name in reference if name in results
        }, launch.overrun()

    def peer_errors(self, example: str, given: Problem, reference: dict) -> dict:
        """Errors of the libraries on the same inputs; FlashAttention, which compiles long, is compared at the rows."""
        if self.rehearsal:
            return {}
        row = Row("", example, given.shape)
        found = {}
        for contender in contenders(row, [], None):
            if contender.kind != FLASH:
                try:
                    found[contender.name] = self.errors(contender.prepare(given), reference)[0]
                except Exception as error:
                    found[contender.name] = describe(error)
        return found

    # --------------------------------------------------------------------------------------------- compiling ahead
    def hand_written(self) -> None:
        """Compile the hand-written kernels of a row, for the same reason as stock Triton's."""
        [row] = self.rows()
        shape = row.shape | (dict(batch=1, heads=2, length=1024) if "length" in row.shape else {})
        given = problem(row.example, shape, self.seed, self.device)
        for contender in by_hand(row, Path(self.task["hand_written"])):
            say("case", shape=contender.name)
            try:
                contender.prepare(given).run()
                self.clock.finish()
            except Exception as error:
                say("failed", shape=contender.name, reason=describe(error))
                self.leave_if_broken()
        say("done")

    def stock(self) -> None:
        """Compile what stock Triton may choose from, so that the timing finds it in the cache."""
        [row] = self.rows()
        for name, (constants, options) in self.stock_options(row).items():
            say("case", shape=name)
            shape = check_shapes(row.example, constants)[1]
            given = problem(row.example, shape, self.seed, self.device)
            try:
                stock(row, given, constants, options).run()
                self.clock.finish()
            except Exception as error:
                say("failed", shape=name, reason=describe(error))
                self.leave_if_broken()
        say("done")

    def stock_options(self, row: Row) -> dict:
        options = stock_options(row, self.kernels)
        return dict(list(options.items())[:2]) if self.rehearsal else options

    # --------------------------------------------------------------------------------------------- speed
    def rows(self) -> list[Row]:
        chosen = [row for name in self.task["rows"] for row in ROWS if row.name == name]
        return [small(row) for row in chosen] if self.rehearsal else chosen

    def contenders(self, row: Row) -> list[Contender]:
        hand_written = self.task.get("hand_written")
        found = contenders(
            row, self.kernels, Path(hand_written) if hand_written else None, libraries=not self.rehearsal
        )
        return [one for one in found if one.kind != FLASH or self.task.get("flash")]

    def time(self) -> None:
        say("versions", versions=versions())
        for row in self.rows():
            started = time.time()
            if started + self.task["row_seconds"] > self.task["deadline"]:
                say("late", row=row.name)
                continue
            say("row", row=row.name)
            self.time_row(row)
            gc.collect()
            if not self.rehearsal:
                torch.cuda.empty_cache()
        say("done")

    def time_row(self, row: Row) -> None:
        given = problem(row.example, row.shape, self.seed, self.device)
        reference = given.reference()
        runs, about = {}, {}
        for one in self.contenders(row):
            if launch := self.attempt(row, one, given, reference, about):
                runs[one.name] = launch.run
        runs |= self.best_stock(row, given, reference, about)
        settings = dict(rounds=timing.REHEARSED, block_ms=1, bursts=1) if self.rehearsal else dict(rounds=self.task["rounds"])
        turn_of = lambda name: say("trying", row=row.name, contender=name)
        times = timing.measure(runs, self.clock, turn_of=turn_of, **settings)
        say(
            "measured",
            row=row.name,
            size=row.size(),
            flops=row.flops(),
            results=[about[name] | times[name].summary() for name in runs],
        )

    def attempt(self, row: Row, one: Contender, given: Problem, reference: dict, about: dict) -> Launch | None:
        """A contender that is there and right; else says why not."""
        if (row.name, one.name) in self.excluded:
            return None
        say("trying", row=row.name, contender=one.name)
        try:
            launch = one.prepare(given)
            errors, overrun = self.errors(launch, reference)
        except Exception as error:
            say("dropped", row=row.name, contender=one.name, reason=describe(error))
            self.leave_if_broken()
            return None
        about[one.name] = {"name": one.name, "kind": one.kind, "errors": errors}
        if one.kind in OURS and (overrun or over_limit(errors)):
            reason = f"wrong: {errors}" + (f", writes after the end of {', '.join(overrun)}" if overrun else "")
            say("dropped", row=row.name, contender=one.name, reason=reason)
            return None
        return launch

    def best_stock(self, row: Row, given: Problem, reference: dict, about: dict) -> dict:
        """The fastest of stock Triton's options that is right."""
        candidates, launches, failed = {}, {}, []
        for name, (constants, options) in self.stock_options(row).items():
            if (row.name, name) in self.excluded:
                continue
            say("trying", row=row.name, contender=name)
            try:
                launches[name] = stock(row, given, constants, options)
                launches[name].run()
                self.clock.finish()
                candidates[name] = launches[name].run
            except Exception as error:
                failed.append(f"{name}: {describe(error)}")
                self.leave_if_broken()
        if failed:
            say("note", row=row.name, text=f"{len(failed)} of stock Triton's options do not run, such as {failed[0]}")
        for name in timing.quickest(candidates, self.clock) if candidates else []:
            if self.attempt(row, Contender(name, STOCK, lambda _, n=name: launches[n]), given, reference, about):
                return {name: candidates[name]}
        return {}

    # --------------------------------------------------------------------------------------------- cycles
    def once(self) -> None:
        """One launch of a contender between the profiler's marks."""
        [row] = self.rows()
        given = problem(row.example, row.shape, self.seed, self.device)
        name = self.task["contender"]
        if name in (options := self.stock_options(row)):
            launch = stock(row, given, *options[name])
        else:
            [launch] = [one.prepare(given) for one in self.contenders(row) if one.name == name]
        for _ in range(3):
            launch.run()
        self.clock.finish()
        torch.cuda.cudart().cudaProfilerStart()
        launch.run()
        self.clock.finish()
        torch.cuda.cudart().cudaProfilerStop()

    def leave_if_broken(self) -> None:
        """After a fault nothing runs in this process any more."""
        try:
            self.clock.finish()
        except Exception as error:
            say("broken", reason=describe(error))
            sys.stdout.flush()
            os._exit(FAULT)


def worst(errors) -> float:
    """The largest, where NaN is larger than any."""
    return max(errors, key=lambda error: math.inf if math.isnan(error) else error)


def over_limit(errors: dict) -> bool:
    return not all(error <= LIMITS[name] for name, error in errors.items())


def describe(error: Exception) -> str:
    """The error on one line; compilers name the place first and the cause last."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: " + (text if len(text) < 400 else f"{text[:150]} … {text[-250:]}")


def versions() -> dict:
    found = {"torch": torch.__version__, "cuDNN": torch.backends.cudnn.version() if torch.cuda.is_available() else None}
    for package in ("triton", "flash-attn-4", "nvidia-cutlass-dsl", "nvidia-cublas"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    if torch.cuda.is_available():
        found["multiprocessors"] = torch.cuda.get_device_properties(0).multi_processor_count
    return found


def main() -> None:
    task = json.loads(sys.argv[1])
    worker = Worker(task)
    tasks = {
        "check": worker.check,
        "stock": worker.stock,
        "hand_written": worker.hand_written,
        "time": worker.time,
        "once": worker.once,
    }
    tasks[task["task"]]()


if __name__ == "__main__":
    main()
