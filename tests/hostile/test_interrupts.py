"""Ctrl-C prints the best known and leaves no half-written file; a second one ends the command; and SIGKILL leaves the cache
readable (kills.py, of which this is a short run)."""

import json
import os
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import kills
from command import ROOT, twill
from graphs import loop

ENDED = {-signal.SIGINT, 0, 1, 2, 3, 130}
"""Before the handler is there, by itself, or by the signal."""


class Interrupts(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.graph = self.folder / "loop.json"
        self.graph.write_text(loop(120))

    def start(self, *arguments: object) -> subprocess.Popen:
        environment = {**os.environ, "TWILL_CACHE": "off"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([twill(), *map(str, arguments)], env=environment, cwd=ROOT, **pipes)

    def left(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()} - {"loop.json"}

    def test_a_reader_that_has_seen_enough_is_no_failure(self):
        kernel, out = ROOT / "examples/gemm_tma.ttir", self.folder / "kernel"
        for words in (
            ["coverage", ROOT / "examples/fixtures/no_loop.ttir", ROOT / "examples/fixtures/pointers/exchanged.ttir"],
            ["coverage", kernel, "--format", "markdown"],
            ["compile", kernel, "--no-assemble", "--quiet", "-o", out, "--print-after", "epilogue"],
            ["compile", kernel, "--no-assemble", "-o", out],
            ["schedule", kernel],
        ):
            reader, writer = os.pipe()
            os.close(reader)
            environment = {**os.environ, "TWILL_CACHE": "off"}
            words = [twill(), *map(str, words)]
            done = subprocess.run(words, env=environment, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
            os.close(writer)
            self.assertEqual((done.returncode, b"panicked" in done.stderr), (0, False), done.stderr)

    def test_the_best_known_is_written_whole(self):
        for wait in (0.3, 0.6, 1.2):
            out = self.folder / "out.json"
            out.unlink(missing_ok=True)
            process = self.start("schedule", self.graph, "--format", "json", "-o", out)
            time.sleep(wait)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
            self.assertIn(process.returncode, ENDED, said)
            self.assertLessEqual(self.left(), {"out.json"})
            if process.returncode == 3:
                found = json.loads(out.read_text())
                self.assertIn(found["status"], ("feasible", "unknown"))
                self.assertGreaterEqual(found["lower_bound"]["interval"], 1)
                if found["status"] == "unknown":
                    self.assertEqual(found["stopped_by"], "interrupt")

    def test_a_kernel_appears_whole_or_not_at_all(self):
        kernel = ROOT / "examples/attention_forward.ttir"
        for wait in (0.05, 0.2, 0.4):
            for times in (1, 2):
                out = self.folder / "kernel"
                process = self.start("compile", kernel, "--machine", "h200", "-o", out, "--no-assemble")
                time.sleep(wait)
                for _ in range(times):
                    process.send_signal(signal.SIGINT)
                    time.sleep(0.02)
                _, said = process.communicate(timeout=120)
                self.assertIn(process.returncode, ENDED, said)
                if process.returncode == -signal.SIGINT:
                    # The handler was not there yet, and neither was anything to remove.
                    self.assertEqual(self.left(), set())
                self.assertLessEqual(self.left(), {"kernel"})
                if out.exists():
                    json.loads((out / "kernel.json").read_text())
                    for path in out.iterdir():
                        path.unlink()
                    out.rmdir()

    def test_kills(self):
        self.assertEqual(kills.main(8, seed=2)["kills"], 8)


if __name__ == "__main__":
    unittest.main()
