"""A plugin of pytest: runs the tests by stock Triton, then with Twill, mode by mode, and writes what it finds.

    pytest -p bench.applications.suites.plugin --twill-out FILE --twill-modes check,wait tests/test_one.py::test_two

By stock Triton each test is run once, and once more with Twill in the background, until its kernels are made. Then each mode has
rounds of all tests. The file is written anew after each test, so that it is there whatever becomes of the process.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from .listing import middle, spread
from .suite import CHECK, MAKING, STOCK, WAIT

ROUNDS = {STOCK: 1, MAKING: 1, WAIT: 4}
"""Rounds of all tests; with `check` until nothing is left to be compared. With `wait` each side has some of the launches."""
MAKING_SHARE = 0.8
"""The part of the time in which kernels may be made: what is there by then is compared."""
POLL_SECONDS = 0.5


def pytest_addoption(parser: Any) -> None:
    """The command's own options."""
    group = parser.getgroup("twill")
    group.addoption("--twill-out", help="write what is found here")
    group.addoption("--twill-modes", default="check", help="modes of Twill, with commas")
    group.addoption("--twill-per-test", type=int, default=0, help="parameters of each test; 0: all")
    group.addoption("--twill-tuning", type=int, default=0, help="configurations of each triton.autotune; 0: all")
    group.addoption("--twill-rounds", type=int, default=8, help="rounds of comparisons at most")
    group.addoption("--twill-seconds", type=float, default=600.0, help="after which no more tests are begun")
    group.addoption("--twill-configurations", action="store_true", help="stock Triton's other stages and warps, too")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: Any) -> None:
    """Before a `conftest.py` imports the package, whose autotuners are made then."""
    if count := early_config.known_args_namespace.twill_tuning:
        _shorten_tuning(count)


def pytest_configure(config: Any) -> None:
    """Takes over the order of tests."""
    if config.getoption("--twill-out"):
        config.pluginmanager.register(Phases(config), "twill-phases")


def _shorten_tuning(count: int) -> None:
    """Has autotuners try fewer configurations: compiling all of them would take most of the time."""
    from triton.runtime.autotuner import Autotuner

    original = Autotuner.__init__

    def init(self: Any, fn: Any, arg_names: Any, configs: Any, *rest: Any, **named: Any) -> None:
        original(self, fn, arg_names, middle(configs or [], count), *rest, **named)

    Autotuner.__init__ = init


class Phases:
    """The tests by stock Triton, and with Twill."""

    def __init__(self, config: Any) -> None:
        option = config.getoption
        self._file, self._per_test = Path(option("--twill-out")), option("--twill-per-test")
        self._rounds, self._configurations = option("--twill-rounds"), option("--twill-configurations")
        self._phases = [STOCK, MAKING, *(mode for mode in option("--twill-modes").split(",") if mode not in ("", MAKING))]
        self._begun = time.monotonic()
        self._end = self._begun + option("--twill-seconds")
        self._phase = STOCK
        self._made: str | None = None
        """A regular expression for the kernels that are made, where some are not; empty if there are none."""
        self.found: dict[str, Any] = {"phase": "", "all": 0, "unmade": 0, "outcomes": {}, "rounds": {}, "kernels": {}}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Takes some parameters of each test."""
        self.found["all"] = len(items)
        by_function: dict[str, list[Any]] = {}
        for item in items:
            by_function.setdefault(item.nodeid.partition("[")[0], []).append(item)
        items[:] = [item for each in by_function.values() for item in spread(each, self._per_test)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        """Runs all phases."""
        if session.testsfailed:
            return False
        for phase in self._phases:
            self._phase = self.found["phase"] = phase
            self._begin()
            self._write()
            limit = ROUNDS.get(phase, self._rounds)
            for number in range(limit):
                before = self._compared()
                for item in session.items:
                    if time.monotonic() > self._end:
                        return True
                    # All fixtures are taken down, so that it can be run again.
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                    self._write()
                self.found["rounds"][phase] = number + 1
                if phase == CHECK and number and self._compared() == before:
                    break
            if phase == MAKING:
                self._wait()
                self._write()
            if self._made == "":
                break
        self.found["phase"] = ""
        self._write()
        return True

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Notes what became of a test: of several rounds the worst."""
        outcomes = self.found["outcomes"].setdefault(self._phase, {})
        before = outcomes.get(report.nodeid, {}).get("outcome")
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = getattr(crash, "message", None) or str(report.longrepr)
            if before != "failed":
                outcomes[report.nodeid] = {"outcome": "failed", "when": report.when, "why": why[:400]}
        elif before != "failed" and (report.skipped or report.when == "call"):
            outcomes[report.nodeid] = {"outcome": report.outcome}

    def _begin(self) -> None:
        """Twill in the phase's mode; kernels that an earlier phase had made are in the cache."""
        import twill_gpu

        twill_gpu.uninstall()
        if self._phase != STOCK:
            jobs = int(os.environ.get("TWILL_JOBS", "2"))
            twill_gpu.install(self._phase, jobs=jobs, configurations=self._configurations, only=self._made)

    def _wait(self) -> None:
        """Waits until all kernels are made, or most of the time is over: no launch is to wait for the others then."""
        import twill_gpu

        until = self._begun + MAKING_SHARE * (self._end - self._begun)
        while _named("waiting") and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        waiting, made = _named("waiting"), _named("scheduled") | _named("tuned")
        self.found["unmade"] = sum(one.status == "waiting" for one in twill_gpu.status())
        if waiting or not made:
            self._made = f"^({'|'.join(map(re.escape, sorted(made - waiting)))})$" if made - waiting else ""

    def _compared(self) -> int:
        """Comparisons so far in this phase."""
        import twill_gpu

        return sum(len(one.checked) for one in twill_gpu.status())

    def _write(self) -> None:
        """Writes all that is known."""
        import twill_gpu

        if self._phase != STOCK:
            self.found["kernels"][self._phase] = json.loads(twill_gpu.status().to_json())
        self.found["seconds"] = round(time.monotonic() - self._begun, 1)
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps(self.found), encoding="utf-8")
        part.replace(self._file)


def _named(status: str) -> set[str]:
    """The names of kernels with a specialisation of this status."""
    import twill_gpu

    return {one.name for one in twill_gpu.status() if one.status == status}
