#!/usr/bin/env python3
"""Speed of generated kernels on one Hopper GPU, beside cuDNN, FlashAttention CuTe, cuBLAS, stock Triton and hand-written kernels.

    twill compile examples/gemm_tma.ttir --output kernels/gemm_tma      # and so on, one folder a kernel
    python bench/gpu.py --kernels kernels --flash-attention flash_cute.tar.xz --keep

Every kernel is checked against float64 first, in a process of its own; one that is wrong, faults or hangs is reported and not
timed. Then all contenders of a row are timed in turn. Needs torch, triton 3.6.0 and nvidia-smi; --cycles needs ncu.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gpu_cycles
import gpu_kernels
import gpu_report
from gpu_jobs import Job, Sensors, side_by_side, stop_all
from gpu_kernels import Generated, Unreadable
from gpu_rows import HAND, ROWS, Row

ROOT = Path(__file__).resolve().parent.parent
AT_ONCE = 12
"""Checks and compiles at a time."""
COMPILE_SECONDS = 120.0
SILENCE_SECONDS = 60.0
"""A worker that says nothing for so long hangs; the longest silence is a compile by FlashAttention."""
ROW_SECONDS = 25.0
"""What a row may take; it is not begun when less is left."""
ATTEMPTS = 4
"""Workers that a row may use up."""


def main() -> int:
    options = arguments()
    try:
        kernels = gpu_kernels.find(options.kernels)
    except Unreadable as error:
        sys.exit(f"gpu.py: {error}")
    rows, notes = choose(options, kernels)
    if options.rows:
        kernels = [kernel for kernel in kernels if any(kernel.serves(row) for row in rows)]
    if options.list:
        return listing(rows, kernels, notes)
    with tempfile.TemporaryDirectory(prefix="gpu-bench-") as scratch:
        run = Run(options, kernels, rows, notes, Path(scratch))
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        try:
            run.everything()
        finally:
            stop_all()
            run.sensors.stop()
    print(gpu_report.markdown(run.answer))
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="rows whose name contains this; default: all that a kernel serves (--list)")
    parser.add_argument("--kernels", type=Path, action="append", default=[], metavar="DIR",
                        help="folder with one folder for each kernel, as `twill compile` writes it; may be given again")
    parser.add_argument("--flash-attention", type=Path, metavar="ARCHIVE",
                        help="FlashAttention CuTe and what it needs: a packed archive or its unpacked folder")
    parser.add_argument("--hand-written", type=Path, metavar="DIR", help="folder of hand-written kernels with their bench_h200.py")
    parser.add_argument("--minutes", type=float, default=7.5, help="rows that do not fit into this are left out (default: 7.5)")
    parser.add_argument("--check-seconds", type=float, default=60.0, metavar="S", help="longest check of one kernel (default: 60)")
    parser.add_argument("--no-checks", action="store_true", help="leave out the checks at small sizes; each row still checks its own")
    parser.add_argument("--cycles", nargs="?", const="", metavar="PART",
                        help="also count cycles by ncu, for contenders whose `row/name` contains this")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 2**31, help="of the random inputs (default: new ones)")
    parser.add_argument("--revision", help="what was built, if not the checkout's HEAD")
    parser.add_argument("--list", action="store_true", help="show the rows and the kernels that serve them, and stop")
    parser.add_argument("--rehearsal", action="store_true",
                        help="try this script without a GPU: small sizes on the CPU through Triton's interpreter; times mean nothing")
    parser.add_argument("--keep", action="store_true", help="write bench/results/<date>-gpu.json and .md")
    parser.add_argument("--output", type=Path, metavar="DIR", help="write them here instead")
    options = parser.parse_args()
    if options.minutes <= 0 or options.check_seconds <= 0:
        parser.error("--minutes and --check-seconds must be positive")
    for path in (options.flash_attention, options.hand_written):
        if path and not path.exists():
            parser.error(f"{path} does not exist")
    if options.hand_written and not (options.hand_written / "bench_h200.py").is_file():
        parser.error(f"{options.hand_written} has no bench_h200.py, by which hand-written kernels are called")
    if unknown := [part for part in options.rows if not any(part in row.name for row in ROWS)]:
        parser.error(f"no row's name contains {', '.join(unknown)}; there are {', '.join(row.name for row in ROWS)}")
    return options


def choose(options: argparse.Namespace, kernels: list[Generated]) -> tuple[list[Row], list[str]]:
    """The rows asked for, most telling first; without names, those that a kernel serves, or all where there are no kernels."""
    notes = [
        f"{kernel.name} ({kernel.example}, {tiles(kernel)}) serves no row; it is checked only"
        for kernel in kernels if not any(kernel.serves(row) for row in ROWS)
    ]  # fmt: skip
    if options.rows:
        return [row for row in ROWS if any(part in row.name for part in options.rows)], []
    if not kernels:
        return ROWS, notes
    served = [row for row in ROWS if any(kernel.serves(row) for kernel in kernels)]
    notes += [f"{row.name}: no kernel serves it" for row in ROWS if row not in served]
    return served, notes


def tiles(kernel: Generated) -> str:
    return ", ".join(f"{key} {value}" for key, value in kernel.constants.items())


def listing(rows: list[Row], kernels: list[Generated], notes: list[str]) -> int:
    for row in rows:
        print(f"{row.name:24} {row.size():60} {', '.join(kernel.name for kernel in kernels if kernel.serves(row)) or '-'}")
    for note in notes:
        print(f"note: {note}")
    return 0


class Run:
    """One run and its answer, which is written whenever something is added to it."""

    def __init__(self, options: argparse.Namespace, kernels: list[Generated], rows: list[Row], notes: list[str], scratch: Path):
        self.options, self.kernels, self.rows, self.scratch = options, kernels, rows, scratch
        self.deadline = time.time() + options.minutes * 60
        self.environment = dict(os.environ, PYTHONUNBUFFERED="1")
        if options.rehearsal:
            self.environment["TRITON_INTERPRET"] = "1"
        self.sensors = Sensors()
        self.excluded: list[list[str]] = []
        """Row and contender, of which one more try would only lose another worker."""
        self.answer = gpu_report.begin(options, kernels, rows, notes, revision(options))
        self.unpacking = self.start_unpacking()

    def everything(self) -> None:
        if self.options.no_checks:
            right = self.kernels
        else:
            right = self.check()
        self.finish_unpacking()
        self.time(right)
        if self.options.cycles is not None:
            self.cycles(right)
        self.answer["minutes"] = (time.time() - self.deadline) / 60 + self.options.minutes
        self.save()

    def task(self, name: str, **more: object) -> dict:
        hand_written = self.options.hand_written and str(self.options.hand_written.resolve())
        device = "cpu" if self.options.rehearsal else "cuda"
        flash = self.options.flash_attention is not None or gpu_report.importable("flash_attn.cute")
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
        self.environment["PYTHONPATH"] = os.pathsep.join([str(site), str(site / "nvidia_cutlass_dsl" / "dsl_packages"), *before])

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
            result = gpu_report.checked(kernel, events)
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
            by_hand = [row for row in kinds.values() if any(target.peer == HAND for target in row.targets)]
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
            task = self.task("time", rows=left, kernels=self.folders(kernels), excluded=self.excluded,
                             deadline=self.deadline, row_seconds=ROW_SECONDS)  # fmt: skip
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
        result = gpu_report.row_result(row, event, seconds, self.sensors.since(started))
        self.answer["rows"].append(result)
        best = result["ours"] or "no kernel of ours"
        ratios = ", ".join(f"{ratio:.3f} × {peer}" for peer, ratio in result["ratios"].items())
        tell(f"{row.name}: {best}: {ratios} ({seconds:.0f} s)")
        self.save()

    # ------------------------------------------------------------------------------------------------ cycles
    def cycles(self, kernels: list[Generated]) -> None:
        """Cycles of each row's chosen contenders by ncu."""
        metrics = gpu_cycles.metrics()
        if not metrics:
            self.note("no cycles: ncu is missing or knows none of the counters")
            return
        for result in self.answer["rows"]:
            for one in gpu_cycles.chosen(result, self.options.cycles):
                if time.time() + 30 > self.deadline:
                    self.note(f"{result['row']}: cycles of {one['name']} left out, no time was left for them")
                    continue
                task = self.task("once", rows=[result["row"]], kernels=self.folders(kernels), contender=one["name"])
                output = Job(task, self.environment, gpu_cycles.command(metrics)).output(min(90, self.deadline - time.time()))
                one["cycles"] = gpu_cycles.read(output)
                tell(f"{result['row']}: {one['name']}: {one['cycles']}")
                self.save()

    def note(self, text: str) -> None:
        self.answer["notes"].append(text)
        tell(f"note: {text}")

    def save(self) -> None:
        folder = self.options.output or (ROOT / "bench" / "results" if self.options.keep else None)
        if folder:
            gpu_report.save(self.answer, folder)


def revision(options: argparse.Namespace) -> str | None:
    """The commit of the checkout, where there is one."""
    if options.revision:
        return options.revision
    try:
        git = lambda *command: subprocess.run(["git", "-C", str(ROOT), *command], capture_output=True, text=True, check=True).stdout.strip()
        return git("rev-parse", "--short", "HEAD") + (" with changes" if git("status", "--porcelain", "--", "crates", "examples") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def tell(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
