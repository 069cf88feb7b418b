"""Applications while everything around Twill goes wrong: are their results stock Triton's?

    python tests/python/activation_kills.py [--rounds 10] [--processes 200] [--only WORD]    # on a stand-in for a GPU
    python tests/python/activation_kills.py --gpu [--rounds 2] [--processes 24] [--only WORD]  # on a GPU, with torch

Each row runs an application without Twill and with it, and compares exit code, stderr and what every launch was given; on a GPU,
what every launch left in memory. It takes some minutes; test_activation_processes.py has what takes seconds. `--memory` measures
what 1,000 specialisations take.

On a GPU, rows are run at once, as many applications at a time as `--at-once` says, and `gpu_rows.py` has more of them. The
processes of `crowd` have a CUDA context each, some 0.6 GB of the GPU's memory and 0.5 GB of the machine's: so many that both
suffice is for the caller to say.
"""

import argparse
import atexit
import functools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import gpu_rows
from applications import GPU_PROGRAM, limits, run, start, together

CORES = os.cpu_count() or 1
ON_STAND_IN = SimpleNamespace(
    rounds=10, processes=200, at_once=1, seconds=None, each=600, few=40, some=60, hold=(25, 20), tuned=30, disks=(128, 256, 1024)
)  # fmt: skip
ON_GPU = SimpleNamespace(
    rounds=2, processes=24, at_once=max(2, CORES * 5 // 8), seconds=540, each=100,
    few=240, some=240, hold=(15, 20), tuned=6, disks=(64, 256, 1024),
)  # fmt: skip
"""Defaults, and sizes: seconds for an application, launches of one, seconds for which kernels are made, configurations of an
autotuned function, KiB of disks. The stand-in has files of its own on those."""


class Table:
    """Rows as they come, of several threads."""

    def __init__(self):
        self.wrong, self._lock = 0, threading.Lock()
        print("| what happens | runs | results | launches by Twill | as stock Triton's | |\n|---|---|---|---|---|---|", flush=True)

    def row(self, what, stock, runs, said=""):
        """stock: an application without Twill; runs: those with it."""
        late = sum(one.is_late for one in [stock, *runs])
        if late:
            self.no_row(what, f"{late} of {1 + len(runs)} runs were not begun: the time for all is over", wrong=1)
            return
        wrong = [one for one in runs if one != stock]
        results, twill = sum(len(one.lines) for one in runs), sum(one.twill for one in runs)
        others = sum(line.get("tuned", 0) for one in runs for line in one.lines)
        notes = [said, others and f"{others} launches by other stages and warps", _checked(runs), _stock(stock)]
        verdict = "all" if not wrong else f"NOT {len(wrong)}"
        with self._lock:
            self.wrong += len(wrong) + (stock.code != 0)
            print(f"| {what} | {len(runs)} | {results} | {twill} | {verdict} | {'; '.join(filter(None, notes))} |", flush=True)
            for one in wrong[:1]:
                print(f"{what}: {one}\ninstead of {stock}", file=sys.stderr, flush=True)
            status = {said for one in runs for said in one.of("status")}
            if status and not twill:
                print(f"{what}: no launch by Twill: {'; '.join(sorted(status))}", file=sys.stderr, flush=True)

    def no_row(self, what, why, wrong=0):
        """A row that there is not."""
        with self._lock:
            self.wrong += wrong
            print(f"| {what} | 0 | | | {'NOT RUN' if wrong else ''} | {why} |", flush=True)


def _checked(runs):
    """What `TWILL=check` found, in short."""
    said = [one for run in runs for one in run.of("checked")]
    others = [one for one in said if not one.endswith("no difference")]
    return said and f"{len(said)} comparisons, {len(others)} with something to say{': ' + others[0] if others else ''}"


def _stock(stock):
    """What is wrong without Twill, too."""
    wrong = [] if stock.code == 0 else [f"stock Triton's: {'no end' if stock.code is None else f'exit code {stock.code}'}"]
    return "; ".join(wrong + stock.of("wrong")[:1])


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


@functools.cache
def _warm(count):
    folder = tempfile.mkdtemp(prefix="warm-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    left = run("plain", count, TWILL="wait", TWILL_CACHE=folder)
    if left.code != 0 or left.twill == 0:
        print(f"no kernel of Twill was launched: {left} {left.of('status')}", file=sys.stderr, flush=True)
    return folder


def warm(asked):
    """A cache in which a kernel is, and a record that it is faster."""
    with _warming:
        return _warm(asked.some)


_warming = threading.Lock()


def kills(table, asked):
    """The processes in the background are killed by SIGKILL at random moments."""
    count, (seconds, _) = asked.some, asked.hold
    stock = run("patient", count, 0)

    def kill(number):
        with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as compiled:
            own = {"TWILL_CACHE": cache, "TRITON_CACHE_DIR": compiled}
            killed = run("killing", count, seconds, asked.seed + number, TWILL="1", TWILL_JOBS=2, **own)
            # What a kill leaves is no obstacle to the next.
            return [killed, run("patient", count, 0, TWILL="wait", **own)]

    runs = sum(together(*(functools.partial(kill, number) for number in range(asked.rounds))), [])
    killed = sum(line.get("kills", 0) for one in runs for line in one.lines)
    table.row("background processes are killed", stock, runs, f"{killed} kills; every second run after them")


def ends(table, asked):
    """The application itself is killed, and begun again on the same cache."""
    chance, killed, runs = random.Random(asked.seed), 0, []
    stock = run("plain", asked.few)
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(asked.rounds):
            with limits["at once"]:
                variables = {"TWILL": "1", "TWILL_CACHE": cache}
                process = start("patient", 400, asked.hold[1], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **variables)
                time.sleep(chance.uniform(1, 15))
                process.kill()
                killed += process.wait() == -signal.SIGKILL
            runs.append(run("plain", asked.few, TWILL="1", TWILL_CACHE=cache))
    table.row("the application is killed, and begun again", stock, runs, f"{killed} kills")


def folders(table, asked):
    """Caches that cannot be written, or not to the end."""
    count = asked.few
    stock, cache = run("patient", count, 0), warm(asked)

    def patient(**variables):
        return functools.partial(run, "patient", count, 0, **variables)

    with tempfile.NamedTemporaryFile() as file:
        runs = together(*(patient(TWILL=mode, TWILL_CACHE=f"{file.name}/cache") for mode in ("1", "wait", "frozen")))
    table.row("the cache's folder cannot be made", stock, runs)
    table.row("the cache is below /proc", stock, [patient(TWILL="wait", TWILL_CACHE="/proc/twill")()])
    limited = run("without_space", count)
    with tempfile.TemporaryDirectory() as folder:
        runs = together(
            functools.partial(run, "without_space", count, TWILL="wait", TWILL_CACHE=folder),
            functools.partial(run, "without_space", count, TWILL="1", TWILL_CACHE=cache),
        )
    table.row("files may have 4 KiB (RLIMIT_FSIZE)", limited, runs, "an empty cache, and one with the kernel")
    for kilobytes in asked.disks:
        with small_disk(kilobytes) as disk:
            if disk is None:
                table.no_row("a disk is full", "not run: this user mounts nothing")
                break
            runs = [patient(TWILL="wait", TWILL_CACHE=disk / "cache", TMPDIR=disk)() for _ in range(2)]
            table.row(f"a disk of {kilobytes} KiB has cache and scratch", stock, runs)


def processes(table, asked):
    """Forks, threads, processes of multiprocessing."""
    cache, count = warm(asked), asked.few // 2

    def row(what, name, *words):
        stock = run(name, *words)
        runs = [functools.partial(run, name, *words, TWILL="1", TWILL_CACHE=cache)] * asked.rounds
        with tempfile.TemporaryDirectory() as empty:
            if "loading" not in name:
                runs.append(functools.partial(run, name, *words, TWILL="1", TWILL_CACHE=empty))
            table.row(what, stock, together(*runs))

    together(
        *(
            functools.partial(attempt, table, what, functools.partial(row, what, name, *words))
            for what, name, *words in (
                ("a fork after launches", "forking", count),
                ("a fork while a kernel is loaded", "forking_while_loading", count),
                ("the end while a kernel is loaded", "ending_while_loading", 5),
                ("eight threads", "threads", 40),
                ("children of multiprocessing by fork", "processes", "fork", count),
                ("by spawn", "processes", "spawn", count),
                ("by forkserver", "processes", "forkserver", count),
            )
        )
    )


def crowd(table, asked):
    """Many processes at once on one cache."""
    count, launches = asked.processes, asked.few
    if limits["gpu"]:
        seconds = 20 + count
        named = {"program": GPU_PROGRAM, "timeout": 2 * seconds + 30}
        words = ("crowd", count, launches, 8, seconds)
    else:
        words, named = ("crowd", count, launches), {}
    stock = run(*words, **named)
    with tempfile.TemporaryDirectory() as empty:
        runs = [
            run(*words, STAND_IN_MODE=mode, TWILL_CACHE=cache, **named)
            for mode, cache in (("1", warm(asked)), ("1", empty), ("frozen", empty))
        ]
        left = [one for one in Path(empty).rglob(".*") if one.is_file()]
    table.row(
        f"{count} processes at once", stock, runs, f"a cache with the kernel, an empty one, that; {len(left)} half-written files"
    )


def tuning(table, asked):
    """The first call of an autotuned function with many configurations."""

    def tune(**variables):
        with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as compiled:
            return run("tuning", asked.tuned, TWILL_CACHE=cache, TRITON_CACHE_DIR=compiled, **variables)

    stock, twill = together(tune, functools.partial(tune, TWILL="1"))
    said = [
        f"{who}: {line['compiled']} compiled, {line['made']} made, {line['seconds']} s"
        for who, one in (("stock Triton", stock), ("Twill", twill))
        for line in one.lines
    ]
    table.row(f"the first call with {asked.tuned} configurations", stock, [twill], "; ".join(said))


def memory(asked):
    """What specialisations take."""
    count, cache = asked.memory, warm(asked)
    print(
        "| specialisations | grids of each | | KiB of memory each | KiB of a disk each | modules of Python |\n|---|---|---|---|---|---|"
    )
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


def attempt(table, what, row):
    """Has a row run; one that fails does not end the others."""
    try:
        row()
    except Exception as error:
        traceback.print_exc()
        table.no_row(what, f"{type(error).__name__}: {error}", wrong=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true", help="on a GPU, with torch, instead of a stand-in")
    parser.add_argument("--rounds", type=int, help="kills of each kind, and runs of each row (default: 10, on a GPU 2)")
    parser.add_argument("--processes", type=int, help="processes at once (default: 200, on a GPU 24)")
    parser.add_argument("--seed", type=int, default=1)
    rows = {one.__name__: one for one in (kills, ends, folders, processes, tuning)}
    of_gpus = {name: functools.partial(gpu_rows.row, name) for name in gpu_rows.ROWS}
    parser.add_argument("--only", default="", metavar="WORD", help=f"{', '.join(rows)} or crowd; on a GPU {', '.join(of_gpus)} too")
    parser.add_argument("--at-once", type=int, help="applications at a time (default: 1, on a GPU five for eight cores)")
    parser.add_argument("--seconds", type=float, help="after which nothing is begun, and all is ended (default: on a GPU 540)")
    parser.add_argument("--memory", type=int, metavar="COUNT", help="only what so many specialisations take, on the stand-in")
    chosen = parser.parse_args()
    if chosen.gpu and chosen.memory:
        parser.error("--memory is measured on the stand-in")
    defaults = ON_GPU if chosen.gpu else ON_STAND_IN
    asked = SimpleNamespace(**{**vars(defaults), **{name: value for name, value in vars(chosen).items() if value is not None}})
    limits.update({"gpu": asked.gpu, "seconds": asked.each, "at once": threading.Semaphore(asked.at_once)})
    limits["together"] = asked.at_once > 1
    if asked.seconds:
        limits["end"] = time.monotonic() + asked.seconds
    if chosen.memory:
        memory(asked)
        return 0
    table = Table()
    if asked.gpu:
        # Triton's cache is filled, and torch is read from the disk, before many do so at once.
        warm(asked)
    rows |= of_gpus if asked.gpu else {}
    calls = [
        functools.partial(attempt, table, name, functools.partial(row, table, asked))
        for name, row in rows.items()
        if asked.only in name
    ]
    together(*calls)
    # It fills the machine.
    if asked.only in "crowd":
        attempt(table, "crowd", functools.partial(crowd, table, asked))
    return 1 if table.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
