"""The same answers on any number of threads, and for processes that share a cache."""

import base64
import json
import os
import re
import subprocess
import tempfile
import threading
import unittest
import zlib
from pathlib import Path

from command import ROOT, run, twill
from graphs import flow

PROCESSES = 8
THREADS = (1, 2, 8) if os.environ.get("TWILL_LONG") else (1, 8)
TIMES = re.compile(r"\n(Time|Seconds)\n(?:  .*\n)*")


def timeless(value: object) -> object:
    """JSON without the times that finding it took."""
    if isinstance(value, dict):
        return {
            key: timeless(one) for key, one in value.items() if key not in ("seconds", "phases", "trace", "timings")
        }
    return [timeless(one) for one in value] if isinstance(value, list) else value


def settled(name: str, content: bytes) -> object:
    """The part of an answer that must be the same each time."""
    text = content.decode(errors="surrogateescape")
    if name.endswith(".html"):
        packed = re.search(r'(?<= id="data">)[^<]*', text)[0]
        data = json.loads(zlib.decompress(base64.b64decode(packed)))
        strings, page = data["strings"], data["page"]
        named = lambda v: (  # noqa: E731
            {k: named(x) for k, x in v.items()} if isinstance(v, dict)
            else [named(x) for x in v] if isinstance(v, list)
            else strings[int(v)] if isinstance(v, str) else v
        )  # fmt: skip
        return {key: value for key, value in timeless(named(page)).items() if key != "text"}
    if name.endswith(".json"):
        return timeless(json.loads(text))
    return TIMES.sub("\n", text) if name.endswith(".txt") else content


class Threads(unittest.TestCase):
    """One thread and eight; two with TWILL_LONG."""

    OUTPUTS = {
        "schedule.json": ["schedule", "K", "--format", "json"],
        "schedule.txt": ["schedule", "K", "--color", "never"],
        "program.txt": ["schedule", "K", "--format", "pseudocode"],
        "picture.svg": ["schedule", "K", "--format", "svg"],
        "graph.svg": ["schedule", "K", "--format", "graph-svg"],
        "graph.dot": ["schedule", "K", "--format", "dot"],
        "trace.pftrace": ["schedule", "K", "--format", "perfetto"],
        "report.html": ["report", "K", "--no-explain"],
        "explanation.json": ["explain", "K", "--format", "json", "--what-if", "none"],
        "question.smt2": ["schedule", "K", "--emit", "smtlib2", "--normalise", "60"],
        "flow.json": [
            "gaus",
            "F",
            "--format",
            "json",
            "--rounds",
            "1",
            "--polish-sweeps",
            "1",
            "--windows",
            "0",
            "--known",
            "none",
        ],
    }
    FOLDERS = {
        "proof": ["schedule", "K", "--format", "json", "--certificate", "DIR"],
        "gluon": ["compile", "K", "--no-assemble", "-o", "DIR"],
        "cuda": ["compile", "K", "--no-assemble", "--emit", "cuda", "-o", "DIR"],
    }

    def test_every_output_is_the_same(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            # Sums are made in parallel from 2048 operations on.
            (folder / "flow.json").write_text(flow(2500))
            words = {"K": ROOT / "examples/gemm_tma.ttir", "F": folder / "flow.json"}
            found: dict[int, dict[str, object]] = {}
            for threads in THREADS:
                found[threads] = self.outputs(folder, words, threads)
            self.assertEqual(
                len(found[1]), len(self.OUTPUTS) + sum(n.startswith(("proof", "gluon", "cuda")) for n in found[1])
            )
            for threads in THREADS[1:]:
                self.assertEqual(found[1].keys(), found[threads].keys())
                for name in found[1]:
                    self.assertEqual(found[1][name], found[threads][name], f"{name} on {threads} threads")

    def outputs(self, folder: Path, words: dict[str, Path], threads: int) -> dict[str, object]:
        """All outputs, by their names."""
        found = {}
        for name, command in self.OUTPUTS.items():
            # The same path each time: it is in some of the outputs.
            out = folder / f"out-{name}"
            given = [words.get(word, word) for word in command]
            done = run(*given, "-o", out, "--quiet", RAYON_NUM_THREADS=str(threads))
            self.assertEqual(done.returncode, 0, done.stderr)
            found[name] = settled(name, out.read_bytes())
        for name, command in self.FOLDERS.items():
            out = folder / name
            given = [out if word == "DIR" else words.get(word, word) for word in command]
            done = run(*given, "--quiet", RAYON_NUM_THREADS=str(threads))
            self.assertEqual(done.returncode, 0, done.stderr)
            for path in sorted(out.iterdir()):
                found[f"{name}/{path.name}"] = settled(path.name, path.read_bytes())
                path.unlink()
            out.rmdir()
        return found


class Processes(unittest.TestCase):
    def test_processes_that_share_a_cache_agree(self):
        kernels = ["gemm_tma", "gemm_pointers"]
        question = ["--machine", "h200", "--format", "json", "--quiet"]
        source = {kernel: ROOT / f"examples/{kernel}.ttir" for kernel in kernels}
        expected = {
            kernel: timeless(json.loads(run("schedule", source[kernel], *question).stdout)) for kernel in kernels
        }
        with tempfile.TemporaryDirectory() as cache:
            faults: list[str] = []

            def work(number: int) -> None:
                environment = {**os.environ, "TWILL_CACHE": cache}
                for round_ in range(4):
                    kernel = kernels[(number + round_) % len(kernels)]
                    words = [twill(), "schedule", str(source[kernel]), *question]
                    done = subprocess.run(words, env=environment, capture_output=True, cwd=ROOT, check=False)
                    if done.returncode or timeless(json.loads(done.stdout)) != expected[kernel]:
                        faults.append(f"{kernel}: {done.returncode}: {done.stderr.decode()}")
                    if number == 0:
                        run("cache", "clear", TWILL_CACHE=cache)

            threads = [threading.Thread(target=work, args=(number,)) for number in range(PROCESSES)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(faults, [])
            info = run("cache", "info", TWILL_CACHE=cache)
            self.assertEqual(info.returncode, 0)


if __name__ == "__main__":
    unittest.main()
