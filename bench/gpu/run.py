"""One run of the GPU benchmark: checks, then timing, then cycles, each in workers. No torch."""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from bench.common import RESULTS
from bench.gpu import ncu, report
from bench.gpu.jobs import Job, Sensors, side_by_side
from bench.gpu.kernel_folders import Generated
from bench.gpu.rows import ROWS, Row

AT_ONCE = 12
"""Checks and compiles at a time."""
COMPILE_SECONDS = 120.0
SILENCE_SECONDS = 60.0
"""A worker that says nothing for so long hangs; the longest silence is a compile by FlashAttention."""
ROW_SECONDS = 25.0
"""What a row may take; it is not begun when less is left."""
ATTEMPTS = 4
"""Workers that a row may use up."""


class Run:
    """One run and its answer, which is written whenever something is added to it."""

    def __init__(
        self, options: argparse.Namespace, kernels: list[Generated], rows: list[Row], answer: dict, scratch: Path
    ):
        self.options, self.kernels, self.rows, self.scratch = options, kernels, rows, scratch
        self.deadline = time.time() + options.minutes * 60
        self.environment = dict(os.environ, PYTHONUNBUFFERED="1")
        if options.rehearsal:
            self.environment["TRITON_INTERPRET"] = "1"
        self.sensors = Sensors()
        self.excluded: list[list[str]] = []
        """Row and contender, of which one more try would only lose another worker."""
        self.answer = answer
        self.unpacking = self.start_unpacking()

    def everything(self) -> None:
        right = self.kernels if self.options.no_checks else self.check()
        self.finish_unpacking()
        self.time(right)
        if self.options.cycles is not None:
            self.cycles(right)
        self.answer["minutes"] = (time.time() - self.deadline) / 60 + self.options.minutes
        self.save()

    def task(self, name: str, **more: object) -> dict:
        hand_written = self.options.hand_written and str(self.options.hand_written.resolve())
        device = "cpu" if self.options.rehearsal else "cuda"
        flash = self.options.flash_attention is not None or report.importable("flash_attn.cute")
        return dict(task=name, device=device, seed=self.options.seed, hand_written=hand_written, flash=flash, **more)

    # ------------------------------------------------------------------------------------------------ FlashAttention
    def start_unpacking(self) -> subprocess.Popen | None:
        """Unpack the archive while the kernels are checked."""
        given = self.options.flash_attention
        if given is None or given.is_dir():
            return None
        self.scratch.joinpath("site").mkdir()
        code = "import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2], filter='data')"
        return subprocess.Popen([sys.executable, "-c", code, str(given), str(self.scratch / "site")])

    def finish_unpacking(self) -> None:
        """Put FlashAttention on the path of the workers to come."""
        given = self.options.flash_attention
        if given is None:
            return
        if self.unpacking and self.unpacking.wait() != 0:
            self.note(f"{given} could not be unpacked; FlashAttention is left out")
            self.options.flash_attention = None
            return
        site = given.resolve() if given.is_dir() else self.scratch / "site"
        before = [self.environment["PYTHONPATH"]] if self.environment.get("PYTHONPATH") else []
        self.environment["PYTHONPATH"] = os.pathsep.join(
            [str(site), str(site / "nvidia_cutlass_dsl" / "dsl_packages"), *before]
        )

    # ------------------------------------------------------------------------------------------------ correctness
    def check(self) -> list[Generated]:
        """Check every kernel, and compile stock Triton's kernels meanwhile; returns those that are right."""
        checks = [self.task("check", kernels=[str(kernel.folder)]) for kernel in self.kernels]
        ahead = [] if self.options.rehearsal else self.compiles()
        tell(f"checking {len(checks)} kernels, compiling {len(ahead)} groups of peers")
        tasks = [(task, COMPILE_SECONDS) for task in ahead] + [(task, self.options.check_seconds) for task in checks]
        found = side_by_side(tasks, self.environment, min(AT_ONCE, os.cpu_count() or 1), self.deadline)
        right = []
        for kernel, events in zip(self.kernels, found[len(ahead) :]):
            result = report.checked(kernel, events)
            self.answer["checks"].append(result)
            tell(f"{'right' if result['passed'] else 'WRONG':6} {kernel.name} {result['reason']}")
            if result["passed"]:
                right.append(kernel)
        self.save()
        return right

    def compiles(self) -> list[dict]:
        """Tasks that compile peers' kernels into Triton's cache, one for each kernel: sizes do not matter to it."""
        kinds: dict[tuple, Row] = {}
        for row in self.rows:
            kinds.setdefault((row.example, row.shape.get("head_dim"), row.shape.get("causal")), row)
        tasks = [self.task("stock", rows=[row.name], kernels=self.folders(self.kernels)) for row in kinds.values()]
        if self.options.hand_written:
            by_hand = [row for row in kinds.values() if row.example in ("attention_forward", "gemm_tma")]
            tasks += [self.task("hand_written", rows=[row.name]) for row in by_hand]
        return tasks

    def folders(self, kernels: list[Generated]) -> list[str]:
        return [str(kernel.folder) for kernel in kernels]

    # ------------------------------------------------------------------------------------------------ speed
    def time(self, kernels: list[Generated]) -> None:
        """Rows in one worker, as long as it lives; what ends it is left out of the next one's."""
        left, attempts = [row.name for row in self.rows], {}
        while left:
            attempts[left[0]] = attempts.get(left[0], 0) + 1
            if attempts[left[0]] > ATTEMPTS:
                self.note(f"{left.pop(0)}: given up after {ATTEMPTS} workers")
                continue
            task = self.task(
                "time",
                rows=left,
                kernels=self.folders(kernels),
                excluded=self.excluded,
                deadline=self.deadline,
                row_seconds=ROW_SECONDS,
                rounds=self.options.rounds,
            )
            job = Job(task, self.environment)
            row, contender, started, alive = left[0], None, time.time(), False
            for event in job.events(SILENCE_SECONDS, self.deadline + 20):
                match event["event"]:
                    case "versions":
                        alive = True
                        self.answer["versions"] = event["versions"]
                    case "row":
                        row, contender, started = event["row"], None, time.time()
                    case "trying":
                        contender = event["contender"]
                    case "dropped":
                        self.note(f"{event['row']}: {event['contender']} left out: {event['reason']}")
                        self.excluded.append([event["row"], event["contender"]])
                    case "broken":
                        self.exclude_everywhere(contender)
                    case "note":
                        self.note(f"{event['row']}: {event['text']}")
                    case "measured":
                        self.measured(event, time.time() - started, started)
                        left.remove(event["row"])
                    case "late":
                        self.note(f"{event['row']}: left out, no time was left for it")
                        left.remove(event["row"])
                    case "hung" | "ended" if not alive:
                        self.note(f"nothing can be timed: {event['reason']}")
                        left = []
                    case "hung" | "ended" if left and time.time() > self.deadline:
                        self.note(f"left out, no time was left for them: {', '.join(left)}")
                        left = []
                    case "hung" | "ended" if left:
                        self.lost(row, contender, event)
                        if contender is None:
                            left.remove(row)

    def lost(self, row: str, contender: str | None, event: dict) -> None:
        """A worker is gone while it had rows left."""
        reason = event.get("reason") or f"the worker ended with exit code {event.get('code')}"
        if contender is None:
            self.note(f"{row}: given up: {reason}")
        elif [row, contender] not in self.excluded:
            self.note(f"{row}: {contender} left out, and of the rows after it: {reason}")
            self.exclude_everywhere(contender)

    def exclude_everywhere(self, contender: str) -> None:
        """What faults or hangs once would cost a worker in every row."""
        self.excluded += [[row.name, contender] for row in self.rows]

    def measured(self, event: dict, seconds: float, started: float) -> None:
        row = next(row for row in ROWS if row.name == event["row"])
        run = {key: self.answer[key] for key in ("date", "revision", "rounds")}
        result = report.row_result(row, event, seconds, self.sensors.since(started), run)
        self.answer["rows"].append(result)
        best = result["ours"] or "no kernel of ours"
        ratios = ", ".join(f"{ratio:.3f} × {peer}" for peer, ratio in result["ratios"].items())
        tell(f"{row.name}: {best}: {ratios} ({seconds:.0f} s)")
        self.save()

    # ------------------------------------------------------------------------------------------------ cycles
    def cycles(self, kernels: list[Generated]) -> None:
        """Cycles of each row's chosen contenders by ncu."""
        metrics = ncu.metrics()
        if not metrics:
            self.note("no cycles: ncu is missing or knows none of the counters")
            return
        for result in self.answer["rows"]:
            for one in ncu.chosen(result, self.options.cycles):
                if time.time() + 30 > self.deadline:
                    self.note(f"{result['row']}: cycles of {one['name']} left out, no time was left for them")
                    continue
                task = self.task("once", rows=[result["row"]], kernels=self.folders(kernels), contender=one["name"])
                output = Job(task, self.environment, ncu.command(metrics)).output(
                    min(90, self.deadline - time.time())
                )
                one["cycles"] = ncu.read(output)
                tell(f"{result['row']}: {one['name']}: {one['cycles']}")
                self.save()

    def note(self, text: str) -> None:
        self.answer["notes"].append(text)
        tell(f"note: {text}")

    def save(self) -> None:
        folder = self.options.output or (RESULTS if self.options.keep else None)
        if folder:
            report.save(self.answer, folder, keep=self.options.output is None)


def tell(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
