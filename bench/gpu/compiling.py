"""The examples' kernels as `twill compile` makes them by its defaults, several at a time. No torch."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.common import ROOT
from bench.gpu.kernel_folders import EXAMPLES

TOO_LARGE = ("_m256", "backward_m128")
"""Tiles of which a Hopper GPU has no room for the results: they are there for Blackwell, or to be scheduled."""


def sources(examples: set[str]) -> list[Path]:
    """The TTIR of these examples, in every tile that it is printed in."""
    of = lambda path: next((example for example in EXAMPLES if path.stem.startswith(example)), None)
    found = sorted((ROOT / "examples").glob("*.ttir"))
    return [path for path in found if of(path) in examples and not path.stem.endswith(TOO_LARGE)]


def compile_all(twill: str, examples: set[str], folder: Path) -> list[str]:
    """Writes a folder for each kernel; returns a note for each that there is none of."""
    environment = dict(os.environ, TWILL_CACHE="off")

    def one(source: Path) -> str | None:
        started = time.time()
        command = [twill, "compile", str(source), "--quiet", "--python", sys.executable, "--output", str(folder / source.stem)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        said = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        print(f"{source.stem}: {said or f'{time.time() - started:.1f} s'}", file=sys.stderr, flush=True)
        return said and f"{source.stem}: twill compile exits with {done.returncode}: {said}"

    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
        return [note for note in pool.map(one, sources(examples)) if note]
