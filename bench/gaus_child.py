"""Runs a command on one core, and says how long it took and how much memory it had at most."""

import os
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Ended:
    """How a command ended. A command that was killed has no code."""

    code: int | None
    stdout: str
    stderr: str
    seconds: float
    # Greatest resident set, in bytes.
    memory: int


class Children:
    """Commands that are running, so that all of them can be ended when the run is."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running: set[subprocess.Popen] = set()
        self.stopped = False

    def stop(self) -> None:
        with self.lock:
            self.stopped = True
            for child in self.running:
                child.kill()

    def run(self, command: list[str], give: str = "", limit: float = 3600.0) -> Ended:
        """Runs a command on the cores that this thread may use; ends it after `limit` seconds."""
        with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(give)
            given.seek(0)
            environment = os.environ | {"RAYON_NUM_THREADS": "1"}
            started = time.perf_counter()
            with self.lock:
                if self.stopped:
                    raise InterruptedError
                child = subprocess.Popen(command, stdin=given, stdout=out, stderr=err, env=environment)
                self.running.add(child)
            killer = threading.Timer(limit, child.kill)
            killer.start()
            try:
                _, status, usage = os.wait4(child.pid, 0)
            finally:
                killer.cancel()
                with self.lock:
                    self.running.discard(child)
            seconds = time.perf_counter() - started
            # Popen must not wait for it again.
            child.returncode = os.waitstatus_to_exitcode(status)
            if self.stopped:
                raise InterruptedError
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
            code = child.returncode if child.returncode >= 0 else None
            return Ended(code, *texts, seconds, usage.ru_maxrss * 1024)
