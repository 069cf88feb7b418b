"""Jobs in threads: the solver holds no lock of Python's."""

from __future__ import annotations

import queue
import threading
import time
from typing import Any

from .. import _twill
from . import jobs

GRACE_SECONDS = 10.0
"""How long threads may take to end once they are told to; a search asks every few seconds at the latest."""


class Threads:
    """A pool of threads for jobs."""

    def __init__(self, count: int):
        self.capacity = count
        self._waiting: queue.SimpleQueue[tuple[str, str, _twill.Question] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[str, dict[str, Any] | Exception]] = queue.SimpleQueue()
        self._stopped = threading.Event()
        # A thread that is deep in a search must not keep the process.
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def submit(self, key: str, step: str, question: _twill.Question) -> None:
        """Begins a job when a thread is free."""
        self._waiting.put((key, step, question))

    def next(self) -> tuple[str, dict[str, Any] | Exception]:
        """Waits for any job that was submitted: its key, and its outcome or why there is none."""
        return self._done.get()

    def close(self) -> list[tuple[str, dict[str, Any] | Exception]]:
        """Ends what is still going on, without its outcome; gives back what was finished and not waited for."""
        self._stopped.set()
        for _ in self._threads:
            self._waiting.put(None)
        end = time.monotonic() + GRACE_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        left = []
        while not self._done.empty():
            left.append(self._done.get())
        return left

    def _work(self) -> None:
        while (job := self._waiting.get()) is not None and not self._stopped.is_set():
            key, step, question = job
            try:
                self._done.put((key, jobs.run(step, question, self._go_on)))
            except _Stopped:
                return
            except Exception as error:
                self._done.put((key, error))

    def _go_on(self, _: str) -> None:
        if self._stopped.is_set():
            raise _Stopped


class _Stopped(Exception):
    """Nobody waits for the outcome any more."""
