"""Applications on a stand-in for a GPU while everything around Twill goes wrong: are their results stock Triton's?

    python tests/python/activation_kills.py [--rounds 10] [--processes 200] [--only WORD]

Each row runs an application without Twill and with it, and compares exit code, stderr and what every launch was given. It takes
some minutes; test_activation_processes.py has what takes seconds. `--memory` measures what 1,000 specialisations take.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from applications import PROGRAM, run


class Table:
    """Rows as they come."""

    def __init__(self):
        self.wrong = 0
        print("| what happens | runs | results | launches by Twill | as stock Triton's | |\n|---|---|---|---|---|---|")

    def row(self, what, stock, runs, said=""):
        """stock: an application without Twill; runs: those with it."""
        wrong = [one for one in runs if one != stock]
        self.wrong += len(wrong)
        results, twill = sum(len(one.lines) for one in runs), sum(one.twill for one in runs)
        verdict = "all" if not wrong else f"NOT {len(wrong)}"
        print(f"| {what} | {len(runs)} | {results} | {twill} | {verdict} | {said} |", flush=True)
        for one in wrong[:1]:
            print(f"{one}\ninstead of {stock}", file=sys.stderr)


@contextmanager
def small_disk(kilobytes):
    """A file system of its own, if this user may make one."""
    with tempfile.TemporaryDirectory() as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder]
        made = subprocess.run(mount, capture_output=True).returncode == 0
        try:
            yield Path(folder) if made else None
        finally:
            if made:
                subprocess.run(["umount", "--lazy", folder], check=True)


def warm():
    """A cache in which a kernel is, and a record that it is faster."""
    folder = tempfile.mkdtemp(prefix="warm-")
    run("plain", 60, TWILL="wait", TWILL_CACHE=folder)
    return folder


def kills(table, rounds, seed):
    """The processes in the background are killed by SIGKILL at random moments."""
    stock = run("patient", 60, 0)
    runs = []
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            runs.append(run("killing", 60, 25, seed + number, TWILL="1", TWILL_JOBS=2, TWILL_CACHE=cache))
            # What a kill leaves is no obstacle to the next.
            runs.append(run("patient", 60, 0, TWILL="wait", TWILL_CACHE=cache))
    killed = sum(line.get("kills", 0) for one in runs for line in one.lines)
    table.row("background processes are killed", stock, runs, f"{killed} kills; every second run after them")


def ends(table, rounds, seed):
    """The application itself is killed, and begun again on the same cache."""
    chance, killed, runs = random.Random(seed), 0, []
    stock = run("plain", 40)
    with tempfile.TemporaryDirectory() as cache:
        environment = {one: value for one, value in os.environ.items() if not one.startswith("TWILL")}
        for _ in range(rounds):
            process = subprocess.Popen(
                [sys.executable, str(PROGRAM), "patient", "400", "20"],
                env={**environment, "TWILL": "1", "TWILL_CACHE": cache}, stdout=subprocess.DEVNULL,
            )  # fmt: skip
            time.sleep(chance.uniform(1, 15))
            process.kill()
            killed += process.wait() == -signal.SIGKILL
            runs.append(run("plain", 40, TWILL="1", TWILL_CACHE=cache))
    table.row("the application is killed, and begun again", stock, runs, f"{killed} kills")


def folders(table, rounds, seed):
    """Caches that cannot be written, or not to the end."""
    stock, cache = run("patient", 40, 0), warm()
    with tempfile.NamedTemporaryFile() as file:
        runs = [run("patient", 40, 0, TWILL=mode, TWILL_CACHE=f"{file.name}/cache") for mode in ("1", "wait", "frozen")]
    table.row("the cache's folder cannot be made", stock, runs)
    table.row("the cache is below /proc", stock, [run("patient", 40, 0, TWILL="wait", TWILL_CACHE="/proc/twill")])
    limited = run("without_space", 40)
    with tempfile.TemporaryDirectory() as folder:
        runs = [run("without_space", 40, TWILL="wait", TWILL_CACHE=folder), run("without_space", 40, TWILL="1", TWILL_CACHE=cache)]
    table.row("files may have 4 KiB (RLIMIT_FSIZE)", limited, runs, "an empty cache, and one with the kernel")
    for kilobytes in (64, 256, 1024):
        with small_disk(kilobytes) as disk:
            if disk is None:
                print("| a disk is full | 0 | | | not run: this user mounts nothing | |")
                break
            runs = [run("patient", 40, 0, TWILL="wait", TWILL_CACHE=disk / "cache", TMPDIR=disk) for _ in range(2)]
            table.row(f"a disk of {kilobytes} KiB has cache and scratch", stock, runs)


def processes(table, rounds, seed):
    """Forks, threads, processes of multiprocessing."""
    cache = warm()
    for what, name, *words in (
        ("a fork after launches", "forking", 20),
        ("a fork while a kernel is loaded", "forking_while_loading", 20),
        ("the end while a kernel is loaded", "ending_while_loading", 5),
        ("eight threads", "threads", 40),
        ("children of multiprocessing by fork", "processes", "fork", 20),
        ("by spawn", "processes", "spawn", 20),
        ("by forkserver", "processes", "forkserver", 20),
    ):
        stock = run(name, *words)
        runs = [run(name, *words, TWILL="1", TWILL_CACHE=cache) for _ in range(rounds)]
        if "loading" not in name:
            with tempfile.TemporaryDirectory() as empty:
                runs.append(run(name, *words, TWILL="1", TWILL_CACHE=empty))
        table.row(what, stock, runs)


def crowd(table, count):
    """Many processes at once on one cache."""
    stock = run("crowd", count, 40)
    with tempfile.TemporaryDirectory() as empty:
        runs = [
            run("crowd", count, 40, STAND_IN_MODE=mode, TWILL_CACHE=cache)
            for mode, cache in (("1", warm()), ("1", empty), ("frozen", empty))
        ]
        left = [one for one in Path(empty).rglob(".*") if one.is_file()]
    table.row(f"{count} processes at once", stock, runs, f"a cache with the kernel, an empty one, that; {len(left)} half-written files")


def tuning(table):
    """The first call of an autotuned function with 30 configurations."""
    said = []
    stock = run("tuning", 30, TRITON_CACHE_DIR=tempfile.mkdtemp())
    runs = [run("tuning", 30, TWILL="1", TWILL_CACHE=tempfile.mkdtemp(), TRITON_CACHE_DIR=tempfile.mkdtemp())]
    for who, one in (("stock Triton", stock), ("Twill", runs[0])):
        (line,) = one.lines
        said.append(f"{who}: {line['compiled']} compiled, {line['made']} made, {line['seconds']} s")
    table.row("the first call with 30 configurations", stock, runs, "; ".join(said))


def memory(count):
    """What specialisations take."""
    cache = warm()
    print("| specialisations | grids of each | | KiB of memory each | KiB of a disk each | modules of Python |\n|---|---|---|---|---|---|")
    for number, grids, what, variables in (
        (count, 1, "stock Triton", {}),
        (count, 1, "left to stock Triton", {"TWILL": "frozen", "TWILL_SKIP": "."}),
        (count, 1, "with a kernel", {"TWILL": "1"}),
        (16, 1, "with a kernel", {"TWILL": "1"}),
        (16, 201, "with a kernel", {"TWILL": "1"}),
    ):
        with tempfile.TemporaryDirectory() as scratch:
            ended = run("specialisations", number, grids, TWILL_CACHE=cache, TMPDIR=scratch, timeout=3600, **variables)
        assert ended.code == 0, ended
        (line,) = ended.lines
        each = f"{line['KiB'] / number:.1f} | {line['disk KiB'] / number:.1f} | {line['modules']}"
        print(f"| {number} | {grids} | {what} | {each} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="kills of each kind, and runs of each row (default: 10)")
    parser.add_argument("--processes", type=int, default=200, help="processes at once (default: 200)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="kills, ends, folders, processes, crowd or tuning")
    parser.add_argument("--memory", type=int, metavar="COUNT", help="only what so many specialisations take")
    chosen = parser.parse_args()
    if chosen.memory:
        memory(chosen.memory)
        return 0
    table = Table()
    for row in (kills, ends, folders, processes):
        if chosen.only in row.__name__:
            row(table, chosen.rounds, chosen.seed)
    if chosen.only in "crowd":
        crowd(table, chosen.processes)
    if chosen.only in "tuning":
        tuning(table)
    return 1 if table.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
