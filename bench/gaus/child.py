"""Runs a command on one core, and says how long it took and how much memory it had at most."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass

# A process starts with its parent's greatest resident set on record, so the command is started by a small one, which
# writes how it ended to the file descriptor it is given.
STARTER = """
import os, sys, time
began = time.perf_counter()
child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(child, 0)
seconds = time.perf_counter() - began
os.write(int(sys.argv[1]), f"{os.waitstatus_to_exitcode(status)} {seconds} {usage.ru_maxrss}".encode())
"""


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
                end(child)

    def run(self, command: list[str], give: str = "", limit: float = 3600.0) -> Ended:
        """Runs a command on the cores that this thread may use; ends it after `limit` seconds."""
        with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(give)
            given.seek(0)
            told, tell = os.pipe()
            starter = [sys.executable, "-I", "-S", "-c", STARTER, str(tell), *command]
            environment = os.environ | {"RAYON_NUM_THREADS": "1"}
            streams = {"stdin": given, "stdout": out, "stderr": err, "env": environment, "pass_fds": [tell]}
            with os.fdopen(told) as answer:
                try:
                    with self.lock:
                        if self.stopped:
                            raise InterruptedError
                        # A group of its own, so that the command ends with its starter.
                        child = subprocess.Popen(starter, **streams, start_new_session=True)
                        self.running.add(child)
                finally:
                    os.close(tell)
                killer = threading.Timer(limit, end, [child])
                killer.start()
                try:
                    child.wait()
                finally:
                    killer.cancel()
                    with self.lock:
                        self.running.discard(child)
                words = answer.read().split()
            if self.stopped:
                raise InterruptedError
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
            if len(words) != 3:
                return Ended(None, *texts, limit, 0)
            code, seconds, kilobytes = int(words[0]), float(words[1]), int(words[2])
            return Ended(code if code >= 0 else None, *texts, seconds, kilobytes * 1024)


def end(child: subprocess.Popen) -> None:
    """The process and all that it started."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
