"""Background processes that make kernels while stock Triton runs."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

KEPT = ("TWILL", "TWILL_COLLECT", "TWILL_LOG", "TWILL_ONLY", "TWILL_SKIP", "TWILL_JOBS")
"""Variables that a background process must not act on."""
START = """
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
sys.path[:] = [place for place in sys.path if place[:1] == "/" or place[1:2] == ":"]
spec = PathFinder.find_spec("twill_gpu", [sys.argv[1]])
package = sys.modules["twill_gpu"] = module_from_spec(spec)
spec.loader.exec_module(package)
from twill_gpu.activation.worker import main
main()
"""
"""The package is the one that this process has, and nothing is imported from the working directory."""
IDLE_SECONDS = 30.0
"""How long a process waits for another kernel."""


class Unanswered(RuntimeError):
    """Nothing was found out about a kernel: a process was ended, or could not be started."""


class _Job(NamedTuple):
    question: dict[str, Any]
    done: Future[dict[str, Any]]


class Workers:
    """At most `jobs` processes; each is started when there is work for it and ends when there is none.

    They are this process's own: a forked child has none, and makes nothing (`alive` is False there).
    """

    def __init__(self, jobs: int, folder: Callable[[], Path]):
        self._jobs, self._owner, self._folder = jobs, os.getpid(), folder
        self._queue: queue.Queue[_Job] = queue.Queue()
        self._lock = threading.Lock()
        self._busy = 0
        self._processes: set[subprocess.Popen[str]] = set()
        self._stopped = False

    @property
    def alive(self) -> bool:
        """Whether they take work."""
        return not self._stopped and os.getpid() == self._owner

    def make(
        self, ttir: str, name: str, machine: str, options: Mapping[str, object], folder: Path
    ) -> Future[dict[str, Any]]:
        """Has a kernel made in a new folder. The future raises `RuntimeError` with the reason where there is none.

        That is `Unanswered` where it says nothing about the kernel: there was no memory, or no space on a disk.
        """
        options = dict(options)
        return self._ask_one({"ttir": ttir, "name": name, "machine": machine, "options": options, "folder": str(folder)})

    def configure(self, ttir: str, compiled: Mapping[str, object]) -> Future[dict[str, Any]]:
        """Has stock Triton compile a kernel with other options than `compiled`; the answer has them under `made`."""
        return self._ask_one({"ttir": ttir, "compiled": dict(compiled)})

    def bound(self, ttirs: Sequence[str], name: str, machine: str) -> Future[dict[str, Any]]:
        """Has proven bounds of kernels found; the answer has them under `bounds`: cycles, or None where there is none."""
        return self._ask_one({"ttirs": list(ttirs), "name": name, "machine": machine})

    def _ask_one(self, question: dict[str, Any]) -> Future[dict[str, Any]]:
        """Has a question answered by one of the processes."""
        job = _Job(question, Future())
        self._queue.put(job)
        with self._lock:
            start = self.alive and self._busy < self._jobs
            self._busy += start
        if start:
            try:
                threading.Thread(target=self._work, daemon=True, name="twill-worker").start()
            except RuntimeError:
                with self._lock:
                    self._busy -= 1
                self._answer_all("no thread could be started")
        return job.done

    def stop(self) -> None:
        """Ends all processes, with what they are at."""
        with self._lock:
            self._stopped = True
            processes = list(self._processes)
        for process in processes:
            _kill(process)
        self._answer_all("background processes were ended")

    def _answer_all(self, why: str) -> None:
        """Answers all jobs that nobody has begun."""
        while True:
            try:
                self._queue.get_nowait().done.set_exception(Unanswered(why))
            except queue.Empty:
                return

    def let_go(self) -> None:
        """In a forked child: closes what it has of the parent's pipes, which would keep the processes alive."""
        self._stopped = True
        # Neither a lock nor a buffer of a file object: a thread that is not here may have them.
        nothing = os.open(os.devnull, os.O_RDWR)
        for process in list(self._processes):
            for pipe in (process.stdin, process.stdout):
                try:
                    os.dup2(nothing, pipe.fileno(), inheritable=False)  # type: ignore[union-attr]
                except (AttributeError, OSError, ValueError):
                    pass
        os.close(nothing)

    def _work(self) -> None:
        """Hands jobs to a process of its own until there are none."""
        process: subprocess.Popen[str] | None = None
        try:
            while True:
                with self._lock:
                    try:
                        job = self._queue.get_nowait()
                    except queue.Empty:
                        job = None
                        if process is None or self._stopped:
                            self._busy -= 1
                            return
                if job is None:
                    try:
                        job = self._queue.get(timeout=IDLE_SECONDS)
                    except queue.Empty:
                        self._forget(process)
                        process = None
                        continue
                try:
                    if process is None:
                        process = self._start()
                except Exception as error:
                    job.done.set_exception(Unanswered(f"no background process could be started: {error}"))
                    continue
                if not self._ask(process, job):
                    self._forget(process)
                    process = None
        except BaseException:
            with self._lock:
                self._busy -= 1
            raise

    def _start(self) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if name not in KEPT}
        # Compilers need no GPU, and are to make no context on one.
        environment["CUDA_VISIBLE_DEVICES"] = ""
        # Others depend on the working directory.
        given = [place for place in environment.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(place)]
        environment["PYTHONPATH"] = os.pathsep.join(given)
        # It is killed in the end, and leaves what it has there.
        environment["TMPDIR"] = str(self._folder())
        process = subprocess.Popen(
            [sys.executable, "-c", START, _package_folder()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
            start_new_session=True,
        )
        with self._lock:
            self._processes.add(process)
            if self._stopped:
                _kill(process)
        return process

    def _forget(self, process: subprocess.Popen[str] | None) -> None:
        """Ends a process that has nothing to do, or has ended."""
        if process is None:
            return
        _kill(process)
        for pipe in (process.stdin, process.stdout):
            try:
                pipe.close()  # type: ignore[union-attr]
            except (OSError, ValueError):
                pass
        process.wait()
        with self._lock:
            self._processes.discard(process)

    def _ask(self, process: subprocess.Popen[str], job: _Job) -> bool:
        """Waits for the answer to a job and tells it; False where there is none."""
        assert process.stdin and process.stdout, "both are pipes"
        try:
            process.stdin.write(json.dumps(job.question) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            answer = json.loads(line) if line else None
        except (OSError, ValueError):
            answer = None
        if answer is None:
            job.done.set_exception(Unanswered("the background process was killed"))
            return False
        if "error" in answer:
            kind = RuntimeError if answer.get("lasts") else Unanswered
            job.done.set_exception(kind(answer["error"]))
        else:
            job.done.set_result(answer)
        return True


def _package_folder() -> str:
    """Where this package is, which a background process has to find too."""
    return str(Path(__file__).resolve().parents[2])


def _kill(process: subprocess.Popen[str]) -> None:
    """Ends a process and all that it started: it leads a group of its own."""
    if process.returncode is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (AttributeError, OSError):
            process.kill()
