"""Jobs on a Ray cluster, where workers may die at any time."""

from __future__ import annotations

import importlib
from typing import Any

from .. import _twill
from ..errors import InputError
from . import jobs

RETRIES = 10
"""How often a job is begun again whose worker died."""


class Cluster:
    """A Ray cluster for jobs. What it finds out comes back to this process, which alone writes it down.

    A job whose worker dies is begun again elsewhere; one that is done never is, as its outcome is here already.
    """

    def __init__(self, address: str):
        try:
            ray: Any = importlib.import_module("ray")
        except ImportError as error:
            raise InputError("ray=… needs Ray, which is not installed: pip install 'twill-gpu[ray]'") from error
        self._ray = ray
        self._keys: dict[Any, str] = {}
        self._own = not ray.is_initialized()
        if self._own:
            try:
                ray.init(None if address == "local" else address, log_to_driver=False, logging_level="error")
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise InputError(f"ray: cannot reach {address}: {error}") from error
        self._task = ray.remote(num_cpus=1, max_retries=RETRIES)(jobs.run)
        self.capacity = max(1, int(ray.cluster_resources().get("CPU", 1)))

    def submit(self, key: str, step: str, question: _twill.Question) -> None:
        """Begins a job when a worker is free."""
        self._keys[self._task.remote(step, question)] = key

    def next(self) -> tuple[str, dict[str, Any] | Exception]:
        """Waits for any job that was submitted: its key, and its outcome or why there is none."""
        (done,), _ = self._ray.wait(list(self._keys), num_returns=1)
        return self._outcome(done)

    def close(self) -> list[tuple[str, dict[str, Any] | Exception]]:
        """Ends what is still going on, without its outcome; gives back what was finished and not waited for.

        The cluster stays, unless it was begun here.
        """
        under_way = list(self._keys)
        done = self._ray.wait(under_way, num_returns=len(under_way), timeout=0)[0] if under_way else []
        left = [self._outcome(one) for one in done]
        for one in self._keys:
            self._ray.cancel(one)
        self._keys.clear()
        if self._own:
            self._ray.shutdown()
        return left

    def _outcome(self, done: object) -> tuple[str, dict[str, Any] | Exception]:
        key = self._keys.pop(done)
        try:
            return key, self._ray.get(done)
        except Exception as error:
            return key, error
