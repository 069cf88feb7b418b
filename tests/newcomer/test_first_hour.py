"""The commands of a first hour, and the expected output: in the words of the command line, as a person types them.

Each case is a line of a shell in an empty folder that holds the examples, with what its output must and must not have. TWILL_COMMAND names the command under test, as for tests/hostile.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "hostile"))

from command import twill  # noqa: E402

HARD = "--warp-assignment free attention_forward_causal_d64.ttir"
"""A search that goes on for minutes."""


@dataclass(frozen=True)
class Case:
    """A line, its exit code, and what it prints on both streams together."""

    line: str
    code: int = 0
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = field(default=("panicked",))


CASES = [
    # A first look.
    Case("twill", 1, ("Usage: twill", "schedule", "compile")),
    Case("twill --help", 0, ("Find the optimal schedule",)),
    Case("twill --version", 0, ("twill 0.",)),
    Case("twill schedule --help-all", 0, ("--machine", "Kernel and machine:", "Search:", "Output:")),
    Case("twill compile -h", 0, ("TTIR of a kernel",), ("built-in graph",)),
    Case("twill schedul x", 1, ("similar subcommand", "'schedule'")),
    Case("twill schedule", 1, ("<INPUT>",)),
    # A first schedule.
    Case("twill schedule attention_forward.ttir", 0, ("I = 2048 cycles (optimal in the model of h200: proved)",
         "An iteration simulated: ", "SASS estimate", "Searched: each sub-tile on one warp group", "No other assignment"), ("Warning",)),
    Case("twill schedule attention_forward_d64_m64.ttir", 0, ("I = 985 cycles", "For any assignment I >= ",
         "--warp-assignment free", "Warning: an iteration is simulated at 1.66 times its interval")),
    Case("twill schedule attention_forward_d64_m64.ttir --warp-assignment free", 0, ("I = 659 cycles", "any assignment")),
    Case("twill compile attention_forward_d64_m64.ttir -o out --no-assemble", 0, ("I = 985 cycles", "in the model of h200")),
    Case("twill explain attention_forward_d64_m64.ttir", 0, ("I = 985 cycles", "any assignment to warp groups")),
    Case("twill fit attention_forward_d64_m64.ttir", 0, ("fits", "I >= 985")),
    Case("twill schedule attention_forward.ttir --machine H100", 0, ("in the model of h100",)),
    Case("twill schedule attention_forward.ttir --machine hopper", 1, ("no machine `hopper`", "h200")),
    Case("twill schedule gemm", 0, ("I = 512 cycles", "any assignment of operations")),
    Case("twill graphs", 0, ("attention-forward-hopper",)),
    Case("twill machine list", 0, ("h200", "the default", "for kernels on an H100 take h200")),
    Case("twill machine diff h200 H200", 0, ("agree in every value",)),
    Case("twill machine diff h100 h200", 0, ("values differ", "chip.memory_gb"), ("+0.0 %",)),
    # Files.
    Case("twill schedule missing.ttir", 1, ("cannot read missing.ttir",)),
    Case("twill schedule nothing", 1, ("neither a file nor a built-in graph", "gemm")),
    Case("cp gemm_tma.ttir k.mlir; twill schedule k.mlir", 0, ("I = 512 cycles",)),
    Case("cp gemm_tma.ttir k.txt; twill fit k.txt", 0, ("fits",)),
    Case("cat gemm_tma.ttir | twill schedule -", 0, ("gemm_tma on h200", "I = 512 cycles")),
    Case("twill lower gemm_tma.ttir --format graph | twill schedule - -q", 0, ("I = 512 cycles", "each sub-tile on one")),
    Case("echo hello > k.ttir; twill schedule k.ttir", 1, ("k.ttir:1:1", "expected an operation, found `hello`")),
    Case("twill fit gemm", 1, ("it is a loop graph",)),
    Case("twill compile gemm -o out", 1, ("it is a loop graph",)),
    Case("twill schedule gemm_tma.ttir -o s.svg; head -c 4 s.svg", 0, ("<svg",)),
    Case("twill schedule gemm_tma.ttir -o s.json; twill check s.json", 0, ("optimal",)),
    Case("twill schedule gemm_tma.ttir -o s.html -q; head -c 15 s.html", 0, ("<!doctype html>",)),
    Case("twill schedule gemm_tma.ttir -o s.dot; head -c 7 s.dot", 0, ("digraph",)),
    Case("twill schedule gemm_tma.ttir -o t.pftrace; test -s t.pftrace", 0),
    Case("twill report gemm_tma.ttir -q -o r.html; head -c 15 r.html", 0, ("<!doctype html>",)),
    Case("twill report gemm_tma.ttir -q -o r.svg; head -c 4 r.svg", 0, ("<svg",)),
    # Problems that do not fit, take too long, or are stopped.
    Case("twill fit attention_backward_m128.ttir", 3, ("unknown", "registers a thread")),
    Case("twill schedule attention_backward_m128.ttir", 3, ("no schedule exists for the machine's warp groups: proved", "one compute group of 8 warps")),
    Case("twill schedule attention_backward_m128.ttir --compute-groups 3", 2, ("No schedule that keeps each sub-tile on one warp group exists", "For any assignment I >= 5120")),
    Case(f"twill schedule {HARD} --time-limit 1", 3, ("feasible: at least ", "stopped by --time-limit of 1 s", "none goes on")),
    Case("twill gaus gemm", 0, ("resources = 2 (optimal: proved)",)),
    Case("twill schedule attention_forward.ttir --time-limit soon", 1, ("must be a number",)),
    Case("twill cache info", 0, ("cache",)),
    Case("twill schedule gemm_tma.ttir --format pseudocode", 0, ("# steady state",)),
]


class FirstHour(unittest.TestCase):
    """One test for each case, and those that need more than a line."""

    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name)
        for kernel in (ROOT / "examples").glob("*.ttir"):
            shutil.copy(kernel, self.folder)
        shown = self.folder / "bin"
        shown.mkdir()
        (shown / "twill").symlink_to(Path(twill()).resolve())
        self.environment = {**os.environ, "PATH": f"{shown}:{os.environ['PATH']}", "TWILL_CACHE": "off", "NO_COLOR": "1"}

    def run_line(self, line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
            check=False,
        )

    def test_cases(self) -> None:
        self.assertGreaterEqual(len(CASES), 40)
        for case in CASES:
            with self.subTest(case.line):
                done = self.run_line(case.line)
                # Where a line breaks depends on the width.
                said = " ".join(done.stdout.split())
                self.assertEqual(done.returncode, case.code, done.stdout)
                for part in case.has:
                    self.assertIn(" ".join(part.split()), said)
                for part in (*case.lacks, "panicked"):
                    self.assertNotIn(part, said)
                for line in done.stdout.splitlines() if case.code == 0 and "head -c" not in case.line else []:
                    self.assertLessEqual(len(line), 100, "the default width")

    def interrupted(self, sign: int) -> tuple[int, str, str]:
        """Exit code, output and errors of a long search that gets a signal after some seconds."""
        words = [str(Path(twill()).resolve()), "schedule", *HARD.split(), "--time-limit", "none"]
        pipe = subprocess.PIPE
        started = subprocess.Popen(words, cwd=self.folder, env=self.environment, stdout=pipe, stderr=pipe, text=True)
        time.sleep(6)
        started.send_signal(sign)
        out, errors = started.communicate(timeout=60)
        return started.returncode, out, errors

    def test_a_search_that_is_stopped_keeps_the_best_known_and_its_bound(self) -> None:
        for sign in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(sign=sign):
                code, out, errors = self.interrupted(sign)
                self.assertEqual(code, 3, errors)
                self.assertRegex(out, r"Sum of weight times I = [\d,]+ cycles \(feasible: at least [\d,]+ is proved")
                self.assertIn("interrupted: what is known by now is shown, with its bound", errors)
                # Progress comes in lines where there is no terminal, with its clock.
                self.assertTrue(re.search(r"^ *\d+\.\d s  trying", errors, re.MULTILINE), errors)

    def test_every_example_ends_by_default_on_every_machine(self) -> None:
        """The time limit is the command's own. All kernels on the default machine, some on the others."""
        machines = ("h200", "h100", "a100", "b200")
        kernels = sorted(path.name for path in self.folder.glob("*.ttir"))
        self.assertGreater(len(kernels), 15)
        looked_at = {case.line for case in CASES}
        for number, kernel in enumerate(kernels):
            for machine in machines if number % 4 == 0 else machines[:1]:
                if machine == "h200" and f"twill schedule {kernel}" in looked_at:
                    continue
                with self.subTest(kernel=kernel, machine=machine):
                    done = self.run_line(f"twill schedule {kernel} -m {machine} -q")
                    self.assertIn(done.returncode, (0, 1, 2, 3), done.stdout)
                    self.assertTrue(done.returncode != 1 or "error: " in done.stdout, done.stdout)


if __name__ == "__main__":
    unittest.main()
