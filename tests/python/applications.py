"""Runs applications with Twill and without, and compares what they leave."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM, GPU_PROGRAM = HERE / "stand_in.py", HERE / "gpu_applications.py"
SECONDS = 600
"""After which an application is ended."""
LATE = "it was not begun: the time for all is over"

limits = {"gpu": False, "seconds": SECONDS, "end": float("inf"), "at once": threading.Semaphore(1), "together": False}
"""Of all that is run from here: on a GPU or on the stand-in, for how long, until when, how many at a time."""


class Ended:
    """What an application left. code: None where it was ended, as it took too long."""

    def __init__(self, code, out, error):
        self.code, self.error = code, error
        self.lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        self.memory = sorted(json.dumps(line["memory"]) for line in self.lines)
        self.twill = sum(line["twill"] for line in self.lines)

    @property
    def is_late(self):
        """Whether it was not begun."""
        return self.error == LATE

    def of(self, name):
        """What its processes say under a name, one after the other."""
        return [one for line in self.lines for one in line.get(name, ())]

    def __eq__(self, other):
        return (self.code, self.memory, without_numbers(self.error)) == (other.code, other.memory, without_numbers(other.error))

    def __repr__(self):
        wrong = "".join(f"\n{one}" for one in self.of("wrong"))
        how = "ended, as it took too long" if self.code is None else f"exit code {self.code}"
        return f"{how}, {len(self.memory)} results, {self.twill} launches by Twill{wrong}\n{self.error[-4000:]}"


def without_numbers(text):
    """Text without processes' numbers, addresses and times."""
    return re.sub(r"0x[0-9a-f]+|\d+", "#", text)


def run(name, *words, program=PROGRAM, timeout=None, **variables):
    """Runs an application with these variables, and no others of Twill. It is ended after `timeout` seconds."""
    with limits["at once"]:
        left = limits["end"] - time.monotonic()
        if left < 1:
            return Ended(None, "", LATE)
        process = start(name, *words, program=program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **variables)
        try:
            out, error = process.communicate(timeout=min(left, timeout or limits["seconds"]))
        except subprocess.TimeoutExpired:
            end(process)
            out, error = process.communicate()
            return Ended(None, "", error)
    return Ended(process.returncode, out, error)


def start(name, *words, program=PROGRAM, stdout=None, stderr=None, **variables):
    """Starts an application, which leads a group of its own."""
    environment = {one: value for one, value in os.environ.items() if not one.startswith("TWILL")}
    # Python 3.12 warns of each fork with more than one thread, of whom ever they are.
    environment["PYTHONWARNINGS"] = "ignore::DeprecationWarning"
    if limits["gpu"]:
        environment["STAND_IN"] = "0"
    return subprocess.Popen(
        [sys.executable, str(program), name, *map(str, words)],
        env={**environment, **{one: str(value) for one, value in variables.items()}},
        stdout=stdout, stderr=stderr, text=True, start_new_session=True,
    )  # fmt: skip


def end(process):
    """Ends an application and all that it forked."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def together(*calls):
    """What calls give back that need not wait for each other."""
    if not limits["together"]:
        return [call() for call in calls]
    with ThreadPoolExecutor(max(1, len(calls))) as pool:
        return list(pool.map(lambda call: call(), calls))
