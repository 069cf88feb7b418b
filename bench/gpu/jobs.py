"""Worker processes: started with a task, read line by line, ended when they are silent for too long. No torch."""

import contextlib
import datetime
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator

MARK = "@@gpu "

STOPPING = threading.Event()
"""Set at the end, or when the run is ended from outside; no worker starts any more."""
ALIVE: set["Job"] = set()


class Job:
    """A worker and what it has said."""

    def __init__(self, task: dict, environment: dict, command: list[str] | None = None):
        self.task = task
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [*(command or []), sys.executable, "-m", "bench.gpu.worker", json.dumps(task)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            start_new_session=True,
        )
        ALIVE.add(self)
        self.lines: queue.Queue = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def events(self, silence: float, until: float) -> Iterator[dict]:
        """What the worker says; last "hung" where it had to be ended, or "ended" with its exit code."""
        while True:
            wait = min(silence, until - time.time())
            try:
                line = self.lines.get(timeout=max(wait, 0.01))
            except queue.Empty:
                self.end()
                reason = f"silent for {silence:.0f} s" if wait == silence else "not done in time"
                yield {"event": "hung", "reason": reason}
                return
            if line is None:
                code = self.process.wait()
                ALIVE.discard(self)
                yield {"event": "ended", "code": code, "reason": self.trouble() if code else ""}
                return
            if line.startswith(MARK):
                yield json.loads(line.removeprefix(MARK))

    def output(self, timeout: float) -> str:
        """Everything it prints, for a command that reports by itself."""
        lines, until = [], time.time() + timeout
        while True:
            try:
                line = self.lines.get(timeout=max(until - time.time(), 0.01))
            except queue.Empty:
                self.end()
                return "".join(lines)
            if line is None:
                ALIVE.discard(self)
                return "".join(lines)
            lines.append(line)

    def end(self) -> None:
        """Kill the worker and what it started; a launch that hangs goes with its process."""
        ALIVE.discard(self)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=15)

    def trouble(self) -> str:
        """The end of what it wrote to stderr."""
        self.log.seek(0)
        return f"exit code {self.process.returncode}: " + " | ".join(self.log.read().strip().splitlines()[-3:])[-600:]


def stop_all() -> None:
    """End every worker: they would outlive the run, being sessions of their own."""
    STOPPING.set()
    for job in list(ALIVE):
        job.end()


def side_by_side(tasks: list[tuple[dict, float]], environment: dict, at_once: int, until: float) -> list[list[dict]]:
    """The events of every task, in the tasks' order; with each comes for how many seconds it may be silent, half of
    what it may take in all."""
    found: list[list[dict]] = [[] for _ in tasks]
    indices = iter(range(len(tasks)))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                index = next(indices, None)
            if index is None or STOPPING.is_set():
                return
            task, limit = tasks[index]
            end = min(until, time.time() + 2 * limit)
            if end - time.time() < 1:
                found[index].append({"event": "hung", "reason": "no time was left for it"})
                continue
            found[index].extend(Job(task, environment).events(limit, end))

    threads = [threading.Thread(target=work) for _ in range(min(at_once, len(tasks)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


class Sensors:
    """SM clock and power of the GPU, read twice a second by nvidia-smi."""

    def __init__(self):
        self.readings: list[tuple[float, float, float]] = []
        try:
            self.process = subprocess.Popen(
                [
                    *"nvidia-smi --format=csv,noheader,nounits -lms 500".split(),
                    "--query-gpu=timestamp,clocks.sm,power.draw",
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        except OSError:
            self.process = None
            return
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        for line in self.process.stdout:
            try:
                when, clock, power = (value.strip() for value in line.split(","))
                stamp = datetime.datetime.strptime(when, "%Y/%m/%d %H:%M:%S.%f").timestamp()
                self.readings.append((stamp, float(clock), float(power)))
            except ValueError:
                continue

    def since(self, started: float) -> dict:
        """Medians in MHz and W of the readings since then, of the busier half."""
        some = sorted(
            (reading for reading in list(self.readings) if reading[0] >= started), key=lambda reading: reading[2]
        )
        if not some:
            return {}
        busy = some[len(some) // 2 :]
        middle = lambda index: sorted(reading[index] for reading in busy)[len(busy) // 2]
        return {"sm_mhz": middle(1), "watts": middle(2)}

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
