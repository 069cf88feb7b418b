"""One serving process: it is started, listened to, disturbed, and it ends or is killed."""

from __future__ import annotations

import json
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.common import ROOT

from .folders import Folders
from .plan import KILLED_AFTER, Plan
from .steps import Steps

PATIENCE = 150.0
"""Seconds after which a process that says nothing is ended: stock Triton may compile a minute for a call."""
GRACE = 15.0
"""Seconds after its time that a process has for its end."""
ENDING = 5.0
"""Seconds that background processes have to notice that they are no longer needed."""
COUNTED_EVERY = 1.0
"""Seconds between two looks at the folders."""


@dataclass
class Served:
    """What a process left."""

    plan: Plan
    steps: Steps = field(default_factory=Steps)
    requests: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    samples: list[dict[str, Any]] = field(default_factory=list)
    """Of memory; each has what there was in folders, too."""
    wrong: list[dict[str, Any]] = field(default_factory=list)
    failed: list[dict[str, Any]] = field(default_factory=list)
    end: dict[str, Any] | None = None
    """What it said at its end; None of one that was killed."""
    begun_after: float = 0.0
    """Seconds until its loop began."""
    seconds: float = 0.0
    warm: float = 0.0
    """How long the loop is, and what part of it does not count."""
    is_killed: bool = False
    """Whether it was to be killed, and was."""
    ended: str = ""
    """What was wrong with its end, if anything."""
    left_processes: list[int] = field(default_factory=list)
    left_files: list[str] = field(default_factory=list)
    trials: int = 0
    """Kernels whose first launches were noted when it had ended."""
    died: int = 0
    """Kernels that are stock Triton's for good since a process died."""


class Process:
    """A serving process. kill: it is killed before its loop is over; delete: seconds between two files that are thrown away."""

    def __init__(self, plan: Plan, folders: Folders, kill: bool, delete: float, say: Callable[[str], None]):
        self._plan, self._folders, self._delete, self._say = plan, folders, delete, say
        self._served = Served(plan)
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._kills = kill
        self._kills_at = self._counts_at = self._deletes_at = float("inf")
        self._in_folders: dict[str, float] = {}
        self._chance = random.Random(f"{plan.seed} {plan.number} process")

    def run(self) -> Served:
        """Serves to its end."""
        served, started = self._served, time.monotonic()
        errors = self._folders.scratch.parent / f"stderr-{self._plan.number}"
        with errors.open("w", encoding="utf-8") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "bench.soak.serving", self._plan.to_json()],
                stdout=subprocess.PIPE, stderr=file, text=True, env=self._folders.environment(), cwd=ROOT,
            )  # fmt: skip
            try:
                self._listen(process, started)
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()
        if not served.is_killed and process.returncode:
            served.ended = served.ended or f"exit code {process.returncode}"
        if served.ended:
            served.ended += f": {errors.read_text(encoding='utf-8', errors='replace')[-1500:].strip()}"
        self._look_behind()
        return served

    def _listen(self, process: subprocess.Popen[str], started: float) -> None:
        reader = threading.Thread(target=self._read, args=(process,), daemon=True)
        reader.start()
        heard = time.monotonic()
        while True:
            try:
                line = self._lines.get(timeout=0.1)
            except queue.Empty:
                pass
            else:
                if line is None:
                    break
                heard = time.monotonic()
                self._take(line, started)
            now = time.monotonic()
            if now >= self._kills_at:
                self._served.is_killed = True
                process.send_signal(signal.SIGKILL)
                self._kills_at = float("inf")
            if now > self._plan.until + GRACE:
                self._served.ended = "it did not end in time"
                process.kill()
                break
            if now > heard + PATIENCE:
                self._served.ended = f"it said nothing for {PATIENCE:.0f} s"
                process.kill()
                break
            self._meddle(now)
        # It has closed its end of the pipe, so that it is about to end.
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._served.ended = self._served.ended or f"it did not end {GRACE:.0f} s after its last line"
            process.kill()
        reader.join(GRACE)

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None, "it is a pipe"
        with process.stdout as lines:
            for line in lines:
                try:
                    self._lines.put(json.loads(line))
                except ValueError:
                    # The last one of a process that was killed.
                    continue
        self._lines.put(None)

    def _take(self, line: dict[str, Any], started: float) -> None:
        """A line of the process."""
        served, kind = self._served, line.pop("is")
        if kind == "segment":
            served.steps.add(line, served.requests)
            if line["counts"] and self._deletes_at == float("inf"):
                self._deletes_at = time.monotonic()
        elif kind == "sample":
            served.samples.append({**line, **self._in_folders})
        elif kind == "made":
            if line["left_out"]:
                served.left_out[line["request"]] = line["left_out"]
            self._say(f"process {self._plan.number + 1}: {line['request']} {line['seconds']} s {line['left_out'] or ''}")
        elif kind == "begin":
            now = time.monotonic()
            served.begun_after = now - started
            served.requests, served.seconds, served.warm = line["requests"], line["seconds"], line["warm"]
            self._counts_at = now
            if self._kills:
                # Not at the same place of a step each time.
                self._kills_at = now + KILLED_AFTER * served.seconds + self._chance.uniform(0, 0.05) * served.seconds
            self._say(
                f"process {self._plan.number + 1}: its loop of {served.seconds:.0f} s begins after {served.begun_after:.0f} s"
            )
        elif kind == "wrong":
            served.wrong.append(line)
            self._say(f"process {self._plan.number + 1}: WRONG: {line}")
        elif kind == "failed":
            served.failed.append(line)
            self._say(f"process {self._plan.number + 1}: FAILED: {line['request']}: {line['error']}")
        elif kind == "end":
            served.end = line

    def _meddle(self, now: float) -> None:
        """Looks at the folders and throws files away, while what happens counts."""
        if now >= self._counts_at:
            self._in_folders = self._folders.sample()
            self._counts_at = now + COUNTED_EVERY
        if now >= self._deletes_at and self._served.end is None:
            self._folders.throw_away()
            self._deletes_at = now + self._delete

    def _look_behind(self) -> None:
        """What is there after its end and should not be."""
        served, end = self._served, time.monotonic() + ENDING
        while (left := self._folders.background()) and time.monotonic() < end:
            time.sleep(0.1)
        served.left_processes, served.left_files = left, self._folders.left_behind()
        served.trials, served.died = self._folders.records(".trial"), self._folders.records(".died")
