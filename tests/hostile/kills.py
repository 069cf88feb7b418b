"""Ends the command by force at any moment, again and again, and looks at what it leaves: the cache is readable, and no file is
half-written.

    python tests/hostile/kills.py --count 200 --json docs/reports/trust/kills.json
"""

import argparse
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from command import ROOT, run, twill
from figures import Table, record

KERNELS = ["gemm_tma", "gemm_pointers", "swiglu"]
OUTPUTS = ["json", "svg", "dot"]


class Broken(Exception):
    """A kill left something that it should not."""


def words(kernel: str, folder: Path, out: str) -> list[str]:
    """A command that fills the cache and writes a file, or a folder."""
    source = str(ROOT / f"examples/{kernel}.ttir")
    if out == "folder":
        return [
            "compile",
            source,
            "--machine",
            "h200",
            "-o",
            str(folder / f"{kernel}-kernel"),
            "--no-assemble",
            "--quiet",
        ]
    return ["schedule", source, "--machine", "h200", "--format", out, "-o", str(folder / f"{kernel}.{out}"), "--quiet"]


def how_long(arguments: list[str], cache: Path) -> float:
    """Seconds that it takes, from an empty cache."""
    begun = time.monotonic()
    run(*arguments, TWILL_CACHE=str(cache))
    return time.monotonic() - begun


def kill(arguments: list[str], cache: Path, after: float) -> bool:
    """Starts the command, and ends it by SIGKILL N seconds later; true if it was still running."""
    environment = {**os.environ, "TWILL_CACHE": str(cache)}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([twill(), *arguments], env=environment, cwd=ROOT, **quiet)
    time.sleep(after)
    process.kill()
    return process.wait() == -signal.SIGKILL


def check_files(folder: Path) -> int:
    """Files that appeared, each of them whole."""
    found = 0
    for path in folder.iterdir():
        if ".partial" in path.name or ".old" in path.name:
            continue
        found += 1
        if path.is_dir():
            json.loads((path / "kernel.json").read_text())
            json.loads((path / "schedule.json").read_text())
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif not path.read_text().rstrip().endswith(("</svg>", "}")):
            raise Broken(f"{path.name} is cut off")
    return found


def check_cache(cache: Path, kernel: str, expected: str) -> None:
    """That the cache can be asked, and that what it gives is what a search finds."""
    if run("cache", "info", TWILL_CACHE=str(cache)).returncode != 0:
        raise Broken("twill cache info fails")
    source = ROOT / f"examples/{kernel}.ttir"
    done = run("schedule", source, "--machine", "h200", "--format", "json", "--quiet", TWILL_CACHE=str(cache))
    if done.returncode != 0 or answer(done.stdout) != expected:
        raise Broken(f"{kernel}: another answer than without a cache")


def answer(text: bytes) -> str:
    """A schedule without the times that finding it took."""
    schedule = json.loads(text)
    for one in schedule if isinstance(schedule, list) else [schedule]:
        one.pop("seconds", None)
    return json.dumps(schedule, sort_keys=True)


def main(count: int, seed: int) -> dict:
    """Kills N times; returns the figures."""
    chance = random.Random(seed)
    expected, seconds, killed, whole = {}, {}, 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        cache, folder = Path(scratch) / "cache", Path(scratch) / "out"
        folder.mkdir()
        for kernel in KERNELS:
            source = ROOT / f"examples/{kernel}.ttir"
            found = run("schedule", source, "--machine", "h200", "--format", "json", "--quiet")
            expected[kernel] = answer(found.stdout)
            for out in (*OUTPUTS, "folder"):
                own = Path(scratch) / "timing"
                seconds[kernel, out] = how_long(words(kernel, Path(scratch), out), own / kernel / out)
        for number in range(count):
            kernel, out = chance.choice(KERNELS), chance.choice((*OUTPUTS, "folder"))
            if number % 4 == 0:
                # Entries that were kept end the search; without them there is more to be interrupted.
                run("cache", "clear", TWILL_CACHE=str(cache))
            killed += kill(words(kernel, folder, out), cache, chance.uniform(0, 1.1 * seconds[kernel, out]))
            whole += check_files(folder)
            check_cache(cache, kernel, expected[kernel])
    return {
        "kills": count,
        "while it ran": killed,
        "files seen, all whole": whole,
        "unreadable caches": 0,
        "half-written files": 0,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="where the figures go")
    given = parser.parse_args()
    figures = main(given.count, given.seed)
    text = [
        "`twill schedule` and `twill compile` are ended by SIGKILL at a random moment, with a cache that is filled, or was just"
        " cleared. Afterwards the cache has to be readable and give the answers of a search by itself, and every file and folder"
        " that has its name has to be whole."
    ]
    record(
        "Killed at any moment",
        41,
        text,
        [Table(["what", "how often"], [list(row) for row in figures.items()])],
        given.json,
    )
